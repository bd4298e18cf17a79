import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.counts.malformed import ROWS_ODD, SECRET
from tests.counts.places import Place, as_csv, as_database, as_parquet, by_hand, every_clique, full_counts, people
from understudy.codec.table import TableCodec
from understudy.counts import files, readers, streaming
from understudy.counts.files import FileReader, connect_read_only, container_of
from understudy.counts.opening import open_table
from understudy.counts.readers import StreamedTable
from understudy.counts.source import Batch
from understudy.domain import Clique
from understudy.errors import InputError
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
        ("line ends in a field", 3),
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
    original = StreamedTable.batches
    monkeypatch.setattr(
        StreamedTable, "batches", lambda self, columns: (reads.append(list(columns)), original(self, columns))[1]
    )
    table = some_table(200)
    codec = TableCodec.of(people())
    expected = {clique: by_hand(codec, table, clique) for clique in every_clique(codec)}
    path = as_parquet(table, tmp_path)
    roomy = open_table(path, people(), memory_bytes=MEMORY).bind(codec)
    cramped = StreamedTable(FileReader(path, people()), people(), memory_bytes=40_000).bind(codec)
    refused = StreamedTable(FileReader(path, people()), people(), memory_bytes=40_000).bind(codec)
    cramped._cache_bytes = refused._cache_bytes = 100  # type: ignore[attr-defined]
    for source, most in ((roomy, 3), (cramped, 3), (refused, 2 * len(expected))):
        monkeypatch.setattr(streaming, "SPARE_BYTES", 1 << 62 if source is refused else 0)
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
    monkeypatch.setattr("understudy.counts.readers.BATCH_ROWS", 100)
    monkeypatch.setattr("understudy.counts.readers.MOST_VALUES", 100)
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


def test_the_engine_that_reads_databases_is_locked_and_silent(tmp_path: Path) -> None:
    # A progress bar would appear after two seconds and tell how long the rows took.
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("CREATE TABLE t (a INTEGER)")
    opened = connect_read_only(tmp_path / "t.duckdb")
    settings = ("enable_progress_bar", "enable_progress_bar_print", "temp_directory")
    query = ", ".join(f"current_setting('{name}')" for name in settings)
    assert opened.execute(f"SELECT {query}").fetchall() == [(False, False, "")]
    for command in (
        "SELECT * FROM read_text('/etc/hostname')",
        "INSTALL httpfs",
        "SET memory_limit = '100GB'",
        f"ATTACH '{tmp_path / 'x.duckdb'}'",
    ):
        with pytest.raises(duckdb.Error):
            opened.execute(command)


def test_a_file_that_breaks_while_units_are_ranked(tmp_path: Path) -> None:
    schema = people(unit=Unit(column="who", rows=1))
    path = as_parquet(some_table(50), tmp_path)
    source = open_table(path, schema).bind(TableCodec.of(schema))
    path.unlink()
    with pytest.raises(InputError, match="could not be read to its end"):
        full_counts(source)


LIMITED = """
import resource, sys
from pathlib import Path
from tests.counts.places import people
from understudy.codec.table import TableCodec
from understudy.counts.opening import open_table
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
    rows, parts = 250_000, 6
    rng = np.random.default_rng(8)
    text = pa.array([f"label number {number} with a long text after it" * 8 for number in range(50)])
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


KILLED = """
import sys
from collections.abc import Iterator
import numpy as np
import pyarrow as pa
from tests.counts.places import people
from understudy.codec.table import TableCodec
from understudy.counts import streaming
from understudy.counts.source import PrivateTable
from understudy.schema import Unit

class Endless(PrivateTable):
    def batches(self, columns):
        for part in range(10**6):
            ids = pa.array([f"Ada Lovelace {part} {number}" for number in range(1 << 16)])
            yield 1 << 16, {name: ids if name == "who" else pa.nulls(1 << 16) for name in columns}

append = streaming.NamelessFile.append

def told(self, array):
    start = append(self, array)
    print("spilled", flush=True)
    return start

streaming.NamelessFile.append = told
schema = people(unit=Unit(column="who", rows=1))
table = Endless(["who", *schema.names], schema, memory_bytes=64 << 20)
source = table.bind(TableCodec.of(schema))
source.counts([source.domain.everything()])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that nothing can catch")
def test_a_killed_run_leaves_nothing_behind(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."]), "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True, env=environment) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "spilled\n"
        assert list(tmp_path.rglob("*")) == [], "rows on disk have a name"
        run.send_signal(signal.SIGKILL)
        assert run.wait() == -signal.SIGKILL
    assert list(tmp_path.rglob("*")) == []


LONG = 70_000_000


@pytest.mark.parametrize("place", [as_parquet, as_database])
def test_the_length_of_a_value_decides_nothing(place: Place, tmp_path: Path) -> None:
    """At the smallest limit: an id and a label each longer than all memory that ranking may use."""
    jobs = OpenCategory(name="city")
    schema = Schema(columns=(people().columns[0], jobs), unit=Unit(column="who", rows=1))
    cities = ["Rome", "Rome", "Oslo", "y" * LONG]
    rows = {"who": ["a", "b", "x" * LONG, "c"], "sex": ["F", "M", "F", "M"], "city": cities}
    table = open_table(place(pa.table(rows), tmp_path), schema, memory_bytes=64 << 20, threads=2)
    found = table.label_counts("city")
    assert dict(zip(found.labels, found.counts.tolist(), strict=True)) == {"Rome": 2, "Oslo": 1}
    assert sum(full_counts(table.bind(TableCodec.of(schema, {"city": ["Rome"]})))) == 4


def test_a_database_is_read_on_where_its_limit_was_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "BATCH_ROWS", 2048)
    table = some_table(9000)
    container = container_of(as_database(table, tmp_path))
    original, tried = files._query_batches, []

    def breaking(path: Path, name: str, wanted: list[str], settings: dict[str, object]) -> Iterator[Batch]:
        tried.append(settings)
        for number, batch in enumerate(original(path, name, wanted, settings)):  # type: ignore[arg-type]
            if len(tried) == 1 and number == 2:
                raise duckdb.OutOfMemoryException(SECRET)
            yield batch

    monkeypatch.setattr(files, "_query_batches", breaking)
    batches = list(files.file_batches(container, ["who", "age"], memory_bytes=64 << 20, threads=2))
    read = pa.concat_tables([pa.table(dict(batch)) for _, batch in batches])
    assert read.to_pydict() == table.select(["who", "age"]).to_pydict()
    assert len(tried) == 2


def test_memory_that_runs_out_is_called_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    container = container_of(as_parquet(some_table(5), tmp_path))

    def full(*_: object) -> Iterator[Batch]:
        raise pa.ArrowMemoryError(SECRET)
        yield  # type: ignore[unreachable]

    monkeypatch.setattr(files, "parquet_batches", full)
    with pytest.raises(MemoryError, match="memory ran out while it was read") as caught:
        list(files.file_batches(container, ["who"], memory_bytes=64 << 20, threads=1))
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


def test_more_text_than_a_dictionary_holds_is_read_plainly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = some_table(300)
    container = container_of(as_parquet(table, tmp_path))
    kinds = []
    for most in (1 << 30, 10):
        monkeypatch.setattr(files, "MOST_DICTIONARY_BYTES", most)
        batches = list(files.file_batches(container, ["who"], memory_bytes=64 << 20, threads=1))
        kinds.append(pa.types.is_dictionary(batches[0][1]["who"].type))
        assert sum(rows for rows, _ in batches) == 300
    assert kinds == [True, False]


def test_columns_asked_one_by_one_are_read_at_most_twice(tmp_path: Path) -> None:
    names = [f"c{place}" for place in range(12)]
    schema = Schema(tuple(Boolean(name=name) for name in names), Unit())
    path = as_parquet(pa.table({name: [True, False, True] for name in names}), tmp_path)
    table = StreamedTable(FileReader(path, schema), schema, memory_bytes=MEMORY)
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


def test_a_label_that_one_unit_brings_first_does_not_decide_which_labels_of_others_count() -> None:
    """Numbers of labels follow their first appearance, so other units must not be ranked by them."""
    schema = Schema(columns=(OpenCategory(name="city"),), unit=Unit(column="person", rows=1))
    cities = ["first of all", *[f"city {number}" for number in range(6)] * 50]
    people = ["one more", *(f"p{row // 6}" for row in range(300))]
    table = pa.table({"city": cities, "person": people})
    found = [open_table(rows, schema).label_counts("city") for rows in (table, table.slice(1))]
    more, fewer = (dict(zip(one.labels, one.counts.tolist(), strict=True)) for one in found)
    assert more == {**fewer, "first of all": 1}
