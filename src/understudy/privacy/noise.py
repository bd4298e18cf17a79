"""Integer noise, drawn exactly: discrete Laplace and Gaussian vectors, geometric numbers, gaps between rare successes.

Every number is drawn exactly from its distribution, known by proved bounds (below), from the operating system's
generator, once. No function takes a seed and nothing random is kept between calls, so forked processes cannot share
draws. Numbers whose size exceeds 2⁶² are reported as ±2⁶² (`LARGEST`); who adds them to counts below 2⁵³ and cuts the
sum at ±2⁶¹ gets the same as if they had been exact.

At the speed of a table lookup
------------------------------
A draw is the first k with U < F(k), where F(k) = P(X ≤ k) and U is a uniform real number in [0, 1) of which only as
many bits are drawn as the answer needs.

* The table holds T[k] = ⌊2⁶³ F(k)⌋, each proved by an interval whose two ends have the same floor (no float is
  involved), up to the first entry 2⁶³ − 1.
* One 64-bit word of the operating system's generator gives a sign bit and the first 63 bits u of U. A search with a
  fixed number of branch-free steps finds the first k with u ≤ T[k].
* u < T[k]: then U < (u+1)/2⁶³ ≤ T[k]/2⁶³ ≤ F(k), and for every smaller j, u ≥ T[j] + 1 so U ≥ u/2⁶³ > F(j).
  The answer is k, whatever the bits not drawn would have been.
* u = T[k] (probability at most 2⁻⁶³ per entry): 63 bits do not decide. More bits of U are drawn and compared with
  bounds of F(k) of the same precision, then of F(k+1), …, doubling the precision until an answer is certain. Values
  beyond the end of the table are reached in this way too, because its last entry is the largest u.

So the draw has exactly the distribution F: total variation 0, not merely 2⁻¹⁰⁰. The only assumption is that the bits of
`os.urandom` are independent and fair. The table alone, without the last rule, would be about entries · 2⁻⁶³ away.

Scales that no table can hold
-----------------------------
A geometric number is put together from base-4096 digits, which are independent (see below), so tables stay
small at any scale. Laplace noise is then a sign and a geometric magnitude, where minus zero is rejected and drawn
again: P(k) ∝ q^|k|, as it must be.

Discrete Gaussian numbers of any variance, P(k) ∝ e^(−k²/(2·variance)), are drawn by rejection (Canonne, Kamath, Steinke
2020, Algorithm 3): with t = ⌊σ⌋ + 1 a proposal Y is discrete Laplace of scale t, and it is kept with probability
e^(−(|Y| − variance/t)²/(2·variance)). Completing the square,
e^(−|y|/t) · e^(−(|y| − variance/t)²/(2·variance)) = e^(−y²/(2·variance)) · constant, so what is kept has the
distribution wanted, for any t of 1 or more. About three proposals in four are kept. For t ≥ 16 only its first four bits
are kept, rounded up, so that t ≤ (σ + 1)·9/8 and many variances share the tables of one proposal.

The same is done for a few numbers of a large variance, where the table would take longer than the draws. Which of both
is done follows from the variance and from how many numbers are asked for, which are public; both are exact.

Whether to keep is decided by comparing a uniform number U, of which bits are drawn as needed, with bounds of the
exponential e^−x. A float only says where bounds need not be looked at: where its e^−x is 2⁻²⁰ or more away from the
first 64 bits of U. It cannot be wrong by as much. |Y|, variance/t and their difference d are each off by at most 2⁻⁵²
of the larger of |Y| and t, hence x = d²/(2·variance) by at most 2⁻³⁰ while |Y| ≤ 100t (t ≤ 2σ for a variance of 1 or
more; below, whole numbers are exact and the bound is only smaller), and so is e^−x, whose own error is a few units in
the last of 53 places. Beyond 100t both are below 2⁻¹⁰⁰. So no answer depends on a float. A proposal that
`discrete_laplace` cut at 2⁶² is drawn on without a cut, which is easy because magnitudes have no memory: given that
|Y| ≥ m, |Y| − m is geometric again.

Exponentials and powers as integer intervals
--------------------------------------------
A real number x in [0, 1] is held at `bits` fractional bits by a pair (lower, upper) of integers with
lower ≤ 2^bits · x ≤ upper. Every operation rounds the lower end down and the upper end up, so the true value never
leaves the interval; more bits make it narrower. There are no floats here and nothing is trusted to be "close enough".

Geometric tails
---------------
Magnitudes of discrete Laplace noise, digits of geometric numbers, and gaps are distributions on 0, 1, 2, … of one kind.
All have P(X ≤ k) = (1 − a·r^(k+1)) / c for a ratio r, a factor a and a total c, each known as an interval at any
precision. A distribution may be cut: with `top` the distribution is conditioned on X < top (a digit), with `cap` every
X ≥ cap is reported as cap (an overflow that the caller does not need to tell apart).

Digits. If G is geometric with ratio q, P(G = g) = (1 − q) q^g, and g = Σ d_i t^i, then q^g is a product over the
digits: they are independent, d_i geometric with ratio q^(t^i) conditioned on d_i < t (the topmost is unconditioned).

The magnitude of discrete Gaussian noise
----------------------------------------
P(|X| ≤ k) as proved bounds, by two separate computations. With v = σ², w_k = e^(−k²/2v), Z = 1 + 2 Σ_{k≥1} w_k:
P(|X| ≤ k) = (1 + 2 Σ_{j=1..k} w_j) / Z. The weights follow w_{k+1} = w_k r_k, r_{k+1} = r_k s with r_0 = e^(−1/2v),
s = e^(−1/v).

`bounds` sums in Python integers, at any precision: the few draws that 63 bits cannot decide need it.

`floors` makes the whole table of ⌊2⁶³ · P(|X| ≤ k)⌋ in compiled 128-bit fixed point, fast enough for σ = 2²⁰ (ten
million entries). Proof of its error bound, in units u = 2⁻¹²⁸, all numbers at most 1 and all products cut downwards:

* a product drops less than 3u; start values of a block of 256 are floors of 320-bit numbers, r and s off by less
  than 2u, w (divided by Z in the second pass) by less than 3u;
* r after i steps is at most 2 + 5i units low (error of r, of s, and of the product add up);
* w after i steps is at most 3 + Σ_{j<i} (5 + 5j) ≤ 3(i+1)² units low; a block sums to less than 2²⁵ units.

The first pass gives Z with that error plus the proved tail; the second runs on the weights 2^e·w_k/Z (2^e ≤ Z, so
they stay below 1) and yields every cumulated sum with error at most `margin`. Where sum and sum + margin have
different floors (about one table in a million has such an entry) `bounds` decides.
"""

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Protocol

import numba as nb
import numpy as np

from understudy.arrays import Bools, Ints, Words
from understudy.compiled import compiled
from understudy.errors import UsageError

# Five digits of base 4096 reach 2⁶⁰, so up to there the topmost digit has a scale of 1 at most and a small table.
LARGEST_SCALE = Fraction(2**60)
# σ = 2²⁰: its table of ten million entries is the largest worth building.
LARGEST_VARIANCE = Fraction(2**40)
# Scores are counted in 2⁻³⁰ rows (SCORE_UNIT · WEIGHT_UNIT), so σ = 2²⁰ rows is 2⁵⁰ of their units.
LARGEST_SCORE_VARIANCE = Fraction(2**100)
"""The widest noise that is drawn."""
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
    # n and d bits make the exponent less than 2^(n − d + 1); seven more halvings than n − d bring it below 1/64.
    halvings = max(0, exponent.numerator.bit_length() - exponent.denominator.bit_length() + 7)
    work = bits + halvings + bits.bit_length() + 8  # each squaring doubles the width of the interval
    small = (exponent.numerator << work) // (exponent.denominator << halvings)
    square = 1 << (2 * work)
    # `small` was rounded down, so `small + 1` lies above; for the reciprocal the two bounds change places.
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
    # The bounds cannot tell the denominator from 0 yet: say nothing, and whoever asks will ask with more bits.
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


PREFIX_BITS = 63
# 63 bits are wanted. The others are for what tens of thousands of rounded products lose, so that the first pass
# decides.
_FIRST_BITS = 192


class _GeometricTail(ABC):
    """P(X ≤ k) = (1 − a·r^(k+1)) / c, from intervals of r, a and c."""

    @property
    @abstractmethod
    def end(self) -> int | None:
        """The largest value, if there is one."""

    @abstractmethod
    def ratio(self, bits: int) -> Interval:
        """Bounds of r."""

    def factor(self, bits: int) -> Interval:
        """Bounds of a."""
        return 1 << bits, 1 << bits

    def total(self, bits: int) -> Interval:
        """Bounds of c."""
        return 1 << bits, 1 << bits

    @lru_cache(maxsize=4096)  # noqa: B019 (distributions are small values; the cache holds public numbers only)
    def bounds(self, k: int, bits: int) -> Interval:
        """Bounds of P(X ≤ k)."""
        if self.end is not None and k >= self.end:
            return 1 << bits, 1 << bits
        # A power k + 1 widens the interval about k-fold, hence as many bits more as k has.
        work = bits + k.bit_length() + 8
        tail = power(self.ratio(work), k + 1, work)
        lower, upper = self._below(tail, self.factor(work), self.total(work), work)
        return lower >> (work - bits), -(-upper >> (work - bits))

    def floors(self) -> Ints:
        """⌊2⁶³ · P(X ≤ k)⌋ for k = 0, 1, … up to the first that equals 2⁶³ − 1 (1 itself is written so as well).

        Both ends of the interval must have the same floor; if any k fails, all is done again with twice the bits.
        """
        bits = _FIRST_BITS
        while True:
            found = list(_agreed(self._sequence(bits), bits))
            if found[-1] >= 0:
                return np.array(found, dtype=np.int64)
            bits *= 2

    def _sequence(self, bits: int) -> Iterator[Interval]:
        ratio, factor, total = self.ratio(bits), self.factor(bits), self.total(bits)
        one = (1 << bits, 1 << bits)
        tail = one
        for _ in islice(iter(int, 1), self.end) if self.end is not None else iter(int, 1):
            tail = product(tail, ratio, bits)
            yield self._below(tail, factor, total, bits)
        yield one

    @staticmethod
    def _below(tail: Interval, factor: Interval, total: Interval, bits: int) -> Interval:
        lower, upper = product(tail, factor, bits)
        one = 1 << bits
        mass = (max(one - upper, 0), one - lower)
        return mass if total == (one, one) else quotient(mass, total, bits)


def _agreed(sequence: Iterator[Interval], bits: int) -> Iterator[int]:
    """Floors at 63 bits; −1 and stop where the interval is too wide to tell."""
    most = (1 << PREFIX_BITS) - 1
    spare = bits - PREFIX_BITS
    for lower, upper in sequence:
        # Every probability but the last is below 1, so its floor is at most 2⁶³ − 1 whatever the upper bound says.
        floor = min(lower >> spare, most)
        if floor != min(upper >> spare, most):
            yield -1
            return
        yield floor
        if floor == most:
            return


@dataclass(frozen=True)
class FoldedLaplace(_GeometricTail):
    """|X| for discrete Laplace noise of that scale: P(|X| ≤ k) = 1 − 2 q^(k+1) / (1 + q), q = e^(−1/scale)."""

    scale: Fraction

    @property
    def end(self) -> int | None:
        """No largest value."""
        return None

    def ratio(self, bits: int) -> Interval:
        """Bounds of q."""
        return exp_minus(1 / self.scale, bits)

    def factor(self, bits: int) -> Interval:
        """Bounds of 2 / (1 + q), which lies in [1, 2]."""
        lower, upper = self.ratio(bits)
        one = 1 << bits
        return (2 << (2 * bits)) // (one + upper), -(-(2 << (2 * bits)) // (one + lower))


@dataclass(frozen=True)
class Digit(_GeometricTail):
    """Geometric number with ratio e^(−exponent), below `top` (conditioned) or reported as `cap` from there on."""

    exponent: Fraction
    top: int | None = None
    cap: int | None = None

    @property
    def end(self) -> int | None:
        """The largest value."""
        return self.top - 1 if self.top is not None else self.cap

    def ratio(self, bits: int) -> Interval:
        """Bounds of e^(−exponent)."""
        return exp_minus(self.exponent, bits)

    def total(self, bits: int) -> Interval:
        """Bounds of P(X < top)."""
        return _mass_below(self.ratio(bits), self.top, bits)


@dataclass(frozen=True)
class GapDigit(_GeometricTail):
    """Geometric number with ratio (1 − p)^stride, where p = P(discrete Laplace noise ≥ threshold) = q^threshold/(1+q).

    With stride t^i it is the i-th digit of the number of failures before the first success.
    """

    scale: Fraction
    threshold: int
    stride: int
    top: int | None = None
    cap: int | None = None

    @property
    def end(self) -> int | None:
        """The largest value."""
        return self.top - 1 if self.top is not None else self.cap

    def ratio(self, bits: int) -> Interval:
        """Bounds of (1 − p)^stride."""
        work = bits + self.stride.bit_length() + 8
        one = 1 << work
        high, low = exp_minus(self.threshold / self.scale, work), exp_minus(1 / self.scale, work)
        success = (high[0] << work) // (one + low[1]), -(-(high[1] << work) // (one + low[0]))
        lower, upper = power((one - success[1], one - success[0]), self.stride, work)
        return lower >> (work - bits), -(-upper >> (work - bits))

    def total(self, bits: int) -> Interval:
        """Bounds of P(X < top)."""
        return _mass_below(self.ratio(bits), self.top, bits)


def _mass_below(ratio: Interval, top: int | None, bits: int) -> Interval:
    one = 1 << bits
    if top is None:
        return one, one
    lower, upper = power(ratio, top, bits)
    return one - upper, one - lower


# Weights start afresh from exact ones after so many: errors of the recurrence grow with the square of its steps.
_BLOCK = 256
# 3·(1² + … + 256²) is 1.7·10⁷; see the proof above.
_BLOCK_ERROR = 1 << 25
_UNIT_BITS = 128
_START_BITS = 320
_MOST = (1 << PREFIX_BITS) - 1


@dataclass(frozen=True)
class FoldedGaussian:
    """|X| for discrete Gaussian noise with P(X = k) ∝ e^(−k²/(2·variance))."""

    variance: Fraction

    @lru_cache(maxsize=4096)  # noqa: B019 (distributions are small values; the cache holds public numbers only)
    def bounds(self, k: int, bits: int) -> Interval:
        """Bounds of P(|X| ≤ k), by plain summation."""
        reach = max(k, self._reach(bits))
        work = bits + 3 * reach.bit_length() + 8
        one = 1 << work
        ratio, step = exp_minus(1 / (2 * self.variance), work)[0], exp_minus(1 / self.variance, work)[0]
        weight, total, part = one, one, one
        for at in range(1, reach + 1):
            weight = weight * ratio >> work
            ratio = ratio * step >> work
            total += 2 * weight
            if at == k:
                part = total
        # Cutting one unit per product leaves w_j at most j² + j units low, so sums up to j at most 2(j+1)³ units.
        part_above = part + 2 * (k + 1) ** 3
        total_above = total + 2 * (reach + 1) ** 3 + _tail_above(self.variance, reach, work)
        lower = (part << bits) // total_above
        upper = -(-(part_above << bits) // total)
        return lower, min(upper, 1 << bits)

    def floors(self) -> Ints:
        """⌊2⁶³ · P(|X| ≤ k)⌋ for k = 0, 1, … up to the first that equals 2⁶³ − 1."""
        floors = self._compiled_floors()
        for k in np.flatnonzero(floors < 0):
            floors[k] = self._decided_floor(int(k))
        return floors[: int(np.searchsorted(floors, _MOST)) + 1]

    def _compiled_floors(self, extra_margin: int = 0) -> Ints:
        """The same, not yet cut, with −1 where 128 bits cannot tell."""
        reach = self._reach(_UNIT_BITS + 8)
        starts, ratios, step = self._block_starts(reach)
        one = 1 << _UNIT_BITS
        nothing = np.empty(0, dtype=np.int64)
        sums = _cumulate(_words(starts), _words(ratios), _words([step])[0], reach + 1, 0, np.uint64(0), nothing)
        total = (int(sums[0]) << 128 | int(sums[1]) << 64 | int(sums[2])) + 1  # w_0 = 1 was entered as 1 − u
        total_above = total + 2 * len(starts) * _BLOCK_ERROR + _tail_above(self.variance, reach, _UNIT_BITS)
        scale_bits = total.bit_length() - 1 - _UNIT_BITS
        shares = [min((start << (_UNIT_BITS + scale_bits)) // total_above, one - 1) for start in starts]
        count = min(reach, self._reach(PREFIX_BITS + 3)) + 1
        blocks = -(-count // _BLOCK)
        margin = (total_above - total << (_UNIT_BITS + scale_bits)) // total + 1 + 2 * blocks * _BLOCK_ERROR
        margin += extra_margin
        floors = np.empty(count, dtype=np.int64)
        _cumulate(_words(shares), _words(ratios), _words([step])[0], count, scale_bits, np.uint64(margin), floors)
        return floors

    def _block_starts(self, reach: int) -> tuple[list[int], list[int], int]:
        """w and r at the start of every block, and s, as 128-bit fractions rounded down (off by less than 2u)."""
        work, rate = _START_BITS, 1 / self.variance
        weight, jump = (1 << work) - 1, exp_minus(rate * _BLOCK**2 / 2, work)[0]
        jump_step, ratio_step = exp_minus(rate * _BLOCK**2, work)[0], exp_minus(rate * _BLOCK, work)[0]
        ratio = exp_minus(rate / 2, work)[0]
        spare = work - _UNIT_BITS
        weights, ratios = [], []
        for _ in range(0, reach + 1, _BLOCK):
            weights.append(weight >> spare)
            ratios.append(ratio >> spare)
            weight, jump, ratio = weight * jump >> work, jump * jump_step >> work, ratio * ratio_step >> work
        return weights, ratios, exp_minus(rate, work)[0] >> spare

    def _reach(self, bits: int) -> int:
        """A magnitude beyond which less than about 2^−bits of the mass lies (a choice of extent, not a bound)."""
        # e^(−k²/2v) falls below 2^−b at k² = 2·v·b·ln 2, and 7/10 is just above ln 2.
        return math.isqrt(math.ceil(self.variance * 2 * (bits + 4) * 7 / 10)) + 3

    def _decided_floor(self, k: int) -> int:
        bits = 2 * PREFIX_BITS
        while True:
            lower, upper = (min(bound >> (bits - PREFIX_BITS), _MOST) for bound in self.bounds(k, bits))
            if lower == upper:
                return lower
            bits *= 2


def _tail_above(variance: Fraction, reach: int, bits: int) -> int:
    """At least 2^bits · 2 Σ_{k>reach} w_k: the ratio of neighbours only falls, so a geometric series bounds it."""
    first = exp_minus((reach + 1) ** 2 / (2 * variance), bits)[1]
    ratio = exp_minus((2 * reach + 3) / (2 * variance), bits)[1]
    return -(-(2 * first << bits) // ((1 << bits) - ratio))


def _words(numbers: list[int]) -> Words:
    """128-bit integers as rows (high, low)."""
    mask = (1 << 64) - 1
    return np.array([(number >> 64, number & mask) for number in numbers], dtype=np.uint64)


@nb.njit(inline="always")
def _high(first: np.uint64, second: np.uint64) -> np.uint64:
    """Upper 64 bits of a 64 × 64 bit product."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a1, a0, b1, b0 = first >> half, first & mask, second >> half, second & mask
    middle = a1 * b0 + (a0 * b0 >> half)
    other = a0 * b1 + (middle & mask)
    return a1 * b1 + (middle >> half) + (other >> half)


@nb.njit(inline="always")
def _times(a1: np.uint64, a0: np.uint64, b1: np.uint64, b0: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Product of two 128-bit fractions, low by less than 3 units of 2⁻¹²⁸."""
    first, second = _high(a1, b0), _high(a0, b1)
    low = a1 * b1 + first
    carry = np.uint64(low < first)
    low += second
    carry += np.uint64(low < second)
    return _high(a1, b1) + carry, low


@compiled()
def _cumulate(
    starts: Words,
    ratios: Words,
    step: Words,
    count: int,
    scale_bits: int,
    margin: np.uint64,
    floors: Ints,
) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Sums w_0 + 2 w_1 + 2 w_2 + … in 192 bits; writes floors of sum/2^scale_bits at 63 bits, −1 if margin matters."""
    top, high, low = np.uint64(0), np.uint64(0), np.uint64(0)
    left, right = np.uint64(63 - scale_bits), np.uint64(1 + scale_bits)
    most = np.uint64(0x7FFFFFFFFFFFFFFF)
    for block in range(starts.shape[0]):
        w1, w0, r1, r0 = starts[block, 0], starts[block, 1], ratios[block, 0], ratios[block, 1]
        for at in range(block * 256, min(block * 256 + 256, count)):
            for _ in range(1 if at == 0 else 2):
                low += w0
                carry = np.uint64(low < w0)
                high += carry
                top += np.uint64(high < carry)
                high += w1
                top += np.uint64(high < w1)
            if floors.size:
                floor = min((top << left) | (high >> right), most)
                up = high + np.uint64(low + margin < low)
                above = min(((top + np.uint64(up < high)) << left) | (up >> right), most)
                floors[at] = np.int64(floor) if floor == above else -1
            w1, w0 = _times(w1, w0, r1, r0)
            r1, r0 = _times(r1, r0, step[0], step[1])
    return top, high, low


_CHUNK = 1 << 15
_LOW_BITS = (1 << 63) - 1
_LARGE = Fraction(2**32)


class Cumulative(Hashable, Protocol):
    """A distribution on 0, 1, 2, …, as a hashable value."""

    def bounds(self, k: int, bits: int) -> Interval:
        """Integers around 2^bits · P(X ≤ k); they close in on it as bits grow."""
        ...

    def floors(self) -> Ints:
        """⌊2⁶³ · P(X ≤ k)⌋ for k = 0, 1, …, proved, up to the first entry 2⁶³ − 1."""
        ...


class NoiseTable:
    """Draws from one distribution. Holds public numbers only."""

    def __init__(self, distribution: Cumulative, bits: int = PREFIX_BITS) -> None:
        """Builds the table; fewer `bits` give the same distribution more slowly (tests use it to exercise the slow
        path)."""
        self.distribution = distribution
        self.bits = bits
        floors = distribution.floors() >> (PREFIX_BITS - bits)
        most = (1 << bits) - 1
        self.entries: Ints = floors[: int(np.searchsorted(floors, most)) + 1]
        self._steps = max(0, (self.entries.size - 1).bit_length())
        # Filled up to a power of two, so that every search has the same number of steps, whatever it finds.
        self._padded = np.full(1 << self._steps, most, dtype=np.int64)
        self._padded[: self.entries.size] = self.entries

    def draw(self, size: int) -> Ints:
        """Independent draws of X."""
        return self._draw(size, signed=False)

    def draw_signed(self, size: int) -> Ints:
        """Independent draws of X with a fair random sign."""
        out = self.draw_marked(size)
        # A negative one is stored as ~k = −k − 1, and the shift is −1 there. Both signs of zero become 0.
        out -= out >> 63
        return out

    def draw_marked(self, size: int) -> Ints:
        """As `draw_signed`, but a negative x is given as x − 1, so that the sign of a zero can be told."""
        return self._draw(size, signed=True)

    def _draw(self, size: int, *, signed: bool) -> Ints:
        out = np.empty(size, dtype=np.int64)
        pending = np.empty(min(size, _CHUNK) + 1, dtype=np.int64)
        for start in range(0, size, _CHUNK):
            part = out[start : start + _CHUNK]
            # From the operating system every time. A generator of our own would be copied by a fork, and the difference
            # of two answers with the same noise has none.
            words = np.frombuffer(os.urandom(8 * part.size), dtype=np.uint64)
            count = _search(words, self._padded, self._steps, self.bits, signed, part, pending)
            for at in pending[:count]:
                marked, prefix = int(part[at]), (int(words[at]) & _LOW_BITS) >> (PREFIX_BITS - self.bits)
                part[at] = self._resolve(marked, prefix) if marked >= 0 else ~self._resolve(~marked, prefix)
        return out

    def _resolve(self, k: int, prefix: int) -> int:
        """The answer for a uniform number that starts with `prefix`, when it is known to be k or more."""
        bits = self.bits
        while True:
            lower, upper = self.distribution.bounds(k, bits)
            if prefix + 1 <= lower:
                return k
            if prefix >= upper:
                k += 1
                continue
            # The prefix is kept and extended: drawing it anew would judge one number twice and bend the distribution.
            extra = 64 * max(1, bits // 64)
            prefix = prefix << extra | int.from_bytes(os.urandom(extra // 8), "little")
            bits += extra


@compiled()
def _search(words: Words, table: Ints, steps: int, bits: int, signed: bool, out: Ints, pending: Ints) -> int:
    """First k with prefix ≤ table[k] for every word; lists the positions where prefix = table[k].

    Sixteen searches advance together, so that their memory reads overlap; each takes the same number of steps.
    """
    count = 0
    shift, low = np.uint64(63 - bits), np.uint64(_LOW_BITS)
    for start in range(0, words.size, 16):
        end = min(start + 16, words.size)
        for at in range(start, end):
            out[at] = 0
        half = 1 << steps
        for _ in range(steps):
            half >>= 1
            for at in range(start, end):
                found = out[at]
                # Multiplied in instead of branched on: every draw takes the same steps (timing attacks: Jin et al.
                # 2022).
                out[at] = found + half * np.int64(np.int64((words[at] & low) >> shift) > table[found + half - 1])
        for at in range(start, end):
            found = out[at]
            pending[count] = at
            count += int(np.int64((words[at] & low) >> shift) == table[found])
            # ~k and not −k, which would lose the sign of a zero: large scales need it to throw minus zero away.
            out[at] = found ^ -(np.int64(words[at] >> np.uint64(63)) * np.int64(signed))
    return count


def table_for(distribution: Cumulative) -> NoiseTable:
    """The table of a distribution, kept for the next call; only few of the very large ones are kept."""
    # Beyond σ = 2¹⁶ a table takes 5 to 80 MB. Public numbers alone are kept, never a draw.
    return _large_table(distribution) if getattr(distribution, "variance", 0) > _LARGE else _small_table(distribution)


@lru_cache(maxsize=128)
def _small_table(distribution: Cumulative) -> NoiseTable:
    return NoiseTable(distribution)


@lru_cache(maxsize=2)
def _large_table(distribution: Cumulative) -> NoiseTable:
    return NoiseTable(distribution)


def uniform_below(limit: int) -> int:
    """A uniform whole number from 0 to limit − 1, by rejection."""
    size = limit.bit_length()
    count = -(-size // 8)
    while True:
        number = int.from_bytes(os.urandom(count), "little") >> (8 * count - size)
        if number < limit:
            return number


Draw = Callable[[int, Fraction], Ints]
_UNSURE = 2.0**-20


def wide_gaussian(size: int, variance: Fraction, laplace: Draw, geometric: Draw, largest: int) -> Ints:
    """Independent integers with P(k) ∝ e^(−k²/(2·variance)); those beyond ±`largest` are reported as ±`largest`.

    Args:
        size: how many.
        variance: above 0.
        laplace: draws discrete Laplace noise of a scale, cut at ±`largest`.
        geometric: draws numbers with P(k) ∝ e^(−k/scale), cut at `largest`.
        largest: where the two draws, and this one, are cut.
    """
    scale = Fraction(_rounded_up(math.isqrt(math.floor(variance)) + 1))
    kept, missing = [np.empty(0, dtype=np.int64)], size
    while missing:
        proposals = laplace(missing, scale)
        words = np.frombuffer(os.urandom(8 * proposals.size), dtype=np.uint64)
        keeps, unsure = _screened(np.abs(proposals), words, variance, scale)
        unsure |= np.abs(proposals) == largest
        for at in np.flatnonzero(unsure).tolist():
            magnitude = more = abs(int(proposals[at]))
            while more == largest:  # cut there: what lies beyond is drawn anew
                more = int(geometric(1, scale)[0])
                magnitude += more
            # The bits that were screened are the first ones here: fresh ones would give the proposal a second chance.
            keeps[at] = happens((magnitude - variance / scale) ** 2 / (2 * variance), int(words[at]))
        kept.append(proposals[keeps])
        missing -= kept[-1].size
    return np.concatenate(kept)


def _rounded_up(number: int) -> int:
    """The least number that is not below it and has nothing but zeros after its first four bits.

    >>> _rounded_up(15), _rounded_up(1000)
    (15, 1024)
    """
    spare = max(0, number.bit_length() - 4)
    return -(-number >> spare) << spare


def _screened(magnitudes: Ints, words: Words, variance: Fraction, scale: Fraction) -> tuple[Bools, Bools]:
    """Which proposals are kept by 64 bits and a float, and which of these answers only bounds can give."""
    away = magnitudes - float(variance / scale)
    chances = np.exp(-(away * away) / (2.0 * float(variance)))
    drawn = words * 2.0**-64
    return drawn < chances, np.abs(drawn - chances) < _UNSURE


def happens(exponent: Fraction, prefix: int | None = None) -> bool:
    """True with probability e^−exponent exactly, for an exponent ≥ 0; `prefix`: the first 64 bits, if drawn already."""
    bits, number = 64, int.from_bytes(os.urandom(8), "little") if prefix is None else prefix
    while True:
        lower, upper = exp_minus(exponent, bits)
        if number + 1 <= lower:
            return True
        if number >= upper:
            return False
        number = number << bits | int.from_bytes(os.urandom(bits // 8), "little")
        bits *= 2


LARGEST = 1 << 62
_DIGIT_BITS = 12
_RADIX = 1 << _DIGIT_BITS
_SINGLE_TABLE_SCALE = 1000
_MOST_PLACES = 5
_TABLE_VARIANCE = 2**26
"""Up to this variance numbers always come from a table; beyond, where they are at least half as many as σ."""


def discrete_gaussian(size: int, variance: Fraction) -> Ints:
    """Independent integers with P(k) ∝ e^(−k²/(2·variance)), 0 < variance ≤ 2¹⁰⁰; slow above 2⁴⁰, for few numbers."""
    _check("variance of Gaussian noise", variance, LARGEST_SCORE_VARIANCE)
    # Both ways are exact; which one is taken follows from public numbers alone.
    few = variance > _TABLE_VARIANCE and (2 * size) ** 2 < variance
    if few or variance > LARGEST_VARIANCE:
        return wide_gaussian(size, variance, discrete_laplace, geometric, LARGEST)
    return table_for(FoldedGaussian(variance)).draw_signed(size)


def discrete_laplace(size: int, scale: Fraction) -> Ints:
    """Independent integers with P(k) ∝ e^(−|k|/scale), 0 < scale ≤ 2⁶⁰."""
    _check("scale of Laplace noise", scale, LARGEST_SCALE)
    if scale <= _SINGLE_TABLE_SCALE:
        return table_for(FoldedLaplace(scale)).draw_signed(size)
    out = np.empty(size, dtype=np.int64)
    for start in range(0, size, _CHUNK):
        _fill_laplace(out[start : start + _CHUNK], scale)
    return out


def _fill_laplace(out: Ints, scale: Fraction) -> None:
    """Fills `out` by sign and magnitude; draws again where minus zero came up."""
    places = _places(scale)
    marked = table_for(_digit(scale, places)).draw_marked(out.size)
    sign = marked >> 63
    magnitude = _with_lower_digits(marked ^ sign, places, lambda place: _digit(scale, place, top=_RADIX))
    np.subtract(magnitude ^ sign, sign, out=out)
    # Drawn again as a whole. Calling minus zero plain zero would make 0 twice as likely as it should be.
    again = np.flatnonzero((sign < 0) & (magnitude == 0))
    if again.size:
        fresh = np.empty(again.size, dtype=np.int64)
        _fill_laplace(fresh, scale)
        out[again] = fresh


def geometric(size: int, scale: Fraction) -> Ints:
    """Independent numbers with P(k) = (1 − q) q^k, k ≥ 0, q = e^(−1/scale)."""
    _check("scale of a geometric number", scale, LARGEST_SCALE)
    places = _places(scale)
    first = table_for(_digit(scale, places)).draw(size)
    return _with_lower_digits(first, places, lambda place: _digit(scale, place, top=_RADIX))


def rare_positions(limit: int, scale: Fraction, threshold: int) -> Ints:
    """Which of `limit` < 2⁶² independent draws of discrete Laplace noise reach `threshold` ≥ 1, in increasing order.

    Draws the gaps between them, so the work grows with their number, not with `limit`.
    """
    _check("scale of Laplace noise", scale, LARGEST_SCALE)
    if not 0 <= limit < LARGEST or threshold < 1:
        raise UsageError("sparse noise", "needs fewer than 2⁶² cells and a threshold of at least 1.")
    # e^700 is still a float.
    mean_gap = 2 * math.exp(min(float(threshold / scale), 700.0))  # only chooses sizes
    places = _places(Fraction(mean_gap))
    found: list[Ints] = []
    at, done = 0, limit == 0
    while not done:
        # A little more than expected. Too few gaps only mean another round, and too many are not looked at.
        size = min(_CHUNK, 64 + int(1.05 * (limit - at) / mean_gap))
        gaps = _gaps(size, scale, threshold, places)
        part = np.empty(size, dtype=np.int64)
        count, at, done = _walk(gaps, at, limit, part)
        found.append(part[:count])
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def sampled_positions(limit: int, gap: Fraction) -> Ints:
    """Which of `limit` < 2⁶² independent coins come up, increasing, each with probability 1 − e^(−1/gap).

    The coins passed over before each success are a geometric number, so the work grows with the successes.
    """
    _check("mean gap between sampled units", gap, LARGEST_SCALE)
    if not 0 <= limit < LARGEST:
        raise UsageError("sampling", "needs fewer than 2⁶² units.")
    found: list[Ints] = []
    at, done = 0, limit == 0
    while not done:
        size = min(_CHUNK, 64 + int(1.05 * (limit - at) / (float(gap) + 0.5)))
        part = np.empty(size, dtype=np.int64)
        count, at, done = _walk(geometric(size, gap), at, limit, part)
        found.append(part[:count])
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def _gaps(size: int, scale: Fraction, threshold: int, places: int) -> Ints:
    """Up to `size` gaps; ends early with a gap of `LARGEST`, after which no success can matter."""

    def digit(place: int, *, top: int | None = None) -> GapDigit:
        stride = _RADIX**place
        return GapDigit(scale, threshold, stride, top, None if top else LARGEST // stride)

    first = table_for(digit(places)).draw(size)
    beyond = np.flatnonzero(first >= LARGEST // _RADIX**places)
    if not beyond.size:
        return _with_lower_digits(first, places, lambda place: digit(place, top=_RADIX))
    near = first[: int(beyond[0])]
    if near.size:  # the tables of the lower digits may be costly where success is very rare; then they are not needed
        near = _with_lower_digits(near, places, lambda place: digit(place, top=_RADIX))
    return np.append(near, LARGEST)


@compiled()
def _walk(gaps: Ints, at: int, limit: int, out: Ints) -> tuple[int, int, bool]:
    """Positions of successes from gaps; how many, where the next gap starts, and whether the end was passed."""
    count = 0
    for gap in gaps:
        # at < 2⁶² and gap ≤ 2⁶², so the sum fits 64 bits.
        at += gap
        if at >= limit:
            return count, at, True
        out[count] = at
        count += 1
        at += 1
    return count, at, at >= limit


def _digit(scale: Fraction, place: int, top: int | None = None) -> Digit:
    stride = _RADIX**place
    return Digit(stride / scale, top, None if top else LARGEST // stride)


def _places(scale: Fraction) -> int:
    """The place of the topmost digit: the smallest that keeps its table small, at most 5."""
    place = 0
    while place < _MOST_PLACES and scale > _SINGLE_TABLE_SCALE * _RADIX**place:
        place += 1
    return place


def _with_lower_digits(first: Ints, places: int, distribution: Callable[[int], Cumulative]) -> Ints:
    """The topmost digits extended by fresh lower ones, cut at `LARGEST`."""
    number = first
    if places:
        number = number << (_DIGIT_BITS * places)
    for place in range(places):
        number += table_for(distribution(place)).draw(first.size) << (_DIGIT_BITS * place)
    return np.minimum(number, LARGEST, out=number)


def _check(name: str, parameter: Fraction, largest: Fraction) -> None:
    if not 0 < parameter <= largest:
        raise UsageError(name, f"must be above 0 and at most {largest}, or the noise would drown every count.")
