"""Spark as a source: the counts of a file bit by bit, whatever fails on the way, and no word of a row."""

import datetime as dt
import decimal
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.engines.available import needs
from understudy.codec.table import TableCodec
from understudy.counts import spark as engine
from understudy.counts.opening import header_of, open_table
from understudy.counts.source import CountSource
from understudy.domain import Clique
from understudy.errors import InputError, SchemaError
from understudy.privacy.cost import Budget
from understudy.schema import Boolean, Category, Float, Integer, Schema, Unit
from understudy.schema.columns import Date, Datetime, UniformBins
from understudy.testing.cases import Case, several_rows
from understudy.testing.doubles import SeededRandomizer
from understudy.testing.replay import check_pair, designed_pairs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

needs("pyspark", "java()")

ROWS = 3_000
SECRET = "zyxwvut48151623"
FIRST, LAST = dt.datetime(1990, 1, 1), dt.datetime(2030, 12, 31)
COLUMNS = (
    Category(name="job.title", labels=("nurse", "cook", "smith"), other="else", missing=True),
    Category(name="raw", labels=("a", "b"), missing=True),
    Category(name="case", labels=("a", "b"), missing=True),
    Integer(name="we`ird", lower=0, upper=9, missing=True),
    Float(name="weight", lower=0.0, upper=10.0, bins=UniformBins(7), missing=True),
    Float(name="paid", lower=0.0, upper=100.0, bins=UniformBins(8), decimals=2, missing=True),
    Date(name="born", lower=dt.date(1500, 1, 1), upper=dt.date(2100, 1, 1), bins=UniformBins(9), missing=True),
    Datetime(name="wall", lower=FIRST, upper=LAST, bins=UniformBins(11), missing=True),
    Datetime(
        name="instant",
        lower=FIRST.replace(tzinfo=dt.UTC),
        upper=LAST.replace(tzinfo=dt.UTC),
        bins=UniformBins(11),
        zone="Europe/Rome",
        missing=True,
    ),
    Boolean(name="smokes", missing=True),
)


def typed_table() -> pa.Table:
    """Every storage type that Spark and Parquet share, with nulls, NaN, far years and values outside the schema."""
    rng = np.random.default_rng(4)

    def some(values: list[object], kind: pa.DataType) -> pa.Array:
        return pa.array([values[place] for place in rng.integers(0, len(values), ROWS)], kind)

    days = [dt.date(1, 1, 1), dt.date(1582, 10, 4), dt.date(1582, 10, 15), dt.date(1970, 1, 1), dt.date(9999, 12, 31)]
    moments = [dt.datetime(1, 1, 1), dt.datetime(1999, 12, 31, 23, 30), dt.datetime(2020, 7, 1, 12), None]
    money = [decimal.Decimal("0.01"), decimal.Decimal("99.99"), decimal.Decimal("1234567.00"), None]
    columns = {
        "job.title": some(["nurse", "cook", " smith ", "spyglass maker", "", None], pa.string()),
        "raw": some([b"a", b"b", b"\xff", None], pa.binary()),
        "case": some(["a", "b", "A", None], pa.string()),
        "we`ird": some([0, 5, 9, -3, None], pa.int16()),
        "weight": some([0.0, 3.3, float("nan"), float("inf"), -1.0, None], pa.float32()),
        "paid": some(money, pa.decimal128(12, 2)),
        "born": some([*days, None], pa.date32()),
        "wall": some(moments, pa.timestamp("us")),
        "instant": some(moments, pa.timestamp("us", "UTC")),
        "smokes": some([True, False, None], pa.bool_()),
        "person": pa.array([f"{SECRET} {number}" for number in rng.integers(0, ROWS // 3, ROWS)]),
        "left out": some([{"x": 1}], pa.struct([("x", pa.int8())])),
    }
    return pa.table(columns)


def all_pairs(codec: TableCodec) -> list[Clique]:
    return [codec.domain.clique(pair) for pair in itertools.combinations(codec.domain.columns, 2)]


def same_counts(one: CountSource, other: CountSource, cliques: list[Clique]) -> bool:
    found, expected = one.counts(cliques), other.counts(cliques)
    return all(np.array_equal(found[clique], expected[clique]) for clique in cliques)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The typed table in several files, so that several tasks read it."""
    folder = tmp_path_factory.mktemp("typed")
    table = typed_table()
    for number in range(4):
        pq.write_table(table.slice(number * ROWS // 4, ROWS // 4), folder / f"{number}.parquet")
    return folder


@pytest.mark.parametrize(("rows", "adaptive"), [(0, "true"), (1, "true"), (3, "true"), (3, "false")])
def test_counts_are_those_of_the_same_files_read_here(
    spark: "SparkSession", stored: Path, rows: int, adaptive: str
) -> None:
    schema = Schema(COLUMNS, Unit("person", rows) if rows else Unit())
    codec = TableCodec.of(schema)
    settings = {"spark.sql.session.timeZone": "Asia/Kolkata", "spark.sql.adaptive.enabled": adaptive}
    with configured(spark, settings):
        frame = spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(str(stored))
        source = open_table(frame, schema).bind(codec)
        local = open_table(str(stored / "*.parquet"), schema).bind(codec)
        assert same_counts(source, local, [Clique(), *all_pairs(codec)])
        assert source.records().units == local.records().units


class configured:
    """Settings of the session while a block runs."""

    def __init__(self, spark: "SparkSession", settings: dict[str, str]) -> None:
        self._spark, self._settings = spark, settings

    def __enter__(self) -> None:
        self._before = {name: self._spark.conf.get(name) for name in self._settings}
        self._set(self._settings)

    def __exit__(self, *_: object) -> None:
        self._set(self._before)

    def _set(self, settings: "dict[str, str] | dict[str, str | None]") -> None:
        for name, value in settings.items():
            self._spark.conf.set(name, str(value))


def test_a_table_of_the_catalogue_is_named_in_the_location(spark: "SparkSession", stored: Path) -> None:
    spark.read.parquet(str(stored)).createOrReplaceTempView("dotted.name".replace(".", "_"))
    schema = Schema(COLUMNS[:3], Unit())
    codec = TableCodec.of(schema)
    local = open_table(str(stored / "*.parquet"), schema).bind(codec)
    assert same_counts(open_table("spark:dotted_name", schema).bind(codec), local, all_pairs(codec))
    assert ("paid", "decimal(12,2)") in header_of("spark:dotted_name")


def test_names_that_differ_in_case_alone_are_told_apart(spark: "SparkSession") -> None:
    schema = Schema((Integer(name="a", lower=0, upper=3), Integer(name="A", lower=0, upper=3)), Unit())
    codec = TableCodec.of(schema)
    source = open_table(spark.sql("select 1 A, 2 a"), schema).bind(codec)
    local = open_table(pa.table({"A": [1], "a": [2]}), schema).bind(codec)
    assert same_counts(source, local, [codec.domain.everything()])


@pytest.mark.parametrize("rows", [0, 3])
def test_a_worker_killed_in_the_middle_changes_no_count(
    spark: "SparkSession", stored: Path, tmp_path: Path, rows: int
) -> None:
    """The process that hands rows over is killed after its first batch; Spark runs the task again from its start."""
    mark = tmp_path / "killed"

    def dying(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        for number, batch in enumerate(batches):
            yield batch
            if number == 1 and TaskContext.get().attemptNumber() == 0:
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)

    plain = spark.read.parquet(str(stored)).select("raw", "case", "person")
    schema = Schema((COLUMNS[1], COLUMNS[2]), Unit("person", rows) if rows else Unit())
    codec = TableCodec.of(schema)
    table = open_table(plain.mapInArrow(dying, plain.schema), schema)
    local = open_table(str(stored / "*.parquet"), schema).bind(codec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_rows_each", lambda columns: 100)  # so that tasks have many batches
        assert same_counts(table.bind(codec), local, all_pairs(codec))
    assert mark.exists(), "no worker was killed"


def test_all_answers_are_about_one_snapshot_of_a_frame_that_is_never_the_same(spark: "SparkSession") -> None:
    schema = Schema(tuple(Integer(name=name, lower=0, upper=9) for name in "ab"), Unit())
    codec = TableCodec.of(schema)

    def drawn(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:  # rand() would not do: its seed is part of the plan
            draws = [np.frombuffer(os.urandom(batch.num_rows), np.uint8).astype(np.int32) % 10 for _ in "ab"]
            yield pa.record_batch(draws, names=["a", "b"])

    random = spark.range(5_000).mapInArrow(drawn, "a int, b int")
    source = open_table(random, schema).bind(codec)
    pair = codec.domain.clique(["a", "b"])
    first = source.counts([pair])[pair]
    assert source.counts([pair])[pair].tolist() == first.tolist()
    alone = codec.domain.clique(["a"])
    by_a = first.reshape(codec.domain.shape(pair)).sum(axis=1)
    assert source.counts([alone])[alone].tolist() == by_a.tolist()
    other = open_table(random, schema).bind(codec).counts([pair])[pair]
    assert other.tolist() != first.tolist(), "the frame is the same each time, so nothing was tested"


def test_a_value_that_breaks_the_query_is_told_to_nobody(spark: "SparkSession", capfd: pytest.CaptureFixture) -> None:
    broken = spark.createDataFrame([("1",), (SECRET,)], "a string").selectExpr("cast(a as int) a")
    schema = Schema((Integer(name="a", lower=0, upper=9),), Unit())
    codec = TableCodec.of(schema)
    source = open_table(broken, schema).bind(codec)
    with pytest.raises(InputError, match="could not be read to its end") as caught:
        source.counts(all_pairs(codec) or [codec.domain.everything()])
    told = capfd.readouterr()
    assert SECRET not in told.out + told.err
    assert SECRET not in f"{caught.value!r} {caught.value.__context__!r} {caught.value.__cause__!r}"


def test_a_task_that_fails_says_so_without_a_word(
    spark: "SparkSession", stored: Path, capfd: pytest.CaptureFixture
) -> None:
    """A codec that raises with a value in its message stands for any fault of ours on an executor."""
    schema = Schema((COLUMNS[2],), Unit("person", 1))
    source = open_table(spark.read.parquet(str(stored)), schema).bind(TableCodec.of(schema))
    assert isinstance(source, engine.SparkSource)
    source._coding = replace(source._coding, codec=Raising(source._coding.codec))
    with pytest.raises(InputError, match="could not be read to its end"):
        source.counts([source.domain.everything()])
    told = capfd.readouterr()
    assert SECRET not in told.out + told.err


class Raising:
    """A codec that quotes a value as it fails."""

    def __init__(self, codec: TableCodec) -> None:
        self.codec = codec

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.codec, name)

    def encode(self, name: str, values: pa.Array) -> np.ndarray:
        raise ValueError(f"cannot code {SECRET}")


@pytest.mark.parametrize(
    ("query", "rule"),
    [
        ("select map(1, 2) a", "map<int,int>"),
        ("select interval '3' month a", "interval month"),
        ("select parse_json('1') a", "variant"),
        ("select array(1) a", "array<int>"),
    ],
)
def test_types_that_no_schema_describes_are_refused_only_where_they_are_wanted(
    spark: "SparkSession", query: str, rule: str
) -> None:
    schema = Schema((Integer(name="a", lower=0, upper=9),), Unit())
    with pytest.raises(InputError) as caught:
        open_table(spark.sql(query), schema)
    assert rule in str(caught.value)
    open_table(spark.sql(f"{query}_x, 1 a".replace(" a_x", " x")), schema)


def test_what_cannot_be_read_is_refused_before_anything_is_read(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = Schema((Integer(name="value", lower=0, upper=9),), Unit())
    with pytest.raises(InputError, match="is not a table or view"):
        open_table("spark:no.such.table", schema)
    with pytest.raises(InputError, match="is an unbounded stream"):
        open_table(spark.readStream.format("rate").load(), schema)
    with pytest.raises(SchemaError, match="none of the columns"):
        open_table(spark.sql("select 1 other"), schema)
    with pytest.raises(SchemaError, match="appears twice"):
        open_table(spark.sql("select 1 value, 2 value"), schema)
    with pytest.raises(InputError, match="must be a DataFrame of a Spark session"):
        open_table(spark.sparkContext, schema)
    monkeypatch.setattr(engine, "_AGREED", set())
    monkeypatch.setattr(engine, "_versions", lambda: {**VERSIONS(), "numpy": "0.0.1"})
    with pytest.raises(InputError, match="other versions of numpy than the driver"):
        open_table(spark.sql("select 1 value"), schema)


def test_instants_are_counted_by_utc_whatever_the_zone_of_the_session(spark: "SparkSession", tmp_path: Path) -> None:
    late = dt.datetime(2020, 6, 2, 1, tzinfo=dt.UTC)
    pq.write_table(pa.table({"day": pa.array([late] * 3, pa.timestamp("us", "UTC"))}), tmp_path / "days.parquet")
    days = Date(name="day", lower=dt.date(2020, 6, 1), upper=dt.date(2020, 6, 3))
    codec = TableCodec.of(schema := Schema((days,), Unit()))
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        found = open_table(spark.read.parquet(str(tmp_path)), schema).bind(codec)
        everything = [codec.domain.everything()]
        assert same_counts(found, open_table(tmp_path / "days.parquet", schema).bind(codec), everything)
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))


VERSIONS = engine._versions


def test_a_release_gives_nothing_away_about_a_neighbour(spark: "SparkSession") -> None:
    """Two methods through the whole pipeline, on a few of the designed pairs: Spark takes seconds for each."""
    cases = [
        Case(several_rows(2), "mst", Budget(1.0, 1e-6)),
        Case(Schema(several_rows().columns, Unit()), "independent", Budget(1.0, 0.0)),
    ]
    for case, wanted in itertools.product(cases, ("sole holder 0", "empty table")):
        pair = next(one for one in designed_pairs(case.schema) if one.name == wanted)
        check_pair(case.pipeline(spark.createDataFrame), pair.table, pair.neighbour, SeededRandomizer(1))


def test_what_is_shuffled_and_stored_holds_no_id_and_no_value(tmp_path: Path, stored: Path) -> None:
    """In a session without encryption and compression, so that what is written can be searched as it is."""
    asked = [sys.executable, "-m", "tests.engines.spark_on_disk", str(tmp_path), str(stored)]
    root = Path(__file__).parents[2]  # where Python finds the tests
    done = subprocess.run(asked, capture_output=True, text=True, timeout=900, check=False, cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr[-3_000:]
    assert done.stdout.split() == ["refused", "found", "absent"]


def test_counts_stay_exact_when_executors_die(tmp_path: Path, stored: Path) -> None:
    """In a cluster of two executors on this machine, which starts slow tasks twice."""
    asked = [sys.executable, "-m", "tests.engines.spark_killed", str(tmp_path), str(stored)]
    root = Path(__file__).parents[2]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=900, check=False, cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr[-3_000:]
    assert done.stdout.split() == ["killed", "exact", "exact", "killed", "exact", "killed", "ended"]
