"""Growth: a tree that decides by noisy counts which nodes to split, for one price whatever its depth (PrivTree).

The rule (Zhang, Xiao, Xie 2016), on a grid of 1/g rows (g = `GROWTH_UNIT`) so that every number is an integer. A node
at depth h that holds c rows has the biased count

    B = max(g·θ − D, g·c − h·D)                 split it iff B + X > g·θ,    X discrete Laplace of scale b = λ·g

with D = the smallest whole number that is at least b·ln β and at least g (so that δ' = D/g ≥ λ ln β, and at least one
row). A row that lies in a node lies in at most one of its children, and a child is deeper than its parent.

Claim. One row costs ε = (g/b)·(2 + 1/(β' − 1)) with β' = e^(D/b) ≥ β, hence at most (2β − 1)/((β − 1)·λ); k rows cost
k times that. The cost does not depend on the depth, nor on the fan-out: β is the decay that D buys, and may be smaller
than the number of children. (With fewer than that, empty nodes are split more often than they vanish, about fan-out/2β
children each; public limits must then end the growth. That is a matter of work, not of privacy.)

Proof. Let q = e^(−1/b), z = B − g·θ, and s(z) = P(z + X > 0) the chance of a split. Summing the law of X,

    s(z) = q^(1−z)/(1+q) for z ≤ 1,        s(z) = 1 − q^z/(1+q) for z ≥ 1.

(1) σ(z) = ln s(z) − ln s(z−1) ≤ (1/b)·min(1, q^(z−1)). For z ≤ 1 it equals 1/b. For z ≥ 1 let w = q^(z−1) ∈ (0, 1] and
    A = 1/(1+q); then σ = F(w) = ln(1 − A·q·w) − ln(1 − A·w), F(0) = 0, F(1) = 1/b, and F'' = A²/(1 − Aw)² −
    A²q²/(1 − Aqw)² ≥ 0. A convex function with F(0) = 0 has F(w) ≤ w·F(1).
(2) So a count raised by one row, to z, raises ln s by at most (g/b)·min(1, q^(z−g)): g steps, each at most the last.
(3) Compare a table with a row and the same table without it. Only the nodes that hold the row differ: one path, with
    z_0 > z_1 > …, z_i − z_{i+1} ≥ D (counts do not rise along a path, depths do, by one at least), until z = −D, where
    both tables are held at the same number and nothing differs any more. Let node k be the last with z_k > −D.
    It moves by t = min(g, z_k + D) units, 1 ≤ t ≤ g, and raises ln s by at most t/b. Node k−j has
    z ≥ t + (j−1)·D, so by (2) it raises ln s by at most g/b (j = 1), and by at most (g/b)·q^(t−g)·β'^−(j−1) (j ≥ 2,
    where t + (j−1)·D − g ≥ 0 because D ≥ g). Together

        (1/b)·(t + g + g·q^(t−g)/(β' − 1)).

    This is convex in t. At t = g it is (g/b)·(2 + 1/(β' − 1)). At t = 0 it is (g/b)·(1 + e^(g/b)/(β' − 1)), no more
    than that because e^(g/b) ≤ e^(D/b) = β'. So it is at most ε.
(4) A tree is one outcome: the nodes above the path's end were split, its end was not (or was not asked, by a public
    limit). The splits change the log-probability by between 0 and ε in one direction, the final refusal by at most
    g/b ≤ ε in the other direction (P(no split) is s(1 − z) with the sign of X turned). All other nodes have the same
    counts, and which nodes are asked follows from earlier decisions. So |log ratio| ≤ ε. Rows one after the other: k·ε.

Step (3) uses D ≥ g, which the published rule does not ask for. It matters where λ ln β is below one row (for β = 2:
where ε is above 2.08), and there it costs a bias of at most one row per level.

Counts are cut at 2⁵⁰ first, which neither reorders a path nor takes neighbours further apart.
"""

from fractions import Fraction
from typing import Protocol, Self

import numpy as np

from understudy.counts.source import Ints
from understudy.errors import UsageError
from understudy.marginals.answer import GROWTH_UNIT
from understudy.marginals.partition import Partition
from understudy.privacy.randomizer import Bools

__all__ = ["MOST_LAYERS", "Growth", "as_decay", "biased_counts", "checked_depths", "checked_theta"]

MOST_LAYERS = 1024
"""No tree is asked about more layers than this, whatever its own limits say."""

_MOST_DEPTH = 2**14
_LARGEST_COUNT = 2**50


class Growth(Protocol):
    """A tree as it grows: frozen, one object per layer.

    Everything but the decisions handed to `after` must be public (or come from earlier answers). A node's cell must
    lie inside the cell of the node it was split from: then the proof above holds, whatever else the tree does.
    """

    @property
    def name(self) -> str:
        """What the transcript calls the tree."""
        ...

    @property
    def frontier(self) -> Partition:
        """Cells are the open nodes, and one last cell for all other rows. Looks at one column at least."""
        ...

    @property
    def depths(self) -> Ints:
        """The depth of every open node: 0 for a root; in each layer above all depths of the layer before."""
        ...

    @property
    def decay(self) -> float:
        """β of the noise and the bias, at least 2; the fan-out where that is known."""
        ...

    @property
    def theta(self) -> int:
        """Rows above which a node is worth splitting."""
        ...

    @property
    def finished(self) -> bool:
        """Whether no node is open any more; public limits (depth, codes exhausted, nodes) live here."""
        ...

    def after(self, split: Bools) -> Self:
        """The tree with these open nodes split and the others turned into leaves: the next layer."""
        ...


def biased_counts(exact: Ints, depths: Ints, bias: int, theta: int) -> Ints:
    """What noise is added to: counts in grid units, lowered by `bias` per level, no lower than θ − δ'."""
    counts = np.minimum(exact, _LARGEST_COUNT) * GROWTH_UNIT
    return np.maximum(theta * GROWTH_UNIT - bias, counts - depths * bias)


def checked_theta(growth: Growth, step: str) -> int:
    """θ of the growth, if its grid units cannot overflow."""
    if type(growth.theta) is not int or abs(growth.theta) > _LARGEST_COUNT:
        raise UsageError(step, f"theta must be a whole number of rows, got {growth.theta!r}.")
    return growth.theta


def checked_depths(growth: Growth, above: int, step: str) -> Ints:
    """The depths of the open nodes, if there is one for each and all lie above those of the layer before."""
    depths = np.asarray(growth.depths)
    if not growth.frontier.columns:
        raise UsageError(step, "its nodes must look at one column at least.")
    if depths.shape != (growth.frontier.cells - 1,) or not np.issubdtype(depths.dtype, np.integer):
        raise UsageError(step, "needs one whole depth per open node, and one more cell for all other rows.")
    if depths.size and (int(depths.min()) <= above or int(depths.max()) > _MOST_DEPTH):
        raise UsageError(step, f"depths must rise from layer to layer and end at {_MOST_DEPTH:,}.")
    return depths.astype(np.int64)


def as_decay(decay: float, step: str) -> Fraction:
    """β as an exact fraction."""
    if not isinstance(decay, int | float) or not np.isfinite(decay):
        raise UsageError(step, f"the decay must be a number, got {decay!r}.")
    return Fraction(decay)
