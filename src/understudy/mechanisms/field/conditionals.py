"""From noisy tables of families to the conditional tables of a network. Post-processing throughout.

As published (`plain_conditional`): negatives set to 0, each combination of parents scaled to 1; a combination without
mass takes the child's own distribution, from the sums of the same table.

Refined (`refined_conditional`), where the columns were measured on their own first and the network so far says how the
parents are distributed: the noisy table is drawn towards independence of child and parents as far as its noise
warrants (empirical Bayes), negatives are removed by projection, and the table is scaled in turn until its sums are the
network's distribution of the parents and the child's own one (iterative proportional fitting), so that the noise of
many cells does not move what was measured well.

Cells that rules exclude have chance 0. A combination of parents that rules leave no code is all 0 (see
`models/network/bayesian.py`).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.marginals.forbidden import Forbidden
from understudy.mechanisms.field.parents import FamilyTable
from understudy.models.graphical.estimate import NoisyTable, shrink
from understudy.models.network.bayesian import FIELD_BYTES, field_bytes, field_of
from understudy.models.network.node import Conditional, layout_of
from understudy.models.nonnegative import norm_sub
from understudy.models.restrict import allowed

__all__ = ["parents_joint", "plain_conditional", "possible_cells", "refined_conditional"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

_ROUNDS = 50
_CLOSE = 1e-9


def possible_cells(table: FamilyTable, forbidden: Sequence[Forbidden]) -> Bools:
    """Which cells of the family's table (combinations × codes) rules allow; rules with a coarsened parent are left out.

    (Rules force their columns into the parents at full detail, so a rule whose last column is the child is never.)
    """
    family, domain = table.family, table.domain
    fine = [name for place, name in enumerate(family.parents) if not family.level(place)]
    names = [*fine, family.child]
    shape = [size if name in fine else 1 for name, size in zip(family.parents, table.sizes, strict=True)]
    cells = np.arange(domain.cells(names), dtype=np.int64)
    found = allowed(domain, names, cells, forbidden).reshape(*shape, domain.sizes[family.child])
    whole = np.broadcast_to(found, (*table.sizes, domain.sizes[family.child]))
    return np.ascontiguousarray(whole).reshape(-1, domain.sizes[family.child])


def plain_conditional(counts: Floats, possible: Bools) -> Floats:
    """Chances of the child given each combination, from noisy counts of the same shape."""
    kept = np.where(possible, np.maximum(counts, 0.0), 0.0)
    own = kept.sum(axis=0)
    return _scaled(kept, own if own.sum() > 0.0 else np.ones(own.size), possible)


def refined_conditional(noisy: Floats, variance: float, own: Floats, joint: Floats, possible: Bools) -> Floats:
    """Chances of the child given each combination.

    Args:
        noisy: Noisy counts as shares of the records, combinations × codes.
        variance: Of each of them.
        own: The child's own distribution.
        joint: How likely the network so far says each combination is.
        possible: Cells that rules allow.
    """
    expected = np.where(possible, np.multiply.outer(joint, own), 0.0)
    if not expected.sum() > 0.0:
        return plain_conditional(noisy, possible)
    flat = NoisyTable(Clique(), noisy.ravel(), max(variance, 1e-18))
    drawn = shrink(flat, expected.ravel(), possible.ravel()).values
    table = np.zeros(possible.size)
    table[possible.ravel()] = norm_sub(drawn[possible.ravel()], 1.0)
    fitted = _proportional(np.ascontiguousarray(table.reshape(possible.shape)), joint, own)
    return _scaled(fitted, own, possible)


def parents_joint(domain: Domain, conditionals: Sequence[Conditional], table: FamilyTable) -> Floats | None:
    """How likely the network so far says each combination of the family's parents is; None where that does not fit."""
    family = table.family
    if not family.parents:
        return np.ones(1)
    wanted = domain.clique(family.parents)
    part = Domain.of({item.child: domain.sizes[item.child] for item in conditionals})
    layout = layout_of(part, conditionals)
    nodes = layout.above(wanted)
    cells = domain.cells(wanted)
    if (
        8 * cells > FIELD_BYTES // 16
        or field_bytes(layout.whole, nodes, [layout.whole.clique(wanted)]) > FIELD_BYTES // 16
    ):
        return None
    names = {node.child for node in nodes}
    whole = Domain.of({name: size for name, size in layout.whole.sizes.items() if name in names})
    found = field_of(whole, nodes, 1.0).marginal(whole.clique(wanted))
    order = [name for name in whole.columns if name in wanted]
    turned = found.reshape(whole.shape(order)).transpose([order.index(name) for name in family.parents])
    for axis, groups in enumerate(table.groups):
        if groups is not None:
            size = int(groups.max()) + 1
            moved = np.moveaxis(turned, axis, 0)
            merged = np.zeros((size, *moved.shape[1:]))
            np.add.at(merged, groups, moved)
            turned = np.moveaxis(merged, 0, axis)
    return np.ascontiguousarray(turned).ravel()


def _proportional(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """The table scaled in turn towards these sums; where they cannot be met (zero cells), as near as that brings it."""
    for _ in range(_ROUNDS):
        sums = table.sum(axis=0)
        table = table * np.divide(columns, sums, out=np.zeros_like(sums), where=sums > 0.0)
        sums = table.sum(axis=1)
        scale = np.divide(rows, sums, out=np.zeros_like(sums), where=sums > 0.0)
        table = table * scale[:, None]
        if np.abs(table.sum(axis=0) - columns).sum() < _CLOSE:
            break
    return table


def _scaled(table: Floats, own: Floats, possible: Bools) -> Floats:
    """Rows that add up to 1; those without mass take the child's own distribution as far as rules allow it."""
    sums = table.sum(axis=1)
    empty = ~(sums > 1e-300)
    instead = np.where(possible[empty], own, 0.0)
    bare = ~(instead.sum(axis=1) > 1e-300)
    instead[bare] = possible[empty][bare]
    filled = table.copy()
    filled[empty] = instead
    sums = filled.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(filled, sums, out=np.zeros_like(filled), where=sums > 0.0))
