"""Distributions fitted to noisy answers. Post-processing only: this package never sees an exact count."""
