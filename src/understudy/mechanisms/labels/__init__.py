"""Labels for records whose other columns are public."""
