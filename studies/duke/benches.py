"""Tables for the study of labels: public columns that everybody sees, and private ones to be replaced.

The source's payroll cannot be had. Its roles are played by workers of the Current Population Survey of 1994–1995 (the
UCI "Census-Income" file of a data folder): industry stands for Agency, occupation for Occupation, weeks worked for
Pay, the class of worker for SupervisoryStatus; sex and race are private. One half of the rows, drawn at random, plays
the public table, the other half is private. Without a data folder: simulated voters, to see that the study works.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from understudy import Schema, Unit
from understudy.demo import LEVELS, schema_text, voter_table
from understudy.schema import Category, Integer, UniformBins
from understudy.schema.document import schema_from_text

__all__ = ["Bench", "few_voters", "workers"]

Ints = npt.NDArray[np.int64]

NAMES = {
    "age": "age",
    "education": "education",
    "detailed industry recode": "industry",
    "detailed occupation recode": "occupation",
    "class of worker": "worker_class",
    "weeks worked in year": "weeks",
    "sex": "sex",
    "race": "race",
}
INDUSTRIES, OCCUPATIONS = 52, 47


@dataclass(frozen=True, eq=False)
class Bench:
    """The private table, the public one, and who plays what. Schemas by collapsing method: amounts fine or coarse."""

    title: str
    private: pa.Table
    public: pa.Table
    fine: Schema
    coarse: Schema
    agency: str
    occupation: str
    outcome: str
    event: str
    second: str
    collapse: str
    sizes: tuple[int, int]

    @property
    def predictors(self) -> tuple[str, ...]:
        """The public columns."""
        return tuple(name for name in self.fine.names if name not in (self.outcome, self.second))

    def codes(self, name: str, table: pa.Table) -> Ints:
        """Levels of a column as numbers, the same for every table: its sorted values here."""
        known = np.unique(np.asarray(self.private.column(name).to_pylist()))
        values = np.asarray(table.column(name).to_pylist())
        return np.searchsorted(known, values).astype(np.int64)


def workers(data: Path) -> Bench:
    """Everybody with an industry and an occupation."""
    whole = pq.read_table(data / "kdd_census_income" / "data.parquet", columns=list(NAMES))
    raw = {NAMES[name]: np.asarray(whole.column(name).to_pylist()) for name in NAMES}
    raw = {name: values[raw["industry"] > 0] for name, values in raw.items()}
    raw["weeks"] = np.clip(raw["weeks"], 1, 52)
    table = pa.table({name: values if name in ("age", "weeks") else values.astype(str) for name, values in raw.items()})
    order = np.random.default_rng(1994).permutation(table.num_rows)
    half = table.num_rows // 2
    public = table.take(order[:half]).drop_columns(["sex", "race"])
    labels = {name: sorted(set(raw[name].tolist())) for name in ("education", "worker_class", "sex", "race")}
    return Bench(
        "workers of the CPS 1994–1995", table.take(order[half:]), public, _schema(labels, 13), _schema(labels, 4),
        "industry", "occupation", "sex", "Female", "race", "industry:500,occupation:200", (500, 200),
    )  # fmt: skip


def _schema(labels: Mapping[str, list[str]], parts: int) -> Schema:
    columns = (
        Integer(name="age", lower=0, upper=94, bins=UniformBins(19), missing=False),
        Category(name="education", labels=tuple(labels["education"]), missing=False),
        Category(name="industry", labels=tuple(str(code) for code in range(INDUSTRIES)), missing=False),
        Category(name="occupation", labels=tuple(str(code) for code in range(OCCUPATIONS)), missing=False),
        Category(name="worker_class", labels=tuple(labels["worker_class"]), missing=False),
        Integer(name="weeks", lower=1, upper=52, bins=UniformBins(parts), missing=False),
        Category(name="sex", labels=tuple(labels["sex"]), missing=False),
        Category(name="race", labels=tuple(labels["race"]), missing=False),
    )
    return Schema(columns=columns, unit=Unit(), title="CPS workers 1994-1995", unreadable="drop")


def few_voters(rows: int) -> Bench:
    """Simulated voters; their columns have nothing to do with a payroll."""
    whole = schema_from_text(schema_text(), "voters.yaml")
    names = ("age", "family_income", "residence", "metropolitan", "female", "white")
    schema = Schema(
        columns=tuple(next(column for column in whole.columns if column.name == name) for name in names), unit=Unit(),
        title="few simulated voters", unreadable="drop",
    )  # fmt: skip
    table = voter_table(2 * rows).select(list(names))
    public = table.slice(0, rows).drop_columns(["female", "white"])
    assert len(LEVELS["family_income"]) > len(LEVELS["residence"])
    return Bench(
        "few simulated voters", table.slice(rows), public, schema, schema, "family_income", "residence", "female",
        "yes", "white", "family_income:50", (50, 20),
    )  # fmt: skip
