"""The two tables of the study: the simulated voters, and real adults of the Current Population Survey of 2000–2012.

Both have the same roles: an outcome (voted), registration without which nobody votes, a state distribution, and a few
columns about the person. The real one is made from `cps_voting` of a data folder (SOURCE.md there says where it comes
from); code lists and recodes below are public: the survey's code book, the Census Bureau's divisions, and state
distribution.
"""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from understudy import Schema, Unit
from understudy.demo import schema_text, voter_table
from understudy.schema import Category, Impossible, Integer
from understudy.schema.document import schema_from_text

__all__ = ["VoterTable", "cps_voters", "narrow_voters", "simulated_voters"]

DIVISIONS = {
    "new england": "CT ME MA NH RI VT",
    "middle atlantic": "NJ NY PA",
    "east north central": "IL IN MI OH WI",
    "west north central": "IA KS MN MO NE ND SD",
    "south atlantic": "DE DC FL GA MD NC SC VA WV",
    "east south central": "AL KY MS TN",
    "west south central": "AR LA OK TX",
    "mountain": "AZ CO ID MT NV NM UT WY",
    "pacific": "AK CA HI OR WA",
}
PREREGISTRATION = {"HI": 1994, "OR": 2008, "FL": 2008, "CA": 2010, "NC": 2010, "DC": 2010, "MD": 2010, "RI": 2010,
                   "DE": 2010, "ME": 2012}  # fmt: skip
"""First election under a distribution that lets people register before they are 18, as far as we know: a column of that
role."""
YEARS = tuple(range(2000, 2014, 2))
RESIDENCE = ("LESS THAN 1 YEAR", "1-2 YEARS", "3-4 YEARS", "5 YEARS OR LONGER")
NOT_SAID = "not said"
FINISHED = ("BACHELOR", "MASTER", "PROFESSIONAL", "DOCTORATE")


@dataclass(frozen=True, eq=False)
class VoterTable:
    """A table under study, its schema, and the columns by role."""

    name: str
    title: str
    table: pa.Table
    schema: Schema
    expert: tuple[str, ...]
    interest: tuple[str, ...]
    sets: int = 5

    @property
    def formula(self) -> str:
        """The difference-in-differences model: every column, and state distribution × registration."""
        others = [name for name in self.schema.names if name != "voted"]
        return "voted[yes] ~ " + " + ".join([*others, "preregistration_state:registered"])


INTEREST = (
    "preregistration_state=yes",
    "registered=yes",
    "preregistration_state=yes:registered=yes",
)


EXPERT = ("voted", "college_degree", "preregistration_state")


def simulated_voters() -> VoterTable:
    """The table of young voters that comes with the package; it describes nobody."""
    schema = schema_from_text(schema_text(), "voters.yaml")
    return VoterTable("simulated", "simulated voters", voter_table(), schema, EXPERT, INTEREST)


def narrow_voters() -> VoterTable:
    """A few rows and columns of it, for a run that only shows that the study works."""
    names = (*EXPERT, "registered", "age", "residence", "female")
    whole = schema_from_text(schema_text(), "voters.yaml")
    schema = replace(whole, columns=tuple(column for column in whole.columns if column.name in names))
    table = voter_table(800).select(list(schema.names))
    return VoterTable("narrow", "few simulated voters", table, schema, EXPERT, INTEREST, sets=2)


@cache
def cps_voters(data: Path) -> VoterTable:
    """Adults who said whether they voted, elections of 2000 to 2012."""
    columns = ["YEAR", "STATE", "AGE", "SEX", "EDUCATION", "RACE", "HISPANIC", "VRS_VOTE", "VRS_REG", "VRS_RESIDENCE",
               "VRS_REG_METHOD", "VRS_REG_DMV"]  # fmt: skip
    whole = pq.read_table(data / "cps_voting" / "data.parquet", columns=columns)
    raw = {name: np.array(whole.column(name).to_pylist(), dtype=object) for name in columns}
    year = raw["YEAR"].astype(np.int64)
    age = np.array([-1 if value is None else int(value) for value in raw["AGE"]])
    kept = np.isin(raw["VRS_VOTE"], ("YES", "NO")) & np.isin(year, YEARS) & (age >= 18)
    raw = {name: values[kept] for name, values in raw.items()}
    made = _recoded(raw, year[kept], age[kept])
    return VoterTable("cps", "CPS 2000–2012", pa.table(made), _cps_schema(), EXPERT, INTEREST)


def _recoded(raw: dict[str, np.ndarray], year: np.ndarray, age: np.ndarray) -> dict[str, object]:
    def yes(mask: np.ndarray) -> list[str]:
        return ["yes" if one else "no" for one in mask]

    division = {state: name for name, states in DIVISIONS.items() for state in states.split()}
    distribution = np.array([PREREGISTRATION.get(state, 9999) for state in raw["STATE"]])
    licence = np.array([str(one).startswith("WHEN DRIVER") for one in raw["VRS_REG_DMV"]])
    return {
        "voted": yes(raw["VRS_VOTE"] == "YES"),
        "preregistration_state": yes(year >= distribution),
        "age": np.clip(age // 10, 2, 8).tolist(),
        "female": yes(raw["SEX"] == "FEMALE"),
        "division": [division[state] for state in raw["STATE"]],
        "college_degree": yes(np.array([str(one).startswith(FINISHED) for one in raw["EDUCATION"]])),
        "white": yes(raw["RACE"] == "WHITE"),
        "hispanic": yes(raw["HISPANIC"] == "HISPANIC"),
        "registered": yes((raw["VRS_VOTE"] == "YES") | (raw["VRS_REG"] == "YES")),
        "residence": [str(one).lower() if one in RESIDENCE else NOT_SAID for one in raw["VRS_RESIDENCE"]],
        "dmv_registration": yes((raw["VRS_REG_METHOD"] == "DMV") | licence),
        "election": [str(one) for one in year],
    }


def _cps_schema() -> Schema:
    def choice(name: str, *labels: str) -> Category:
        return Category(name=name, labels=labels, missing=False)

    columns = (
        choice("voted", "no", "yes"),
        choice("preregistration_state", "no", "yes"),
        Integer(name="age", lower=2, upper=8, missing=False),
        choice("female", "no", "yes"),
        choice("division", *DIVISIONS),
        choice("college_degree", "no", "yes"),
        choice("white", "no", "yes"),
        choice("hispanic", "no", "yes"),
        choice("registered", "no", "yes"),
        choice("residence", *(one.lower() for one in RESIDENCE), NOT_SAID),
        choice("dmv_registration", "no", "yes"),
        choice("election", *(str(year) for year in YEARS)),
    )
    rule = Impossible({"voted": ("yes",), "registered": ("no",)})
    title = "CPS voting supplement 2000–2012, adults"
    return Schema(columns=columns, unit=Unit(), rules=(rule,), title=title, unreadable="drop")
