"""A small table for runs in processes of their own."""

import numpy as np
import pyarrow as pa

from understudy.schema import Category, Integer, Schema, Unit

__all__ = ["SCHEMA", "table"]

SCHEMA = Schema(
    columns=(
        Category(name="sex", labels=("f", "m")),
        Category(name="region", labels=("north", "south", "west")),
        Integer(name="age", lower=0, upper=9),
    ),
    unit=Unit(),
    title="people",
)


def table(rows: int = 600) -> pa.Table:
    """People whose region depends on their sex."""
    rng = np.random.default_rng(5)
    sex = rng.integers(0, 2, rows)
    region = (sex + (rng.random(rows) < 0.2)) % 3
    return pa.table(
        {
            "sex": np.array(["f", "m"])[sex],
            "region": np.array(["north", "south", "west"])[region],
            "age": rng.integers(0, 10, rows),
        }
    )
