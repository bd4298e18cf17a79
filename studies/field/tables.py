"""The tables of the study, each with a part that plays the public table and a part that is protected.

The challenge gave an earlier year, or another state, to learn from. Here: fire calls of the first half of 2016 are
public, those of the second half private; records of Illinois are public, those of Ohio private. The code book of areas
lists 88 areas first and 93 after them, as many as Illinois and Ohio have, so the state is read off the code.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from understudy import Schema, Unit
from understudy.demo import schema_text, voter_table
from understudy.schema import Category
from understudy.schema.document import schema_from_text

__all__ = ["CENSUS", "FIRE", "Bench", "census", "fire", "voters"]

FIRE, CENSUS = "nist2018_sf_fire", "nist2020_acs_iloh"
FIRE_COLUMNS = (
    "Call Type",
    "Call Type Group",
    "Call Final Disposition",
    "Priority",
    "Final Priority",
    "Unit Type",
    "ALS Unit",
    "Unit sequence in call dispatch",
    "Received DtTm",
    "On Scene DtTm",
    "Battalion",
    "Station Area",
    "Neighborhooods - Analysis Boundaries",
    "Zipcode of Incident",
    "Supervisor District",
    "City",
)
CENSUS_COLUMNS = (
    "PUMA",
    "SEX",
    "AGE",
    "MARST",
    "RACE",
    "HISPAN",
    "CITIZEN",
    "HCOVANY",
    "HINSCAID",
    "EDUC",
    "EMPSTATD",
    "LABFORCE",
    "INCTOT",
    "INCWAGE",
    "POVERTY",
    "WORKEDYR",
)
PLACE_TIME_CALL = (
    "Battalion+Station Area+Neighborhooods - Analysis Boundaries+Zipcode of Incident+Supervisor District+City, "
    "Received DtTm+On Scene DtTm, Unit sequence in call dispatch, "
    "Call Type+Call Type Group+Call Final Disposition+Priority+Final Priority+Unit Type+ALS Unit"
)
FIRST_HALF = 50
"""Watch dates are cut into 100 equal bins of 2016."""
ILLINOIS = 88


@dataclass(frozen=True)
class Bench:
    """A table of the challenge: what is public, what is protected, and how entries were scored."""

    name: str
    title: str
    schema: Schema
    public: pa.Table
    private: pa.Table
    epsilons: tuple[float, ...]
    sets: int
    probability: float
    wages: Mapping[str, str] = field(default_factory=dict)
    groups: str = ""
    """Groups of columns a person would name; empty: taken from the public table."""

    @property
    def guessed_rows(self) -> int:
        """A public guess of the number of rows: to the next thousand."""
        return 1000 * -(-self.private.num_rows // 1000)

    @property
    def delta(self) -> float:
        """1/n̂² for the guessed number of rows."""
        return 1.0 / self.guessed_rows**2


def fire(data: Path) -> Bench:
    """Matches 1 and 2: fire calls."""
    table = _read(data, FIRE, (*FIRE_COLUMNS, "Watch Date"))
    early = table.column("Watch Date").to_numpy() < FIRST_HALF
    schema = _coded(data, FIRE, FIRE_COLUMNS)
    public, private = _parts(table.select(list(FIRE_COLUMNS)), early)
    return Bench("fire", "Fire calls", schema, public, private, (0.01, 0.1, 1.0), 3, 0.33, groups=PLACE_TIME_CALL)


def census(data: Path) -> Bench:
    """Match 3, on a survey of persons instead of the 1940 census."""
    table = _read(data, CENSUS, CENSUS_COLUMNS)
    schema = _coded(data, CENSUS, CENSUS_COLUMNS)
    public, private = _parts(table, table.column("PUMA").to_numpy() < ILLINOIS)
    wages = {"sex": "SEX", "city": "PUMA", "wage": "INCWAGE", "male": "0", "female": "1"}
    return Bench("census", "Survey of persons", schema, public, private, (0.3, 1.0, 8.0), 5, 0.10, wages)


def voters() -> Bench:
    """A few columns of the packaged demonstration table, for the smoke form."""
    whole = voter_table()
    names = ("age", "family_income", "female", "married", "voted")
    full = schema_from_text(schema_text(), "voters")
    schema = Schema(tuple(full.column(name) for name in names), Unit(), title="young voters", unreadable="drop")
    order = np.random.default_rng(0).permutation(whole.num_rows)
    table = whole.select(list(names))
    public, private = table.take(order[:1000]), table.take(order[1000:2000])
    return Bench("voters", "Young voters", schema, public, private, (1.0,), 1, 0.33)


READERS: Mapping[str, Callable[[Path], Bench]] = {"fire": fire, "census": census}


def _read(data: Path, folder: str, columns: tuple[str, ...]) -> pa.Table:
    return pq.read_table(data / folder / "data.parquet", columns=list(columns))


def _coded(data: Path, folder: str, columns: tuple[str, ...]) -> Schema:
    """Every column with its documented codes 0, 1, 2, …"""
    described = json.loads((data / folder / "domain.json").read_text(encoding="utf-8"))["columns"]
    made = [
        Category(
            name=name,
            labels=tuple(str(code) for code in range(int(described[name]["size"]))),
            missing=bool(described[name].get("missing", False)),
            storage="int64",
        )
        for name in columns
    ]
    return Schema(tuple(made), Unit(), title=folder, unreadable="drop")


def _parts(table: pa.Table, public: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> tuple[pa.Table, pa.Table]:
    return table.filter(pa.array(public)), table.filter(pa.array(~public))
