"""What a model may be asked: cliques that fit in memory, and conditions on codes that exist."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from understudy.errors import ResourceError, UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain

__all__ = ["MARGINAL_CELLS", "asked_clique", "asked_codes"]

MARGINAL_CELLS = 10**8
"""Most cells of a marginal that a model hands out (800 MB)."""


def asked_clique(domain: Domain, columns: Iterable[str]) -> Clique:
    """The clique of these columns in schema order.

    Raises:
        ResourceError: if its table would be too large to hold.
    """
    wanted = domain.clique(columns)
    cells = domain.cells(wanted)
    if cells > MARGINAL_CELLS:
        where = f"marginal {' × '.join(wanted)}"
        raise ResourceError(where, cells * 8, MARGINAL_CELLS * 8, "Ask about fewer columns.")
    return wanted


def asked_codes(domain: Domain, name: str, codes: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Which codes of a column a condition allows; codes that the column does not have raise."""
    size = domain.sizes[domain.clique([name])[0]]
    mask = np.zeros(size, dtype=bool)
    wanted = np.asarray(codes, dtype=np.int64).ravel()
    if wanted.size and (wanted.min() < 0 or wanted.max() >= size):
        raise UsageError(f"where {name}", f"codes must lie between 0 and {size - 1}.")
    mask[wanted] = True
    return mask
