"""Score 3 of the challenge ("regression"): Gini index of wages and pay gap between the sexes, city by city."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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
        return Unavailable("fewer than two cities have a known wage, so there is no ranking")
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


def cities_of(rows: Rows, names: tuple[str, str, str], sexes: tuple[str, str]) -> dict[str, City]:
    """Every city with at least one known wage.

    Args:
        rows: the table.
        names: the columns of sex, city and wage.
        sexes: the labels of men and women.
    """
    sex, city, wage = names
    wages = _wages(rows, wage)
    known = ~np.isnan(wages) & (wages != NOT_AVAILABLE)
    described = [rows.codec.describe(sex, code) for code in range(rows.domain.sizes[sex])]
    found: dict[str, City] = {}
    for code in np.unique(rows.codes[city][known]).tolist():
        here = known & (rows.codes[city] == code)
        means = []
        for label in sexes:
            codes = [place for place, text in enumerate(described) if text == label]
            theirs = wages[here & np.isin(rows.codes[sex], codes)]
            means.append(float(theirs.mean()) if len(theirs) else 0.0)
        found[rows.codec.describe(city, code)] = City(gini(wages[here]), means[0] - means[1])
    return found


def _wages(rows: Rows, name: str) -> Floats:
    if isinstance(rows.codec.schema.column(name), NumberColumn):
        return rows.numbers[name]
    table = [_as_number(rows.codec.describe(name, code)) for code in range(rows.domain.sizes[name])]
    return np.asarray(table, np.float64)[rows.codes[name]]


def _as_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
