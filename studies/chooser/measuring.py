"""How far a synthetic table is from the real one: single columns, pairs, triples, and telling rows apart."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from studies.chooser.tables import Case
from understudy.codec.table import TableCodec
from understudy.domain import Clique
from understudy.evaluate.cart import grow_tree, tree_features
from understudy.evaluate.metric import Rows, counted, open_for_comparison, read_rows, stacked, total_variation
from understudy.evaluate.propensity import kolmogorov_smirnov, labels

__all__ = ["MEASURES", "Ruler"]

MEASURES = ("columns", "pairs", "triples", "SPECKS")
MOST_PAIRS, MOST_TRIPLES, SAMPLED = 200, 100, 4_000
COMPLEXITY = 0.001


@dataclass(frozen=True)
class Ruler:
    """A real table and the cliques that are compared on it."""

    case: Case

    @cached_property
    def codec(self) -> TableCodec:
        return TableCodec.of(self.case.schema)

    @cached_property
    def real(self) -> Rows:
        return self._rows(self.case.table)

    def distances(self, made: pa.Table) -> dict[str, float]:
        """Mean total variation over columns, pairs and triples, and SPECKS by a classification tree."""
        rows = self._rows(made)
        found = {
            "columns": self._variation(rows, self._cliques(1, len(self.codec.domain.columns))),
            "pairs": self._variation(rows, self._cliques(2, MOST_PAIRS)),
            "triples": self._variation(rows, self._cliques(3, MOST_TRIPLES)),
        }
        return found | {"SPECKS": _told_apart(_sample(self.real), _sample(rows))}

    def _rows(self, table: pa.Table) -> Rows:
        return read_rows(open_for_comparison(table, self.case.schema), self.codec)

    def _cliques(self, ways: int, most: int) -> list[Clique]:
        """All sets of so many columns, or a fixed random choice of them."""
        names = self.codec.domain.columns
        if math.comb(len(names), ways) <= most:
            return [Clique(some) for some in itertools.combinations(names, ways)]
        rng, found = np.random.default_rng(ways), dict[Clique, None]()
        while len(found) < most:
            found[Clique(names[place] for place in sorted(rng.choice(len(names), ways, replace=False).tolist()))] = None
        return list(found)

    def _variation(self, rows: Rows, cliques: Sequence[Clique]) -> float:
        tables = counted([self.real, rows], cliques)
        return math.fsum(total_variation(*table.counts) for table in tables) / len(cliques)


def _sample(rows: Rows) -> Rows:
    return rows.take(np.sort(np.random.default_rng(0).permutation(rows.count)[:SAMPLED]))


def _told_apart(first: Rows, second: Rows) -> float:
    target = labels(first, second).astype(np.uint8)
    features = tree_features(stacked(first, second))
    scores = grow_tree(features, target).probabilities(features, COMPLEXITY)
    return kolmogorov_smirnov(scores[target == 0], scores[target == 1])
