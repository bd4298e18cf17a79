import gc
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.counts.malformed import ROWS_ODD, SECRET
from tests.counts.places import as_csv, as_parquet, by_hand, every_clique, full_counts, people
from understudy.codec.table_codec import TableCodec
from understudy.counts import duckdb_source
from understudy.counts.duckdb_source import DuckDBTable, Engine
from understudy.counts.files import Batch
from understudy.counts.header import connect_read_only, container_of
from understudy.counts.open import open_table
from understudy.errors import InputError, ResourceError
from understudy.marginals.clique import Clique
from understudy.schema import Boolean, OpenCategory, Schema, Unit

MEMORY = 256 << 20


def some_table(rows: int, seed: int = 4) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "who": [str(number) for number in rng.integers(0, max(1, rows // 4), rows)],
            "sex": pa.array(["F", "M", None]).take(pa.array(rng.integers(0, 3, rows))),
            "age": [str(number) for number in rng.integers(0, 10, rows)],
            "city": pa.array(["Rome", "Oslo", "?"]).take(pa.array(rng.integers(0, 3, rows))),
        }
    )


@pytest.mark.parametrize("name", ROWS_ODD)
def test_no_row_stops_the_counting(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(ROWS_ODD[name])
    codec = TableCodec.of(people())
    source = open_table(path, people()).bind(codec)
    everything = codec.domain.everything()
    total = int(source.counts([codec.domain.clique([])])[codec.domain.clique([])][0])
    assert source.counts([everything])[everything].sum() == total
    assert source.occupied(everything).counts.sum() == total
    bounded = Schema(columns=people().columns[1:], unit=Unit(column="sex", rows=1))
    assert sum(full_counts(open_table(path, bounded).bind(TableCodec.of(bounded)))) <= total
    labels = Schema(columns=(OpenCategory(name="city"),), unit=Unit(column="sex", rows=2))
    assert open_table(path, labels).label_counts("city").counts.sum() <= total
    assert SECRET not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("unclosed quote", 2),
        ("too few fields", 3),
        ("mixed line ends", 3),
        ("blank lines", 1),
        ("line ends in a field", 2),
        ("very long line of fields", 2),
        ("header alone", 0),
        ("latin-1", 1),
    ],
)
def test_rows_beside_a_bad_one_still_count(name: str, rows: int, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(ROWS_ODD[name])
    assert sum(full_counts(open_table(path, people()).bind(TableCodec.of(people())))) == rows


def test_coded_columns_are_kept_when_they_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[list[str]] = []
    original = DuckDBTable.batches
    monkeypatch.setattr(
        DuckDBTable, "batches", lambda self, columns: (reads.append(list(columns)), original(self, columns))[1]
    )
    table = some_table(200)
    codec = TableCodec.of(people())
    expected = {clique: by_hand(codec, table, clique) for clique in every_clique(codec)}
    path = as_parquet(table, tmp_path)
    roomy = open_table(path, people(), memory_bytes=MEMORY).bind(codec)
    cramped = DuckDBTable(container_of(path), people(), memory_bytes=40_000).bind(codec)
    cramped._cache_bytes = 100  # type: ignore[attr-defined]
    for source, most in ((roomy, 3), (cramped, 2 * len(expected))):
        reads.clear()
        for _ in range(2):
            for clique in expected:
                assert source.counts([clique])[clique].tolist() == expected[clique]
        assert len(reads) <= most + 1
    assert len(reads) > 3


def test_the_bound_holds_when_rows_come_in_many_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = people(unit=Unit(column="who", rows=2))
    codec = TableCodec.of(schema)
    table = some_table(3000)
    expected = full_counts(open_table(table, schema).bind(codec))
    monkeypatch.setattr("understudy.counts.files.BATCH_ROWS", 100)
    monkeypatch.setattr("understudy.counts.files.MOST_VALUES", 100)
    source = open_table(as_parquet(table, tmp_path), schema, memory_bytes=MEMORY, threads=2).bind(codec)
    assert full_counts(source) == expected
    pair = codec.domain.clique(["sex", "city"])
    assert source.counts([pair])[pair].sum() == sum(expected)


def test_removing_one_unit_changes_at_most_its_bound(tmp_path: Path) -> None:
    schema = people(unit=Unit(column="who", rows=2))
    codec = TableCodec.of(schema)
    table = some_table(120)
    full = np.array(full_counts(open_table(as_csv(table, tmp_path), schema).bind(codec)))
    for unit in sorted(set(table.column("who").to_pylist()))[:5]:
        without = table.filter(pa.array([who != unit for who in table.column("who").to_pylist()]))
        fewer = np.array(full_counts(open_table(as_csv(without, tmp_path), schema).bind(codec)))
        assert 1 <= np.abs(full - fewer).sum() <= 2


def test_the_engine_is_private_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine = Engine(64 << 20, 1)
    (folder,) = tmp_path.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for command in (
        "SELECT * FROM read_text('/etc/hostname')",
        "INSTALL httpfs",
        "SET memory_limit = '100GB'",
        f"ATTACH '{tmp_path / 'x.duckdb'}'",
    ):
        with pytest.raises(duckdb.Error):
            engine._connection.execute(command)
    del engine
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_engines_print_nothing(tmp_path: Path) -> None:
    # A progress bar would appear after two seconds and tell how long the rows took.
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("CREATE TABLE t (a INTEGER)")
    engine = Engine(64 << 20, 1)
    for connection in (engine._connection, connect_read_only(tmp_path / "t.duckdb")):
        query = "SELECT current_setting('enable_progress_bar'), current_setting('enable_progress_bar_print')"
        assert connection.execute(query).fetchall() == [(False, False)]


def test_a_source_that_is_dropped_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    schema = people(unit=Unit(column="who", rows=1))
    path = as_parquet(some_table(50), tmp_path)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    source = open_table(path, schema).bind(TableCodec.of(schema))
    full_counts(source)
    assert len(list((tmp_path / "temporary").iterdir())) == 1
    del source
    gc.collect()
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_full_engine_is_told_without_a_value(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    schema = people(unit=Unit(column="who", rows=1))
    table = some_table(50).set_column(0, "who", pa.array([SECRET] * 50))
    source = open_table(as_parquet(table, tmp_path), schema).bind(TableCodec.of(schema))
    monkeypatch.setattr(duckdb_source, "_first_rows", lambda *_: f"QUALIFY error('{SECRET}')")
    with pytest.raises(ResourceError) as caught:
        full_counts(source)
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_file_that_breaks_while_units_are_ranked(tmp_path: Path) -> None:
    schema = people(unit=Unit(column="who", rows=1))
    path = as_parquet(some_table(50), tmp_path)
    source = open_table(path, schema).bind(TableCodec.of(schema))
    path.unlink()
    with pytest.raises(InputError, match="broke off"):
        full_counts(source)


LIMITED = """
import resource, sys
from pathlib import Path
from tests.counts.places import people
from understudy.codec.table_codec import TableCodec
from understudy.counts.open import open_table
from understudy.schema import Unit

def peak():
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024

def total(path, unit):
    schema = people(unit=unit)
    source = open_table(path, schema, memory_bytes=128 << 20, threads=1).bind(TableCodec.of(schema))
    everything = source.domain.everything()
    return int(source.counts([everything])[everything].sum())

small, large = sys.argv[1:]
for unit in (Unit(), Unit(column="who", rows=1)):
    total(small, unit)
    before = peak()
    print(total(large, unit), peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_more_rows_than_memory_holds(tmp_path: Path) -> None:
    rows, parts = 500_000, 6
    rng = np.random.default_rng(8)
    text = pa.array([f"label number {number} with a long text after it" * 4 for number in range(50)])
    small, large = tmp_path / "small.parquet", tmp_path / "large.parquet"
    written = 0
    with pq.ParquetWriter(
        large, pa.schema([("who", pa.int64()), *[(name, pa.string()) for name in ("sex", "age", "city")]])
    ) as writer:
        for part in range(parts):
            columns = [text.take(pa.array(rng.integers(0, 50, rows))) for _ in range(3)]
            table = pa.table([pa.array(np.arange(rows) + part * rows), *columns], names=["who", "sex", "age", "city"])
            written += table.nbytes
            writer.write_table(table)
            if not part:
                pq.write_table(table.slice(0, 1000), small)
    assert written > 1 << 30
    command = [sys.executable, "-c", LIMITED, str(small), str(large)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."])}
    answer = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    lines = answer.stdout.splitlines()
    assert len(lines) == 2, repr(answer.stdout)  # nothing else may be printed, however long it takes
    for line in lines:
        total, extra = map(int, line.split())
        assert total == rows * parts
        assert extra < 320 << 20, f"{extra >> 20} MiB for a table of {written >> 20} MiB"


def test_columns_asked_one_by_one_are_read_at_most_twice(tmp_path: Path) -> None:
    names = [f"c{place}" for place in range(12)]
    schema = Schema(tuple(Boolean(name=name) for name in names), Unit())
    path = as_parquet(pa.table({name: [True, False, True] for name in names}), tmp_path)
    table = DuckDBTable(container_of(path), schema, memory_bytes=MEMORY)
    reads: list[Sequence[str]] = []
    batches = table.batches

    def noted(columns: Sequence[str]) -> Iterator[Batch]:
        reads.append(columns)
        return batches(columns)

    table.batches = noted  # type: ignore[method-assign]
    source = table.bind(TableCodec.of(schema))
    for name in names:
        assert sum(source.counts([Clique((name,))])[Clique((name,))]) == 3
    assert [len(columns) for columns in reads] == [1, 12]
