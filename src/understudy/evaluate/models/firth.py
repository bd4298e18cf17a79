"""Firth's logistic regression: a penalty of half the log determinant of the information keeps estimates finite.

Steps solve X'WX δ = X'(y − p + h(½ − p)), with h the diagonal of the weighted hat matrix, limited in length and
halved until the penalised likelihood does not fall. Wald intervals come from the inverse information; profile
intervals hold one coefficient and maximise over the others.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit
from scipy.stats import chi2

from understudy.evaluate.models.design import Design
from understudy.evaluate.models.rank import independent_columns

__all__ = ["FirthFit", "fit_firth", "profile_interval"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

MOST_STEPS = 200
MOST_HALVINGS = 20
LONGEST_STEP = 5.0
CLOSE = 1e-8
FURTHEST = 200.0  # widest profile interval looked at, in standard errors


@dataclass(frozen=True, slots=True, eq=False)
class FirthFit:
    """Coefficients (0 where left out), which columns were kept, their covariance, the penalised likelihood."""

    coefficients: Floats
    kept: Bools
    covariance: Floats
    likelihood: float
    converged: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """Everything known at one vector of coefficients."""

    coefficients: Floats
    probabilities: Floats
    inverse: Floats
    likelihood: float


def fit_firth(design: Design, outcomes: Floats, kept: Bools | None = None) -> FirthFit:
    """The penalised maximum likelihood estimate."""
    if kept is None:
        kept = independent_columns(design.cross(np.ones(design.rows)))
    columns = np.flatnonzero(kept)
    point, converged = _climb(design, outcomes, columns, np.zeros(design.width), held=None)
    return FirthFit(point.coefficients, kept, point.inverse, point.likelihood, converged)


def profile_interval(
    design: Design, outcomes: Floats, fit: FirthFit, place: int, *, level: float = 0.95
) -> tuple[float, float] | None:
    """The coefficient values at which the penalised likelihood, maximised over the others, falls by the χ² bound."""
    columns = np.flatnonzero(fit.kept)
    position = int(np.flatnonzero(columns == place)[0])
    spread = math.sqrt(fit.covariance[position, position])
    target = fit.likelihood - float(chi2.ppf(level, 1)) / 2
    ends = []
    for side in (-1.0, 1.0):
        inner, outer, start = 0.0, 1.0, fit.coefficients

        def likelihood(distance: float, side: float = side, start: Floats = start) -> float:
            held = fit.coefficients[place] + side * distance * spread
            return _climb(design, outcomes, columns, start, held=(place, held))[0].likelihood

        while likelihood(outer) > target:
            inner, outer = outer, outer * 2
            if outer > FURTHEST:
                return None
        for _ in range(40):
            middle = (inner + outer) / 2
            inner, outer = (middle, outer) if likelihood(middle) > target else (inner, middle)
            if outer - inner < 1e-7:
                break
        ends.append(float(fit.coefficients[place] + side * (inner + outer) / 2 * spread))
    return ends[0], ends[1]


def _climb(
    design: Design, outcomes: Floats, columns: npt.NDArray[np.intp], start: Floats, *, held: tuple[int, float] | None
) -> tuple[_Point, bool]:
    """Maximises the penalised likelihood; a held coefficient stays where it is put."""
    coefficients = start.copy()
    free = np.ones(len(columns), np.bool_)
    if held is not None:
        coefficients[held[0]] = held[1]
        free[columns == held[0]] = False
    point = _at(design, outcomes, columns, coefficients)
    if point is None:
        point = _at(design, outcomes, columns, np.zeros(design.width))
    assert point is not None  # at zero the information is a quarter of X'X, which has full rank on these columns
    for _ in range(MOST_STEPS):
        weights = point.probabilities * (1 - point.probabilities)
        full = np.zeros((design.width, design.width))
        full[np.ix_(columns, columns)] = point.inverse
        hats = weights * design.quadratic(full)
        score = design.collect(outcomes - point.probabilities + hats * (0.5 - point.probabilities))[columns]
        if not free.any() or float(np.abs(score[free] * np.sqrt(np.diagonal(point.inverse))[free]).max()) < CLOSE:
            return point, True
        step = _step(design, point, columns, free, score)
        better = _halved(design, outcomes, columns, point, step)
        if better is None:
            return point, True
        point = better
    return point, False


def _step(design: Design, point: _Point, columns: npt.NDArray[np.intp], free: Bools, score: Floats) -> Floats:
    """Newton's step over the free coefficients, no longer than allowed."""
    step = np.zeros(design.width)
    if free.all():
        moved = point.inverse @ score
    else:
        information = np.linalg.inv(point.inverse)[np.ix_(free, free)]
        moved = np.linalg.solve(information, score[free])
    step[columns[free]] = moved
    longest = float(np.abs(step).max())
    return step * min(1.0, LONGEST_STEP / longest) if longest > 0 else step


def _halved(
    design: Design, outcomes: Floats, columns: npt.NDArray[np.intp], point: _Point, step: Floats
) -> _Point | None:
    for halving in range(MOST_HALVINGS):
        tried = _at(design, outcomes, columns, point.coefficients + step / 2**halving)
        if tried is not None and tried.likelihood > point.likelihood - 1e-12 * abs(point.likelihood):
            return tried if tried.likelihood > point.likelihood or halving == 0 else None
    return None


def _at(design: Design, outcomes: Floats, columns: npt.NDArray[np.intp], coefficients: Floats) -> _Point | None:
    probabilities = expit(design.predict(coefficients))
    information = design.cross(probabilities * (1 - probabilities))[np.ix_(columns, columns)]
    try:
        factor, lower = cho_factor(information, lower=True)
    except LinAlgError:
        return None
    chosen = np.where(outcomes > 0.5, probabilities, 1 - probabilities)
    logs = np.log(np.maximum(chosen, 1e-300)).sum() + np.log(np.diagonal(factor)).sum()
    inverse = cho_solve((factor, lower), np.eye(len(columns)))
    return _Point(coefficients, probabilities, inverse, float(logs))
