"""Joint tables for columns that rules tie together.

Start: the product of the parts, with the impossible cells at 0. That alone would distort the parts (a city's share
would be multiplied by its state's share), so the table is then scaled towards each part in turn (iterative
proportional fitting, Deming and Stephan 1940): of all tables on the possible cells that have the wanted parts, the
limit is the one closest to the product. Noisy parts may contradict the rules; then no such table exists, and the last
round is returned, which is a distribution on the possible cells all the same.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.marginals.forbidden import Forbidden
from understudy.models.restrict import allowed, sub_indices

__all__ = ["joint_table"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_ROUNDS = 200
_WORK = 400_000_000
_TOLERANCE = 1e-10


def joint_table(
    domain: Domain, parts: Mapping[Clique, Floats], forbidden: Sequence[Forbidden]
) -> tuple[Clique, Ints, Floats]:
    """The joint table (clique, possible cells, probabilities) of disjoint parts under the rules within them.

    The rules must leave a cell possible (`restrict.check_linked` sees to that).
    """
    clique = domain.clique(name for part in parts for name in part)
    cells = np.arange(domain.cells(clique), dtype=np.int64)
    cells = cells[allowed(domain, clique, cells, forbidden)]
    places = [sub_indices(domain, clique, cells, part) for part in parts]
    targets = list(parts.values())
    table = _product(places, targets)
    if table.sum() <= 0.0:
        # Noise can leave positive mass on impossible combinations only. A run that was paid for must still end with
        # legal rows, so every code gets a little mass; this looks at noisy answers and is free.
        targets = [(target + 1.0 / target.size) / 2.0 for target in targets]
        table = _product(places, targets)
    table = _fit(table / table.sum(), places, targets)
    return clique, cells, table


def _product(places: Sequence[Ints], targets: Sequence[Floats]) -> Floats:
    table = np.ones(places[0].size)
    for place, target in zip(places, targets, strict=True):
        table *= target[place]
    return table


def _fit(table: Floats, places: Sequence[Ints], targets: Sequence[Floats]) -> Floats:
    if len(places) == 1:
        return table
    # A cell with mass has mass in every part, so no factor is 0 and the sum stays above 0.
    rounds = min(_ROUNDS, max(1, _WORK // (table.size * len(places))))
    for _ in range(rounds):
        gap = 0.0
        for place, target in zip(places, targets, strict=True):
            current = np.bincount(place, weights=table, minlength=target.size)
            gap = max(gap, float(np.abs(current - target).max()))
            ratio = np.divide(target, current, out=np.ones_like(current), where=current > 0.0)
            table = table * ratio[place]
        table = table / table.sum()
        if gap < _TOLERANCE:
            break
    return table
