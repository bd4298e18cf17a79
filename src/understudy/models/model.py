"""The seam every fitted distribution offers: marginals, rows, conditioning, and a file form without pickle."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain

__all__ = ["Codes", "Model"]

Codes = Mapping[str, npt.NDArray[np.integer]]
"""Column name → code of each record (arrays of equal length), every column of the domain."""


class Model(Protocol):
    """A distribution over coded records."""

    kind: ClassVar[str]

    @property
    def domain(self) -> Domain:
        """The codes it speaks about."""
        ...

    @property
    def total(self) -> float:
        """Estimated number of records of the private table, from noisy answers, never below 0."""
        ...

    def marginal(self, clique: Clique) -> npt.NDArray[np.float64]:
        """Probabilities of the clique's cells (flat row-major, summing to 1)."""
        ...

    def draw(self, rows: int, rng: np.random.Generator) -> Codes:
        """`rows` independent records; forbidden cells never occur."""
        ...

    def condition(self, where: Mapping[str, npt.NDArray[np.integer]]) -> Self:
        """The distribution given that each named column holds one of the codes; raises if that cannot happen."""
        ...

    def save(self, folder: Path) -> None:
        """Writes `model.json` and `arrays.npz`-like raw arrays into an existing empty folder."""
        ...

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads what `save` wrote, checking shapes, sizes and ranges before use."""
        ...
