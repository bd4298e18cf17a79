"""Weighted least squares on a histogram tree, in time linear in its nodes.

Given a noisy count y and a variance s of every node, the estimates h that minimise Σ (h − y)²/s under "children add
up to their parent". One pass up combines what a node's own count and its children's sum say about it, one pass down
hands what the parent knows better to the children in proportion to their variances (Hay et al. 2010 for equal
variances and branching; here both are free). s = 0: the count is known exactly. s = ∞: it was not measured.

Up, with S and T the sums of the children's z and V: z = (y·T + S·s)/(T + s), V = s·T/(s + T); a node without children
keeps z = y, V = s. Down: h = z at the root, h_u = z_u + (V_u/T)(h − S) below. Where several children were not measured
at all, nothing tells them apart: they share what is missing equally.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from understudy.errors import UsageError
from understudy.models.tree.structure import Structure

__all__ = ["HistogramTree", "TreeEstimate", "least_squares"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class HistogramTree:
    """Parent pointers, one array per level below the root: the place of every node's parent in the level above.

    Branching may differ from node to node, and a node of any level may have no children.
    """

    parents: tuple[Ints, ...]

    def __post_init__(self) -> None:
        above = 1
        for number, level in enumerate(self.parents, start=1):
            if level.ndim != 1 or not level.size or level.min() < 0 or level.max() >= above:
                raise UsageError(f"tree: level {number}", f"needs nodes, each with a parent from 0 to {above - 1}.")
            above = level.size

    @classmethod
    def of(cls, structure: Structure) -> Self:
        """The layers of a structure, and the cells of the full table as the last level."""
        return cls((*structure.parent_places(), structure.leaf_parents()))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of nodes of every level, the root first."""
        return (1, *(level.size for level in self.parents))


@dataclass(frozen=True, slots=True, eq=False)
class TreeEstimate:
    """Level by level: the estimates, and the variances V of the upward pass (at the root: that of its estimate)."""

    values: tuple[Floats, ...]
    upward: tuple[Floats, ...]


def least_squares(
    tree: HistogramTree, values: Sequence[npt.ArrayLike], variances: Sequence[npt.ArrayLike]
) -> TreeEstimate:
    """The weighted least squares estimates of all nodes.

    Args:
        tree: who is whose parent.
        values: noisy counts of each level, the root first; ignored where the variance is infinite.
        variances: of each level, a number for all its nodes or one per node; 0 to infinity.
    """
    counts, spread = _checked(tree, values, variances)
    upward, sums, totals = _up(tree, counts, spread)
    estimates = [counts[0]]
    for number, parents in enumerate(tree.parents):
        missing = (estimates[number] - sums[number])[parents]
        estimates.append(counts[number + 1] + _share(upward[number + 1], totals[number], parents) * missing)
    return TreeEstimate(tuple(estimates), tuple(upward))


def _up(
    tree: HistogramTree, counts: list[Floats], spread: list[Floats]
) -> tuple[list[Floats], list[Floats], list[Floats]]:
    """Turns `counts` into z in place; the variances V, and the children's sums S and T of every inner level."""
    upward = list(spread)
    sums: list[Floats] = [np.empty(0)] * len(tree.parents)
    totals: list[Floats] = [np.empty(0)] * len(tree.parents)
    for number in reversed(range(len(tree.parents))):
        parents, size = tree.parents[number], counts[number].size
        below = _sums(parents, counts[number + 1], size)
        noise = _sums(parents, upward[number + 1], size)
        own = spread[number]
        # The weight of the node's own count. Nothing below, or something below not measured: all of it.
        with np.errstate(invalid="ignore", divide="ignore"):
            weight = np.where(np.isinf(own), 0.0, noise / (noise + own))
            joint = np.where(np.isinf(own), noise, own * weight)
        childless = np.bincount(parents, minlength=size) == 0
        alone = childless | (own == 0.0) | (np.isinf(noise) & np.isfinite(own))
        weight[alone], joint[alone] = 1.0, own[alone]
        counts[number] = np.where(alone, counts[number], weight * counts[number] + (1.0 - weight) * below)
        upward[number] = joint
        sums[number], totals[number] = below, noise
    return upward, sums, totals


def _sums(parents: Ints, values: Floats, size: int) -> Floats:
    return np.asarray(np.bincount(parents, weights=values, minlength=size), dtype=np.float64)


def _share(upward: Floats, totals: Floats, parents: Ints) -> Floats:
    """The part of its parent's surplus each node takes over: V/T, equal parts among the unmeasured, 0 if T = 0."""
    above = totals[parents]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(above > 0.0, upward / above, 0.0)
    open_below = np.isinf(above)
    if open_below.any():
        unknown = np.isinf(upward)
        number = np.bincount(parents, weights=unknown, minlength=totals.size)
        share[open_below] = (unknown / np.maximum(number[parents], 1.0))[open_below]
    return np.asarray(share)


def _checked(
    tree: HistogramTree, values: Sequence[npt.ArrayLike], variances: Sequence[npt.ArrayLike]
) -> tuple[list[Floats], list[Floats]]:
    if len(values) != len(tree.sizes) or len(variances) != len(tree.sizes):
        raise UsageError("tree", f"needs values and variances of all {len(tree.sizes)} levels, the root first.")
    counts, spread = [], []
    for number, (given, noise, size) in enumerate(zip(values, variances, tree.sizes, strict=True)):
        level = np.array(np.broadcast_to(np.asarray(noise, dtype=np.float64), size))
        if np.isnan(level).any() or level.min() < 0.0:
            raise UsageError(f"tree: level {number}", "variances must be 0 or more.")
        count = np.broadcast_to(np.asarray(given, dtype=np.float64), size)
        if not np.all(np.isfinite(count) | np.isinf(level)):
            raise UsageError(f"tree: level {number}", "values must be finite where they were measured.")
        counts.append(np.where(np.isinf(level), 0.0, count))
        spread.append(level)
    return counts, spread
