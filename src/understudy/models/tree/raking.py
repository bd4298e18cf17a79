"""Raking: a non-negative table moved so that its columns agree with what the signed estimates say about them.

Setting negatives to 0 is biased: in a table with far more cells than rows, noise that stays above 0 in empty cells
pulls every column that no layer measured towards uniform. The sum of the *signed* estimates over a code has no such
bias, only variance: the sum V of its cells' variances. So each column gets a target between the two,

    target = current + w · (signed − current),        w = max(0, 1 − Σ noise / ‖signed − current‖²)

(signed first brought to the known total, in proportion to V; noise is what variance is left then). w is the share of
the difference that noise does not explain, as in James and Stein: near 1 where the signed sums say something, 0 where
they are noise. Then cells are multiplied, column by column, to meet the targets (iterative proportional fitting), and
last by node, so that what the layers measured is kept. Cells that are 0, impossible ones among them, stay 0.

Post-processing: everything here follows from noisy answers and their public variances.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from understudy.marginals.domain import Domain
from understudy.models.nonnegative import norm_sub

__all__ = ["column_targets", "rake"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ROUNDS = 20
CLOSE = 1e-6
"""Rounds end when no column is further than this share of the total from its target."""
LEAST = 1e-3
"""No code is brought below this share of what it held."""


def rake(domain: Domain, counts: Floats, signed: Floats, variances: Floats, nodes: Ints) -> Floats:
    """The table with columns moved towards the signed sums; sums over nodes, and so the total, stay as they are.

    Args:
        domain: what the cells are, row-major.
        counts: of 0 or more, one per cell.
        signed: unbiased estimates of the same cells, and `variances`, their variances.
        nodes: for every cell the node whose sum is kept.
    """
    total = float(counts.sum())
    targets = dict(column_targets(domain, counts, signed, variances))
    if total <= 0.0 or not targets:
        return counts
    moved = counts.copy()
    kept = _by_node(nodes, counts)
    for _ in range(ROUNDS):
        furthest = 0.0
        for place, target in targets.items():
            view = moved.reshape(_around(domain, place))
            current = view.sum(axis=(0, 2))
            furthest = max(furthest, float(np.abs(current - target).sum()))
            view *= _factors(target, current)[None, :, None]
        moved *= _factors(kept, _by_node(nodes, moved))[nodes]
        if furthest <= CLOSE * total:
            break
    return moved


def column_targets(domain: Domain, counts: Floats, signed: Floats, variances: Floats) -> Iterator[tuple[int, Floats]]:
    """For every column that the signed sums say something about: its place, and the counts of its codes to aim at."""
    total = float(counts.sum())
    for place, name in enumerate(domain.columns):
        if domain.sizes[name] < 2:
            continue
        shape = _around(domain, place)
        current = counts.reshape(shape).sum(axis=(0, 2))
        noise = variances.reshape(shape).sum(axis=(0, 2))
        if not np.isfinite(noise).all() or noise.sum() <= 0.0:
            continue
        found = signed.reshape(shape).sum(axis=(0, 2))
        found = found - (found.sum() - total) * noise / noise.sum()
        apart = found - current
        distance = float(apart @ apart)
        left = float((noise - noise**2 / noise.sum()).sum())
        if distance > left:
            aimed = norm_sub(current + (1.0 - left / distance) * apart, total)
            # No code that holds something is emptied: a node that lost all its cells could not keep its sum.
            aimed = np.maximum(aimed, LEAST * current)
            yield place, aimed * (total / aimed.sum())


def _around(domain: Domain, place: int) -> tuple[int, int, int]:
    """Cells before, of and after a column: the shape in which its codes are the middle axis."""
    sizes = [domain.sizes[name] for name in domain.columns]
    before = int(np.prod(sizes[:place], dtype=np.int64))
    after = int(np.prod(sizes[place + 1 :], dtype=np.int64))
    return before, sizes[place], after


def _by_node(nodes: Ints, counts: Floats) -> Floats:
    return np.bincount(nodes, weights=counts).astype(np.float64)


def _factors(target: Floats, current: Floats) -> Floats:
    """What to multiply by; where there is nothing, nothing can be made of it."""
    return np.divide(target, current, out=np.zeros_like(target), where=current > 0.0)
