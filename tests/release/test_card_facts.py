"""The card's facts: error bars that hold, what was measured, and nothing from private rows."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy as us
from understudy.domain import Distribution
from understudy.privacy.noise import discrete_gaussian, discrete_laplace
from understudy.release.card import card_facts, half_width
from understudy.release.release import Release
from understudy.release.verify import check_settings
from understudy.schema import Category, Float, Schema, Unit

DRAWS = 40_000


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(2), Fraction(25)])
def test_laplace_error_bars_are_the_smallest_that_cover(scale: Fraction) -> None:
    half = half_width(Distribution("laplace", scale))
    size = np.abs(discrete_laplace(DRAWS, scale))
    slack = 6 * (0.95 * 0.05 / DRAWS) ** 0.5
    assert np.mean(size <= half) > 0.95 - slack
    assert half == 0 or np.mean(size <= half - 1) < 0.95 + slack


@pytest.mark.parametrize(("distribution", "cells"), [("gaussian", 1), ("gaussian", 9), ("laplace", 9)])
def test_error_bars_of_sums_cover(distribution: str, cells: int) -> None:
    draw = discrete_gaussian if distribution == "gaussian" else discrete_laplace
    sums = draw(DRAWS * cells, Fraction(64)).reshape(DRAWS, cells).sum(axis=1)
    half = half_width(Distribution(distribution, Fraction(64)), cells)  # type: ignore[arg-type]
    assert 0.93 < np.mean(np.abs(sums) <= half) < 0.97


def test_noise_too_small_to_see() -> None:
    assert half_width(Distribution("laplace", Fraction(1, 10_000))) == 0.0


def test_measured_columns_show_their_noisy_answers(full_release: Release, full_folder: Path) -> None:
    facts = card_facts(full_release, full_folder / "data.parquet")
    sex = next(one for one in facts.one_ways if one.column == "sex")
    answer = next(answer for answer in full_release.transcript if answer.name == "sex")
    assert list(sex.values) == answer.values.tolist()  # type: ignore[union-attr]
    assert sex.half_width == half_width(answer.distribution)  # type: ignore[union-attr]
    assert [one.column for one in facts.one_ways] == list(full_release.codec.domain.columns)
    assert facts.together[0] == "0 of 21 pairs of columns were measured together."
    assert len(facts.measured) == len(full_release.transcript)
    assert facts.banner.startswith("PUBLIC")


def test_joint_tables_say_what_was_seen_together(plain_release: Release, plain_folder: Path) -> None:
    facts = card_facts(plain_release, plain_folder / "data.parquet")
    assert facts.together[0] == "3 of 3 pairs of columns were measured together."
    assert all(one.values for one in facts.one_ways)
    assert facts.sample.header == ("sex", "age", "voted")
    assert len(facts.sample.rows) == 10
    assert facts.sample.total == plain_release.config.rows[0]


def test_what_the_schema_tells_people_reaches_card_and_files(tmp_path: Path) -> None:
    vote = Category(name="vote", labels=("1", "2", "9"), title="Vote", ordered=True, meanings={"1": "yes", "2": "no"})
    wage = Float(name="wage", lower=0.0, upper=9.0, description="Before tax", measured_in="€")
    schema = Schema((vote, wage, Category(name="plain", labels=("a",))), Unit())
    table = pa.table({"vote": ["1", "2"] * 20, "wage": [1.0, 2.0] * 20, "plain": ["a"] * 40})
    release = us.synthesize(table, schema, epsilon=100.0, method="independent", out=tmp_path / "release")
    facts = card_facts(release, tmp_path / "release" / "data.parquet")
    assert [one.labels for one in facts.columns] == ["from lowest to highest: 1 = yes; 2 = no; 9", "", ""]
    assert [one.says_something for one in facts.columns] == [True, True, False]
    assert facts.one_ways[0].labels[:3] == ("1 = yes", "2 = no", "9")
    assert "Before tax" in (tmp_path / "release" / "card.html").read_text(encoding="utf-8")
    release.sample_to(tmp_path / "rows.parquet", 5)
    for path in (tmp_path / "release" / "data.parquet", tmp_path / "rows.parquet"):
        stored = pq.read_schema(path)
        assert stored.field("vote").metadata[b"title"] == b"Vote"
        assert stored.field("vote").metadata[b"meanings"] == b'{"1": "yes", "2": "no"}'
        assert stored.field("vote").metadata[b"ordered"] == b'["1", "2", "9"]'
        assert stored.field("wage").metadata[b"measured_in"].decode() == "€"
        assert b"title" not in (stored.field("plain").metadata or {})
    assert us.Release.load(tmp_path / "release").table.schema.field("wage").metadata[b"description"] == b"Before tax"
    assert release.sample(3).schema.field("vote").metadata[b"title"] == b"Vote"
    statement = (tmp_path / "release" / "statement.md").read_text(encoding="utf-8")
    assert "## What columns hold" in statement
    assert "- vote: Vote\n- wage: (€)\n" in statement
    assert us.verify(tmp_path / "release") == []
    told = replace(release.statement, titles={"vote": "Another title", "wage": "(€)"})
    assert [problem.where for problem in check_settings(told, release.config, schema)] == [
        "schema.yaml: titles of columns"
    ]
