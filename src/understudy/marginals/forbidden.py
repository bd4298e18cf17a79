"""Forbidden: cells that a public rule excludes."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.marginals.clique import Clique

__all__ = ["Forbidden"]


@dataclass(frozen=True, slots=True)
class Forbidden:
    """Cells of a small table in which no record can be: `mask[cell]` is True there (flat row-major)."""

    clique: Clique
    mask: npt.NDArray[np.bool_]
