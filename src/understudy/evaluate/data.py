"""The two tables as metrics see them: codes, numbers, rows and counts under one codec.

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
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

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
from understudy.counts.streaming import encode_column
from understudy.domain import Clique, Domain
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
            codes[name].append(encode_column(codec, name, batch[codec.origin(name)]))
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

    >>> total_variation(np.array([5, 3, 2, 0]), np.array([6, 1, 0, 3]))
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
