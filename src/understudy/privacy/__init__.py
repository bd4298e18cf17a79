"""The core: costs, noise, the ledger, and the curator, through which anything learned from rows must pass."""
