"""Which pairs of columns to measure, from noisy scores: what leaving a pair out misses against the noise it adds.

Post-processing of noisy scores and public sizes.

The noise of a table of c cells measured at ρ_i adds up to ψ = c·√(1/(πρ_i)) in expectation (mean absolute Gaussian
noise times cells). Over all tables Σψ is smallest when ρ_i ∝ c^(2/3), and is then (Σ c^(2/3))^(3/2)/√(πρ). For Laplace
noise ψ = c/ε_i, the best split is ε_i ∝ √c, and Σψ = (Σ √c)²/ε. A unit of k rows multiplies either by k.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.privacy.cost import UNIT, Cost

__all__ = ["SplitNoise", "chosen_pairs", "combined", "steadied"]

Floats = npt.NDArray[np.float64]

_MOST_CLIQUES = 100_000
"""Most sets of columns looked at when pairs are combined; beyond it the pairs stay as they are found."""


@dataclass(frozen=True, slots=True)
class SplitNoise:
    """The noise of tables that share a cost in the best way: weights of the split, and the sum of all errors."""

    cost: Cost
    unit_rows: int = 1

    def weight(self, cells: float) -> float:
        """The weight of a table in the split.

        >>> noise = SplitNoise(Cost(rho=UNIT))
        >>> [round(noise.weight(cells) / (noise.weight(4) + noise.weight(32)), 3) for cells in (4, 32)]
        [0.2, 0.8]
        """
        return float(cells**self._exponent)

    def total(self, weights: Floats | float) -> Floats | float:
        """Σψ of tables whose weights add up to this.

        >>> noise = SplitNoise(Cost(rho=UNIT))
        >>> round(noise.total(noise.weight(4) + noise.weight(32)), 4)
        25.2313
        """
        if self.cost.rho:
            return self.unit_rows * weights**1.5 / math.sqrt(math.pi * self.cost.rho / UNIT)
        return self.unit_rows * weights**2.0 / max(self.cost.epsilon / UNIT, 1e-300)

    @property
    def _exponent(self) -> float:
        return 2.0 / 3.0 if self.cost.rho else 0.5


def steadied(scores: Floats, variance: float) -> Floats:
    """Noisy scores drawn towards their mean by as much as their noise warrants (empirical Bayes).

    The spread that noise does not explain is taken for the spread of the scores themselves. Among thousands of pairs
    the best noisy scores would otherwise be those with the luckiest noise.
    """
    centre = float(scores.mean())
    spread = max(float(((scores - centre) ** 2).mean()) - variance, 0.0)
    return np.asarray(centre + spread / max(spread + variance, 1e-300) * (scores - centre))


def chosen_pairs(
    domain: Domain, scores: Mapping[Clique, float], noise: SplitNoise, columns: Sequence[str], *, penalty: float = 1.0
) -> list[Clique]:
    """Pairs in the order chosen: each time the one whose score exceeds what it adds to the noise by most.

    Columns that no pair was worth are joined by the pair for which that difference is largest all the same.

    Args:
        domain: The codes as the pairs would be measured.
        scores: Noisy InDif of each candidate, in rows.
        noise: Of all the pairs together.
        columns: Those that should not be left alone.
        penalty: How much noise counts against score; below 1 for tables that are cleaned before they are used.
    """
    pairs = list(scores)
    missed = np.array([scores[pair] for pair in pairs])
    weights = np.array([noise.weight(domain.cells(pair)) for pair in pairs])
    free = np.ones(len(pairs), dtype=bool)
    taken: list[Clique] = []
    used = 0.0

    def gains() -> Floats:
        added = np.asarray(noise.total(used + weights)) - noise.total(used)
        return np.where(free, missed - penalty * added, -np.inf)

    while free.any():
        gain = gains()
        best = int(gain.argmax())
        if gain[best] <= 0.0:
            break
        free[best], used = False, used + weights[best]
        taken.append(pairs[best])
    for name in columns:
        mine = np.array([free[place] and name in pair for place, pair in enumerate(pairs)], dtype=bool)
        if mine.any() and not any(name in pair for pair in taken):
            best = int(np.where(mine, gains(), -np.inf).argmax())
            free[best], used = False, used + weights[best]
            taken.append(pairs[best])
    return taken


def combined(domain: Domain, pairs: Sequence[Clique], most_cells: int, shared: int = 2) -> list[Clique]:
    """The pairs with dense groups of them joined to larger tables, and what is left of the pairs.

    Sets of three columns or more, all of whose pairs are there, largest first, are taken if they have fewer than
    `most_cells` cells and share at most `shared` columns with each one taken before.
    """
    place = {name: position for position, name in enumerate(domain.columns)}
    near: dict[str, set[str]] = {}
    for first, second in pairs:
        near.setdefault(first, set()).add(second)
        near.setdefault(second, set()).add(first)
    found = _dense(domain, near, most_cells)
    found.sort(key=lambda names: (-len(names), domain.cells(names), [place[name] for name in names]))
    taken: list[Clique] = []
    for names in found:
        if all(len(set(names) & set(other)) <= shared for other in taken):
            taken.append(names)
    covered = {frozenset(pair) for names in taken for pair in itertools.combinations(names, 2)}
    return [*taken, *(pair for pair in pairs if frozenset(pair) not in covered)]


def _dense(domain: Domain, near: Mapping[str, set[str]], most_cells: int) -> list[Clique]:
    """Sets of three columns or more that are all paired with each other and fit."""
    columns = [name for name in domain.columns if name in near]
    layer: list[tuple[str, ...]] = [(name,) for name in columns]
    found: list[Clique] = []
    seen = 0
    while layer and seen < _MOST_CLIQUES:
        following = []
        for names in layer:
            rest = columns[columns.index(names[-1]) + 1 :]
            cells = domain.cells(names)
            for name in rest:
                if cells * domain.sizes[name] < most_cells and near[name].issuperset(names):
                    following.append((*names, name))
        seen += len(following)
        found += [Clique(names) for names in following if len(names) > 2]
        layer = following
    return found
