"""Files larger than memory: rows are streamed, coded and counted chunk by chunk within a stated limit.

What cannot be done chunk by chunk (ranking the rows of each unit, grouping many labels) is done by DuckDB, which
spills to a private temporary folder and stays within its share of the limit. The engine can reach no other file, no
network and no extension. Of the limit, one quarter each goes to tables of counts, to coded columns kept for the next
question (none if they do not fit), and to DuckDB; the rest is for batches in flight.
"""

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from understudy.codec.table_codec import TableCodec
from understudy.counts.chunked_source import Chunk, ChunkedSource, DeclaredTable, encode_column
from understudy.counts.contribution import row_priority
from understudy.counts.files import Batch, arrow_reader, file_batches
from understudy.counts.header import LOCKED, Container, Settings, silenced
from understudy.counts.labels import counted_labels, label_keys, text_of
from understudy.counts.source import CountSource, Ints, LabelCounts
from understudy.errors import ResourceError, UnderstudyError
from understudy.schema import Schema

__all__ = ["DuckDBSource", "DuckDBTable"]

LEAST_ENGINE_BYTES = 64 << 20
BATCH_ROWS = 1 << 17


class DuckDBTable(DeclaredTable):
    """A private table in files. Building it checks the header against the schema and reads no row."""

    def __init__(self, container: Container, schema: Schema, *, memory_bytes: int, threads: int = 1) -> None:
        super().__init__(container.names, schema)
        self._container = container
        self._memory_bytes = memory_bytes
        self._threads = threads

    @property
    def frame_kind(self) -> str:
        """What to hand back to the user: always "arrow"."""
        return "arrow"

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Rows of these columns, batch by batch. Private."""
        share = max(LEAST_ENGINE_BYTES, self._memory_bytes // 4)
        return file_batches(self._container, columns, memory_bytes=share, threads=self._threads)

    def engine(self) -> "Engine":
        """A private DuckDB for work that must be able to spill."""
        return Engine(max(LEAST_ENGINE_BYTES, self._memory_bytes // 4), self._threads)

    def label_counts(self, column: str) -> LabelCounts:
        """Labels of an open column, after the unit's bound on rows was applied (to rows that have a label)."""
        unit = self._schema.unit
        names = [column] if unit.column is None else list(dict.fromkeys([column, unit.column]))
        kinds = [("unit", pa.large_string()), ("priority", pa.uint64()), ("label", pa.large_string())]
        incoming = (_label_batch(batch, column, unit.column, pa.schema(kinds)) for _, batch in self.batches(names))
        bound = "" if unit.column is None else _first_rows(["label"], unit.rows)
        query = f"SELECT label, count(*)::BIGINT AS times FROM (SELECT label FROM incoming {bound}) GROUP BY label"
        with self.engine() as engine:
            engine.fill("found", query, pa.schema(kinds), incoming)
            parts = engine.stream("SELECT label, times FROM found")
            return counted_labels((batch.column(0), batch.column(1)) for batch in parts)

    def bind(self, codec: TableCodec) -> CountSource:
        """The same rows seen through settled codes. Reads nothing yet."""
        return DuckDBSource(self, codec, memory_bytes=self._memory_bytes)


class DuckDBSource(ChunkedSource):
    """Exact counts of files. Coded columns are kept for the next question if they fit a quarter of the limit."""

    def __init__(self, table: DuckDBTable, codec: TableCodec, *, memory_bytes: int) -> None:
        super().__init__(codec, memory_bytes)
        self._table = table
        self._cache_bytes = memory_bytes // 4
        self._cache: list[tuple[int, Chunk]] | None = None
        self._cached: set[str] = set()
        self._engine: Engine | None = None

    def _chunks(self, columns: Sequence[str]) -> Iterator[tuple[int, Chunk]]:
        if self._cache is not None and set(columns) <= self._cached:
            yield from self._cache
            return
        # Chunks of different passes need not hold the same rows, so what is kept always comes from one pass.
        # Whoever asks about column after column would have the kept ones read again each time, so the second reads all.
        wanted = [name for name in self.domain.columns if self._cached or name in columns]
        kept: list[tuple[int, Chunk]] | None = []
        self._cache, size = None, 0
        bounded = self._table.schema.unit.column is not None
        for rows, chunk in self._bounded(wanted) if bounded else self._coded(wanted):
            size += sum(codes.nbytes for codes in chunk.values())
            if kept is not None:
                kept.append((rows, chunk))
            if size > self._cache_bytes:
                kept, wanted = None, list(columns)
            yield rows, chunk
        self._cache = kept
        self._cached = set(wanted) if kept is not None else set()

    def _coded(self, columns: Sequence[str]) -> Iterator[tuple[int, Chunk]]:
        origin = self._codec.origin
        for rows, batch in self._table.batches(list(dict.fromkeys(map(origin, columns)))):
            yield rows, {name: encode_column(self._codec, name, batch[origin(name)]) for name in columns}

    def _bounded(self, columns: Sequence[str]) -> Iterator[tuple[int, Chunk]]:
        """Coded rows of each unit up to its bound, from the engine's own table, which is filled on first use."""
        if self._engine is None:
            self._engine = self._ranked()
        place = {name: f"c{position}" for position, name in enumerate(self.domain.columns)}
        shown = ", ".join(place[name] for name in columns) or "1"
        for batch in self._engine.stream(f"SELECT {shown} FROM kept"):
            arrays = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
            yield batch.num_rows, dict(zip(columns, arrays, strict=False))

    def _holders(self) -> Iterator[tuple[int, Chunk, Ints | None]]:
        unit = self._table.schema.unit
        if unit.column is None or unit.rows == 1:
            yield from super()._holders()
            return
        names = self.domain.columns
        with self._ranked("dense_rank() OVER (ORDER BY unit) AS holder") as engine:
            for batch in engine.stream(f"SELECT holder, {', '.join(_places(names))} FROM kept"):
                holder, *arrays = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
                yield batch.num_rows, dict(zip(names, arrays, strict=True)), holder.astype(np.int64)

    def _ranked(self, *more: str) -> "Engine":
        unit = self._table.schema.unit
        assert unit.column is not None
        names = self.domain.columns
        codes = _places(names)
        kinds = [(code, pa.from_numpy_dtype(self._codec.dtype(name))) for code, name in zip(codes, names, strict=True)]
        schema = pa.schema([("unit", pa.large_string()), ("priority", pa.uint64()), *kinds])
        wanted = list(dict.fromkeys([*map(self._codec.origin, names), unit.column]))
        incoming = (self._unit_batch(batch, unit.column, schema) for _, batch in self._table.batches(wanted))
        engine = self._table.engine()
        shown = ", ".join([*codes, *more])
        engine.fill("kept", f"SELECT {shown} FROM incoming {_first_rows(codes, unit.rows)}", schema, incoming)
        return engine

    def _unit_batch(self, batch: dict[str, pa.Array], unit: str, schema: pa.Schema) -> pa.RecordBatch:
        ids = text_of(batch[unit]).combine_chunks()
        origin = self._codec.origin
        codes = [encode_column(self._codec, name, batch[origin(name)]) for name in self.domain.columns]
        priority = row_priority(codes, len(ids))
        whole = pa.record_batch([ids, pa.array(priority), *(pa.array(code) for code in codes)], schema=schema)
        return whole.filter(ids.is_valid())


def _label_batch(batch: dict[str, pa.Array], column: str, unit: str | None, schema: pa.Schema) -> pa.RecordBatch:
    texts = text_of(batch[column]).combine_chunks()
    if unit is None:
        ids, priority = pa.nulls(len(texts), pa.large_string()), pa.nulls(len(texts), pa.uint64())
        return pa.record_batch([ids, priority, texts], schema=schema).filter(texts.is_valid())
    ids = text_of(batch[unit]).combine_chunks()
    encoded = texts.dictionary_encode()
    keys = np.append(label_keys(encoded.dictionary), np.zeros(1, np.uint64))
    by_row = keys[pc.fill_null(encoded.indices, len(keys) - 1).to_numpy(zero_copy_only=False)]
    priority = pa.array(row_priority([by_row], len(by_row)))
    whole = pa.record_batch([ids, priority, texts], schema=schema)
    return whole.filter(pc.and_(texts.is_valid(), ids.is_valid()))


def _places(names: Sequence[str]) -> list[str]:
    return [f"c{position}" for position in range(len(names))]


def _first_rows(columns: Sequence[str], rows: int) -> str:
    order = ", ".join(["priority", *columns])
    return f"QUALIFY row_number() OVER (PARTITION BY unit ORDER BY {order}) <= {int(rows)}"


class Engine:
    """An in-memory DuckDB that may spill to a folder of its own, removed with it, and can reach nothing else."""

    def __init__(self, memory_bytes: int, threads: int) -> None:
        self._memory_bytes = memory_bytes
        self._folder = Path(tempfile.mkdtemp(prefix="understudy-"))  # mode 0700
        settings: Settings = {
            **LOCKED,
            "memory_limit": f"{memory_bytes}B",
            "temp_directory": str(self._folder),
            "threads": threads,
            "preserve_insertion_order": False,
        }
        self._connection = silenced(duckdb.connect(":memory:", config=settings))
        self._close = weakref.finalize(self, _closed, self._connection, self._folder)

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def fill(self, name: str, query: str, schema: pa.Schema, incoming: Iterator[pa.RecordBatch]) -> None:
        """Stores a query over `incoming` rows as a table.

        Raises:
            InputError: if the rows broke off.
            ResourceError: if memory and temporary disk space did not suffice.
        """
        relay = _Relay(incoming)
        self._connection.register("incoming", pa.RecordBatchReader.from_batches(schema, relay))
        full = False
        try:
            self._connection.execute(f"CREATE TABLE {name} AS {query}")
        except (duckdb.Error, OSError, MemoryError):
            full = True  # the engine's words may quote a row, so they are not chained
        if relay.error is not None:
            raise relay.error
        if full:
            fix = "Raise the memory limit or free disk space for temporary files."
            raise ResourceError("ranking the rows of each unit", 2 * self._memory_bytes, self._memory_bytes, fix)
        self._connection.unregister("incoming")

    def stream(self, query: str) -> Iterator[pa.RecordBatch]:
        """A query's rows in batches."""
        yield from arrow_reader(self._connection, query, BATCH_ROWS)


class _Relay:
    """Batches on their way into the engine, with the first error kept aside: the engine would only quote it."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.error: UnderstudyError | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._batches
        except UnderstudyError as error:
            self.error = error


def _closed(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    connection.close()
    shutil.rmtree(folder, ignore_errors=True)
