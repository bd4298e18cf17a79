"""What the ledger is made of: entries and their hashes, the arithmetic of a cap, the check of a chain, the file."""
