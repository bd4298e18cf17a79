"""STEPS as its papers print it, mistakes included. For studies only: a run like this makes no privacy claim.

Budgets. The papers divide a budget ε_p (per synthetic set) as follows; L layers of p columns, share r for choosing.

    2020   choices   r ε_p/(L − 1) each            true number of choices on a path:  q = min(L, p − 1)
           counts    (1 − r) ε_p/L per layer       true number of counted layers:     Λ = min(L, p − 1) + 1
           true cost ε_p · (r q/(L − 1) + (1 − r) Λ/L): 1.55 ε_p at L = 2, r = 0.1; 1.35 ε_p at L = 3; 1.5 and 1.33
           ε_p for a given sequence (r = 0). It is ε_p for L = p and for groups in two layers: what it was made for.
    2019   counts    c_l ε_p with sensitivity 1/2 for the layers and 1 for the full table; c = 1/(L + 1) each, or half
                     for the full table. Every layer has sensitivity 1, so a layer truly costs 2 c_l ε_p: 1.5 ε_p in
                     all with half_leaf. Its columns were chosen on the private rows for nothing, which the door does
                     not offer: a sequence must be given.

A run is charged what it truly costs: the ε that is asked for is the true cost E, and the printed budget is ε_p =
E/factor (`printed_factor`), so that the paper's ε_p = 1 at L = 2, r = 0.1 is asked for as ε = 1.55. Any ledger stays
right then. The statement still refuses a claim: under the printed budget ε_p, what such a run is for, it is false.

Counts. All columns are padded to b codes, b the largest number of codes; the b-ary rule of Hay et al. (2010) combines a
node of height l (a cell of the full table has l = 1) with its children's sum S, z = ((b^l − b^(l−1)) y + (b^(l−1) − 1)
S)/(b^l − 1), and hands z + (parent − S)/b to each child. The printed weights do not add up to 1; these are the ones
they were taken from. The padded codes are dropped, so children do not add up to their parents. A full table with more
than b cells below a node is not padded: they share what is missing equally. The papers do not say how signed counts
became rows: negatives are set to 0 and the rest scaled.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt

from understudy.errors import UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.partition import Partition
from understudy.mechanisms.tree.layers import TreeCosts, TreeFit, allocation_weights
from understudy.models.nonnegative import clip_rescale
from understudy.models.restrict import allowed
from understudy.models.tree.least_squares import HistogramTree
from understudy.models.tree.structure import Structure
from understudy.models.tree.tree_model import TreeModel
from understudy.privacy.cost import Cost
from understudy.privacy.curator import Curator

__all__ = ["Printed", "fit_printed", "padded_counts", "printed_factor", "printed_shares"]

Floats = npt.NDArray[np.float64]
Printed = Literal["no", "2019", "2020"]


def printed_shares(
    printed: Printed, layers: int, columns: int, *, share: Fraction, allocation: str = "equal"
) -> tuple[Fraction, list[Fraction]]:
    """What one choice, and each counted layer (the full table last), truly costs in units of the printed budget.

    Args:
        printed: the year of the paper.
        layers: L, from 1 to the number of columns.
        columns: p, columns with more than one code.
        share: r, 0 for a given sequence.
        allocation: equal or half_leaf (2019 only).
    """
    upper = min(layers, columns - 1)
    if printed == "2019":
        weights = allocation_weights(upper, allocation)
        return Fraction(0), [2 * weight for weight in weights[:-1]] + [weights[-1]]
    if share and layers < 2:
        raise UsageError("as_published", "the printed price of a choice, rε/(L − 1), divides by zero at L = 1.")
    choice = share / (layers - 1) if share else Fraction(0)
    return choice, [(1 - share) / layers] * (upper + 1)


def printed_factor(
    printed: Printed, layers: int, columns: int, *, share: Fraction = Fraction(0), allocation: str = "equal"
) -> Fraction:
    """True cost of a run whose printed budget is 1.

    >>> float(printed_factor("2020", 2, 15, share=Fraction(1, 10)))
    1.55
    """
    choice, counts = printed_shares(printed, layers, columns, share=share, allocation=allocation)
    return choice * min(layers, columns - 1) + sum(counts, Fraction(0))


def fit_printed(curator: Curator, structure: Structure, costs: TreeCosts, fit: TreeFit) -> TreeModel:
    """Measures every layer that was paid for and the full table, and combines them by the padded rule."""
    counted = [place for place, cost in enumerate(costs.layers, start=1) if cost.epsilon]
    targets: list[Clique | Partition] = [structure.partition(place) for place in counted]
    targets.append(structure.domain.everything())
    parts = [*(costs.layers[place - 1] for place in counted), costs.leaves]
    answers = curator.measure(targets, sum(parts, Cost()), [part.epsilon for part in parts])
    tree = _only(structure, counted)
    cells = np.arange(tree.sizes[-1], dtype=np.int64)
    possible = allowed(structure.domain, structure.domain.everything(), cells, curator.forbidden)
    noisy = [answer.values.astype(np.float64) for answer in answers]
    noisy[-1] = np.where(possible, noisy[-1], 0.0)
    known = None if fit.known_rows is None else float(fit.known_rows)
    widest = max(int(np.bincount(parents).max()) for parents in tree.parents[:-1]) if counted else 0
    padding = max(2, widest, *structure.domain.sizes.values())
    estimates = padded_counts(tree, noisy, padding, known, possible)
    total = max(0.0, float(estimates[0][0]))
    counts = np.zeros(cells.size)
    counts[possible] = clip_rescale(estimates[-1][possible], max(total, 1.0))
    return TreeModel.of(structure, np.where(possible, estimates[-1], 0.0), counts, total, fit.rounding)


def padded_counts(
    tree: HistogramTree,
    noisy: Sequence[Floats],
    padding: int,
    total: float | None = None,
    possible: npt.NDArray[np.bool_] | None = None,
) -> list[Floats]:
    """Counts of every level by the padded rule, the root first; `noisy` holds the levels below the root.

    A node hands 1/`padding` of what is missing to each child, or equal parts where the last level has more children.
    """
    depth = len(tree.parents)
    sizes = tree.sizes
    combined: list[Floats] = [*(np.zeros(0) for _ in range(depth)), np.asarray(noisy[-1], dtype=np.float64)]
    sums: list[Floats] = [np.zeros(0) for _ in range(depth)]
    for level in reversed(range(depth)):
        below = np.bincount(tree.parents[level], weights=combined[level + 1], minlength=sizes[level])
        sums[level] = below.astype(np.float64)
        power = float(padding) ** (depth - level)  # b^(l − 1): the last level has height 1, the one above 2
        own = (padding - 1.0) * power / (padding * power - 1.0)
        if level:
            combined[level] = own * noisy[level - 1] + (1.0 - own) * sums[level]
    combined[0] = sums[0] if total is None else np.array([total])
    found = [combined[0]]
    for level, parents in enumerate(tree.parents):
        share = np.full(sizes[level], 1.0 / padding)
        taking = np.ones(sizes[level + 1], dtype=bool)
        if level == depth - 1:
            taking = taking if possible is None else possible
            share = 1.0 / np.maximum(np.bincount(parents, weights=taking, minlength=sizes[level]), padding)
        missing = ((found[level] - sums[level]) * share)[parents]
        found.append(combined[level + 1] + np.where(taking, missing, 0.0))
    return found


def _only(structure: Structure, counted: Sequence[int]) -> HistogramTree:
    """The tree of these layers and the full table; layers in between are skipped."""
    parents = list(structure.parent_places())
    levels, above = [], 0
    for place in [*counted, structure.layers + 1]:
        level = structure.leaf_parents() if place > structure.layers else parents[place - 1]
        for skipped in reversed(parents[above : place - 1]):
            level = skipped[level]
        levels.append(level)
        above = place
    return HistogramTree(tuple(levels))
