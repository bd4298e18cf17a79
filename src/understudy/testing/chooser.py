"""Chooser: the smallest method that uses every verb of the door. It exists to be tested, not to be good.

Privacy: a third of the cost for all one-way tables, a third for choosing one pair by the exponential mechanism, a
third for measuring that pair; the parts add up. The score of a pair is ‖M − M̂‖₁, where M̂ (from noisy answers alone)
is rounded to score units: one row moves one cell of M by one, so it moves the score by at most one row's worth, in
either direction, hence not monotone.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from understudy.counts.source import Ints
from understudy.marginals.clique import Clique
from understudy.mechanisms.independent import Independent, weighted_total
from understudy.mechanisms.mechanism import Plan, PublicFacts
from understudy.models.blocks import BlockModel
from understudy.models.nonnegative import norm_sub
from understudy.privacy.cost import Cost, Currency
from understudy.privacy.curator import Curator
from understudy.privacy.quality import SCORE_UNIT

__all__ = ["Chooser", "PairError"]


@dataclass(frozen=True, slots=True)
class PairError:
    """How far each pair's exact table is from its estimate (in score units)."""

    estimates: Mapping[Clique, npt.NDArray[np.int64]]
    name: str = "pair"

    @property
    def options(self) -> tuple[Clique, ...]:
        """The pairs."""
        return tuple(self.estimates)

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The same pairs."""
        return tuple(self.estimates)

    @property
    def sensitivity(self) -> Fraction:
        """One row moves one cell by one."""
        return Fraction(SCORE_UNIT)

    @property
    def monotone(self) -> bool:
        """No: a row may bring a cell closer to its estimate or take it away."""
        return False

    def scores(self, exact: Mapping[Clique, Ints]) -> Ints:
        """‖M − M̂‖₁ of each pair."""
        parts = [np.abs(exact[clique] * SCORE_UNIT - self.estimates[clique]).sum() for clique in self.options]
        return np.array(parts, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Chooser:
    """Recipe: all one-way tables, then the pair that independence misses most."""

    name: ClassVar[str] = "chooser"
    summary: ClassVar[str] = "For tests: one-way tables and one chosen pair."
    source: ClassVar[str] = "This package."
    needs: ClassVar[str] = "Two columns."
    limits: ClassVar[str] = "Tests only."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure", "concentrated")

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """The plan of `independent` under its own name: the rest is small."""
        return replace(Independent().plan(facts, cost), method=self.name, options={}, fixed=False)

    def run(self, curator: Curator, cost: Cost) -> BlockModel:
        """Measures, chooses, measures; with a single column there is nothing to choose."""
        if len(curator.domain.columns) < 2:
            return Independent().run(curator, cost)
        third = cost.share(Fraction(1, 3))
        domain = curator.domain
        ones = curator.measure([domain.clique([name]) for name in domain.columns], third)
        total = weighted_total(ones)
        parts = {Clique(one.columns): norm_sub(one.values.astype(np.float64), max(total, 1.0)) for one in ones}
        estimates = {}
        for pair in itertools.combinations(domain.columns, 2):
            left, right = parts[Clique(pair[:1])], parts[Clique(pair[1:])]
            table = np.outer(left, right).reshape(-1) / max(total, 1.0)
            estimates[domain.clique(pair)] = np.rint(table * SCORE_UNIT).astype(np.int64)
        chosen = curator.select(PairError(estimates), third)
        (answer,) = curator.measure([chosen], third)
        kept = {clique: part for clique, part in parts.items() if clique[0] not in chosen}
        kept[chosen] = norm_sub(answer.values.astype(np.float64), max(total, 1.0))
        return BlockModel.of_marginals(domain, kept, curator.forbidden, total)
