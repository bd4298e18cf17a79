"""Which questions to ask, in which order. A mechanism sees the curator and nothing else."""
