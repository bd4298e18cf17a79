"""The command line: parse, call, print. It computes nothing and decides nothing."""
