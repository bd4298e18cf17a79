"""A small table with every kind of trouble (missing, special, mixed types), and quick ways to rows and pairs."""

import datetime as dt

import numpy as np
import pandas as pd

from understudy.codec.table import TableCodec
from understudy.evaluate.metric import Context, Rows, TablePair, open_for_comparison, read_rows
from understudy.schema import Boolean, Category, Date, Float, Impossible, Integer, Schema, UniformBins, Unit


def mixed() -> Schema:
    """Labels, a boolean, a number with a special value, a float, a date, and a rule."""
    return Schema(
        columns=(
            Category(name="region", labels=("north", "south", "east"), other="else"),
            Category(name="sex", labels=("F", "M"), missing=False),
            Boolean(name="voted"),
            Integer(name="age", lower=18, upper=67, bins=UniformBins(5), special=(999,)),
            Float(name="income", lower=0.0, upper=100.0, bins=UniformBins(8)),
            Date(name="seen", lower=dt.date(2020, 1, 1), upper=dt.date(2020, 12, 31), bins=UniformBins(4)),
        ),
        unit=Unit(),
        rules=(Impossible(when={"sex": ("M",), "region": ("east",)}, note="no men in the east"),),
        title="mixed",
    )


def mixed_frame(rows: int = 500, seed: int = 1) -> pd.DataFrame:
    """Rows in which everything depends on something."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], rows)
    region = np.where(
        sex == "M", rng.choice(["north", "south"], rows, p=[0.8, 0.2]), rng.choice(["south", "east"], rows)
    )
    age = rng.integers(18, 68, rows)
    income = np.clip(age + np.where(sex == "M", 15.0, 0.0) + rng.normal(0, 8, rows), 0, 100)
    voted = rng.random(rows) < 1 / (1 + np.exp(-(age - 40) / 8))
    frame = pd.DataFrame(
        {
            "region": region,
            "sex": sex,
            "voted": pd.array(voted, dtype="boolean"),
            "age": age,
            "income": income,
            "seen": [dt.date(2020, 1, 1) + dt.timedelta(days=int(day)) for day in np.clip(age * 5, 0, 365)],
        }
    )
    frame.loc[rng.random(rows) < 0.1, "region"] = None
    frame.loc[rng.random(rows) < 0.1, "voted"] = pd.NA
    frame.loc[rng.random(rows) < 0.1, "age"] = 999
    frame.loc[rng.random(rows) < 0.1, "income"] = np.nan
    return frame


def shuffled(frame: pd.DataFrame, seed: int = 7) -> pd.DataFrame:
    """Each column drawn from itself with replacement: no association is left.

    With replacement, because a greedy tree finds no first split between tables whose columns agree exactly.
    """
    rng = np.random.default_rng(seed)
    rows = len(frame)
    return pd.DataFrame({name: frame[name].to_numpy(dtype=object)[rng.integers(0, rows, rows)] for name in frame})


def rows_of(frame: object, schema: Schema) -> Rows:
    return read_rows(open_for_comparison(frame, schema), TableCodec.of(schema, judging=True))


def pair_of(real: object, *copies: object, schema: Schema | None = None, seed: int = 3) -> TablePair:
    known = schema or mixed()
    codec = TableCodec.of(known, judging=True)
    return TablePair(codec, rows_of(real, known), tuple(rows_of(copy, known) for copy in copies), seed)


def context(metric: str = "test", seed: int = 3) -> Context:
    return Context(metric, seed)


def codes_schema(sizes: dict[str, int]) -> Schema:
    """Columns of plain codes: labels 0, 1, 2, … and no missing values."""
    columns = tuple(
        Category(name=name, labels=tuple(str(code) for code in range(size)), missing=False)
        for name, size in sizes.items()
    )
    return Schema(columns=columns, unit=Unit())
