"""Tables larger than memory: rows are streamed, coded and counted chunk by chunk within a stated limit.

Any table that hands over its rows in batches is counted here; files are one kind of it. Of the limit, one quarter each
goes to tables of counts, to coded columns kept for the next question (none if they do not fit), and to the rows of
units that await their bound; the rest is for batches in flight. A single value may exceed all of that, and then more
memory is used: how long a value is decides neither what is counted nor whether a run succeeds.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from understudy.codec.table_codec import TableCodec
from understudy.counts.chunked_source import Chunk, ChunkedSource, Codes, encode_column, rows_with_codes
from understudy.counts.contribution import ORDER_KEY, ColumnBlocks, UnitRows
from understudy.counts.files import file_batches
from understudy.counts.header import Container
from understudy.counts.labels import LabelNumbers, texts_of
from understudy.counts.source import Batch, Ints, LabelCounts, PrivateTable
from understudy.errors import InputError
from understudy.schema import Schema

__all__ = ["FileTable", "StreamedSource", "streamed_labels"]

LEAST_SHARE_BYTES = 64 << 20


class FileTable(PrivateTable):
    """A private table in files. Building it checks the header against the schema and reads no row."""

    def __init__(self, container: Container, schema: Schema, *, memory_bytes: int, threads: int = 1) -> None:
        super().__init__(container.names, schema, memory_bytes=memory_bytes, threads=threads)
        self._container = container

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Rows of these columns, batch by batch. Private."""
        return file_batches(self._container, columns, memory_bytes=_share(self), threads=self.threads)


class StreamedSource(ChunkedSource):
    """Exact counts of batches. Coded columns are kept for the next question if they fit a quarter of the limit."""

    def __init__(self, table: PrivateTable, codec: TableCodec) -> None:
        super().__init__(codec, table.memory_bytes, table.schema)
        self._table = table
        self._cache_bytes = table.memory_bytes // 4
        self._cache: list[tuple[int, Chunk]] | None = None
        self._cached: set[str] = set()
        self._kept: ColumnBlocks | None = None

    def _chunks(self, columns: Sequence[str]) -> Iterator[tuple[int, Chunk]]:
        if self._cache is not None and set(columns) <= self._cached:
            yield from self._cache
            return
        # Chunks of different passes need not hold the same rows, so what is kept always comes from one pass.
        # Whoever asks about column after column would have the kept ones read again each time, so the second reads all.
        wanted = [name for name in self._held if self._cached or name in columns]
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
        """Codes of every row that counts, straight from the table."""
        origin = self._codec.origin
        needed = list(dict.fromkeys([*columns, *self._leaving_out]))
        for rows, batch in _read(self._table, list(dict.fromkeys(map(origin, needed)))):
            codes = {name: encode_column(self._codec, name, batch[origin(name)]) for name in needed}
            kept = rows_with_codes(self._codec, codes)
            if kept is None:
                yield rows, {name: codes[name] for name in columns}
            else:
                yield len(kept), {name: codes[name][kept] for name in columns}

    def _bounded(self, columns: Sequence[str]) -> Iterator[tuple[int, Chunk]]:
        """Coded rows of each unit up to its bound."""
        place = {name: position + 1 for position, name in enumerate(self.domain.columns)}
        for rows, codes in self._within_bound().read([place[name] for name in columns]):
            yield rows, dict(zip(columns, codes, strict=True))

    def _holders(self) -> Iterator[tuple[int, Chunk, Ints | None]]:
        unit = self._table.schema.unit
        if unit.column is None or unit.rows == 1:
            yield from super()._holders()
            return
        names = self.domain.columns
        for rows, (holders, *codes) in self._within_bound().read(range(len(names) + 1)):
            yield rows, dict(zip(names, codes, strict=True)), holders

    def _within_bound(self) -> ColumnBlocks:
        """Numbers of units, and the codes of all columns, of the rows that count; worked out on first use."""
        if self._kept is None:
            unit = self._table.schema.unit
            assert unit.column is not None
            names, origin = self.domain.columns, self._codec.origin
            rows = UnitRows([self._codec.dtype(name) for name in names], unit.rows, _share(self._table))
            for _, batch in _read(self._table, list(dict.fromkeys([*map(origin, names), unit.column]))):
                codes = {name: encode_column(self._codec, name, batch[origin(name)]) for name in names}
                ids = texts_of(batch[unit.column]).only_at(rows_with_codes(self._codec, codes))
                rows.add(ids, list(codes.values()))
            kept = ColumnBlocks(self._cache_bytes)
            for units, columns in rows.blocks():
                kept.append([units, *columns])
            self._kept = kept
        return self._kept


def streamed_labels(table: PrivateTable, column: str) -> LabelCounts:
    """Labels of an open column, after the unit's bound on rows was applied (to rows that have a label).

    Only fixed-size numbers of labels are ranked and counted; the labels themselves stay in one dictionary.
    """
    unit, known = table.schema.unit, LabelNumbers()
    names = [column] if unit.column is None else list(dict.fromkeys([column, unit.column]))
    rows = UnitRows([np.dtype(np.uint64)] * 2, unit.rows, _share(table))
    times = np.zeros(0, np.int64)
    for _, batch in _read(table, names):
        labels = texts_of(batch[column]).only_labels()
        numbers, has_label = known.of(labels), labels.places >= 0
        if unit.column is None:
            times = _added(times, numbers[has_label], len(known))
        else:
            ids = texts_of(batch[unit.column])
            # The order looks at a hash of the label first: its number depends on the order of the file.
            rows.add(ids.where(has_label), [labels.hashes(ORDER_KEY)[:, 0], numbers])
    for _, (_, numbers) in rows.blocks():
        times = _added(times, numbers, len(known))
    return known.counted(times)


def _added(times: Ints, numbers: Codes, size: int) -> Ints:
    found = np.bincount(numbers.astype(np.int64), minlength=size).astype(np.int64)
    found[: len(times)] += times
    return found


def _read(table: PrivateTable, columns: Sequence[str]) -> Iterator[Batch]:
    """The table's batches, checked to be whole: the kernels trust that columns are of equal length."""
    for rows, batch in table.batches(columns):
        if any(name not in batch or len(batch[name]) != rows for name in columns):
            raise InputError(type(table).__name__, "hands over batches whose columns are missing or differ in length.")
        yield rows, batch


def _share(table: PrivateTable) -> int:
    return max(LEAST_SHARE_BYTES, table.memory_bytes // 4)
