"""From a tree and a cost per layer to a fitted model: what all tree methods share.

    costs = TreeCosts.shared(cost, layers=tree.layers, allocation="half_leaf", total_share=0.01)
    model = fit_tree(curator, tree, costs, TreeFit(negatives="clip_rescale"))

Privacy. Every layer of a tree, and the full table below it, holds each record in exactly one cell, so one unit moves
each of them by at most its k rows: a layer is a histogram and costs what `measure` charges for one. The layers (and
the number of rows, where it is bought) are counted one beside the other, so their costs add up: `TreeCosts.spent`.
The structure must be public or come from earlier answers. Everything after `measure` is post-processing.

Impossible cells are dropped after noise (the same distribution as never asking about them), and enter the fit as known
zeros. Rows that break a public rule all the same are counted in the layers, whose nodes hold them, but in no cell: the
fit spreads them over the possible cells of their node.

How well a hierarchy answers ranges
-----------------------------------
By public numbers: fan-outs and noise variances alone. A range is a run of neighbouring leaves. `average_variance` is
the variance of its least squares estimate, averaged over all ranges, exactly: after least squares the errors of a tree
are those of a Gaussian tree. Given a node's error e, its children's errors are shares of e plus a part that does not
correlate with e and adds up to 0 over the children; for equal children with upward variance V that part has covariance
V(I − J/f). So the sums over all positions and pairs of positions inside a node follow from those inside its children,
level by level (`_Inside`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from understudy.domain import Clique, Measurement, Partition
from understudy.errors import ResourceError, UsageError
from understudy.methods.method import PublicFacts, Step, noisy_step
from understudy.models.histogram_tree import (
    HistogramTree,
    TreeModel,
    TreeNegatives,
    TreeStructure,
    least_squares,
    nonnegative_tree,
    rake,
)
from understudy.models.tables import Rounding, allowed, check_possible
from understudy.options import check_choice
from understudy.privacy.cost import Cost
from understudy.privacy.curator import Curator

Allocation = Literal["equal", "half_leaf", "custom"]
Margins = Literal["summed", "raked"]
TotalPolicy = Literal["noisy", "estimated"]

LEAF_BYTES = 130
"""Memory a run needs per cell of the full table, at its peak."""


@dataclass(frozen=True, slots=True)
class TreeCosts:
    """What each part is bought for: the number of rows, each layer below the root, and the full table.

    A cost of nothing (`Cost()`) means that the layer is not measured; `root` alone may also be known: see `TreeFit`.
    """

    root: Cost
    layers: tuple[Cost, ...]
    leaves: Cost

    @classmethod
    def shared(
        cls, cost: Cost, layers: int, allocation: str = "equal", *, shares: str = "", total_share: float = 0.0
    ) -> Self:
        """The cost (ε or ρ, δ left out) shared out: `total_share` of it for the number of rows, the rest by scheme."""
        root = cost.share(total_share)
        rest = Cost(cost.epsilon - root.epsilon, cost.rho - root.rho)
        upper, leaves = split_exactly(
            rest, [float(weight) for weight in allocation_weights(layers, allocation, shares)]
        )
        return cls(root, upper, leaves)

    @property
    def spent(self) -> Cost:
        """The cost of everything."""
        return sum(self.layers, self.root + self.leaves)

    def steps(self, structure_sizes: Sequence[int], cells: int, unit_rows: int) -> tuple[Step, ...]:
        """The steps of a plan, given the number of nodes of each layer below the root and of the full table."""
        names = [f"measure layer {number}" for number in range(1, len(self.layers) + 1)]
        parts = [("measure total", self.root, 1), *zip(names, self.layers, structure_sizes, strict=True)]
        parts.append(("measure table", self.leaves, cells))
        return tuple(noisy_step(name, cost, size, unit_rows) for name, cost, size in parts if _bought(cost))


@dataclass(frozen=True, slots=True)
class TreeFit:
    """How noisy counts become a model.

    `known_rows`: the number of rows where it is public, None otherwise. `margins`: columns as the cleaned table sums
    them up, or raked towards the sums of the signed estimates (see `models/histogram_tree.py`).
    """

    negatives: TreeNegatives = "clip_rescale"
    rounding: Rounding = "multinomial"
    known_rows: int | None = None
    margins: Margins = "summed"


def fit_tree(curator: Curator, structure: TreeStructure, costs: TreeCosts, fit: TreeFit) -> TreeModel:
    """Measures the layers that were paid for and the full table, in one go, and fits all of them together."""
    targets: list[tuple[int, Clique | Partition, Cost]] = [(0, Clique(), costs.root)]
    targets += [(place, structure.partition(place), cost) for place, cost in enumerate(costs.layers, start=1)]
    targets += [(structure.layers + 1, structure.domain.everything(), costs.leaves)]
    bought = [target for target in targets if _bought(target[2])]
    whole = sum((cost for _, _, cost in bought), Cost())
    # The weights are whole numbers that add up to the whole, so every part gets exactly its own cost.
    weights = [cost.epsilon + cost.rho for _, _, cost in bought]
    answers = curator.measure([target for _, target, _ in bought], whole, weights)
    found = {place: answer for (place, _, _), answer in zip(bought, answers, strict=True)}
    return _fitted(curator, structure, found, fit)


def _fitted(curator: Curator, structure: TreeStructure, found: dict[int, Measurement], fit: TreeFit) -> TreeModel:
    tree = HistogramTree.of(structure)
    values: list[npt.ArrayLike] = []
    variances: list[npt.ArrayLike] = []
    for place in range(len(tree.sizes)):
        values.append(found[place].values if place in found else 0.0)
        variances.append(found[place].distribution.variance if place in found else math.inf)
    return model_of_levels(curator, structure, tree, (values, variances), fit)


def model_of_levels(
    curator: Curator,
    structure: TreeStructure,
    tree: HistogramTree,
    noisy: tuple[list[npt.ArrayLike], list[npt.ArrayLike]],
    fit: TreeFit,
) -> TreeModel:
    """The model fitted to noisy counts and variances of every level, the root first and the full table last.

    Post-processing: of the curator only the public rules are used.
    """
    domain, (values, variances) = structure.domain, noisy
    if fit.known_rows is not None:
        values[0], variances[0] = float(fit.known_rows), 0.0
    cells = np.arange(tree.sizes[-1], dtype=np.int64)
    possible = allowed(domain, domain.everything(), cells, curator.structural_zeros)
    if not possible.all():
        values[-1] = np.where(possible, values[-1], 0)
        variances[-1] = np.where(possible, variances[-1], 0.0)
    estimate = least_squares(tree, values, variances)
    total = max(0.0, float(estimate.values[0][0]))
    # A table cleaned to a total of 0 would carry no shape at all; any positive total keeps one.
    leaves = nonnegative_tree(tree, estimate.values, max(total, 1.0), fit.negatives, possible=possible)[-1]
    if fit.margins == "raked":
        spread = np.broadcast_to(np.asarray(variances[-1], dtype=np.float64), leaves.shape)
        leaves = rake(domain, leaves, estimate.values[-1], spread, tree.parents[-1])
    return TreeModel.of(structure, estimate.values[-1], leaves, total, fit.rounding)


def split_exactly(cost: Cost, weights: Sequence[float]) -> tuple[tuple[Cost, ...], Cost]:
    """The cost split by the weights, the last part apart: with ε it takes what rounding leaves over.

    With ρ it does not: distributions are then summed exactly, which is quicker the fewer different ones there are.
    """
    parts = cost.split(weights)
    upper = tuple(parts[:-1])
    return upper, cost - sum(upper, Cost()) if cost.epsilon else parts[-1]


def allocation_weights(layers: int, allocation: str, shares: str = "") -> list[Fraction]:
    """Fractions of the cost for each layer and, last, for the full table: they add up to 1.

    `equal`: the same for all. `half_leaf`: half for the full table, the other half shared by the layers. `custom`:
    as listed in `shares`, one per layer and one for the full table, separated by commas.
    """
    check_choice("allocation", allocation, get_args(Allocation))
    if allocation == "custom":
        return _custom(layers, shares)
    if shares:
        raise UsageError("shares", f"have no meaning with allocation {allocation}.", "Set allocation=custom.")
    if allocation == "equal" or not layers:
        return [Fraction(1, layers + 1)] * (layers + 1)
    return [Fraction(1, 2 * layers)] * layers + [Fraction(1, 2)]


def check_cells(facts: PublicFacts, most: int, where: str) -> int:
    """Number of cells of the full table.

    Raises:
        ResourceError: if it is too large to be written out.
        UsageError: if the rules leave no combination possible.
    """
    domain = facts.domain
    cells = domain.cells(domain.columns)
    if cells > most:
        fix = "Use fewer columns or coarser bins, raise most_cells if memory allows, or use a method that keeps small"
        raise ResourceError(
            f"{where}: the full table of {len(domain.columns)} columns ({cells:,} cells)",
            cells * LEAF_BYTES,
            most * LEAF_BYTES,
            f"{fix} tables only (mst, aim).",
        )
    check_possible(domain, facts.structural_zeros)
    return cells


def _custom(layers: int, shares: str) -> list[Fraction]:
    try:
        listed = [Fraction(part.strip()) for part in shares.split(",")]
    except (AttributeError, ValueError, ZeroDivisionError):
        listed = []
    wrong = len(listed) != layers + 1 or min(listed, default=Fraction(0)) <= 0
    if wrong or abs(sum(listed, Fraction(0)) - 1) > Fraction(1, 10**6):
        rule = (
            f"must be {layers + 1} numbers above 0 that add up to 1 (each layer, then the full table), got {shares!r}."
        )
        raise UsageError("shares", rule, "For example shares=0.2,0.3,0.5 with two layers.")
    whole = sum(listed, Fraction(0))
    return [share / whole for share in listed]


def _bought(cost: Cost) -> bool:
    return bool(cost.epsilon or cost.rho)


_SHARE_DIGITS = 4
_LEAST_SHARE = 1e-3


def noise_variance(share: float, *, zcdp: bool) -> float:
    """Variance of a level's noise up to a factor common to all: 1/share² for Laplace noise, 1/share for Gaussian."""
    if not share:
        return math.inf
    return 1.0 / share if zcdp else 1.0 / share**2


def average_variance(fanouts: Sequence[int], variances: Sequence[float]) -> float:
    """Variance of the estimate of a range of leaves, averaged over all ranges.

    Args:
        fanouts: children of every node of each level, the root's first.
        variances: variances of the counts of each level below the root, the leaves' last; infinite if not measured.
    """
    inside, upward = _Inside(1, 0.0, 0.0), variances[-1]
    for level in reversed(range(len(fanouts))):
        inside = inside.parent(fanouts[level], upward)
        below = fanouts[level] * upward
        own = variances[level - 1] if level else math.inf  # the number of rows has little to say about ranges
        upward = below if math.isinf(own) else own * below / (own + below)
    leaves = inside.leaves
    first, second = _moments(leaves)
    # Ranges that end before the last leaf, then those that end with it.
    open_end = (inside.pairs + upward * 2.0 * (leaves * second - first**2)) / 2.0
    closed_end = inside.prefixes + upward * (second + 1.0)
    return (open_end + closed_end) / (leaves * (leaves + 1) / 2.0)


def best_shares(fanouts: Sequence[int], *, zcdp: bool) -> list[float]:
    """Shares of the budget for each level that answer ranges best, found numerically from equal shares.

    Rounded, so that every machine finds the same. A level that is worth next to nothing gets 0: it is not measured.
    """
    if len(fanouts) < 2:
        return [1.0] * len(fanouts)
    from scipy.optimize import minimize  # heavy, and needed for this alone

    def shares(logits: np.ndarray) -> np.ndarray:
        weights = np.exp(np.append(logits, 0.0) - max(0.0, logits.max()))
        return np.asarray(np.maximum(weights / weights.sum(), 1e-6))

    def loss(logits: np.ndarray) -> float:
        noise = [noise_variance(float(share), zcdp=zcdp) for share in shares(logits)]
        return math.log(average_variance(fanouts, noise))

    found = shares(minimize(loss, np.zeros(len(fanouts) - 1), method="L-BFGS-B").x)
    return [round(float(share), _SHARE_DIGITS) if share >= _LEAST_SHARE else 0.0 for share in found]


@dataclass(frozen=True, slots=True)
class _Inside:
    """Sums inside a node, given its own error: of the variances of prefixes, and of sums between ordered positions."""

    leaves: int
    prefixes: float
    pairs: float

    def parent(self, fanout: int, upward: float) -> "_Inside":
        """The same for a node with that many such children, whose upward variance is `upward`."""
        leaves = self.leaves
        first, second = _moments(leaves)
        spread = 2.0 * (leaves * second - first**2)
        child = np.arange(fanout, dtype=np.float64)
        own = (child * leaves + second).sum() - (child**2 * leaves + 2.0 * child * first + second).sum() / fanout
        prefixes = upward * own + fanout * self.prefixes
        # Both ends in one child, then ends in children that lie `apart` from each other, in both orders.
        pairs = fanout * (upward * (1.0 - 1.0 / fanout) * spread + self.pairs)
        apart = child[1:]
        ends = leaves * (leaves - 2.0 * first + second) + leaves * second + (apart - 1.0) * leaves**2
        across = upward * (ends - (apart**2 * leaves**2 + spread) / fanout) + 2.0 * leaves * self.prefixes
        pairs += 2.0 * ((fanout - apart) * across).sum()
        return _Inside(leaves * fanout, float(prefixes), float(pairs))


def _moments(leaves: int) -> tuple[float, float]:
    """Σ φ and Σ φ² over the positions φ = 0, 1/n, …, (n − 1)/n."""
    return (leaves - 1) / 2.0, (leaves - 1) * (2 * leaves - 1) / (6.0 * leaves)


def root_above(leaves: int, levels: int) -> int:
    """The smallest branching with which that many levels reach that many leaves.

    >>> root_above(1000, 3), root_above(1001, 3)
    (10, 11)
    """
    branching = max(1, int(leaves ** (1.0 / levels)) - 1)
    while branching**levels < leaves:
        branching += 1
    return branching
