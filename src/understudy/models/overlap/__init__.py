"""Overlapping noisy tables: made to agree with each other, and rows moved towards them."""
