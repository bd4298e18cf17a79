"""Integer noise: discrete Laplace and discrete Gaussian vectors, geometric numbers, and gaps between rare successes.

Every number is drawn exactly from its law (see `cumulative.py`), from the operating system's generator, once. No
function takes a seed. Numbers whose size exceeds 2⁶² are reported as ±2⁶² (`LARGEST`); who adds them to counts below
2⁵³ and cuts the sum at ±2⁶¹ gets the same as if they had been exact.

Large scales: a geometric number is put together from base-4096 digits, which are independent (`exact/geometric.py`),
so tables stay small at any scale. Laplace noise is then a sign and a geometric magnitude, where minus zero is
rejected and drawn again: P(k) ∝ q^|k|, as it must be.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled
from understudy.errors import UsageError
from understudy.privacy.calibrate import LARGEST_SCALE, LARGEST_SCORE_VARIANCE, LARGEST_VARIANCE
from understudy.privacy.cumulative import Cumulative, table_for
from understudy.privacy.exact.gaussian import FoldedGaussian
from understudy.privacy.exact.geometric import Digit, FoldedLaplace, GapDigit
from understudy.privacy.exact.wide_gaussian import wide_gaussian

__all__ = ["LARGEST", "discrete_gaussian", "discrete_laplace", "geometric", "rare_positions", "sampled_positions"]

Ints = npt.NDArray[np.int64]
LARGEST = 1 << 62
_DIGIT_BITS = 12
_RADIX = 1 << _DIGIT_BITS
_SINGLE_TABLE_SCALE = 1000
_CHUNK = 1 << 15
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


def _with_lower_digits(first: Ints, places: int, law: Callable[[int], Cumulative]) -> Ints:
    """The topmost digits extended by fresh lower ones, cut at `LARGEST`."""
    number = first
    if places:
        number = number << (_DIGIT_BITS * places)
    for place in range(places):
        number += table_for(law(place)).draw(first.size) << (_DIGIT_BITS * place)
    return np.minimum(number, LARGEST, out=number)


def _check(name: str, parameter: Fraction, largest: Fraction) -> None:
    if not 0 < parameter <= largest:
        raise UsageError(name, f"must be above 0 and at most {largest}, or the noise would drown every count.")
