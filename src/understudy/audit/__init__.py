"""Tries to catch ourselves leaking: neighbouring tables, frozen-noise replay, lower bounds from repeated runs."""
