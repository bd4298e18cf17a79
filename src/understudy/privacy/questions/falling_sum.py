"""FallingSum: whole-number sums H(x) = h(1) + … + h(x) of counts, whose steps never rise.

Scores of nodes are sums of such functions of counts. Their sensitivity is proved from two facts about the whole numbers
themselves, not about the real function behind them: every step h(i) lies between 0 and h(1), and h(i + 1) ≤ h(i). Both
are forced on the numbers when they are built (a running minimum, cut at 0), so floats may find the numbers and may err:
an error makes a score less accurate and never a bound wrong.

Up to 2¹⁶ every step is its own number. Beyond, a step is the average over a stretch of 1/256 of the next lower power of
two, rounded down; averages of falling steps fall. Beyond 2⁴⁰ the steps are 0.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.counts.source import Ints

__all__ = ["FallingSum"]

Floats = npt.NDArray[np.float64]

_EXACT = 2**16
_PER_OCTAVE = 256
_OCTAVES = 24


@dataclass(frozen=True, slots=True, eq=False)
class FallingSum:
    """H(x) for every whole x ≥ 0: values at 0, 1, …, 2¹⁶, then straight lines between further places."""

    places: Ints
    values: Ints
    steps: Ints
    """The step that holds from each place to the next; the last is 0 and holds for ever."""

    @classmethod
    def of(cls, step: Callable[[Floats], Floats], total: Callable[[Floats], Floats], unit: int) -> "FallingSum":
        """H in units of 1/`unit`, from h(i) and Σ_{i ≤ x} h(i) as real functions."""
        near = np.arange(1, _EXACT + 1, dtype=np.float64)
        octaves = [2**16 * 2**octave // _PER_OCTAVE * np.arange(_PER_OCTAVE) for octave in range(_OCTAVES)]
        far = np.concatenate([2 ** (16 + octave) + part for octave, part in enumerate(octaves)] + [[2**40]])
        far = far.astype(np.int64)
        sums = total(far.astype(np.float64))
        wanted = np.concatenate([np.rint(step(near) * unit), np.floor(np.diff(sums) * unit / np.diff(far))])
        steps = np.append(np.maximum(np.minimum.accumulate(wanted), 0.0), 0.0).astype(np.int64)
        places = np.concatenate([np.arange(_EXACT, dtype=np.int64), far])
        values = np.concatenate([np.zeros(1, np.int64), np.cumsum(steps[:-1] * np.diff(places))])
        return cls(places, values, steps)

    @property
    def first(self) -> int:
        """h(1), the largest step."""
        return int(self.steps[0])

    def __call__(self, counts: Ints) -> Ints:
        """H of every count; counts below 0 do not occur."""
        before = np.searchsorted(self.places, counts, side="right") - 1
        reach = np.minimum(counts, self.places[-1]) - self.places[before]
        return np.asarray(self.values[before] + self.steps[before] * reach)
