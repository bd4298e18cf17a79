"""Methods that take help from public data."""
