"""pool: inference from a release, with intervals that include the noise.

Numbers of several copies, a model fitted to each copy, or a share straight from the noisy answers. Copies that were
drawn from one fitted model ("resample") share its privacy noise, so no rule that looks at how copies differ can see
that noise: intervals would be too narrow, and pooling them is refused.

Measured shares
---------------
A measured table holds y = x + z with known integer noise z. The share of rows in a set S of its cells is estimated by
p = y(S)/y(all). To first order its error is [(1 − p)·z(S) − p·z(rest)]/n, so privacy noise adds the variance
v·[(1 − p)²·|S| + p²·|rest|]/n² for noise of variance v per cell; inference to a population adds p(1 − p)/n. Quantiles
are those of the noise distribution itself while the sums are short (Laplace sums have heavier tails than the normal
distribution).

This works for shares of tables that were measured. A share of columns that were never measured together has an error
that no answer bounds, and is refused. Several runs are averaged: their noise is independent, the rows are the same.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from understudy.arrays import Bools, Floats
from understudy.codec.table import TableCodec
from understudy.domain import Distribution, Measurement, Transcript
from understudy.errors import UsageError, nearest
from understudy.evaluate.metric import Unavailable, open_for_comparison, read_rows
from understudy.evaluate.pooling_rules import Pooled, PooledTest, pool_chi_squares, pool_liu, pool_p_values
from understudy.evaluate.regression import (
    Family,
    FamilyName,
    FittedCoefficients,
    check_outcome,
    checked_formula,
    fit_all,
    model_data,
    references,
)
from understudy.release.release import Release

DRAWS = 40_000
LONGEST_SUM = 64  # longer sums of noise are taken as normal
SEED = 20_180_501


@dataclass(frozen=True, slots=True)
class MeasuredShare:
    """A share of rows, with an interval for the private table and a wider one for the population behind it."""

    where: Mapping[str, str]
    estimate: float
    privacy_variance: float
    sampling_variance: float
    level: float
    table_low: float
    table_high: float
    population_low: float
    population_high: float
    question: str
    runs: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    """One run's answer: the measurement used and which of its cells are meant."""

    measurement: Measurement
    chosen: Bools

    @property
    def total(self) -> float:
        return float(self.measurement.values.sum())

    @property
    def share(self) -> float:
        return float(self.measurement.values[self.chosen].sum()) / self.total


def measured_share(release: Release, where: Mapping[str, str], *, level: float = 0.95) -> MeasuredShare:
    """The share of rows that satisfy a condition, for example {"sex": "F"}.

    Raises:
        UsageError: if no released table holds the columns of the condition, or the noise is larger than the counts.
    """
    if not where:
        raise UsageError("share", "needs a condition.", 'As in {"sex": "F"}.')
    if not 0 < level < 1:
        raise UsageError("share: level", f"must lie between 0 and 1, got {level!r}.")
    answers = [_answer(fitted.codec, fitted.transcript, where) for fitted in release.fits]
    if any(answer.total <= 0 for answer in answers):
        raise UsageError(f"share of {_words(where)}", "cannot be estimated: the noise is larger than the counts.")
    runs = len(answers)
    estimate = math.fsum(answer.share for answer in answers) / runs
    inside = min(max(estimate, 0.0), 1.0)
    rows = math.fsum(answer.total for answer in answers) / runs
    privacy = math.fsum(_privacy_variance(answer, inside) for answer in answers) / runs**2
    sampling = inside * (1 - inside) / rows
    table, population = _reach(answers, inside, sampling, level)
    notes = [_note(release)] if release.schema.unit.column is not None else []
    odd = [odd.text for odd in release.statement.odd if odd.column in where]
    notes += (
        [*odd, "A share is one of all rows, with those whose value is missing or could not be read."] if odd else []
    )
    return MeasuredShare(
        dict(where), inside, privacy, sampling, level, max(0.0, estimate - table), min(1.0, estimate + table),
        max(0.0, estimate - population), min(1.0, estimate + population), answers[0].measurement.name, runs,
        tuple(notes),
    )  # fmt: skip


def _note(release: Release) -> str:
    unit = release.schema.unit
    return f"Up to {unit.rows} rows of one {unit.column} count; the population interval treats rows as independent."


def _answer(codec: TableCodec, transcript: Transcript, where: Mapping[str, str]) -> _Answer:
    codes = {name: codec.codes_matching(name, text) for name, text in where.items()}
    domain = codec.domain
    candidates = []
    for measurement in transcript.of(Measurement):
        columns = measurement.columns
        known = all(name in domain.sizes for name in columns)
        if known and set(where) <= set(columns) and measurement.shape == domain.shape(columns):
            chosen = np.ones(measurement.shape, np.bool_)
            for axis, name in enumerate(columns):
                if name in codes:
                    hit = np.zeros(measurement.shape[axis], np.bool_)
                    hit[codes[name]] = True
                    chosen &= hit.reshape([-1 if place == axis else 1 for place in range(len(columns))])
            candidates.append(_Answer(measurement, chosen.ravel()))
    if not candidates:
        rule = "was not measured: no released table holds these columns together."
        fix = "Use a method that measures it (nist_mst or dpsyn with these columns in marginals; aim if its rounds "
        fix += "choose it), or count it in the rows, without an error bar."
        raise UsageError(f"share of {_words(where)}", rule, fix)
    # Chosen by public facts alone: the noise of the cells that are added up, then of the whole table.
    return min(candidates, key=lambda one: (one.measurement.distribution.variance * one.chosen.sum(), one.chosen.size))


def _privacy_variance(answer: _Answer, share: float) -> float:
    inside = int(answer.chosen.sum())
    outside = answer.chosen.size - inside
    noise = answer.measurement.distribution.variance
    return noise * ((1 - share) ** 2 * inside + share**2 * outside) / answer.total**2


def _reach(answers: list[_Answer], share: float, sampling: float, level: float) -> tuple[float, float]:
    """Half-widths about the private table and about the population."""
    rng = np.random.default_rng(SEED)
    error = np.zeros(DRAWS)
    for answer in answers:
        inside = int(answer.chosen.sum())
        distribution = answer.measurement.distribution
        mine, rest = _sums(distribution, inside, rng), _sums(distribution, answer.chosen.size - inside, rng)
        error += ((1 - share) * mine - share * rest) / answer.total / len(answers)
    whole = error + math.sqrt(sampling) * rng.standard_normal(DRAWS)
    return float(np.quantile(np.abs(error), level)), float(np.quantile(np.abs(whole), level))


def _sums(distribution: Distribution, cells: int, rng: np.random.Generator) -> Floats:
    """Draws of the sum of that many noise values."""
    if distribution.kind == "gaussian" or cells > LONGEST_SUM:
        return math.sqrt(distribution.variance * cells) * rng.standard_normal(DRAWS)
    total = np.zeros(DRAWS)
    decay = math.exp(-1.0 / distribution.scale)
    for _ in range(cells):  # a discrete Laplace number is the difference of two geometric ones
        total += rng.geometric(1 - decay, DRAWS) - rng.geometric(1 - decay, DRAWS)
    return total


def _words(where: Mapping[str, str]) -> str:
    return " and ".join(f"{name}={text}" for name, text in where.items())


RuleName = Literal["liu", "chi2", "p_values"]
RULES = ("liu", "chi2", "p_values")


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
    level: float = 0.95,
    copies_mode: str | None = None,
) -> Pooled | PooledTest | PooledModel | MeasuredShare:
    """Inference from several synthetic copies, or from the noisy answers of a release.

    Args:
        estimates: one number for each copy (an estimate, a χ² statistic or a p-value), or a release.
        variances: for rule "liu" the squared standard error of each estimate.
        rule: "liu" for estimates, "chi2" for χ² statistics, "p_values" for their p-values.
        degrees: degrees of freedom of the χ² tests.
        formula: with a release: the model to fit to every copy and pool, as "income ~ age + sex".
        family: kind of that model.
        where: with a release: the condition whose share is wanted with an interval that accounts for the noise.
        level: of the intervals.
        copies_mode: how the copies were made, if known; "resample" is refused.

    Raises:
        UsageError: if the rule does not apply, and why.
    """
    if isinstance(estimates, Release):
        return _of_release(estimates, formula, family, where, level)
    if copies_mode == "resample":
        _refuse_resampled()
    if rule not in RULES:
        raise UsageError(f"rule {rule!r}", "is not known.", nearest(rule, RULES))
    if rule == "liu":
        if variances is None:
            raise UsageError("pool", "needs the variance of each estimate.", "Give variances=.")
        return pool_liu(estimates, variances, level=level)
    if degrees is None:
        raise UsageError("pool", "needs the degrees of freedom of the tests.", "Give degrees=.")
    return pool_chi_squares(estimates, degrees) if rule == "chi2" else pool_p_values(estimates, degrees)


def _of_release(
    release: Release, formula: str | None, family: FamilyName, where: Mapping[str, str] | None, level: float
) -> PooledModel | MeasuredShare:
    if (formula is None) == (where is None):
        raise UsageError("pool", "needs either a formula or a condition for a share.", "Give formula= or where=.")
    if where is not None:
        return measured_share(release, where, level=level)
    return pool_model(release, formula or "", family, level=level)


def pool_model(release: Release, text: str, family: FamilyName = "auto", *, level: float = 0.95) -> PooledModel:
    """The model fitted to every copy of a release and pooled by Liu's rule.

    Raises:
        UsageError: if there is one copy, if the copies share their noise, or if the model cannot be fitted.
    """
    formula = checked_formula(text, family, release.schema)
    if release.config.copies < 2:
        rule = "has a single copy, from which privacy noise cannot be told apart from the estimate."
        raise UsageError("release", rule, "Synthesize with copies=5 and copies_mode=remeasure.")
    if release.config.copies_mode == "resample":
        _refuse_resampled()
    copies = [read_rows(open_for_comparison(table, release.schema), release.codec) for table in release.tables]
    reference = references(formula, copies[0])
    data = [model_data(formula, rows, reference) for rows in copies]
    number = check_outcome(formula, release.schema)
    chosen, fits, notes = fit_all(data, family, number=number, level=level)
    found = _all_fitted(fits, text)
    names = list(dict.fromkeys(name for fit in found for name in fit.estimates))
    shared = [name for name in names if all(name in fit.estimates for fit in found)]
    pooled = {
        name: pool_liu(
            [fit.estimates[name].value for fit in found], [fit.estimates[name].error ** 2 for fit in found], level=level
        )
        for name in shared
    }
    return PooledModel(text, chosen, pooled, tuple(name for name in names if name not in shared), tuple(notes))


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
