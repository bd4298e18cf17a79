"""A table with a column of every plain storage type, and its schema: what any engine should count as Parquet does."""

import datetime as dt
import itertools

import numpy as np
import pyarrow as pa

from understudy.codec.table import TableCodec
from understudy.counts.source import CountSource
from understudy.domain import Clique
from understudy.schema import (
    Boolean,
    Category,
    Date,
    Datetime,
    Float,
    GivenBins,
    Integer,
    Schema,
    Time,
    UniformBins,
    Unit,
)

DAYS = {"lower": dt.date(1920, 1, 1), "upper": dt.date(2025, 12, 31)}
MOMENTS = {"lower": dt.datetime(2020, 1, 1), "upper": dt.datetime(2025, 12, 31)}
ZONED = {key: value.replace(tzinfo=dt.UTC) for key, value in MOMENTS.items()}
SCHEMA = Schema(
    (
        Category(name="job", labels=("nurse", "cook", "Zürich", "12.3"), other="else"),
        Category(name="level", labels=("1", "2", "3")),
        Integer(name="small", lower=0, upper=9),
        Integer(name="wide", lower=-(10**12), upper=2**62, bins=UniformBins(7)),
        Float(name="single", lower=0.0, upper=1.0, bins=GivenBins((0.0, 0.1, 0.7, 1.0))),
        Float(name="double", lower=-90.0, upper=90.0, bins=UniformBins(9)),
        Float(name="paid", lower=0.0, upper=100.0, bins=UniformBins(10), decimals=2),
        Boolean(name="smoker"),
        Date(name="born", bins=UniformBins(8), **DAYS),
        Datetime(name="seen", bins=UniformBins(8), **MOMENTS),
        Datetime(name="zoned", bins=UniformBins(8), zone="America/New_York", **ZONED),
        Time(name="clock", bins=UniformBins(6)),
    ),
    Unit(),
)


def every_type(rows: int, seed: int = 3) -> pa.Table:
    """So many rows, with absent values, values out of bounds and NaN."""
    rng = np.random.default_rng(seed)

    def some(values: object, kind: pa.DataType) -> pa.Array:
        return pa.array(values, mask=rng.random(rows) < 0.1).cast(kind, safe=False)

    labels = pa.array(["nurse", "cook", "Zürich", "12.3", "12.30", " cook", "nowhere", ""])
    doubles = np.where(rng.random(rows) < 0.05, np.nan, rng.uniform(-95, 95, rows))
    singles = rng.choice(np.array([0.1, 0.7, 0.30000001, 2.0, np.nan], np.float32), rows)
    instants = (1.57e15 + 2.1e14 * rng.random(rows)).astype(np.int64)
    return pa.table(
        {
            "job": labels.take(pa.array(rng.integers(0, len(labels), rows), mask=rng.random(rows) < 0.1)),
            "level": some(rng.integers(0, 5, rows), pa.int32()),
            "small": some(rng.integers(-2, 12, rows), pa.int16()),
            "wide": some(rng.integers(-(2**63), 2**63 - 1, rows), pa.int64()),
            "single": some(singles, pa.float32()),
            "double": some(doubles, pa.float64()),
            "paid": some(rng.integers(-500, 10_500, rows) / 100, pa.decimal128(12, 2)),
            "smoker": some(rng.random(rows) < 0.4, pa.bool_()),
            "born": some(rng.integers(-20_000, 22_000, rows).astype(np.int32), pa.date32()),
            "seen": some(instants, pa.timestamp("us")),
            "zoned": some(instants[::-1].copy(), pa.timestamp("us", "UTC")),
            "clock": some(rng.integers(0, 86_400_000_000, rows), pa.time64("us")),
        }
    )


def pair_counts(source: CountSource) -> dict[Clique, list[int]]:
    """The counts of all pairs of columns."""
    cliques = [source.domain.clique(pair) for pair in itertools.combinations(source.domain.columns, 2)]
    return {clique: counts.tolist() for clique, counts in source.counts(cliques).items()}


def codec() -> TableCodec:
    """The codes of the schema above."""
    return TableCodec.of(SCHEMA)
