"""Databases started for real, each in a temporary folder of its own."""
