"""Labels for records that a user brings along."""
