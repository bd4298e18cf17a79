"""Grower: the smallest method that grows a tree, chooses within its leaves and asks for noisy scores. For tests.

Privacy: a quarter of the cost each for the tree (halves of the column with the most codes, see
`privacy/questions/growth.py`), for one choice per leaf (`CommonCode`), for noisy scores of all pairs (`PairError`
against nothing: its proof is in `chooser.py`), and for all one-way tables; the parts add up.

`CommonCode` scores a code of a column by the rows of the leaf that hold it: a row of a leaf raises one score of that
leaf by one row and no other score. Sensitivity one row, monotone.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from understudy.counts.source import Ints
from understudy.marginals.clique import Clique
from understudy.mechanisms.independent import Independent
from understudy.mechanisms.mechanism import Plan, PublicFacts
from understudy.models.blocks import BlockModel
from understudy.privacy.cost import Cost, Currency
from understudy.privacy.curator import Curator
from understudy.privacy.quality import SCORE_UNIT
from understudy.privacy.questions.halving import Halving, Ranges
from understudy.testing.chooser import PairError

__all__ = ["Chains", "CommonCode", "Grower"]


@dataclass(frozen=True, slots=True)
class Chains:
    """Every code of a column is a root with one child of the same code, and so on: as many experiments as codes.

    A tree that costs the same at any depth must hide whether a code holds one row, however long its chain is.
    """

    column: str
    most_depth: int
    nodes: tuple[int, ...]
    depth: int = 0
    name: str = "chains"
    decay: float = 2.0
    theta: int = 0

    @property
    def frontier(self) -> Ranges:
        """One range of one code per open chain."""
        return Ranges(self.name, Clique((self.column,)), tuple((code, code + 1) for code in self.nodes))

    @property
    def depths(self) -> Ints:
        """The same depth for all."""
        return np.full(len(self.nodes), self.depth, dtype=np.int64)

    @property
    def finished(self) -> bool:
        """At the public depth, or with no chain left."""
        return self.depth == self.most_depth or not self.nodes

    def after(self, split: npt.NDArray[np.bool_]) -> "Chains":
        """The chains that go on."""
        kept = tuple(code for code, on in zip(self.nodes, split.tolist(), strict=True) if on)
        return replace(self, nodes=kept, depth=self.depth + 1)


@dataclass(frozen=True, slots=True, eq=False)
class CommonCode:
    """How many rows of each cell hold each code of a column; `cells` cells."""

    column: str
    options: Sequence[int]
    cells: int
    name: str = "common code"

    @property
    def columns(self) -> tuple[str, ...]:
        """The column alone."""
        return (self.column,)

    @property
    def allowed(self) -> npt.NDArray[np.bool_]:
        """Every code."""
        return np.ones((self.cells, len(self.options)), dtype=np.bool_)

    @property
    def sensitivity(self) -> Fraction:
        """One row holds one code."""
        return Fraction(SCORE_UNIT)

    @property
    def monotone(self) -> bool:
        """Yes: a row lowers no score."""
        return True

    def scores(self, exact: Mapping[str, Ints]) -> Ints:
        """The counts, in score units."""
        return exact[self.column] * SCORE_UNIT


@dataclass(frozen=True, slots=True)
class Grower:
    """Recipe: a tree, a choice in each of its leaves, noisy scores of all pairs, all one-way tables."""

    name: ClassVar[str] = "grower"
    summary: ClassVar[str] = "For tests: a tree, choices in its leaves, noisy scores, one-way tables."
    source: ClassVar[str] = "This package."
    needs: ClassVar[str] = "One column."
    limits: ClassVar[str] = "Tests only."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure", "concentrated")

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """The plan of `independent` under its own name: the rest is small."""
        return replace(Independent().plan(facts, cost), method=self.name, options={}, fixed=False)

    def run(self, curator: Curator, cost: Cost) -> BlockModel:
        """Grows, chooses, scores, measures; with a single column there is no pair to score."""
        domain = curator.domain
        parts = 4 if len(domain.columns) > 1 else 3
        part = cost.share(Fraction(1, parts))
        column = max(domain.columns, key=lambda name: domain.sizes[name])
        tree = curator.grow(Halving.of(column, domain.sizes[column]), part)
        leaves = Ranges("leaves", Clique((column,)), tree.leaves)
        other = domain.columns[0]
        curator.select_within(leaves, CommonCode(other, range(domain.sizes[other]), leaves.cells), part)
        if parts == 4:
            pairs = [domain.clique(pair) for pair in itertools.combinations(domain.columns, 2)]
            curator.score(PairError({pair: np.zeros(domain.cells(pair), np.int64) for pair in pairs}), part)
        return Independent().run(curator, part)
