"""The Match 3 scorer against a reference that counts rows one by one, on generated tables with its 98 columns."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import pandas as pd
import pytest

from tests.evaluate.examples import context, rows_of
from tests.methods.generated_rows import SPECIFICATION, challenge_schema
from understudy.codec.table import TableCodec
from understudy.errors import UsageError
from understudy.evaluate.metric import TablePair
from understudy.evaluate.nist import CodeSet, Nist, draw_conjunctions, draw_tests, match3_largest, rule_for
from understudy.methods.match_three import match3_schema
from understudy.schema import Category, Schema, Unit

Table = Sequence[Mapping[str, int]]
NOT_AVAILABLE = 999_998


@cache
def _schema() -> Schema:
    """All 98 columns, each with a few of its codes, one of them above the largest that the specification allows."""
    facts = {}
    for name, largest in match3_largest().items():
        few = {0, 1, min(2, largest), largest // 2, largest, *((largest + 1,) if name in ("METRO", "AGE") else ())}
        facts[name] = {"maxval": largest, "values_in_codebook": sorted(few)}
    facts["SEX"]["values_in_codebook"] = [1, 2]
    return match3_schema(facts)


def _frame(rows: int, seed: int) -> pd.DataFrame:
    """Codes that lean to low labels; wages and house values as the census has them, some above what the schema bins."""
    rng = np.random.default_rng(seed)
    columns: dict[str, object] = {}
    for column in _schema().columns:
        if isinstance(column, Category):
            labels = [int(label) for label in column.labels]
            places = (len(labels) * rng.random(rows) ** (1 + seed / 4)).astype(int)
            columns[column.name] = np.asarray(labels)[places]
    wages = 10 * rng.integers(0, 400, rows)
    columns["INCWAGE"] = np.where(rng.random(rows) < 0.4, NOT_AVAILABLE, wages)
    houses = np.where(rng.random(rows) < 0.2, 26_000 + 500 * rng.integers(0, 3, rows), 5 * rng.integers(0, 40, rows))
    columns["VALUEH"] = np.where(rng.random(rows) < 0.5, 9_999_998, houses)
    frame = pd.DataFrame(columns)
    frame.loc[frame["CITY"] == frame["CITY"].max(), "INCWAGE"] = np.where(
        rng.random((frame["CITY"] == frame["CITY"].max()).sum()) < 0.5, 0, 1200 + seed
    )
    return frame[list(_schema().names)]


def _pair(real: pd.DataFrame, synthetic: pd.DataFrame) -> TablePair:
    codec = TableCodec.of(_schema(), judging=True)
    return TablePair(codec, rows_of(real, _schema()), (rows_of(synthetic, _schema()),), 3)


def _records(frame: pd.DataFrame) -> Table:
    return frame.to_dict("records")  # type: ignore[return-value]


def _marginal_score(real: Table, synthetic: Table, triples: Sequence[Sequence[str]]) -> float:
    """A code of the submission above the largest one agrees with nothing."""
    total = 0.0
    for triple in triples:
        ours: Counter[object] = Counter(tuple(row[name] for name in triple) for row in real)
        theirs: Counter[object] = Counter(
            tuple(row[name] if row[name] <= match3_largest()[name] else "out" for name in triple) for row in synthetic
        )
        cells = set(ours) | set(theirs)
        total += 1 - sum(abs(ours[cell] / len(real) - theirs[cell] / len(synthetic)) for cell in cells) / 2
    return 1e6 * total / len(triples)


def _conjunction_score(real: Table, synthetic: Table, tests: Sequence[Mapping[str, CodeSet]]) -> float:
    squares = 0.0
    for test in tests:
        fits = [
            sum(all(row[name] in said.codes for name, said in test.items()) for row in table) / len(table)
            for table in (real, synthetic)
        ]
        squares += (math.log(max(fits[1], 1e-6)) - math.log(fits[0])) ** 2
    return 1e6 * max(0.0, 1 + math.sqrt(squares / len(tests)) / math.log(1e-3))


def _city_score(real: Table, synthetic: Table) -> float:
    def cities(table: Table) -> dict[int, tuple[float, float]]:
        found = {}
        for city in sorted({row["CITY"] for row in table}):
            people = [row for row in table if row["CITY"] == city and row["INCWAGE"] < NOT_AVAILABLE]
            wages = sorted(row["INCWAGE"] for row in people)
            summed = sum(sum(wages[: place + 1]) for place in range(len(wages)))
            index = 1 - 2 * summed / (len(wages) * sum(wages)) if sum(wages) else 1.0
            gap = 0.0
            for sex, sign in ((1, 1), (2, -1)):
                theirs = [row["INCWAGE"] for row in people if row["SEX"] == sex]
                gap += sign * sum(theirs) / len(theirs) if theirs else 0.0
            found[city] = (index, gap)
        return found

    def places(found: Mapping[int, tuple[float, float]]) -> list[int]:
        return sorted(found, key=lambda city: -found[city][1])

    ours, theirs = cities(real), cities(synthetic)
    first = second = 0.0
    for city in ours:
        if city in theirs:
            first += (1 - abs(ours[city][0] - theirs[city][0])) ** 2
            moved = abs(places(ours).index(city) - places(theirs).index(city))
            second += max(0.0, 1 - moved / (len(ours) - 1)) ** 2
    return 500_000 * (math.sqrt(first / len(ours)) + math.sqrt(second / len(ours)))


@pytest.mark.parametrize("seed", [1, 2])
def test_all_three_scores_equal_the_reference(seed: int) -> None:
    real, synthetic = _frame(250, 1), _frame(220, 1 + seed)
    pair = _pair(real, synthetic)
    assert rule_for(_schema(), "auto") == "match3"
    # Few columns a condition: with as many as the challenge has, independent columns of a small table fit nobody.
    tests = draw_tests(pair.real, np.random.default_rng(seed), include_last=False, probability=0.02, rule="match3")
    found = Nist(tests=tests).compare(pair, context("nist"))
    ours, theirs = _records(real), _records(synthetic)
    three = (
        _marginal_score(ours, theirs, tests.triples),
        _conjunction_score(ours, theirs, tests.conjunctions),  # type: ignore[arg-type]
        _city_score(ours, theirs),
    )
    for name, wanted in zip(("clustering", "classification", "regression"), three, strict=True):
        assert 0 < wanted < 1e6
        assert found.score(name).value == pytest.approx(wanted, rel=1e-9), name
    assert found.value == pytest.approx(sum(three) / 3)


def test_amounts_are_codes_and_not_buckets() -> None:
    """Every wage and house value is off by one: near for buckets, and another code everywhere for the program."""
    real = _frame(200, 1)
    near = real.assign(INCWAGE=np.where(real["INCWAGE"] < NOT_AVAILABLE, real["INCWAGE"] + 1, NOT_AVAILABLE))
    pair = _pair(real, near)
    triple = ("INCWAGE", "SEX", "URBAN")
    known = (real["INCWAGE"] < NOT_AVAILABLE).mean()
    tests = draw_tests(pair.real, np.random.default_rng(1), include_last=False, probability=0.1, rule="match3")
    kept = type(tests)((triple,), tests.conjunctions, "match3")
    assert Nist(tests=kept).compare(pair, context()).score("clustering").value == pytest.approx(1e6 * (1 - known))
    bucketed = draw_tests(pair.real, np.random.default_rng(1), include_last=False, probability=0.1)
    kept = type(tests)((triple,), bucketed.conjunctions)
    by_bucket = Nist(tests=kept, rule="buckets").compare(pair, context()).score("clustering").value
    assert by_bucket is not None
    assert by_bucket > 1e6 * (1 - known / 2)


def test_code_sets_are_drawn_from_all_codes_up_to_the_largest() -> None:
    """A set of a column with largest code L grows by √(πL/2) codes on average, whatever the labels are."""
    rows = _pair(_frame(250, 1), _frame(10, 2)).real
    drawn = draw_conjunctions(rows, np.random.default_rng(3), probability=0.5, rule="match3")
    for name in ("INCWAGE", "CITY", "AGE"):
        sets = [condition[name] for condition in drawn if name in condition]
        largest = match3_largest()[name]
        sizes = [len(one.codes) for one in sets if isinstance(one, CodeSet)]
        assert len(sizes) == len(sets)
        wanted = math.sqrt(math.pi * (largest + 1) / 2)
        # The size is close to a Rayleigh number, whose standard deviation is 0.53 of its mean; 6 of them are allowed.
        assert np.mean(sizes) == pytest.approx(wanted, rel=6 * 0.53 / math.sqrt(len(sizes)))
        assert max(code for one in sets if isinstance(one, CodeSet) for code in one.codes) > 0.9 * largest


def test_kept_tests_say_by_which_rule_they_were_drawn() -> None:
    pair = _pair(_frame(60, 1), _frame(60, 2))
    tests = draw_tests(pair.real, np.random.default_rng(1), include_last=False, probability=0.1, rule="match3")
    assert type(tests).from_json(tests.to_json()) == tests
    earlier = {key: value for key, value in tests.to_json().items() if key != "rule"}
    assert type(tests).from_json(earlier).rule == "buckets"
    with pytest.raises(UsageError, match="drawn under the rule buckets"):
        Nist(tests=type(tests).from_json(earlier)).compare(pair, context())


def test_a_table_with_other_columns_is_not_of_match_three() -> None:
    other = Schema((*_schema().columns, Category(name="x", labels=("a", "b"))), Unit())
    some = Schema(tuple(column for column in _schema().columns if column.name in ("SEX", "AGE")), Unit())
    assert rule_for(other, "auto") == rule_for(some, "auto") == "buckets"
    assert rule_for(some, "match3") == "match3"
    with pytest.raises(UsageError, match="no column 'x'"):
        Nist(rule="match3").check(other)


@pytest.mark.skipif(not SPECIFICATION.exists(), reason="the specification is not beside the checkout")
def test_the_published_specification_is_ours() -> None:
    assert rule_for(challenge_schema(), "auto") == "match3"
