"""How far released rows are expected to be off over pairs of columns, by method: what `auto` chooses by.

What noise does. A table of m cells with noise of mean size E|X| puts about m·E|X|/2 rows into wrong cells, at most all
of them. As shares of the rows: the mean over columns, each measured at an equal part of the cost (`columns`); over
pairs, when as many are measured as there are columns (`few`), and when all are (`all_pairs`); one cell of those,
times the pairs per column (`scores`); the table of all columns at once (`whole`).

What is forecast. Columns alone miss a share of the rows in a pair, `MISSED` on average. Of that a method that measures
pairs misses a part that grows with their noise, w/(1 + w), w = factor·noise^power, and at least `least`. To this comes
what the noise of columns does, times `columns`. What a method leaves out on purpose is added: a column of more than
`WIDE` codes keeps its relation to one other column in `ensemble`. That method turns to columns alone where noise is
large, so it counts as no worse than they are. The table of all columns is off by a tenth to a
quarter of what its noise would do, since negative counts are cut; a tenth is forecast, because it misses no relation,
whatever the table.

The numbers in `FITTED` come from public tables (`studies/chooser`, `python -m studies.choosing`): they were fitted to
logarithms of errors, and to what a choice by them loses. They are about choosing: the error of one table may be half
or twice the forecast, since tables differ in what columns miss.

Privacy. The schema, the rows of a unit, the cost and a number of rows go in, which is public or a noisy answer.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Self

import numpy as np

from understudy.domain import Domain
from understudy.methods.ensemble import WIDE
from understudy.methods.method import PublicFacts, expected_absolute
from understudy.privacy.cost import Cost, distribution_for

MISSED = 0.07
"""Of the rows, in a pair of columns that are drawn independently: the mean over public tables."""
_CUT = 0.1
_MOST_LOG = 300.0


@dataclass(frozen=True, slots=True)
class NoiseShares:
    """Rows that noise puts into wrong cells, as shares of all rows."""

    columns: float
    few: float
    all_pairs: float
    scores: float
    """Of one cell, when every pair has a table, times pairs per column."""
    whole: float
    wide: float
    """Of all pairs, those of wide columns beyond one each."""

    @classmethod
    def of(cls, facts: PublicFacts, cost: Cost, rows: float) -> Self:
        """For a table of so many rows."""
        sizes, numbers = np.unique([size for size in facts.domain.sizes.values() if size > 1], return_counts=True)
        columns = int(numbers.sum())
        pairs = columns * (columns - 1) // 2
        one = expected_absolute(distribution_for(cost, facts.unit_rows, "forecast")) / (2.0 * max(rows, 1.0))

        def share(cells: np.ndarray, weights: np.ndarray, tables: int) -> float:
            """Mean over tables, `tables` of which share the cost."""
            noise = one * (tables if cost.epsilon else math.sqrt(tables))
            return float((np.minimum(cells * noise, 1.0) * weights).sum() / max(float(weights.sum()), 1.0))

        beside = np.outer(numbers, numbers) - np.diag(numbers)
        cells = np.outer(sizes, sizes).astype(np.float64)
        return cls(
            share(sizes.astype(np.float64), numbers, columns),
            share(cells, beside, columns),
            share(cells, beside, pairs),
            min(1.0, 2.0 * one * (pairs if cost.epsilon else math.sqrt(pairs)) * pairs / max(columns, 1)),
            one * math.exp(min(_MOST_LOG, float((numbers * np.log(sizes)).sum()))),
            _left_out(facts.domain) / max(pairs, 1),
        )


@dataclass(frozen=True, slots=True)
class FittedError:
    """How the error of a method follows from noise."""

    columns: float
    """Times the noise of columns."""
    noise: Literal["none", "few", "all_pairs", "scores"] = "none"
    """Of which pairs."""
    least: float = 1.0
    factor: float = 0.0
    power: float = 1.0

    def error(self, shares: NoiseShares) -> float:
        """Of pairs, as a share of the rows."""
        noise = {"none": 0.0, "few": shares.few, "all_pairs": shares.all_pairs, "scores": shares.scores}[self.noise]
        weight = self.factor * noise**self.power
        missed = self.least + (1.0 - self.least) * weight / (1.0 + weight)
        return float(MISSED * missed + self.columns * shares.columns)


FITTED: Mapping[bool, Mapping[str, FittedError]] = {
    True: {
        "ensemble": FittedError(0.73, "scores", 0.036, 55.0, 1.0),
        "mwem": FittedError(1.98, "few", 0.078, 0.56, 0.33),
        "independent": FittedError(0.64),
    },
    False: {
        "ensemble": FittedError(0.68, "all_pairs", 0.016, 0.53, 0.55),
        "aim": FittedError(0.99, "few", 0.009, 1.11, 0.43),
        "mst": FittedError(0.78, "few", 0.333, 1.34, 0.92),
        "privsyn": FittedError(1.13, "all_pairs", 0.010, 0.74, 0.44),
        "independent": FittedError(0.63),
    },
}
"""By whether the cost is pure ε; the table of all columns has no fitted numbers."""


def expected_errors(facts: PublicFacts, cost: Cost, rows: float) -> dict[str, float]:
    """Shares of the rows in wrong cells of a pair, by method, for a table of so many rows."""
    whole = Cost(cost.epsilon, cost.rho)
    shares, pure = NoiseShares.of(facts, whole, rows), bool(whole.epsilon)
    found = {name: fitted.error(shares) for name, fitted in FITTED[pure].items()}
    if "ensemble" in found:  # where noise is large it measures columns alone
        found["ensemble"] = min(found["ensemble"] + MISSED * shares.wide, found["independent"])
    return {"laplace": _CUT * shares.whole, **found} if pure else found


def _left_out(domain: Domain) -> int:
    """Pairs of columns that `ensemble` may take for wide, less one for each of them."""
    wide, columns = (sum(size > least for size in domain.sizes.values()) for least in (WIDE, 1))
    return wide * (columns - wide) + wide * (wide - 1) // 2 - min(wide, columns - 1)


def rows_tried() -> list[float]:
    """Numbers of rows for which methods are compared where nobody says how many there are: 100 to 100 million."""
    return [10.0 ** float(Fraction(quarter, 4)) for quarter in range(8, 33)]
