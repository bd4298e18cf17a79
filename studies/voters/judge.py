"""Judge: what the repeats say about a comparison, at each ε, for one of the tables."""

import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from studies.verdicts import Answer, above, alike
from studies.voters.measures import EPSILONS, Measured
from studies.writing import Estimate, estimate

__all__ = ["ALIKE", "Claim", "Found", "Judge", "powers", "shorter"]

Found = Mapping[tuple[str, str, float], Sequence[Measured]]
"""Releases by table, system and ε."""

ALIKE = {"SPECKS": 0.03, "chi2": 0.05, "overlap": 0.05}
"""How far two methods may lie apart and still be called similar, by measure."""


@dataclass(frozen=True)
class Judge:
    """All releases of one table."""

    found: Found
    table: str
    rows: int

    def values(self, system: str, epsilon: float, measure: str) -> list[float]:
        """The measure in every repeat in which it was taken."""
        runs = self.found[self.table, system, epsilon]
        return [run.numbers[measure] for run in runs if measure in run.numbers]

    def mean(self, system: str, epsilon: float, measure: str) -> Estimate:
        return estimate(self.values(system, epsilon, measure))

    def less(
        self, first: Sequence[str], second: Sequence[str], measure: str, epsilons: Sequence[float] = EPSILONS
    ) -> list[Answer]:
        """Whether each of the first is below each of the second, at each ε."""
        return [
            above(self.values(theirs, epsilon, measure), self.values(ours, epsilon, measure))
            for epsilon in epsilons
            for ours in first
            for theirs in second
        ]

    def more(
        self, first: Sequence[str], second: Sequence[str], measure: str, epsilons: Sequence[float] = EPSILONS
    ) -> list[Answer]:
        """Whether each of the first is above each of the second, at each ε."""
        return self.less(second, first, measure, epsilons)

    def similar(
        self, first: Sequence[str], second: Sequence[str], measure: str, epsilons: Sequence[float] = EPSILONS
    ) -> list[Answer]:
        """Whether each of the first is within the margin of each of the second, at each ε."""
        margin = 0.01 * self.rows if measure == "half l1" else ALIKE[measure.split()[0]]
        return [
            alike(self.values(ours, epsilon, measure), self.values(theirs, epsilon, measure), margin)
            for epsilon in epsilons
            for ours in first
            for theirs in second
        ]

    def falls(self, systems: Sequence[str], measure: str) -> list[Answer]:
        """Whether the measure falls from each ε to the next."""
        return [
            above(self.values(system, low, measure), self.values(system, high, measure))
            for system in systems
            for low, high in itertools.pairwise(EPSILONS)
        ]

    def flat(self, systems: Sequence[str], measure: str) -> list[Answer]:
        """Whether the measure at the other ε stays within the margin of that at the smallest."""
        margin = ALIKE[measure.split()[0]]
        first = EPSILONS[0]
        return [
            alike(self.values(system, epsilon, measure), self.values(system, first, measure), margin)
            for system in systems
            for epsilon in EPSILONS[1:]
        ]

    def at_least(self, systems: Sequence[str], measure: str, level: float) -> list[Answer]:
        """Whether the measure lies above a level, at each ε."""
        return [_against(self.mean(system, epsilon, measure), level) for epsilon in EPSILONS for system in systems]


def _against(found: Estimate, level: float) -> Answer:
    return "yes" if found.low >= level else "no" if found.high < level else "open"


@dataclass(frozen=True)
class Claim:
    """A printed statement, how a table answers it, and numbers to show beside the verdict."""

    source: str
    printed: str
    answers: Callable[[Judge], list[Answer]]
    most: bool = False
    shown: Callable[[Judge], str] | None = None


def powers(epsilon: float) -> str:
    """ε as a power of e, as the sources print it.

    >>> powers(EPSILONS[0]), powers(1.0)
    ('e^−2', '1')
    """
    power = EPSILONS.index(epsilon) - 2
    return {0: "1", 1: "e"}.get(power, f"e^{power}".replace("-", "−"))


def shorter(judge: Judge, epsilon: float) -> list[float]:
    """Share of coefficients whose interval is shorter by STEPS-2 than by Laplace, repeat by repeat."""
    found = []
    ours, theirs = (judge.found[judge.table, name, epsilon] for name in ("AIC-2", "Laplace"))
    for first, second in zip(ours, theirs, strict=True):
        pairs = zip(first.coefficients, second.coefficients, strict=True)
        widths = [
            (one.synthetic.high - one.synthetic.low, other.synthetic.high - other.synthetic.low)
            for one, other in pairs
            if one.synthetic is not None and other.synthetic is not None
        ]
        found.append(statistics.fmean(width[0] < width[1] for width in widths) if widths else 0.0)
    return found
