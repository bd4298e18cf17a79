"""PostgreSQL: types that a driver hands over wrongly, what is refused before a charge, and what breaks after it."""

import datetime as dt
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy as us
from tests.engines.servers import Server
from understudy.codec.table import TableCodec
from understudy.counts import postgres
from understudy.counts.opening import header_of, open_table
from understudy.counts.postgres import PostgresPlace, PostgresReader
from understudy.errors import InputError, SchemaError, UsageError
from understudy.schema import Category, Column, Date, Datetime, Float, Integer, OpenCategory, Schema, UniformBins, Unit

SECRET = "Zyxwvut-48151623"
LIMITS = {"memory_bytes": 1 << 26, "threads": 1}


def made(server: Server, columns: str, *rows: str) -> str:
    """The location of a new table with these columns and rows, in SQL."""
    name = f"m{next(server.numbers)}"
    server.run(f"CREATE TABLE {name} ({columns})", *(f"INSERT INTO {name} VALUES ({row})" for row in rows))
    return server.location(name)


def values(location: str, column: str, schema: Schema | None = None) -> list[object]:
    reader = PostgresReader(location, schema)
    found = [value for _, batch in reader.batches([column], **LIMITS) for value in batch[column].to_pylist()]
    reader.close()
    return found


def codes(location: object, column: Column) -> list[int]:
    """How many rows each code of the one column has."""
    schema = Schema((column,), Unit())
    source = open_table(location, schema).bind(TableCodec.of(schema))
    return source.counts([source.domain.everything()])[source.domain.everything()].tolist()


FAR = ("'infinity'", "'-infinity'", "'5000000-01-01'", "'0044-03-15 BC'", "'2000-06-01'", "NULL")


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz"])
def test_infinity_and_far_years_lie_at_their_own_end(kind: str, server: Server) -> None:
    """The driver would wrap them around; the last one is in bounds."""
    far = [row.replace("5000000", "290000") if kind != "date" else row for row in FAR]
    location = made(server, f"d {kind}", *far)
    column: Column = Date(name="d", lower=dt.date(1990, 1, 1), upper=dt.date(2009, 12, 31), bins=UniformBins(4))
    if kind != "date":
        zone = dt.UTC if kind == "timestamptz" else None
        bounds = {"lower": dt.datetime(1990, 1, 1, tzinfo=zone), "upper": dt.datetime(2009, 12, 31, tzinfo=zone)}
        column = Datetime(name="d", bins=UniformBins(4), zone="UTC" if zone else None, **bounds)
    assert codes(location, column) == [2, 0, 1, 2, 1]


TEXTS = {
    "char(5)": ("'ab'", "ab"),
    "varchar(9)": ("'ab  '", "ab  "),
    "money": ("'-1234.50'", "-1234.5"),
    "timetz": ("'04:05:06+02'", "04:05:06+02"),
    "time": ("'24:00'", "24:00:00"),
    "interval": ("'1 day 2 hours'", "1 day 02:00:00"),
    "inet": ("'10.0.0.1'", "10.0.0.1"),
    "cidr": ("'10.1.0.0/16'", "10.1.0.0/16"),
    "uuid": ("'A0EEBC99-9c0b-4ef8-bb6d-6bb9bd380a11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "int[]": ("'{1,2}'", "{1,2}"),
    "jsonb": ("'{\"a\": 1}'", '{"a": 1}'),
    "bit(3)": ("'101'", "101"),
    "oid": ("4294967295", 4294967295),
    "bytea": ("'\\x46'", b"F"),
    "numeric": ("12.300", "12.3"),
    "numeric(40, 2)": ("123456789012345678901234567890.50", "123456789012345678901234567890.5"),
    "int8": ("9223372036854775807", 2**63 - 1),
    "bool": ("true", True),
    "int4range": ("'[1,3)'", "[1,3)"),
    "tsvector": ("'a b'", "'a' 'b'"),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_a_value_arrives_as_what_it_is(kind: str, server: Server) -> None:
    written, expected = TEXTS[kind]
    assert values(made(server, f"x {kind}", written, "NULL"), "x") == [expected, None]


def test_enums_and_domains_are_what_is_below_them(server: Server) -> None:
    server.run(
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE DOMAIN small AS int CHECK (value < 100)",
        "CREATE DOMAIN smaller AS small",
        "CREATE DOMAIN day AS date",
        "CREATE SCHEMA odd",
        "CREATE TYPE odd.date AS ENUM ('infinity')",  # a type that only looks like one of the server's
    )
    location = made(server, "e mood, s smaller, d day, o odd.date", "'ok', 5, 'infinity', 'infinity'")
    assert header_of(location) == [("e", "string"), ("s", "int32"), ("d", "date32[day]"), ("o", "string")]
    found = [values(location, name)[0] for name in "esdo"]
    assert found == ["ok", 5, dt.date(9999, 12, 31), "infinity"]


def test_numbers_that_are_none_are_absent_and_infinite_ones_are_clamped(server: Server) -> None:
    column = Float(name="x", lower=0.0, upper=9.0, bins=UniformBins(3))
    rows = ("'NaN'", "NULL", "'Infinity'", "'-Infinity'", "5")
    for kind in ("float8", "float4", "numeric"):
        assert codes(made(server, f"x {kind}", *rows), column) == [1, 1, 1, 2], kind


def test_numbers_as_text_are_spelled_as_the_column_is_read(server: Server) -> None:
    column = Float(name="x", lower=0.0, upper=9.0, bins=UniformBins(9), decimal=",", thousands=".")
    for kind in ("numeric", "money", "float8"):
        assert codes(made(server, f"x {kind}", "2.5", "0.001"), column)[:3] == [1, 0, 1], kind


def test_instants_with_a_zone_are_in_utc(server: Server) -> None:
    location = made(server, "x timestamptz", "'2020-01-01 00:00+05'")
    assert values(location, "x") == [dt.datetime(2019, 12, 31, 19, tzinfo=dt.UTC)]


def test_a_collation_decides_nothing(server: Server) -> None:
    server.run("CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    location = made(server, "s text COLLATE ci", "'Yes'", "'yes'", "'YES'")
    found = open_table(location, Schema((OpenCategory(name="s"),), Unit())).label_counts("s")
    assert found.labels == ("YES", "Yes", "yes")


def test_ids_stay_different_where_dates_are_clamped(server: Server) -> None:
    location = made(server, "who date, s text", "'infinity', 'a'", "'5000000-01-01', 'a'", "'5000000-01-01', 'a'")
    schema = Schema((Category(name="s", labels=("a",)),), Unit("who", 1))
    source = open_table(location, schema).bind(TableCodec.of(schema))
    assert source.counts([source.domain.everything()])[source.domain.everything()].sum() == 2


def test_text_that_is_not_utf8_is_told_apart(server: Server) -> None:
    server.run("CREATE DATABASE raw ENCODING 'SQL_ASCII' TEMPLATE template0")
    with server.connected(dbname="raw", client_encoding="SQL_ASCII") as connection:
        connection.execute("CREATE TABLE t (who text, s text)")
        connection.execute(r"INSERT INTO t VALUES (E'a\xff', 'a'), (E'a\xfe', 'a'), ('x', E'\xff')")
    schema = Schema((Category(name="s", labels=("a",), other="?"),), Unit("who", 1))
    source = open_table(server.location("t", database="raw"), schema).bind(TableCodec.of(schema))
    assert source.counts([source.domain.everything()])[source.domain.everything()].tolist() == [2, 1, 0]


def test_names_are_taken_as_they_are_stored(server: Server) -> None:
    server.run('CREATE SCHEMA "My.Schema"', 'CREATE TABLE "My.Schema"."a ""b"".C" ("X.y" int, "Z""" text)')
    server.run('INSERT INTO "My.Schema"."a ""b"".C" VALUES (7, \'a\')', "CREATE TABLE plainly (a int)")
    location = server.location('"My.Schema"."a ""b"".C"')
    assert header_of(location) == [("X.y", "int32"), ('Z"', "string")]
    assert values(location, "X.y") == [7]
    assert header_of(server.location("Plainly".lower())) == header_of(server.location("public.plainly"))
    with pytest.raises(InputError, match="keeps names in lower case"):
        header_of(server.location("Plainly"))
    for wrong in ("a.b.c", '"a', 'a"b', ""):
        with pytest.raises(InputError, match="must have the form"):
            header_of(server.location(wrong))


def test_views_materialised_views_and_partitions_are_read(server: Server) -> None:
    location = made(server, "a int, b text", "1, 'x'", "2, 'y'")
    table = location.rpartition("::")[2]
    server.run(
        f"CREATE VIEW v_{table} AS SELECT a + 1 AS a FROM {table}",
        f"CREATE MATERIALIZED VIEW m_{table} AS SELECT * FROM {table}",
        f"CREATE TABLE p_{table} (a int) PARTITION BY RANGE (a)",
        f"CREATE TABLE p1_{table} PARTITION OF p_{table} FOR VALUES FROM (0) TO (9)",
        f"INSERT INTO p_{table} VALUES (4)",
        f"CREATE SEQUENCE s_{table}",
    )
    assert values(server.location(f"v_{table}"), "a") == [2, 3]
    assert values(server.location(f"m_{table}"), "a") == [1, 2]
    assert values(server.location(f"p_{table}"), "a") == [4]
    with pytest.raises(InputError, match="neither a table nor a view"):
        header_of(server.location(f"s_{table}"))


def test_empty_tables_dropped_columns_and_no_columns_at_all(server: Server) -> None:
    location = made(server, "a int, gone text, b text")
    table = location.rpartition("::")[2]
    server.run(f"ALTER TABLE {table} DROP COLUMN gone")
    assert header_of(location) == [("a", "int32"), ("b", "string")]
    assert values(location, "b") == []
    reader = PostgresReader(location)
    assert list(reader.batches([], **LIMITS)) == [(0, {})]
    reader.close()
    server.run(f"INSERT INTO {table} VALUES (1, 'x'), (2, NULL)")
    again = PostgresReader(location)
    assert list(again.batches([], **LIMITS)) == [(2, {})]
    again.close()


def test_all_passes_are_of_one_snapshot(server: Server) -> None:
    location = made(server, "a int", "1", "2")
    table = location.rpartition("::")[2]
    reader = PostgresReader(location)
    server.run(f"INSERT INTO {table} VALUES (3)")
    assert [list(reader.batches([], **LIMITS)) for _ in range(2)] == [[(2, {})]] * 2
    server.run(f"DELETE FROM {table}")
    assert sum(rows for rows, _ in reader.batches(["a"], **LIMITS)) == 2
    assert reader.engine.startswith("PostgreSQL 1")
    assert reader.snapshot.startswith("REPEATABLE READ since 2")
    reader.close()


REWRITINGS = {
    "truncated": ("TRUNCATE {0}", "INSERT INTO {0} VALUES ('a', 1)"),
    "made anew": ("DROP TABLE {0} CASCADE", "CREATE TABLE {0} (s text, n int)", "INSERT INTO {0} VALUES ('a', 1)"),
    "rewritten": ("ALTER TABLE {0} ALTER n TYPE bigint",),
    "below a view": ("TRUNCATE {0}",),
    "a partition": ("TRUNCATE {0}_a",),
}


@pytest.mark.parametrize("how", REWRITINGS)
def test_a_table_rewritten_between_snapshot_and_lock_is_no_empty_table(
    how: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = f"rewritten_{list(REWRITINGS).index(how)}"
    name = f"v_{base}" if how == "below a view" else base
    server.run(f"CREATE TABLE {base} (s text, n int)" + " PARTITION BY LIST (s)" * (how == "a partition"))
    if how == "a partition":
        server.run(f"CREATE TABLE {base}_a PARTITION OF {base} FOR VALUES IN ('a')")
    if how == "below a view":
        server.run(f"CREATE VIEW {name} AS SELECT * FROM {base}")
    server.run(f"INSERT INTO {base} SELECT 'a', 1 FROM generate_series(1, 10)")
    looked_up = postgres._looked_up

    def meanwhile(*given: Any) -> Any:
        found = looked_up(*given)
        server.run(*(command.format(base) for command in REWRITINGS[how]))
        return found

    with monkeypatch.context() as patched:
        patched.setattr(postgres, "_looked_up", meanwhile)
        with pytest.raises(InputError, match="was rewritten while it was opened"):
            open_table(server.location(name), PEOPLE)
    assert open_table(server.location(name), PEOPLE).undeclared == ()


def test_what_is_read_is_locked_before_the_first_pass(server: Server) -> None:
    server.run(
        "CREATE TABLE locked (s text, n int) PARTITION BY LIST (s)",
        "CREATE TABLE locked_a PARTITION OF locked FOR VALUES IN ('a')",
        "INSERT INTO locked VALUES ('a', 1)",
    )
    table = open_table(server.location("locked"), PEOPLE)
    for what in ("TRUNCATE locked_a", "ALTER TABLE locked RENAME n TO m", "DROP TABLE locked_a"):
        with pytest.raises(psycopg.errors.LockNotAvailable):
            server.run("SET lock_timeout = '100ms'", what)
    assert sum(rows for rows, _ in table.batches(["s"])) == 1
    table.close()


def test_a_partition_that_comes_between_two_passes_ends_the_run(server: Server) -> None:
    server.run(
        "CREATE TABLE grown (s text, n int) PARTITION BY LIST (s)",
        "CREATE TABLE grown_a PARTITION OF grown FOR VALUES IN ('a')",
        "CREATE TABLE grown_b (s text, n int)",
        "INSERT INTO grown VALUES ('a', 1)",
        "INSERT INTO grown_b VALUES ('b', 1)",
    )
    table = open_table(server.location("grown"), PEOPLE)
    assert sum(rows for rows, _ in table.batches(["s"])) == 1
    server.run("ALTER TABLE grown ATTACH PARTITION grown_b FOR VALUES IN ('b')")
    for columns in (["s"], []):
        with pytest.raises(InputError, match="got or lost a partition"):
            list(table.batches(columns))
    table.close()


def test_foreign_tables_are_found_below_views_and_among_partitions(server: Server, tmp_path: Path) -> None:
    try:
        server.run("CREATE EXTENSION file_fdw", "CREATE SERVER files FOREIGN DATA WRAPPER file_fdw")
    except psycopg.errors.FeatureNotSupported:  # not in every installation
        pytest.skip("file_fdw is not installed")
    server.run(
        "CREATE FOREIGN TABLE far (s text, n int) SERVER files OPTIONS (filename '/dev/null')",
        "CREATE VIEW far_view AS SELECT * FROM far WHERE n > 0",
        "CREATE TABLE far_parts (s text, n int) PARTITION BY LIST (s)",
        "CREATE FOREIGN TABLE far_part PARTITION OF far_parts FOR VALUES IN ('b') SERVER files "
        "OPTIONS (filename '/dev/null')",
    )
    for name in ("far", "far_view", "far_parts"):
        with pytest.raises(InputError, match="a foreign table, which no snapshot protects from changes"):
            open_table(server.location(name), PEOPLE)


def test_a_pass_that_is_left_early_spoils_no_other(server: Server) -> None:
    name = server.hold(pa.table({"a": list(range(200_000))}))
    reader = PostgresReader(server.location(name))
    for _ in range(2):
        rows = reader.batches(["a"], **LIMITS)
        next(rows)
        rows.close()  # type: ignore[attr-defined]
    assert sum(rows for rows, _ in reader.batches(["a"], **LIMITS)) == 200_000
    reader.close()


PEOPLE = Schema((Category(name="s", labels=("a", "b")), Integer(name="n", lower=0, upper=9)), Unit())


def test_privileges_are_asked_for_before_anything_is_charged(server: Server) -> None:
    location = made(server, "s text, n int, name text", "'a', 1, 'Ada'")
    table = location.rpartition("::")[2]
    server.run("CREATE ROLE clerk LOGIN")
    mine = server.location(table, user="clerk")
    with pytest.raises(InputError, match="column 's' may not be read"):
        open_table(mine, PEOPLE)
    server.run(f"GRANT SELECT (s, n) ON {table} TO clerk")
    assert sum(rows for rows, _ in open_table(mine, PEOPLE).batches(["s"])) == 1
    server.run(f"CREATE VIEW open_{table} AS SELECT * FROM {table}", f"GRANT SELECT ON open_{table} TO clerk")
    assert (
        sum(rows for rows, _ in open_table(server.location(f"open_{table}", user="clerk"), PEOPLE).batches(["s"])) == 1
    )
    server.run(
        "CREATE ROLE other LOGIN",
        f"ALTER VIEW open_{table} OWNER TO other",  # who may not read what the view reads
    )
    with pytest.raises(InputError, match="may not be read in full"):
        open_table(server.location(f"open_{table}", user="clerk"), PEOPLE)
    server.run("CREATE SCHEMA hidden", f"CREATE TABLE hidden.{table} (s text)")
    with pytest.raises(InputError, match="may not be read in full"):
        open_table(server.location(f"hidden.{table}", user="clerk"), PEOPLE)


def test_rows_that_a_policy_hides_are_not_left_out_silently(server: Server) -> None:
    location = made(server, "s text, n int", "'a', 1", "'b', 2")
    table = location.rpartition("::")[2]
    server.run(
        "CREATE ROLE watched LOGIN",
        f"GRANT SELECT ON {table} TO watched",
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"CREATE POLICY only_a ON {table} USING (s = 'a')",
        f"CREATE VIEW seen_{table} WITH (security_invoker) AS SELECT * FROM {table}",
        f"GRANT SELECT ON seen_{table} TO watched",
    )
    with pytest.raises(InputError, match="row-level security"):
        open_table(server.location(table, user="watched"), PEOPLE)
    with pytest.raises(InputError, match="may not be read in full"):
        open_table(server.location(f"seen_{table}", user="watched"), PEOPLE)
    assert sum(rows for rows, _ in open_table(location, PEOPLE).batches(["s"])) == 2  # its owner sees all rows


def failing_view(server: Server) -> str:
    """A view whose cast fails on one late row, which the server quotes; before that a function notifies of it."""
    name = f"f{next(server.numbers)}"
    server.run(
        f"CREATE TABLE {name}_t (s text)",
        f"INSERT INTO {name}_t SELECT CASE g WHEN 150000 THEN '{SECRET}' ELSE '1' END FROM generate_series(1, 200000)g",
        f"CREATE FUNCTION {name}_f(x text) RETURNS int LANGUAGE plpgsql AS "
        f"$$ BEGIN IF x = '{SECRET}' THEN RAISE WARNING '%', x; END IF; RETURN x::int; END $$",
        f"CREATE VIEW {name} AS SELECT {name}_f(s) AS n FROM {name}_t",
    )
    return server.location(name)


def test_no_word_of_the_server_is_shown(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    table = open_table(failing_view(server), Schema((Integer(name="n", lower=0, upper=9),), Unit()))
    with pytest.raises(InputError, match="could not be read to its end") as caught:
        list(table.batches(["n"]))
    told = [str(caught.value), repr(caught.value.__cause__), repr(caught.value.__context__), *capfd.readouterr()]
    assert SECRET not in "".join(told)
    assert caught.value.__context__ is None


def test_a_terminated_connection_ends_the_run_and_the_charge_stands(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = server.hold(pa.table({"s": ["a", "b"] * 150_000, "n": [1, 2] * 150_000}))
    ledger = us.Ledger.create(tmp_path / "ledger.json", "people", us.Budget(5.0))
    seen = PostgresReader.batches

    def ended(self: PostgresReader, columns: list[str], **limits: int) -> Iterator[object]:
        for number, batch in enumerate(seen(self, columns, **limits)):
            if number == 0:
                server.run(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COPY (SELECT \"s%'"
                )
            yield batch

    monkeypatch.setattr(PostgresReader, "batches", ended)
    asked = {"method": "independent", "epsilon": 1.0, "ledger": ledger, "out": tmp_path / "release"}
    with pytest.raises(InputError, match="could not be read to its end") as caught:
        us.synthesize(server.location(name), PEOPLE, **asked)
    assert caught.value.__context__ is None
    assert not (tmp_path / "release").exists()
    assert us.Ledger.open(tmp_path / "ledger.json").balance("people").left.epsilon == 4 * 10**12


def test_refusals_before_the_charge_name_what_is_wrong(server: Server) -> None:
    cases = {
        server.location("nowhere"): "no such table",
        server.location("t", database="nowhere"): "cannot be connected to",
        server.location("t", user="nobody_at_all"): "cannot be connected to",
        "postgresql://127.0.0.1:1/x::t": "cannot be connected to",
        "postgresql://host/x": "must have the form",
        "postgresql:host/x::t": "must have the form",
    }
    for location, words in cases.items():
        with pytest.raises(InputError, match=words) as caught:
            open_table(location, PEOPLE)
        assert caught.value.__context__ is None
    with pytest.raises(SchemaError, match="n"):
        open_table(made(server, "s text"), PEOPLE)


def test_a_missing_driver_is_told_by_the_name_of_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "adbc_driver_postgresql.dbapi", None)
    with pytest.raises(UsageError, match=r"understudy\[postgres\]"):
        open_table("postgresql://h/d::t", PEOPLE)


def test_a_location_is_shown_without_user_and_options() -> None:
    shown = {
        "postgresql://ada@h:5433/d?sslmode=require::t": "postgresql://h:5433/d::t",
        "postgres://a,b:1/d::s.t": "postgresql://a,b:1/d::s.t",
        "postgresql://u@[::1]:5432/d::t": "postgresql://[::1]:5432/d::t",
        "postgresql:///?service=people::t": "postgresql:///::t",
        'postgresql://h::"a::b"': 'postgresql://h/::"a::b"',
    }
    assert {location: PostgresPlace.of(location).where for location in shown} == shown


def test_readers_that_nobody_closes_give_their_connection_back(server: Server) -> None:
    location = made(server, "s text, n int", "'a', 1")
    for _ in range(60):  # more than the server takes at a time
        open_table(location, PEOPLE)
    assert threading.active_count() < 20


def test_synthesize_and_evaluate_agree_with_parquet(server: Server, tmp_path: Path) -> None:
    table = pa.table({"s": ["a", "b", None] * 50, "n": list(range(10)) * 15})
    pq.write_table(table, tmp_path / "t.parquet")
    location = server.location(server.hold(table))
    release = us.synthesize(location, PEOPLE, method="independent", epsilon=1.0)
    scores = [
        us.evaluate(real, release, metrics=["marginals"], seed=1).to_json()
        for real in (location, tmp_path / "t.parquet")
    ]
    assert scores[0] == scores[1]
