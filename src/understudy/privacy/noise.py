"""Integer noise, drawn exactly: discrete Laplace and Gaussian vectors, geometric numbers, gaps between rare successes.

Every number is drawn exactly from its distribution (see `distributions.py`), from the operating system's generator,
once. No function takes a seed and nothing random is kept between calls, so forked processes cannot share draws. Numbers
whose size exceeds 2⁶² are reported as ±2⁶² (`LARGEST`); who adds them to counts below 2⁵³ and cuts the sum at ±2⁶¹ gets
the same as if they had been exact.

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
A geometric number is put together from base-4096 digits, which are independent (`distributions.py`), so tables stay
small at any scale. Laplace noise is then a sign and a geometric magnitude, where minus zero is rejected and drawn
again: P(k) ∝ q^|k|, as it must be.

Discrete Gaussian numbers of any variance, P(k) ∝ e^(−k²/(2·variance)), are drawn by rejection (Canonne, Kamath, Steinke
2020, Algorithm 3): with t = ⌊σ⌋ + 1 a proposal Y is discrete Laplace of scale t, and it is kept with probability
e^(−(|Y| − variance/t)²/(2·variance)). Completing the square,
e^(−|y|/t) · e^(−(|y| − variance/t)²/(2·variance)) = e^(−y²/(2·variance)) · constant, so what is kept has the
distribution wanted. About three proposals in four are kept.

Whether to keep is decided by comparing a uniform number U, of which bits are drawn as needed, with bounds of the
exponential e^−x. A float only says where bounds need not be looked at: where its e^−x is 2⁻²⁰ or more away from the
first 64 bits of U. It cannot be wrong by as much. |Y|, variance/t and their difference d are each off by at most 2⁻⁵²
of the larger of |Y| and t, hence x = d²/(2·variance) by at most 2⁻⁴⁰ while |Y| ≤ 100t (t ≤ 2σ for a variance of 1 or
more; below, whole numbers are exact and the bound is only smaller), and so is e^−x, whose own error is a few units in
the last of 53 places. Beyond 100t both are below 2⁻¹⁰⁰. So no answer depends on a float. A proposal that
`discrete_laplace` cut at 2⁶² is drawn on without a cut, which is easy because magnitudes have no memory: given that
|Y| ≥ m, |Y| − m is geometric again.
"""

import math
import os
from collections.abc import Callable, Hashable
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np

from understudy.arrays import Bools, Ints, Words
from understudy.compiled import compiled
from understudy.errors import UsageError
from understudy.privacy.cost import LARGEST_SCALE, LARGEST_SCORE_VARIANCE, LARGEST_VARIANCE
from understudy.privacy.distributions import (
    PREFIX_BITS,
    Digit,
    FoldedGaussian,
    FoldedLaplace,
    GapDigit,
    Interval,
    exp_minus,
)

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
        self._padded = np.full(1 << self._steps, most, dtype=np.int64)
        self._padded[: self.entries.size] = self.entries

    def draw(self, size: int) -> Ints:
        """Independent draws of X."""
        return self._draw(size, signed=False)

    def draw_signed(self, size: int) -> Ints:
        """Independent draws of X with a fair random sign."""
        out = self.draw_marked(size)
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
                out[at] = found + half * np.int64(np.int64((words[at] & low) >> shift) > table[found + half - 1])
        for at in range(start, end):
            found = out[at]
            pending[count] = at
            count += int(np.int64((words[at] & low) >> shift) == table[found])
            out[at] = found ^ -(np.int64(words[at] >> np.uint64(63)) * np.int64(signed))
    return count


def table_for(distribution: Cumulative) -> NoiseTable:
    """The table of a distribution, kept for the next call; only few of the very large ones are kept."""
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
    scale = Fraction(math.isqrt(math.floor(variance)) + 1)
    kept: list[int] = []
    while len(kept) < size:
        proposals = laplace(size - len(kept), scale)
        words = np.frombuffer(os.urandom(8 * proposals.size), dtype=np.uint64)
        keeps, unsure = _screened(np.abs(proposals), words, variance, scale)
        unsure |= np.abs(proposals) == largest
        for at in np.flatnonzero(unsure).tolist():
            magnitude = more = abs(int(proposals[at]))
            while more == largest:  # cut there: what lies beyond is drawn anew
                more = int(geometric(1, scale)[0])
                magnitude += more
            keeps[at] = happens((magnitude - variance / scale) ** 2 / (2 * variance), int(words[at]))
        kept += proposals[keeps].tolist()
    return np.array(kept, dtype=np.int64)


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


def discrete_gaussian(size: int, variance: Fraction) -> Ints:
    """Independent integers with P(k) ∝ e^(−k²/(2·variance)), 0 < variance ≤ 2¹⁰⁰; slow above 2⁴⁰, for few numbers."""
    _check("variance of Gaussian noise", variance, LARGEST_SCORE_VARIANCE)
    if variance > LARGEST_VARIANCE:
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
    mean_gap = 2 * math.exp(min(float(threshold / scale), 700.0))  # only chooses sizes
    places = _places(Fraction(mean_gap))
    found: list[Ints] = []
    at, done = 0, limit == 0
    while not done:
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
