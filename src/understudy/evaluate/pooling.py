"""pool: inference from a release, with intervals that include the noise.

Numbers of several copies, a model fitted to each copy, or numbers and models straight from the noisy answers
(`measured`, `measured_models`). No model is fitted to copies unless that is asked for: their rows follow the method's
model, and no interval knows what it leaves out. Copies that were drawn from one fitted model ("resample") share its
privacy noise, so no rule that looks at how copies differ can see that noise: intervals would be too narrow, and pooling
them is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from understudy.errors import UsageError, nearest
from understudy.evaluate.measured import (
    MeasuredNumber,
    measured_mean,
    measured_quantile,
    measured_rate,
    measured_share,
    notes_on_rows,
)
from understudy.evaluate.measured_models import MeasuredModel, measured_model
from understudy.evaluate.metric import Unavailable, open_for_comparison, read_rows
from understudy.evaluate.pooling_rules import (
    Pooled,
    PooledTest,
    pool_chi_squares,
    pool_liu,
    pool_p_values,
    pool_raghunathan,
)
from understudy.evaluate.regression import (
    Family,
    FamilyName,
    FittedCoefficients,
    Formula,
    check_outcome,
    checked_formula,
    code_column,
    fit_all,
    model_data,
    references,
)
from understudy.release.release import Release

RuleName = Literal["liu", "raghunathan", "chi2", "p_values"]
RULES = ("liu", "raghunathan", "chi2", "p_values")


@dataclass(frozen=True, slots=True)
class PooledModel:
    """Every coefficient of a model, pooled over the copies; those that some copy cannot estimate are `left_out`."""

    formula: str
    family: Family
    coefficients: Mapping[str, Pooled]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]


def pool(
    estimates: Sequence[float] | Release,
    variances: Sequence[float] | None = None,
    *,
    rule: RuleName = "liu",
    degrees: float | None = None,
    formula: str | None = None,
    family: FamilyName = "auto",
    where: Mapping[str, str] | None = None,
    rate: Mapping[str, str] | None = None,
    mean: str | None = None,
    quantile: Mapping[str, float] | None = None,
    by: str | None = None,
    level: float = 0.95,
    copies_mode: str | None = None,
    from_copies: bool = False,
) -> Pooled | PooledTest | PooledModel | MeasuredModel | MeasuredNumber | tuple[MeasuredNumber, ...]:
    """Inference from several synthetic copies, or from the noisy answers of a release.

    Args:
        estimates: one number for each copy (an estimate, a χ² statistic or a p-value), or a release.
        variances: for rules about estimates, the squared standard error of each.
        rule: "liu" for estimates; "raghunathan" for those from copies that some other program drew from a posterior
            distribution, each with parameters of its own; "chi2" for χ² statistics, "p_values" for their p-values.
        degrees: degrees of freedom of the χ² tests.
        formula: with a release: the model to estimate, such as "income ~ age + sex".
        family: the kind of that model: "auto", "linear", "logistic" or "firth".
        where: with a release: the condition whose share is wanted; with a rate, mean or quantile, the rows it is about.
        rate: the condition whose share among those rows is wanted, for example {"voted": "yes"}.
        mean: the column of numbers whose mean is wanted.
        quantile: the column and the share of rows below, for example {"income": 0.5} for the median.
        by: a column: then there is one number for each of its labels, in a tuple.
        level: confidence level of the intervals, for example 0.95.
        copies_mode: how the copies were made, if known; "resample" is refused.
        from_copies: fit the formula to the rows of copies that were each measured anew. Its intervals hold the noise
            and the drawing of rows, but not what the method's model leaves out: they may be too short.

    Raises:
        UsageError: if the rule does not apply, and why.
    """
    if isinstance(estimates, Release):
        question = MeasuredQuestion(where, rate, mean, quantile, by, level)
        return _of_release(estimates, formula, family, question, from_copies=from_copies)
    if copies_mode == "resample":
        _refuse_resampled()
    return _of_numbers(estimates, variances, rule, degrees, level)


def _of_numbers(
    estimates: Sequence[float], variances: Sequence[float] | None, rule: RuleName, degrees: float | None, level: float
) -> Pooled | PooledTest:
    if rule not in RULES:
        raise UsageError(f"rule {rule!r}", "is not known.", nearest(rule, RULES))
    if rule in ("liu", "raghunathan"):
        if variances is None:
            raise UsageError("pool", "needs the variance of each estimate.", "Give variances=.")
        return (pool_liu if rule == "liu" else pool_raghunathan)(estimates, variances, level=level)
    if degrees is None:
        raise UsageError("pool", "needs the degrees of freedom of the tests.", "Give degrees=.")
    return pool_chi_squares(estimates, degrees) if rule == "chi2" else pool_p_values(estimates, degrees)


def _of_release(
    release: Release, formula: str | None, family: FamilyName, question: "MeasuredQuestion", *, from_copies: bool
) -> PooledModel | MeasuredModel | MeasuredNumber | tuple[MeasuredNumber, ...]:
    if formula is None:
        if from_copies:
            raise UsageError("from_copies", "is about a formula.", "Give formula=.")
        found = question.answers(release)
        return found if question.by is not None else found[0]
    if question != MeasuredQuestion(level=question.level):
        raise UsageError("pool", "needs either a formula or a condition, rate, mean or quantile.")
    return pool_model(release, formula, family, level=question.level, from_copies=from_copies)


@dataclass(frozen=True, slots=True)
class MeasuredQuestion:
    """A question to the noisy answers of a release: a share, or one rate, mean or quantile."""

    where: Mapping[str, str] | None = None
    rate: Mapping[str, str] | None = None
    mean: str | None = None
    quantile: Mapping[str, float] | None = None
    by: str | None = None
    level: float = 0.95

    def answers(self, release: Release) -> tuple[MeasuredNumber, ...]:
        """The answer; one for each group where groups are named.

        Raises:
            UsageError: if nothing or several things are asked at once, or the release cannot answer.
        """
        asked = [name for name in ("rate", "mean", "quantile") if getattr(self, name) is not None]
        if len(asked) > 1:
            raise UsageError(
                "pool", f"answers one question at a time, got {' and '.join(asked)}.", "Ask them one at a time."
            )
        if self.rate is not None:
            return measured_rate(release, self.rate, where=self.where, by=self.by, level=self.level)
        if self.mean is not None:
            return measured_mean(release, self.mean, where=self.where, by=self.by, level=self.level)
        if self.quantile is not None:
            if len(self.quantile) != 1:
                raise UsageError("quantile", "needs one column.", 'For example {"income": 0.5}.')
            ((column, share),) = self.quantile.items()
            return measured_quantile(release, column, share, where=self.where, by=self.by, level=self.level)
        if self.where is None:
            fix = "Give formula=, where=, rate=, mean= or quantile=."
            raise UsageError("pool", "needs either a formula or a condition for a share, or a number to estimate.", fix)
        if self.by is not None:
            raise UsageError("by", "needs a rate, a mean or a quantile.", "Give rate= instead of where=.")
        return (measured_share(release, self.where, level=self.level),)


def pool_model(
    release: Release, text: str, family: FamilyName = "auto", *, level: float = 0.95, from_copies: bool = False
) -> PooledModel | MeasuredModel:
    """The model from noisy tables of its columns; with `from_copies`, fitted to every copy and pooled by Liu's rule.

    Raises:
        UsageError: if noise, bins or what was not measured hide the answer; of copies, if there is one, if they share
            their noise, or if the model cannot be fitted.
    """
    formula = checked_formula(text, family, release.schema)
    if from_copies:
        return _from_copies(release, formula, family, level)
    measured = measured_model(release, formula, family, level=level)
    if measured is None:
        rule = "cannot be answered from noisy tables: "
        rule += "Firth's penalty needs rows." if family == "firth" else "some of its columns are in none of them."
        fix = "Fit it to copies that were each measured anew (from_copies=True); what the model of the method leaves "
        raise UsageError(f"formula {text!r}", rule, fix + "out is then covered by no interval.")
    return measured


def _from_copies(release: Release, formula: Formula, family: FamilyName, level: float) -> PooledModel:
    if release.config.copies < 2:
        rule = "has a single copy, so nothing shows how far noise moves a model that is fitted to it."
        raise UsageError("release", rule, "Synthesize with copies=5 and copies_mode=remeasure.")
    if release.config.copies_mode == "resample":
        _refuse_resampled()
    copies = [read_rows(open_for_comparison(table, release.schema), release.codec) for table in release.tables]
    reference = references(formula, copies[0])
    data = [model_data(formula, rows, reference) for rows in copies]
    number = check_outcome(formula, release.schema)
    chosen, fits, notes = fit_all(data, family, number=number, level=level)
    found = _all_fitted(fits, formula.text)
    names = list(dict.fromkeys(name for fit in found for name in fit.estimates))
    shared = [name for name in names if all(name in fit.estimates for fit in found)]
    # The error within a copy stands for that of drawing the private table, which has a number of rows of its own:
    # synthetic rows beyond it know no more about the population.
    sizes = [rows.count / max(one.model.total, 1.0) for rows, one in zip(copies, release.fits, strict=True)]
    pooled = {}
    for name in shared:
        errors = [fit.estimates[name].error ** 2 * size for fit, size in zip(found, sizes, strict=True)]
        pooled[name] = pool_liu([fit.estimates[name].value for fit in found], errors, level=level)
    columns = [code_column(name, release.codec) for name in formula.columns]
    said = (*notes, *notes_on_rows(release, columns), FROM_COPIES)
    return PooledModel(formula.text, chosen, pooled, tuple(name for name in names if name not in shared), said)


FROM_COPIES = (
    "The model was fitted to the rows of the copies. Its intervals cover the noise and the sampling of rows, but "
    "neither what the method's model leaves out nor where values lie within their bins, so they may be too short."
)


def _all_fitted(fits: Sequence[FittedCoefficients | Unavailable], text: str) -> list[FittedCoefficients]:
    found = []
    for place, fit in enumerate(fits):
        if isinstance(fit, Unavailable):
            raise UsageError(f"formula {text!r}", f"cannot be fitted to copy {place + 1}: {fit.reason}.")
        found.append(fit)
    return found


def _refuse_resampled() -> None:
    rule = "were drawn from one fitted model, so they share its privacy noise and intervals would be too narrow."
    fix = "Measure anew for each copy (copies_mode=remeasure), or ask for a measured share."
    raise UsageError("the copies", rule, fix)
