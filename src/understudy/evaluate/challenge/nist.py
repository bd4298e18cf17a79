"""nist: the three scores of the 2018 challenge, each from 0 to 1,000,000, exactly as its public scorer computes them.

clustering: agreement of 100 random 3-way tables. classification: shares of rows that satisfy 300 random conjunctions,
compared on the log scale. regression: Gini index and pay gap by city, for tables with sex, city and wage. The match
score is the mean of those that apply. `k_marginal` is the score of the institute's later tools: mean agreement of all
pairs, times 1,000. What our codec adds: a value outside the schema has become "other" or missing in both tables.
"""

import itertools
import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from understudy.errors import UsageError
from understudy.evaluate.challenge.cells import challenge_columns
from understudy.evaluate.challenge.conjunctions import CHANCE, CodeSet, Condition, conjunction_score, shares
from understudy.evaluate.challenge.draws import ChallengeTests, draw_tests
from understudy.evaluate.challenge.incomes import City, cities_of, income_score
from understudy.evaluate.challenge.three_way import MOST, triples_agreement
from understudy.evaluate.data.counting import counted, total_variation
from understudy.evaluate.data.pair import Context, Pair
from understudy.evaluate.data.rows import Rows
from understudy.evaluate.score import Detail, Outcome, Result, Scale, Unavailable, mean_outcome, table_of
from understudy.marginals.clique import Clique

__all__ = ["Nist"]


def _scale(name: str, meaning: str, highest: float = MOST) -> Scale:
    return Scale(name, meaning, "higher", 0.0, highest, highest)


@dataclass(frozen=True, slots=True)
class Nist:
    """The scores of the 2018 NIST challenge."""

    name: ClassVar[str] = "nist"
    question: ClassVar[str] = "How would the stand-in have scored in the 2018 NIST challenge?"
    scales: ClassVar[tuple[Scale, ...]] = (
        _scale("match", "mean of the scores below that apply to the table"),
        _scale("clustering", "agreement of 100 random 3-way tables"),
        _scale("classification", "agreement of shares under 300 random conjunctions, on the log scale"),
        _scale("regression", "agreement of Gini index and pay gap by city"),
        _scale("k_marginal", "agreement of all pairs, times 1,000", 1000.0),
    )

    sex: str = field(default="SEX", metadata={"help": "column of sex, for the third score"})
    city: str = field(default="CITY", metadata={"help": "column of the city"})
    wage: str = field(default="INCWAGE", metadata={"help": "column of the wage"})
    male: str = field(default="1", metadata={"help": "label of men"})
    female: str = field(default="2", metadata={"help": "label of women"})
    chance: float = field(
        default=CHANCE, metadata={"help": "chance that a column enters a conjunction (match 2: 0.33)"}
    )
    include_last: bool = field(default=False, metadata={"help": "also draw the last column, which the scorer forgot"})
    tests: ChallengeTests | str | None = field(default=None, metadata={"help": "kept tests, or the file they are in"})

    def __post_init__(self) -> None:
        if not 0 < self.chance <= 1:
            raise UsageError("nist: chance", f"must be above 0 and at most 1, got {self.chance!r}.")

    def compare(self, pair: Pair, context: Context) -> Result:
        """All scores, averaged over copies."""
        kept = self._kept() or self._drawn(pair.real, context)
        found = []
        for place, copy in enumerate(pair.copies):
            found.append(self._scored(pair.real, copy, kept))
            context.done((place + 1) / (len(pair.copies) + 1))
        lines = pair.between_halves(
            lambda one, other: self._scored(one, other, self._drawn(one, context)).outcomes, len(self.scales)
        )
        scores = []
        for place, scale in enumerate(self.scales):
            value = mean_outcome([one.outcomes[place] for one in found])
            scores.append(scale.score(value, lines[place]))
        return Result(self.name, self.question, tuple(scores), _details(pair, kept, found))

    def _kept(self) -> ChallengeTests | None:
        return ChallengeTests.load(self.tests) if isinstance(self.tests, str) else self.tests

    def _drawn(self, original: Rows, context: Context) -> ChallengeTests:
        return draw_tests(original, context.rng("tests"), include_last=self.include_last, chance=self.chance)

    def _scored(self, original: Rows, submission: Rows, tests: ChallengeTests) -> "_Scored":
        agreement = triples_agreement(original, submission, tests.triples)
        real, theirs = shares(original, tests.conjunctions), shares(submission, tests.conjunctions)
        missing = [name for name in (self.sex, self.city, self.wage) if name not in challenge_columns(original)]
        clustering: Outcome = float(MOST * agreement.mean()) if len(agreement) else _few_columns(self.include_last)
        classification: Outcome = conjunction_score(real, theirs)
        if not (real > 0).all():
            classification = Unavailable("a kept test fits no row of this original")
        ours: dict[str, City] = {}
        others: dict[str, City] = {}
        if missing:
            regression: Outcome = Unavailable(f"the table has no column {missing[0]!r}")
        else:
            names, sexes = (self.sex, self.city, self.wage), (self.male, self.female)
            ours, others = cities_of(original, names, sexes), cities_of(submission, names, sexes)
            regression = income_score(ours, others)
        three: list[Outcome] = [clustering, classification, regression]
        match = mean_outcome([one for one in three if not isinstance(one, Unavailable)])
        return _Scored([match, *three, _k_marginal(original, submission)], agreement, (real, theirs), (ours, others))


@dataclass(frozen=True, slots=True, eq=False)
class _Scored:
    outcomes: list[Outcome]
    agreement: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
    shares: tuple[np.ndarray[tuple[int, ...], np.dtype[np.float64]], np.ndarray[tuple[int, ...], np.dtype[np.float64]]]
    cities: tuple[dict[str, City], dict[str, City]]


def _few_columns(include_last: bool) -> Unavailable:
    return Unavailable(f"triples need {3 if include_last else 4} columns or more")


def _k_marginal(original: Rows, submission: Rows) -> Outcome:
    cliques = [Clique(names) for names in itertools.combinations(original.domain.columns, 2)]
    if not cliques:
        return Unavailable("the table has a single column, so there is no pair")
    tables = counted([original, submission], cliques)
    return 1000.0 * math.fsum(1.0 - total_variation(*table.counts) for table in tables) / len(cliques)


def _details(pair: Pair, tests: ChallengeTests, found: list[_Scored]) -> tuple[Detail, ...]:
    first = found[0]
    order = np.argsort(first.agreement, kind="stable").tolist()
    kinds = {"column_1": pa.string(), "column_2": pa.string(), "column_3": pa.string(), "agreement": pa.float64()}
    columns: dict[str, list[object]] = {
        f"column_{axis + 1}": [tests.triples[place][axis] for place in order] for axis in range(3)
    }
    columns["agreement"] = [float(first.agreement[place]) for place in order]
    caption = "Triples of the first score, worst agreement first (first copy)."
    details = [Detail("triples", caption, table_of(columns, kinds))]
    real, theirs = first.shares
    gaps = np.abs(np.log(np.maximum(theirs, 1e-6)) - np.log(np.maximum(real, 1e-300)))
    order = np.argsort(-gaps, kind="stable").tolist()
    shown: dict[str, list[object]] = {
        "conditions": [_words(pair, tests.conjunctions[place]) for place in order],
        "real_share": [float(real[place]) for place in order],
        "synthetic_share": [float(theirs[place]) for place in order],
    }
    kinds = {"conditions": pa.string(), "real_share": pa.float64(), "synthetic_share": pa.float64()}
    caption = "Conjunctions of the second score, worst first (first copy)."
    details.append(Detail("conjunctions", caption, table_of(shown, kinds)))
    if first.cities[0]:
        details.append(_city_detail(*first.cities))
    return tuple(details)


def _city_detail(ours: dict[str, City], others: dict[str, City]) -> Detail:
    order = sorted(ours, key=lambda name: -abs(ours[name].gini - others[name].gini) if name in others else -math.inf)
    cells: dict[str, list[object]] = {
        "city": list(order),
        "real_gini": [ours[name].gini for name in order],
        "synthetic_gini": [others[name].gini if name in others else None for name in order],
        "real_gap": [ours[name].gap for name in order],
        "synthetic_gap": [others[name].gap if name in others else None for name in order],
    }
    kinds = {name: pa.string() if name == "city" else pa.float64() for name in cells}
    return Detail(
        "cities", "Gini index and pay gap by city, missing cities first, then by Gini.", table_of(cells, kinds)
    )


def _words(pair: Pair, condition: Condition) -> str:
    said = []
    for name, one in condition.items():
        if isinstance(one, CodeSet):
            part = next(part for part in pair.codec.domain.columns if pair.codec.origin(part) == name)
            said.append(f"{name} in {{{', '.join(pair.codec.describe(part, code) for code in one.codes)}}}")
        else:
            said.append(f"{name} in [{one.low:g}, {one.high:g}]")
    return " and ".join(said) or "(no condition)"
