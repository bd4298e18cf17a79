"""SQLite: values that are typed one by one, snapshots, and files that cannot be read."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from understudy.codec.table import TableCodec
from understudy.counts.opening import header_of, open_table
from understudy.counts.sqlite import SqliteReader
from understudy.errors import InputError
from understudy.schema import Category, Column, Float, Integer, OpenCategory, Schema, UniformBins, Unit

LIMITS = {"memory_bytes": 1 << 26, "threads": 1}


@contextlib.contextmanager
def changed(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        yield database


def made(path: Path, columns: str, *rows: tuple[object, ...]) -> str:
    with changed(path) as database:
        database.execute(f"CREATE TABLE t ({columns})")
        for row in rows:
            database.execute(f"INSERT INTO t VALUES ({', '.join('?' * len(row))})", row)
    return f"sqlite:{path}::t"


def codes(location: object, column: Column) -> list[int]:
    schema = Schema((column,), Unit())
    source = open_table(location, schema).bind(TableCodec.of(schema))
    return source.counts([source.domain.everything()])[source.domain.everything()].tolist()


STRANGE: tuple[object, ...] = (
    None, 5, 2**62 + 1, -(2**63), 5.0, 2.5, float("inf"), -0.0, "5", "5.0", "x", "", " 5 ", b"5", b"\xff", b"", 1e300,
    "é", "2,5",
)  # fmt: skip
COLUMNS: tuple[Column, ...] = (
    Category(name="x", labels=("5", "x", "2.5", "é", str(2**62 + 1)), other="other"),
    Integer(name="x", lower=-10, upper=10),
    Float(name="x", lower=-10.0, upper=10.0, bins=UniformBins(9)),
    Float(name="x", lower=0.0, upper=9.0, bins=UniformBins(9), decimal=",", thousands="."),
)


@pytest.mark.parametrize("column", COLUMNS, ids=["category", "integer", "float", "decimal comma"])
def test_a_value_is_read_the_same_whatever_stands_beside_it(column: Column, tmp_path: Path) -> None:
    alone = [codes(made(tmp_path / f"{number}.db", "x", (value,)), column) for number, value in enumerate(STRANGE)]
    together = codes(made(tmp_path / "all.db", "x", *((value,) for value in STRANGE)), column)
    assert together == [sum(parts) for parts in zip(*alone, strict=True)]


def test_text_that_is_not_utf8_and_blobs_are_bytes(tmp_path: Path) -> None:
    location = made(tmp_path / "t.db", "who, s text", (b"\xfe\xff", "a"), (b"\xfe\xfe", "a"), ("z", b"\xff"))
    with changed(tmp_path / "t.db") as database:
        database.execute("INSERT INTO t VALUES (CAST(x'fdfd' AS TEXT), CAST(x'61' AS TEXT))")
    schema = Schema((Category(name="s", labels=("a",), other="?"),), Unit("who", 1))
    source = open_table(location, schema).bind(TableCodec.of(schema))
    assert source.counts([source.domain.everything()])[source.domain.everything()].tolist() == [3, 1, 0]


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_all_passes_are_of_one_snapshot(mode: str, tmp_path: Path) -> None:
    location = made(tmp_path / "t.db", "x", (1,), (2,))
    with changed(tmp_path / "t.db") as database:
        database.execute(f"PRAGMA journal_mode = {mode}")
    with contextlib.closing(sqlite3.connect(tmp_path / "t.db", timeout=0)) as writer:
        reader = SqliteReader(location)
        with contextlib.suppress(sqlite3.OperationalError), writer:  # in the older mode the writer has to wait
            writer.execute("INSERT INTO t VALUES (3)")
        assert [list(reader.batches([], **LIMITS)) for _ in range(2)] == [[(2, {})]] * 2
        assert sum(rows for rows, _ in reader.batches(["x"], **LIMITS)) == 2
        reader.close()
        if mode == "delete":
            with writer:
                writer.execute("INSERT INTO t VALUES (3)")
    again = SqliteReader(location)
    assert list(again.batches([], **LIMITS)) == [(3, {})]
    again.close()


def test_nothing_can_be_written(tmp_path: Path) -> None:
    reader = SqliteReader(made(tmp_path / "t.db", "x", (1,)))
    with pytest.raises(sqlite3.OperationalError):
        reader._connection.execute("INSERT INTO t VALUES (2)")
    reader.close()


def test_locations(tmp_path: Path) -> None:
    made(tmp_path / "t.db", '"a.b" INTEGER, day DATE, "c""d" VARCHAR(9), e', (1, "2020-01-01", "x", None))
    for suffix in ("sqlite", "sqlite3"):
        (tmp_path / f"t.{suffix}").write_bytes((tmp_path / "t.db").read_bytes())
    header = [("a.b", "int64"), ("day", "date32[day]"), ('c"d', "string"), ("e", "string")]
    for form in ("sqlite:{}/t.db::t", "sqlite:{}/t.db", "{}/t.db", "{}/t.sqlite", "{}/t.sqlite3::t", "{}/t.db::t"):
        assert header_of(form.format(tmp_path)) == header
    with changed(tmp_path / "t.db") as database:
        database.execute('CREATE VIEW "v.w" AS SELECT "a.b" + 1 AS n FROM t')
        database.execute("CREATE TABLE g (a, b GENERATED ALWAYS AS (a + 1))")
    assert header_of(f"{tmp_path}/t.db::v.w") == [("n", "string")]
    assert [name for name, _ in header_of(f"{tmp_path}/t.db::g")] == ["a", "b"]
    with pytest.raises(InputError, match="does not hold exactly one table"):
        header_of(tmp_path / "t.db")
    with pytest.raises(InputError, match=r"tables here: g, t, v\.w"):
        header_of(f"{tmp_path}/t.db::nowhere")


def test_what_is_no_database_is_told_so(tmp_path: Path) -> None:
    duckdb.connect(str(tmp_path / "d.duckdb")).close()
    (tmp_path / "d.duckdb").rename(tmp_path / "d.db")
    (tmp_path / "text.db").write_text("nothing of the kind")
    whole = made(tmp_path / "t.db", "x", *((str(number) * 50,) for number in range(400)))
    (tmp_path / "cut.db").write_bytes((tmp_path / "t.db").read_bytes()[:100] + b"\xff" * 4000)
    assert header_of(whole)
    for name, words in (
        ("none.db", "no such file"),
        ("d.db", r"needs the suffix \.duckdb"),
        ("text.db", "not a readable SQLite database"),
        ("cut.db", "not a readable SQLite database"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            header_of(f"sqlite:{tmp_path / name}::t")
        assert caught.value.__context__ is None


def test_a_locked_file_is_refused_before_anything_is_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.counts.sqlite.WAIT_SECONDS", 0.0)
    location = made(tmp_path / "t.db", "x", (1,))
    with contextlib.closing(sqlite3.connect(tmp_path / "t.db", isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match="is locked"):
            header_of(location)


def test_a_view_that_breaks_tells_nothing_of_its_rows(tmp_path: Path) -> None:
    made(tmp_path / "t.db", "x", ("1",), ("Zyxwvut",))
    with changed(tmp_path / "t.db") as database:
        database.execute("CREATE VIEW v AS SELECT json_extract(x, '$.a') AS x FROM t")
    table = open_table(f"{tmp_path}/t.db::v", Schema((OpenCategory(name="x"),), Unit()))
    with pytest.raises(InputError, match="could not be read to its end") as caught:
        table.label_counts("x")
    assert "Zyxwvut" not in str(caught.value)
    assert caught.value.__context__ is None
