"""nist: the three scores of the 2018 NIST challenge, each from 0 to 1,000,000, computed as its public program does.

clustering: agreement of 100 random 3-way tables. classification: shares of rows that satisfy 300 random conjunctions,
compared on the log scale. regression: Gini index of wages and pay gap between the sexes by city, for tables with sex,
city and wage. The match score is the mean of those that apply. The random tests are drawn once and kept, so that all
systems meet the same ones; they are made from rows of the original, so a file of them is as confidential as the rest of
an evaluation. `k_marginal` is the score of the institute's later tools: mean agreement of all pairs, times 1,000; it
counts the cells of the schema (its bins) under either rule.

What the scorer sees of a column
--------------------------------
Two rules, because the matches had two kinds of specification. On a table with the 98 columns of Match 3 the first
holds, on other tables the second; the option `rule` overrules that. A value that the schema cannot read agrees with
nothing.

match3: every column holds whole numbers from 0 to the largest code of the challenge's own specification, amounts of
money included: a wage of 1,500 and one of 1,501 are as different as two cities. A code of the submission beyond the
largest one is out of range and agrees with nothing.

buckets (Matches 1 and 2): labels are codes 0, 1, 2, … in the order of the schema (then "other" and missing, if the
schema has them); numbers, dates and times fall into 100 buckets of equal width between their public bounds.

Cities
------
Every city of a table is ranked, as the official program does: where nobody's wage is known, or all known wages are 0,
the Gini index is 1; a sex without a known wage adds nothing to the pay gap. The program applies this to submissions and
stops at such a city of the original; here both tables follow one rule, so that equal tables score in full. Cities with
the same pay gap are ranked in the order of their codes (there: in the order of the file).
"""

import functools
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import ClassVar, Literal, cast

import numpy as np
import pyarrow as pa

from understudy.arrays import Bools, Floats, Integers, Ints
from understudy.codec.axes import axis_of
from understudy.domain import Clique
from understudy.errors import UsageError
from understudy.evaluate.metric import (
    Context,
    Detail,
    Metric,
    Outcome,
    Result,
    Rows,
    Scale,
    TablePair,
    Unavailable,
    counted,
    declared_size,
    mean_outcome,
    table_of,
    total_variation,
)
from understudy.options import option
from understudy.schema import Schema, code_names
from understudy.schema.columns import NumberColumn

Rule = Literal["match3", "buckets"]
RuleName = Literal["auto", "match3", "buckets"]

BUCKETS = 100
MOST_DENSE_CELLS = 1 << 22
STRETCH = 1.0001
OUT_OF_RANGE = BUCKETS
NOT_A_CODE = -1
"""Stands for a value that is not a whole number of 0 or more, such as a missing one."""
NOT_ALLOWED = -2
"""Stands for a code of the submission that the specification does not allow; no row of the original has it."""
UNREAD = -3
"""Stands for a value of the original that the schema cannot read."""


@dataclass(frozen=True, slots=True, eq=False)
class NumberView:
    """A number column: its public bounds, its values, and the code of each value that is no number (else −1)."""

    lower: float
    upper: float
    values: Floats
    states: Ints


@dataclass(frozen=True, slots=True, eq=False)
class CodeView:
    """A column of codes: row r holds the code `levels[places[r]]`, and random codes are drawn from 0 to `largest`."""

    levels: Ints
    places: Integers
    largest: int

    def at(self, row: int) -> int:
        """The code of one row."""
        return int(self.levels[self.places[row]])


@functools.cache
def match3_largest() -> Mapping[str, int]:
    """The 98 columns of Match 3 in their order, with the largest code of each, from its public specification."""
    text = resources.files(__package__).joinpath("match_three_codes.json").read_text(encoding="utf-8")
    return cast(Mapping[str, int], json.loads(text))


def rule_for(schema: Schema, name: RuleName) -> Rule:
    """The rule that is meant: auto is match3 for a table with all 98 columns of Match 3 and no other.

    Raises:
        UsageError: if match3 is asked for and a column is not one of them.
    """
    modelled = {column.name for column in schema.modelled}
    foreign = sorted(modelled - set(match3_largest()))
    if name == "match3" and foreign:
        raise UsageError("nist: rule", f"match3 has no column {foreign[0]!r}.", "Use rule=buckets.")
    if name != "auto":
        return name
    return "match3" if modelled == set(match3_largest()) else "buckets"


def challenge_columns(rows: Rows) -> tuple[str, ...]:
    """The columns of the table, in schema order."""
    return tuple(dict.fromkeys(rows.codec.origin(part) for part in rows.domain.columns))


def column_view(rows: Rows, name: str, rule: Rule = "buckets") -> CodeView | NumberView:
    """The column as the scorer sees it."""
    column = rows.codec.schema.column(name)
    if rule == "match3":
        largest = match3_largest()[name]
        if isinstance(column, NumberColumn):
            part = code_names(column)[0]
            codes = np.where(rows.codes[part] == _unread_code(rows, part), UNREAD, _whole(rows.raw(name)))
            known, places = np.unique(codes, return_inverse=True)
            return CodeView(known, places.ravel(), largest)
        words = [_code(rows.codec.describe(name, code)) for code in range(rows.domain.sizes[name])]
        if _unread_code(rows, name) >= 0:
            words[_unread_code(rows, name)] = UNREAD
        return CodeView(np.asarray(words, np.int64), rows.codes[name], largest)
    if isinstance(column, NumberColumn):
        axis = axis_of(column)
        values = rows.numbers[name]
        part = code_names(column)[0]
        states = np.where(np.isnan(values), rows.codes[part].astype(np.int64), -1)
        return NumberView(float(axis.lower), float(axis.upper), values, states)
    return CodeView(np.arange(rows.domain.sizes[name]), rows.codes[name], declared_size(rows.codec, name) - 1)


def _unread_code(rows: Rows, part: str) -> int:
    code = rows.codec.layout(part).unreadable_code
    return -1 if code is None else code


def _whole(numbers: Floats) -> Ints:
    known = (numbers >= 0) & (numbers == np.floor(numbers)) & (numbers < 2**53)
    return np.where(known, np.where(known, numbers, 0.0), NOT_A_CODE).astype(np.int64)


def _code(word: str) -> int:
    return int(word) if word.isascii() and word.isdigit() and len(word) < 16 else NOT_A_CODE


def bucket_codes(view: NumberView) -> Ints:
    """(v − min)/w without its fraction, w = 1.0001·(max − min)/100; beyond 0 … 99 one code; empty and special ones too.

    A value less than w below the bound counts as bucket 0, as in the program, which cuts fractions off.
    """
    width = STRETCH * (view.upper - view.lower) / BUCKETS
    numbers = np.where(view.states >= 0, view.lower, view.values)
    buckets = np.trunc((numbers - view.lower) / width) if width > 0 else np.zeros(len(numbers))
    inside = (buckets >= 0) & (buckets < BUCKETS)
    codes: Ints = np.where(inside, buckets, OUT_OF_RANGE).astype(np.int64)
    return np.where(view.states >= 0, OUT_OF_RANGE + 1 + view.states, codes)


def paired_cells(original: Rows, submission: Rows, name: str, rule: Rule = "buckets") -> tuple[Ints, Ints]:
    """The cell of each row of both tables in one column, numbered 0, 1, 2, … together."""
    ours, theirs = column_view(original, name, rule), column_view(submission, name, rule)
    if isinstance(ours, NumberView) or isinstance(theirs, NumberView):
        assert isinstance(ours, NumberView)
        assert isinstance(theirs, NumberView)
        return bucket_codes(ours), bucket_codes(theirs)
    levels = theirs.levels
    if rule == "match3":
        levels = np.where((levels > theirs.largest) | (levels < NOT_A_CODE), NOT_ALLOWED, levels)
    known = np.unique(np.concatenate([ours.levels, levels]))
    return np.searchsorted(known, ours.levels)[ours.places], np.searchsorted(known, levels)[theirs.places]


def densities(columns: Sequence[str], cells: Mapping[str, tuple[Ints, Ints]]) -> list[Floats]:
    """Shares of the cells of these columns in both tables, over all cells that occur in one of them."""
    sizes = [max(int(codes.max()) for codes in cells[name]) + 1 for name in columns]
    indices = []
    for place in range(2):
        index = np.zeros(len(cells[columns[0]][place]), np.int64)
        for name, size in zip(columns, sizes, strict=True):
            index = index * size + cells[name][place]
        indices.append(index)
    number = math.prod(sizes)
    if number <= min(MOST_DENSE_CELLS, 8 * sum(len(index) for index in indices)):
        return [np.bincount(index, minlength=number) / len(index) for index in indices]
    _, places = np.unique(np.concatenate(indices), return_inverse=True)
    bounds = np.cumsum([0, *(len(index) for index in indices)]).tolist()
    spans = itertools.pairwise(bounds)
    return [np.bincount(places[low:high], minlength=int(places.max()) + 1) / (high - low) for low, high in spans]


Triple = tuple[str, str, str]

TRIPLES = 100
MOST = 1_000_000


def draw_triples(
    columns: Sequence[str], rng: np.random.Generator, *, number: int = TRIPLES, include_last: bool = False
) -> tuple[Triple, ...]:
    """Triples of different columns, drawn with replacement; triples may repeat.

    The official script never draws the last column (an off-by-one); `include_last` mends that.
    """
    drawn = len(columns) if include_last else len(columns) - 1
    found: list[Triple] = []
    while len(found) < number and drawn >= 3:
        first, second, third = rng.integers(0, drawn, 3).tolist()
        if len({first, second, third}) == 3:
            found.append((columns[first], columns[second], columns[third]))
    return tuple(found)


def triple_agreement(original: Floats, submission: Floats) -> float:
    """1 − ½ Σ|f − g| of two tables of shares over the same cells.

    >>> round(triple_agreement(np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.6, 0.1, 0.0, 0.3])), 12)
    0.6
    """
    return 1.0 - float(np.abs(original - submission).sum()) / 2


def triples_agreement(original: Rows, submission: Rows, triples: Sequence[Triple], rule: Rule = "buckets") -> Floats:
    """The agreement of every triple; the score is a million times their mean."""
    used = dict.fromkeys(name for triple in triples for name in triple)
    cells = {name: paired_cells(original, submission, name, rule) for name in used}
    return np.asarray([triple_agreement(*densities(triple, cells)) for triple in triples], np.float64)


BASE_ROWS = 300
PROBABILITY = 0.10
LEAST_SHARE = 1e-6
TOLERATED = 1e-3


@dataclass(frozen=True, slots=True)
class CodeSet:
    """The value must be one of these codes (as the scorer sees them, or of the states in which a number is none)."""

    codes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Interval:
    """The number must lie in here, both ends included."""

    low: float
    high: float


Condition = Mapping[str, CodeSet | Interval]


def draw_conjunctions(
    rows: Rows,
    rng: np.random.Generator,
    *,
    number: int = BASE_ROWS,
    probability: float = PROBABILITY,
    rule: Rule = "buckets",
) -> tuple[Condition, ...]:
    """Conditions around rows of the original, drawn with replacement; rows drawn twice count once."""
    columns = challenge_columns(rows)
    views = {name: column_view(rows, name, rule) for name in columns}
    bases = sorted(set(rng.integers(0, rows.count, number).tolist()))
    found: list[Condition] = []
    for base in bases:
        chosen = [name for name in columns if rng.random() < probability]
        found.append({name: _condition(views[name], base, rng) for name in chosen})
    return tuple(found)


def _condition(view: CodeView | NumberView, base: int, rng: np.random.Generator) -> CodeSet | Interval:
    """Codes are drawn from all that the specification allows, whether or not a row has them, until one repeats."""
    if isinstance(view, CodeView):
        allowed = {view.at(base)}
        while True:
            drawn = int(rng.integers(0, view.largest + 1))
            if drawn in allowed:
                return CodeSet(tuple(sorted(allowed)))
            allowed.add(drawn)
    radius = float(rng.uniform(0, view.upper - view.lower))
    if view.states[base] >= 0:
        return CodeSet((int(view.states[base]),))
    value = float(view.values[base])
    return Interval(value - radius, value + radius)


def shares(rows: Rows, conditions: Sequence[Condition], rule: Rule = "buckets") -> Floats:
    """The share of rows that satisfy each conjunction."""
    columns = challenge_columns(rows)
    views = {name: column_view(rows, name, rule) for name in columns}
    found = []
    for condition in conditions:
        fits: Bools = np.ones(rows.count, np.bool_)
        for name, said in condition.items():
            if name in views:  # conditions on columns that a submission lacks are ignored
                fits &= _satisfied(views[name], said)
        found.append(float(fits.mean()))
    return np.asarray(found, np.float64)


def _satisfied(view: CodeView | NumberView, said: CodeSet | Interval) -> Bools:
    if isinstance(said, Interval):
        assert isinstance(view, NumberView)
        return (view.states < 0) & (view.values >= said.low) & (view.values <= said.high)
    if isinstance(view, NumberView):
        return np.isin(view.states, said.codes)
    fits: Bools = np.isin(view.levels, said.codes)[view.places]
    return fits


def conjunction_score(original: Floats, submission: Floats) -> float:
    """10⁶ · max(0, 1 + RMS(ln max(g, 10⁻⁶) − ln f) / ln 10⁻³).

    >>> round(conjunction_score(np.array([0.02, 0.1, 0.001]), np.array([0.03, 0.05, 0.0])), 1)
    418761.6
    """
    gaps = np.log(np.maximum(submission, LEAST_SHARE)) - np.log(original)
    return 1e6 * max(0.0, 1.0 + math.sqrt(float(np.mean(gaps**2))) / math.log(TOLERATED))


FORMAT = "understudy challenge tests, format 1"
_RULES: Mapping[str, Rule] = {"match3": "match3", "buckets": "buckets"}


@dataclass(frozen=True, slots=True)
class ChallengeTests:
    """Triples for score 1 and conjunctions for score 2, and the rule by which the latter's codes are meant."""

    triples: tuple[Triple, ...]
    conjunctions: tuple[Condition, ...]
    rule: Rule = "buckets"

    def to_json(self) -> dict[str, object]:
        """Both lists as plain values."""
        return {
            "format": FORMAT,
            "rule": self.rule,
            "triples": [list(triple) for triple in self.triples],
            "conjunctions": [{name: _said(one) for name, one in condition.items()} for condition in self.conjunctions],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, object]) -> "ChallengeTests":
        """The tests that `to_json` described."""
        try:
            triples = document["triples"]
            conjunctions = document["conjunctions"]
            if not isinstance(triples, list) or not isinstance(conjunctions, list) or document["format"] != FORMAT:
                raise TypeError("lists")
            kept = tuple((str(one), str(two), str(three)) for one, two, three in triples)
            meant = tuple({str(key): _meant(said) for key, said in one.items()} for one in conjunctions)
            return cls(kept, meant, _RULES[str(document.get("rule", "buckets"))])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError("challenge tests", "do not have the expected form.", "Use to_json's output.") from error

    def save(self, path: str | Path) -> None:
        """Writes the tests to a file. Confidential."""
        Path(path).write_text(json.dumps(self.to_json(), ensure_ascii=True) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> "ChallengeTests":
        """The tests in a file."""
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"challenge tests {str(path)!r}", "cannot be read.", "Check the path.") from error
        if not isinstance(document, dict):
            raise UsageError(f"challenge tests {str(path)!r}", "do not have the expected form.", "Draw new ones.")
        return cls.from_json(document)


def draw_tests(
    original: Rows, rng: np.random.Generator, *, include_last: bool, probability: float, rule: Rule = "buckets"
) -> ChallengeTests:
    """100 triples and the conjunctions around 300 rows."""
    columns: Sequence[str] = challenge_columns(original)
    triples = draw_triples(columns, rng, number=TRIPLES, include_last=include_last)
    conjunctions = draw_conjunctions(original, rng, number=BASE_ROWS, probability=probability, rule=rule)
    return ChallengeTests(triples, conjunctions, rule)


def _said(one: CodeSet | Interval) -> dict[str, object]:
    return {"codes": list(one.codes)} if isinstance(one, CodeSet) else {"low": one.low, "high": one.high}


def _meant(said: Mapping[str, object]) -> CodeSet | Interval:
    codes = said.get("codes")
    if isinstance(codes, list):
        return CodeSet(tuple(int(code) for code in codes))
    return Interval(float(str(said["low"])), float(str(said["high"])))


NOT_AVAILABLE = 999_998.0


@dataclass(frozen=True, slots=True)
class City:
    """Inequality of wages and the mean wage of men minus that of women."""

    gini: float
    gap: float


def gini(wages: Floats) -> float:
    """1 − 2 Σ (cumulative wage) / (N · total): the usual index minus 1/N; 1 if nobody earns anything.

    >>> gini(np.array([0.0, 0.0, 0.0, 10.0])), round(gini(np.array([100.0, 200.0, 300.0])), 4)
    (0.5, -0.1111)
    """
    total = float(wages.sum())
    if len(wages) == 0 or total == 0:
        return 1.0
    return 1.0 - 2.0 * float(np.cumsum(np.sort(wages)).sum()) / (len(wages) * total)


def income_score(original: Mapping[str, City], submission: Mapping[str, City]) -> Outcome:
    """500,000 · (√(s₁/c) + √(s₂/c)) over the c cities of the original; a city that is missing contributes nothing."""
    number = len(original)
    if number < 2:
        return Unavailable("the table has fewer than two cities, so there is no ranking")
    ranks, theirs = _ranks(original), _ranks(submission)
    alike, placed = 0.0, 0.0
    for name, city in original.items():
        if name in submission:
            alike += (1 - abs(city.gini - submission[name].gini)) ** 2
            placed += max(0.0, 1 - abs(ranks[name] - theirs[name]) / (number - 1)) ** 2
    return 500_000.0 * (math.sqrt(alike / number) + math.sqrt(placed / number))


def _ranks(cities: Mapping[str, City]) -> dict[str, int]:
    ordered = sorted(cities, key=lambda name: -cities[name].gap)
    return {name: rank for rank, name in enumerate(ordered)}


def cities_of(
    rows: Rows, names: tuple[str, str, str], sexes: tuple[str, str], rule: Rule = "buckets"
) -> dict[str, City]:
    """Every city that occurs.

    Args:
        rows: the table.
        names: the columns of sex, city and wage.
        sexes: the labels of men and women.
        rule: match3 takes wages from 999,998 on for "not available", as the program does; otherwise that code alone
            stands for it, beside what the schema calls missing or special.
    """
    sex, city, wage = names
    wages = _wages(rows, wage, rule)
    described = [rows.codec.describe(sex, code) for code in range(rows.domain.sizes[sex])]
    codes = [[place for place, text in enumerate(described) if text == label] for label in sexes]
    members = [np.isin(rows.codes[sex], one) for one in codes]
    order = np.argsort(rows.codes[city], kind="stable")
    present, starts = np.unique(rows.codes[city][order], return_index=True)
    found: dict[str, City] = {}
    for code, here in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
        people = here[~np.isnan(wages[here])]
        means = [_mean(wages[people[member[people]]]) for member in members]
        found[rows.codec.describe(city, code)] = City(gini(wages[people]), means[0] - means[1])
    return found


def _mean(wages: Floats) -> float:
    return float(wages.mean()) if len(wages) else 0.0


def _wages(rows: Rows, name: str, rule: Rule) -> Floats:
    """The wage of each row as the file has it, NaN where it is not available."""
    if isinstance(rows.codec.schema.column(name), NumberColumn):
        wages = rows.raw(name)
        if rule == "buckets":
            wages = np.where(np.isnan(rows.numbers[name]), np.nan, wages)
    else:
        table = [_as_number(rows.codec.describe(name, code)) for code in range(rows.domain.sizes[name])]
        wages = np.asarray(table, np.float64)[rows.codes[name]]
    absent = wages >= NOT_AVAILABLE if rule == "match3" else wages == NOT_AVAILABLE
    return np.where(absent, np.nan, wages)


def _as_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


MOST_CODES = 20
"""Codes of a condition that a report spells out."""


def _scale(name: str, meaning: str, highest: float = MOST) -> Scale:
    return Scale(name, meaning, "higher", 0.0, highest, highest)


@dataclass(frozen=True, slots=True)
class Nist(Metric):
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

    sex: str = option("SEX", help="column of sex, for the third score")
    city: str = option("CITY", help="column of the city")
    wage: str = option("INCWAGE", help="column of the wage")
    male: str = option("1", help="label that stands for men")
    female: str = option("2", help="label that stands for women")
    chance: float = option(
        PROBABILITY, help="probability that a column enters a conjunction (match 2: 0.33)", above=0, most=1
    )
    include_last: bool = option(False, help="also draw the last column, which the official program leaves out")
    rule: RuleName = option(
        "auto", help="rule for buckets: codes of Match 3, buckets of Matches 1 and 2, or auto (by the columns)"
    )
    tests: ChallengeTests | str | None = option(None, help="tests drawn earlier, or the file that holds them")

    def lacks(self, schema: Schema) -> str:
        """The columns of the third score that the table does not have: who has none of them asks for nist by name."""
        known = {column.name for column in schema.modelled}
        missing = [repr(name) for name in (self.sex, self.city, self.wage) if name not in known]
        return f"the table has no column {' or '.join(missing)}" if missing else ""

    def check(self, schema: Schema) -> None:
        """Raises when the rule does not fit the schema."""
        rule_for(schema, self.rule)

    def compare(self, pair: TablePair, context: Context) -> Result:
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
        return draw_tests(original, rng, include_last=self.include_last, probability=self.chance, rule=rule)

    def _scored(self, original: Rows, submission: Rows, tests: ChallengeTests) -> "_ScoredCells":
        rule = tests.rule
        agreement = triples_agreement(original, submission, tests.triples, rule)
        real, theirs = shares(original, tests.conjunctions, rule), shares(submission, tests.conjunctions, rule)
        clustering: Outcome = float(MOST * agreement.mean()) if len(agreement) else _few_columns(self.include_last)
        classification: Outcome = conjunction_score(real, theirs)
        if not (real > 0).all():
            classification = Unavailable("a kept test matches no row of this original")
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
        return _ScoredCells(
            [match, *three, _k_marginal(original, submission)], agreement, (real, theirs), (ours, others)
        )


_RULE_NOTES: dict[Rule, str] = {
    "match3": "Columns are codes from 0 to the largest of the challenge's specification, as in Match 3.",
    "buckets": "Labels are codes and numbers fall into 100 buckets, as in Matches 1 and 2.",
}


@dataclass(frozen=True, slots=True, eq=False)
class _ScoredCells:
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


def _details(pair: TablePair, tests: ChallengeTests, found: list[_ScoredCells]) -> tuple[Detail, ...]:
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


def _words(pair: TablePair, condition: Condition, rule: Rule) -> str:
    said = []
    for name, one in condition.items():
        if isinstance(one, CodeSet):
            shown = [str(code) if rule == "match3" else _label(pair, name, code) for code in one.codes[:MOST_CODES]]
            more = f", and {len(one.codes) - MOST_CODES:,} more" if len(one.codes) > MOST_CODES else ""
            said.append(f"{name} in {{{', '.join(shown)}{more}}}")
        else:
            said.append(f"{name} in [{one.low:g}, {one.high:g}]")
    return " and ".join(said) or "(no condition)"


def _label(pair: TablePair, name: str, code: int) -> str:
    part = next(part for part in pair.codec.domain.columns if pair.codec.origin(part) == name)
    return pair.codec.describe(part, code)
