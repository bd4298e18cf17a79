"""What a private choice needs to survive a kill: its bill in the ledger, and the folder it is made in."""
