"""Metrics that need counts alone."""
