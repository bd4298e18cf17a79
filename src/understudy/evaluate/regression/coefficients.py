"""The same model on both tables, coefficient by coefficient. Several copies are pooled by Liu's rule."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from understudy.errors import UsageError
from understudy.evaluate.data.pair import Context, Pair
from understudy.evaluate.data.rows import Rows
from understudy.evaluate.pooling.liu import pool_liu
from understudy.evaluate.regression.estimates import Estimate, Family, FamilyName, fit_all
from understudy.evaluate.regression.formula import Formula, parse_formula
from understudy.evaluate.regression.matrix import check_outcome, model_data, references
from understudy.evaluate.score import Detail, Outcome, Scale, Score, Unavailable, table_of
from understudy.schema import Schema

__all__ = [
    "NO_FORMULA",
    "Compared",
    "FamilyName",
    "ModelComparison",
    "ModelMetric",
    "checked_formula",
    "coefficient_detail",
    "compare_models",
    "interval_overlap",
    "scored_models",
]

NO_FORMULA = "no formula was given"


@dataclass(frozen=True, slots=True)
class Compared:
    """A coefficient of the real table and of the synthetic one (None: it cannot be estimated there)."""

    name: str
    real: Estimate
    synthetic: Estimate | None

    @property
    def overlap(self) -> float:
        """Overlap of the intervals, negative when they lie apart; 0 if there is no synthetic estimate."""
        if self.synthetic is None:
            return 0.0
        return interval_overlap((self.real.low, self.real.high), (self.synthetic.low, self.synthetic.high))

    @property
    def standardised(self) -> float | None:
        """|difference| in standard errors of the real estimate."""
        if self.synthetic is None or self.real.error == 0:
            return None
        return abs(self.real.value - self.synthetic.value) / self.real.error

    @property
    def same_sign(self) -> bool:
        """Whether both estimates point the same way."""
        return self.synthetic is not None and (self.real.value >= 0) == (self.synthetic.value >= 0)

    @property
    def covered(self) -> bool:
        """Whether the synthetic interval covers the real estimate."""
        return self.synthetic is not None and self.synthetic.low <= self.real.value <= self.synthetic.high


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """Every coefficient of the real model, the family that was fitted, and remarks."""

    family: Family
    coefficients: tuple[Compared, ...]
    notes: tuple[str, ...]


def interval_overlap(first: tuple[float, float], second: tuple[float, float]) -> float:
    """½ [common/width of one + common/width of the other]; negative when the intervals lie apart.

    >>> interval_overlap((0, 2), (1, 5)), interval_overlap((0, 4), (1, 2))
    (0.375, 0.625)
    """
    common = min(first[1], second[1]) - max(first[0], second[0])
    widths = first[1] - first[0], second[1] - second[0]
    if min(widths) <= 0:
        return 1.0 if first == second else 0.0
    return (common / widths[0] + common / widths[1]) / 2


def checked_formula(text: str, family: FamilyName, schema: Schema) -> Formula:
    """The formula, if the family suits its outcome.

    Raises:
        UsageError: otherwise.
    """
    formula = parse_formula(text, schema)
    number = check_outcome(formula, schema)
    if number and family in ("logistic", "firth"):
        raise UsageError(f"formula {text!r}", f"has a number as outcome, which {family} cannot take.", "Use linear.")
    if not number and family == "linear":
        raise UsageError(f"formula {text!r}", "has labels as outcome.", "Use logistic or firth.")
    return formula


class ModelMetric(Protocol):
    """A metric whose options name a model."""

    @property
    def formula(self) -> str:
        """The model, "" for none."""
        ...

    @property
    def family(self) -> FamilyName:
        """Its kind."""
        ...

    @property
    def level(self) -> float:
        """Of the intervals."""
        ...

    @property
    def scales(self) -> tuple[Scale, ...]:
        """What the metric scores."""
        ...


def scored_models(
    metric: ModelMetric,
    pair: Pair,
    context: Context,
    outcomes: Callable[[ModelComparison], list[Outcome]],
    *,
    profile: bool = False,
) -> tuple[ModelComparison, tuple[Score, ...]] | Unavailable:
    """The model on both tables and its scores, each beside the same score for two halves of the real table."""
    level = metric.level
    found = compare_models(pair, pair.real, pair.copies, metric.formula, metric.family, level=level, profile=profile)
    if isinstance(found, Unavailable):
        return found
    context.done(0.5)
    halves = pair.halves
    other: ModelComparison | Unavailable
    if isinstance(halves, Unavailable):
        other = halves
    else:
        first, second = halves
        other = compare_models(pair, first, (second,), metric.formula, found.family, level=level, profile=profile)
    lines: list[Outcome] = [other] * len(metric.scales) if isinstance(other, Unavailable) else outcomes(other)
    rows = zip(metric.scales, outcomes(found), lines, strict=True)
    return found, tuple(scale.score(value, line) for scale, value, line in rows)


def compare_models(
    pair: Pair,
    real: Rows,
    copies: Sequence[Rows],
    text: str,
    family: FamilyName,
    *,
    level: float,
    profile: bool = False,
) -> ModelComparison | Unavailable:
    """The model on the real rows and on every copy."""
    if not text:
        return Unavailable(NO_FORMULA)
    formula = checked_formula(text, family, pair.schema)
    reference = references(formula, real)
    data = [model_data(formula, rows, reference) for rows in (real, *copies)]
    number = check_outcome(formula, pair.schema)
    chosen, fits, notes = fit_all(data, family, number=number, level=level, profile=profile)
    for fit, where in zip(fits, ["real table", *(f"copy {place + 1}" for place in range(len(copies)))], strict=True):
        if isinstance(fit, Unavailable):
            return Unavailable(f"{where}: {fit.reason}")
    found = [fit for fit in fits if not isinstance(fit, Unavailable)]
    ours, theirs = found[0], found[1:]
    if len(theirs) > 1 and pair.copies_mode == "resample":
        notes.append("The copies share one model's privacy noise, which their pooled intervals leave out.")
    if ours.complete < ours.rows:
        shares = ", ".join(f"{1 - one.complete / one.rows:.1%}" for one in found)
        notes.append(f"Rows without a value that can be used were left out (real, then copies: {shares}).")
    coefficients = tuple(
        Compared(name, estimate, _pooled([fit.estimates.get(name) for fit in theirs], level))
        for name, estimate in ours.estimates.items()
    )
    return ModelComparison(chosen, coefficients, tuple(notes))


def _pooled(estimates: list[Estimate | None], level: float) -> Estimate | None:
    known = [one for one in estimates if one is not None]
    if len(known) < len(estimates) or not known:
        return None
    if len(known) == 1:
        return known[0]
    pooled = pool_liu([one.value for one in known], [one.error**2 for one in known], level=level)
    return Estimate(pooled.estimate, math.sqrt(pooled.variance), pooled.low, pooled.high)


def coefficient_detail(comparison: ModelComparison) -> Detail:
    """Every coefficient with both estimates, smallest overlap first."""
    ordered = sorted(comparison.coefficients, key=lambda one: one.overlap)
    columns: dict[str, list[object]] = {"coefficient": [one.name for one in ordered]}
    for side in ("real", "synthetic"):
        fits = [one.real if side == "real" else one.synthetic for one in ordered]
        for field in ("value", "error", "low", "high"):
            columns[f"{side}_{field}"] = [None if fit is None else getattr(fit, field) for fit in fits]
    columns["overlap"] = [max(0.0, one.overlap) for one in ordered]
    columns["overlap_or_gap"] = [one.overlap for one in ordered]
    columns["standardised_difference"] = [one.standardised for one in ordered]
    columns["same_sign"] = [one.same_sign for one in ordered]
    columns["covered"] = [one.covered for one in ordered]
    kinds = {
        name: pa.string() if name == "coefficient" else pa.bool_() if name in ("same_sign", "covered") else pa.float64()
        for name in columns
    }
    return Detail("coefficients", "Coefficients in both tables, smallest overlap first.", table_of(columns, kinds))
