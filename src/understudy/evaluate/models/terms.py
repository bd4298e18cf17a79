"""Terms: the building blocks of a model matrix, stored as one level and at most one value per row.

A factor of ten thousand levels costs as much as one of two, because no dummy column is ever written out. Products of
terms are terms again, so interactions need nothing new.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.codec.table_codec import TableCodec
from understudy.evaluate.data.rows import Rows
from understudy.schema.column import NumberColumn

__all__ = ["Term", "column_terms", "factor", "product", "propensity_terms", "slope"]

Levels = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """Columns of a model matrix of which each row has at most one that is not zero.

    `level` says which (−1: none, the row is at the reference), `value` what stands there (None: 1).
    """

    names: tuple[str, ...]
    level: Levels
    value: Floats | None = None


def factor(names: Sequence[str], codes: npt.NDArray[np.integer], reference: int | None = None) -> Term:
    """Indicators of every code that occurs but the reference (the first that occurs when not given)."""
    present = np.flatnonzero(np.bincount(codes, minlength=len(names)))
    if reference is None:
        reference = int(present[0]) if len(present) else 0
    kept = present[present != reference]
    table = np.full(len(names), -1, np.int32)
    table[kept] = np.arange(len(kept), dtype=np.int32)
    return Term(tuple(names[code] for code in kept.tolist()), table[codes])


def slope(name: str, values: Floats) -> Term:
    """One numeric column."""
    return Term((name,), np.zeros(len(values), np.int32), values)


def product(first: Term, second: Term) -> Term:
    """The interaction: every product of a column of one with a column of the other that occurs in some row."""
    width = len(second.names)
    both = (first.level >= 0) & (second.level >= 0)
    joint = np.where(both, first.level.astype(np.int64) * width + second.level, -1)
    present = np.unique(joint[both])
    level = np.full(len(joint), -1, np.int32)
    level[both] = np.searchsorted(present, joint[both]).astype(np.int32)
    names = tuple(f"{first.names[place // width]}:{second.names[place % width]}" for place in present.tolist())
    values = [value for value in (first.value, second.value) if value is not None]
    return Term(names, level, None if not values else values[0] if len(values) == 1 else values[0] * values[1])


def column_terms(rows: Rows, name: str) -> list[Term]:
    """The terms of one column of the table for telling tables apart.

    A number gets a standardised slope, with 0 where it is missing or special, and an indicator for each of those
    states. Everything else is a factor in which missing is a level like any other.
    """
    codec = rows.codec
    parts = [part for part in codec.domain.columns if codec.origin(part) == name]
    if not isinstance(codec.schema.column(name), NumberColumn):
        return [factor(_labels(codec, part), rows.codes[part]) for part in parts]
    numbers = rows.numbers[name]
    odd = np.isnan(numbers)
    known = numbers[~odd]
    spread = float(known.std()) if len(known) else 0.0
    terms = []
    if spread > 0:
        terms.append(slope(name, np.where(odd, 0.0, (numbers - known.mean()) / spread)))
    states = np.where(odd, rows.codes[parts[0]].astype(np.int64) + 1, 0)
    if odd.any():
        terms.append(factor(["number", *_labels(codec, parts[0])], states, reference=0))
    return [term for term in terms if term.names]


def propensity_terms(rows: Rows, *, interactions: bool) -> list[Term]:
    """Main effects of every column, and if wanted all products of two columns."""
    names = list(dict.fromkeys(rows.codec.origin(part) for part in rows.domain.columns))
    by_column = [column_terms(rows, name) for name in names]
    terms = [term for found in by_column for term in found if term.names]
    if interactions:
        for place, first in enumerate(by_column):
            for second in by_column[place + 1 :]:
                terms += [product(one, other) for one in first for other in second]
    return [term for term in terms if term.names]


def _labels(codec: TableCodec, part: str) -> list[str]:
    return [f"{part}={codec.describe(part, code)}" for code in range(codec.domain.sizes[part])]
