"""Exact counting: the only room that touches rows. What it returns is private and goes to the curator only."""
