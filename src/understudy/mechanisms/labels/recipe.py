"""Recipe: the options of `rdt` as they apply to one domain, and what each question may cost.

Prices. Leaves of one tree partition the records, so a leaf table moves by k for the k rows of a unit that are added or
removed, and a tree costs what one table costs. T trees for each of c private columns cost T·c tables: all of them get
the same share, after `total_share` for the number of records and, where no public table is given, `growth_share` for
the trees themselves.

Relations. The claim of a release is about adding or removing a unit. If everybody may know who is in the table and
what the public columns say, the relation that matters is label-change: private values of one unit differ and nothing
else. Then one unit leaves and another one enters, so Laplace noise of scale b on a table costs 2k/b instead of k/b,
Gaussian noise √2²·k²/(2σ²) instead of k²/(2σ²), twice as much either way; a growing tree costs 2ε, which in ρ is four
times as much. With `relation` = "label_change" every question gets the half (growing in ρ the quarter) of its share:
then the label-change cost is the budget, and the claim for adding or removing a unit is half of it. Both are printed.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from understudy.errors import ResourceError, UsageError, nearest
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.mechanisms.labels.growth import Limits
from understudy.models.labels.chain import MOST_COMBINATIONS
from understudy.privacy.cost import Cost

__all__ = ["DENSE_CELLS", "MOST_CELLS", "Prices", "Recipe"]

Ints = npt.NDArray[np.int64]

MOST_CELLS = 2**62
DENSE_CELLS = 2**20
"""Most cells of the public columns that are written out, where no public table says which of them matter."""


@dataclass(frozen=True, slots=True)
class Prices:
    """The cost of the number of records, of growing one tree, and of all leaf tables of one private column."""

    total: Cost
    tree: Cost
    ensemble: Cost

    @classmethod
    def of(cls, cost: Cost, columns: int, trees: int, *, shares: tuple[float, float], label_change: bool) -> "Prices":
        """The prices when `cost` is spent; `shares` are those of the number of records and of growing."""
        for_total, for_growth = (cost.share(share) for share in shares)
        for_tables = cost - Cost(delta=cost.delta) - for_total - for_growth
        half = Fraction(1, 2) if label_change else Fraction(1)
        part = (half**2 if cost.rho else half) / trees
        return cls(for_total.share(half), for_growth.share(part), for_tables.share(half / columns))


@dataclass(frozen=True, slots=True)
class Recipe:
    """Private columns in order, weights of all columns, counts below which codes are pooled, limits of growth."""

    domain: Domain
    private: tuple[str, ...]
    weights: dict[str, float]
    collapse: dict[str, int]
    limits: Limits

    @classmethod
    def of(
        cls, domain: Domain, private: tuple[str, ...], weights: dict[str, float], collapse: dict[str, float],
        limits: Limits,
    ) -> "Recipe":  # fmt: skip
        """The recipe on this domain; names that it does not have, and sizes it cannot hold, raise."""
        named = _with_parts(private or domain.columns[-1:], domain)
        _check_known("private", named, domain.columns)
        public = tuple(name for name in domain.columns if name not in named)
        _check_known("weights", tuple(weights), (*public, *named[:-1]))
        _check_known("collapse", tuple(collapse), public)
        combinations = domain.cells(named)
        if combinations > MOST_COMBINATIONS:
            where = f"private columns {', '.join(named)}: {combinations:,} combinations"
            fix = "Name fewer private columns or use coarser bins."
            raise ResourceError(where, 8 * combinations, 8 * MOST_COMBINATIONS, fix)
        cells = domain.cells(public)
        if cells >= MOST_CELLS:
            fix = "Use coarser bins or fewer columns."
            raise ResourceError(f"public columns: {cells:,} cells", 8 * cells, 8 * MOST_CELLS, fix)
        every = {name: weights.get(name, 1.0) for name in domain.columns}
        pooled = {name: int(np.ceil(number)) for name, number in collapse.items()}
        return cls(domain, tuple(named), every, pooled, limits)

    @property
    def public(self) -> Clique:
        """The public columns, in schema order."""
        return self.domain.clique(name for name in self.domain.columns if name not in self.private)

    def splits(self, name: str) -> bool:
        """Whether a node may split on the column at all."""
        return self.weights[name] > 0.0 and self.domain.sizes[name] > 1

    @property
    def grows(self) -> bool:
        """Whether there is a public column to grow a tree on."""
        return self.limits.depth > 0 and any(self.splits(name) for name in self.public)

    def most_leaves(self, place: int) -> int:
        """Most leaves of a tree for the private column at that place."""
        leaves = min(self.limits.leaves, self.domain.cells(self.public))
        return leaves * self.domain.cells(self.private[:place])


def _with_parts(names: tuple[str, ...], domain: Domain) -> tuple[str, ...]:
    """The names, with both parts of a column that is modelled as size and kind, whichever way it is named."""
    found: list[str] = []
    for name in names:
        whole = name.removesuffix(".size").removesuffix(".kind") if name in domain.sizes else name
        parts = (f"{whole}.size", f"{whole}.kind")
        found += parts if all(part in domain.sizes for part in parts) else (name,)
    return tuple(dict.fromkeys(found))


def _check_known(option: str, names: tuple[str, ...], known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            rule = f"names {name!r}, which is not a column it can name."
            raise UsageError(f"option {option}", rule, nearest(name, known) if known else "There is none.")
