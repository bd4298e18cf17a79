"""Metric: two tables in, scores out, each with direction, range and yardstick, or the reason why there is no number.

A metric is a frozen dataclass whose fields are its options; it sees the real table and its stand-in (one or several
copies) as a `TablePair`, under one codec. Every random choice of an evaluation follows from the seed, the metric's name
and the step, so that a metric gives the same numbers whichever other metrics run beside it.

One codec for both tables
-------------------------
Where the schema leaves labels or bins open and no release has fixed them, they are taken from the real table. That is
no leak here: a comparison is confidential anyway. With or without a release the codec is one for judging: what the
schema cannot read has a code of its own, which a release never writes.

Rows
----
Rows are sorted by a public hash of their own content. Halves, folds and permutations drawn with a seed are then the
same whatever the order of rows or columns in the file. Unit bounds are not applied: the comparison is with the
whole table, so that what a bound cost shows.

Counts
------
Tables are counted batch by batch, so that thousands of them fit in memory. Cells that are empty in every table say
nothing to a distance, so tables too large to hold are counted over the cells that occur in at least one of them.

What cannot be read
-------------------
Tables are judged as their files have them. A value that is there and that the schema cannot read (a label that is not
in the list, text where a number is due) counts as a difference in every metric, and is told before any score, because
no score can mend it. A number beyond the bounds is judged as part of the end bin, as the schema reads it, so its share
is all that shows. Shares are of the values that are there, missing ones apart.

Metrics of other packages
-------------------------
Another package adds a metric by an entry point in the group `understudy.metrics` that points to a subclass of `Metric`.
Such a metric runs when it is asked for by name; without names an evaluation runs the built-in ones.
"""

import abc
import dataclasses
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from understudy.arrays import Floats, Integers, Ints, Unsigned
from understudy.codec.axes import Axis, axis_of, special_of
from understudy.codec.column import CodeArray
from understudy.codec.reading import is_text, plain
from understudy.codec.table import TableCodec
from understudy.counts.kernels import Cover, TableCounter, cover_for, flat_index, hash_rows, projected
from understudy.counts.opening import open_table
from understudy.counts.source import PrivateTable
from understudy.domain import Clique, Domain
from understudy.errors import UsageError, nearest
from understudy.options import Catalogue, Option, Registry, WithOptions, described
from understudy.progress import Progress, silent
from understudy.schema import Boolean, Category, OpenCategory, PrivateBins, Schema, Unit, code_names
from understudy.schema.columns import NumberColumn

_CONTENT_ERRORS = (pa.ArrowException, ValueError, TypeError, OverflowError, ArithmeticError, NotImplementedError)


def read_numbers(column: NumberColumn, values: pa.Array | pa.ChunkedArray) -> tuple[Floats, Floats]:
    """Each value on the column's axis (days for dates, seconds for times), twice: as the codec reads it, and raw.

    The first is clamped to the bounds, and NaN where the value is missing, special or unreadable. The second is the
    number that the file holds, special ones and those beyond the bounds included; NaN where it holds none.
    """
    axis, special = axis_of(column), np.asarray(special_of(column), dtype=np.float64)
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    parts = [_read_safely(axis, special, chunk) for chunk in chunks]
    both = np.concatenate([np.empty((2, 0)), *parts], axis=1)
    return both[0], both[1]


def _read_safely(axis: Axis, special: Floats, array: pa.Array, *, distinct: bool = False) -> Floats:
    """Where Arrow stumbles over a value, only that value is unreadable."""
    try:
        return _read_plain(axis, special, plain(array)) if distinct else _read(axis, special, array)
    except _CONTENT_ERRORS:
        if len(array) <= 1:
            return np.full((2, len(array)), np.nan)
        middle = len(array) // 2
        halves = (array.slice(0, middle), array.slice(middle))
        return np.concatenate([_read_safely(axis, special, half, distinct=distinct) for half in halves], axis=1)


def _read(axis: Axis, special: Floats, array: pa.Array) -> Floats:
    """What is read through its text is read once for each distinct value."""
    array = plain(array)
    if pa.types.is_null(array.type):
        return np.full((2, len(array)), np.nan)
    if is_text(array.type) or pa.types.is_decimal(array.type) or pa.types.is_float32(array.type):
        array = array.dictionary_encode()
    if not pa.types.is_dictionary(array.type):
        return _read_plain(axis, special, array)
    known = _read_safely(axis, special, array.dictionary, distinct=True)
    table = np.append(known, np.full((2, 1), np.nan), axis=1)
    indices = pc.fill_null(array.indices.cast(pa.int64()), table.shape[1] - 1)
    found: Floats = np.take(table, indices.to_numpy(zero_copy_only=False), axis=1, mode="clip")
    return found


def _read_plain(axis: Axis, special: Floats, array: pa.Array) -> Floats:
    reading = axis.read(array)
    numbers = reading.values.astype(np.float64)
    regular = reading.valid & ~(np.isin(numbers, special) & reading.exact)
    clamped = np.clip(numbers, float(axis.lower), float(axis.upper))
    return np.stack([np.where(regular, clamped, np.nan), np.where(reading.valid, numbers, np.nan)])


def judging_codec(released: TableCodec) -> TableCodec:
    """The codec by which a release is judged: its labels and bins, and every rare label by itself."""
    return TableCodec.of(released.schema, released.labels, released.edges, judging=True)


def fixed_codec(real: PrivateTable, schema: Schema) -> TableCodec:
    """The codec of a schema; what it leaves open (labels, private bins) is taken from the real table."""
    labels = {column.name: _labels(real, column) for column in schema.modelled if isinstance(column, OpenCategory)}
    edges = {
        column.name: _edges(real, column)
        for column in schema.modelled
        if isinstance(column, NumberColumn) and isinstance(column.bins, PrivateBins)
    }
    return TableCodec.of(schema, labels, edges, judging=True)


def _labels(real: PrivateTable, column: OpenCategory) -> list[str]:
    found = real.label_counts(column.name)
    order = np.lexsort((np.asarray(found.labels, dtype=object), -found.counts))
    return sorted(found.labels[place] for place in order[: column.most_labels].tolist())


def _edges(real: PrivateTable, column: NumberColumn) -> list[int] | list[float]:
    """Quantiles of the real numbers, as many as the schema allows bins, between the public bounds."""
    assert isinstance(column.bins, PrivateBins)
    axis = axis_of(column)
    numbers = np.concatenate(
        [np.empty(0), *(read_numbers(column, batch[column.name])[0] for _, batch in real.batches([column.name]))]
    )
    known = numbers[~np.isnan(numbers)]
    shares = np.linspace(0, 1, column.bins.count + 1)[1:-1]
    inner = np.quantile(known, shares, method="inverted_cdf") if len(known) else np.empty(0)
    places = [place for place in np.unique(inner).tolist() if axis.lower < place < axis.upper]
    if isinstance(axis.lower, float):
        return [axis.lower, *places, axis.upper]
    return [int(axis.lower), *(int(place) for place in places), int(axis.upper) + 1]


_ORDER_KEY = 0x5EED


@dataclass(frozen=True, eq=False)
class Rows:
    """Codes of every column of codes, and numbers of every number column (NaN where missing or special).

    `unclamped` holds the numbers of the file itself, special ones and those beyond the bounds included, of the columns
    in which they differ from `numbers`; `raw` looks them up.
    """

    codec: TableCodec
    count: int
    codes: Mapping[str, CodeArray]
    numbers: Mapping[str, Floats]
    unclamped: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def domain(self) -> Domain:
        """How many codes each column has."""
        return self.codec.domain

    def raw(self, name: str) -> Floats:
        """The numbers of a number column as the file has them; NaN where it holds none."""
        return self.unclamped[name] if name in self.unclamped else self.numbers[name]

    def take(self, index: Ints) -> "Rows":
        """These rows, in this order."""
        return replace(
            self,
            count=len(index),
            codes={name: codes[index] for name, codes in self.codes.items()},
            numbers={name: numbers[index] for name, numbers in self.numbers.items()},
            unclamped={name: numbers[index] for name, numbers in self.unclamped.items()},
        )

    @cached_property
    def groups(self) -> Ints:
        """The number of the distinct row that each row equals, over all codes."""
        return group_rows([self.codes[name] for name in self.domain.columns], self.count)


def open_for_comparison(data: object, schema: Schema) -> PrivateTable:
    """The table under the schema, every row of it: without a unit, so without a bound."""
    return open_table(data, replace(schema, unit=Unit()))


def open_stand_in(data: object, schema: Schema) -> PrivateTable:
    """The same for a synthetic table, of which the schema does not say how its file is written."""
    return open_for_comparison(data, replace(schema, file=None))


def read_rows(table: PrivateTable, codec: TableCodec) -> Rows:
    """Every row of the table, coded, in the order of its hash."""
    names = codec.domain.columns
    origins = list(dict.fromkeys(codec.origin(name) for name in names))
    axes = [column for column in codec.schema.modelled if isinstance(column, NumberColumn) and column.name in origins]
    codes: dict[str, list[CodeArray]] = {name: [np.empty(0, codec.dtype(name))] for name in names}
    numbers: dict[str, list[Floats]] = {column.name: [np.empty(0)] for column in axes}
    unclamped: dict[str, list[Floats]] = {column.name: [np.empty(0)] for column in axes}
    count = 0
    for rows, batch in table.batches(origins):
        count += rows
        for name in names:
            codes[name].append(codec.encode(name, batch[codec.origin(name)]))
        for column in axes:
            read, raw = read_numbers(column, batch[column.name])
            numbers[column.name].append(read)
            unclamped[column.name].append(raw if _differ(read, raw) else read)
    known = {name: np.concatenate(parts) for name, parts in numbers.items()}
    beyond = {name: np.concatenate(parts) for name, parts in unclamped.items()}
    whole = Rows(
        codec,
        count,
        {name: np.concatenate(parts) for name, parts in codes.items()},
        known,
        {name: raw for name, raw in beyond.items() if _differ(known[name], raw)},
    )
    return whole.take(_order(whole))


def _differ(numbers: Floats, raw: Floats) -> bool:
    return not np.array_equal(numbers, raw, equal_nan=True)


def _order(rows: Rows) -> Ints:
    """Positions by hash; names go into the key in sorted order, so that the schema's order does not matter."""
    columns: list[Unsigned] = [rows.codes[name] for name in sorted(rows.codes)]
    columns += [(rows.raw(name) + 0.0).view(np.uint64) for name in sorted(rows.numbers)]
    return np.argsort(hash_rows(columns, _ORDER_KEY, rows.count), kind="stable")


def stacked(first: Rows, second: Rows) -> Rows:
    """The rows of both, one after the other."""
    return replace(
        first,
        count=first.count + second.count,
        codes={name: np.concatenate([first.codes[name], second.codes[name]]) for name in first.codes},
        numbers={name: np.concatenate([first.numbers[name], second.numbers[name]]) for name in first.numbers},
        unclamped={
            name: np.concatenate([first.raw(name), second.raw(name)])
            for name in first.numbers
            if name in first.unclamped or name in second.unclamped
        },
    )


def group_rows(columns: Sequence[Integers], rows: int) -> Ints:
    """Equal rows get equal numbers 0, 1, 2, …; exact for any number of columns.

    >>> group_rows([np.array([1, 0, 1]), np.array([2, 2, 2])], 3).tolist()
    [1, 0, 1]
    """
    index, groups = np.zeros(rows, np.int64), 1
    for column in columns:
        size = int(column.max()) + 1 if rows else 1
        if groups * size >= 1 << 62:
            index, groups = _renumbered(index)
        index = index * size + column
        groups *= size
    return _renumbered(index)[0]


def _renumbered(index: Ints) -> tuple[Ints, int]:
    found, places = np.unique(index, return_inverse=True)
    return places.astype(np.int64).ravel(), max(1, len(found))


DENSE_CELLS = 1 << 22
LEAST_DENSE_CELLS = 1 << 14
BATCH_CELLS = 1 << 24
BATCH_CLIQUES = 400


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts of one clique in every table, over the same cells.

    `cells` holds flat row-major cell numbers, or None when the counts are of all cells in order.
    """

    clique: Clique
    cells: Ints | None
    counts: tuple[Ints, ...]


def counted(parts: Sequence[Rows], cliques: Sequence[Clique]) -> Iterator[Counted]:
    """The cliques with their counts in every part, in the order asked for."""
    domain = parts[0].domain
    # Sorting a few thousand cells that occur beats adding up millions that do not.
    dense = min(DENSE_CELLS, max(LEAST_DENSE_CELLS, 8 * max(part.count for part in parts)))
    for batch in _batches(domain, cliques, dense):
        if domain.cells(batch[0]) > dense:
            yield _occupied(parts, batch[0])
            continue
        cover = cover_for(domain, batch)
        totals = [_totals(part, cover.tables) for part in parts]
        found = [_projected(domain, cover, total) for total in totals]
        for clique in batch:
            yield Counted(clique, None, tuple(counts[clique] for counts in found))


def _projected(domain: Domain, cover: Cover, totals: Sequence[Ints]) -> dict[Clique, Ints]:
    """The counts of all cliques of a cover, out of those of its tables."""
    return {
        clique: counts
        for table, total, wanted in zip(cover.tables, totals, cover.wanted, strict=True)
        for clique, counts in projected(domain, table, total, wanted)
    }


def _batches(domain: Domain, cliques: Sequence[Clique], dense: int) -> Iterator[list[Clique]]:
    """Runs of cliques small enough to count together; a table too large to hold is a run of its own."""
    batch: list[Clique] = []
    used = 0
    for clique in cliques:
        cells = domain.cells(clique)
        large = cells > dense
        if batch and (large or used + cells > BATCH_CELLS or len(batch) >= BATCH_CLIQUES):
            yield batch
            batch, used = [], 0
        if large:
            yield [clique]
            continue
        batch.append(clique)
        used += cells
    if batch:
        yield batch


def _totals(rows: Rows, tables: Sequence[Clique]) -> list[Ints]:
    columns = [name for name in rows.domain.columns if any(name in table for table in tables)]
    place = {name: position for position, name in enumerate(columns)}
    counter = TableCounter(rows.domain.shape(columns), [[place[name] for name in table] for table in tables])
    counter.add([rows.codes[name] for name in columns], 0, rows.count)
    return list(counter.totals())


def _occupied(parts: Sequence[Rows], clique: Clique) -> Counted:
    sizes = parts[0].domain.shape(clique)
    indices = [flat_index([part.codes[name] for name in clique], sizes) for part in parts]
    cells, places = np.unique(np.concatenate(indices), return_inverse=True)
    starts = np.cumsum([0, *(part.count for part in parts)])
    spans = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    counts = tuple(np.bincount(places[low:high], minlength=len(cells)).astype(np.int64) for low, high in spans)
    return Counted(clique, cells, counts)


def joint_counts(first: Rows, second: Rows) -> tuple[Ints, Ints]:
    """Rows of either table in every cell of the full cross-tabulation that occurs in one of them."""
    columns = [np.concatenate([first.codes[name], second.codes[name]]) for name in first.domain.columns]
    groups = group_rows(columns, first.count + second.count)
    cells = int(groups.max()) + 1
    parts = (groups[: first.count], groups[first.count :])
    counts = [np.bincount(part, minlength=cells).astype(np.int64) for part in parts]
    return counts[0], counts[1]


def total_variation(first: Ints, second: Ints) -> float:
    """Half the L1 distance of the two tables of shares: the share of rows that would have to move.

    >>> round(total_variation(np.array([5, 3, 2, 0]), np.array([6, 1, 0, 3])), 6)
    0.4
    """
    return min(1.0, float(np.abs(first / first.sum() - second / second.sum()).sum() / 2))


@dataclass(frozen=True, slots=True)
class Unread:
    """Shares of one column's values, in the real or the synthetic table, that the schema cannot read as they are."""

    column: str
    table: str
    unreadable: float
    beyond: float
    why: str

    def sentences(self) -> tuple[str, ...]:
        """What to tell about the column; examples are never shown.

        >>> Unread("sex", "real", 0.512, 0.0, "are not among its labels").sentences()
        ('sex: 51 % of the real values are not among its labels (examples are not shown).',)
        """
        found = []
        if self.unreadable:
            values = f"{_percent(self.unreadable)} of the {self.table} values"
            found.append(f"{self.column}: {values} {self.why} (examples are not shown).")
        if self.beyond:
            values = f"{_percent(self.beyond)} of the {self.table} values"
            found.append(f"{self.column}: {values} lie beyond its bounds and are judged as part of its end bins.")
        return tuple(found)


def _percent(share: float) -> str:
    if share < 0.0005:
        return "less than 0.1 %"
    return f"{100 * share:.0f} %" if 0.1 <= share < 0.995 or share == 1 else f"{100 * share:.1f} %"


def unread_columns(real: Rows, copies: Sequence[Rows]) -> tuple[Unread, ...]:
    """Every column of which something cannot be read as it is, the real table first, the largest share first."""
    found = [_unread(real, name, "real") for name in _columns(real.codec)]
    for copy in copies:
        found += [_unread(copy, name, "synthetic") for name in _columns(copy.codec)]
    worst: dict[tuple[str, str], Unread] = {}
    for one in found:
        before = worst.get((one.table, one.column))
        if (one.unreadable or one.beyond) and (before is None or before.unreadable < one.unreadable):
            worst[one.table, one.column] = one
    return tuple(sorted(worst.values(), key=lambda one: (one.table, -one.unreadable, -one.beyond)))


def _columns(codec: TableCodec) -> tuple[str, ...]:
    return tuple(dict.fromkeys(codec.origin(part) for part in codec.domain.columns))


def _unread(rows: Rows, name: str, table: str) -> Unread:
    column = rows.codec.schema.column(name)
    part = code_names(column)[0]
    layout = rows.codec.layout(part)
    present = rows.count if layout.missing_code is None else int((rows.codes[part] != layout.missing_code).sum())
    odd = 0 if layout.unreadable_code is None else int((rows.codes[part] == layout.unreadable_code).sum())
    beyond = 0
    if isinstance(column, NumberColumn):
        why = f"cannot be read as its kind, {column.kind}"
        raw, axis = rows.raw(name), axis_of(column)
        outside = (raw < float(axis.lower)) | (raw > float(axis.upper))
        beyond = int((outside & ~np.isnan(rows.numbers[name])).sum())
    else:
        assert isinstance(column, Category | OpenCategory | Boolean)
        why = "are neither true nor false" if isinstance(column, Boolean) else "are not among its labels"
    return Unread(name, table, odd / max(present, 1), beyond / max(present, 1), why)


def wholly_unread(rows: Rows, part: str) -> bool:
    """Whether no value that is there can be read, and some are there."""
    layout = rows.codec.layout(part)
    unread = rows.codes[part] == layout.unreadable_code
    return bool(unread.any() and (unread | (rows.codes[part] == layout.missing_code)).all())


def declared_size(codec: TableCodec, part: str) -> int:
    """How many codes of a column the schema declares; the others, for what it does not expect, come after them."""
    layout, column = codec.layout(part), codec.schema.column(codec.origin(part))
    own = layout.regular + layout.special + layout.other
    # The kind of a split number has one code for whatever is no number, special values included.
    kind = part != code_names(column)[0] and bool(getattr(column, "special", ()))
    return own + (layout.missing and (column.missing or kind))


Direction = Literal["lower", "higher", "none"]
"""Which way is better; "none" for numbers that describe and do not judge."""

SLACK = 1e-9
NEAR = 1.1
"""A distance of up to this many yardsticks is about as good as the yardstick."""
BLIND = 0.9
"""A yardstick this far from the best value towards the worst leaves no room to tell good from bad."""
NOTHING_IN_COMMON = 0.999
"""A distance this far from the best value towards the worst: the tables share next to nothing."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A number that cannot be computed, and why."""

    reason: str


Outcome = float | Unavailable
NO_RULES = "the schema states no rule"


@dataclass(frozen=True, slots=True)
class Score:
    """One number: what it means, which way is better, its range, and the same number for two halves of the real table.

    Either `value` is there or `why_not` says why it is not; the same holds for `yardstick` and `why_no_yardstick`.
    `baseline` is the same score of a stand-in that knows nothing of what is asked, where a metric computes it: the
    real columns, each drawn by itself, or for single columns all declared values equally often.
    """

    name: str
    meaning: str
    direction: Direction
    lowest: float | None
    highest: float | None
    best: float | None
    value: float | None
    why_not: str
    yardstick: float | None
    why_no_yardstick: str
    baseline: float | None = None

    def __post_init__(self) -> None:
        pairs = ((self.value, self.why_not), (self.yardstick, self.why_no_yardstick))
        for number, reason in pairs:
            if (number is None) == (not reason):
                raise ValueError(f"{self.name}: a number or a reason, not both and not neither")
            if number is not None and not self._holds(number):
                raise ValueError(f"{self.name}: {number!r} is outside its range")

    @property
    def blind(self) -> bool:
        """Whether two halves of the real table themselves score next to the worst value: then nothing can be told."""
        worst = self._worst
        if self.direction == "none" or self.yardstick is None or self.best is None or worst is None:
            return False
        return (self.yardstick - self.best) / (worst - self.best) >= BLIND

    @property
    def place(self) -> float | None:
        """Where the score lies between its yardstick (0) and its baseline (1); None where one of them is not known.

        >>> Scale("x", "x").score(0.2, 0.1, 0.5).place
        0.25
        """
        if self.value is None or self.yardstick is None or self.baseline is None or self.blind:
            return None
        room = self.baseline - self.yardstick
        away = room if self.direction == "lower" else -room
        return (self.value - self.yardstick) / room if away > SLACK else None

    @property
    def _worst(self) -> float | None:
        """The far end of a distance; 0 for agreements, where nothing in common is the worst that is not contrary."""
        return self.highest if self.direction == "lower" else 0.0

    @property
    def reading(self) -> str:
        """The score in words, against its yardstick.

        >>> Scale("x", "x").score(0.3, 0.1).reading, Scale("x", "x").score(0.05, 0.1).reading
        ('3 × the yardstick', 'as close as two real halves')
        >>> Scale("x", "x").score(1.0, 0.98).reading
        'cannot tell: two halves of the real table score 0.98 themselves, and 1 is the worst'
        """
        if self.value is None:
            return f"not computed: {self.why_not}"
        if self.direction == "none":
            return "descriptive only"
        if self.yardstick is None:
            return f"no yardstick: {self.why_no_yardstick}"
        if self.blind:
            halves = f"two halves of the real table score {self.yardstick:,.3g} themselves"
            return f"cannot tell: {halves}, and {self._worst:,g} is the worst"
        if self.best == 0 and self.highest is not None and self.value >= NOTHING_IN_COMMON * self.highest:
            return f"as bad as possible: {self.highest:,g} is the worst"
        better = self.value <= self.yardstick if self.direction == "lower" else self.value >= self.yardstick
        if better or math.isclose(self.value, self.yardstick):
            return "as close as two real halves"
        if self.direction == "lower" and self.yardstick > 0:
            times = self.value / self.yardstick
            return "about as close as two real halves" if times <= NEAR else f"{times:.3g} × the yardstick"
        return f"{abs(self.value - self.yardstick):.3g} below the yardstick"

    def _holds(self, number: float) -> bool:
        above = self.lowest is None or number >= self.lowest - SLACK * max(1.0, abs(self.lowest))
        below = self.highest is None or number <= self.highest + SLACK * max(1.0, abs(self.highest))
        return math.isfinite(number) and above and below


@dataclass(frozen=True, slots=True)
class Scale:
    """What a score measures, before it is measured."""

    name: str
    meaning: str
    direction: Direction = "lower"
    lowest: float | None = 0.0
    highest: float | None = 1.0
    best: float | None = 0.0

    def score(self, value: Outcome, yardstick: Outcome, baseline: Outcome | None = None) -> Score:
        """The score with this value, yardstick and baseline; a number that is not finite becomes a reason."""
        number, why_not = _number_or_reason(value)
        line, why_no_line = _number_or_reason(yardstick)
        bottom = None if baseline is None else _number_or_reason(baseline)[0]
        facts = (self.name, self.meaning, self.direction, self.lowest, self.highest, self.best)
        return Score(*facts, number, why_not, line, why_no_line, bottom)

    def missing(self, reason: str) -> Score:
        """The score that cannot be computed, for this reason."""
        return self.score(Unavailable(reason), Unavailable(reason))


def _number_or_reason(outcome: Outcome) -> tuple[float | None, str]:
    if isinstance(outcome, Unavailable):
        return None, outcome.reason
    number = float(outcome)
    if not math.isfinite(number):
        return None, "the computation overflowed"
    return number + 0.0, ""


def mean_outcome(outcomes: Sequence[Outcome]) -> Outcome:
    """The plain mean; the first reason if one of them cannot be computed."""
    numbers: list[float] = []
    for outcome in outcomes:
        if isinstance(outcome, Unavailable):
            return outcome
        numbers.append(outcome)
    return math.fsum(numbers) / len(numbers) if numbers else Unavailable("there is nothing to average")


@dataclass(frozen=True, slots=True)
class Detail:
    """Numbers behind a score, worst first, as a table. `caption` says what a row is and what comes first."""

    name: str
    caption: str
    table: pa.Table

    def records(self, limit: int | None = None) -> list[dict[str, object]]:
        """The first rows as plain values."""
        rows: list[dict[str, object]] = (self.table if limit is None else self.table.slice(0, limit)).to_pylist()
        return rows


def table_of(columns: Mapping[str, Sequence[object] | pa.Array], kinds: Mapping[str, pa.DataType]) -> pa.Table:
    """A table with these columns in the order of `kinds`."""
    return pa.table([pa.array(columns[name], kind) for name, kind in kinds.items()], names=list(kinds))


@dataclass(frozen=True, slots=True)
class Result:
    """What one metric found: the question it answers, its scores (the headline first), details, and remarks."""

    metric: str
    question: str
    scores: tuple[Score, ...]
    details: tuple[Detail, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> Score:
        """The first score."""
        return self.scores[0]

    @property
    def value(self) -> float | None:
        """The headline's value."""
        return self.headline.value

    @property
    def yardstick(self) -> float | None:
        """The headline's yardstick."""
        return self.headline.yardstick

    @property
    def why_not(self) -> str:
        """Why the headline has no value, if it has none."""
        return self.headline.why_not

    def score(self, name: str) -> Score:
        """The score of that name."""
        return next(score for score in self.scores if score.name == name)

    def detail(self, name: str) -> Detail:
        """The detail of that name."""
        return next(detail for detail in self.details if detail.name == name)


FEWEST_HALF_ROWS = 2


@dataclass(frozen=True, eq=False)
class TablePair:
    """The real rows and the rows of every copy. `promise` and `copies_mode` come from a release, if there is one."""

    codec: TableCodec
    real: Rows
    copies: tuple[Rows, ...]
    seed: int = 0
    promise: str = ""
    copies_mode: str = ""

    @property
    def schema(self) -> Schema:
        """What both tables may contain."""
        return self.codec.schema

    @cached_property
    def halves(self) -> tuple[Rows, Rows] | Unavailable:
        """Two random halves of the real table: the yardstick of every metric."""
        if self.real.count < 2 * FEWEST_HALF_ROWS:
            return Unavailable(f"the real table has fewer than {2 * FEWEST_HALF_ROWS} rows, too few to halve")
        order = np.random.default_rng([self.seed, zlib.crc32(b"halves")]).permutation(self.real.count)
        middle = self.real.count // 2
        return self.real.take(np.sort(order[:middle])), self.real.take(np.sort(order[middle:]))

    @cached_property
    def independent(self) -> Rows:
        """As many rows, every column of which is drawn from the real one by itself: no relation is left.

        With replacement, because a greedy tree finds no first split between tables whose columns agree exactly.
        """
        rng = np.random.default_rng([self.seed, zlib.crc32(b"independent")])
        origins = sorted({self.codec.origin(name) for name in self.codec.domain.columns})
        orders = {origin: rng.integers(0, self.real.count, self.real.count) for origin in origins}
        return replace(
            self.real,
            codes={name: codes[orders[self.codec.origin(name)]] for name, codes in self.real.codes.items()},
            numbers={name: numbers[orders[name]] for name, numbers in self.real.numbers.items()},
            unclamped={name: numbers[orders[name]] for name, numbers in self.real.unclamped.items()},
        )

    def between_halves(self, measured: Callable[[Rows, Rows], Sequence[Outcome]], scores: int) -> Sequence[Outcome]:
        """What is measured between the halves, one outcome for each score: the yardsticks, or why there are none."""
        return [self.halves] * scores if isinstance(self.halves, Unavailable) else measured(*self.halves)


@dataclass(frozen=True)
class Context:
    """Where a metric gets its randomness and tells how far it is."""

    metric: str
    seed: int
    start: float = 0.0
    stop: float = 1.0
    progress: Progress = field(default=silent)

    def rng(self, *step: int | str) -> np.random.Generator:
        """A generator for one step of the metric."""
        words = [word if isinstance(word, int) else zlib.crc32(word.encode()) for word in step]
        return np.random.default_rng([self.seed, zlib.crc32(self.metric.encode()), *words])

    def done(self, share: float) -> None:
        """Reports that this share of the metric's work is done."""
        self.progress.stage("measure", self.start + (self.stop - self.start) * min(max(share, 0.0), 1.0))


@dataclass(frozen=True, slots=True)
class Metric(WithOptions, abc.ABC):
    """A comparison of the real table with its stand-in: a frozen dataclass whose fields are its options."""

    name: ClassVar[str]
    question: ClassVar[str]
    scales: ClassVar[tuple[Scale, ...]]
    """Every score the metric can report, the headline first."""

    @abc.abstractmethod
    def compare(self, pair: TablePair, context: Context) -> Result:
        """The scores, in the order of `scales`; a score that cannot be computed says why. No table is empty."""

    def _where(self, option: str) -> str:
        return f"{self.name}: {option}"

    def check(self, schema: Schema) -> None:
        """Raises where the options do not fit the schema."""

    def lacks(self, schema: Schema) -> str:
        """What the table or the call lacks for it, "" for nothing; what lacks something runs only if asked by name."""
        return ""


def refused(metric: Metric, reason: str) -> Result:
    """The result of a metric that cannot be computed at all."""
    return Result(metric.name, metric.question, tuple(scale.missing(reason) for scale in metric.scales))


def check_columns(metric: str, columns: Sequence[str], schema: Schema) -> None:
    """Raises for the first column that is not modelled."""
    known = [column.name for column in schema.modelled]
    for name in columns:
        if name not in known:
            raise UsageError(f"{metric}: column {name!r}", "is not a modelled column.", nearest(name, known))


METRICS: Registry[Metric] = Registry(
    "metric",
    {
        "marginals": "understudy.evaluate.marginals:Marginals",
        "crosstab_l1": "understudy.evaluate.marginals:CrosstabDistance",
        "specks": "understudy.evaluate.propensity:Specks",
        "pmse": "understudy.evaluate.propensity:Pmse",
        "classifiers": "understudy.evaluate.classifiers:Classifiers",
        "nist": "understudy.evaluate.nist:Nist",
        "chi2": "understudy.evaluate.marginals:ChiSquare",
        "slopes": "understudy.evaluate.marginals:Slopes",
        "correlations": "understudy.evaluate.marginals:Correlations",
        "regression": "understudy.evaluate.regression:Regression",
        "ci_overlap": "understudy.evaluate.regression:IntervalOverlap",
        "prediction": "understudy.evaluate.cart:Prediction",
        "rules": "understudy.evaluate.records:RulesBroken",
        "disclosure": "understudy.evaluate.records:Disclosure",
    },
    (Metric,),
)
"""In the order in which a report shows them."""


@dataclasses.dataclass(frozen=True, slots=True)
class MetricDescription:
    """What a person needs to know to pick a metric."""

    name: str
    question: str
    scales: tuple[Scale, ...]
    options: tuple[Option, ...]


def metrics() -> Catalogue[MetricDescription]:
    """All metrics with the question each answers; `metrics()["pmse"]` has scores and options too."""
    return Catalogue(("name", "question"), METRICS.described(describe_metric))


def describe_metric(name: str) -> MetricDescription:
    """Question, scores and options of a metric."""
    kind = METRICS.find(name)
    return MetricDescription(name, kind.question, kind.scales, described(kind))
