"""Options of methods and metrics: reading them from text, and checking their values."""
