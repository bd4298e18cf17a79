"""Tables along a junction tree: from arbitrary factors to conditional distributions, and from those to joint tables.

A bag's table has one row per cell of its separator and one column per cell of its fresh columns (both row-major, in
the order of the domain). In calibrated form a row is a distribution or all zero, and a zero row is never reached:
the parent gives it no mass. So records can be drawn bag by bag, and any such tables are a valid model.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.models.graphical.junction_tree import JunctionTree

__all__ = ["calibrate", "from_bag_order", "joints", "spread", "sum_to", "table_faults"]

Floats = npt.NDArray[np.float64]

_SUM_TOLERANCE = 1e-9


def spread(domain: Domain, axes: Sequence[str], part: Clique, values: npt.NDArray[np.generic]) -> Floats:
    """A flat table of `part`, shaped so that it multiplies an array with these axes."""
    order = [name for name in axes if name in part]
    turned = values.reshape(domain.shape(part)).transpose([part.index(name) for name in order])
    return np.asarray(turned.reshape([domain.sizes[name] if name in part else 1 for name in axes]))


def sum_to(axes: Sequence[str], table: Floats, part: Sequence[str]) -> Floats:
    """The sums of an array with these axes over all but `part`, with the axes of `part` in its order."""
    others = tuple(place for place, name in enumerate(axes) if name not in part)
    order = [name for name in axes if name in part]
    return np.asarray(table.sum(axis=others).transpose([order.index(name) for name in part]))


def from_bag_order(tree: JunctionTree, bag: int, table: Floats) -> Floats:
    """A flat table of the bag in the order of the domain, as rows (separator) and columns (fresh)."""
    names, separator, fresh = tree.bags[bag], tree.separators[bag], tree.fresh[bag]
    turned = table.reshape(tree.domain.shape(names)).transpose([names.index(name) for name in (*separator, *fresh)])
    return np.ascontiguousarray(turned).reshape(tree.domain.cells(separator), tree.domain.cells(fresh))


def calibrate(tree: JunctionTree, factors: Sequence[Floats]) -> tuple[tuple[Floats, ...], float]:
    """The conditional tables of the distribution proportional to the product of the factors, and its log mass.

    Zero where a factor is zero. The log mass is −inf if nothing is left.
    """
    domain = tree.domain
    tables: list[Floats] = [np.zeros(0)] * len(factors)
    messages: list[Floats] = [np.ones(1)] * len(factors)
    logarithm = 0.0
    for bag in reversed(range(len(factors))):
        axes = (*tree.separators[bag], *tree.fresh[bag])
        product = factors[bag].reshape(domain.shape(axes))
        for child in tree.children[bag]:
            product = product * spread(domain, axes, tree.separators[child], messages[child])
        rows = np.ascontiguousarray(product).reshape(factors[bag].shape)
        sums = rows.sum(axis=1)
        # Dividing by a subnormal sum could overflow; such a row has no mass that could matter.
        live = sums > 1e-300
        tables[bag] = np.where(live[:, None], rows / np.where(live, sums, 1.0)[:, None], 0.0)
        most = float(sums.max())
        if most <= 1e-300:
            return tuple(factors), -math.inf
        messages[bag] = np.where(live, sums, 0.0) / most
        logarithm += math.log(most)
    return tuple(tables), logarithm


def joints(tree: JunctionTree, tables: Sequence[Floats]) -> tuple[Floats, ...]:
    """The joint distribution of every bag, as arrays with the axes (separator, fresh)."""
    domain = tree.domain
    found: list[Floats] = []
    for bag, table in enumerate(tables):
        rows = table
        if bag:
            parent = tree.parents[bag]
            axes = (*tree.separators[parent], *tree.fresh[parent])
            rows = table * sum_to(axes, found[parent], tree.separators[bag]).reshape(-1, 1)
        found.append(rows.reshape(domain.shape((*tree.separators[bag], *tree.fresh[bag]))))
    return tuple(found)


def table_faults(tree: JunctionTree, tables: Sequence[Floats]) -> list[str]:
    """What keeps these tables from being calibrated, in words; empty if nothing does."""
    if len(tables) != len(tree.bags):
        return ["needs one table per bag."]
    zero_rows: list[npt.NDArray[np.bool_]] = []
    for bag, table in enumerate(tables):
        shape = (tree.domain.cells(tree.separators[bag]), tree.domain.cells(tree.fresh[bag]))
        if table.shape != shape:
            return [f"table {bag} must have {shape[0]:,} rows and {shape[1]:,} columns."]
        if not np.isfinite(table).all() or table.min() < 0.0:
            return ["probabilities must be finite and 0 or more."]
        sums = table.sum(axis=1)
        zero_rows.append(sums == 0.0)
        if np.any(np.abs(sums[sums > 0.0] - 1.0) > _SUM_TOLERANCE) or not sums.any():
            return ["the probabilities of a row must add up to 1."]
    for bag, parent in enumerate(tree.parents):
        if bag and zero_rows[bag].any():
            axes = (*tree.separators[parent], *tree.fresh[parent])
            reached = sum_to(axes, tables[parent].reshape(tree.domain.shape(axes)), tree.separators[bag]).ravel()
            if np.any(reached[zero_rows[bag]] > 0.0):
                return ["a combination that can occur has no continuation."]
    return []
