"""The confidential report: every score beside its yardstick, the worst first, and no label that becomes markup."""

import numpy as np
import pyarrow as pa
import pytest

from tests.evaluate.examples import mixed, mixed_frame, shuffled
from tests.report.test_html import PAYLOADS, Tree
from understudy.evaluate import Evaluation, evaluate
from understudy.evaluate.regression import Regression
from understudy.evaluate.suite import MOST_ROWS, build_report
from understudy.report import BulletList, Page, Points, TextTable, render_page
from understudy.schema import Category, Integer, Schema, Unit

METRICS = ["marginals", "correlations", "rules", "disclosure", Regression()]


@pytest.fixture(scope="module")
def found() -> Evaluation:
    frame = mixed_frame(300)
    return evaluate(frame, shuffled(frame), mixed(), metrics=METRICS, seed=4)


@pytest.fixture(scope="module")
def page(found: Evaluation) -> Page:
    return build_report(found)


def test_every_section_opens_with_a_question(page: Page, found: Evaluation) -> None:
    assert page.confidential
    assert page.banner.startswith("NOT FOR RELEASE")
    assert [section.title for section in page.sections] == ["In short", *found.metrics, "How it was done"]
    assert all(section.question.endswith("?") for section in page.sections)


def test_every_score_stands_beside_its_yardstick(page: Page, found: Evaluation) -> None:
    text = Tree(render_page(page)).text
    for result in found.results:
        for score in result.scores:
            assert score.name in text
            for number in (score.value, score.yardstick):
                assert number is None or f"{number:,.5g}" in text


def test_a_score_without_a_value_says_why(page: Page) -> None:
    text = Tree(render_page(page)).text
    assert "not computed: no formula was given" in text
    assert "nan" not in text.lower().split()


def test_the_worst_comes_first(page: Page, found: Evaluation) -> None:
    (section,) = [one for one in page.sections if one.title == "marginals"]
    details = [block for block in section.blocks if isinstance(block, TextTable)][1:]
    for shown, detail in zip(details, found["marginals"].details, strict=True):
        assert len(shown.rows) == min(MOST_ROWS, detail.table.num_rows)
        assert str(detail.caption) in shown.caption


def test_real_against_synthetic_is_drawn(page: Page) -> None:
    (section,) = [one for one in page.sections if one.title == "correlations"]
    (cloud,) = [block for block in section.blocks if isinstance(block, Points)]
    assert len(cloud.points) > 10


def test_names_labels_and_notes_stay_text() -> None:
    plain = _elements("plain")
    for payload in PAYLOADS:
        assert _elements(payload) == plain, payload


def test_a_hundred_columns_stay_below_two_megabytes() -> None:
    rng = np.random.default_rng(0)
    names = [f"column {number}" for number in range(100)]
    schema = Schema(
        columns=tuple(Integer(name=name, lower=0, upper=3, missing=False) for name in names), unit=Unit(), title="wide"
    )
    real, other = (pa.table({name: rng.integers(0, 4, 60) for name in names}) for _ in range(2))
    options = {"marginals": {"ways": 2}}
    wide = evaluate(real, other, schema, metrics=["marginals", "correlations"], options=options, seed=1)
    assert len(render_page(build_report(wide)).encode()) < 2_000_000


def _elements(payload: str) -> list[tuple[str, tuple[str, ...]]]:
    """Elements of a report on tables whose names, labels, title and notes hold the payload."""
    text = payload.replace("\x00", "").replace("\udc80", "")[:200] or "empty"
    schema = Schema(
        columns=(
            Category(name=f"a {text}", labels=(f"first {text}", f"second {text}"), note=text),
            Category(name="b", labels=("x", "y")),
        ),
        unit=Unit(),
        title=text,
    )
    real = pa.table({f"a {text}": [f"first {text}", f"second {text}"] * 6, "b": ["x", "x", "y"] * 4})
    made = pa.table({f"a {text}": [f"first {text}"] * 12, "b": ["x", "y"] * 6})
    found = evaluate(real, made, schema, metrics=["marginals", "rules"], seed=1)
    return Tree(render_page(build_report(found))).elements


def test_what_is_furthest_off_is_told_of_metrics_that_judge(page: Page) -> None:
    summary = page.sections[0]
    (worst,) = [block for block in summary.blocks if isinstance(block, BulletList)]
    named = [text.split(":")[0] for text in worst.items]
    assert named == ["marginals", "correlations", "rules"]  # disclosure does not judge, and no model was given


def test_titles_and_units_of_measurement_are_told_where_the_schema_has_them(found: Evaluation) -> None:
    columns = (
        Category(name="s", labels=("F", "M"), title="Sex <b>"),
        Integer(name="w", lower=0, upper=9, measured_in="kg"),
    )
    frame = pa.table({"s": ["F", "M"] * 20, "w": [1, 2] * 20})
    told = evaluate(frame, frame, Schema(columns, Unit()), metrics=["marginals"])
    assert told.to_json()["titles"] == {"s": "Sex <b>", "w": "(kg)"}
    text = Tree(render_page(build_report(told))).text
    assert "s: Sex <b>." in text
    assert "w: (kg)." in text
    assert "titles" not in found.to_json()
