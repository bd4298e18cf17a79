"""Methods that count the records layer by layer down a tree and fit all counts together."""
