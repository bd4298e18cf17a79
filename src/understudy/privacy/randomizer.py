"""The seam between the door and the noise: requests go in with exact integers, noisy answers come out.

There is one implementation for releases (`secure.py`), which has no seed and no state. Test doubles that record and
replay answers live in `understudy.testing` and mark themselves as not private.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt

from understudy.counts.source import Ints, LabelCounts, OccupiedCells, Records
from understudy.marginals.answer import Law

__all__ = ["Bools", "Randomizer", "Request"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked, in public terms: everything the noise depends on except the private numbers.

    `sensitivity` is the most the exact input may move between neighbours: L1 distance for Laplace noise, L2 for
    Gaussian noise, largest single change for scores (`select`, `score`), the largest change of each cell summed over
    the cells for choices within cells, L1 distance in grid units for every layer of a tree. Replay tests hold each
    input against it.

    `bias` and `layer` belong to growing trees: how much a node's count is lowered per level, and which layer is asked
    (the first one, 0, carries the price of the whole tree).

    Training: `sensitivity` bounds the L2 norm of a unit's vector, `layer` is the step (0: a look at all units), a unit
    takes part with probability 1 − e^(−rate), and `delta` (in units) is the δ of the whole training.
    """

    kind: str
    name: str
    cells: int
    law: Law | None
    sensitivity: Fraction
    rate: Fraction = Fraction(0)
    threshold: int = 0
    monotone: bool = False
    bias: int = 0
    layer: int = 0
    delta: int = 0


class Randomizer(Protocol):
    """Turns exact integers into answers that may leave."""

    @property
    def private(self) -> bool:
        """Whether its answers may be released."""
        ...

    def add_noise(self, request: Request, exact: Ints) -> Ints:
        """exact + one fresh draw of `request.law` per cell, as int64."""
        ...

    def add_sparse_noise(self, request: Request, occupied: OccupiedCells) -> OccupiedCells:
        """Equal in law to noise on all `request.cells` cells, keeping those ≥ `request.threshold` (≥ 1)."""
        ...

    def keep_frequent(self, request: Request, exact: LabelCounts) -> LabelCounts:
        """Labels whose noisy count reaches `request.threshold`, with that noisy count, in code point order."""
        ...

    def choose(self, request: Request, scores: Ints) -> int:
        """Index drawn with probability ∝ exp(rate × score); scores are integers (fixed point)."""
        ...

    def choose_each(self, request: Request, scores: Ints, allowed: Bools) -> Ints:
        """For every row of `scores` an index of an allowed option, drawn with probability ∝ exp(rate × score)."""
        ...

    def split(self, request: Request, biased: Ints) -> Bools:
        """Whether each biased count plus one fresh draw of `request.law` lies above `request.threshold`."""
        ...

    def sample(self, request: Request, records: Records) -> Ints:
        """Which units take part, increasing: each on its own, with probability 1 − e^(−request.rate)."""
        ...
