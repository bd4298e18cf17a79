"""Quality: a score for choosing among public options, together with the bound that makes it safe.

Score and sensitivity live in one object because they drift apart when they do not (an L2 bound fed to an L1 score is
a known leak). Every implementation is checked by brute force in the contract suite.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Generic, Protocol, TypeVar

from understudy.counts.source import Ints
from understudy.marginals.clique import Clique

__all__ = ["SCORE_UNIT", "Quality"]

SCORE_UNIT = 2**20
"""Scores are integers in units of 2⁻²⁰, so that the sensitivity holds exactly and not up to rounding."""

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
