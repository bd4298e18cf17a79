"""The metric: kept tests give the same score, reasons for scores that do not apply."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.evaluate.examples import codes_schema, context, mixed, mixed_frame, pair_of, rows_of, shuffled
from tests.methods.generated_rows import SPECIFICATION, challenge_schema
from understudy.codec.table import TableCodec
from understudy.errors import UsageError
from understudy.evaluate.metric import TablePair, Unavailable
from understudy.evaluate.nist import (
    ChallengeTests,
    City,
    CodeSet,
    CodeView,
    Interval,
    Nist,
    NumberView,
    bucket_codes,
    challenge_columns,
    cities_of,
    column_view,
    conjunction_score,
    densities,
    draw_conjunctions,
    draw_tests,
    draw_triples,
    gini,
    income_score,
    match3_largest,
    paired_cells,
    rule_for,
    shares,
    triple_agreement,
    triples_agreement,
)
from understudy.methods.match_three import match3_schema
from understudy.schema import Category, Integer, Schema, Unit

FRAME = mixed_frame(300)


def test_kept_tests_are_the_same_for_all_systems(tmp_path: Path) -> None:
    pair = pair_of(FRAME, shuffled(FRAME))
    found = Nist().compare(pair, context("nist"))
    tests = draw_tests(pair.real, context("nist").rng("tests"), include_last=False, probability=0.1)
    assert Nist(tests=tests).compare(pair, context("nist", seed=99)).value == found.value
    tests.save(tmp_path / "tests.json")
    assert Nist(tests=str(tmp_path / "tests.json")).compare(pair, context("nist", seed=99)).value == found.value
    assert {row["column_1"] for row in found.detail("triples").records()} <= set(mixed().names[:-1])
    assert len(found.detail("conjunctions").records()) == len(tests.conjunctions)


def test_match_is_the_mean_of_what_applies() -> None:
    found = Nist().compare(pair_of(FRAME, shuffled(FRAME)), context("nist"))
    two = [found.score(name).value for name in ("clustering", "classification")]
    assert found.value == pytest.approx(sum(two) / 2)  # type: ignore[arg-type]
    assert "no column 'SEX'" in found.score("regression").why_not


def test_all_three_scores() -> None:
    schema = Schema(
        columns=(
            Category(name="SEX", labels=("1", "2"), missing=False),
            Category(name="CITY", labels=("10", "20", "30"), missing=False),
            Integer(name="INCWAGE", lower=0, upper=5000, special=(999_998,), missing=False),
            Integer(name="AGE", lower=0, upper=99, missing=False),
        ),
        unit=Unit(),
    )
    frame = pd.DataFrame(
        {
            "SEX": ["1", "2"] * 60,
            "CITY": ["10", "20", "30"] * 40,
            "INCWAGE": [(place * 37) % 5000 for place in range(120)],
            "AGE": [place % 100 for place in range(120)],
        }
    )
    found = Nist().compare(pair_of(frame, shuffled(frame), schema=schema), context("nist"))
    three = [found.score(name).value for name in ("clustering", "classification", "regression")]
    assert found.value == pytest.approx(sum(three) / 3)  # type: ignore[arg-type]
    assert {row["city"] for row in found.detail("cities").records()} == {"10", "20", "30"}


def test_few_columns() -> None:
    frame = pd.DataFrame({"a": ["0", "1"] * 20, "b": ["0", "1"] * 20, "c": ["1", "0"] * 20})
    schema = codes_schema({"a": 2, "b": 2, "c": 2})
    assert "4 columns" in Nist().compare(pair_of(frame, frame, schema=schema), context()).score("clustering").why_not
    whole = Nist(include_last=True).compare(pair_of(frame, frame, schema=schema), context())
    assert whole.score("clustering").value == 1e6


# What the scorer sees: codes, buckets, and values that are neither.


def test_buckets() -> None:
    values = np.array([0.0, 1.0, 1.0001, 50.0, 100.0, -0.1, -1.1, 100.02, 0.0])
    states = np.array([-1] * 8 + [3])
    assert bucket_codes(NumberView(0.0, 100.0, values, states)).tolist() == [0, 0, 1, 49, 99, 0, 100, 100, 104]


def test_one_value_is_one_bucket() -> None:
    assert bucket_codes(NumberView(5.0, 5.0, np.array([5.0]), np.array([-1]))).tolist() == [0]


def test_columns_and_views() -> None:
    rows = rows_of(mixed_frame(100), mixed())
    assert challenge_columns(rows) == mixed().names
    assert isinstance(column_view(rows, "sex"), CodeView)
    view = column_view(rows, "age")
    assert isinstance(view, NumberView)
    assert (view.lower, view.upper) == (18.0, 67.0)
    assert ((view.states >= 0) == np.isnan(rows.numbers["age"])).all()


def test_densities_are_shares_over_the_same_cells() -> None:
    parts = [rows_of(mixed_frame(100, seed), mixed()) for seed in (1, 2)]
    cells = {name: paired_cells(parts[0], parts[1], name) for name in ("age", "income", "seen")}
    first, second = densities(("age", "income", "seen"), cells)
    assert first.shape == second.shape
    assert first.sum() == second.sum() == 1.0


# Score 2: the vector, how conditions are drawn, and whom they fit.


ROWS = rows_of(mixed_frame(200), mixed())


def test_vector() -> None:
    score = conjunction_score(np.array([0.02, 0.10, 0.001]), np.array([0.03, 0.05, 0.0]))
    assert score == pytest.approx(418_761.6, abs=0.05)
    assert conjunction_score(np.array([1.0]), np.array([0.0])) == 0


def test_every_condition_fits_the_row_it_was_made_from() -> None:
    drawn = draw_conjunctions(ROWS, np.random.default_rng(1), probability=0.5)
    assert 100 < len(drawn) <= 200  # rows drawn twice count once
    assert shares(ROWS, drawn).min() >= 1 / ROWS.count


def test_how_often_a_column_enters() -> None:
    drawn = draw_conjunctions(ROWS, np.random.default_rng(1), probability=0.1)
    entered = sum(len(condition) for condition in drawn) / (6 * len(drawn))
    assert entered == pytest.approx(0.1, abs=0.035)


def test_allowed_sets_grow_until_a_draw_repeats() -> None:
    sizes = [len(said.codes) for condition in draw_conjunctions(ROWS, np.random.default_rng(2), probability=1.0)
             for name, said in condition.items() if name == "region" and isinstance(said, CodeSet)]  # fmt: skip
    # With 5 codes: 1 with chance 1/5, 2 with 4/5·2/5, 3 with 4/5·3/5·3/5, …
    expected = 0.2 * 1 + 0.32 * 2 + 0.288 * 3 + 0.1536 * 4 + 0.0384 * 5
    assert np.mean(sizes) == pytest.approx(expected, abs=4 * np.std(sizes) / np.sqrt(len(sizes)))


def test_numbers_fit_intervals_and_states() -> None:
    wide = shares(ROWS, [{"age": Interval(18, 67)}, {"age": Interval(30, 30)}, {"age": CodeSet((5,))}])
    special = np.isnan(ROWS.numbers["age"]).mean()
    assert wide[0] == pytest.approx(1 - special)
    assert wide[1] == pytest.approx((ROWS.numbers["age"] == 30).mean())
    assert wide[2] == pytest.approx(special)


def test_columns_that_are_not_there_are_ignored() -> None:
    assert shares(ROWS, [{"gone": CodeSet((0,))}]).tolist() == [1.0]


# Tests of the challenge are drawn by seed, kept, and read back.


DRAWS_ROWS = rows_of(mixed_frame(100), mixed())


def _drawn(seed: int) -> ChallengeTests:
    return draw_tests(DRAWS_ROWS, np.random.default_rng(seed), include_last=False, probability=0.3)


def test_seeds() -> None:
    assert _drawn(1) == _drawn(1)
    assert _drawn(1) != _drawn(2)


def test_round_trip(tmp_path: Path) -> None:
    tests = _drawn(1)
    tests.save(tmp_path / "tests.json")
    assert ChallengeTests.load(tmp_path / "tests.json") == tests


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "x", "triples": [], "conjunctions": []}', '{"triples": 3}']
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "tests.json").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="challenge tests"):
        ChallengeTests.load(tmp_path / "tests.json")


# Score 3: the vectors, and cities by hand.


CITIES = {"a": City(0.40, 300), "b": City(0.35, 100), "c": City(0.50, 200)}
OTHERS = {"a": City(0.45, 150), "b": City(0.30, 120), "c": City(0.50, 260)}


def test_gini_vectors() -> None:
    assert gini(np.array([0.0, 0.0, 0.0, 10.0])) == pytest.approx(0.5)
    assert gini(np.array([100.0, 200.0, 300.0])) == pytest.approx(-0.1111, abs=1e-4)
    assert gini(np.full(4, 7.0)) == pytest.approx(-0.25)
    assert gini(np.zeros(3)) == gini(np.empty(0)) == 1.0


def test_score_vector() -> None:
    assert income_score(CITIES, OTHERS) == pytest.approx(837_030.4, abs=0.1)
    same = income_score(CITIES, CITIES)
    assert same == pytest.approx(1e6)


def test_the_two_parts_of_the_score() -> None:
    """Inequality alone with the original's gaps, ranks alone with its inequality: the other part is full."""
    same_gaps = {name: City(OTHERS[name].gini, city.gap) for name, city in CITIES.items()}
    same_gini = {name: City(city.gini, OTHERS[name].gap) for name, city in CITIES.items()}
    assert income_score(CITIES, same_gaps) == pytest.approx(483_477.0 + 500_000, abs=0.05)
    assert income_score(CITIES, same_gini) == pytest.approx(353_553.4 + 500_000, abs=0.05)


def test_missing_cities_contribute_nothing() -> None:
    fewer = income_score(CITIES, {"a": CITIES["a"]})
    assert fewer == pytest.approx(500_000 * 2 * np.sqrt(1 / 3))
    assert income_score(CITIES, {}) == 0
    assert isinstance(income_score({"a": CITIES["a"]}, OTHERS), Unavailable)


@pytest.mark.parametrize("numeric", [True, False])
def test_cities_by_hand(numeric: bool) -> None:
    wages = ["100", "300", "999998", "50", "70"]
    wage = (
        Integer(name="INCWAGE", lower=0, upper=10_000, special=(999_998,), missing=False)
        if numeric
        else Category(name="INCWAGE", labels=tuple(wages), missing=False)
    )
    columns = (Category(name="SEX", labels=("1", "2")), Category(name="CITY", labels=("x", "y"), missing=False), wage)
    frame = pd.DataFrame({"SEX": ["1", "2", "1", "1", None], "CITY": list("xxxyy"), "INCWAGE": wages})
    found = cities_of(rows_of(frame, Schema(columns=columns, unit=Unit())), ("SEX", "CITY", "INCWAGE"), ("1", "2"))
    assert found["x"].gap == pytest.approx(100 - 300)
    assert found["x"].gini == pytest.approx(gini(np.array([100.0, 300.0])))
    assert found["y"].gap == pytest.approx(50)


def _three_columns() -> Schema:
    return Schema(
        columns=(
            Category(name="SEX", labels=("1", "2"), missing=False),
            Category(name="CITY", labels=("10", "20", "30", "40"), missing=False),
            Integer(name="INCWAGE", lower=0, upper=5000, special=(999_998,), missing=False),
        ),
        unit=Unit(),
    )


def _cities(*people: tuple[str, str, int]) -> dict[str, City]:
    frame = pd.DataFrame(people, columns=["SEX", "CITY", "INCWAGE"])
    return cities_of(rows_of(frame, _three_columns()), ("SEX", "CITY", "INCWAGE"), ("1", "2"))


def test_a_city_without_a_known_wage_is_ranked() -> None:
    """Gini index 1 and pay gap 0, as the official program has it; the city was left out once."""
    original = _cities(("1", "10", 900), ("2", "10", 100), ("1", "20", 500), ("2", "20", 400), ("1", "30", 50),
                       ("2", "30", 450))  # fmt: skip
    submission = _cities(("1", "10", 900), ("2", "10", 100), ("1", "20", 999_998), ("2", "20", 999_998),
                         ("1", "30", 50), ("2", "30", 450))  # fmt: skip
    assert submission["20"] == City(1.0, 0.0)
    ours = original["20"].gini
    # Gaps 800, 100, −400 become 800, 0, −400: the order stays, and the index of one city is off by 1 − ours.
    wanted = 500_000 * (np.sqrt((2 + (1 - abs(1 - ours)) ** 2) / 3) + 1)
    assert income_score(original, submission) == pytest.approx(wanted)


def test_neighbouring_cases_of_a_city() -> None:
    found = _cities(("1", "10", 0), ("2", "10", 0), ("1", "20", 300), ("1", "20", 100), ("2", "30", 70), ("2", "40", 0),
                    ("1", "40", 999_998))  # fmt: skip
    assert found["10"] == City(1.0, 0.0)  # nobody earns anything
    assert found["20"].gap == pytest.approx(200)  # no women: the mean of men
    assert found["30"].gap == pytest.approx(-70)  # no men: minus the mean of women
    assert found["40"] == City(1.0, 0.0)  # one known wage, of 0


def test_wages_are_those_of_the_file() -> None:
    """A wage above the schema's bound counts as it is, and is not clamped."""
    found = _cities(("1", "10", 9000), ("2", "10", 1000))
    assert found["10"].gap == pytest.approx(8000)


def test_cities_that_the_original_lacks_still_take_a_rank() -> None:
    original = {"a": City(0.2, 30), "b": City(0.2, 20), "c": City(0.2, 10)}
    assert income_score(original, original | {"x": City(0.2, 25)}) == pytest.approx(
        500_000 * (1 + np.sqrt((1 + 0.25 + 0.25) / 3))
    )


# Score 1: the vector, and how triples are drawn.


def test_three_way_vector() -> None:
    original, submission = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.6, 0.1, 0.0, 0.3])
    assert 1e6 * triple_agreement(original, submission) == pytest.approx(600_000)


def test_last_column_is_forgotten_unless_asked_for() -> None:
    names = list("abcde")
    drawn = draw_triples(names, np.random.default_rng(1))
    assert len(drawn) == 100
    assert all(len(set(triple)) == 3 for triple in drawn)
    assert {name for triple in drawn for name in triple} == set("abcd")
    whole = draw_triples(names, np.random.default_rng(1), include_last=True)
    assert {name for triple in whole for name in triple} == set(names)
    assert draw_triples(list("abc"), np.random.default_rng(1)) == ()


def test_agreement_by_hand() -> None:
    first, second = rows_of(mixed_frame(80), mixed()), rows_of(mixed_frame(60, seed=2), mixed())
    (found,) = triples_agreement(first, second, [("region", "sex", "voted")])
    cells: dict[tuple[int, ...], list[float]] = {}
    for part, rows in enumerate((first, second)):
        for place in range(rows.count):
            cell = tuple(int(rows.codes[name][place]) for name in ("region", "sex", "voted"))
            cells.setdefault(cell, [0.0, 0.0])[part] += 1 / rows.count
    assert found == pytest.approx(1 - sum(abs(one - other) for one, other in cells.values()) / 2)


# The Match 3 scorer against a reference that counts rows one by one, on generated tables with its 98 columns.


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
