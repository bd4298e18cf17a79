"""Judge: what the repeats say about a comparison, at each ε, for one of the tables."""

import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scipy import stats

from studies.verdicts import Answer, Comparison, above, against, alike
from studies.voters.measures import EPSILONS, Measured
from studies.writing import Estimate, estimate

__all__ = ["MARGINS", "SLIGHT", "Claim", "Found", "Judge", "powers", "shorter"]

Found = Mapping[tuple[str, str, float], Sequence[Measured]]
"""Releases by table, system and ε."""

MARGINS = {"SPECKS": 0.03, "chi2": 0.05, "overlap": 0.05}
"""How far two methods may lie apart and still be called similar, by measure."""
SLIGHT = 0.1
"""The same for numbers of coefficients, as a share of all: the source calls 3 of 32 slight."""


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

    def margin(self, measure: str) -> float:
        """The difference that counts as none."""
        if measure == "half l1":
            return 0.01 * self.rows
        if measure in ("same sign", "covered"):
            return SLIGHT * self.coefficients
        return MARGINS[measure.split()[0]]

    @property
    def coefficients(self) -> int:
        return len(self.found[self.table, "Laplace", EPSILONS[1]][0].coefficients)

    def less(
        self, first: Sequence[str], second: Sequence[str], measure: str, epsilons: Sequence[float] = EPSILONS
    ) -> list[Comparison]:
        """Whether each of the first is below each of the second, at each ε."""
        return [
            above(
                *common(self.values(theirs, epsilon, measure), self.values(ours, epsilon, measure)),
                margin=self.margin(measure),
            )
            for epsilon in epsilons
            for ours in first
            for theirs in second
        ]

    def more(
        self, first: Sequence[str], second: Sequence[str], measure: str, epsilons: Sequence[float] = EPSILONS
    ) -> list[Comparison]:
        """Whether each of the first is above each of the second, at each ε."""
        return self.less(second, first, measure, epsilons)

    def over(self, system: str, measures: Sequence[str], epsilons: Sequence[float] = EPSILONS) -> list[float]:
        """The mean over several ε and measures, repeat by repeat."""
        columns = [self.values(system, epsilon, measure) for epsilon in epsilons for measure in measures]
        return [statistics.fmean(row) for row in zip(*columns, strict=True)]

    def less_overall(self, first: Sequence[str], second: Sequence[str], *measures: str) -> list[Comparison]:
        """Whether each of the first is below each of the second in the mean over all ε (and measures)."""
        return [
            above(*common(self.over(theirs, measures), self.over(ours, measures)), margin=self.margin(measures[0]))
            for ours in first
            for theirs in second
        ]

    def more_overall(self, first: Sequence[str], second: Sequence[str], *measures: str) -> list[Comparison]:
        """Whether each of the first is above each of the second in the mean over all ε (and measures)."""
        return self.less_overall(second, first, *measures)

    def similar(
        self, first: Sequence[str], second: Sequence[str], measure: str, epsilons: Sequence[float] = EPSILONS
    ) -> list[Comparison]:
        """Whether each of the first is within the margin of each of the second, at each ε."""
        return [
            alike(
                *common(self.values(ours, epsilon, measure), self.values(theirs, epsilon, measure)),
                margin=self.margin(measure),
            )
            for epsilon in epsilons
            for ours in first
            for theirs in second
        ]

    def similar_overall(self, first: str, second: str, measure: str) -> Comparison:
        """Whether two systems are within the margin in the mean over all ε."""
        pair = common(self.over(first, (measure,)), self.over(second, (measure,)))
        return alike(*pair, margin=self.margin(measure))

    def falls(self, systems: Sequence[str], measure: str) -> list[Comparison]:
        """Whether the measure falls from each ε to the next."""
        return [
            above(self.values(system, low, measure), self.values(system, high, measure), self.margin(measure))
            for system in systems
            for low, high in itertools.pairwise(EPSILONS)
        ]

    def flat(self, systems: Sequence[str], measure: str) -> list[Comparison]:
        """Whether the measure at the other ε stays within the margin of that at the smallest."""
        first = EPSILONS[0]
        return [
            alike(self.values(system, epsilon, measure), self.values(system, first, measure), self.margin(measure))
            for system in systems
            for epsilon in EPSILONS[1:]
        ]

    def level(self, systems: Sequence[str], measure: str, level: float, *, at_least: bool = True) -> list[Comparison]:
        """Whether the measure lies above a level (below it otherwise), at each ε."""
        return [
            against(self.values(system, epsilon, measure), level, at_least=at_least)
            for epsilon in EPSILONS
            for system in systems
        ]

    def spread(self, system: str, epsilon: float, most: float) -> Comparison:
        """Whether the standard deviation of SPECKS over repeats is below so much of its mean (chi-square interval)."""
        values = self.values(system, epsilon, "SPECKS")
        if len(values) < 2:
            return Comparison(Estimate(math.nan, math.inf, len(values)), "open")
        ratio, freedom = statistics.stdev(values) / statistics.fmean(values), len(values) - 1
        low, high = (ratio * math.sqrt(freedom / float(stats.chi2.ppf(share, freedom))) for share in (0.975, 0.025))
        answer: Answer = "yes" if high < most else "no" if low > most else "open"
        return Comparison(Estimate(most - ratio, (high - low) / 2, len(values)), answer)


def common(first: Sequence[float], second: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """The repeats that both systems have: repeats are numbered from 0 in either."""
    both = min(len(first), len(second))
    return first[:both], second[:both]


@dataclass(frozen=True)
class Claim:
    """A printed statement, how a table answers it, and numbers to show beside the verdict.

    `slight`: the source says “slightly”, so that the row tells when leads are larger than the margin.
    """

    source: str
    printed: str
    answers: Callable[[Judge], list[Comparison]]
    most: bool = False
    shown: Callable[[Judge], str] | None = None
    slight: bool = False


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
