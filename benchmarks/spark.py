"""Spark beside the file source: all two-way tables of 20 columns of many types, with and without a bound per unit.

    python -m benchmarks.spark                   # 10⁶ rows
    python -m benchmarks.spark --rows 10000000

One Spark session of two local tasks (`local[2]`) and 2 GiB of heap. CPU seconds of this process, the JVM and all Python
workers together, ended ones included; starting the session and loading kernels (a warm-up on a few rows) are told
apart, because they do not grow with rows. Counts are compared with those of the file source, cell by cell.
"""

import argparse
import datetime as dt
import itertools
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from understudy.codec.table import TableCodec
from understudy.counts.opening import open_table
from understudy.counts.source import CountSource
from understudy.domain import Clique
from understudy.schema import Boolean, Category, Float, Integer, Schema, Unit
from understudy.schema.columns import Date, Datetime, UniformBins

LABELS = {"sex": 2, "marital": 6, "race": 9, "school": 16, "job": 25, "state": 51, "plan": 4, "region": 5}
NUMBERS = {"age": 99, "hours": 99, "kids": 9, "grade": 12, "income": 500_000, "zone": 999}
CHUNK = 500_000
FIRST = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
LAST = dt.datetime(2025, 12, 31, tzinfo=dt.UTC)
BAR = 7.0


def schema_of(bound: int) -> Schema:
    """Eight columns of labels, six of integers, three of floats or decimals, a date, an instant and a yes or no."""
    columns = [
        *(Category(name=name, labels=_labels(name, size), missing=name == "job") for name, size in LABELS.items()),
        *(
            Integer(name=name, lower=0, upper=most, bins=UniformBins(20) if most > 20 else None, missing=True)
            for name, most in NUMBERS.items()
        ),
        Float(name="mass", lower=10.0, upper=60.0, bins=UniformBins(25), decimals=1, missing=True),
        Float(name="north", lower=-90.0, upper=90.0, bins=UniformBins(30), missing=True),
        Float(name="paid", lower=0.0, upper=10_000.0, bins=UniformBins(20), decimals=2, missing=True),
        Date(name="born", lower=dt.date(1920, 1, 1), upper=dt.date(2025, 12, 31), bins=UniformBins(30), missing=True),
        Datetime(name="seen", lower=FIRST, upper=LAST, bins=UniformBins(24), zone="America/New_York", missing=True),
        Boolean(name="smokes", missing=True),
    ]
    return Schema(tuple(columns), Unit("person", bound) if bound else Unit())


def _labels(name: str, size: int) -> tuple[str, ...]:
    return tuple(f"{name} value {number:02d}" for number in range(size))


def write(path: Path, rows: int) -> None:
    """A table of that many rows and an id that about two rows share."""
    rng = np.random.default_rng(5)
    writer = None
    for start in range(0, rows, CHUNK):
        part = _chunk(rng, min(CHUNK, rows - start), start)
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part)
    assert writer is not None
    writer.close()


def _chunk(rng: np.random.Generator, rows: int, start: int) -> pa.Table:
    shared = rng.random(rows)

    def some(most: int, power: float = 1.5) -> np.ndarray:
        return ((most + 1) * np.clip(0.6 * shared + 0.4 * rng.random(rows), 0, 0.9999) ** power).astype(np.int64)

    def gaps(share: float) -> np.ndarray:
        return rng.random(rows) < share

    columns = {"person": pa.array(rng.integers(0, max(1, rows // 2), rows) + start)}
    for name, size in LABELS.items():
        columns[name] = pa.array(_labels(name, size)).take(pa.array(np.minimum(some(size), size - 1)))
    for name, most in NUMBERS.items():
        columns[name] = pa.array(some(most).astype(np.int32), mask=gaps(0.05))
    columns["mass"] = pa.array(np.round(18 + 20 * shared + 3 * rng.standard_normal(rows), 1), mask=gaps(0.1))
    columns["north"] = pa.array(rng.uniform(-95, 95, rows))
    cents = pa.array(some(999_999, 4) / 100, mask=gaps(0.2))
    columns["paid"] = cents.cast(pa.decimal128(12, 2), safe=False)
    columns["born"] = pa.array((25_000 * rng.random(rows) - 10_000).astype(np.int32)).cast(pa.date32())
    moments = 1_577_836_800_000_000 + (189e12 * rng.random(rows)).astype(np.int64)
    columns["seen"] = pa.array(moments).cast(pa.timestamp("us", "UTC"))
    columns["smokes"] = pa.array(rng.random(rows) < 0.3, mask=gaps(0.02))
    return pa.table(columns)


class TreeClock:
    """CPU seconds of this process and of all that descend from it (Linux), looked at twice a second.

    Workers that end are remembered by their last look: Spark's daemon does not wait for them, so that what they used is
    added to no parent.
    """

    def __init__(self) -> None:
        self._used: dict[int, float] = {}
        threading.Thread(target=self._watch, daemon=True).start()

    def seconds(self) -> float:
        """What was used so far."""
        self._look()
        return sum(list(self._used.values()))  # a copy: the other thread may be adding

    def _watch(self) -> None:
        while True:
            time.sleep(0.5)
            self._look()

    def _look(self) -> None:
        parents: dict[int, int] = {}
        used: dict[int, float] = {}
        for place in Path("/proc").glob("[0-9]*/stat"):
            try:
                text = place.read_text()
            except OSError:
                continue
            number, fields = int(place.parent.name), text.rpartition(")")[2].split()
            parents[number] = int(fields[1])
            used[number] = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
        tree, more = {os.getpid()}, {os.getpid()}
        while more:
            more = {number for number, parent in parents.items() if parent in tree} - tree
            tree |= more
        self._used.update({number: used[number] for number in tree if number in used})


CLOCK = TreeClock()


def timed(count: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds."""
    cpu, wall = CLOCK.seconds(), time.perf_counter()
    count()
    return CLOCK.seconds() - cpu, time.perf_counter() - wall


def session(folder: Path):  # type: ignore[no-untyped-def]
    """Two tasks at a time in this machine."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.io.encryption.enabled": "true",
        "spark.sql.shuffle.partitions": "8",
        "spark.local.dir": str(folder / "local"),
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def compare(rows: int, folder: Path) -> None:
    """Prints a line for each source and bound."""
    few, many = folder / "few.parquet", folder / "many.parquet"
    write(few, 2_000)
    write(many, rows)
    started: list[object] = []
    cpu, wall = timed(lambda: started.append(session(folder)))
    spark = started[0]
    print(f"session: {cpu:.1f} CPU s, {wall:.0f} s", flush=True)
    for bound in (0, 2):
        schema = schema_of(bound)
        codec = TableCodec.of(schema)
        pairs = [codec.domain.clique(pair) for pair in itertools.combinations(codec.domain.columns, 2)]

        def here(path: Path, schema: Schema = schema, codec: TableCodec = codec) -> CountSource:
            return open_table(str(path), schema).bind(codec)

        def there(path: Path, schema: Schema = schema, codec: TableCodec = codec) -> CountSource:
            return open_table(spark.read.parquet(str(path)), schema).bind(codec)  # type: ignore[attr-defined]

        warm = timed(lambda here=here, there=there, pairs=pairs: [one(few).counts(pairs) for one in (here, there)])
        local, remote = _line("Parquet", here(many), pairs, rows), _line("Spark", there(many), pairs, rows)
        same = all(np.array_equal(local[1][pair], remote[1][pair]) for pair in pairs)
        times = remote[0] / local[0]
        print(
            f"k = {bound}: {times:.1f} times the CPU (bar {BAR:.0f}), warm-up {warm[0]:.1f} CPU s, same counts: {same}"
        )
    spark.stop()  # type: ignore[attr-defined]


def _line(name: str, source: CountSource, pairs: list[Clique], rows: int):  # type: ignore[no-untyped-def]
    found: list[object] = []
    cpu, wall = timed(lambda: found.append(source.counts(pairs)))
    again, _ = timed(lambda: source.counts(pairs))
    print(f"{name:8} {cpu:7.2f} CPU s, {wall:5.0f} s, {1e6 * cpu / rows:.2f} µs a row; again {again:.2f}", flush=True)
    return cpu, found[0]


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        compare(parser.parse_args().rows, Path(folder))


if __name__ == "__main__":
    main()
