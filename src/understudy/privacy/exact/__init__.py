"""Numbers that cannot be wrong: real functions as integer intervals, and probability laws evaluated with them."""
