"""A private table that notes when rows are read, and refuses if no charge is on disk by then."""

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from understudy.counts.source import Batch, PrivateTable
from understudy.schema import Schema


class Watched(PrivateTable):
    """Five rows without a value; `before_read` runs before each look at them."""

    def __init__(self, schema: Schema, before_read: Callable[[], None]) -> None:
        super().__init__(schema.names, schema)
        self.before_read = before_read
        self.reads = 0

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """All rows at once."""
        self.before_read()
        self.reads += 1
        yield 5, {name: pa.nulls(5) for name in columns}
