"""Parts of the study of random decision trees: its tables, panels, and the printed statements."""
