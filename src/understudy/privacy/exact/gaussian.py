"""The magnitude of discrete Gaussian noise: P(|X| ≤ k) as proved bounds, by two separate computations.

With v = σ², w_k = e^(−k²/2v), Z = 1 + 2 Σ_{k≥1} w_k: P(|X| ≤ k) = (1 + 2 Σ_{j=1..k} w_j) / Z.
The weights follow w_{k+1} = w_k r_k, r_{k+1} = r_k s with r_0 = e^(−1/2v), s = e^(−1/v).

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
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numba as nb
import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled
from understudy.privacy.exact.geometric import PREFIX_BITS
from understudy.privacy.exact.interval import Interval, exp_minus

__all__ = ["FoldedGaussian"]

Words = npt.NDArray[np.uint64]
_BLOCK = 256
_BLOCK_ERROR = 1 << 25
_UNIT_BITS = 128
_START_BITS = 320
_MOST = (1 << PREFIX_BITS) - 1


@dataclass(frozen=True)
class FoldedGaussian:
    """|X| for discrete Gaussian noise with P(X = k) ∝ e^(−k²/(2·variance))."""

    variance: Fraction

    @lru_cache(maxsize=4096)  # noqa: B019 (laws are small values; the cache holds public numbers only)
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

    def floors(self) -> npt.NDArray[np.int64]:
        """⌊2⁶³ · P(|X| ≤ k)⌋ for k = 0, 1, … up to the first that equals 2⁶³ − 1."""
        floors = self._compiled_floors()
        for k in np.flatnonzero(floors < 0):
            floors[k] = self._decided_floor(int(k))
        return floors[: int(np.searchsorted(floors, _MOST)) + 1]

    def _compiled_floors(self, extra_margin: int = 0) -> npt.NDArray[np.int64]:
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
    floors: npt.NDArray[np.int64],
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
