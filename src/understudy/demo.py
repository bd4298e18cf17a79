"""A SIMULATED table of young voters: 44,821 rows × 15 columns, made from published shares, holding no real person.

The size, the columns and the share of every level follow the summary that the STEPS study prints for the 2000–2012
Current Population Survey youth subset of Holbein and Hillygus (doi 10.7910/DVN/27672). Where a printed pair does not
add up to 100 the share of "yes" is kept and "no" is the rest. For family income only the smallest, the median and the
largest share are printed; the fourteen used here agree with these three and are otherwise our choice.

How columns depend on each other is our choice too (`EFFECTS`): plausible, and strong enough that about as many of the
1,290,240 possible cells are occupied as in the study. It is no evidence about voters: do not analyse it for findings.

One rule makes every column. Each row gets a score, the sum of effects of earlier columns and of logistic noise; rows
are ranked by it and cut so that each level has its published share. Only `Generator.random` is used, whose stream
NumPy keeps stable, so the table is the same everywhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from understudy.arrays import Floats, Ints

ROWS = 44_821
SEED = 20_121_106
SIMULATED = "SIMULATED demonstration table made by understudy; no row describes a real person."


@dataclass(frozen=True, slots=True)
class PublishedShare:
    """One value a column may take, and its published share in percent."""

    label: str
    share: float


def _yes(share: float) -> tuple[PublishedShare, ...]:
    return (PublishedShare("no", 100.0 - share), PublishedShare("yes", share))


LEVELS: Mapping[str, tuple[PublishedShare, ...]] = MappingProxyType(
    {
        "voted": _yes(34.7),
        "preregistration_state": _yes(10.5),
        "age": (
            PublishedShare("18", 20.5),
            PublishedShare("19", 19.7),
            PublishedShare("20", 20.0),
            PublishedShare("21", 20.0),
            PublishedShare("22", 19.8),
        ),
        "married": _yes(7.5),
        "female": _yes(50.7),
        "family_income": (
            PublishedShare("under 5,000", 5.5),
            PublishedShare("5,000 to 7,499", 3.3),
            PublishedShare("7,500 to 9,999", 3.1),
            PublishedShare("10,000 to 12,499", 4.2),
            PublishedShare("12,500 to 14,999", 3.7),
            PublishedShare("15,000 to 19,999", 5.8),
            PublishedShare("20,000 to 24,999", 6.5),
            PublishedShare("25,000 to 29,999", 5.7),
            PublishedShare("30,000 to 34,999", 6.6),
            PublishedShare("35,000 to 39,999", 6.0),
            PublishedShare("40,000 to 49,999", 8.8),
            PublishedShare("50,000 to 59,999", 7.2),
            PublishedShare("60,000 to 74,999", 7.1),
            PublishedShare("75,000 or more", 26.5),
        ),
        "college_degree": _yes(3.1),
        "white": _yes(69.3),
        "hispanic": _yes(14.6),
        "registered": _yes(52.4),
        "metropolitan": _yes(77.9),
        "residence": (
            PublishedShare("under 1 month", 2.7),
            PublishedShare("1 to 6 months", 20.0),
            PublishedShare("7 to 11 months", 6.9),
            PublishedShare("1 to 2 years", 15.0),
            PublishedShare("3 to 4 years", 9.8),
            PublishedShare("5 years or more", 45.6),
        ),
        "business_or_farm": _yes(12.6),
        "in_person_interview": _yes(36.7),
        "dmv_registration": _yes(12.7),
    }
)
"""Levels of every column, lowest first, in the order the study lists the columns."""

EFFECTS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "age": {},
        "female": {},
        "white": {},
        "hispanic": {"white": -3.2},
        "metropolitan": {"hispanic": 1.3, "white": -1.2},
        "preregistration_state": {"hispanic": 1.3, "metropolitan": 0.7},
        "family_income": {"white": 1.2, "hispanic": -0.9, "metropolitan": 0.6, "age": -0.22},
        "married": {"age": 0.9, "metropolitan": -0.6, "hispanic": 0.4, "family_income": -0.15},
        "college_degree": {"age": 2.6, "family_income": 0.12, "white": 0.4, "female": 0.4, "married": -0.3},
        "residence": {"age": -0.5, "married": -1.7, "college_degree": -1.2, "family_income": 0.17},
        "business_or_farm": {"metropolitan": -1.3, "white": 1.0, "family_income": 0.07},
        "in_person_interview": {"residence": -0.22, "hispanic": 0.4, "age": 0.07},
        "registered": {
            "age": 0.22,
            "college_degree": 1.6,
            "white": 0.4,
            "hispanic": -1.0,
            "family_income": 0.07,
            "residence": 0.15,
            "preregistration_state": 0.4,
            "female": 0.3,
        },
        "dmv_registration": {"registered": 3.2, "age": 0.15, "preregistration_state": 0.3, "metropolitan": -0.3},
        "voted": {
            "college_degree": 1.2,
            "age": 0.15,
            "family_income": 0.09,
            "preregistration_state": 0.3,
            "residence": 0.15,
            "white": 0.3,
            "dmv_registration": -0.6,
            "female": 0.2,
            "business_or_farm": 0.3,
        },
    }
)
"""Column → how one level more of an earlier column moves its score. The order is the order of making."""


def voter_codes(rows: int = ROWS) -> dict[str, Ints]:
    """Level number of every row, column by column, always the same for the same number of rows."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    made: dict[str, Ints] = {}
    for column, effects in EFFECTS.items():
        uniform = np.maximum(rng.random(rows), 2.0**-54)  # never 0, so that the logit is finite
        score = np.log(uniform) - np.log1p(-uniform)
        for parent, effect in effects.items():
            score = score + effect * made[parent]
        if column == "voted":
            score = np.where(made["registered"] == 1, score, -np.inf)  # nobody votes unregistered
        made[column] = _cut(score, [level.share for level in LEVELS[column]])
    return {column: made[column] for column in LEVELS}


def voter_table(rows: int = ROWS) -> pa.Table:
    """The simulated table as Arrow: ages as integers, everything else as text, marked simulated in its metadata."""
    columns = {}
    for name, codes in voter_codes(rows).items():
        labels = pa.array([level.label for level in LEVELS[name]])
        values = labels.take(pa.array(codes))
        columns[name] = values.cast(pa.int64()) if name == "age" else values
    return pa.table(columns).replace_schema_metadata({"title": SIMULATED, "understudy.simulated": "true"})


def schema_text() -> str:
    """The hand-written schema of the table, as YAML."""
    return files("understudy").joinpath("voters.yaml").read_text(encoding="utf-8")


def _cut(score: Floats, shares: list[float]) -> Ints:
    bounds = np.rint(np.cumsum(shares) / sum(shares) * score.size)[:-1]
    levels = np.empty(score.size, dtype=np.int64)
    levels[np.argsort(score, kind="stable")] = np.searchsorted(bounds, np.arange(score.size), side="right")
    return levels


def write_database(path: Path) -> None:
    """Writes the table as `voters` into a new DuckDB file, with a comment that says what it is."""
    import duckdb  # the only engine outside of `counts`: here it writes a public table, it counts nothing

    with duckdb.connect(str(path)) as connection:
        connection.register("simulated", voter_table())
        connection.execute("CREATE TABLE voters AS SELECT * FROM simulated")
        connection.execute(f"COMMENT ON TABLE voters IS '{SIMULATED}'")
