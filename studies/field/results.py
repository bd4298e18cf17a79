"""What the runs say: every measure of every method at every ε, repeat by repeat, and the order it puts them in."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from scipy import stats

from studies.runs import Record
from studies.verdicts import Comparison, above, alike
from studies.writing import Estimate, estimate

__all__ = ["MARGINS", "MEASURES", "Measure", "Results", "compared", "margin"]


@dataclass(frozen=True)
class Measure:
    """A measure: its name, the scores whose mean it is, and which way is better."""

    name: str
    scores: tuple[str, ...]
    higher: bool = False
    logarithmic: bool = False

    def value(self, record: Record) -> float | None:
        """The measure of a run, turned so that it can be averaged; None where it is not defined."""
        parts = [record.get(score) for score in self.scores]
        if not all(isinstance(part, float) for part in parts):
            return None
        mean = math.fsum(float(str(part)) for part in parts) / len(parts)
        return math.log(mean) if self.logarithmic else mean


MEASURES: Mapping[str, Measure] = {
    "match1": Measure("3-way score", ("clustering",), higher=True),
    "match2": Measure("match score (3-way, conjunctions)", ("clustering", "classification"), higher=True),
    "match3": Measure(
        "match score (3-way, conjunctions, incomes)", ("clustering", "classification", "regression"), higher=True
    ),
    "cart_ratio": Measure("CART pMSE-ratio (log)", ("cart_ratio",), logarithmic=True),
    "cart_specks": Measure("CART SPECKS", ("cart_specks",)),
    "logistic_ratio": Measure("logistic pMSE-ratio (log)", ("logistic_ratio",), logarithmic=True),
    "logistic_specks": Measure("logistic SPECKS", ("logistic_specks",)),
    "common_ratio": Measure("CART pMSE-ratio (log), one complexity", ("common_ratio",), logarithmic=True),
    "common_specks": Measure("CART SPECKS, one complexity", ("common_specks",)),
    "complexity": Measure("complexity of the tree (CP)", ("complexity",)),
    "error": Measure("cross-validated error of the tree", ("error",)),
    "columns": Measure("mean total variation of single columns", ("columns",)),
}


MARGINS = {"match": 10_000.0, "ratio": 0.1, "specks": 0.03}
"""Differences that count as none: of scores (0 to 1,000,000), of logarithms of ratios, of SPECKS."""


def margin(measure: str) -> float:
    """The difference that counts as none."""
    return next(value for name, value in MARGINS.items() if name in measure)


def compared(first: Mapping[int, float], second: Mapping[int, float], measure: str) -> Comparison:
    """Whether the first is better than the second, by common repeats."""
    common = [repeat for repeat in first if repeat in second]
    one, other = ([values[repeat] for repeat in common] for values in (first, second))
    return above(one, other, margin(measure)) if MEASURES[measure].higher else above(other, one, margin(measure))


@dataclass(frozen=True)
class Results:
    """All records of a study."""

    records: Sequence[Record]

    @classmethod
    def of(cls, records: Sequence[Record]) -> "Results":
        return cls(tuple(records))

    def renamed(self, names: Mapping[str, str]) -> "Results":
        """The same with some entrants under the names of others, whose own records go."""
        kept = [one for one in self.records if one["entrant"] not in names.values()]
        return Results.of([one | {"entrant": names.get(str(one["entrant"]), one["entrant"])} for one in kept])

    @cached_property
    def by_cell(self) -> Mapping[tuple[str, str, float], Sequence[Record]]:
        """The records of every method on every table at every ε."""
        found: dict[tuple[str, str, float], list[Record]] = {}
        for one in self.records:
            found.setdefault((str(one["bench"]), str(one["entrant"]), float(str(one["epsilon"]))), []).append(one)
        return found

    def methods(self, bench: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(str(one["entrant"]) for one in self.records if one["bench"] == bench))

    def epsilons(self, bench: str) -> tuple[float, ...]:
        return tuple(dict.fromkeys(float(str(one["epsilon"])) for one in self.records if one["bench"] == bench))

    def at(self, bench: str, measure: str, method: str, epsilon: float) -> dict[int, float]:
        """The measure by repeat, where it is defined."""
        found = {}
        for one in self.by_cell[bench, method, epsilon]:
            value = MEASURES[measure].value(one)
            if value is not None:
                found[int(str(one["repeat"]))] = value
        return found

    def values(self, bench: str, measure: str, method: str, epsilon: float) -> list[float]:
        """The measure in every repeat that defines it."""
        return list(self.at(bench, measure, method, epsilon).values())

    def by_repeat(self, bench: str, measure: str, method: str) -> dict[int, float]:
        """The mean over all ε, repeat by repeat: how a match was decided."""
        columns = [self.at(bench, measure, method, epsilon) for epsilon in self.epsilons(bench)]
        common = [repeat for repeat in columns[0] if all(repeat in column for column in columns)]
        return {repeat: math.fsum(column[repeat] for column in columns) / len(columns) for repeat in common}

    def over_epsilons(self, bench: str, measure: str, method: str) -> list[float]:
        return list(self.by_repeat(bench, measure, method).values())

    def against(self, bench: str, measure: str, first: str, second: str) -> Comparison:
        """Whether the first method is better than the second in the mean over ε, by common repeats."""
        one, other = (self.by_repeat(bench, measure, name) for name in (first, second))
        return compared(one, other, measure)

    def paired(self, bench: str, measure: str, *methods: str) -> list[list[float]]:
        """The mean over ε of several methods in the repeats that all of them have."""
        columns = [self.by_repeat(bench, measure, name) for name in methods]
        common = [repeat for repeat in columns[0] if all(repeat in column for column in columns)]
        return [[column[repeat] for repeat in common] for column in columns]

    def within(self, bench: str, measure: str, first: str, second: str, limit: float) -> Comparison:
        """Whether two methods are within the limit in the mean over ε, by common repeats."""
        one, other = self.paired(bench, measure, first, second)
        return alike(one, other, limit)

    def change(self, bench: str, measure: str, method: str) -> Comparison:
        """Whether the method is better at the largest ε than at the smallest."""
        return compared(*self._ends(bench, measure, method), measure)

    def level_change(self, bench: str, measure: str, method: str, limit: float) -> Comparison:
        """Whether the measure at the largest ε is within the limit of that at the smallest."""
        most, least = self._ends(bench, measure, method)
        common = [repeat for repeat in most if repeat in least]
        return alike([most[repeat] for repeat in common], [least[repeat] for repeat in common], limit)

    def _ends(self, bench: str, measure: str, method: str) -> tuple[dict[int, float], dict[int, float]]:
        epsilons = self.epsilons(bench)
        return self.at(bench, measure, method, epsilons[-1]), self.at(bench, measure, method, epsilons[0])

    def level(self, bench: str, measure: str, method: str, epsilon: float) -> Estimate:
        return estimate(self.values(bench, measure, method, epsilon))

    def defined(self, bench: str, measure: str) -> bool:
        """Whether every method has the measure at every ε."""
        return all(self.over_epsilons(bench, measure, method) for method in self.methods(bench))

    def ranks(self, bench: str, measure: str, methods: Sequence[str] | None = None) -> dict[str, float]:
        """Rank of every method by its mean over ε and repeats: 1 is best."""
        names = list(methods if methods is not None else self.methods(bench))
        means = [estimate(self.over_epsilons(bench, measure, name)).mean for name in names]
        signed = [-mean if MEASURES[measure].higher else mean for mean in means]
        return dict(zip(names, map(float, stats.rankdata(signed)), strict=True))

    def agreement(self, bench: str, first: str, second: str, methods: Sequence[str] | None = None) -> float:
        """Kendall's τ of two orders."""
        one, other = self.ranks(bench, first, methods), self.ranks(bench, second, methods)
        return float(stats.kendalltau([one[name] for name in one], [other[name] for name in one]).statistic)

    def agreements(self, bench: str, first: str, second: str, methods: Sequence[str] | None = None) -> list[float]:
        """Kendall's τ of two orders, repeat by repeat."""
        names = list(methods if methods is not None else self.methods(bench))
        found = []
        for repeat in self.repeats(bench):
            orders = [self.scores_of(bench, measure, repeat, names) for measure in (first, second)]
            if all(order is not None for order in orders):
                found.append(float(stats.kendalltau(*orders).statistic))
        return found

    def scores_of(self, bench: str, measure: str, repeat: int, methods: Sequence[str]) -> list[float] | None:
        """The measure of several methods in one repeat, lower is better; None where one of them has none."""
        columns = [self.by_repeat(bench, measure, name) for name in methods]
        if not all(repeat in column for column in columns):
            return None
        return [(-1 if MEASURES[measure].higher else 1) * column[repeat] for column in columns]

    def ranks_by_repeat(
        self, bench: str, measures: Sequence[str], methods: Sequence[str]
    ) -> dict[int, list[list[float]]]:
        """The ranks of the methods by each measure, in every repeat that has them all."""
        found = {}
        for repeat in self.repeats(bench):
            orders = [self.scores_of(bench, measure, repeat, methods) for measure in measures]
            if all(order is not None for order in orders):
                found[repeat] = [[float(rank) for rank in stats.rankdata(order)] for order in orders]
        return found

    def repeats(self, bench: str) -> tuple[int, ...]:
        return tuple(dict.fromkeys(int(str(one["repeat"])) for one in self.records if one["bench"] == bench))

    def times(self, bench: str, method: str) -> list[float]:
        """Logarithm of the mean processor seconds over ε, repeat by repeat."""
        spent: dict[int, list[float]] = {}
        for one in self.records:
            if (one["bench"], one["entrant"]) == (bench, method):
                spent.setdefault(int(str(one["repeat"])), []).append(float(str(one["seconds"])))
        return [math.log(math.fsum(spent[repeat]) / len(spent[repeat])) for repeat in sorted(spent)]

    def seconds(self, bench: str, method: str) -> float:
        """Mean processor seconds of making one table."""
        spent = [
            float(str(one["seconds"])) for one in self.records if (one["bench"], one["entrant"]) == (bench, method)
        ]
        return math.fsum(spent) / len(spent)
