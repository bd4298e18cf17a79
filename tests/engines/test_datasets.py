"""Parquet datasets: partitions, what must agree between files, and files that change between passes."""

import datetime
import decimal
import os
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.counts.places import full_counts
from understudy.codec.table import TableCodec
from understudy.counts.datasets import DatasetReader
from understudy.counts.opening import open_table
from understudy.counts.readers import StreamedTable
from understudy.domain import Clique
from understudy.errors import InputError
from understudy.schema import Category, Datetime, Float, Integer, Schema, UniformBins, Unit

CITIES = ("01", "1", "a/b=c", "São")
SCHEMA = Schema((Integer(name="age", lower=0, upper=9), Category(name="city", labels=CITIES)), Unit())


def write(root: Path, files: Mapping[str, pa.Table]) -> str:
    for name, table in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, root / name)
    return str(root)


def ages(*values: int | None) -> pa.Table:
    return pa.table({"age": pa.array(values, pa.int64())})


def counts(data: object, schema: Schema = SCHEMA) -> list[int]:
    return full_counts(open_table(data, schema).bind(TableCodec.of(schema)))


def refusal(location: str, schema: Schema = SCHEMA) -> str:
    with pytest.raises(InputError) as caught:
        open_table(location, schema)
    assert caught.value.__context__ is None
    return str(caught.value)


def test_partition_values_are_text_under_the_schema(tmp_path: Path) -> None:
    """01 stays 01, the default partition is a missing value, and percent signs are decoded."""
    write(
        tmp_path,
        {
            "city=01/a.parquet": ages(1),
            "city=1/a.parquet": ages(2, 2),
            "city=a%2Fb%3Dc/a.parquet": ages(3),
            "city=S%C3%A3o/a.parquet": ages(4),
            "city=São/b.parquet": ages(5),
            "city=__HIVE_DEFAULT_PARTITION__/a.parquet": ages(6, None),
        },
    )
    cities = ["01", "1", "1", "a/b=c", "São", "São", None, None]
    expected = counts(pa.table({"age": [1, 2, 2, 3, 4, 5, 6, None], "city": cities}))
    for location in (f"{tmp_path}", f"{tmp_path}/", f"{tmp_path}/**/*.parquet", f"{tmp_path}/city=*/*.parquet"):
        assert counts(location) == expected
    whole = Schema((Integer(name="city", lower=0, upper=9),), Unit())
    assert counts(str(tmp_path), whole)[1] == 3  # both 01 and 1 are read as the integer 1


def test_a_key_that_is_not_utf8_or_twice_is_refused_or_unreadable(tmp_path: Path) -> None:
    assert counts(write(tmp_path / "x", {"city=%FF/a.parquet": ages(1)})) == counts(
        pa.table({"age": [1], "city": ["outside"]})
    )
    assert "a key twice" in refusal(write(tmp_path / "y", {"city=1/city=2/a.parquet": ages(1)}))
    different = write(tmp_path / "z", {"city=Zyxwvut/a.parquet": ages(1), "b.parquet": ages(1)})
    assert "different keys" in refusal(different)
    assert "Zyxwvut" not in refusal(different)


def test_a_partition_column_that_is_in_the_files_is_read_from_them(tmp_path: Path) -> None:
    """Polars writes the column into the files as well."""
    table = pa.table({"age": [1, 2, 3], "city": ["01", "1", "1"]})
    for value in ("01", "1"):
        own = pl.from_arrow(table).filter(pl.col("city") == value)  # type: ignore[union-attr]
        (tmp_path / f"city={value}").mkdir()
        own.write_parquet(tmp_path / f"city={value}" / "0.parquet")
    assert counts(str(tmp_path)) == counts(table)


def test_hidden_files_are_left_out_and_others_refused(tmp_path: Path) -> None:
    write(tmp_path, {"a.parquet": ages(1), "_temporary/b.parquet": ages(2), ".c.parquet": ages(3)})
    (tmp_path / "_SUCCESS").touch()
    schema = Schema(SCHEMA.columns[:1], Unit())
    assert counts(str(tmp_path), schema) == counts(ages(1), schema)
    (tmp_path / "notes.txt").touch()
    assert "files other than Parquet" in refusal(str(tmp_path), schema)
    assert counts(f"{tmp_path}/**/*.parquet", schema) == counts(ages(1), schema)


def test_folders_of_other_kinds_are_refused(tmp_path: Path) -> None:
    assert "without Parquet" in refusal(str(tmp_path))
    write(tmp_path, {"a.parquet": ages(1)})
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "0.json").touch()
    assert "delta:" in refusal(str(tmp_path))


def test_files_that_differ_are_refused_by_their_columns(tmp_path: Path) -> None:
    text = pa.table({"age": ["1"]})
    other = write(tmp_path / "x", {"city=Zyxwvut/a.parquet": ages(1), "city=b/a.parquet": text})
    assert "'age'" in refusal(other)
    assert "Zyxwvut" not in refusal(other)
    more = pa.table({"age": [1], "Zyxwvut": [1]})
    assert "Zyxwvut" not in refusal(write(tmp_path / "y", {"city=1/a.parquet": ages(1), "city=2/a.parquet": more}))


def test_storage_of_the_same_values_agrees(tmp_path: Path) -> None:
    """Widths of integers, forms of text, and a column that is null throughout one file."""
    texts = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.null()]
    widths = [pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.int64()]
    files = {
        f"{number}.parquet": pa.table(
            {"age": pa.array([number], width), "city": pa.array([None if pa.types.is_null(kind) else "01"], kind)}
        )
        for number, (kind, width) in enumerate(zip(texts, widths, strict=True))
    }
    expected = pa.table({"age": [0, 1, 2, 3, 4], "city": ["01", "01", "01", "01", None]})
    location = write(tmp_path, files)
    assert counts(location) == counts(expected)
    assert DatasetReader(location).header == (("age", "int64"), ("city", "string"))


def test_kinds_of_values_count_as_in_one_local_file(tmp_path: Path) -> None:
    zone = datetime.timezone(datetime.timedelta(hours=5))
    table = pa.table(
        {
            "a.b": pa.array([1, 2, None], pa.uint64()),
            "big": pa.array([2**64 - 1, 5, 6], pa.uint64()),
            "money": pa.array([decimal.Decimal("1.50"), decimal.Decimal("2.25"), None], pa.decimal128(20, 2)),
            "number": pa.array([float("nan"), None, 1.0], pa.float64()),
            "moment": pa.array([datetime.datetime(2020, 1, day, tzinfo=zone) for day in (1, 2, 3)]),
            "nested": pa.array([{"x": 1}, {"x": 2}, None]),
        }
    )
    first, last = datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 4)
    schema = Schema(
        (
            Integer(name="a.b", lower=0, upper=3),
            Integer(name="big", lower=0, upper=9),
            Float(name="money", lower=0.0, upper=4.0, bins=UniformBins(4)),
            Float(name="number", lower=0.0, upper=4.0, bins=UniformBins(4)),
            Datetime(name="moment", lower=first, upper=last, bins=UniformBins(3)),
        ),
        Unit(),
    )
    pq.write_table(table, tmp_path / "one.parquet")
    folder = write(tmp_path / "many", {"a.parquet": table.slice(0, 1), "b.parquet": table.slice(1)})
    codec = TableCodec.of(schema)
    cliques = [codec.domain.clique([name]) for name in codec.domain.columns]
    one, many = (
        open_table(place, schema).bind(codec).counts(cliques) for place in (str(tmp_path / "one.parquet"), folder)
    )
    for clique in cliques:
        assert one[clique].tolist() == many[clique].tolist(), clique


def test_no_rows_and_no_columns(tmp_path: Path) -> None:
    assert sum(counts(write(tmp_path / "x", {"city=1/a.parquet": ages()}))) == 0
    some = write(tmp_path / "y", {"city=1/a.parquet": ages(1, 2), "city=2/a.parquet": ages(3)})
    table = open_table(some, SCHEMA)
    assert [(rows, dict(batch)) for rows, batch in table.batches([])] == [(2, {}), (1, {})]
    total = table.bind(TableCodec.of(SCHEMA)).counts([Clique()])[Clique()]
    assert total.tolist() == [3]


@pytest.mark.parametrize("how", ["removed", "replaced", "changed"])
def test_a_file_that_changes_between_passes_ends_the_run(how: str, tmp_path: Path) -> None:
    location = write(tmp_path, {"city=Zyxwvut/a.parquet": ages(1), "city=b/a.parquet": ages(2)})
    table = open_table(location, SCHEMA)
    assert isinstance(table, StreamedTable)
    assert sum(rows for rows, _ in table.batches(["age"])) == 2
    path = tmp_path / "city=Zyxwvut" / "a.parquet"
    if how == "removed":
        path.unlink()
    elif how == "replaced":
        pq.write_table(ages(7, 8), tmp_path / "new")
        (tmp_path / "new").rename(path)
    else:
        os.utime(path, ns=(1, 1))
    with pytest.raises(InputError, match="was changed") as caught:
        list(table.batches(["age"]))
    assert "Zyxwvut" not in str(caught.value)
    assert caught.value.__context__ is None


def test_files_added_later_are_not_seen(tmp_path: Path) -> None:
    table = open_table(write(tmp_path, {"city=1/a.parquet": ages(1)}), SCHEMA)
    write(tmp_path, {"city=2/a.parquet": ages(1)})
    assert sum(rows for rows, _ in table.batches(["age", "city"])) == 1


def test_a_damaged_file_is_refused_without_its_name(tmp_path: Path) -> None:
    location = write(tmp_path, {"city=1/a.parquet": ages(1)})
    (tmp_path / "city=Zyxwvut").mkdir()
    (tmp_path / "city=Zyxwvut" / "a.parquet").write_bytes(b"PAR1 no")
    assert "Zyxwvut" not in refusal(location)
