"""The file is judged as it is: what the schema cannot read counts as a difference, and its share is said."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import understudy as us
from tests.evaluate.examples import mixed, mixed_frame, rows_of, shuffled
from understudy.codec.table import TableCodec
from understudy.evaluate.chi2 import _sizes
from understudy.evaluate.data import Unread, declared_size, unread_columns
from understudy.evaluate.suite import build_report
from understudy.report.charts import render_page
from understudy.schema import Boolean, Category, Float, Integer, Schema, Unit

SEXES = {"F": 150, "f": 146, "M": 144, "m": 160}
SCHEMA = Schema(
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
    release = us.synthesize(people, SCHEMA, method="independent", epsilon=1e6, seed=1)
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
    assert sentence in page
    assert json.loads(json.dumps(found.to_json()))["unread"][0]["unreadable"] == pytest.approx(306 / 600)


def test_a_column_that_cannot_be_read_at_all_is_not_called_constant(people: Path) -> None:
    spelled = Schema((Category(name="sex", labels=("female", "male")), *SCHEMA.columns[1:]), Unit())
    nothing = pd.DataFrame({"sex": [None] * 300, "age": np.arange(300) % 50 + 18})
    found = us.evaluate(people, nothing, spelled)
    (told,) = found.unread
    assert told.unreadable == 1
    (sex,) = [row for row in found["marginals"].detail("columns").records() if row["column_1"] == "sex"]
    assert sex["distance"] == 1.0
    page = render_page(build_report(found))
    assert "100 % of the real values are not among its labels" in page
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
