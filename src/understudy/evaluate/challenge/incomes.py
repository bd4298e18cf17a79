"""Score 3 of the challenge ("regression"): Gini index of wages and pay gap between the sexes, city by city.

Every city of a table is ranked, as the official program does: where nobody's wage is known, or all known wages are 0,
the Gini index is 1; a sex without a known wage adds nothing to the pay gap. The program applies this to submissions and
stops at such a city of the original; here both tables follow one rule, so that equal tables score in full. Cities with
the same pay gap are ranked in the order of their codes (there: in the order of the file).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.evaluate.challenge.cells import Rule
from understudy.evaluate.data.rows import Rows
from understudy.evaluate.score import Outcome, Unavailable
from understudy.schema.column import NumberColumn

__all__ = ["City", "cities_of", "gini", "income_score"]

Floats = npt.NDArray[np.float64]

NOT_AVAILABLE = 999_998.0


@dataclass(frozen=True, slots=True)
class City:
    """Inequality of wages and the mean wage of men minus that of women."""

    gini: float
    gap: float


def gini(wages: Floats) -> float:
    """1 − 2 Σ (cumulative wage) / (N · total): the usual index minus 1/N; 1 if nobody earns anything.

    >>> gini(np.array([0.0, 0.0, 0.0, 10.0])), round(gini(np.array([100.0, 200.0, 300.0])), 4)
    (0.5, -0.1111)
    """
    total = float(wages.sum())
    if len(wages) == 0 or total == 0:
        return 1.0
    return 1.0 - 2.0 * float(np.cumsum(np.sort(wages)).sum()) / (len(wages) * total)


def income_score(original: Mapping[str, City], submission: Mapping[str, City]) -> Outcome:
    """500,000 · (√(s₁/c) + √(s₂/c)) over the c cities of the original; a city that is missing contributes nothing."""
    number = len(original)
    if number < 2:
        return Unavailable("the table has fewer than two cities, so there is no ranking")
    ranks, theirs = _ranks(original), _ranks(submission)
    alike, placed = 0.0, 0.0
    for name, city in original.items():
        if name in submission:
            alike += (1 - abs(city.gini - submission[name].gini)) ** 2
            placed += max(0.0, 1 - abs(ranks[name] - theirs[name]) / (number - 1)) ** 2
    return 500_000.0 * (math.sqrt(alike / number) + math.sqrt(placed / number))


def _ranks(cities: Mapping[str, City]) -> dict[str, int]:
    ordered = sorted(cities, key=lambda name: -cities[name].gap)
    return {name: rank for rank, name in enumerate(ordered)}


def cities_of(
    rows: Rows, names: tuple[str, str, str], sexes: tuple[str, str], rule: Rule = "buckets"
) -> dict[str, City]:
    """Every city that occurs.

    Args:
        rows: the table.
        names: the columns of sex, city and wage.
        sexes: the labels of men and women.
        rule: match3 takes wages from 999,998 on for "not available", as the program does; otherwise that code alone
            stands for it, beside what the schema calls missing or special.
    """
    sex, city, wage = names
    wages = _wages(rows, wage, rule)
    described = [rows.codec.describe(sex, code) for code in range(rows.domain.sizes[sex])]
    codes = [[place for place, text in enumerate(described) if text == label] for label in sexes]
    members = [np.isin(rows.codes[sex], one) for one in codes]
    order = np.argsort(rows.codes[city], kind="stable")
    present, starts = np.unique(rows.codes[city][order], return_index=True)
    found: dict[str, City] = {}
    for code, here in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
        people = here[~np.isnan(wages[here])]
        means = [_mean(wages[people[member[people]]]) for member in members]
        found[rows.codec.describe(city, code)] = City(gini(wages[people]), means[0] - means[1])
    return found


def _mean(wages: Floats) -> float:
    return float(wages.mean()) if len(wages) else 0.0


def _wages(rows: Rows, name: str, rule: Rule) -> Floats:
    """The wage of each row as the file has it, NaN where it is not available."""
    if isinstance(rows.codec.schema.column(name), NumberColumn):
        wages = rows.raw(name)
        if rule == "buckets":
            wages = np.where(np.isnan(rows.numbers[name]), np.nan, wages)
    else:
        table = [_as_number(rows.codec.describe(name, code)) for code in range(rows.domain.sizes[name])]
        wages = np.asarray(table, np.float64)[rows.codes[name]]
    absent = wages >= NOT_AVAILABLE if rule == "match3" else wages == NOT_AVAILABLE
    return np.where(absent, np.nan, wages)


def _as_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
