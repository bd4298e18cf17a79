"""The values a number column can be written with, counted and drawn bin by bin."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Continuum", "Grid", "Number", "Support", "Values"]

Number = int | float
Values = npt.NDArray[np.int64] | npt.NDArray[np.float64]


class Support(Protocol):
    """The values a number column can be written with."""

    def points(self, start: Number, stop: Number) -> int:
        """How many of them lie in [start, stop), as the codec compares them."""
        ...

    def draw(
        self, edges: Sequence[Number], bins: npt.NDArray[np.integer], rng: np.random.Generator, avoid: Sequence[Number]
    ) -> Values:
        """One value evenly drawn from each wanted bin, never one of `avoid`."""
        ...


@dataclass(frozen=True, slots=True)
class Grid:
    """Values start + k × step, or k ÷ `per` for decimals (then `per` is above 1)."""

    start: int = 0
    step: int = 1
    per: int = 1

    def value(self, index: int) -> Number:
        """The value at an index."""
        return self.start + index * self.step if self.per == 1 else index / self.per

    def values(self, indices: npt.NDArray[np.int64]) -> Values:
        """The values at many indices."""
        if self.per == 1:
            return self.start + indices * self.step
        return indices / self.per

    def first_index(self, bound: Number) -> int:
        """The lowest index whose value is not below `bound`, compared as machine numbers."""
        if self.per == 1:
            return -((self.start - math.ceil(bound)) // self.step)
        index = math.ceil(bound * self.per)
        while self.value(index) < bound:
            index += 1
        while self.value(index - 1) >= bound:
            index -= 1
        return index

    def points(self, start: Number, stop: Number) -> int:
        """How many grid values lie in [start, stop)."""
        return max(0, self.first_index(stop) - self.first_index(start))

    def index_of(self, value: Number) -> int | None:
        """The index of a value, if it is on the grid."""
        index = self.first_index(value)
        return index if self.value(index) == value else None

    def draw(
        self, edges: Sequence[Number], bins: npt.NDArray[np.integer], rng: np.random.Generator, avoid: Sequence[Number]
    ) -> Values:
        """One grid value evenly drawn from each wanted bin, never one of `avoid`."""
        inner = [self.first_index(edge) for edge in edges[:-1]]
        firsts = np.asarray(inner, dtype=np.int64)
        stops = np.asarray([*inner[1:], self._end(edges[-1])], dtype=np.int64)
        skipped = sorted(index for index in map(self.index_of, avoid) if index is not None)
        taken = [int(np.searchsorted(stops, index, side="right")) for index in skipped]
        inside = [(b, i) for b, i in zip(taken, skipped, strict=True) if b < len(firsts) and i >= firsts[b]]
        counts = stops - firsts
        for where, _ in inside:
            counts[where] -= 1
        indices = firsts[bins] + rng.integers(0, np.maximum(counts, 1)[bins])
        # Each skipped value at or below the drawn one moves it up by one place, lowest first.
        for where, index in inside:
            indices += (bins == where) & (indices >= index)
        highest: npt.NDArray[np.int64] = np.maximum(stops - 1, firsts)
        return self.values(np.minimum(indices, highest[bins]))

    def _end(self, last_edge: Number) -> int:
        # The last bin includes its end when values are floats; edges of integer bins are already one past it.
        index = self.first_index(last_edge)
        return index + 1 if self.per > 1 and self.value(index) == last_edge else index


@dataclass(frozen=True, slots=True)
class Continuum:
    """All floats between the bounds, rounded to `decimals` where given and where that stays in the bin.

    With `single` they are written in single precision and read again by their shortest decimal form.
    """

    decimals: int | None = None
    single: bool = False

    def points(self, start: Number, stop: Number) -> int:
        """Enough of them whenever the interval is not empty."""
        low, high = self._range(float(start), float(stop))
        return 2 if stop > start and low <= high else 0

    def draw(
        self, edges: Sequence[Number], bins: npt.NDArray[np.integer], rng: np.random.Generator, avoid: Sequence[Number]
    ) -> Values:
        """One float evenly drawn from each wanted bin, never one of `avoid`."""
        ranges = [self._range(float(start), float(stop)) for start, stop in pairwise(edges)]
        lows, highs = np.asarray([low for low, _ in ranges]), np.asarray([high for _, high in ranges])
        share = rng.random(len(bins))
        # A weighted mean cannot overflow where the width of the bin would.
        drawn = lows[bins] * (1.0 - share) + highs[bins] * share
        if self.decimals is not None:
            drawn = np.round(drawn, self.decimals)
        if self.single:
            drawn = drawn.astype(np.float32).astype(np.float64)
        drawn = np.clip(drawn, lows[bins], highs[bins])
        for value in avoid:
            met = drawn == value
            drawn[met] = np.where(drawn[met] < highs[bins][met], highs[bins][met], lows[bins][met])
        return np.asarray(drawn + 0.0, dtype=np.float64)

    def _range(self, start: float, stop: float) -> tuple[float, float]:
        """The lowest and highest float to write in [start, stop)."""
        if not self.single:
            return start, max(start, math.nextafter(stop, -math.inf))
        low, high = np.float32(start), np.float32(stop)
        while float(str(low)) < start:
            low = np.nextafter(low, np.float32(np.inf))
        while float(str(high)) >= stop and high > low:
            high = np.nextafter(high, np.float32(-np.inf))
        return float(low), float(high)
