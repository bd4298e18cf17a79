"""The simulated data as they are: what the regressions give on them, and the AIC of their columns."""

import numpy as np
from scipy import stats

from studies.runs import Record
from studies.steps.design import BINS, EDGE, LEVELS, Floats, Ints, Run, fit, truths
from understudy.privacy.trees import AIC_UNIT, node_criterion

__all__ = ["COLUMNS", "ORIGINAL", "unchanged"]

ORIGINAL = "original data"
"""No method: the true model is fitted to the data of the repeat."""
COLUMNS = (*(f"x{place + 1}" for place in range(len(LEVELS))), "y")


def unchanged(run: Run) -> Record:
    """What the data of a run give without any method, as a run gives it, and the AIC of each one-column model."""
    truth, rng = truths()[run.model - 1], np.random.default_rng(run.seed)
    codes, outcome = truth.draw(run.rows, rng)
    fresh, answers = truth.draw(100, rng)
    found, variances = fit(truth, codes, outcome)
    half = stats.norm.ppf(0.975) * np.sqrt(variances)
    missed = answers - truth.design(fresh) @ found
    return {
        "estimates": found.tolist(),
        "covered": [int(one) for one in np.abs(found - truth.coefficients) <= half],
        "prediction": float(np.sqrt((missed**2).mean())),
        "aic": dict(zip(COLUMNS, _aic(codes, outcome), strict=True)),
    }


def _aic(codes: Ints, outcome: Floats) -> list[float]:
    """AIC by the counts of each predictor and of Y in its bins."""
    places = np.clip(np.floor((outcome + EDGE) / (2 * EDGE / BINS)), 0, BINS - 1).astype(np.int64)
    columns = zip((*codes.T, places), (*LEVELS, BINS), strict=True)
    return [int(node_criterion(np.bincount(column, minlength=levels))) / AIC_UNIT for column, levels in columns]
