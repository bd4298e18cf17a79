"""The two tables being compared, read through one schema and one codec."""
