"""The rules a declaration must obey, by subject. `check.py` asks them all."""
