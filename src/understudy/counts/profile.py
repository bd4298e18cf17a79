"""How a schema reads the rows of a table: for each column, how many values are inside, outside, missing, unreadable.

What is counted
---------------
`OutcomeCodec` gives every value of a column one of four codes, by the codec that a run uses and nothing else: a label
or a number within the bounds (special values included); a number outside the bounds, or a value outside a list that has
`other`; an absent value; a value that is there and cannot be read. What a run does with the last two where it has no
code for them (`docs/schema.md`) is not repeated here: the point is to tell them apart. Of an open category every text
that could be a label is inside. Each value is looked at alone, so the codes can be asked about through the curator
like those of any other codec: a row lies in one of the four cells of a column.

Looking without paying
----------------------
`profile` counts all rows exactly, before any bound on rows per unit, and collects the *shapes* of values that meet no
label, number or date: every letter becomes an a, every digit a 9, other characters stay. What it returns is private. It
may be shown to the owner of the table, marked confidential, and goes into no file, log or exit status.

It takes memory for at most `MOST_SHAPES` shapes of a column. Beyond that, the rarer half of those found so far is
forgotten, in an order that depends on counts and shapes alone, so the same file gives the same answer; frequent shapes
survive, and their counts may then be too low.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from understudy.arrays import Bools, Ints
from understudy.codec.column import CodeArray, Layout
from understudy.codec.numbers import NumberCodec
from understudy.codec.table import TableCodec
from understudy.counts.source import CONTENT_ERRORS, PrivateTable, texts_of
from understudy.counts.streams import UNREADABLE as NOT_READ
from understudy.domain import Domain
from understudy.schema import Category, Integer, OpenCategory, PrivateBins, Schema
from understudy.schema.table_check import OUTCOMES

INSIDE, OUTSIDE, MISSING, UNREADABLE = range(len(OUTCOMES))
MOST_SHAPES = 4096
"""Shapes of a column that are held at the same time."""
SHOWN_SHAPES = 5
LONGEST_RUN, LONGEST_SHAPE, LONGEST_READ = 20, 60, 200
"""Characters: of one run in a shape, of a shape, and of a value as far as it is looked at."""
NOT_TEXT, NOT_UTF8, NOT_DECLARED = "(no text)", "(not UTF-8)", "(not as declared)"
_SHAPE_ROWS = 1 << 14
_LETTER, _DIGIT, _RUN = re.compile(r"[^\W\d_]"), re.compile(r"\d"), re.compile(rf"(.)\1{{{LONGEST_RUN},}}", re.DOTALL)
_LAYOUT = Layout(regular=2, missing=True, unreadable=True)


class OutcomeCodec(TableCodec):
    """Values → what becomes of them, for counting and for nothing else; one column of codes for each modelled column.

    It follows from the schema alone: labels of open categories and private bins are not needed.
    """

    def __init__(self, schema: Schema) -> None:
        judging = _judging(schema)
        self.__dict__.update(judging.__dict__)
        self._judging = judging
        self._tables: dict[str, CodeArray] = {}
        for name, codec in judging._codecs.items():
            if isinstance(codec, NumberCodec):
                judging._codecs[name] = codec = codec.by_bounds()
            self._tables[name] = _outcomes(codec.layout, numbers=isinstance(codec, NumberCodec))
        self._open = {column.name for column in schema.modelled if isinstance(column, OpenCategory)}
        self.domain = Domain.of(dict.fromkeys(self._tables, len(OUTCOMES)))
        self.readable = Domain.of(dict.fromkeys(self._tables, len(OUTCOMES) - 1))
        self.structural_zeros = ()
        self.taxonomies = {}
        self.leaving_out = ()

    def layout(self, name: str) -> Layout:
        """Two codes for what is read, one for missing, one for unreadable."""
        self._codec(name)
        return _LAYOUT

    def dtype(self, name: str) -> np.dtype[np.unsignedinteger]:
        """The smallest unsigned type that holds the codes."""
        return self.layout(name).dtype

    def encode(self, name: str, values: pa.Array | pa.ChunkedArray) -> CodeArray:
        """What becomes of each value; each depends on its own value alone."""
        found = np.take(self._tables[name], self._judging.encode(name, values))
        if name in self._open:
            found[(found == INSIDE) & ~_could_be_labels(values)] = UNREADABLE
        return found

    def describe(self, name: str, code: int) -> str:
        """The word for what became of a value."""
        self._codec(name)
        return OUTCOMES[code]


def _judging(schema: Schema) -> TableCodec:
    """The codec that tells absent from unreadable values, of whole columns and with nothing left to be fixed."""
    columns = tuple(replace(one, split=()) if isinstance(one, Integer) else one for one in schema.modelled)
    labels = {one.name: () for one in columns if isinstance(one, OpenCategory)}
    edges = {one.name: () for one in columns if isinstance(getattr(one, "bins", None), PrivateBins)}
    return TableCodec.of(replace(schema, columns=columns, rules=()), labels, edges, judging=True)


def _outcomes(layout: Layout, *, numbers: bool) -> CodeArray:
    """What each code of the judging codec means."""
    found = np.full(layout.size, INSIDE, dtype=_LAYOUT.dtype)
    outside = [0, layout.regular - 1] if numbers else [layout.other_code] if layout.regular else []
    for outcome, codes in (
        (OUTSIDE, outside),
        (MISSING, [layout.missing_code]),
        (UNREADABLE, [layout.unreadable_code]),
    ):
        found[[code for code in codes if code is not None]] = outcome
    return found


def _could_be_labels(values: pa.Array | pa.ChunkedArray) -> Bools:
    """Which values an open category could have as labels: short text that is UTF-8."""
    known: Bools = texts_of(values).only_labels().places >= 0
    return known


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """Exact counts of one column by outcome, in the order of OUTCOMES, and the most frequent shapes with theirs."""

    outcomes: Ints
    shapes: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """What the rows of a table hold, by column. Private."""

    rows: int
    columns: Mapping[str, ColumnProfile]


def profile(table: PrivateTable) -> Profile:
    """Exact counts over all rows of the table, batch by batch. Private and confidential: see above."""
    codec = OutcomeCodec(table.schema)
    names = codec.domain.columns
    listed = {column.name for column in table.schema.modelled if isinstance(column, Category)}
    totals = {name: np.zeros(len(OUTCOMES), np.int64) for name in names}
    shapes = {name: _Shapes() for name in names}
    count = 0
    for rows, batch in table.batches(names):
        count += rows
        for name in names:
            codes = codec.encode(name, batch[name])
            totals[name] += np.bincount(codes, minlength=len(OUTCOMES))
            odd = (codes == UNREADABLE) | (codes == OUTSIDE) if name in listed else codes == UNREADABLE
            shapes[name].add(batch[name], np.flatnonzero(odd))
    return Profile(count, {name: ColumnProfile(totals[name], shapes[name].most_frequent()) for name in names})


class _Shapes:
    """Shapes seen so far with their counts, as many as memory is set aside for."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, values: pa.Array | pa.ChunkedArray, chosen: Ints) -> None:
        """Counts the shapes of the values at these places."""
        for start in range(0, len(chosen), _SHAPE_ROWS):
            part = chosen[start : start + _SHAPE_ROWS]
            for text, times in _texts(values, part).items():
                self._counts[NOT_TEXT if text is None else _shape_of_bytes(text)] += times
            if len(self._counts) > MOST_SHAPES:
                self._counts = Counter(dict(self._sorted()[: MOST_SHAPES // 2]))

    def most_frequent(self) -> tuple[tuple[str, int], ...]:
        """The few that are shown."""
        return tuple(self._sorted()[:SHOWN_SHAPES])

    def _sorted(self) -> list[tuple[str, int]]:
        return sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))


def _texts(values: pa.Array | pa.ChunkedArray, chosen: Ints) -> Counter[bytes | None]:
    """How often each text stands at these places; None for what has no text at all."""
    try:
        texts = texts_of(values.take(pa.array(chosen)))
    except CONTENT_ERRORS:
        return Counter({None: len(chosen)})
    known = texts.places[texts.places >= 0]
    counted = texts.values.take(pa.array(known)).value_counts()
    found = Counter(dict(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True)))
    if len(known) < len(chosen):
        found[None] = len(chosen) - len(known)
    return found


def _shape_of_bytes(text: bytes) -> str:
    try:
        return shape_of(text.decode("utf-8"))
    except UnicodeDecodeError:
        return NOT_DECLARED if text == NOT_READ else NOT_UTF8


def shape_of(text: str) -> str:
    """The text with every letter an a and every digit a 9; long runs and long shapes are cut.

    >>> shape_of("Dr. Müller, 2021-05"), shape_of("x" * 500), shape_of("€ 1.234,50")
    ('aa. aaaaaa, 9999-99', 'aaaaaaaaaaaaaaaaaaaa…', '€ 9.999,99')
    """
    plain = _DIGIT.sub("9", _LETTER.sub("a", text[:LONGEST_READ]))
    short = _RUN.sub(lambda run: run[1] * LONGEST_RUN + "…", plain)
    if len(text) > LONGEST_READ and not short.endswith("…"):
        short += "…"
    return short if len(short) <= LONGEST_SHAPE else short[: LONGEST_SHAPE - 1] + "…"
