"""A small steward's folder: a table, its schema and a ledger; and the command that makes a release from it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from tests.cli.terminal import Outcome, run

__all__ = ["SCHEMA", "Workspace", "people"]

SCHEMA = """\
understudy: 1
title: People of a small town
unit: row
columns:
  region:
    kind: category
    labels: [north, south, east, west]
    other: elsewhere
    note: the four districts of the town map
  sex:
    kind: category
    labels: [F, M]
    note: code book
  age:
    kind: integer
    lower: 18
    upper: 65
    note: the survey asks adults of working age
  income:
    kind: float
    lower: 0
    upper: 100000
    decimals: 2
    note: top code of the questionnaire
  visited:
    kind: date
    lower: 2020-01-01
    upper: 2020-12-31
    note: year of the survey
"""


def people(rows: int) -> pa.Table:
    rng = np.random.default_rng(11)
    days = np.datetime64("2020-01-01") + rng.integers(0, 366, rows)
    return pa.table(
        {
            "region": rng.choice(["north", "south", "east", "west"], rows, p=[0.4, 0.3, 0.2, 0.1]),
            "sex": rng.choice(["F", "M"], rows),
            "age": rng.integers(18, 66, rows),
            "income": np.round(rng.gamma(2.0, 15_000, rows), 2),
            "visited": pa.array(days.astype("datetime64[D]"), pa.date32()),
        }
    )


@dataclass(frozen=True)
class Workspace:
    """The folder and the names in it."""

    folder: Path

    @property
    def table(self) -> Path:
        return self.folder / "people.csv"

    @property
    def schema(self) -> Path:
        return self.folder / "schema.yaml"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.db"

    @property
    def release(self) -> Path:
        return self.folder / "release"

    @classmethod
    def make(cls, folder: Path, *, rows: int = 200) -> "Workspace":
        made = cls(folder)
        table = people(rows)
        pacsv.write_csv(table, made.table)
        pq.write_table(table, folder / "people.parquet")
        made.schema.write_text(SCHEMA, encoding="utf-8")
        opened = run("ledger", "init", made.ledger, "--dataset", "people", "--epsilon", 100, "--delta", "1e-6")
        assert opened.status == 0, opened.err
        return made

    def synthesize(self, *more: object, table: object = None, schema: object = None, epsilon: object = 1) -> Outcome:
        """`understudy synthesize` on the folder's table, charged to its ledger, with further options."""
        words = ["synthesize", table or self.table, "--schema", schema or self.schema, "--epsilon", epsilon]
        words += ["--ledger", self.ledger, "--dataset", "people"]
        if "--out" not in more:
            words += ["--out", self.release]
        return run(*words, *more)

    def balance(self) -> str:
        shown = run("ledger", "show", self.ledger, "--json")
        assert shown.status == 0, shown.err
        return shown.out
