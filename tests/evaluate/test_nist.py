"""The metric: kept tests give the same score, reasons for scores that do not apply."""

from pathlib import Path

import pandas as pd
import pytest

from tests.evaluate.examples import codes_schema, context, mixed, mixed_frame, pair_of, shuffled
from understudy.evaluate.nist import Nist, draw_tests
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
