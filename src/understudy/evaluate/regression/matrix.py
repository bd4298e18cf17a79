"""From a formula and rows to a model matrix and outcomes. Rows with a missing value in a used column are left out.

A value that the schema cannot read is a level of its own in a column that enters by levels (no synthetic row has it, so
its coefficient cannot be estimated there); where a number or an outcome is due it counts as missing.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.errors import UsageError
from understudy.evaluate.data.rows import Rows
from understudy.evaluate.models.design import Design, design_of
from understudy.evaluate.models.terms import Term, factor, product, slope
from understudy.evaluate.regression.formula import Formula, Part
from understudy.schema import Boolean, Category, Schema
from understudy.schema.column import NumberColumn

__all__ = ["ModelData", "check_outcome", "model_data", "references"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class ModelData:
    """The matrix, the outcomes, and how many rows were complete, out of how many."""

    design: Design
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
        if _by_level(part, rows):
            codes = rows.codes[_code_column(part.column, rows)][kept]
            found[part.column] = int(codes.min()) if len(codes) else 0
    return found


def model_data(formula: Formula, rows: Rows, reference: dict[str, int]) -> ModelData:
    """The model matrix of the complete rows."""
    kept = _complete(formula, rows)
    index = np.flatnonzero(kept)
    elementary: dict[Part, Term] = {part: _term(part, rows, index, reference) for part in _parts(formula)}
    terms = []
    for parts in formula.terms:
        term = elementary[parts[0]]
        for part in parts[1:]:
            term = product(term, elementary[part])
        if term.names:
            terms.append(term)
    return ModelData(design_of(terms, len(index)), _outcomes(formula, rows)[index], len(index), rows.count)


def _parts(formula: Formula) -> list[Part]:
    return list(dict.fromkeys(part for term in formula.terms for part in term))


def _by_level(part: Part, rows: Rows) -> bool:
    return part.by_level or not isinstance(rows.codec.schema.column(part.column), NumberColumn)


def _code_column(name: str, rows: Rows) -> str:
    return next(part for part in rows.domain.columns if rows.codec.origin(part) == name)


def _known(name: str, rows: Rows, *, by_level: bool, outcome: bool = False) -> Bools:
    column = rows.codec.schema.column(name)
    if isinstance(column, NumberColumn) and not by_level:
        return ~np.isnan(rows.numbers[name])
    part = _code_column(name, rows)
    layout = rows.codec.layout(part)
    absent = [layout.missing_code, layout.unreadable_code if outcome else None]
    return ~np.isin(rows.codes[part], [code for code in absent if code is not None])


def _complete(formula: Formula, rows: Rows) -> Bools:
    by_level = formula.event is not None
    kept = _known(formula.outcome, rows, by_level=by_level, outcome=True)
    for part in _parts(formula):
        kept = kept & _known(part.column, rows, by_level=part.by_level)
    return kept


def _term(part: Part, rows: Rows, index: npt.NDArray[np.int64], reference: dict[str, int]) -> Term:
    if not _by_level(part, rows):
        return slope(part.column, rows.numbers[part.column][index])
    name = _code_column(part.column, rows)
    labels = [f"{name}={rows.codec.describe(name, code)}" for code in range(rows.domain.sizes[name])]
    return factor(labels, rows.codes[name][index], reference=reference[part.column])


def _outcomes(formula: Formula, rows: Rows) -> Floats:
    column = rows.codec.schema.column(formula.outcome)
    if isinstance(column, NumberColumn) and formula.event is None:
        return rows.numbers[formula.outcome]
    name = _code_column(formula.outcome, rows)
    if formula.event is None:
        return np.asarray(rows.codes[name] == 1, np.float64)
    codes = rows.codec.codes_matching(name, formula.event)
    return np.asarray(np.isin(rows.codes[name], codes), np.float64)
