"""Linear regression by least squares, for model matrices of any height."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from understudy.evaluate.models.design import Design
from understudy.evaluate.models.rank import independent_columns

__all__ = ["LinearFit", "fit_linear"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class LinearFit:
    """Coefficients (0 where left out), which columns were kept, their covariance, degrees of freedom left over."""

    coefficients: Floats
    kept: npt.NDArray[np.bool_]
    covariance: Floats
    residual_variance: float
    degrees: int


def fit_linear(design: Design, outcomes: Floats) -> LinearFit | None:
    """The least squares estimate; None if there are no more rows than coefficients."""
    cross = design.cross(np.ones(design.rows))
    kept = independent_columns(cross)
    columns = np.flatnonzero(kept)
    degrees = design.rows - len(columns)
    if degrees < 1:
        return None
    solver = cho_factor(cross[np.ix_(columns, columns)], lower=True)
    coefficients = np.zeros(design.width)
    centre = float(outcomes.mean())
    coefficients[columns] = cho_solve(solver, design.collect(outcomes - centre)[columns])
    for _ in range(2):  # refinement: the normal equations square the condition number
        residuals = outcomes - centre - design.predict(coefficients)
        coefficients[columns] += cho_solve(solver, design.collect(residuals)[columns])
    residuals = outcomes - centre - design.predict(coefficients)
    coefficients[0] += centre
    variance = float(residuals @ residuals) / degrees
    covariance = variance * cho_solve(solver, np.eye(len(columns)))
    return LinearFit(coefficients, kept, covariance, variance, degrees)
