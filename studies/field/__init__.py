"""Parts of the study of the 2018 challenge: its tables, its entrants, its scores, what was printed about them."""
