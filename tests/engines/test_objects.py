"""Tables behind Python objects: asked once, kept, and never at the caller's expense."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi as adbc
import adbc_driver_sqlite.dbapi as adbc_sqlite
import arro3.core
import duckdb
import ibis
import pyarrow as pa
import pytest
import sqlalchemy as sa

import understudy as us
from tests.engines.servers import Server
from understudy.codec.table import TableCodec
from understudy.counts.databases import KeptRows
from understudy.counts.opening import header_of, open_table
from understudy.counts.readers import StreamedTable
from understudy.counts.values import values_array
from understudy.errors import InputError, UsageError
from understudy.privacy.cost import Budget
from understudy.privacy.ledger import Ledger
from understudy.schema import Category, Datetime, Float, Integer, Schema, UniformBins, Unit

SCHEMA = Schema((Category(name="s", labels=("a", "b")), Integer(name="n", lower=0, upper=9)), Unit())
TABLE = pa.table({"s": ["a", "b", None] * 40, "n": list(range(10)) * 12, "name": ["Ada"] * 120})


def counted(data: object, schema: Schema = SCHEMA) -> list[int]:
    source = open_table(data, schema).bind(TableCodec.of(schema))
    return source.counts([source.domain.everything()])[source.domain.everything()].tolist()


@pytest.fixture
def engine(server: Server) -> sa.Engine:
    return sa.create_engine(f"postgresql+psycopg://postgres@/postgres?host={server.folder}&port={server.port}")


def test_a_query_runs_once_and_all_passes_are_of_its_rows(server: Server, engine: sa.Engine) -> None:
    name = server.hold(TABLE)
    seen: list[str] = []
    sa.event.listen(engine, "before_cursor_execute", lambda *said: seen.append(said[2]))
    table = open_table(us.read_database(engine, query=f"SELECT * FROM {name}"), SCHEMA)
    asked = len(seen)
    assert all(query.endswith("WHERE 1 = 0") for query in seen)
    before = sum(rows for rows, _ in table.batches(["s"]))
    server.run(f"INSERT INTO {name} SELECT * FROM {name}")
    assert [sum(rows for rows, _ in table.batches(columns)) for columns in (["n"], [], ["s", "n"])] == [before] * 3
    assert seen[asked:] == [f'SELECT "s", "n" FROM (SELECT * FROM {name}\n) AS rows_of_query']  # and no names of people
    engine.dispose()


def test_a_transaction_of_the_caller_goes_on(server: Server, engine: sa.Engine) -> None:
    name = server.hold(TABLE)
    with engine.connect() as connection:
        counted(us.read_database(connection, table=name))
        assert not connection.in_transaction()  # what began with the question ended with it
        connection.execute(sa.text(f"INSERT INTO {name} SELECT * FROM {name}"))
        assert sum(counted(us.read_database(connection, table=name))) == 240
        assert connection.in_transaction()
        connection.rollback()
        assert sum(counted(us.read_database(connection, table=name))) == 120
    engine.dispose()
    with adbc.connect(server.location("").removesuffix("::")) as mine:
        with mine.cursor() as cursor:
            cursor.execute(f"INSERT INTO {name} SELECT * FROM {name}")
        assert sum(counted(us.read_database(mine, table=name))) == 240
        mine.rollback()
        assert sum(counted(us.read_database(mine, query=f"SELECT * FROM {name};"))) == 120


def test_types_that_a_driver_hands_over_wrongly(server: Server) -> None:
    server.run("CREATE TABLE wrongly (s date, n money)", "INSERT INTO wrongly VALUES ('infinity', '2.50'), (NULL, '7')")
    days = us.schema.Date(name="s", lower=dt.date(2000, 1, 1), upper=dt.date(2009, 12, 31), bins=UniformBins(2))
    schema = Schema((days, Float(name="n", lower=0.0, upper=9.0, bins=UniformBins(3))), Unit())
    expected = counted(pa.table({"s": ["9999-12-31", None], "n": ["2.5", "7"]}), schema)
    with adbc.connect(server.location("").removesuffix("::")) as mine:
        assert counted(us.read_database(mine, table="wrongly"), schema) == expected
        assert counted(us.read_database(mine, query="SELECT * FROM wrongly"), schema) == expected


def test_streams_are_read_once_and_say_so() -> None:
    stream = TABLE.to_reader()
    assert header_of(stream) == [("s", "string"), ("n", "int64"), ("name", "string")]
    assert us.Schema.draft(stream).text
    assert SCHEMA.check(stream).left_out == ("name",)
    assert counted(stream) == counted(TABLE)  # none of the looks at the header took a row
    with pytest.raises(InputError, match="was read already"):
        counted(stream)


def test_every_verb_takes_them(tmp_path: Path) -> None:
    connection = duckdb.connect()
    connection.register("incoming", TABLE)
    connection.execute("CREATE TABLE people AS SELECT * FROM incoming")
    people = us.read_database(connection, table="people")
    release = us.synthesize(people, SCHEMA, method="independent", epsilon=1.0)
    for real in (people, connection.table("people"), ibis.duckdb.from_connection(connection).table("people")):
        assert us.evaluate(real, release, metrics=["marginals"], seed=1).results
        assert us.Schema.draft(real).text
        assert SCHEMA.check(real, rows=True).rows == 120
    study = us.compare(people, SCHEMA, methods=["independent"], epsilons=[1.0], repeats=1, out=tmp_path / "study")
    assert [run.outcome.status for run in study.study.runs] == ["done"]


def test_what_cannot_be_asked_is_refused_before_any_row(engine: sa.Engine, tmp_path: Path) -> None:
    connection = duckdb.connect()
    refused: list[tuple[Any, str]] = [
        (lambda: us.read_database(connection), "either table= or query="),
        (lambda: us.read_database(connection, table="a", query="b"), "either table= or query="),
        (lambda: us.read_database(connection, table='a"b'), "must be a name"),
        (lambda: us.read_database(connection, query=" ; "), "must be a SELECT"),
        (lambda: us.read_database("postgresql://h/d", table="a"), "got str"),
        (lambda: counted(connection), "read_database"),
        (lambda: counted(engine), "read_database"),
        (lambda: counted(us.read_database(connection, table="nowhere")), "cannot be read"),
        (lambda: counted(us.read_database(engine, table="nowhere")), "cannot be read"),
        (lambda: counted(us.read_database(engine, query="DELETE FROM nowhere")), "cannot be read"),
        (lambda: counted(ibis.table({"s": "string", "n": "int"}, name="unbound")), "cannot be read"),
        (lambda: counted(us.read_database(adbc_sqlite.connect(str(tmp_path / "x")), table="t")), "sqlite:file.db"),
        (lambda: counted(object()), "got object"),
    ]
    for ask, words in refused:
        with pytest.raises(UsageError, match=words) as caught:
            ask()
        assert caught.value.__context__ is None
    engine.dispose()


def test_a_query_and_a_connection_are_never_shown(engine: sa.Engine) -> None:
    table = us.read_database(engine, query="SELECT 'Zyxwvut' AS s, 1 / 0 AS n")
    assert "Zyxwvut" not in repr(table)
    assert "postgres" not in repr(table)
    with pytest.raises(InputError, match="could not be read|cannot be read") as caught:  # noqa: RUF043
        counted(table)
    assert "Zyxwvut" not in str(caught.value)
    assert caught.value.__context__ is None
    engine.dispose()


def test_more_rows_than_the_limit_wait_in_a_file_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kept = KeptRows(100)
    parts = [TABLE.slice(start, 20).combine_chunks().to_batches()[0] for start in range(0, 120, 20)]
    mixed = [pa.array([f"{value}" for value in range(20)]), pa.array(range(20))]  # batches may differ in type
    for number, part in enumerate(parts):
        kept.append(20, {"s": part.column("s"), "x": mixed[number % 2]})
    assert list(tmp_path.iterdir()) == []
    for _ in range(2):
        found = list(kept.read(["x", "s"]))
        assert [batch["s"].to_pylist() for _, batch in found] == [part.column("s").to_pylist() for part in parts]
        assert [batch["x"].type for _, batch in found] == [pa.string(), pa.int64()] * 3


def test_kept_rows_count_like_others_however_little_memory_there_is() -> None:
    expected = counted(TABLE)
    table = open_table(TABLE.to_reader(7), SCHEMA)
    assert isinstance(table, StreamedTable)
    list(table.reader.batches(["s"], memory_bytes=64, threads=1))
    source = table.bind(TableCodec.of(SCHEMA))
    assert source.counts([source.domain.everything()])[source.domain.everything()].tolist() == expected


NAIVE, AWARE = dt.datetime(2020, 1, 2, 3), dt.datetime(2020, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=5)))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, None], [1, None]),
        ([2**70, 1], [str(2**70).encode(), b"1"]),
        ([True, 1], [b"true", b"1"]),
        ([Decimal("1.50"), None], [b"1.5", None]),
        ([NAIVE, None], [NAIVE, None]),
        ([AWARE], [dt.datetime(2020, 1, 1, 22, tzinfo=dt.UTC)]),
        ([NAIVE, AWARE], [b"2020-01-02 03:00:00", b"2020-01-01 22:00:00Z"]),
        (["\ud800", "a"], [b"\xed\xa0\x80", b"a"]),
        ([float("nan"), 2.0], [None, 2.0]),
        ([None, None], [None, None]),
        ([[1], {"a": 1}], [b"[1]", b"{'a': 1}"]),
    ],
    ids=str,
)
def test_values_of_python(values: list[object], expected: list[object]) -> None:
    found = values_array(values).to_pylist()
    assert [None if value != value else value for value in found] == expected


HOURS = Datetime(name="t", lower=dt.datetime(2020, 6, 1), upper=dt.datetime(2020, 6, 3), bins=UniformBins(48))
LATE = dt.datetime(2020, 6, 1, 22, tzinfo=dt.timezone(dt.timedelta(hours=-5)))


@pytest.mark.parametrize(
    "beside",
    [dt.datetime(9999, 12, 31, 23, tzinfo=dt.timezone(dt.timedelta(hours=-5))), dt.datetime(2020, 6, 1), "x", 1],
    ids=["end of time", "naive", "text", "number"],
)
def test_what_stands_beside_an_instant_does_not_decide_how_it_is_read(beside: object) -> None:
    codec = TableCodec.of(Schema((HOURS,), Unit()))
    alone, mixed = (codec.encode("t", values_array(values)) for values in ([LATE], [LATE, beside]))
    assert alone[0] == mixed[0]


def test_instants_of_duckdb_are_counted_by_utc_whatever_the_zone_of_the_session() -> None:
    found = []
    for zone in ("UTC", "America/New_York"):
        connection = duckdb.connect()
        connection.execute(f"SET TimeZone = '{zone}'")
        instants = connection.sql("SELECT TIMESTAMPTZ '2020-06-02 01:00:00+00' AS t")
        found.append(counted(instants, Schema((HOURS,), Unit())))
    assert found[0] == found[1]


def test_ids_at_the_ends_of_time_stay_apart_through_adbc(server: Server) -> None:
    days = "'infinity', '9999-12-31', '-infinity', '0001-01-01', '0044-03-15 BC'"
    server.run("CREATE TABLE ends (s text, born date)")
    server.run(f"INSERT INTO ends SELECT 'a', unnest(ARRAY[{days}]::date[])")
    schema = Schema((Category(name="s", labels=("a", "b"), missing=False),), Unit(column="born", rows=1))
    with adbc.connect(server.location("").removesuffix("::")) as connection:
        assert sum(counted(us.read_database(connection, table="ends"), schema)) == 5


def test_a_query_may_end_in_a_comment() -> None:
    for query in ("SELECT 'a' AS s, 1 AS n -- one row", "SELECT 'a' AS s, 1 AS n /* one row */;"):
        assert sum(counted(us.read_database(duckdb.connect(), query=query))) == 1


def test_a_closed_relation_is_no_empty_table() -> None:
    table = open_table(duckdb.connect().sql("SELECT 'a' AS s, 1 AS n"), SCHEMA)
    table.close()
    with pytest.raises(UsageError, match="was closed"):
        us.synthesize(table, SCHEMA, method="independent", epsilon=1.0)


def test_a_stream_that_two_tables_were_opened_on_is_read_once() -> None:
    stream = TABLE.to_reader()
    tables = [open_table(stream, SCHEMA) for _ in range(2)]
    assert sum(rows for rows, _ in tables[0].batches(["s"])) == 120
    with pytest.raises(InputError, match="was read already"):
        list(tables[1].batches(["s"]))


class Generated:
    """Exports a stream of what is left of a generator: nothing, the second time, and no error."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self) -> None:
        self.batches = iter(TABLE.to_batches(20))

    def __eq__(self, other: object) -> bool:
        return True

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.RecordBatchReader.from_batches(TABLE.schema, self.batches).__arrow_c_stream__(requested_schema)


class Exported(Generated):
    """Exports its rows the first time and none the second, even if nobody looked at more than the header."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        left, self.batches = list(self.batches), iter(())
        return pa.table(pa.Table.from_batches(left, TABLE.schema)).__arrow_c_stream__(requested_schema)


class Told(Exported):
    """Tells its schema, takes no weak reference."""

    __slots__ = ("batches",)

    def __arrow_c_schema__(self) -> object:
        return TABLE.schema.__arrow_c_schema__()


class Slotted:
    """Takes no weak reference."""

    __slots__ = ("inner",)

    def __init__(self) -> None:
        self.inner = Exported()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.inner.__arrow_c_stream__(requested_schema)


def of_adbc() -> Any:
    cursor = adbc_sqlite.connect().cursor()
    cursor.adbc_ingest("incoming", TABLE)
    cursor.execute("SELECT * FROM incoming")
    return cursor.fetch_arrow()


ONCE = [Generated, Exported, Told, Slotted, of_adbc, lambda: arro3.core.RecordBatchReader.from_arrow(TABLE)]
NAMES = ["generated", "exported", "told", "slotted", "adbc", "arro3"]


@pytest.mark.parametrize("make", ONCE, ids=NAMES)
def test_a_stream_of_any_kind_serves_one_call(make: Any, tmp_path: Path) -> None:
    stream, other = make(), make()
    assert us.Schema.draft(stream).text
    assert SCHEMA.check(stream).left_out == ("name",)
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(2.0))
    release = us.synthesize(stream, SCHEMA, method="independent", epsilon=1.0, ledger=ledger)
    for again in (
        lambda: us.synthesize(stream, SCHEMA, method="independent", epsilon=1.0, ledger=ledger),
        lambda: us.evaluate(stream, release, metrics=["marginals"], seed=1),
        lambda: us.compare(other, SCHEMA, methods=["independent"], epsilons=[1.0], repeats=1, out=tmp_path / "study"),
    ):
        with pytest.raises(InputError, match="was read already"):
            again()
    assert [entry.kind for entry in ledger.entries()].count("charge") == 1


@pytest.mark.parametrize("make", ONCE, ids=NAMES)
def test_all_passes_are_of_the_rows_of_a_stream(make: Any) -> None:
    table = open_table(make(), SCHEMA)
    for _ in range(2):
        source = table.bind(TableCodec.of(SCHEMA))
        assert source.counts([source.domain.everything()])[source.domain.everything()].tolist() == counted(TABLE)


def test_new_objects_are_not_taken_for_streams_that_are_gone() -> None:
    for _ in range(50):
        assert counted(Generated()) == counted(TABLE)


def test_a_stream_that_broke_off_is_not_read_on() -> None:
    def breaking() -> Any:
        yield TABLE.to_batches()[0]
        raise OSError("Zyxwvut")

    class Breaking(Generated):
        def __init__(self) -> None:
            self.batches = breaking()

    stream = Breaking()
    table = open_table(stream, SCHEMA)
    for words in ("could not be read to its end", "was read already"):
        with pytest.raises(InputError, match=words):
            list(table.batches(["s"]))
    for opened in (stream, table):
        with pytest.raises(InputError, match="was read already"):
            us.synthesize(opened, SCHEMA, method="independent", epsilon=1.0)


def test_tables_in_memory_are_read_again_and_again() -> None:
    batch = TABLE.combine_chunks().to_batches()[0]
    for data in (batch, arro3.core.Table.from_arrow(TABLE)):
        assert counted(data) == counted(data) == counted(TABLE)


@pytest.mark.parametrize("make", [lambda: TABLE, TABLE.to_reader, Generated], ids=["table", "reader", "generated"])
def test_a_relation_over_objects_that_may_be_streams_is_refused(make: Any) -> None:
    incoming = make()  # noqa: F841 - by its name
    connection = duckdb.connect()
    relation = connection.sql("SELECT s, n FROM incoming WHERE n >= 0")
    assert header_of(relation)
    with pytest.raises(InputError, match="to_arrow_table"):
        counted(relation)
    assert counted(relation.to_arrow_table()) == counted(TABLE)
    if make is not Generated:
        connection.register("people", make())
        with pytest.raises(InputError, match="to_arrow_table"):
            counted(us.read_database(connection, table="people"))
