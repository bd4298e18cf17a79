"""The four measures of the simulation with their intervals, and comparisons of methods repeat by repeat.

Bias, RMSE and the distance of coverage from 95 % are taken over repeats, coefficient by coefficient, and averaged over
coefficients, as the paper's figures have a line for each of them: too wide and too narrow intervals do not make up for
each other. What one repeat adds to such a number is its pseudo-value (jackknife), so methods that met the same data
are compared repeat by repeat in these measures, too.
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

__all__ = ["BY_COEFFICIENT", "MARGINS", "MEASURES", "NOMINAL", "Cell", "Corner", "Found", "better", "collected"]

Floats = npt.NDArray[np.float64]
NOMINAL = 0.95
MEASURES = ("bias", "estimation RMSE", "coverage", "prediction RMSE")
MARGINS = {"bias": 0.02, "estimation RMSE": 0.02, "coverage": 0.02, "prediction RMSE": 0.01}
"""Differences that count as none; the errors of Y have standard deviation 1. Coverage: of the distance from 95 %."""
BY_COEFFICIENT: Mapping[str, Callable[[Floats], Floats]] = {
    "bias": np.abs,
    "estimation RMSE": np.sqrt,
    "coverage": lambda means: np.abs(means - NOMINAL),
}
"""What a measure makes of a coefficient's mean over repeats: of errors, squared errors, or covered intervals."""


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
    between: Floats | None = None
    """Standard deviations of the estimates between the sets of a repeat; none where there are no sets."""

    @property
    def spread(self) -> list[float]:
        """For each repeat the variance between sets, as its mean over the coefficients."""
        assert self.between is not None, "one set has no spread"
        return [float(one) for one in (self.between**2).mean(axis=1)]

    @cached_property
    def pseudo(self) -> Mapping[str, list[float]]:
        """Pseudo-values of every measure, turned so that lower is better."""
        found = {measure: _jackknife(self._values(measure), turn) for measure, turn in BY_COEFFICIENT.items()}
        return found | {"prediction RMSE": self.prediction.tolist()}

    def _values(self, measure: str) -> Floats:
        """What is averaged over repeats, a column for each coefficient."""
        return {"bias": self.errors, "estimation RMSE": self.errors**2, "coverage": self.covered}[measure]

    def judged(self, measure: str) -> Estimate:
        """The measure with its interval, turned so that lower is better: coverage as the distance from 95 %."""
        found = estimate(self.pseudo[measure])
        if measure not in BY_COEFFICIENT:
            return found
        return replace(found, mean=float(BY_COEFFICIENT[measure](self._values(measure).mean(axis=0)).mean()))

    def shown(self, measure: str) -> Estimate:
        """The measure with its interval; coverage as the share itself, over all coefficients."""
        return estimate(self.covered.mean(axis=1).tolist()) if measure == "coverage" else self.judged(measure)

    def by_coefficient(self, measure: str) -> Floats:
        """The measure of every coefficient; bias with its sign, coverage as the share itself."""
        means: Floats = self._values(measure).mean(axis=0)
        return np.sqrt(means) if measure == "estimation RMSE" else means

    def span(self, measure: str) -> tuple[float, float]:
        """The least and the greatest of all coefficients."""
        found = self.by_coefficient(measure)
        return float(found.min()), float(found.max())


def _jackknife(values: Floats, turn: Callable[[Floats], Floats]) -> list[float]:
    """Pseudo-values of the mean over coefficients of what a measure makes of the means over repeats."""
    repeats = len(values)
    if repeats < 2:
        return [math.nan] * repeats
    without = turn((values.sum(axis=0) - values) / (repeats - 1)).mean(axis=1)
    whole = float(turn(values.mean(axis=0)).mean())
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
            np.array([one["between"] for one in mine]) if all("between" in one for one in mine) else None,
        )
        for (corner, method), mine in groups.items()
    }


def better(first: Cell, second: Cell, measure: str, *, paired: bool = True) -> Comparison:
    """Whether the first is better than the second; a lead above 0 says so."""
    return above(second.pseudo[measure], first.pseudo[measure], MARGINS[measure], paired=paired)
