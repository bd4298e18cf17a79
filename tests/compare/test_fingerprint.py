import shutil
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from tests.compare.tables import SCHEMA, table
from understudy.compare.study import fingerprint
from understudy.counts.files import columns_read
from understudy.counts.opening import open_table
from understudy.errors import InputError
from understudy.schema import Unit


def test_a_frame_is_the_same_in_any_kind_order_and_chunks() -> None:
    rows = table(50)
    shuffled = rows.take(pa.array(np.random.default_rng(1).permutation(50)))
    chunked = pa.concat_tables([rows.slice(0, 13), rows.slice(13)])
    frames = [rows, rows.to_pandas(), pl.DataFrame(rows), shuffled, chunked, open_table(rows, SCHEMA)]
    assert len({fingerprint(frame, SCHEMA) for frame in frames}) == 1


def test_every_value_of_a_frame_counts() -> None:
    rows = table(50)
    before = fingerprint(rows, SCHEMA)
    for name in rows.column_names:
        values = rows.column(name).to_pylist()
        for other in (None, next(value for value in values if value != values[7])):
            changed = [other if place == 7 else value for place, value in enumerate(values)]
            where = rows.column_names.index(name)
            assert fingerprint(rows.set_column(where, name, pa.array(changed)), SCHEMA) != before
    assert fingerprint(table(49), SCHEMA) != before


def test_values_that_trade_columns_make_another_table() -> None:
    schema = replace(SCHEMA, columns=SCHEMA.columns[:1])
    one = pa.table({"sex": ["f", "m"], "id": ["a", "b"]})
    other = pa.table({"sex": ["m", "f"], "id": ["a", "b"]})
    assert fingerprint(one, schema) == fingerprint(other, schema)  # the same rows, as nobody's they have no order
    mine = replace(schema, unit=Unit(column="id"))
    assert columns_read(mine) == ["sex", "id"]
    assert fingerprint(one, mine) != fingerprint(other, mine)


def test_files_of_a_pattern_count_together(tmp_path: Path) -> None:
    for part in (1, 2):
        pacsv.write_csv(table(20 * part), tmp_path / f"part{part}.csv")
    pattern = str(tmp_path / "part*.csv")
    before = fingerprint(pattern, SCHEMA)
    assert fingerprint(pattern, SCHEMA) == before
    pacsv.write_csv(table(39), tmp_path / "part2.csv")
    changed = fingerprint(pattern, SCHEMA)
    shutil.copy(tmp_path / "part1.csv", tmp_path / "part3.csv")
    assert len({before, changed, fingerprint(pattern, SCHEMA)}) == 3


def test_a_table_of_a_database_is_told_from_another(tmp_path: Path) -> None:
    place, people = tmp_path / "rows.duckdb", table(20)
    with duckdb.connect(str(place)) as connection:
        connection.register("people", people)
        for name in ("one", "two"):
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM people")
    first, second = (fingerprint(f"{place}::{name}", SCHEMA) for name in ("one", "two"))
    assert first != second
    with duckdb.connect(str(place)) as connection:
        connection.execute("DELETE FROM one WHERE sex = 'f'")
    assert fingerprint(f"{place}::one", SCHEMA) != first


def test_a_table_that_is_not_there_raises(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        fingerprint(tmp_path / "none.csv", SCHEMA)
    pq.write_table(table(3), tmp_path / "some.parquet")
    assert fingerprint(tmp_path / "some.parquet", SCHEMA).startswith("sha256 ")
