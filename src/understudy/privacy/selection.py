"""The exponential mechanism on integer scores, drawn exactly, one choice or many at once.

Option i is chosen with probability e^(−rate·(max − score_i)) / Σ_j e^(−rate·(max − score_j)), which is
∝ e^(rate·score_i): higher scores are likelier. Options with equal scores form a group with one weight; a group is
chosen first, then a member of it uniformly.

The weights are irrational, so they are held as integer intervals. A uniform U, of which only some bits are drawn,
falls in the part of [0, 1) that belongs to one group; if the bits and the bounds at hand cannot tell which, more bits
of both are taken. The choice has exactly the stated distribution. No floats, no Gumbel noise, no base-2 approximation.

Many draws at once
------------------
For every row of a matrix of integer scores, and for long lists of options, one allowed option i is drawn by a compiled
loop, with the same distribution: with w_i = e^(−rate·(best − score_i)) it is the first i with U·Σ w < w_1 + … + w_i, U
uniform in [0, 1), of which 64 bits u are drawn first and more only where they are needed.

* Weights are integers of 62 fractional bits. A gap best − score is written in digits of base 16; ⌊2⁶²·e^(−rate·d·16^p)⌋
  stands in a table, from intervals, at most 2 too low; a weight is the product of at most 16 entries. A product of two
  numbers that are at most a and b too low, each at most 1, cut to 62 bits, is at most a + b + 2 too low. So a weight is
  less than 64 units too low, and, after the shift that keeps the sum of all weights below 2⁶³, less than `SLACK` = 66.
* Let C_i be the sum of the first i lower weights of n. The true sums lie in [C_i, C_i + 66·i). With
  m = ⌊u·C_n / 2⁶⁴⌋ the number U·Σ w lies in [m, m + 66·n + 2).
* If m ≥ C_{i−1} + 66·(i−1) and m + 66·n + 2 ≤ C_i, the draw is i, whatever the bits not drawn would have been. (The
  last allowed option needs no upper bound, because U < 1.)
* Otherwise (a probability of about 10⁻¹³ per row) the 64 bits are handed to interval arithmetic of growing precision.

No float is involved, and nothing is decided by a comparison that is not proved.
"""

import os
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import accumulate
from operator import or_

import numpy as np

from understudy.arrays import Bools, Ints, Words
from understudy.compiled import compiled
from understudy.errors import UsageError
from understudy.privacy.distributions import Interval, exp_minus, product
from understudy.privacy.noise import uniform_below

SLACK = 66
"""What no weight is below its true value by, in its last place; any larger number is right as well, and slower."""
_CHUNK = 1 << 15
_PLACES = 16
_RADIX = 16
_BITS = 62
_SPARE = 64
_LOW = np.uint64(2**32 - 1)
_HALF = np.uint64(32)


def choose_each(scores: Ints, allowed: Bools, rate: Fraction, *, slack: int = SLACK) -> Ints:
    """For every row the index of an allowed option, P(i) ∝ e^(rate · score_i), rate ≥ 0.

    Args:
        scores: shape (rows, options).
        allowed: same shape; at least one option of every row.
        rate: per unit of score.
        slack: see `SLACK`; tests raise it to send draws through the slow path.
    """
    if scores.ndim != 2 or scores.shape != allowed.shape or scores.dtype != np.int64 or allowed.dtype != np.bool_:
        raise UsageError("selections", "need int64 scores and a mask of the same shape, one row per choice.")
    if rate < 0:
        raise UsageError("selections", f"the rate must be 0 or more, got {rate}.")
    if not allowed.any(axis=1).all():
        raise UsageError("selections", "need at least one allowed option in every cell.")
    chosen = np.empty(scores.shape[0], dtype=np.int64)
    if not chosen.size:
        return chosen
    table, shift = _digit_weights(rate), scores.shape[1].bit_length()
    pending = np.empty(min(chosen.size, _CHUNK), dtype=np.int64)
    for start in range(0, chosen.size, _CHUNK):
        part = slice(start, min(start + _CHUNK, chosen.size))
        words = np.frombuffer(os.urandom(8 * (part.stop - start)), dtype=np.uint64)
        count = _choose(scores[part], allowed[part], words, table, shift, slack, chosen[part], pending)
        for at in pending[:count].tolist():
            row = start + at
            chosen[row] = _resolve(scores[row], allowed[row], rate, int(words[at]))
    return chosen


@lru_cache(maxsize=64)
def _digit_weights(rate: Fraction) -> Words:
    """⌊2⁶² · e^(−rate·d·16^p)⌋, at most 2 too low, for every place p and digit d."""
    table = np.empty((_PLACES, _RADIX), dtype=np.uint64)
    for place in range(_PLACES):
        for digit in range(_RADIX):
            table[place, digit] = exp_minus(rate * digit * _RADIX**place, _BITS + _SPARE)[0] >> _SPARE
    table.flags.writeable = False
    return table


def _resolve(scores: Ints, allowed: Bools, rate: Fraction, prefix: int) -> int:
    """The answer of one row for a uniform number that starts with 64 bits `prefix`."""
    options = np.flatnonzero(allowed).tolist()
    best = max(int(scores[option]) for option in options)
    gaps = [best - int(scores[option]) for option in options]
    number, bits = prefix, 64
    while True:
        bounds = [exp_minus(rate * gap, bits + 16) for gap in gaps]
        found = _decided_option(bounds, number, bits)
        if found is not None:
            return int(options[found])
        number = number << bits | int.from_bytes(os.urandom(bits // 8), "little")
        bits *= 2


def _decided_option(bounds: list[Interval], number: int, bits: int) -> int | None:
    """The option that [number, number + 1) / 2^bits of the total surely falls in, if that is certain."""
    lower, upper = list(accumulate(low for low, _ in bounds)), list(accumulate(high for _, high in bounds))
    start, end = number * lower[-1], (number + 1) * upper[-1]
    last = len(bounds) - 1
    for option, (low, high) in enumerate(zip(lower, upper, strict=True)):
        if option == last or end <= low << bits:
            return option
        if start < high << bits:
            return None
    return None


@compiled()
def _high(first: np.uint64, second: np.uint64) -> np.uint64:  # pragma: no cover
    """The upper 64 bits of the product of two 64-bit numbers."""
    first_low, first_high = first & _LOW, first >> _HALF
    second_low, second_high = second & _LOW, second >> _HALF
    middle = first_high * second_low + ((first_low * second_low) >> _HALF)
    other = first_low * second_high + (middle & _LOW)
    return first_high * second_high + (middle >> _HALF) + (other >> _HALF)


@compiled()
def _product(first: np.uint64, second: np.uint64) -> np.uint64:  # pragma: no cover
    """The product of two numbers of 62 fractional bits, cut to 62 bits."""
    high: np.uint64 = _high(first, second)
    return (high << np.uint64(2)) | ((first * second) >> np.uint64(_BITS))


@compiled()
def _weight(gap: np.uint64, table: Words) -> np.uint64:  # pragma: no cover
    """A lower bound of 2⁶² · e^(−rate·gap)."""
    weight = np.uint64(1 << _BITS)
    place = 0
    while gap != np.uint64(0) and weight != np.uint64(0):
        digit = gap & np.uint64(_RADIX - 1)
        if digit != np.uint64(0):
            weight = _product(weight, table[place, np.int64(digit)])
        gap >>= np.uint64(4)
        place += 1
    return weight


@compiled()
def _choose(
    scores: Ints, allowed: Bools, words: Words, table: Words, shift: int, slack: int, chosen: Ints, pending: Ints
) -> int:  # pragma: no cover
    """Draws every row that 64 bits decide; lists the others in `pending` and returns how many there are."""
    rows, options = scores.shape
    sums = np.empty(options, dtype=np.int64)
    count = 0
    for row in range(rows):
        best = np.int64(-(2**63))
        members = 0
        for option in range(options):
            if allowed[row, option]:
                best = max(best, scores[row, option])
                members += 1
        total = np.int64(0)
        for option in range(options):
            if allowed[row, option]:
                gap = np.uint64(best) - np.uint64(scores[row, option])
                total += np.int64(_weight(gap, table) >> np.uint64(shift))
            sums[option] = total
        place = np.int64(_high(words[row], np.uint64(total)))
        found, before, rank = -1, np.int64(0), 0
        for option in range(options):
            if not allowed[row, option]:
                continue
            rank += 1
            if rank == members or place + slack * members + 2 <= sums[option]:
                found = option if rank == 1 or place >= before + slack * (rank - 1) else -1
                break
            before = sums[option]
        if found < 0:
            pending[count] = row
            count += 1
        chosen[row] = found
    return count


_FIRST_BITS = 128
_MANY = 200
"""Options from which the compiled loop is faster, with the table that it needs for each rate."""


def choose_exponentially(scores: Sequence[int] | Ints, rate: Fraction) -> int:
    """The index of the chosen option, P(i) ∝ e^(rate · scores[i]), rate ≥ 0."""
    if not len(scores):
        raise UsageError("selection", "needs at least one option.")
    if rate < 0:
        raise UsageError("selection", f"the rate must be 0 or more, got {rate}.")
    if len(scores) >= _MANY:
        line = np.asarray(scores, np.int64)[None]
        return int(choose_each(line, np.ones(line.shape, np.bool_), rate)[0])
    scores = [int(score) for score in scores]
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
