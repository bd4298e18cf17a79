"""The documentation site: what is generated from the code, the pictures of the methods, and the check of links."""
