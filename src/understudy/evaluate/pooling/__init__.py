"""Inference from synthetic data: combining several copies, and intervals from the noisy answers themselves."""
