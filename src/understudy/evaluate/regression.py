"""regression and ci_overlap: would a model fitted to the synthetic table say the same as one fitted to the real table?

Linear for a number, logistic for labels, Firth's penalised logistic where plain maximum likelihood has no finite
estimate ("auto"). Copies are pooled by Liu's rule, which needs estimates and standard errors and gives Wald intervals.
There is no such rule for profile intervals, so with several copies they are refused.

Formulas
--------
"outcome ~ a + b + a:b", over columns of the schema. Terms are joined by +. `a:b` is the product of two columns, `a*b`
stands for `a + b + a:b`, `C(a)` takes a number by its bins, and `.` stands for every other column. Names with signs or
spaces are put in backquotes. `outcome[label]` names the label that counts as 1 in a logistic model.

Rows
----
Rows with a missing value in a used column are left out. A value that the schema cannot read is a level of its own in a
column that enters by levels (no synthetic row has it, so its coefficient cannot be estimated there); where a number or
an outcome is due it counts as missing.

Overlap of intervals
--------------------
J = ½ [(min U − max L)/(width of one) + (min U − max L)/(width of the other)], cut off at 0; the version that goes
negative for intervals apart from each other is reported too. 1 means equal intervals.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.stats import norm, t

from understudy.arrays import Bools, Floats
from understudy.codec.table import TableCodec
from understudy.errors import UsageError, nearest
from understudy.evaluate.glm import (
    ModelMatrix,
    Term,
    design_of,
    factor,
    fit_firth,
    fit_linear,
    fit_logistic,
    product,
    profile_interval,
    slope,
)
from understudy.evaluate.metric import (
    Context,
    Detail,
    Metric,
    Outcome,
    Result,
    Rows,
    Scale,
    Score,
    TablePair,
    Unavailable,
    refused,
    table_of,
)
from understudy.evaluate.pooling_rules import pool_liu
from understudy.options import option
from understudy.schema import Boolean, Category, OpenCategory, Schema
from understudy.schema.columns import NumberColumn


@dataclass(frozen=True, slots=True)
class TermPart:
    """A column as it enters a term: by its number, or (`by_level`) by its labels or bins."""

    column: str
    by_level: bool = False

    def __str__(self) -> str:
        return f"C({self.column})" if self.by_level else self.column


@dataclass(frozen=True, slots=True)
class Formula:
    """The outcome, the label of it that counts as 1 (or None), and the terms as products of columns."""

    text: str
    outcome: str
    event: str | None
    terms: tuple[tuple[TermPart, ...], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that takes part, the outcome first."""
        return tuple(dict.fromkeys([self.outcome, *(part.column for term in self.terms for part in term)]))


def parse_formula(text: str, schema: Schema) -> Formula:
    """The formula of a text, checked against the schema.

    Raises:
        UsageError: if the text is no formula, or names a column or label that does not exist.
    """
    left, tilde, right = _halves(text)
    if not tilde:
        raise UsageError(
            f"formula {text!r}", 'needs a "~" between outcome and terms.', 'For example "income ~ age + sex".'
        )
    outcome, event = _outcome(left, text, schema)
    terms: list[tuple[TermPart, ...]] = []
    for piece in _split(right, "+"):
        for term in _term(piece, text, schema, outcome):
            if term not in terms:
                terms.append(term)
    if not terms:
        raise UsageError(f"formula {text!r}", "has no terms.", 'For example "income ~ age + sex".')
    return Formula(text, outcome, event, tuple(terms))


def _halves(text: str) -> tuple[str, str, str]:
    for place, letter in _outside(text):
        if letter == "~":
            return text[:place], "~", text[place + 1 :]
    return text, "", ""


def _outside(text: str) -> list[tuple[int, str]]:
    """Places and letters that are not inside backquotes or brackets."""
    found = []
    quoted, depth = False, 0
    for place, letter in enumerate(text):
        if letter == "`":
            quoted = not quoted
        elif not quoted and letter in "[(":
            depth += 1
        elif not quoted and letter in "])":
            depth -= 1
        elif not quoted and depth == 0:
            found.append((place, letter))
    return found


def _split(text: str, sign: str) -> list[str]:
    places = [place for place, letter in _outside(text) if letter == sign]
    ends = [*places, len(text)]
    starts = [0, *(place + 1 for place in places)]
    return [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]


def _outcome(left: str, text: str, schema: Schema) -> tuple[str, str | None]:
    name = left.strip()
    event: str | None = None
    if name.endswith("]") and "[" in name:
        start = name.rindex("[")
        name, event = name[:start].strip(), name[start + 1 : -1]
    column = _named(name, text, schema)
    if event is not None:
        _check_event(column, event, text, schema)
    return column, event


def _check_event(name: str, event: str, text: str, schema: Schema) -> None:
    column = schema.column(name)
    if isinstance(column, OpenCategory):
        return
    known: tuple[str, ...] = ()
    if isinstance(column, Category):
        known = column.labels if column.other is None else (*column.labels, column.other)
    elif isinstance(column, Boolean):
        known = ("false", "true")
    if event not in known:
        rule = f"column {name!r} has no label {event!r}."
        raise UsageError(f"formula {text!r}", rule, nearest(event, known) if known else "It holds numbers.")


def _term(piece: str, text: str, schema: Schema, outcome: str) -> list[tuple[TermPart, ...]]:
    if piece == ".":
        return [(TermPart(column.name),) for column in schema.modelled if column.name != outcome]
    factors = [_product(one, text, schema) for one in _split(piece, "*")]
    terms = [factors[0]]
    for one in factors[1:]:
        terms += [one, *(_joined(term, one) for term in list(terms))]
    for term in terms:
        if any(part.column == outcome for part in term):
            raise UsageError(f"formula {text!r}", f"has the outcome {outcome!r} among its terms.", "Remove it there.")
    return sorted(terms, key=len)


def _joined(first: tuple[TermPart, ...], second: tuple[TermPart, ...]) -> tuple[TermPart, ...]:
    return tuple(dict.fromkeys([*first, *second]))


def _product(piece: str, text: str, schema: Schema) -> tuple[TermPart, ...]:
    return tuple(dict.fromkeys(_part(one, text, schema) for one in _split(piece, ":")))


def _part(piece: str, text: str, schema: Schema) -> TermPart:
    if piece.startswith("C(") and piece.endswith(")"):
        return TermPart(_named(piece[2:-1].strip(), text, schema), by_level=True)
    return TermPart(_named(piece, text, schema))


def _named(name: str, text: str, schema: Schema) -> str:
    plain = name[1:-1] if len(name) > 1 and name.startswith("`") and name.endswith("`") else name
    known = [column.name for column in schema.modelled]
    if not plain:
        raise UsageError(f"formula {text!r}", "has an empty term.", 'For example "income ~ age + sex".')
    if plain not in known:
        raise UsageError(f"formula {text!r}", f"{plain!r} is not a column.", nearest(plain, known))
    return plain


@dataclass(frozen=True, slots=True, eq=False)
class ModelData:
    """The matrix, the outcomes, and how many rows were complete, out of how many."""

    design: ModelMatrix
    outcomes: Floats
    complete: int
    rows: int


def check_outcome(formula: Formula, schema: Schema) -> bool:
    """Whether the outcome is a number (else it is an indicator of the event).

    Raises:
        UsageError: when an outcome with labels does not say which one counts as 1.
    """
    column = schema.column(formula.outcome)
    if isinstance(column, NumberColumn) and formula.event is None:
        return True
    two = isinstance(column, Boolean) or (isinstance(column, Category) and len(column.labels) == 2 and not column.other)
    if formula.event is None and not two:
        rule = f"{formula.outcome!r} has more than two labels."
        raise UsageError(f"formula {formula.text!r}", rule, f"Say which counts as 1: {formula.outcome}[label] ~ …")
    return False


def references(formula: Formula, rows: Rows) -> dict[str, int]:
    """For each column that enters by levels, the first level that occurs among complete rows."""
    kept = _complete(formula, rows)
    found = {}
    for part in _parts(formula):
        if by_levels(part, rows):
            codes = rows.codes[code_column(part.column, rows.codec)][kept]
            found[part.column] = int(codes.min()) if len(codes) else 0
    return found


def model_data(formula: Formula, rows: Rows, reference: dict[str, int]) -> ModelData:
    """The model matrix of the complete rows."""
    kept = _complete(formula, rows)
    index = np.flatnonzero(kept)
    elementary: dict[TermPart, Term] = {part: _term_of_part(part, rows, index, reference) for part in _parts(formula)}
    terms = []
    for parts in formula.terms:
        term = elementary[parts[0]]
        for part in parts[1:]:
            term = product(term, elementary[part])
        if term.names:
            terms.append(term)
    return ModelData(design_of(terms, len(index)), _outcomes(formula, rows)[index], len(index), rows.count)


def _parts(formula: Formula) -> list[TermPart]:
    return list(dict.fromkeys(part for term in formula.terms for part in term))


def by_levels(part: TermPart, rows: Rows) -> bool:
    """Whether a column enters by its labels or bins."""
    return part.by_level or not isinstance(rows.codec.schema.column(part.column), NumberColumn)


def code_column(name: str, codec: TableCodec) -> str:
    """The (first) column of codes of a column."""
    return next(part for part in codec.domain.columns if codec.origin(part) == name)


def _known(name: str, rows: Rows, *, by_level: bool, outcome: bool = False) -> Bools:
    column = rows.codec.schema.column(name)
    if isinstance(column, NumberColumn) and not by_level:
        return ~np.isnan(rows.numbers[name])
    part = code_column(name, rows.codec)
    layout = rows.codec.layout(part)
    absent = [layout.missing_code, layout.unreadable_code if outcome else None]
    return ~np.isin(rows.codes[part], [code for code in absent if code is not None])


def _complete(formula: Formula, rows: Rows) -> Bools:
    by_level = formula.event is not None
    kept = _known(formula.outcome, rows, by_level=by_level, outcome=True)
    for part in _parts(formula):
        kept = kept & _known(part.column, rows, by_level=part.by_level)
    return kept


def _term_of_part(part: TermPart, rows: Rows, index: npt.NDArray[np.int64], reference: dict[str, int]) -> Term:
    if not by_levels(part, rows):
        return slope(part.column, rows.numbers[part.column][index])
    name = code_column(part.column, rows.codec)
    labels = [f"{name}={rows.codec.describe(name, code)}" for code in range(rows.domain.sizes[name])]
    return factor(labels, rows.codes[name][index], reference=reference[part.column])


def _outcomes(formula: Formula, rows: Rows) -> Floats:
    column = rows.codec.schema.column(formula.outcome)
    if isinstance(column, NumberColumn) and formula.event is None:
        return rows.numbers[formula.outcome]
    name = code_column(formula.outcome, rows.codec)
    if formula.event is None:
        return np.asarray(rows.codes[name] == 1, np.float64)
    codes = rows.codec.codes_matching(name, formula.event)
    return np.asarray(np.isin(rows.codes[name], codes), np.float64)


Family = Literal["linear", "logistic", "firth"]
FamilyName = Literal["auto", "linear", "logistic", "firth"]

MOST_COEFFICIENTS = 1000


@dataclass(frozen=True, slots=True)
class Estimate:
    """One coefficient with its standard error and interval."""

    value: float
    error: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class FittedCoefficients:
    """The coefficients that could be estimated, by name; `runaway` says that some have no finite estimate."""

    estimates: dict[str, Estimate]
    complete: int
    rows: int
    runaway: bool = False


def fit_model(
    data: ModelData, family: Family, *, level: float = 0.95, profile: bool = False
) -> FittedCoefficients | Unavailable:
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
                return Unavailable("the outcome is perfectly separated, so there is no finite estimate")
            values, kept, covariance = logistic.coefficients, logistic.kept, found
            runaway = logistic.runaway or logistic.ridge > 0
        else:
            firth = fit_firth(design, outcomes)
            values, kept, covariance = firth.coefficients, firth.kept, firth.covariance
            if profile:
                return FittedCoefficients(_profiled(data, level), data.complete, data.rows)
    reach = float(norm.ppf((1 + level) / 2) if degrees is None else t.ppf((1 + level) / 2, degrees))
    estimates = _wald(design.names, values, kept, covariance, reach)
    return FittedCoefficients(estimates, data.complete, data.rows, runaway)


def fit_all(
    tables: Sequence[ModelData], family: FamilyName, *, number: bool, level: float = 0.95, profile: bool = False
) -> tuple[Family, list[FittedCoefficients | Unavailable], list[str]]:
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


@dataclass(frozen=True, slots=True)
class ModelMetric(Metric):
    """A metric whose options name a model."""

    formula: str = option("", help='the model, such as "income ~ age + sex"')
    family: FamilyName = option("auto", help="kind of model")
    level: float = option(0.95, help="confidence level of the intervals")

    def check(self, schema: Schema) -> None:
        """Raises when the formula does not fit the schema."""
        if self.formula:
            checked_formula(self.formula, self.family, schema)


def scored_models(
    metric: ModelMetric,
    pair: TablePair,
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
    independent = compare_models(
        pair, pair.real, (pair.independent,), metric.formula, found.family, level=level, profile=profile
    )
    bottoms = [None] * len(lines) if isinstance(independent, Unavailable) else outcomes(independent)
    rows = zip(metric.scales, outcomes(found), lines, bottoms, strict=True)
    return found, tuple(scale.score(value, line, bottom) for scale, value, line, bottom in rows)


def compare_models(
    pair: TablePair,
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
        for number in ("value", "error", "low", "high"):
            columns[f"{side}_{number}"] = [None if fit is None else getattr(fit, number) for fit in fits]
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


@dataclass(frozen=True, slots=True)
class Regression(ModelMetric):
    """Coefficients of a model the user names."""

    name: ClassVar[str] = "regression"
    question: ClassVar[str] = "Would a regression give the same coefficients?"
    scales: ClassVar[tuple[Scale, ...]] = (
        Scale("mean_difference", "mean |difference of coefficients| in standard errors of the real one", highest=None),
        Scale("worst_difference", "largest such difference", highest=None),
        Scale("same_sign", "share of coefficients with the same sign", "higher", 0.0, 1.0, 1.0),
        Scale("covered", "share of real coefficients inside the synthetic interval", "higher", 0.0, 1.0, 1.0),
    )

    def compare(self, pair: TablePair, context: Context) -> Result:
        """Differences, signs and coverage of the coefficients."""
        compared = scored_models(self, pair, context, _gap_scores)
        if isinstance(compared, Unavailable):
            return refused(self, compared.reason)
        found, scores = compared
        notes = [f"Model: {self.formula} ({found.family}).", *found.notes]
        lost = sum(one.synthetic is None for one in found.coefficients)
        if lost:
            notes.append(f"{lost} coefficients cannot be estimated from the synthetic rows.")
        return Result(self.name, self.question, scores, (coefficient_detail(found),), tuple(notes))


def _gap_scores(comparison: ModelComparison) -> list[Outcome]:
    coefficients = comparison.coefficients
    gaps = [one.standardised for one in coefficients]
    known = [gap for gap in gaps if gap is not None]
    nothing = Unavailable("no coefficient can be estimated with an error in both tables")
    mean: Outcome = math.fsum(known) / len(known) if known else nothing
    return [mean, max(known) if known else nothing, _share(coefficients, "same_sign"), _share(coefficients, "covered")]


def _share(coefficients: tuple[Compared, ...], what: str) -> float:
    return sum(bool(getattr(one, what)) for one in coefficients) / len(coefficients)


NO_PROFILE = (
    "profile intervals of several copies cannot be pooled, because the rule pools estimates and standard errors; "
    "use interval=wald, or compare one copy"
)


@dataclass(frozen=True, slots=True)
class IntervalOverlap(ModelMetric):
    """Overlap of confidence intervals of a model the user names."""

    name: ClassVar[str] = "ci_overlap"
    question: ClassVar[str] = "Would the confidence intervals of a regression overlap?"
    scales: ClassVar[tuple[Scale, ...]] = (
        Scale("mean_overlap", "mean overlap of the intervals, cut off at 0", "higher", 0.0, 1.0, 1.0),
        Scale("worst_overlap", "smallest overlap, cut off at 0", "higher", 0.0, 1.0, 1.0),
        Scale("mean_with_gaps", "mean overlap, negative for intervals that lie apart", "higher", None, 1.0, 1.0),
    )

    interval: Literal["wald", "profile"] = option(
        "wald", help="kind of interval; profile: for Firth's model and a single copy"
    )

    def _check_together(self) -> None:
        if self.interval == "profile" and self.family != "firth":
            raise UsageError("ci_overlap: interval", "profile is available for family firth only.", "Set family=firth.")

    def compare(self, pair: TablePair, context: Context) -> Result:
        """Mean and smallest overlap."""
        if self.interval == "profile" and len(pair.copies) > 1:
            return refused(self, NO_PROFILE)
        compared = scored_models(self, pair, context, _overlap_scores, profile=self.interval == "profile")
        if isinstance(compared, Unavailable):
            return refused(self, compared.reason)
        found, scores = compared
        kind = "Wald" if self.interval == "wald" else "profile"
        notes = (f"Model: {self.formula} ({found.family}), {100 * self.level:g} % {kind} intervals.",)
        return Result(self.name, self.question, scores, (coefficient_detail(found),), notes + found.notes)


def _overlap_scores(comparison: ModelComparison) -> list[Outcome]:
    raw = [one.overlap for one in comparison.coefficients]
    cut = [max(0.0, one) for one in raw]
    return [math.fsum(cut) / len(cut), min(cut), math.fsum(raw) / len(raw)]
