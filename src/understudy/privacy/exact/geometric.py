"""Laws with geometric tails on 0, 1, 2, …: magnitudes of discrete Laplace noise, digits of geometric numbers, gaps.

All have P(X ≤ k) = (1 − a·r^(k+1)) / c for a ratio r, a factor a and a total c, each known as an interval at any
precision. A law may be cut: with `top` the law is conditioned on X < top (a digit), with `cap` every X ≥ cap is
reported as cap (an overflow that the caller does not need to tell apart).

Digits. If G is geometric with ratio q, P(G = g) = (1 − q) q^g, and g = Σ d_i t^i, then q^g is a product over the
digits: they are independent, d_i geometric with ratio q^(t^i) conditioned on d_i < t (the topmost is unconditioned).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice

import numpy as np
import numpy.typing as npt

from understudy.privacy.exact.interval import Interval, exp_minus, power, product, quotient

__all__ = ["PREFIX_BITS", "Digit", "FoldedLaplace", "GapDigit"]

PREFIX_BITS = 63
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

    @lru_cache(maxsize=4096)  # noqa: B019 (laws are small values; the cache holds public numbers only)
    def bounds(self, k: int, bits: int) -> Interval:
        """Bounds of P(X ≤ k)."""
        if self.end is not None and k >= self.end:
            return 1 << bits, 1 << bits
        work = bits + k.bit_length() + 8
        tail = power(self.ratio(work), k + 1, work)
        lower, upper = self._below(tail, self.factor(work), self.total(work), work)
        return lower >> (work - bits), -(-upper >> (work - bits))

    def floors(self) -> npt.NDArray[np.int64]:
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
