"""The seam of a synthesizer: a frozen recipe, a plan made without data, a run through the curator."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.marginals.forbidden import Forbidden
from understudy.models.model import Model
from understudy.privacy.cost import Cost, Currency
from understudy.privacy.curator import Curator

__all__ = ["Informed", "Mechanism", "Plan", "PublicCounts", "PublicFacts", "SharesStructure", "Step"]

PublicCounts = Callable[[Sequence[Clique]], Mapping[Clique, npt.NDArray[np.int64]]]
"""Exact counts of a public table, which is about nobody who is protected."""

Structure = TypeVar("Structure")


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """All a plan may know: domain, structural zeros, rows per unit, a hint of the number of rows, a public table."""

    domain: Domain
    forbidden: tuple[Forbidden, ...]
    unit_rows: int
    rows_hint: int | None = None
    prepared: tuple[str, ...] = ()
    """Columns whose labels or bins are settled from private rows, and paid for, before the method runs."""
    public: PublicCounts | None = None
    has_public: bool = False
    """Whether a public table is given along, even one that lacks columns and so cannot be counted in a plan."""


@dataclass(frozen=True, slots=True)
class Step:
    """One question of the plan: its share of the cost and the noise that follows from it."""

    name: str
    cost: Cost
    cells: int
    noise_scale: float | None
    expected_error: float | None
    """Expected absolute error of one cell, in rows."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run will ask and need, known before any private row is read."""

    method: str
    cost: Cost
    steps: tuple[Step, ...]
    cells: int
    bytes: int
    seconds: float
    notes: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    fixed: bool = False
    """Whether a run asks just these questions at just these costs, whatever the answers: then the exact laws of the
    noise can be summed beforehand, which buys less noise for the same (ε, δ) than adding up ρ does. Only for plain
    measurements: scores, choices and trees are not summed in this way."""
    refused: str = ""
    """Why no privacy claim may be made about such a run (a method as it was published, with its mistakes)."""
    after_counting: int = 0
    """How many of the bytes are taken only when all rows were read, and so do not add to what reading takes."""
    labels: tuple[str, ...] = ()
    """Private columns of a method that labels public records: the statement also says what a change of them costs."""


class Mechanism(Protocol):
    """A synthesizer: a frozen dataclass whose fields are its options, checked at construction."""

    name: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]
    needs: ClassVar[str]
    limits: ClassVar[str]
    currencies: ClassVar[tuple[Currency, ...]]

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """The questions, their cost (never above `cost`), memory and time; raises ResourceError in advance."""
        ...

    def run(self, curator: Curator, cost: Cost) -> Model:
        """Asks the curator, spends at most `cost`, fits and returns a model."""
        ...


@runtime_checkable
class Informed(Protocol):
    """A method that takes options from a public table, once, before anything is planned."""

    def informed(self, facts: PublicFacts) -> Mechanism:
        """The same method with these options settled; itself if there is no public table."""
        ...


@runtime_checkable
class SharesStructure(Protocol[Structure]):
    """A method that can settle a structure once and measure several copies for it.

    `run` is then the same as `choose_structure` followed by `run_with`, at `structure_share` and the rest of the cost.
    """

    @property
    def shares_structure(self) -> bool:
        """Whether copies that are measured anew are to have one structure in common."""
        ...

    def structure_share(self, facts: PublicFacts) -> Fraction:
        """The share of the cost that settling the structure takes; 0 if there is nothing to pay for."""
        ...

    def plan_structure(self, facts: PublicFacts, cost: Cost) -> Plan:
        """The questions of `choose_structure`."""
        ...

    def plan_with(self, facts: PublicFacts, cost: Cost) -> Plan:
        """The questions of `run_with`."""
        ...

    def choose_structure(self, curator: Curator, cost: Cost) -> Structure:
        """The structure, from answers that cost at most `cost`."""
        ...

    def run_with(self, curator: Curator, cost: Cost, structure: Structure) -> Model:
        """Asks the curator about that structure, spends at most `cost`, fits and returns a model."""
        ...
