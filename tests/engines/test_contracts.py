"""Every engine against the contract of count sources and the replay on neighbours, as files are."""

import contextlib
import itertools
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import adbc_driver_postgresql.dbapi as adbc
import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pytest
import sqlalchemy as sa

import understudy as us
from tests.counts.places import as_parquet
from tests.engines.servers import Server
from tests.engines.tables import SCHEMA, codec, every_type, pair_counts
from tests.nets.doubles import Grower
from understudy.counts.files import quoted
from understudy.counts.opening import open_table
from understudy.methods.method import METHODS
from understudy.privacy.cost import Budget
from understudy.testing import SeededRandomizer, check_source
from understudy.testing import cases as tables
from understudy.testing.cases import Case
from understudy.testing.replay import check_pair, random_pairs

Put = Callable[[pa.Table], object]
NUMBERS = itertools.count()


def as_sqlite(table: pa.Table, folder: Path) -> str:
    path = folder / f"{next(NUMBERS)}.db"
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute(f"CREATE TABLE rows ({', '.join(map(quoted, table.column_names))})")
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        database.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * table.num_columns)})", rows)
    return f"sqlite:{path}::rows"


class Streamable:
    """An object that only exports a stream of Arrow."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.to_reader(7).__arrow_c_stream__(requested_schema)


def as_relation(table: pa.Table) -> object:
    connection = duckdb.connect()
    renamed = table.rename_columns([f"x{place}" for place in range(table.num_columns)])
    connection.register("incoming", renamed)
    shown = ", ".join(f"x{place} AS {quoted(name)}" for place, name in enumerate(table.column_names))
    connection.execute(f"CREATE TABLE rows AS SELECT {shown} FROM incoming")
    return connection


@pytest.fixture(params=["postgres", "sqlite", "adbc", "sqlalchemy", "sqlalchemy sqlite", "duckdb", "ibis", "stream"])
def put(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Put]:
    """How a table gets to the engine, and what is then handed to understudy."""
    with contextlib.ExitStack() as stack:
        yield _put(request.param, request, tmp_path, stack)


def _put(kind: str, request: pytest.FixtureRequest, tmp_path: Path, stack: contextlib.ExitStack) -> Put:
    if kind == "sqlite":
        return lambda table: as_sqlite(table, tmp_path)
    if kind == "sqlalchemy sqlite":

        def by_file(table: pa.Table) -> object:
            path = as_sqlite(table, tmp_path).removeprefix("sqlite:").removesuffix("::rows")
            return us.read_database(sa.create_engine(f"sqlite:///{path}"), table="rows")

        return by_file
    if kind == "duckdb":
        return lambda table: as_relation(table).table("rows")  # type: ignore[attr-defined]
    if kind == "ibis":
        return lambda table: ibis.duckdb.from_connection(as_relation(table)).table("rows")
    if kind == "stream":
        return lambda table: Streamable(table)
    server: Server = request.getfixturevalue("server")
    if kind == "postgres":
        return lambda table: server.location(server.hold(table))
    if kind == "adbc":
        connection = adbc.connect(server.location("").removesuffix("::"), autocommit=True)
        stack.callback(connection.close)
        return lambda table: us.read_database(connection, table=server.hold(table))
    engine = sa.create_engine(f"postgresql+psycopg://postgres@/postgres?host={server.folder}&port={server.port}")
    stack.callback(engine.dispose)
    return lambda table: us.read_database(engine, query=f"SELECT * FROM {server.hold(table)}")


def test_source(put: Put) -> None:
    check_source(lambda table, schema: open_table(put(table), schema))


def test_neighbours_replay(put: Put) -> None:
    """Neighbours of several rows per person: the same queries, the same release."""
    schema = tables.several_rows()
    case = Case(schema, "grower", Budget(2.0))
    with mock.patch.dict(METHODS.built_in, {"grower": Grower}):
        for index, pair in enumerate(random_pairs(schema, 2, np.random.default_rng(7))):
            check_pair(case.pipeline(put), pair.table, pair.neighbour, SeededRandomizer(index))


def test_typed_columns_count_as_they_do_in_parquet(put: Put, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if "sqlite" in request.node.name:
        pytest.skip("SQLite has no such types; its values have tests of their own")
    table = every_type(3000)
    expected = pair_counts(open_table(as_parquet(table, tmp_path), SCHEMA).bind(codec()))
    assert pair_counts(open_table(put(table), SCHEMA).bind(codec())) == expected
