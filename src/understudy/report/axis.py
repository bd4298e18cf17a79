"""Axis: from numbers to pixels, with round ticks; linear or logarithmic."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Axis", "Tick"]

_APART = 1e-9
"""Numbers nearer to each other than this, relative to their size, get no ticks between them: floats are too coarse."""
_LEAST = 1e-290


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis: where it lies in pixels and what it says."""

    place: float
    text: str


@dataclass(frozen=True, slots=True)
class Axis:
    """Numbers from `low` to `high` drawn from pixel `start` to pixel `end`; `end` may lie before `start`."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    @classmethod
    def around(cls, numbers: Sequence[float], start: float, end: float, *, logarithmic: bool = False) -> "Axis":
        """An axis that holds all of these (finite) numbers, with some room if they are (nearly) equal."""
        kept = [number for number in numbers if math.isfinite(number) and (number > 0 or not logarithmic)]
        low, high = min(kept, default=1.0), max(kept, default=1.0)
        if high - low <= _APART * max(abs(low), abs(high), _LEAST):
            low, high = (low / 2, high * 2) if logarithmic else (low - 0.5, high + 0.5)
        return cls(low, high, start, end, logarithmic)

    def at(self, number: float) -> float:
        """The pixel of a number, cut at the ends of the axis.

        >>> Axis(0, 10, 100, 200).at(5.0), Axis(1, 100, 0, 10, logarithmic=True).at(10.0)
        (150.0, 5.0)
        """
        if self.logarithmic:
            share = (math.log(max(number, self.low)) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        else:
            share = (number - self.low) / (self.high - self.low)
        return round(self.start + min(max(share, 0.0), 1.0) * (self.end - self.start), 2)

    def ticks(self) -> tuple[Tick, ...]:
        """About five marks at round numbers."""
        return tuple(Tick(self.at(number), _short(number)) for number in self._round_numbers())

    def _round_numbers(self) -> list[float]:
        if self.logarithmic:
            exponents = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            found = [float(f"{lead}e{exponent}") for exponent in exponents for lead in (1, 2, 5)]
            inside = [number for number in found if self.low * 0.999 <= number <= self.high * 1.001]
            tens = [number for number in inside if f"{number:e}".startswith("1.0")]
            return tens if len(tens) > 3 else inside
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / 5))
        step *= next(factor for factor in (1, 2, 5, 10) if (self.high - self.low) / (step * factor) <= 6)
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor(self.high / step + 1e-9) - first + 1
        return [(first + place) * step for place in range(count)]


def _short(number: float) -> str:
    return f"{number:,.6g}" if abs(number) < 1e6 else f"{number:.3g}"
