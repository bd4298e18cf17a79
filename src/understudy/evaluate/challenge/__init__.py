"""The scores of the 2018 NIST challenge, as they were computed there."""
