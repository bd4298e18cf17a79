"""Exact counting: no other package touches rows for a release. What it returns is private, for the curator only."""
