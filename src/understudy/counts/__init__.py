"""Exact counting: no other room touches rows for a release. What it returns is private and goes to the curator only."""
