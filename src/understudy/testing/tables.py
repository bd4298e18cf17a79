"""Tiny schemas and tables for contracts: every column kind once, hostile names, a unit with several rows."""

import datetime as dt
from dataclasses import replace

import numpy as np
import pyarrow as pa

from understudy.audit.neighbours import Record, record_pool, to_table
from understudy.codec.table_codec import TableCodec
from understudy.schema import (
    Boolean,
    Category,
    Column,
    Cut,
    Date,
    Datetime,
    Derived,
    Float,
    GivenBins,
    Impossible,
    Integer,
    OpenCategory,
    Schema,
    Time,
    UniformBins,
    Unit,
)

__all__ = [
    "closed_kinds",
    "every_kind",
    "hostile_names",
    "open_labels",
    "possible_rows",
    "several_rows",
    "small",
    "some_rows",
    "split_amounts",
]


def small(*, unit: Unit | None = None) -> Schema:
    """Three columns and one impossible combination: fast, and every cell can be enumerated."""
    return Schema(
        columns=(
            Category(name="registered", labels=("yes", "no"), missing=False),
            Category(name="voted", labels=("yes", "no"), missing=False),
            Integer(name="age", lower=18, upper=22),
        ),
        unit=unit or Unit(),
        rules=(Impossible(when={"registered": ("no",), "voted": ("yes",)}, note="only the registered may vote"),),
    )


def several_rows(rows: int = 3) -> Schema:
    """The small schema, protecting people who may hold several rows."""
    return small(unit=Unit(column="person", rows=rows))


def every_kind() -> Schema:
    """One column of every kind with a closed domain, and a derived one."""
    return Schema(
        columns=(
            Category(name="city", labels=("Rome", "Oslo", "Nis"), other="elsewhere"),
            Boolean(name="member"),
            Integer(name="income", lower=0, upper=100_000, bins=UniformBins(5), special=(999_998,)),
            Float(name="height", lower=0.5, upper=2.5, bins=UniformBins(4), decimals=2),
            Date(name="born", lower=dt.date(1990, 1, 1), upper=dt.date(1999, 12, 31), bins=UniformBins(3)),
            Datetime(
                name="seen",
                lower=dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
                upper=dt.datetime(2020, 12, 31, tzinfo=dt.UTC),
                bins=UniformBins(3),
                zone="Europe/Rome",
            ),
            Time(name="woke", bins=UniformBins(4)),
            Derived(name="tall", formula=Cut("height", (0.5, 1.5, 2.5), ("no", "yes"))),
        ),
        unit=Unit(),
    )


def split_amounts(*, unit: Unit | None = None) -> Schema:
    """Amounts modelled by size and kind (13 of 6 × 5 pairs of codes are possible), beside a closed column."""
    return Schema(
        columns=(
            Integer(
                name="wage",
                lower=0,
                upper=400,
                bins=GivenBins((0, 3, 200, 400)),
                special=(998, 999),
                split=(100, 20, 3),
            ),
            Category(name="registered", labels=("yes", "no"), missing=False),
        ),
        unit=unit or Unit(),
    )


def open_labels() -> Schema:
    """A closed column beside one whose labels must be discovered."""
    return Schema(
        columns=(Category(name="sex", labels=("F", "M")), OpenCategory(name="job", most_labels=20)), unit=Unit()
    )


def closed_kinds() -> Schema:
    """The same kinds with neither missing nor other: what cannot be read is a code of its own, or its row goes."""
    columns = every_kind().columns
    return Schema(columns=tuple(map(_closed, columns)), unit=Unit())


def _closed(column: Column) -> Column:
    return (
        replace(column, missing=False, other=None) if isinstance(column, Category) else replace(column, missing=False)
    )


def hostile_names() -> Schema:
    """Column names and labels that break careless quoting."""
    names = ('a"b', "c'; drop table x; --", "d\\e", "select", "ф 🙂", "line\nbreak", "semi;colon", "per%cent {x}")
    labels = ("plain", "quo'te", 'dou"ble', "com,ma", "new\nline", " lead", "trail ", "é", "e\u0301", "0", "-1", "null")
    return Schema(columns=tuple(Category(name=name, labels=labels) for name in names), unit=Unit())


def some_rows(schema: Schema, rows: int, seed: int) -> pa.Table:
    """A table of `rows` valid records with some dependence, the same for the same seed."""
    rng = np.random.default_rng(seed)
    pool = record_pool(schema)
    weights = rng.dirichlet(np.full(len(pool), 0.7))
    picks = rng.choice(len(pool), size=rows, p=weights)
    records: list[Record] = []
    for number, pick in enumerate(picks):
        record = dict(pool[pick])
        swap = pool[int(rng.integers(len(pool)))]
        name = schema.modelled[int(rng.integers(len(schema.modelled)))].name
        record[name] = swap[name]
        if schema.unit.column is not None:
            record[schema.unit.column] = f"person-{int(rng.integers(max(1, rows // 2)))}" if number % 9 else None
        records.append(record)
    return to_table(schema, records)


def possible_rows(schema: Schema, rows: int, seed: int) -> pa.Table:
    """As `some_rows`, without the records that the schema's rules call impossible (so perhaps fewer)."""
    table = some_rows(schema, rows, seed)
    codec = TableCodec.of(schema)
    keep = np.ones(table.num_rows, dtype=bool)
    for forbidden in codec.forbidden:
        codes = tuple(
            codec.encode(name, table.column(codec.origin(name))).astype(np.int64) for name in forbidden.clique
        )
        keep &= ~forbidden.mask[np.ravel_multi_index(codes, codec.domain.shape(forbidden.clique))]
    return table.filter(pa.array(keep))
