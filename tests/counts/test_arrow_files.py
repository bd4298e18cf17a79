"""Arrow files with many rows in few bytes."""

import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest

from understudy.counts.arrow_files import arrow_batches
from understudy.counts.opening import open_table
from understudy.errors import InputError
from understudy.schema import Category, Schema, Unit

SCHEMA = Schema(columns=(Category(name="a", labels=("x", "y")), Category(name="b", labels=("x", "y"))), unit=Unit())


def stored(place: Path, *columns: pa.Array) -> Path:
    batch = pa.RecordBatch.from_arrays(list(columns), names=[chr(ord("a") + number) for number in range(len(columns))])
    with pa.ipc.new_file(str(place), batch.schema) as sink:
        sink.write_batch(batch)
    return place


def test_nothing_is_built_of_empty_structs(tmp_path: Path) -> None:
    nests = pa.Array.from_buffers(pa.struct([]), 1 << 22, [None], 0)
    place = stored(tmp_path / "t.arrow", nests, nests)
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        table = open_table(place, SCHEMA)
        rows = 0
        for count, batch in table.batches(["a", "b"]):
            rows += count
            assert pa.total_allocated_bytes() - before < 1 << 24
            assert batch["a"][0].as_py() == b"\xff"
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()
    assert rows == 1 << 22


def test_values_count_even_if_they_take_no_bytes(tmp_path: Path) -> None:
    nothing = pa.nulls(100_000_000)
    assert open_table(stored(tmp_path / "two.arrow", nothing, nothing), SCHEMA)
    with pytest.raises(InputError, match="expands"):
        open_table(stored(tmp_path / "three.arrow", nothing, nothing, nothing), SCHEMA)


def test_nests_are_unreadable_and_absent_ones_absent(tmp_path: Path) -> None:
    lists = pa.array([[1], None, []])
    unions = pa.UnionArray.from_sparse(pa.array([0, 0, 0], pa.int8()), [pa.array([1, None, 2])])
    coded = pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.int8()), pa.array([{"k": 1}, {"k": 2}]))
    place = stored(tmp_path / "t.arrow", lists, unions, coded)
    ((rows, batch),) = arrow_batches(place, ["a", "b", "c"])
    assert rows == 3
    assert batch["a"].to_pylist() == batch["c"].to_pylist() == [b"\xff", None, b"\xff"]
    assert batch["b"].to_pylist() == [b"\xff"] * 3
