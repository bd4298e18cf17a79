"""What the challenge's scorer sees of a column: a code, or one of 100 buckets for a number.

Two rules, because the matches had two kinds of specification.

match3: every column holds whole numbers from 0 to the largest code of the challenge's own specification, amounts of
money included: a wage of 1,500 and one of 1,501 are as different as two cities. A code of the submission beyond the
largest one is out of range and agrees with nothing.

buckets (Matches 1 and 2): labels are codes 0, 1, 2, … in the order of the schema (then "other" and missing, if the
schema has them); numbers, dates and times fall into 100 buckets of equal width between their public bounds.
"""

import functools
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Literal, cast

import numpy as np
import numpy.typing as npt

from understudy.codec.axis import axis_of
from understudy.errors import UsageError
from understudy.evaluate.data.rows import Rows
from understudy.evaluate.data.unread import declared_size
from understudy.schema import Schema, code_names
from understudy.schema.column import NumberColumn

__all__ = [
    "BUCKETS",
    "CodeView",
    "NumberView",
    "Rule",
    "RuleName",
    "bucket_codes",
    "challenge_columns",
    "column_view",
    "densities",
    "match3_largest",
    "paired_cells",
    "rule_for",
]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Rule = Literal["match3", "buckets"]
RuleName = Literal["auto", "match3", "buckets"]

BUCKETS = 100
MOST_DENSE_CELLS = 1 << 22
STRETCH = 1.0001
OUT_OF_RANGE = BUCKETS
NOT_A_CODE = -1
"""Of a value that is no whole number of 0 or more, such as a missing one."""
NOT_ALLOWED = -2
"""Of a code of the submission that the specification does not allow; no row of the original has it."""
UNREAD = -3
"""Of a value of the original that the schema cannot read."""


@dataclass(frozen=True, slots=True, eq=False)
class NumberView:
    """A number column: its public bounds, its values, and the code of each value that is no number (else −1)."""

    lower: float
    upper: float
    values: Floats
    states: Ints


@dataclass(frozen=True, slots=True, eq=False)
class CodeView:
    """A column of codes: row r holds the code `levels[places[r]]`, and random codes are drawn from 0 to `largest`."""

    levels: Ints
    places: npt.NDArray[np.integer]
    largest: int

    def at(self, row: int) -> int:
        """The code of one row."""
        return int(self.levels[self.places[row]])


@functools.cache
def match3_largest() -> Mapping[str, int]:
    """The 98 columns of Match 3 in their order, with the largest code of each, from its public specification."""
    text = resources.files(__package__).joinpath("match_three_codes.json").read_text(encoding="utf-8")
    return cast(Mapping[str, int], json.loads(text))


def rule_for(schema: Schema, name: RuleName) -> Rule:
    """The rule that is meant: auto is match3 for a table with all 98 columns of Match 3 and no other.

    Raises:
        UsageError: if match3 is asked for and a column is not one of them.
    """
    modelled = {column.name for column in schema.modelled}
    foreign = sorted(modelled - set(match3_largest()))
    if name == "match3" and foreign:
        raise UsageError("nist: rule", f"match3 has no column {foreign[0]!r}.", "Use rule=buckets.")
    if name != "auto":
        return name
    return "match3" if modelled == set(match3_largest()) else "buckets"


def challenge_columns(rows: Rows) -> tuple[str, ...]:
    """The columns of the table, in schema order."""
    return tuple(dict.fromkeys(rows.codec.origin(part) for part in rows.domain.columns))


def column_view(rows: Rows, name: str, rule: Rule = "buckets") -> CodeView | NumberView:
    """The column as the scorer sees it."""
    column = rows.codec.schema.column(name)
    if rule == "match3":
        largest = match3_largest()[name]
        if isinstance(column, NumberColumn):
            part = code_names(column)[0]
            codes = np.where(rows.codes[part] == _unread_code(rows, part), UNREAD, _whole(rows.raw(name)))
            known, places = np.unique(codes, return_inverse=True)
            return CodeView(known, places.ravel(), largest)
        words = [_code(rows.codec.describe(name, code)) for code in range(rows.domain.sizes[name])]
        if _unread_code(rows, name) >= 0:
            words[_unread_code(rows, name)] = UNREAD
        return CodeView(np.asarray(words, np.int64), rows.codes[name], largest)
    if isinstance(column, NumberColumn):
        axis = axis_of(column)
        values = rows.numbers[name]
        part = code_names(column)[0]
        states = np.where(np.isnan(values), rows.codes[part].astype(np.int64), -1)
        return NumberView(float(axis.lower), float(axis.upper), values, states)
    return CodeView(np.arange(rows.domain.sizes[name]), rows.codes[name], declared_size(rows.codec, name) - 1)


def _unread_code(rows: Rows, part: str) -> int:
    code = rows.codec.layout(part).unreadable_code
    return -1 if code is None else code


def _whole(numbers: Floats) -> Ints:
    known = (numbers >= 0) & (numbers == np.floor(numbers)) & (numbers < 2**53)
    return np.where(known, np.where(known, numbers, 0.0), NOT_A_CODE).astype(np.int64)


def _code(word: str) -> int:
    return int(word) if word.isascii() and word.isdigit() and len(word) < 16 else NOT_A_CODE


def bucket_codes(view: NumberView) -> Ints:
    """⌊(v − min)/w⌋ with w = 1.0001·(max − min)/100; beyond 0 … 99 one code; empty and special values one each."""
    width = STRETCH * (view.upper - view.lower) / BUCKETS
    numbers = np.where(view.states >= 0, view.lower, view.values)
    buckets = np.floor((numbers - view.lower) / width) if width > 0 else np.zeros(len(numbers))
    inside = (buckets >= 0) & (buckets < BUCKETS)
    codes: Ints = np.where(inside, buckets, OUT_OF_RANGE).astype(np.int64)
    return np.where(view.states >= 0, OUT_OF_RANGE + 1 + view.states, codes)


def paired_cells(original: Rows, submission: Rows, name: str, rule: Rule = "buckets") -> tuple[Ints, Ints]:
    """The cell of each row of both tables in one column, numbered 0, 1, 2, … together."""
    ours, theirs = column_view(original, name, rule), column_view(submission, name, rule)
    if isinstance(ours, NumberView) or isinstance(theirs, NumberView):
        assert isinstance(ours, NumberView)
        assert isinstance(theirs, NumberView)
        return bucket_codes(ours), bucket_codes(theirs)
    levels = theirs.levels
    if rule == "match3":
        levels = np.where((levels > theirs.largest) | (levels < NOT_A_CODE), NOT_ALLOWED, levels)
    known = np.unique(np.concatenate([ours.levels, levels]))
    return np.searchsorted(known, ours.levels)[ours.places], np.searchsorted(known, levels)[theirs.places]


def densities(columns: Sequence[str], cells: Mapping[str, tuple[Ints, Ints]]) -> list[Floats]:
    """Shares of the cells of these columns in both tables, over all cells that occur in one of them."""
    sizes = [max(int(codes.max()) for codes in cells[name]) + 1 for name in columns]
    indices = []
    for place in range(2):
        index = np.zeros(len(cells[columns[0]][place]), np.int64)
        for name, size in zip(columns, sizes, strict=True):
            index = index * size + cells[name][place]
        indices.append(index)
    number = math.prod(sizes)
    if number <= min(MOST_DENSE_CELLS, 8 * sum(len(index) for index in indices)):
        return [np.bincount(index, minlength=number) / len(index) for index in indices]
    _, places = np.unique(np.concatenate(indices), return_inverse=True)
    bounds = np.cumsum([0, *(len(index) for index in indices)]).tolist()
    spans = itertools.pairwise(bounds)
    return [np.bincount(places[low:high], minlength=int(places.max()) + 1) / (high - low) for low, high in spans]
