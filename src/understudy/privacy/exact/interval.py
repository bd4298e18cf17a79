"""Exponentials and powers as integer intervals.

A real number x in [0, 1] is held at `bits` fractional bits by a pair (lower, upper) of integers with
lower ≤ 2^bits · x ≤ upper. Every operation rounds the lower end down and the upper end up, so the true value never
leaves the interval; more bits make it narrower. There are no floats here and nothing is trusted to be "close enough".
"""

from fractions import Fraction

__all__ = ["Interval", "exp_minus", "power", "product", "quotient"]

Interval = tuple[int, int]


def exp_minus(exponent: Fraction, bits: int) -> Interval:
    """Bounds of e^−exponent for an exponent ≥ 0.

    The exponent is halved until it is below 1/64, the series of e^z has positive terms only (so cutting digits keeps
    a lower bound, rounding them up and adding the cut tail keeps an upper one), then reciprocal and squarings.
    """
    if exponent < 0:
        raise ValueError("exp_minus needs an exponent of 0 or more")
    if exponent == 0:
        return 1 << bits, 1 << bits
    if exponent >= bits:  # e^−bits < 2^−bits
        return 0, 1
    halvings = max(0, exponent.numerator.bit_length() - exponent.denominator.bit_length() + 7)
    work = bits + halvings + bits.bit_length() + 8  # each squaring doubles the width of the interval
    small = (exponent.numerator << work) // (exponent.denominator << halvings)
    square = 1 << (2 * work)
    lower = square // _growth_above(small + 1, work)
    upper = -(-square // _growth_below(small, work))
    for _ in range(halvings):
        lower = lower * lower >> work
        upper = (upper * upper >> work) + 1
    spare = work - bits
    return lower >> spare, min(-(-upper >> spare), 1 << bits)


def _growth_below(small: int, work: int) -> int:
    """At most 2^work · e^(small / 2^work)."""
    term = total = 1 << work
    count = 0
    while term:
        count += 1
        term = (term * small >> work) // count
        total += term
    return total


def _growth_above(small: int, work: int) -> int:
    """At least 2^work · e^(small / 2^work), for small / 2^work ≤ 1/32."""
    term = total = 1 << work
    count = 0
    while term > 1:
        count += 1
        term = -(-term * small // (count << work))
        total += term
    return total + 1  # what follows a term of at most 1 sums to less than 1, because terms shrink by more than half


def product(first: Interval, second: Interval, bits: int) -> Interval:
    """Bounds of the product of two numbers in [0, 1]."""
    return first[0] * second[0] >> bits, -(-first[1] * second[1] >> bits)


def quotient(top: Interval, bottom: Interval, bits: int) -> Interval:
    """Bounds of top / bottom for numbers ≥ 0; the upper end is cut at 1, so use it where the true value is ≤ 1."""
    if bottom[0] <= 0:
        return 0, 1 << bits
    return (top[0] << bits) // bottom[1], min(-(-(top[1] << bits) // bottom[0]), 1 << bits)


def power(number: Interval, exponent: int, bits: int) -> Interval:
    """Bounds of number^exponent for a number in [0, 1] and a whole exponent ≥ 0."""
    result = (1 << bits, 1 << bits)
    square = number
    while exponent:
        if exponent & 1:
            result = product(result, square, bits)
        exponent >>= 1
        if exponent:
            square = product(square, square, bits)
    return result
