"""Quality: a score for choosing among public options, together with the bound that makes it safe.

Score and sensitivity live in one object because they drift apart when they do not (an L2 bound fed to an L1 score is
a known leak). Every implementation is checked by brute force in the contract suite.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from understudy.counts.source import Ints
from understudy.marginals.answer import SCORE_UNIT
from understudy.marginals.clique import Clique

__all__ = ["SCORE_UNIT", "Quality", "WithinQuality"]

Option = TypeVar("Option", covariant=True)


class Quality(Protocol, Generic[Option]):
    """How good each option is, from exact counts."""

    @property
    def name(self) -> str:
        """What the transcript calls the choice."""
        ...

    @property
    def options(self) -> Sequence[Option]:
        """The public candidates."""
        ...

    @property
    def cliques(self) -> Sequence[Clique]:
        """What must be counted to score them."""
        ...

    @property
    def sensitivity(self) -> Fraction:
        """Most any score (in score units, rounding included) moves when one row is added or removed."""
        ...

    @property
    def monotone(self) -> bool:
        """Whether adding a row never lowers any score, or never raises any (proved in the docstring)."""
        ...

    def scores(self, exact: Mapping[Clique, Ints]) -> Ints:
        """One integer per option, higher is better."""
        ...


class WithinQuality(Protocol, Generic[Option]):
    """How good each option is inside every cell of a partition, from the counts of that cell alone."""

    @property
    def name(self) -> str:
        """What the transcript calls the choices."""
        ...

    @property
    def columns(self) -> Sequence[str]:
        """What is counted inside every cell."""
        ...

    @property
    def options(self) -> Sequence[Option]:
        """The public candidates, the same list for all cells."""
        ...

    @property
    def allowed(self) -> npt.NDArray[np.bool_]:
        """Shape (cells, options): which options a cell may take, at least one each."""
        ...

    @property
    def sensitivity(self) -> Fraction:
        """Most any score of a cell (in score units, rounding included) moves when one row enters or leaves it.

        Scores of cells that the row does not lie in must not move: each row of the result may depend on the counts of
        its own cell only.
        """
        ...

    @property
    def monotone(self) -> bool:
        """Whether a row never lowers any score of its cell, or never raises any (proved in the docstring)."""
        ...

    def scores(self, exact: Mapping[str, Ints]) -> Ints:
        """Shape (cells, options), higher is better; `exact[column]` has shape (cells, codes of the column)."""
        ...
