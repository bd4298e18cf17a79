"""The four measures of the simulation with their intervals, and comparisons of methods repeat by repeat.

Bias and RMSE are taken over repeats, coefficient by coefficient, and averaged over coefficients, as in the paper's
figures. What one repeat adds to such a number is its pseudo-value (jackknife), so methods that met the same data are
compared repeat by repeat in these measures, too.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from studies.runs import Record
from studies.steps.design import Run, Truth
from studies.verdicts import Comparison, above
from studies.writing import Estimate, estimate

__all__ = ["MARGINS", "MEASURES", "NOMINAL", "Cell", "Corner", "Found", "better", "collected"]

Floats = npt.NDArray[np.float64]
NOMINAL = 0.95
MEASURES = ("bias", "estimation RMSE", "coverage", "prediction RMSE")
MARGINS = {"bias": 0.02, "estimation RMSE": 0.02, "coverage": 0.02, "prediction RMSE": 0.01}
"""Differences that count as none; the errors of Y have standard deviation 1. Coverage: of the distance from 95 %."""


@dataclass(frozen=True)
class Corner:
    """A setting: model, rows, ε."""

    model: int
    rows: int
    epsilon: float


@dataclass(frozen=True, eq=False)
class Cell:
    """All repeats of one method in one setting."""

    errors: Floats
    covered: Floats
    prediction: Floats

    @cached_property
    def pseudo(self) -> Mapping[str, list[float]]:
        """Pseudo-values of every measure, turned so that lower is better."""
        return {
            "bias": _jackknife(self.errors, lambda means: np.abs(means).mean(axis=-1)),
            "estimation RMSE": _jackknife(self.errors**2, lambda means: np.sqrt(means).mean(axis=-1)),
            "coverage": _jackknife(self.covered, lambda means: np.abs(means.mean(axis=-1) - NOMINAL)),
            "prediction RMSE": self.prediction.tolist(),
        }

    def shown(self, measure: str) -> Estimate:
        """The measure with its interval; coverage as the share itself."""
        if measure == "coverage":
            return estimate(self.covered.mean(axis=1).tolist())
        found = estimate(self.pseudo[measure])
        if measure == "bias":
            return replace(found, mean=float(np.abs(self.errors.mean(axis=0)).mean()))
        if measure == "estimation RMSE":
            return replace(found, mean=float(np.sqrt((self.errors**2).mean(axis=0)).mean()))
        return found


def _jackknife(values: Floats, measure: Callable[[Floats], Floats]) -> list[float]:
    """Pseudo-values of a function of the means over repeats."""
    repeats = len(values)
    if repeats < 2:
        return [math.nan] * repeats
    without = measure((values.sum(axis=0) - values) / (repeats - 1))
    whole = float(measure(values.mean(axis=0)))
    return [repeats * whole - (repeats - 1) * float(one) for one in without]


Found = Mapping[tuple[Corner, str], Cell]


def collected(todo: Sequence[Run], records: Sequence[Record], truths: Sequence[Truth]) -> Found:
    """All repeats by setting and method."""
    groups: dict[tuple[Corner, str], list[Record]] = {}
    for run, record in zip(todo, records, strict=True):
        groups.setdefault((Corner(run.model, run.rows, run.epsilon), run.method), []).append(record)
    return {
        (corner, method): Cell(
            np.array([one["estimates"] for one in mine]) - truths[corner.model - 1].coefficients,
            np.array([one["covered"] for one in mine], np.float64),
            np.array([one["prediction"] for one in mine], np.float64),
        )
        for (corner, method), mine in groups.items()
    }


def better(first: Cell, second: Cell, measure: str, *, paired: bool = True) -> Comparison:
    """Whether the first is better than the second; a lead above 0 says so."""
    return above(second.pseudo[measure], first.pseudo[measure], MARGINS[measure], paired=paired)
