"""Logistic regression by Newton's method, for model matrices of any height.

Columns that are combinations of earlier ones are left out. Levels that occur with one outcome only have no finite
estimate; their fitted probabilities still converge, and that is what propensity measures use. When even those run to
0 and 1 throughout (the two tables are perfectly told apart), a small ridge keeps the fit finite and is reported.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit

from understudy.evaluate.models.design import Design
from understudy.evaluate.models.elimination import solve_positive
from understudy.evaluate.models.rank import independent_columns

__all__ = ["RIDGE", "LogisticFit", "fit_logistic"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

RIDGE = 0.01
MOST_STEPS = 50
MOST_HALVINGS = 12
CLOSE = 1e-7
SEPARATED = 1e-4  # deviance per row below which the outcomes count as perfectly told apart
RUNAWAY = 12.0  # a linear predictor beyond this means a probability within 1e-5 of 0 or 1


@dataclass(frozen=True, slots=True, eq=False)
class LogisticFit:
    """Coefficients (0 where left out), which columns were kept, fitted probabilities, and how it went."""

    coefficients: Floats
    kept: Bools
    probabilities: Floats
    penalty: Floats
    converged: bool

    @property
    def ridge(self) -> float:
        """The ridge that was needed; 0 for plain maximum likelihood."""
        return float(self.penalty.max(initial=0.0))

    @property
    def parameters(self) -> int:
        """Number of estimated coefficients, the intercept included."""
        return int(self.kept.sum())

    def covariance(self, design: Design) -> Floats | None:
        """Of the estimates that were kept, from the information at the maximum; None if that is singular."""
        columns = np.flatnonzero(self.kept)
        weights = self.probabilities * (1 - self.probabilities)
        information = design.cross(weights)[np.ix_(columns, columns)] + np.diag(self.penalty)
        try:
            return np.asarray(cho_solve(cho_factor(information, lower=True), np.eye(len(columns))), np.float64)
        except LinAlgError:
            return None

    @property
    def runaway(self) -> bool:
        """Whether some fitted probability ran to 0 or 1: an estimate that is not finite."""
        edge = float(expit(-RUNAWAY))
        return bool(((self.probabilities < edge) | (self.probabilities > 1 - edge)).any())


def fit_logistic(design: Design, outcomes: Floats, kept: Bools | None = None) -> LogisticFit:
    """Maximum likelihood; with a small ridge if the outcomes are perfectly told apart.

    Args:
        design: the model matrix.
        outcomes: 0 or 1 for each row, both of them present.
        kept: columns known to be linearly independent, if that was found out before.
    """
    if kept is None:
        kept = independent_columns(design.cross(np.ones(design.rows)))
    fit = _newton(design, outcomes, kept, 0.0)
    if fit is None or _deviance(fit.probabilities, outcomes) < SEPARATED * design.rows:
        fit = _newton(design, outcomes, kept, RIDGE)
    assert fit is not None  # a ridge makes every system positive definite
    return fit


def _newton(design: Design, outcomes: Floats, kept: Bools, ridge: float) -> LogisticFit | None:
    """None if the equations cannot be solved without a ridge."""
    columns = np.flatnonzero(kept)
    penalty = np.full(len(columns), ridge)
    penalty[columns == 0] = 0.0
    coefficients = np.zeros(design.width)
    share = float(outcomes.mean())
    coefficients[0] = np.log(share / (1 - share))
    probabilities = np.full(design.rows, share)
    loss = _loss(probabilities, outcomes, coefficients[columns], penalty)
    converged = False
    for _ in range(MOST_STEPS):
        information = design.cross(probabilities * (1 - probabilities))[np.ix_(columns, columns)] + np.diag(penalty)
        score = design.collect(outcomes - probabilities)[columns] - penalty * coefficients[columns]
        step = solve_positive(information, score)
        if step is None:
            return None
        found = _searched(design, outcomes, coefficients, columns, step=step, penalty=penalty, loss=loss)
        if found is None:
            converged = True
            break
        coefficients, probabilities, better = found
        finished = loss - better <= CLOSE * (abs(better) + 0.1)
        loss = better
        if finished:
            converged = True
            break
    return LogisticFit(coefficients, kept, probabilities, penalty, converged)


def _searched(
    design: Design, outcomes: Floats, start: Floats, columns: npt.NDArray[np.intp], *, step: Floats, penalty: Floats,
    loss: float,
) -> tuple[Floats, Floats, float] | None:  # fmt: skip
    """The longest halving of the step that does not raise the loss; None if none does."""
    for halving in range(MOST_HALVINGS):
        tried = start.copy()
        tried[columns] += step / 2**halving
        probabilities = expit(design.predict(tried))
        reached = _loss(probabilities, outcomes, tried[columns], penalty)
        if np.isfinite(reached) and reached <= loss:
            return tried, probabilities, reached
    return None


def _deviance(probabilities: Floats, outcomes: Floats) -> float:
    chosen = np.where(outcomes > 0.5, probabilities, 1 - probabilities)
    return float(-2 * np.log(np.maximum(chosen, 1e-300)).sum())


def _loss(probabilities: Floats, outcomes: Floats, coefficients: Floats, penalty: Floats) -> float:
    return _deviance(probabilities, outcomes) + float(penalty @ coefficients**2)
