"""Counts inside cells equal counting by hand, and the cells of a batch are worked out once."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from tests.methods.door import MEMORY, letters, rows_of
from understudy.codec.table import TableCodec
from understudy.counts.frames import FrameTable
from understudy.domain import Clique
from understudy.privacy.trees import counts_within

SCHEMA = letters({"a": 5, "b": 3, "c": 2})
RNG = np.random.default_rng(3)
CODES = {name: RNG.integers(0, size, 700) for name, size in {"a": 5, "b": 3, "c": 2}.items()}
TABLE = rows_of(CODES)


@dataclass
class Sum:
    """Rows by the sum of two codes, with a diary."""

    columns: Clique = field(default_factory=lambda: Clique(("a", "b")))
    cells: int = 7
    name: str = "sum"
    calls: int = 0

    def assign(self, codes: Mapping[str, npt.NDArray[np.integer]]) -> npt.NDArray[np.int64]:
        self.calls += 1
        return codes["a"].astype(np.int64) + codes["b"]


@dataclass(frozen=True)
class Everything:
    """All rows in one cell, without looking at any column."""

    columns: Clique = field(default_factory=Clique)
    cells: int = 1
    name: str = "everything"

    def assign(self, codes: object) -> npt.NDArray[np.int64]:
        raise AssertionError("no column, nothing to assign by")


def _counts(table: pa.Table, partition: Sum | Everything, columns: list[str]) -> dict[str, np.ndarray]:
    codec = TableCodec.of(SCHEMA)
    source = FrameTable(table, SCHEMA, memory_bytes=MEMORY).bind(codec)
    return counts_within(source, codec.domain, partition, columns)


def test_counts_are_those_of_the_rows_in_each_cell() -> None:
    partition = Sum()
    found = _counts(TABLE, partition, ["c", "a", "c"])
    cell = CODES["a"] + CODES["b"]
    assert list(found) == ["c", "a"]
    for name, size in (("c", 2), ("a", 5)):
        by_hand = [[int(np.sum((cell == at) & (CODES[name] == code))) for code in range(size)] for at in range(7)]
        assert found[name].tolist() == by_hand
    assert partition.calls == 1


def test_a_partition_without_columns_is_one_cell() -> None:
    assert _counts(TABLE, Everything(), ["b"])["b"].tolist() == [np.bincount(CODES["b"], minlength=3).tolist()]


@pytest.mark.parametrize("rows", [0, 1])
def test_small_tables(rows: int) -> None:
    found = _counts(TABLE.slice(0, rows), Sum(), ["b"])
    assert found["b"].shape == (7, 3)
    assert found["b"].sum() == rows


def test_nothing_counted_is_nothing_read() -> None:
    partition = Sum()
    assert _counts(TABLE, partition, []) == {}
    assert partition.calls == 0
