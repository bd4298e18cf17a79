"""Where randomness meets private numbers: requests go in with exact integers, noisy answers and choices come out.

There is one implementation for releases (`SecureRandomizer`): exact integer noise, no seed, no state. Test doubles that
record and replay answers live in `understudy.testing` and mark themselves as not private.

Counts are int64 in [0, 2⁵³), noise is int64, answers are int64 cut at ±2⁶¹. Noise beyond ±2⁶² arrives as ±2⁶²; the
sum is cut all the same, so the cut answer equals the cut of count + true noise: post-processing, which costs nothing.
Scores, which may be negative, lie in ±2⁶⁰ and obey the same argument.

One choice
----------
The exponential mechanism on integer scores, drawn exactly. Option i is chosen with probability e^(−rate·(max −
score_i)) / Σ_j e^(−rate·(max − score_j)), which is ∝ e^(rate·score_i): higher scores are likelier. Options with equal
scores form a group with one weight; a group is chosen first, then a member of it uniformly.

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

import math
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import accumulate
from operator import or_
from typing import Protocol

import numpy as np

from understudy.arrays import Bools, Ints, Words
from understudy.compiled import compiled
from understudy.counts.source import LabelCounts, OccupiedCells, Records
from understudy.domain import RESIDUAL_UNIT, Distribution
from understudy.errors import UsageError
from understudy.privacy.cost import check_sparse
from understudy.privacy.noise import (
    Interval,
    discrete_gaussian,
    discrete_laplace,
    exp_minus,
    geometric,
    product,
    rare_positions,
    sampled_positions,
    uniform_below,
)


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked, in public terms: everything the noise depends on except the private numbers.

    `sensitivity` is the most the exact input may move between neighbours: L1 distance for Laplace noise, L2 for
    Gaussian noise, largest single change for scores (`select`, `score`), the largest change of each cell summed over
    the cells for choices within cells, L1 distance in grid units for every layer of a tree. Replay tests hold each
    input against it. A residual table (`shape` says of how many codes) moves by at most `sensitivity` rows in L2, and
    what is left of that without row and column sums by the part that its noise is fitted to.

    `bias` and `layer` belong to growing trees: how much a node's count is lowered per level, and which layer is asked
    (the first one, 0, carries the cost of the whole tree).

    Training: `sensitivity` bounds the L2 norm of a unit's vector, `layer` is the step (0: a look at all units), a unit
    takes part with probability 1 − e^(−rate), and `delta` (in units) is the δ of the whole training.
    """

    kind: str
    name: str
    cells: int
    distribution: Distribution | None
    sensitivity: Fraction
    rate: Fraction = Fraction(0)
    threshold: int = 0
    monotone: bool = False
    bias: int = 0
    layer: int = 0
    delta: int = 0
    shape: tuple[int, ...] = ()


class Randomizer(Protocol):
    """Turns exact integers into answers that may leave."""

    @property
    def private(self) -> bool:
        """Whether its answers may be released."""
        ...

    def add_noise(self, request: Request, exact: Ints) -> Ints:
        """exact + one fresh draw of `request.distribution` per cell, as int64."""
        ...

    def add_residual_noise(self, request: Request, exact: Ints) -> Ints:
        """Contrasts of RESIDUAL_UNIT · exact + one fresh draw of `request.distribution` per cell, as int64."""
        ...

    def add_sparse_noise(self, request: Request, occupied: OccupiedCells) -> OccupiedCells:
        """Equal in distribution to noise on all `request.cells` cells, keeping those ≥ `request.threshold` (≥ 1)."""
        ...

    def keep_frequent(self, request: Request, exact: LabelCounts) -> LabelCounts:
        """Labels whose noisy count reaches `request.threshold`, with that noisy count, in code point order."""
        ...

    def choose(self, request: Request, scores: Ints) -> int:
        """Index drawn with probability ∝ exp(rate × score); scores are integers (fixed point)."""
        ...

    def choose_each(self, request: Request, scores: Ints, allowed: Bools) -> Ints:
        """For every row of `scores` an index of an allowed option, drawn with probability ∝ exp(rate × score)."""
        ...

    def split(self, request: Request, biased: Ints) -> Bools:
        """Whether each biased count plus one fresh draw of `request.distribution` lies above `request.threshold`."""
        ...

    def sample(self, request: Request, records: Records) -> Ints:
        """Which units take part, increasing: each on its own, with probability 1 − e^(−request.rate)."""
        ...


# Counts below 2⁵³ plus noise cut at 2⁶² fit 64 bits; the cut of the sum at 2⁶¹ hides where the noise had been cut.
LARGEST_ANSWER = 1 << 61
# Signed, and 2⁶⁰ + 2⁶² < 2⁶³: adding noise cannot wrap.
LARGEST_SCORE = 1 << 60
_LARGEST_COUNT = 1 << 53


class SecureRandomizer:
    """Answers with noise from the operating system's generator; two calls never share a draw."""

    private = True

    def add_noise(self, request: Request, exact: Ints) -> Ints:
        """exact + one fresh draw of `request.distribution` per cell, as int64."""
        # Scores and gradients may be negative, and the curator has cut them. A negative count means a broken source.
        if request.kind in ("score", "train"):
            _check_whole(request, exact, LARGEST_SCORE)
        else:
            _check_counts(request, exact)
        # The size of the answer leaves, so it has to be the announced one, which is public.
        if exact.size != request.cells:
            raise UsageError(_where(request), "the counts do not have the announced number of cells.")
        return _noisy(_distribution(request), exact)

    def add_residual_noise(self, request: Request, exact: Ints) -> Ints:
        """Contrasts of RESIDUAL_UNIT · exact + one fresh draw of `request.distribution` per cell, as int64."""
        _check_counts(request, exact)
        if exact.size != request.cells or math.prod(request.shape) != exact.size:
            raise UsageError(_where(request), "the counts do not have the announced number of cells.")
        # Noise first, contrasts after. A row in the first cell moves every contrast, so noise on exact contrasts would
        # have to be much wider.
        return contrasts(_noisy(_distribution(request), exact * RESIDUAL_UNIT), request.shape)

    def add_sparse_noise(self, request: Request, occupied: OccupiedCells) -> OccupiedCells:
        """Equal in distribution to noise on all `request.cells` cells, keeping those ≥ `request.threshold` (≥ 1)."""
        distribution = _distribution(request)
        check_sparse(distribution, request.cells, request.threshold, _where(request))
        _check_counts(request, occupied.counts)
        _check_cells(request, occupied.indices)
        noisy = _noisy(distribution, occupied.counts)
        kept = noisy >= request.threshold
        scale = distribution.parameter
        # Empty cells are drawn by the gaps between those that noise alone lifts to the threshold: the same distribution
        # as noise on each of them, and no need to visit 10¹⁸ cells.
        ranks = rare_positions(request.cells - occupied.indices.size, scale, request.threshold)
        # The r-th empty cell is cell r plus the number of occupied cells before it.
        skipped = np.searchsorted(occupied.indices - np.arange(occupied.indices.size), ranks, side="right")
        # Laplace noise has no memory: what lies beyond the threshold is geometric again.
        extra = np.minimum(geometric(ranks.size, scale), LARGEST_ANSWER - request.threshold) + request.threshold
        indices = np.concatenate([occupied.indices[kept], ranks + skipped])
        counts = np.concatenate([noisy[kept], extra])
        # In the order of cells: with the occupied ones in front, the order would tell which cells hold rows.
        order = np.argsort(indices, kind="stable")
        return OccupiedCells(indices[order], counts[order])

    def keep_frequent(self, request: Request, exact: LabelCounts) -> LabelCounts:
        """Labels whose noisy count reaches `request.threshold`, with that noisy count, in code point order."""
        _check_counts(request, exact.counts)
        noisy = _noisy(_distribution(request), exact.counts)
        # In the order of labels, because the order in which they were met is the order of private rows.
        kept = sorted((exact.labels[at], int(noisy[at])) for at in np.flatnonzero(noisy >= request.threshold))
        return LabelCounts(tuple(label for label, _ in kept), np.array([count for _, count in kept], dtype=np.int64))

    def choose(self, request: Request, scores: Ints) -> int:
        """Index drawn with probability ∝ exp(rate × score); scores are integers (fixed point)."""
        # Whole numbers only: rounding of float scores is covered by no bound of sensitivity (Ilvento 2019).
        if scores.dtype != np.int64 or scores.ndim != 1 or scores.size != request.cells:
            raise UsageError(_where(request), "the scores must be one int64 number per option.")
        return choose_exponentially(scores, request.rate)

    def choose_each(self, request: Request, scores: Ints, allowed: Bools) -> Ints:
        """For every row of `scores` an index of an allowed option, drawn with probability ∝ exp(rate × score)."""
        if scores.shape[1:] != (request.cells,):
            raise UsageError(_where(request), "the scores do not have the announced number of options.")
        return choose_each(scores, allowed, request.rate)

    def split(self, request: Request, biased: Ints) -> Bools:
        """Whether each biased count plus one fresh draw of `request.distribution` lies above `request.threshold`."""
        _check_whole(request, biased, LARGEST_ANSWER)
        if biased.size != request.cells:
            raise UsageError(_where(request), "the counts do not have the announced number of nodes.")
        # Strictly above, as in the proof of `trees.py`.
        return _noisy(_distribution(request), biased) > request.threshold

    def sample(self, request: Request, records: Records) -> Ints:
        """Which units take part, increasing: each on its own, with probability 1 − e^(−request.rate)."""
        if request.rate <= 0:
            raise UsageError(_where(request), "was asked to sample at no rate.")
        # 1 − e^(−1/gap) is drawn exactly with integers; a probability given as such would first need its logarithm.
        return sampled_positions(records.units, Fraction(request.rate.denominator, request.rate.numerator))


def contrasts(table: Ints, shape: tuple[int, ...]) -> Ints:
    """What is left of a table when row and column sums are forgotten: differences from its first row and column.

    >>> contrasts(np.array([5, 7, 1, 8]), (2, 2)).tolist()
    [5]
    """
    found = table.reshape(shape)
    for axis in range(len(shape)):
        found = np.take(found, range(1, shape[axis]), axis) - np.take(found, [0], axis)
    return np.ascontiguousarray(found).ravel()


def _noisy(distribution: Distribution, exact: Ints) -> Ints:
    if distribution.grid > 1:
        grid = distribution.grid
        fine = _noisy(Distribution("gaussian", distribution.parameter * grid**2), exact * grid)
        return (fine + grid // 2) // grid  # the next whole number, downwards as upwards because the grid is odd
    draw = discrete_laplace if distribution.kind == "laplace" else discrete_gaussian
    noise = draw(exact.size, Fraction(distribution.parameter))
    noise += exact
    return np.clip(noise, -LARGEST_ANSWER, LARGEST_ANSWER, out=noise)


def _distribution(request: Request) -> Distribution:
    if request.distribution is None:
        raise UsageError(_where(request), "was asked without a distribution of noise.")
    return request.distribution


def _where(request: Request) -> str:
    return f"{request.kind} {request.name}"


def _check_counts(request: Request, exact: Ints) -> None:
    """Refuses what no table can count to; the message says nothing about the counts."""
    if exact.dtype != np.int64 or exact.ndim != 1:
        raise UsageError(_where(request), "counts must be a flat int64 array.")
    if exact.size and (int(exact.min()) < 0 or int(exact.max()) >= _LARGEST_COUNT):
        raise UsageError(_where(request), "the count source is broken: counts must lie in [0, 2^53).")


def _check_whole(request: Request, exact: Ints, largest: int) -> None:
    """Refuses what is not a flat array of whole numbers within the bounds that rule out an overflow."""
    if exact.dtype != np.int64 or exact.ndim != 1:
        raise UsageError(_where(request), "scores and biased counts must be a flat int64 array.")
    if exact.size and (int(exact.min()) < -largest or int(exact.max()) > largest):
        raise UsageError(_where(request), "scores and biased counts must be cut before noise is added.")


def _check_cells(request: Request, indices: Ints) -> None:
    if indices.dtype != np.int64 or indices.ndim != 1:
        raise UsageError(_where(request), "cell numbers must be a flat int64 array.")
    if indices.size and (
        int(indices[0]) < 0 or int(indices[-1]) >= request.cells or bool((indices[1:] <= indices[:-1]).any())
    ):
        raise UsageError(_where(request), "the count source is broken: cells must increase and lie in the table.")


SLACK = 66
"""What no weight is below its true value by, in its last place; any larger number is right as well, and slower."""
_CHUNK = 1 << 15
# 16 digits of base 16 write every gap of 64 bits.
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
    # Every weight is at most 2⁶², and after this shift the sum of all of them stays below that too.
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
        sums = list(accumulate(low for low, _ in bounds)), list(accumulate(high for _, high in bounds))
        found = _decide(sums, number, bits)
        if found is not None:
            return int(options[found])
        # The bits that could not decide stay the first ones: they belong to this draw.
        number = number << bits | int.from_bytes(os.urandom(bits // 8), "little")
        bits *= 2


@compiled()
def _high(first: np.uint64, second: np.uint64) -> np.uint64:  # pragma: no cover
    """The upper 64 bits of the product of two 64-bit numbers."""
    # As in `noise.py`, and again here: kept machine code does not notice a change of a kernel that it calls in another
    # file.
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
                # Without a sign: two scores at the ends of 64 bits differ by more than a signed number holds.
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
                # Surely below the end of this option; taken only if it is also surely beyond the one before.
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
    # Equal scores have equal weights: one exponential serves them all, and a uniform number picks one of them.
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
        # Given up early where at most one unit is left: 0 and 1 bound it, and more bits tell if that ever matters.
        weights.append((0, 1) if gap else (weight[0] >> 16, -(-weight[1] >> 16)))
    return weights


def _decide(sums: tuple[list[int], list[int]], number: int, bits: int) -> int | None:
    """The place that [number, number + 1) / 2^bits of the total surely falls in, if that is certain.

    U·total lies in [number·lowest, (number + 1)·highest) / 2^bits; place i is certain if that range starts at or
    above the upper bound of the sum before i and ends at or below the lower bound of the sum up to i.
    """
    lower, upper = sums
    start, end = number * lower[-1], (number + 1) * upper[-1]
    last = len(lower) - 1
    for place, (low, high) in enumerate(zip(lower, upper, strict=True)):
        if place == last or end <= low << bits:  # U is below 1, so nothing lies beyond the last one
            return place
        if start < high << bits:
            return None
    return None
