"""Scores of one synthetic table: those of the challenge, the propensity measures of its review, and single columns.

Tests of the challenge are drawn once for each private table, so that all methods meet the same. Propensity measures
look at a sample of rows, in-sample: one fit gives both SPECKS and pMSE. The pMSE of a regression is divided by its
exact mean under permutation, that of a tree by the mean over permuted labels: once with the complexity that
cross-validation gives for this entry, as in the review, and once with one complexity for all entries. The error of that
cross-validation is kept as a multiple of the error of a tree without splits.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from studies.field.tables import Bench
from understudy.codec.table import TableCodec
from understudy.evaluate.cart import cross_validated, grow_tree, tree_features
from understudy.evaluate.metric import Rows, Unavailable, open_for_comparison, read_rows, stacked
from understudy.evaluate.nist import (
    MOST,
    ChallengeTests,
    cities_of,
    conjunction_score,
    draw_tests,
    income_score,
    shares,
    triples_agreement,
)
from understudy.evaluate.propensity import Logistic, closed_form, kolmogorov_smirnov, labels, mean_squared_deviation

__all__ = ["Scorer"]

PERMUTATIONS = 5
COMMON = 0.0005
"""Complexity at which the trees of all entries are compared, too."""


@dataclass(frozen=True)
class Scorer:
    """The private part of a table and the tests that every entry meets."""

    bench: Bench
    sampled: int

    @cached_property
    def codec(self) -> TableCodec:
        return TableCodec.of(self.bench.schema)

    @cached_property
    def real(self) -> Rows:
        return self._rows(self.bench.private)

    @cached_property
    def tests(self) -> ChallengeTests:
        return draw_tests(
            self.real, np.random.default_rng(2018), include_last=False, probability=self.bench.probability
        )

    @cached_property
    def real_shares(self) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return shares(self.real, self.tests.conjunctions)

    def scores(self, made: pa.Table, seed: int) -> dict[str, float | None]:
        """Every score of the table by its name."""
        rows = self._rows(made)
        found: dict[str, float | None] = {
            "clustering": MOST * float(triples_agreement(self.real, rows, self.tests.triples).mean()),
            "classification": conjunction_score(self.real_shares, shares(rows, self.tests.conjunctions)),
            "columns": single_columns(self.real, rows),
        }
        if self.bench.wages:
            found |= self._incomes(rows)
        return found | self._propensity(self._sample(self.real, seed), self._sample(rows, seed))

    def _incomes(self, rows: Rows) -> dict[str, float | None]:
        """The third score, how many cities of the original have nobody here who earns anything, and how many none.

        `regression_without` leaves such cities out, as this package did before it followed the official program.
        """
        wages = self.bench.wages
        names, sexes = (wages["sex"], wages["city"], wages["wage"]), (wages["male"], wages["female"])
        ours, theirs = cities_of(self.real, names, sexes), cities_of(rows, names, sexes)
        earning = {name: city for name, city in theirs.items() if city.gini < 1.0}
        found: dict[str, float | None] = {}
        for name, cities in (("regression", theirs), ("regression_without", earning)):
            score = income_score(ours, cities)
            found[name] = None if isinstance(score, Unavailable) else score
        found["wageless"] = float(sum(name in theirs and name not in earning for name in ours))
        found["absent"] = float(sum(name not in theirs for name in ours))
        return found

    def yardstick(self, seed: int) -> dict[str, float | None]:
        """Propensity measures between two samples of the private rows: what no synthetic table can beat."""
        order = np.random.default_rng(seed).permutation(self.real.count)
        size = min(self.sampled, self.real.count // 2)
        return self._propensity(self.real.take(order[:size]), self.real.take(order[size : 2 * size]))

    def _rows(self, table: pa.Table) -> Rows:
        return read_rows(open_for_comparison(table, self.bench.schema), self.codec)

    def _sample(self, rows: Rows, seed: int) -> Rows:
        order = np.random.default_rng(seed).permutation(rows.count)
        return rows.take(np.sort(order[: self.sampled]))

    def _propensity(self, first: Rows, second: Rows) -> dict[str, float | None]:
        target = labels(first, second)
        share, found = float(target.mean()), dict[str, float | None]()
        logistic = Logistic.of(first, second)
        if not isinstance(logistic, Unavailable):
            scored = logistic.scores(target)
            null = closed_form("permutation", scored.parameters, share, len(target)).mean
            found["logistic_ratio"] = mean_squared_deviation(scored.scores, share) / null if null > 0 else None
            found["logistic_specks"] = kolmogorov_smirnov(scored.scores[target == 0], scored.scores[target == 1])
        return found | _by_trees(first, second)


def single_columns(first: Rows, second: Rows) -> float:
    """The mean total variation of single columns."""
    found = []
    for name, size in first.domain.sizes.items():
        one, other = (np.bincount(rows.codes[name], minlength=size) / max(1, rows.count) for rows in (first, second))
        found.append(float(np.abs(one - other).sum()) / 2)
    return float(np.mean(found))


def _by_trees(first: Rows, second: Rows) -> dict[str, float | None]:
    """SPECKS and pMSE-ratios by classification trees."""
    target, rng = labels(first, second).astype(np.uint8), np.random.default_rng(2018)
    features, share = tree_features(stacked(first, second)), float(target.mean())
    complexity, wrong = cross_validated(features, target, rng, folds=5)
    tree = grow_tree(features, target)
    permuted = [grow_tree(features, rng.permutation(target)) for _ in range(PERMUTATIONS)]
    found: dict[str, float | None] = {"complexity": complexity, "error": wrong / min(share, 1 - share)}
    for name, cut in (("cart", complexity), ("common", COMMON)):
        scores = tree.probabilities(features, cut)
        null = np.mean([mean_squared_deviation(other.probabilities(features, cut), share) for other in permuted])
        raw = mean_squared_deviation(scores, share)
        found[f"{name}_ratio"] = raw / float(null) if null > 0 else None
        found[f"{name}_specks"] = kolmogorov_smirnov(scores[target == 0], scores[target == 1])
    return found
