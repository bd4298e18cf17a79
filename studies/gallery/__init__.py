"""Five public tables from the raw file to a release, with an analysis on the stand-in beside the truth."""
