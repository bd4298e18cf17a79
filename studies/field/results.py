"""What the runs say: every measure of every method at every ε, repeat by repeat, and the order it puts them in."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy import stats

from studies.runs import Record
from studies.writing import Estimate, estimate

__all__ = ["MEASURES", "Measure", "Results"]


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
}


@dataclass(frozen=True)
class Results:
    """All records of a study."""

    records: Sequence[Record]

    @classmethod
    def of(cls, records: Sequence[Record]) -> "Results":
        return cls(tuple(records))

    @property
    def processor_seconds(self) -> float:
        return math.fsum(float(str(one["seconds"])) + float(str(one["scored"])) for one in self.records)

    def methods(self, bench: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(str(one["entrant"]) for one in self.records if one["bench"] == bench))

    def epsilons(self, bench: str) -> tuple[float, ...]:
        return tuple(dict.fromkeys(float(str(one["epsilon"])) for one in self.records if one["bench"] == bench))

    def values(self, bench: str, measure: str, method: str, epsilon: float) -> list[float]:
        """The measure in every repeat that defines it."""
        found = [
            MEASURES[measure].value(one)
            for one in self.records
            if (one["bench"], one["entrant"], one["epsilon"]) == (bench, method, epsilon)
        ]
        return [value for value in found if value is not None]

    def over_epsilons(self, bench: str, measure: str, method: str) -> list[float]:
        """The mean over all ε, repeat by repeat: how a match was decided."""
        columns = [self.values(bench, measure, method, epsilon) for epsilon in self.epsilons(bench)]
        length = min(map(len, columns))
        return [math.fsum(column[place] for column in columns) / len(columns) for place in range(length)]

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

    def seconds(self, bench: str, method: str) -> float:
        """Mean processor seconds of making one table."""
        spent = [
            float(str(one["seconds"])) for one in self.records if (one["bench"], one["entrant"]) == (bench, method)
        ]
        return math.fsum(spent) / len(spent)
