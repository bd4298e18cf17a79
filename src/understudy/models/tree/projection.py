"""Counts of 0 or more on a tree, from the root downwards: each node's children are made to add up to it.

The two ways are those of `models/nonnegative.py`, applied to all sibling sets of a level at once: `clip_rescale` sets
negatives to 0 and scales the rest to the parent (equal shares if nothing is positive), `norm_sub` is the nearest vector
with that sum. Cells that a public rule excludes get nothing and take no part; a node with nothing but such cells below
it gets nothing either. Post-processing, and biased, as every way is; the signed estimates stay in the model.
"""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled
from understudy.errors import UsageError, nearest
from understudy.models.tree.least_squares import HistogramTree

__all__ = ["TreeNegatives", "nonnegative_tree", "project_children"]

TreeNegatives = Literal["clip_rescale", "norm_sub"]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def nonnegative_tree(
    tree: HistogramTree, estimates: Sequence[Floats], total: float, way: str, *, possible: Mask | None = None
) -> list[Floats]:
    """Counts of 0 or more for every level, the root's being `total`, children adding up to their parents.

    Args:
        tree: who is whose parent.
        estimates: signed estimates of each level, the root first.
        total: what everything adds up to, above 0.
        way: `clip_rescale` or `norm_sub`.
        possible: which nodes of the last level may hold anything; all of them by default.
    """
    if way not in get_args(TreeNegatives):
        raise UsageError(f"negatives {way!r}", "is not known here.", nearest(str(way), get_args(TreeNegatives)))
    if not np.isfinite(total) or total <= 0.0:
        raise UsageError("total", f"must be a number above 0, got {total!r}.")
    masks = _possible(tree, possible)
    if not masks[0][0]:
        raise UsageError("tree", "no cell is possible.", "Drop or narrow a rule.")
    counts = [np.array([total])]
    for number, parents in enumerate(tree.parents):
        counts.append(project_children(estimates[number + 1], parents, counts[number], masks[number + 1], way))
    return counts


def project_children(values: Floats, parents: Ints, totals: Floats, possible: Mask, way: str) -> Floats:
    """The values of one level made 0 or more and adding up to `totals` within every sibling set.

    A parent none of whose children is possible must have a total of 0.
    """
    if way == "clip_rescale":
        return _clip_rescale(values, parents, totals, possible)
    order = parents.argsort(kind="stable") if np.any(parents[1:] < parents[:-1]) else np.arange(parents.size)
    ends = np.cumsum(np.bincount(parents, minlength=totals.size))
    projected = np.zeros(values.size)
    _norm_sub(np.ascontiguousarray(values), order, ends, totals, possible, projected)
    return projected


def _clip_rescale(values: Floats, parents: Ints, totals: Floats, possible: Mask) -> Floats:
    kept = np.where(possible, np.maximum(values, 0.0), 0.0)
    sums = np.bincount(parents, weights=kept, minlength=totals.size)
    nothing = sums <= 0.0
    if nothing.any():
        kept = np.where(nothing[parents], possible, kept)
        sums = np.bincount(parents, weights=kept, minlength=totals.size)
    factors = np.divide(totals, sums, out=np.zeros(totals.size), where=sums > 0.0)
    return np.asarray(kept * factors[parents])


def _possible(tree: HistogramTree, leaves: Mask | None) -> list[Mask]:
    """Which nodes of each level may hold something: those with a possible child, or without children."""
    last = np.ones(tree.sizes[-1], dtype=bool) if leaves is None else np.asarray(leaves, dtype=bool)
    if last.shape != (tree.sizes[-1],):
        raise UsageError("tree: possible", f"needs one entry per node of the last level, {tree.sizes[-1]} in all.")
    masks = [last]
    for parents, size in zip(reversed(tree.parents), reversed(tree.sizes[:-1]), strict=True):
        children = np.bincount(parents, minlength=size)
        masks.append((children == 0) | (np.bincount(parents, weights=masks[-1], minlength=size) > 0))
    return masks[::-1]


@compiled()
def _norm_sub(values, order, ends, totals, possible, projected):  # type: ignore[no-untyped-def]
    """Each sibling set onto the simplex of its total (Duchi et al. 2008), as `models.nonnegative.norm_sub` does."""
    largest_set = 0
    start = 0
    for end in ends:
        largest_set = max(largest_set, end - start)
        start = end
    work = np.empty(largest_set)
    start = 0
    for group in range(ends.size):
        end, total = ends[group], totals[group]
        size = 0
        largest = -np.inf
        for place in range(start, end):
            if possible[order[place]]:
                work[size] = values[order[place]]
                largest = max(largest, work[size])
                size += 1
        if size and total > 0.0:
            falling = np.sort(work[:size] - largest)[::-1]
            running, level = 0.0, 0.0
            for count in range(size):
                running += falling[count]
                candidate = (running - total) / (count + 1)
                if falling[count] <= candidate:
                    break
                level = candidate
            mass = 0.0
            for place in range(start, end):
                cell = order[place]
                if possible[cell]:
                    projected[cell] = max(values[cell] - largest - level, 0.0)
                    mass += projected[cell]
            for place in range(start, end):
                projected[order[place]] *= total / mass
        start = end
