"""Bayesian networks: every column given its parents, in an order in which parents come first."""
