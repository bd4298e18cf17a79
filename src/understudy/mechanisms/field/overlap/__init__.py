"""Parts of the methods that measure overlapping tables and make rows from them."""
