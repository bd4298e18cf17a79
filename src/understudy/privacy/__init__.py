"""The core: costs, noise, ledger and the one door through which anything learned from rows must pass."""
