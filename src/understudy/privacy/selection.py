"""The exponential mechanism on integer scores, drawn exactly.

Option i is chosen with probability e^(−rate·(max − score_i)) / Σ_j e^(−rate·(max − score_j)), which is
∝ e^(rate·score_i): higher scores are likelier. Options with equal scores form a group with one weight; a group is
chosen first, then a member of it uniformly.

The weights are irrational, so they are held as integer intervals. A uniform U, of which only some bits are drawn,
falls in the part of [0, 1) that belongs to one group; if the bits and the bounds at hand cannot tell which, more bits
of both are taken. The choice has exactly the stated law. No floats, no Gumbel noise, no base-2 approximation.

Long lists of options go through the compiled loop of `exact/choices.py`, which has the same law and a proof of its own.
"""

import os
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import accumulate
from operator import or_

import numpy as np

from understudy.errors import UsageError
from understudy.privacy.cumulative import uniform_below
from understudy.privacy.exact.choices import choose_each
from understudy.privacy.exact.interval import Interval, exp_minus, product

__all__ = ["choose_exponentially"]

_FIRST_BITS = 128
_MANY = 200
"""Options from which the compiled loop is faster, with the table that it needs for each rate."""


def choose_exponentially(scores: Sequence[int], rate: Fraction) -> int:
    """The index of the chosen option, P(i) ∝ e^(rate · scores[i]), rate ≥ 0."""
    if not scores:
        raise UsageError("selection", "needs at least one option.")
    if rate < 0:
        raise UsageError("selection", f"the rate must be 0 or more, got {rate}.")
    if len(scores) >= _MANY:
        return int(choose_each(np.array([scores], np.int64), np.ones((1, len(scores)), np.bool_), rate)[0])
    best = max(scores)
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for index, score in enumerate(scores):
        groups[best - score].append(index)
    gaps = sorted(groups)
    members = groups[gaps[_choose_group(gaps, [len(groups[gap]) for gap in gaps], rate)]]
    return members[uniform_below(len(members))]


def _choose_group(gaps: list[int], sizes: list[int], rate: Fraction) -> int:
    if len(gaps) == 1:
        return 0
    bits, drawn, number = _FIRST_BITS, 0, 0
    while True:
        number = number << (bits - drawn) | int.from_bytes(os.urandom((bits - drawn) // 8), "little")
        drawn = bits
        found = _decide(_cumulated(gaps, sizes, rate, bits), number, bits)
        if found is not None:
            return found
        bits *= 2


def _cumulated(gaps: list[int], sizes: list[int], rate: Fraction, bits: int) -> tuple[list[int], list[int]]:
    """Lower and upper bounds of the cumulated weights of the groups."""
    weights = _weights(gaps, rate, bits)
    return (
        list(accumulate(size * weight[0] for size, weight in zip(sizes, weights, strict=True))),
        list(accumulate(size * weight[1] for size, weight in zip(sizes, weights, strict=True))),
    )


def _weights(gaps: list[int], rate: Fraction, bits: int) -> list[Interval]:
    """Bounds of e^(−rate·gap), from e^(−rate·2^j) for the binary digits of the gap."""
    work = bits + 16
    one = 1 << work
    used = reduce(or_, gaps)
    powers = {place: exp_minus(rate * (1 << place), work) for place in range(used.bit_length()) if used >> place & 1}
    weights = []
    for gap in gaps:
        weight = (one, one)
        while gap and weight[1] > 1:
            place = gap.bit_length() - 1
            weight = product(weight, powers[place], work)
            gap ^= 1 << place
        weights.append((0, 1) if gap else (weight[0] >> 16, -(-weight[1] >> 16)))
    return weights


def _decide(sums: tuple[list[int], list[int]], number: int, bits: int) -> int | None:
    """The group that [number, number + 1) / 2^bits of the total surely falls in, if that is certain.

    U·total lies in [number·lowest, (number + 1)·highest) / 2^bits; group i is certain if that range starts at or
    above the upper bound of the sum before i and ends at or below the lower bound of the sum up to i.
    """
    lower, upper = sums
    start, end = number * lower[-1], (number + 1) * upper[-1]
    last = len(lower) - 1
    for group, (low, high) in enumerate(zip(lower, upper, strict=True)):
        if group == last or end <= low << bits:  # U is below 1, so nothing lies beyond the last group
            return group
        if start < high << bits:
            return None
    return None
