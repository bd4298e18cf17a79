"""How well a hierarchy answers ranges, told from public numbers: fan-outs and noise variances alone.

A range is a run of neighbouring leaves. `average_variance` is the variance of its least squares estimate, averaged over
all ranges, exactly: after least squares the errors of a tree are those of a Gaussian tree. Given a node's error e, its
children's errors are shares of e plus a part that does not correlate with e and adds up to 0 over the children; for
equal children with upward variance V that part has covariance V(I − J/f). So the sums over all positions and pairs of
positions inside a node follow from those inside its children, level by level (`_Inside`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["average_variance", "best_shares", "noise_variance", "root_above"]

_SHARE_DIGITS = 4
_LEAST_SHARE = 1e-3


def noise_variance(share: float, *, concentrated: bool) -> float:
    """Variance of a level's noise up to a factor common to all: 1/share² for Laplace noise, 1/share for Gaussian."""
    if not share:
        return math.inf
    return 1.0 / share if concentrated else 1.0 / share**2


def average_variance(fanouts: Sequence[int], variances: Sequence[float]) -> float:
    """Variance of the estimate of a range of leaves, averaged over all ranges.

    Args:
        fanouts: children of every node of each level, the root's first.
        variances: of the counts of each level below the root, the leaves' last; infinite if not measured.
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


def best_shares(fanouts: Sequence[int], *, concentrated: bool) -> list[float]:
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
        noise = [noise_variance(float(share), concentrated=concentrated) for share in shares(logits)]
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
