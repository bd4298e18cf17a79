"""chi2: does a test of independence reach the same verdict on both tables, for every pair of columns?

Pearson's test without continuity correction on all pairs; empty rows and columns of a table are left out of its degrees
of freedom. Several copies are pooled by the rule of Li, Meng, Raghunathan and Rubin on the degrees of freedom of the
public domain. Pairs that a rule ties together (structural zeros) are kept and flagged. A pair that cannot be tested in
the real table is left out; one that cannot be tested in the synthetic table counts as "no association found".
"""

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from scipy.optimize import brentq
from scipy.stats import chi2

from understudy.arrays import Ints
from understudy.codec.table import TableCodec
from understudy.domain import Clique
from understudy.evaluate.data import Counted, Rows, counted, declared_size, wholly_unread
from understudy.evaluate.metric import Context, Detail, Metric, Outcome, Result, Scale, TablePair, Unavailable, table_of
from understudy.evaluate.pooling_rules import pool_chi_squares

LEAST_P = 1e-290


@dataclass(frozen=True, slots=True)
class Tested:
    """The statistic on the rows and columns that occur, its degrees of freedom, its p-value, and the same p-value as
    a statistic on the degrees of freedom of the whole table."""

    statistic: float
    degrees: int
    p_value: float
    common: float


def pearson(
    counts: Ints, shape: tuple[int, int], cells: Ints | None = None, *, common: int | None = None
) -> Tested | None:
    """The test without continuity correction; None if fewer than two rows or columns occur.

    Args:
        counts: of all cells in row-major order, or of those named in `cells`.
        shape: rows and columns of the whole table.
        cells: flat numbers of the cells counted.
        common: the common degrees of freedom, when they are not those of the whole table.
    """
    places = np.arange(len(counts)) if cells is None else cells
    kept = counts > 0
    observed, places = counts[kept].astype(np.float64), places[kept]
    rows, columns = places // shape[1], places % shape[1]
    by_row = np.bincount(rows, observed, shape[0])
    by_column = np.bincount(columns, observed, shape[1])
    used = int((by_row > 0).sum()), int((by_column > 0).sum())
    if min(used) < 2:
        return None
    degrees = (used[0] - 1) * (used[1] - 1)
    total = float(observed.sum())
    expected = by_row[rows] * by_column[columns] / total
    # Σ(O − E)²/E = Σ O²/E − n; summed as (O/E − 1)·O, which loses less.
    statistic = max(0.0, float(((observed / expected - 1.0) * observed).sum()))
    p_value = float(chi2.sf(statistic, degrees))
    shared = (shape[0] - 1) * (shape[1] - 1) if common is None else common
    return Tested(statistic, degrees, p_value, converted(statistic, degrees, shared))


def converted(statistic: float, degrees: int, common: int) -> float:
    """The statistic on `common` degrees of freedom with the same p-value, also where that is below all floats."""
    if degrees == common:
        return statistic
    p_value = float(chi2.sf(statistic, degrees))
    if p_value > LEAST_P:
        return float(chi2.isf(p_value, common))
    target = _log_tail(statistic, degrees)
    low, high = float(common), statistic + 2.0 * common
    while _log_tail(high, common) > target:
        high *= 2
    return float(brentq(lambda place: _log_tail(place, common) - target, low, high, xtol=1e-9, rtol=1e-12))


def _log_tail(statistic: float, degrees: int) -> float:
    """log P(χ² > statistic) far in the tail: y^(a−1) e^(−y) / Γ(a) / (1 − (a − 1)/y) with y = x/2, a = k/2."""
    place, shape = statistic / 2, degrees / 2
    lead = (shape - 1) * math.log(place) - place - math.lgamma(shape)
    return lead - math.log1p(-min((shape - 1) / place, 0.999_999))


LEVELS = {"at_5_percent": 0.05, "at_1_percent": 0.01, "at_10_percent": 0.10}


@dataclass(frozen=True, slots=True)
class ChiSquare(Metric):
    """Agreement of tests of independence."""

    name: ClassVar[str] = "chi2"
    question: ClassVar[str] = "Would a test find the same associations between columns?"
    scales: ClassVar[tuple[Scale, ...]] = tuple(
        Scale(name, f"share of pairs with the same verdict at the {level:.0%} level", "higher", 0.0, 1.0, 1.0)
        for name, level in LEVELS.items()
    )

    def compare(self, pair: TablePair, context: Context) -> Result:
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
            notes.append(_why_skipped(pair, skipped))
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


def _verdicts(
    pair: TablePair, original: Rows, copies: tuple[Rows, ...], context: Context
) -> tuple[list[_Verdict], int]:
    domain, sizes = pair.codec.domain, _sizes(pair.codec, original, *copies)
    cliques = [Clique(names) for names in itertools.combinations(domain.columns, 2)]
    tied = [
        set(structural_zeros.clique) for structural_zeros in pair.codec.structural_zeros if structural_zeros.mask.any()
    ]
    found: list[_Verdict] = []
    for place, table in enumerate(counted([original, *copies], cliques)):
        shape = (domain.sizes[table.clique[0]], domain.sizes[table.clique[1]])
        common = (sizes[table.clique[0]] - 1) * (sizes[table.clique[1]] - 1)
        tested = _tested(table, shape, common)
        if tested[0] is not None:
            structural = any(names <= set(table.clique) for names in tied)
            combined = _combined(tested[1:], common)
            found.append(_Verdict(table.clique, tested[0].p_value, combined, tested[0].statistic, structural))
        if place % 64 == 0:
            context.done(place / len(cliques))
    return found, len(cliques) - len(found)


def _sizes(codec: TableCodec, *tables: Rows) -> dict[str, int]:
    """Codes of each column: those that the schema declares, and of the others those that occur."""
    found = {}
    for name in codec.domain.columns:
        declared = declared_size(codec, name)
        odd = {int(code) for rows in tables for code in np.unique(rows.codes[name]).tolist() if code >= declared}
        found[name] = declared + len(odd)
    return found


def _why_skipped(pair: TablePair, skipped: int) -> str:
    """Why pairs cannot be tested: what cannot be read is not called a single value, for it may be many."""
    unread = [name for name in pair.codec.domain.columns if wholly_unread(pair.real, name)]
    if unread:
        words = f"the schema can read no value of {', '.join(unread)}, or a column holds a single value"
        return f"{skipped} pairs were left out: in the real table {words}."
    return f"{skipped} pairs were left out: a column holds a single value in the real table."


def _tested(table: Counted, shape: tuple[int, int], common: int) -> list[Tested | None]:
    return [pearson(counts, shape, table.cells, common=common) for counts in table.counts]


def _combined(tested: list[Tested | None], common: int) -> float:
    """The p-value of all copies together; a copy that cannot be tested found nothing."""
    if len(tested) == 1:
        return 1.0 if tested[0] is None else tested[0].p_value
    return pool_chi_squares([0.0 if one is None else one.common for one in tested], common).p_value


def _rates(verdicts: list[_Verdict]) -> list[Outcome]:
    """The share of equal verdicts at every level, in the order of the scales."""
    if not verdicts:
        reason = "no pair of columns can be tested: fewer than two columns have two values that can be read"
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
