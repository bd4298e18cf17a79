"""Labels given public columns: ensembles of decision trees with noisy leaf tables."""
