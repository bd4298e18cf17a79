"""Number columns that are modelled as two: how large a value is, and of which kind."""
