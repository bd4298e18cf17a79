"""Distributions fitted to noisy answers. Post-processing only: this room never sees an exact count."""
