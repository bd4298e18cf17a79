"""Tests of `understudy.evaluate.metric`."""

import datetime as dt
import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import understudy as us
from tests.evaluate.examples import codes_schema, mixed, mixed_frame, rows_of, shuffled
from understudy.codec.table import TableCodec
from understudy.domain import Clique
from understudy.evaluate import metric as counting
from understudy.evaluate.marginals import _sizes
from understudy.evaluate.metric import (
    Unread,
    counted,
    declared_size,
    fixed_codec,
    group_rows,
    open_for_comparison,
    read_numbers,
    stacked,
    total_variation,
    unread_columns,
)
from understudy.evaluate.page import build_report
from understudy.report import prose, render_page
from understudy.schema import Boolean, Category, Date, Float, Integer, OpenCategory, PrivateBins, Schema, Unit

# Rows come in an order of their own, and equal rows are found exactly.


def test_order_of_the_file_does_not_matter() -> None:
    frame = mixed_frame(200)
    one, other = rows_of(frame, mixed()), rows_of(frame.sample(frac=1, random_state=3)[frame.columns[::-1]], mixed())
    for name in one.codes:
        np.testing.assert_array_equal(one.codes[name], other.codes[name])
    for name in one.numbers:
        np.testing.assert_array_equal(one.numbers[name], other.numbers[name])


def test_take_and_stack() -> None:
    rows = rows_of(mixed_frame(50), mixed())
    some = rows.take(np.arange(0, 50, 5))
    assert some.count == 10
    both = stacked(rows, some)
    assert both.count == 60
    np.testing.assert_array_equal(both.codes["sex"][50:], some.codes["sex"])
    assert rows.groups.max() < 50


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=30), st.sampled_from([1, 10**9])
)
def test_groups_are_equal_rows(table: list[list[int]], scale: int) -> None:
    columns = [np.array([row[place] * scale for row in table]) for place in range(4)]
    groups = group_rows(columns, len(table))
    for i, first in enumerate(table):
        for j, second in enumerate(table):
            assert (groups[i] == groups[j]) == (first == second)


# Numbers are read as the codec reads them and as the file has them, whatever they are stored as.


AGE = Integer(name="age", lower=0, upper=99, special=(999,))


@pytest.mark.parametrize(
    "array",
    [
        pa.array([5, 120, 999, None, -3], pa.int64()),
        pa.array([5.0, 120.0, 999.0, None, -3.0]),
        pa.array(["5", "120", "999", None, "-3"]),
        pa.array(["5", "120", "999", None, "-3"]).dictionary_encode(),
        pa.chunked_array([pa.array([5, 120]), pa.array([999, None, -3])]),
    ],
)
def test_every_storage_reads_the_same(array: pa.Array) -> None:
    numbers, raw = read_numbers(AGE, array)
    np.testing.assert_array_equal(numbers, [5.0, 99.0, np.nan, np.nan, 0.0])
    np.testing.assert_array_equal(raw, [5.0, 120.0, 999.0, np.nan, -3.0])


def test_nonsense_is_no_number() -> None:
    for numbers in read_numbers(AGE, pa.array(["x", "7", ""])):
        np.testing.assert_array_equal(numbers, [np.nan, 7.0, np.nan])
    assert np.isnan(read_numbers(AGE, pa.nulls(3))).all()
    assert len(read_numbers(AGE, pa.array([], pa.int64()))[0]) == 0


def test_dates_are_days_and_floats_stay() -> None:
    column = Date(name="d", lower=dt.date(2020, 1, 1), upper=dt.date(2020, 12, 31))
    days, _ = read_numbers(column, pa.array([dt.date(2020, 1, 2), None]))
    assert days[0] == (dt.date(2020, 1, 2) - dt.date(1970, 1, 1)).days
    weights = Float(name="w", lower=0.0, upper=1.0, special=(-1.0,))
    numbers, raw = read_numbers(weights, pa.array([0.25, -1.0, 7.0]))
    np.testing.assert_array_equal(numbers, [0.25, np.nan, 1.0])
    np.testing.assert_array_equal(raw, [0.25, -1.0, 7.0])


# Counting in batches gives what counting by hand gives, for small and for huge tables.


SIZES = {"a": 3, "b": 4, "c": 2, "d": 5}
SCHEMA = codes_schema(SIZES)


def _frame(seed: int, rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.integers(0, size, rows).astype(str) for name, size in SIZES.items()})


@pytest.mark.parametrize("dense", [1 << 22, 10])
@pytest.mark.parametrize("batch", [1, 400])
def test_counts_equal_those_by_hand(monkeypatch: pytest.MonkeyPatch, dense: int, batch: int) -> None:
    monkeypatch.setattr(counting, "DENSE_CELLS", dense)
    monkeypatch.setattr(counting, "LEAST_DENSE_CELLS", dense)
    monkeypatch.setattr(counting, "BATCH_CLIQUES", batch)
    frames = [_frame(1), _frame(2, 200)]
    parts = [rows_of(frame, SCHEMA) for frame in frames]
    cliques = [Clique(names) for ways in (1, 2, 3) for names in itertools.combinations(SIZES, ways)]
    found = list(counted(parts, cliques))
    assert [one.clique for one in found] == cliques
    for one in found:
        shape = parts[0].domain.shape(one.clique)
        for frame, counts in zip(frames, one.counts, strict=True):
            whole = np.zeros(np.prod(shape), np.int64)
            whole[np.arange(len(whole)) if one.cells is None else one.cells] = counts
            by_hand = np.zeros(shape, np.int64)
            np.add.at(by_hand, tuple(frame[name].astype(int).to_numpy() for name in one.clique), 1)
            np.testing.assert_array_equal(whole.reshape(shape), by_hand)


def test_total_variation() -> None:
    assert total_variation(np.array([5, 3, 2, 0]), np.array([6, 1, 0, 3])) == pytest.approx(0.4)
    assert total_variation(np.array([1, 1]), np.array([50, 50])) == 0
    assert total_variation(np.array([1, 0]), np.array([0, 9])) == 1


# What a schema leaves open is taken from the real table.


SETTLE_SCHEMA = Schema(
    columns=(
        OpenCategory(name="job", most_labels=2),
        Integer(name="age", lower=0, upper=100, bins=PrivateBins(4)),
        Float(name="pay", lower=0.0, upper=1.0, bins=PrivateBins(2)),
    ),
    unit=Unit(),
)


def test_most_frequent_labels_and_quantiles() -> None:
    frame = pd.DataFrame(
        {"job": ["b"] * 5 + ["a"] * 3 + ["c"] * 2, "age": np.arange(10) * 10, "pay": np.arange(10) / 10}
    )
    codec = fixed_codec(open_for_comparison(frame, SETTLE_SCHEMA), SETTLE_SCHEMA)
    assert codec.labels == {"job": ("a", "b")}
    assert codec.edges["age"][0] == 0
    assert codec.edges["age"][-1] == 101
    assert codec.layout("age").regular == 4
    assert codec.layout("pay").regular == 2
    assert codec.describe("age", codec.domain.sizes["age"] - 1) == "unreadable"


def test_nothing_known_is_one_bin() -> None:
    frame = pd.DataFrame({"job": [None], "age": [None], "pay": [np.nan]})
    codec = fixed_codec(open_for_comparison(frame, SETTLE_SCHEMA), SETTLE_SCHEMA)
    assert codec.layout("age").regular == 1


# The file is judged as it is: what the schema cannot read counts as a difference, and its share is said.


SEXES = {"F": 150, "f": 146, "M": 144, "m": 160}
UNREAD_SCHEMA = Schema(
    columns=(
        Category(name="sex", labels=("F", "M"), missing=False),
        Integer(name="age", lower=18, upper=67, missing=False),
    ),
    unit=Unit(),
)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    sex = rng.permutation([label for label, number in SEXES.items() for _ in range(number)])
    frame = pd.DataFrame({"sex": sex, "age": rng.integers(18, 68, len(sex))})
    frame.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


def test_labels_in_another_spelling_are_seen_and_said(people: Path) -> None:
    """Such a release once scored better than its yardstick."""
    release = us.synthesize(people, UNREAD_SCHEMA, method="independent", epsilon=1e6, seed=1)
    found = us.evaluate(people, release, metrics=["marginals", "specks", "chi2", "nist"])
    (sex,) = [row for row in found["marginals"].detail("columns").records() if row["column_1"] == "sex"]
    assert sex["distance"] == pytest.approx(0.51, abs=0.03)
    assert sex["distance"] > 5 * sex["yardstick"]  # type: ignore[operator]
    assert found["specks"].score("cart").value > 0.4  # type: ignore[operator]
    (told,) = found.unread
    assert (told.column, told.table, told.unreadable) == ("sex", "real", pytest.approx(306 / 600))
    sentence = "sex: 51 % of the real values are not among its labels (examples are not shown)."
    assert told.sentences() == (sentence,)
    page = render_page(build_report(found))
    assert prose(sentence) in page
    assert json.loads(json.dumps(found.to_json()))["unread"][0]["unreadable"] == pytest.approx(306 / 600)


def test_a_column_that_cannot_be_read_at_all_is_not_called_constant(people: Path) -> None:
    spelled = Schema((Category(name="sex", labels=("female", "male")), *UNREAD_SCHEMA.columns[1:]), Unit())
    nothing = pd.DataFrame({"sex": [None] * 300, "age": np.arange(300) % 50 + 18})
    found = us.evaluate(people, nothing, spelled)
    (told,) = found.unread
    assert told.unreadable == 1
    (sex,) = [row for row in found["marginals"].detail("columns").records() if row["column_1"] == "sex"]
    assert sex["distance"] == 1.0
    page = render_page(build_report(found))
    assert prose("100 % of the real values are not among its labels") in page
    assert "holds a single value in the real table." not in page
    assert "can read no value of sex" in page


def test_numbers_are_those_of_the_file() -> None:
    columns = (
        Integer(name="pay", lower=0, upper=5000, special=(999_998,)),
        Float(name="size", lower=0.0, upper=2.0),
        Boolean(name="voted"),
    )
    schema = Schema(columns, Unit())
    frame = pd.DataFrame(
        {
            "pay": ["100", "10000", "999998", "1,200", "", "-3", "n/a", "5000"],
            "size": ["1.5", "€ 1.2", "3.5", "", "1", "1", "1", "1"],
            "voted": ["yes", "no", "maybe", "", "true", "0", "1", "y"],
        }
    )
    told = {one.column: one for one in unread_columns(rows_of(frame, schema), ())}
    assert (told["pay"].unreadable, told["pay"].beyond) == (pytest.approx(2 / 7), pytest.approx(2 / 7))
    assert (told["size"].unreadable, told["size"].beyond) == (pytest.approx(1 / 7), pytest.approx(1 / 7))
    assert told["voted"].unreadable == pytest.approx(1 / 7)
    assert told["pay"].sentences() == (
        "pay: 29 % of the real values cannot be read as its kind, integer (examples are not shown).",
        "pay: 29 % of the real values lie beyond its bounds and are judged as part of its end bins.",
    )
    assert "neither true nor false" in told["voted"].sentences()[0]


def test_a_table_that_fits_its_schema_says_nothing() -> None:
    frame = mixed_frame(200)
    found = us.evaluate(frame, shuffled(frame), mixed(), metrics=["marginals"])
    assert found.unread == ()
    assert "does not fit" not in render_page(build_report(found))
    labels = {row["label"] for row in found["marginals"].detail("cells").records()}
    assert "unreadable" not in labels


def test_a_synthetic_table_with_foreign_values_is_told_too() -> None:
    frame = mixed_frame(100)
    (told,) = us.evaluate(frame, frame.assign(sex="woman"), mixed(), metrics=["marginals"]).unread
    assert (told.table, told.column, told.unreadable) == ("synthetic", "sex", 1.0)
    assert "of the synthetic values" in told.sentences()[0]


def test_rare_shares_are_not_rounded_away() -> None:
    assert "less than 0.1 %" in Unread("a", "real", 1e-5, 0.0, "x").sentences()[0]
    assert "0.2 %" in Unread("a", "real", 0.0, 0.002, "x").sentences()[0]
    assert "99.6 %" in Unread("a", "real", 0.996, 0.0, "x").sentences()[0]


def test_codes_for_what_is_not_expected_come_after_the_declared_ones() -> None:
    judging, plain = TableCodec.of(mixed(), judging=True), TableCodec.of(mixed())
    for name in plain.domain.columns:
        layout = plain.layout(name)
        assert declared_size(judging, name) == layout.size - layout.unreadable


def test_the_yardstick_of_chance_tests_keeps_the_degrees_of_freedom_of_the_schema() -> None:
    """Codes that the schema does not declare and that nobody has do not count as levels of a column."""
    frame = mixed_frame(300)
    copies = [shuffled(frame, seed) for seed in (1, 2, 3)]
    judged = us.evaluate(frame, copies, mixed(), metrics=["chi2"])["chi2"]
    assert judged.value is not None
    rows = rows_of(frame, mixed())
    sizes = _sizes(rows.codec, rows)
    assert sizes == {name: declared_size(rows.codec, name) for name in rows.domain.columns}
    odd = rows_of(frame.assign(sex=["F", "x", *frame["sex"][2:]]), mixed())
    assert _sizes(rows.codec, rows, odd)["sex"] == sizes["sex"] + 1
