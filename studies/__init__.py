"""The source documents' studies, run again: each a script with a smoke form and a full form (`make studies`)."""
