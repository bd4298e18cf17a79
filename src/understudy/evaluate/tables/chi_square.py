"""chi2: does a test of independence reach the same verdict on both tables, for every pair of columns?

Pearson's test without continuity correction on all pairs. Several copies are pooled by the rule of Li, Meng,
Raghunathan and Rubin on the degrees of freedom of the public domain. Pairs that a rule ties together (structural
zeros) are kept and flagged. A pair that cannot be tested in the real table is left out; one that cannot be tested in
the synthetic table counts as "no association found".
"""

import itertools
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from understudy.evaluate.data.counting import Counted, counted
from understudy.evaluate.data.pair import Context, Pair
from understudy.evaluate.data.rows import Rows
from understudy.evaluate.pooling.chi_square import pool_chi_squares
from understudy.evaluate.score import Detail, Outcome, Result, Scale, Unavailable, table_of
from understudy.evaluate.tables.independence import Tested, pearson
from understudy.marginals.clique import Clique

__all__ = ["ChiSquare"]

LEVELS = {"at_5_percent": 0.05, "at_1_percent": 0.01, "at_10_percent": 0.10}


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """Agreement of tests of independence."""

    name: ClassVar[str] = "chi2"
    question: ClassVar[str] = "Would a test find the same associations between columns?"
    scales: ClassVar[tuple[Scale, ...]] = tuple(
        Scale(name, f"share of pairs with the same verdict at the {level:.0%} level", "higher", 0.0, 1.0, 1.0)
        for name, level in LEVELS.items()
    )

    def compare(self, pair: Pair, context: Context) -> Result:
        """The share of pairs with the same verdict, at three levels."""
        found, skipped = _verdicts(pair, pair.real, pair.copies, context)
        lines = pair.between_halves(
            lambda one, other: _rates(_verdicts(pair, one, (other,), context)[0]), len(self.scales)
        )
        scores = [
            scale.score(value, line) for scale, value, line in zip(self.scales, _rates(found), lines, strict=True)
        ]
        notes = []
        if skipped:
            notes.append(f"{skipped} pairs were left out: a column holds a single value in the real table.")
        if any(one.structural for one in found):
            notes.append(f"{sum(one.structural for one in found)} pairs have cells that a rule makes impossible.")
        return Result(self.name, self.question, tuple(scores), (_detail(found),) if found else (), tuple(notes))


@dataclass(frozen=True, slots=True)
class _Verdict:
    clique: Clique
    real: float
    synthetic: float
    statistic: float
    structural: bool


def _verdicts(pair: Pair, original: Rows, copies: tuple[Rows, ...], context: Context) -> tuple[list[_Verdict], int]:
    domain = pair.codec.domain
    cliques = [Clique(names) for names in itertools.combinations(domain.columns, 2)]
    tied = [set(forbidden.clique) for forbidden in pair.codec.forbidden if forbidden.mask.any()]
    found: list[_Verdict] = []
    for place, table in enumerate(counted([original, *copies], cliques)):
        shape = (domain.sizes[table.clique[0]], domain.sizes[table.clique[1]])
        tested = _tested(table, shape)
        if tested[0] is not None:
            structural = any(names <= set(table.clique) for names in tied)
            common = (shape[0] - 1) * (shape[1] - 1)
            combined = _combined(tested[1:], common)
            found.append(_Verdict(table.clique, tested[0].p_value, combined, tested[0].statistic, structural))
        if place % 64 == 0:
            context.done(place / len(cliques))
    return found, len(cliques) - len(found)


def _tested(table: Counted, shape: tuple[int, int]) -> list[Tested | None]:
    return [pearson(counts, shape, table.cells) for counts in table.counts]


def _combined(tested: list[Tested | None], common: int) -> float:
    """The p-value of all copies together; a copy that cannot be tested found nothing."""
    if len(tested) == 1:
        return 1.0 if tested[0] is None else tested[0].p_value
    return pool_chi_squares([0.0 if one is None else one.common for one in tested], common).p_value


def _rates(verdicts: list[_Verdict]) -> list[Outcome]:
    """The share of equal verdicts at every level, in the order of the scales."""
    if not verdicts:
        reason = "no pair of columns can be tested: each column holds a single value, or there is one column"
        return [Unavailable(reason) for _ in LEVELS]
    return [
        sum((one.real < level) == (one.synthetic < level) for one in verdicts) / len(verdicts)
        for level in LEVELS.values()
    ]


def _detail(verdicts: list[_Verdict]) -> Detail:
    def badness(one: _Verdict) -> tuple[int, float]:
        wrong = sum((one.real < level) != (one.synthetic < level) for level in LEVELS.values())
        return -wrong, -one.statistic

    ordered = sorted(verdicts, key=badness)
    columns: dict[str, list[object]] = {
        "column_1": [one.clique[0] for one in ordered],
        "column_2": [one.clique[1] for one in ordered],
        "real_p_value": [one.real for one in ordered],
        "synthetic_p_value": [one.synthetic for one in ordered],
        "same_at_5_percent": [(one.real < 0.05) == (one.synthetic < 0.05) for one in ordered],
        "structural_zero": [one.structural for one in ordered],
    }
    kinds = {
        "column_1": pa.string(), "column_2": pa.string(), "real_p_value": pa.float64(),
        "synthetic_p_value": pa.float64(), "same_at_5_percent": pa.bool_(), "structural_zero": pa.bool_(),
    }  # fmt: skip
    return Detail("pairs", "Tests of independence of every pair, different verdicts first.", table_of(columns, kinds))
