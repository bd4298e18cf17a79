"""A reference in another hand: what things cost, written from formulas in plain Python, and tests that compare.

The modules without `test_` in their names are slow and short: fractions, integers and decimals, nothing of the package
and nothing but the standard library (a house test sees to that). They say what the papers and our design say, not what
our code does. The tests draw settings at random and compare: exactly where a number is exact, and from one side where
it is rounded, so that the package never claims less than what the reference finds.
"""
