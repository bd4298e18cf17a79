"""nist: the three scores of the 2018 challenge, each from 0 to 1,000,000, computed as its public program does.

clustering: agreement of 100 random 3-way tables. classification: shares of rows that satisfy 300 random conjunctions,
compared on the log scale. regression: Gini index and pay gap by city, for tables with sex, city and wage. The match
score is the mean of those that apply. On a table with the 98 columns of Match 3 every column is one of codes from 0 to
the largest code of the challenge's specification, and numbers are those of the file; on other tables labels are codes
and numbers fall into 100 buckets, as in Matches 1 and 2 (see `cells`; the option `rule` overrules that). A value that
the schema cannot read agrees with nothing. `k_marginal` is the score of the institute's later tools: mean agreement of
all pairs, times 1,000; it counts the cells of the schema (its bins) under either rule.
"""

import itertools
import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from understudy.errors import UsageError
from understudy.evaluate.challenge.cells import Rule, RuleName, challenge_columns, rule_for
from understudy.evaluate.challenge.conjunctions import CHANCE, CodeSet, Condition, conjunction_score, shares
from understudy.evaluate.challenge.draws import ChallengeTests, draw_tests
from understudy.evaluate.challenge.incomes import City, cities_of, income_score
from understudy.evaluate.challenge.three_way import MOST, triples_agreement
from understudy.evaluate.data.counting import counted, total_variation
from understudy.evaluate.data.pair import Context, Pair
from understudy.evaluate.data.rows import Rows
from understudy.evaluate.score import Detail, Outcome, Result, Scale, Unavailable, mean_outcome, table_of
from understudy.marginals.clique import Clique
from understudy.schema import Schema

__all__ = ["Nist"]

MOST_CODES = 20
"""Codes of a condition that a report spells out."""


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
    rule: RuleName = field(
        default="auto", metadata={"help": "codes of Match 3 or buckets of Matches 1 and 2; auto: by the columns"}
    )
    tests: ChallengeTests | str | None = field(default=None, metadata={"help": "kept tests, or the file they are in"})

    def __post_init__(self) -> None:
        if not 0 < self.chance <= 1:
            raise UsageError("nist: chance", f"must be above 0 and at most 1, got {self.chance!r}.")

    def lacks(self, schema: Schema) -> str:
        """The columns of the third score that the table does not have: who has none of them asks for nist by name."""
        known = {column.name for column in schema.modelled}
        missing = [repr(name) for name in (self.sex, self.city, self.wage) if name not in known]
        return f"the table has no column {' or '.join(missing)}" if missing else ""

    def check(self, schema: Schema) -> None:
        """Raises when the rule does not fit the schema."""
        rule_for(schema, self.rule)

    def compare(self, pair: Pair, context: Context) -> Result:
        """All scores, averaged over copies."""
        rule = rule_for(pair.schema, self.rule)
        kept = self._kept(rule) or self._drawn(pair.real, context, rule)
        found = []
        for place, copy in enumerate(pair.copies):
            found.append(self._scored(pair.real, copy, kept))
            context.done((place + 1) / (len(pair.copies) + 1))
        lines = pair.between_halves(
            lambda one, other: self._scored(one, other, self._drawn(one, context, rule)).outcomes, len(self.scales)
        )
        scores = []
        for place, scale in enumerate(self.scales):
            value = mean_outcome([one.outcomes[place] for one in found])
            scores.append(scale.score(value, lines[place]))
        return Result(self.name, self.question, tuple(scores), _details(pair, kept, found), (_RULE_NOTES[rule],))

    def _kept(self, rule: Rule) -> ChallengeTests | None:
        kept = ChallengeTests.load(self.tests) if isinstance(self.tests, str) else self.tests
        if kept is not None and kept.rule != rule:
            words = f"were drawn under the rule {kept.rule}, and this table is scored by {rule}."
            raise UsageError("challenge tests", words, f"Set rule={kept.rule}, or draw new ones.")
        return kept

    def _drawn(self, original: Rows, context: Context, rule: Rule) -> ChallengeTests:
        rng = context.rng("tests")
        return draw_tests(original, rng, include_last=self.include_last, chance=self.chance, rule=rule)

    def _scored(self, original: Rows, submission: Rows, tests: ChallengeTests) -> "_Scored":
        rule = tests.rule
        agreement = triples_agreement(original, submission, tests.triples, rule)
        real, theirs = shares(original, tests.conjunctions, rule), shares(submission, tests.conjunctions, rule)
        clustering: Outcome = float(MOST * agreement.mean()) if len(agreement) else _few_columns(self.include_last)
        classification: Outcome = conjunction_score(real, theirs)
        if not (real > 0).all():
            classification = Unavailable("a kept test fits no row of this original")
        ours: dict[str, City] = {}
        others: dict[str, City] = {}
        missing = [name for name in (self.sex, self.city, self.wage) if name not in challenge_columns(original)]
        if missing:
            regression: Outcome = Unavailable(f"the table has no column {missing[0]!r}")
        else:
            names, sexes = (self.sex, self.city, self.wage), (self.male, self.female)
            ours, others = (cities_of(rows, names, sexes, rule) for rows in (original, submission))
            regression = income_score(ours, others)
        three: list[Outcome] = [clustering, classification, regression]
        match = mean_outcome([one for one in three if not isinstance(one, Unavailable)])
        return _Scored([match, *three, _k_marginal(original, submission)], agreement, (real, theirs), (ours, others))


_RULE_NOTES: dict[Rule, str] = {
    "match3": "Columns are codes from 0 to the largest of the challenge's specification, as in Match 3.",
    "buckets": "Labels are codes and numbers fall into 100 buckets, as in Matches 1 and 2.",
}


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
        "conditions": [_words(pair, tests.conjunctions[place], tests.rule) for place in order],
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


def _words(pair: Pair, condition: Condition, rule: Rule) -> str:
    said = []
    for name, one in condition.items():
        if isinstance(one, CodeSet):
            shown = [str(code) if rule == "match3" else _label(pair, name, code) for code in one.codes[:MOST_CODES]]
            more = f", and {len(one.codes) - MOST_CODES:,} more" if len(one.codes) > MOST_CODES else ""
            said.append(f"{name} in {{{', '.join(shown)}{more}}}")
        else:
            said.append(f"{name} in [{one.low:g}, {one.high:g}]")
    return " and ".join(said) or "(no condition)"


def _label(pair: Pair, name: str, code: int) -> str:
    part = next(part for part in pair.codec.domain.columns if pair.codec.origin(part) == name)
    return pair.codec.describe(part, code)
