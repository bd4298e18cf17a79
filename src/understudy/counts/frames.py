"""Frames in memory: pandas, polars and Arrow tables, seen column by column through Arrow.

Opening looks at column names only. A column is turned into codes when it is first counted, once, and a lazy frame is
collected then and not before. Columns are fetched by position, because pandas allows repeated names and names that
are not text. No content raises: a column that Arrow cannot take (mixed objects, exotic extension types) is read value
by value as text.
"""

import decimal
import itertools
from collections.abc import Iterator, Sequence, Set
from typing import Any, Protocol

import narwhals as nw
import narwhals.dependencies as known
import numpy as np
import pyarrow as pa

from understudy.arrays import Ints
from understudy.codec.reading import NumberForm
from understudy.codec.table import TableCodec
from understudy.counts.source import (
    CONTENT_ERRORS,
    Batch,
    ColumnType,
    PrivateTable,
    kept_rows,
    object_bytes,
    texts_of,
)
from understudy.counts.streaming import Chunk, ChunkedSource, Chunks, Codes, rows_with_codes
from understudy.errors import InputError
from understudy.schema import Float, Integer, Schema

CHUNK_ROWS = 1 << 20
LEAST_ROWS_PER_THREAD = 1 << 16


class FrameTable(PrivateTable):
    """A private table in memory. Building it checks the header against the schema and reads no row."""

    def __init__(self, data: object, schema: Schema, *, memory_bytes: int, threads: int = 1) -> None:
        self._frame = _frame_of(data, {*schema.names, schema.unit.column})
        super().__init__(self._frame.names, schema, memory_bytes=memory_bytes, threads=threads)

    @property
    def frame_kind(self) -> str:
        """What to hand back to the user: "pandas", "polars" or "arrow"."""
        return self._frame.kind

    @property
    def column_types(self) -> dict[str, ColumnType]:
        """How the declared columns are stored, by their types alone. Public."""
        declared = [place for place, name in enumerate(self._frame.names) if name in self.schema.names]
        return {self._frame.names[place]: self._frame.type(place) for place in declared}

    def column(self, name: str) -> pa.Array | pa.ChunkedArray:
        """One column as Arrow. Private."""
        declared = self.schema.column(name) if name in self.schema.names else None
        numbers = isinstance(declared, Integer | Float) and NumberForm.of(declared) is not None
        return self._frame.column(self._names.index(name), numbers=numbers)

    @property
    def rows(self) -> int:
        """Number of rows before any bound. Private."""
        return self._frame.rows()

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Every row of these columns, before any bound, as one batch. Private."""
        yield self.rows, {name: self.column(name) for name in columns}


class FrameSource(ChunkedSource):
    """Exact counts of a frame. Each column is encoded once, when it is first needed."""

    def __init__(self, table: FrameTable, codec: TableCodec) -> None:
        super().__init__(codec, table.memory_bytes, table.schema)
        self._table = table
        self._threads = max(1, table.threads)
        self._codes: dict[str, Codes] = {}
        self._rows: int | None = None
        self._kept: Ints | None = None
        self._unit_of_row: Ints | None = None

    @property
    def _known_rows(self) -> int | None:
        return self._rows

    def _chunks(self, columns: Sequence[str]) -> Chunks:
        for part in self._parts(columns, 1):
            yield from part

    def _parts(self, columns: Sequence[str], most: int) -> Sequence[Chunks]:
        rows, codes = self._prepared(columns)
        bounds = np.linspace(0, rows, max(1, min(most, rows // LEAST_ROWS_PER_THREAD)) + 1).astype(np.int64).tolist()
        return [_chunks_of(codes, low, high) for low, high in itertools.pairwise(bounds)]

    def _prepared(self, columns: Sequence[str]) -> tuple[int, dict[str, Codes]]:
        """Number of rows that count, and their codes; encodes what was not encoded yet."""
        if self._rows is None:
            self._fix_rows()
        for name in columns:
            if name not in self._codes:
                self._codes[name] = self._encoded(name)
        assert self._rows is not None
        return self._rows, {name: self._codes[name] for name in columns}

    def _holders(self) -> Iterator[tuple[int, Chunk, Ints | None]]:
        rows, codes = self._prepared(self.domain.columns)
        yield rows, codes, self._unit_of_row

    def _encoded(self, name: str) -> Codes:
        codes = self._codec.encode(name, self._table.column(self._codec.origin(name)))
        return codes if self._kept is None else codes[self._kept]

    def _fix_rows(self) -> None:
        """Fixes which rows count: those whose values have codes, within the unit's bound (which looks at all codes)."""
        unit = self._table.schema.unit
        names = self._leaving_out if unit.column is None else self.domain.columns
        codes = {name: self._encoded(name) for name in names}
        self._kept = rows_with_codes(self._codec, codes)
        if unit.column is not None:
            ids = texts_of(self._table.column(unit.column)).only_ids().only_at(self._kept)
            self._kept = kept_rows(ids, list(codes.values()), unit.rows)
            self._unit_of_row = ids.numbers()[self._kept]
        self._rows = self._table.rows if self._kept is None else len(self._kept)
        self._codes = codes if self._kept is None else {name: column[self._kept] for name, column in codes.items()}


def _chunks_of(codes: Chunk, start: int, stop: int) -> Chunks:
    for low in range(start, stop, CHUNK_ROWS):
        high = min(stop, low + CHUNK_ROWS)
        yield high - low, {name: column[low:high] for name, column in codes.items()}


class _Frame(Protocol):
    """A frame of any library."""

    @property
    def kind(self) -> str:
        """What to hand back to the user: "pandas", "polars" or "arrow"."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """Column names as text, in order. Public."""
        ...

    def type(self, position: int) -> ColumnType:
        """How one column is stored. Public."""
        ...

    def rows(self) -> int:
        """Number of rows. Private."""
        ...

    def column(self, position: int, *, numbers: bool) -> pa.Array | pa.ChunkedArray:
        """One column as Arrow; with `numbers`, numbers among other objects are written without marks. Private."""
        ...


def is_frame(data: object) -> bool:
    """Whether `FrameTable` accepts it: any eager frame narwhals knows, or a lazy polars frame."""
    return bool(known.is_polars_lazyframe(data) or known.is_into_dataframe(data))


def _frame_of(data: object, declared: Set[str | None]) -> _Frame:
    """The frame behind one interface. Looks at names only."""
    if known.is_pandas_dataframe(data):
        return _PandasFrame(data)
    if known.is_pyarrow_table(data):
        return _ArrowFrame(data)
    if known.is_polars_lazyframe(data):
        return _LazyFrame(data, declared)
    return _EagerFrame(nw.from_native(data, eager_only=True), "polars" if known.is_polars_dataframe(data) else "arrow")


# The objects below belong to libraries that need not be installed, hence `Any` inside this file only.
class _PandasFrame:
    kind = "pandas"

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.names = tuple(str(name) for name in frame.columns)

    def type(self, position: int) -> ColumnType:
        return _pandas_type(self._frame.dtypes.iloc[position])

    def rows(self) -> int:
        return len(self._frame)

    def column(self, position: int, *, numbers: bool) -> pa.Array | pa.ChunkedArray:
        series = self._frame.iloc[:, position]
        values = getattr(series.dtype, "categories", series)
        if values.dtype == object and not _all_text(values):
            return _as_text(list(series), numbers=numbers)
        try:
            return pa.array(series, from_pandas=True)
        except CONTENT_ERRORS:
            return _as_text(list(series), numbers=numbers)


class _ArrowFrame:
    kind = "arrow"

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.names = tuple(table.schema.names)

    def type(self, position: int) -> ColumnType:
        kind = self._table.schema.field(position).type
        if not pa.types.is_dictionary(kind):
            return ColumnType(kind)
        return ColumnType(kind.value_type, "category", kind.ordered, kind)

    def rows(self) -> int:
        return int(self._table.num_rows)

    def column(self, position: int, *, numbers: bool) -> pa.Array | pa.ChunkedArray:
        return self._table.column(position)


class _EagerFrame:
    def __init__(self, frame: nw.DataFrame[Any], kind: str) -> None:
        self._frame = frame
        self.kind = kind
        self.names = tuple(frame.columns)

    def type(self, position: int) -> ColumnType:
        native = self._frame.to_native()
        return _polars_type(native.schema[self.names[position]]) if self.kind == "polars" else ColumnType()

    def rows(self) -> int:
        return len(self._frame)

    def column(self, position: int, *, numbers: bool) -> pa.Array | pa.ChunkedArray:
        series = self._frame[self.names[position]]
        if series.dtype in (nw.Object, nw.Unknown):
            return _as_text(series.to_list(), numbers=numbers)
        try:
            return series.to_arrow()
        except CONTENT_ERRORS:
            return _as_text(series.to_list(), numbers=numbers)


class _LazyFrame:
    """A lazy frame: its names are known at once, its query runs when the first column is counted."""

    kind = "polars"

    def __init__(self, frame: Any, declared: Set[str | None]) -> None:
        self._frame = frame
        self._declared = declared
        self._collected: _EagerFrame | None = None
        try:
            self._types = dict(frame.collect_schema())
        except Exception as cause:
            raise InputError("lazy frame", "its columns cannot be worked out.", "Collect it first.") from cause
        self.names = tuple(self._types)

    def type(self, position: int) -> ColumnType:
        return _polars_type(self._types[self.names[position]])

    def rows(self) -> int:
        return self._eager().rows()

    def column(self, position: int, *, numbers: bool) -> pa.Array | pa.ChunkedArray:
        eager = self._eager()
        return eager.column(eager.names.index(self.names[position]), numbers=numbers)

    def _eager(self) -> _EagerFrame:
        if self._collected is None:
            wanted = [name for name in self.names if name in self._declared]
            try:
                frame = self._frame.select(wanted).collect()
                self._collected = _EagerFrame(nw.from_native(frame, eager_only=True), self.kind)
            except Exception:  # noqa: BLE001 - whatever the query raises; it may quote rows, so it is not chained
                pass
        if self._collected is None:
            raise InputError("lazy frame", "its own query failed while it ran.", "Collect it first.")
        return self._collected


def _pandas_type(dtype: Any) -> ColumnType:
    """What a pandas type says whatever the rows hold.

    A gap turns whole numbers into floats, truth values and text into objects; so these types are no news about a
    column, and plain floats, objects and the text that pandas infers say nothing here.
    """
    import pandas as pd

    if isinstance(dtype, pd.CategoricalDtype):
        inner = _pandas_type(dtype.categories.dtype)
        return ColumnType(inner.values, "category", bool(dtype.ordered), inner.native)
    if isinstance(dtype, pd.ArrowDtype):
        return ColumnType(dtype.pyarrow_dtype, native=dtype)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return ColumnType(pa.timestamp(dtype.unit, str(dtype.tz)))
    if isinstance(dtype, pd.StringDtype):
        return ColumnType(native=dtype) if dtype.na_value is pd.NA else ColumnType()
    if pd.api.types.is_extension_array_dtype(dtype):  # numbers and truth values that may be missing
        plain = getattr(dtype, "numpy_dtype", None)
        return ColumnType() if plain is None else ColumnType(pa.from_numpy_dtype(plain), native=dtype)
    known = dtype.kind in "biuM" or dtype == np.float32
    return ColumnType(pa.from_numpy_dtype(dtype)) if known else ColumnType()


def _polars_type(dtype: Any) -> ColumnType:
    import polars as pl

    if dtype == pl.Enum:
        return ColumnType(labels="enum")
    if dtype == pl.Categorical:
        return ColumnType(labels="category")
    try:
        return ColumnType(pl.Series([], dtype=dtype).to_arrow().type)
    except CONTENT_ERRORS:
        return ColumnType()


def _all_text(values: Any) -> bool:
    """Whether a column of objects holds text and gaps only.

    Arrow must not guess a type for other objects: the guess would depend on all values together, so that one record
    could change how others are read, and it can crash on strange mixtures.
    """
    from pandas.api.types import infer_dtype

    return bool(infer_dtype(values, skipna=True) in ("string", "empty"))


def _as_text(values: list[object], *, numbers: bool) -> pa.Array:
    texts = [object_bytes(_unmarked(value) if numbers else value) for value in values]
    return pa.array(texts, pa.large_binary())


def _unmarked(value: object) -> object:
    """A number that is no text in a form that every column of numbers reads: 1.5 as 15e-1. Others as they are.

    Text beside it may have a decimal comma, so that 1.5 would be read otherwise or not at all.
    """
    if isinstance(value, float | np.floating | decimal.Decimal):
        number = decimal.Decimal(repr(float(value))) if not isinstance(value, decimal.Decimal) else value
        if number.is_finite() and number != number.to_integral_value():  # whole ones have no mark anyway
            sign, digits, exponent = number.as_tuple()
            return f"{'-' if sign else ''}{''.join(map(str, digits))}e{exponent}"
    return value
