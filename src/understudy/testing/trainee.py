"""Trainee: the smallest trainer. It counts the codes of a column in every step, as often as its course says. For tests.

Every row adds `length` in the place of its code; a unit of several rows adds several. Noisy sums are kept as they come.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from understudy.counts.source import Ints
from understudy.marginals.answer import Course, Law
from understudy.privacy.training.train import Contributions

__all__ = ["Trainee"]


@dataclass(slots=True)
class Trainee:
    """Counts `codes` codes of the first column; `sums` holds what it was told."""

    codes: int
    course: Course
    length: int
    name: str = "trainee"
    sums: list[Ints] = field(default_factory=list)

    @property
    def first_cells(self) -> int:
        """One coordinate per code."""
        return self.codes

    @property
    def cells(self) -> int:
        """One coordinate per code, and one that nobody touches."""
        return self.codes + 1

    def look(self, codes: npt.NDArray[np.unsignedinteger]) -> Contributions:
        """The length in the place of the code."""
        shared = np.full((len(codes), 1), self.length, dtype=np.int32)
        return Contributions(codes[:, :1].astype(np.int32), shared, np.zeros((len(codes), 0), dtype=np.int32))

    def looked(self, noisy: Ints, law: Law) -> None:
        """Keeps the sum."""
        self.sums.append(noisy)

    def contribute(self, codes: npt.NDArray[np.unsignedinteger]) -> Contributions:
        """The same as in the first look, and 0 behind."""
        given = self.look(codes)
        return Contributions(given.blocks, given.shared, np.zeros((len(codes), 1), dtype=np.int32))

    def step(self, noisy: Ints) -> None:
        """Keeps the sum."""
        self.sums.append(noisy)
