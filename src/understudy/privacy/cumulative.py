"""Exact draws from a law on 0, 1, 2, … at the speed of a table lookup.

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

So the draw has exactly the law F: total variation 0, not merely 2⁻¹⁰⁰. The only assumption is that the bits of
`os.urandom` are independent and fair. The table alone, without the last rule, would be about entries · 2⁻⁶³ away.

There is no seed and nothing random is kept between calls, so forked processes cannot share draws.
"""

import os
from collections.abc import Hashable
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled
from understudy.privacy.exact.geometric import PREFIX_BITS
from understudy.privacy.exact.interval import Interval

__all__ = ["Cumulative", "Table", "table_for", "uniform_below"]

Ints = npt.NDArray[np.int64]
_CHUNK = 1 << 15
_LOW_BITS = (1 << 63) - 1
_LARGE = Fraction(2**32)


class Cumulative(Hashable, Protocol):
    """A law on 0, 1, 2, …, as a hashable value."""

    def bounds(self, k: int, bits: int) -> Interval:
        """Integers around 2^bits · P(X ≤ k); they close in on it as bits grow."""
        ...

    def floors(self) -> Ints:
        """⌊2⁶³ · P(X ≤ k)⌋ for k = 0, 1, …, proved, up to the first entry 2⁶³ − 1."""
        ...


class Table:
    """Draws from one law. Holds public numbers only."""

    def __init__(self, law: Cumulative, bits: int = PREFIX_BITS) -> None:
        """Builds the table; fewer `bits` give the same law more slowly (tests use it to exercise the slow path)."""
        self.law = law
        self.bits = bits
        floors = law.floors() >> (PREFIX_BITS - bits)
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
            lower, upper = self.law.bounds(k, bits)
            if prefix + 1 <= lower:
                return k
            if prefix >= upper:
                k += 1
                continue
            extra = 64 * max(1, bits // 64)
            prefix = prefix << extra | int.from_bytes(os.urandom(extra // 8), "little")
            bits += extra


@compiled()
def _search(
    words: npt.NDArray[np.uint64], table: Ints, steps: int, bits: int, signed: bool, out: Ints, pending: Ints
) -> int:
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


def table_for(law: Cumulative) -> Table:
    """The table of a law, kept for the next call; only few of the very large ones are kept."""
    return _large_table(law) if getattr(law, "variance", 0) > _LARGE else _small_table(law)


@lru_cache(maxsize=128)
def _small_table(law: Cumulative) -> Table:
    return Table(law)


@lru_cache(maxsize=2)
def _large_table(law: Cumulative) -> Table:
    return Table(law)


def uniform_below(limit: int) -> int:
    """A uniform whole number from 0 to limit − 1, by rejection."""
    size = limit.bit_length()
    count = -(-size // 8)
    while True:
        number = int.from_bytes(os.urandom(count), "little") >> (8 * count - size)
        if number < limit:
            return number
