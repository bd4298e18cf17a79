"""What pMSE would be if the tables could not be told apart: its mean and spread under three assumptions.

permutation: both tables are independent samples from one law. fitted_model: the synthetic rows are drawn from the
correct model fitted to the real ones, which makes them closer by the factor 1 − c, with c the share of synthetic
rows. bootstrap: both tables are drawn with replacement from the real rows. For logistic regression scored on its own
rows the first two have closed forms: pMSE·N/(c(1 − c)) is about χ² with as many degrees of freedom as slopes.

The factor 1 − c is that of all real rows against all synthetic ones, so it is offered for rows that were fitted only:
with folds, a part of the real rows is as far from the model as a fresh sample, and 1 − c would be nearly twice too
small. A tree sees every combination of columns, so for it the correct model is one that fits them all.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from understudy.evaluate.data.pair import Context
from understudy.evaluate.propensity.classifier import Classifier, out_of_sample
from understudy.evaluate.propensity.distance import mean_squared_deviation

__all__ = ["Null", "NullName", "Scheme", "closed_form", "drawn_null", "observed"]

Floats = npt.NDArray[np.float64]
NullName = Literal["permutation", "fitted_model", "bootstrap"]
Scheme = Literal["in_sample", "folds"]


@dataclass(frozen=True, slots=True)
class Null:
    """Mean and standard deviation of pMSE under the null, the draws behind them, and how many did not split."""

    name: NullName
    mean: float
    spread: float
    draws: tuple[float, ...] = ()
    unsplit: int = 0


def closed_form(name: NullName, parameters: int, share: float, rows: int) -> Null:
    """The null of a logistic regression with that many coefficients (the intercept included) on its own rows."""
    factor = share * (1 - share) / rows * ((1 - share) if name == "fitted_model" else 1.0)
    slopes = parameters - 1
    return Null(name, slopes * factor, math.sqrt(2 * slopes) * factor)


def observed(
    classifier: Classifier, target: Floats, scheme: Scheme, rng: np.random.Generator
) -> tuple[float, int, bool]:
    """pMSE of these labels, the number of parameters, and whether anything was told apart."""
    share = float(target.mean())
    if scheme == "in_sample":
        scored = classifier.scores(target)
    else:
        scored, _ = out_of_sample(classifier, target, rng)
    return mean_squared_deviation(scored.scores, share), scored.parameters, scored.splits


def drawn_null(
    classifier: Classifier, target: Floats, scheme: Scheme, name: NullName, *, draws: int, context: Context
) -> Null:  # fmt: skip
    """The null from random draws."""
    found: list[float] = []
    unsplit = 0
    share = float(target.mean())
    for draw in range(draws):
        rng = context.rng("null", name, scheme, draw)
        if name == "bootstrap":
            redrawn = classifier.resampled(rng.choice(np.flatnonzero(target == 0), len(target)))
            value, _, splits = observed(redrawn, target, scheme, rng)
        else:
            value, _, splits = observed(classifier, rng.permutation(target), scheme, rng)
        found.append(value * (1 - share) if name == "fitted_model" else value)
        unsplit += not splits
    values = np.asarray(found)
    spread = float(values.std(ddof=1)) if draws > 1 else 0.0
    return Null(name, float(values.mean()), spread, tuple(found), unsplit)
