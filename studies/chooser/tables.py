"""The tables of the chooser study: tiny, few columns, many columns, long and wide, all of them public."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from studies.field.tables import fire
from understudy import Schema, Unit
from understudy.demo import schema_text, voter_table
from understudy.schema import Category
from understudy.schema.document import schema_from_text

__all__ = ["REAL", "SIMULATED", "Case", "case"]

FEW = ("age", "family_income", "female", "married", "voted")
STROKE_COLUMNS = 30
FIRE_ROWS = 40_000
SIMULATED = ("voters, 5 columns", "voters")
REAL = ("titanic", "voters, 5 columns", "voters", "adult", "stroke, 30 columns", "fire calls", "stroke")


@dataclass(frozen=True)
class Case:
    """A table with its schema."""

    name: str
    schema: Schema
    table: pa.Table


def case(name: str, data: Path | None) -> Case:
    """The table of that name; simulated ones need no folder."""
    if name in SIMULATED:
        return _voters(name)
    assert data is not None
    if name == "adult":
        sizes = json.loads((data / "adult" / "adult-domain.json").read_text(encoding="utf-8"))
        table = pyarrow.csv.read_csv(data / "adult" / "adult.csv")
        return Case(name, coded(sizes, list(sizes)), table.select(list(sizes)))
    if name == "fire calls":
        bench = fire(data)
        order = np.random.default_rng(0).permutation(bench.private.num_rows)[:FIRE_ROWS]
        return Case(name, bench.schema, bench.private.take(order))
    folder = "titanic" if name == "titanic" else "stroke_ist"
    described = json.loads((data / folder / "domain.json").read_text(encoding="utf-8"))["columns"]
    sizes = {column: int(facts["size"]) for column, facts in described.items()}
    columns = list(sizes)[:STROKE_COLUMNS] if name == "stroke, 30 columns" else list(sizes)
    return Case(name, coded(sizes, columns), pq.read_table(data / folder / "data.parquet", columns=columns))


def _voters(name: str) -> Case:
    schema, table = schema_from_text(schema_text(), "voters"), voter_table()
    if name == "voters":
        return Case(name, schema, table)
    return Case(
        name, Schema(tuple(schema.column(one) for one in FEW), Unit(), unreadable="drop"), table.select(list(FEW))
    )


def coded(sizes: dict[str, int], columns: Sequence[str]) -> Schema:
    """Columns of codes 0, 1, 2, …"""
    made = [
        Category(name=name, labels=tuple(map(str, range(sizes[name]))), missing=False, storage="int64")
        for name in columns
    ]
    return Schema(tuple(made), Unit(), unreadable="drop")
