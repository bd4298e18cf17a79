"""Scores by which methods choose: each with the bound that makes it safe, proved where it stands."""
