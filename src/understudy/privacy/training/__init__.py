"""Training on private records: sampled units, bounded integer contributions, one price for all steps."""
