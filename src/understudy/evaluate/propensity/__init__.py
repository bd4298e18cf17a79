"""Metrics that ask whether a classifier can tell the two tables apart."""
