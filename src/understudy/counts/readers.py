"""RowReader: the one way in which rows come from files, databases and lakes, and the private table over it.

An engine needs no counting of its own: it hands over rows as Arrow batches, and codec, kernels and the bound of k rows
per unit are the same for every engine. So a table gives the same counts wherever it lies.

Before the charge and after it
------------------------------
Opening a reader does everything that can go wrong for reasons other than rows: it connects, fixes the snapshot, reads
names and types of the columns, and asks whether the rows may be read. No row is looked at, and nothing is charged yet.

All passes over the rows are of that one snapshot, so the counts of one run belong to one table. Where an engine cannot
promise this, its reader says so in its docstring and keeps the rows of the first pass.

Once rows are read, nothing that the engine says may be shown: servers and drivers quote values (a cast that fails in a
view names the text it failed on). `unbroken` replaces every error by a message that depends on the location alone. It
is raised outside of the handler, so that the engine's own error is not even its context. A pass that breaks gives no
counts, and noise is drawn only after a complete count: the run ends, the charge stays, and nothing is released.
"""

import abc
import contextlib
from collections.abc import Iterator, Sequence

import pyarrow as pa

from understudy.counts.source import DEFAULT_MEMORY_BYTES, Batch, PrivateTable
from understudy.errors import InputError, UnderstudyError
from understudy.schema import Schema

Header = tuple[tuple[str, str], ...]
"""Names of columns with their storage types."""
BATCH_ROWS = 1 << 17
MOST_VALUES = 1 << 22  # rows × columns of one batch


class RowReader(abc.ABC):
    """The rows of one table in one snapshot, as Arrow batches of the wanted columns.

    A reader for a scheme or suffix of locations is made of the location and the schema, which is None when only the
    names of the columns are wanted (for a draft).
    """

    where: str
    """The table in words, for messages: never with a password, and never anything that rows could change."""
    engine: str
    """What holds the table, such as "Parquet" or "PostgreSQL 17.2"; public."""
    snapshot: str = ""
    """Which state of the table is read, in the engine's own terms; public. Nothing where there is only one."""
    bytes: int | None = None
    """How many bytes the table takes where it lies; None where nobody says. For whoever may open it, never released."""
    pinned: str = ""
    """The location that opens this state again, for other processes; nothing where the location does so already."""

    @property
    @abc.abstractmethod
    def header(self) -> Header:
        """Names and storage types of the columns, known since the reader was opened. Public."""

    @abc.abstractmethod
    def batches(self, columns: Sequence[str], *, memory_bytes: int, threads: int) -> Iterator[Batch]:
        """The number of rows and the values of these columns, batch by batch; every row once, no column perhaps.

        Private. Values come as they are stored: what the codec cannot read is for the codec to say.
        """

    def parts(self, columns: Sequence[str], *, memory_bytes: int, threads: int) -> Sequence[Iterator[Batch]]:
        """The same rows as at most `threads` streams, each for a thread of its own; one stream unless it is replaced.

        Every row comes in exactly one of them. One after the other they give the rows in the order of `batches`, and
        what is open behind a stream belongs to it alone.
        """
        return [self.batches(columns, memory_bytes=memory_bytes, threads=threads)]

    def check(self, memory_bytes: int) -> None:  # noqa: B027 - most readers have found everything by opening
        """Whatever else can be found wrong before a charge, at the cost of a look; nothing by default."""

    def check_again(self) -> None:  # noqa: B027 - most readers find their rows where they lie
        """What can have gone wrong since opening, asked before each charge at no cost; nothing by default."""

    def close(self) -> None:  # noqa: B027 - most readers hold nothing
        """Gives back what opening took. Afterwards no rows can be read."""


class StreamedTable(PrivateTable):
    """A private table behind a reader. Building it checks the header against the schema and reads no row."""

    def __init__(
        self, reader: RowReader, schema: Schema, *, memory_bytes: int = DEFAULT_MEMORY_BYTES, threads: int = 1
    ) -> None:
        self.reader = reader
        names = [name for name, _ in reader.header]
        super().__init__(names, schema, memory_bytes=memory_bytes, threads=threads)
        reader.check(memory_bytes)

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Rows of these columns, batch by batch. Private."""
        # A generator of the table's own, so that the table, and with it the reader, lasts as long as the pass.
        yield from unbroken(
            self.reader.where, self.reader.batches(columns, memory_bytes=self.batch_bytes, threads=self.threads)
        )

    def parts(self, columns: Sequence[str], most: int) -> Sequence[Iterator[Batch]]:
        """The same rows in streams for several threads. Private."""
        found = self.reader.parts(columns, memory_bytes=self.batch_bytes // most, threads=most)
        return [self._part(part) for part in found]

    def _part(self, part: Iterator[Batch]) -> Iterator[Batch]:
        yield from unbroken(self.reader.where, part)

    def close(self) -> None:
        """Gives back connections and files. Afterwards no rows can be read."""
        self.closed = True
        self.reader.close()


def unbroken(where: str, batches: Iterator[Batch]) -> Iterator[Batch]:
    """The same batches; an engine that breaks raises without its own words, which might quote a row.

    Raises:
        InputError: the engine, the file or the connection failed.
        MemoryError: the machine's memory ran out.
    """
    full = False
    while True:
        try:
            batch = next(batches, None)
        except UnderstudyError:
            raise
        except MemoryError:
            full = True
            break
        except Exception:  # noqa: BLE001 - whatever an engine raises
            break
        if batch is None:
            return
        try:
            yield batch
        except GeneratorExit:
            _shut(batches)
            raise
    if full:
        raise MemoryError(f"{where}: memory ran out while it was read.")
    raise InputError(where, "could not be read to its end.", "Check that it is whole and can be reached.")


def _shut(batches: Iterator[Batch]) -> None:
    """Ends a pass that nobody reads to its end, such as a query on a server."""
    shut = getattr(batches, "close", None)
    if shut is not None:
        with contextlib.suppress(Exception):
            shut()


def in_utc(values: pa.Array) -> pa.Array:
    """Instants with a zone under UTC: engines hand them over under the zone of a session or a machine."""
    kind = values.type
    if pa.types.is_timestamp(kind) and kind.tz not in (None, "UTC"):
        return values.cast(pa.timestamp(kind.unit, "UTC"))
    return values


def batch_rows(columns: int) -> int:
    """How many rows of that many columns make a batch."""
    return max(1024, min(BATCH_ROWS, MOST_VALUES // max(1, columns)))
