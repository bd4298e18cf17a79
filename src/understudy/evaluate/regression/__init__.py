"""Would an analyst draw the same conclusions? Regressions, their intervals, and predictions."""
