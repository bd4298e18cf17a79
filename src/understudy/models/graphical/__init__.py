"""Graphical models: distributions that are products of small tables, fitted to noisy marginals of any overlap."""
