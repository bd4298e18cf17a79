"""Fitting a formula to rows: estimates with standard errors, by the model that suits the outcome."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import norm, t

from understudy.evaluate.models.firth import fit_firth, profile_interval
from understudy.evaluate.models.least_squares import fit_linear
from understudy.evaluate.models.logistic import fit_logistic
from understudy.evaluate.regression.matrix import ModelData
from understudy.evaluate.score import Unavailable

__all__ = ["MOST_COEFFICIENTS", "Estimate", "Family", "FamilyName", "Fitted", "fit_all", "fit_model"]

Family = Literal["linear", "logistic", "firth"]
FamilyName = Literal["auto", "linear", "logistic", "firth"]
Floats = npt.NDArray[np.float64]

MOST_COEFFICIENTS = 1000


@dataclass(frozen=True, slots=True)
class Estimate:
    """One coefficient with its standard error and interval."""

    value: float
    error: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Fitted:
    """The coefficients that could be estimated, by name; `runaway` says that some have no finite estimate."""

    estimates: dict[str, Estimate]
    complete: int
    rows: int
    runaway: bool = False


def fit_model(data: ModelData, family: Family, *, level: float = 0.95, profile: bool = False) -> Fitted | Unavailable:
    """Estimates of every coefficient that is not a combination of others."""
    design, outcomes = data.design, data.outcomes
    if design.width > MOST_COEFFICIENTS:
        return Unavailable(f"the model has {design.width:,} coefficients, above the limit of {MOST_COEFFICIENTS:,}")
    if data.complete < 2:
        return Unavailable("fewer than two rows are complete in the columns of the model")
    runaway = False
    degrees: int | None = None
    if family == "linear":
        linear = fit_linear(design, outcomes)
        if linear is None:
            return Unavailable("there are no more complete rows than coefficients")
        values, kept, covariance, degrees = linear.coefficients, linear.kept, linear.covariance, linear.degrees
    else:
        if outcomes.min() == outcomes.max():
            return Unavailable("the outcome is the same in every complete row")
        if family == "logistic":
            logistic = fit_logistic(design, outcomes)
            found = logistic.covariance(design)
            if found is None:
                return Unavailable("the outcome is perfectly told apart, so there is no finite estimate")
            values, kept, covariance = logistic.coefficients, logistic.kept, found
            runaway = logistic.runaway or logistic.ridge > 0
        else:
            firth = fit_firth(design, outcomes)
            values, kept, covariance = firth.coefficients, firth.kept, firth.covariance
            if profile:
                return Fitted(_profiled(data, level), data.complete, data.rows)
    reach = float(norm.ppf((1 + level) / 2) if degrees is None else t.ppf((1 + level) / 2, degrees))
    estimates = _wald(design.names, values, kept, covariance, reach)
    return Fitted(estimates, data.complete, data.rows, runaway)


def fit_all(
    tables: Sequence[ModelData], family: FamilyName, *, number: bool, level: float = 0.95, profile: bool = False
) -> tuple[Family, list[Fitted | Unavailable], list[str]]:
    """The same kind of model on every table, which kind it is, and remarks.

    "auto" is linear for a number and logistic for labels, and Firth's where some table has no finite estimate.
    """
    chosen: Family = family if family != "auto" else "linear" if number else "logistic"
    fits = [fit_model(one, chosen, level=level, profile=profile) for one in tables]
    if family != "auto" or chosen != "logistic" or not any(isinstance(fit, Unavailable) or fit.runaway for fit in fits):
        return chosen, fits, []
    note = "Some coefficients have no finite maximum likelihood estimate, so Firth's penalty was used."
    return "firth", [fit_model(one, "firth", level=level, profile=profile) for one in tables], [note]


def _wald(
    names: tuple[str, ...], values: Floats, kept: npt.NDArray[np.bool_], covariance: Floats, reach: float
) -> dict[str, Estimate]:
    found: dict[str, Estimate] = {}
    for position, place in enumerate(np.flatnonzero(kept).tolist()):
        value, error = float(values[place]), math.sqrt(max(0.0, float(covariance[position, position])))
        found[names[place]] = Estimate(value, error, value - reach * error, value + reach * error)
    return found


def _profiled(data: ModelData, level: float) -> dict[str, Estimate]:
    """Profile intervals; a coefficient whose likelihood does not fall on one side is left out."""
    fit = fit_firth(data.design, data.outcomes)
    found: dict[str, Estimate] = {}
    for position, place in enumerate(np.flatnonzero(fit.kept).tolist()):
        ends = profile_interval(data.design, data.outcomes, fit, place, level=level)
        if ends is not None:
            error = math.sqrt(float(fit.covariance[position, position]))
            found[data.design.names[place]] = Estimate(float(fit.coefficients[place]), error, *ends)
    return found
