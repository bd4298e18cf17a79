"""Categories with many rare labels: one code for all of them, and the way back."""
