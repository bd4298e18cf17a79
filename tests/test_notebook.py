"""Objects in a notebook: one short line, a bounded piece of HTML, and no text of people as markup."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import cast
from xml.etree import ElementTree

import pytest

import understudy as us
from tests.compare.tables import SCHEMA, table
from tests.release.people import SCRIPT, everything, people
from understudy.compare import Comparison, compare
from understudy.errors import UsageError
from understudy.methods.method import Plan
from understudy.notebook import MOST_LINES, shown_as_html
from understudy.report import MOST_SHOWN, Pictures, render_picture


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("objects")
    release = us.synthesize(people(), everything(), method="independent", epsilon=20.0, delta=1e-6)
    study = compare(
        table(300), SCHEMA, methods=["laplace"], epsilons=[1.0], repeats=1, metrics=["rules", "crosstab_l1"]
    )
    return {
        "schema": everything(),
        "plan": us.plan(everything(), method="aim", epsilon=1.0, delta=1e-6),
        "release": release,
        "statement": release.statement,
        "evaluation": us.evaluate(people(), release.table, everything(), metrics=["rules", "crosstab_l1"]),
        "comparison": study,
        "study": study.study,
        "ledger": us.Ledger.create(folder / "l.db", "<b>people</b>", us.Budget(1.0)),
    }


NAMES = ("schema", "plan", "release", "statement", "evaluation", "comparison", "study", "ledger")


@pytest.mark.parametrize("name", NAMES)
def test_repr_is_one_short_line(name: str, objects: dict[str, object]) -> None:
    text = repr(objects[name])
    assert text.startswith("<")
    assert text.endswith(">")
    assert "\n" not in text
    assert len(text) <= 250


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.found.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize("name", NAMES)
def test_html_is_bounded_and_holds_no_foreign_markup(name: str, objects: dict[str, object]) -> None:
    html = objects[name]._repr_html_()  # type: ignore[attr-defined]
    reader = _Tags()
    reader.feed(html)
    assert reader.found <= {"div", "strong", "p", "table", "thead", "tbody", "tr", "th", "td"}
    assert len(html) <= 40_000
    texts = " ".join(reader.texts)
    expected = {
        "schema": SCRIPT,
        "ledger": "<b>people</b>",
        "evaluation": "NOT FOR RELEASE",
        "study": "NOT FOR RELEASE",
    }
    assert expected.get(name, "") in texts


def test_long_tables_are_cut_and_say_so() -> None:
    html = shown_as_html("many", header=("a",), rows=[[number] for number in range(MOST_LINES + 3)])
    assert html.count("<td>") == MOST_LINES
    assert "… and 3 more." in html


def test_a_run_without_a_claim_says_so() -> None:
    plan = us.plan(everything(), method="independent", epsilon=1.0, delta=1e-6)
    assert "NO CLAIM" not in repr(plan)
    refused = replace(plan, refused="as published")
    assert "NO CLAIM" in repr(refused)
    assert "as published" in refused._repr_html_()


def test_what_can_be_drawn_gives_charts_that_show_themselves_and_can_be_kept(
    objects: dict[str, object], tmp_path: Path
) -> None:
    evaluation = us.evaluate(people(), cast(us.Release, objects["release"]).table, everything(), metrics=["marginals"])
    drawn = {
        "plan": cast(Plan, objects["plan"]).plot(),
        "columns": cast(us.Release, objects["release"]).plot(),
        "compared columns": evaluation.plot(),
        "pairs": evaluation.plot("pairs"),
        "study": cast(Comparison, objects["comparison"]).plot("resources"),
    }
    kept = {name: pictures.confidential for name, pictures in drawn.items()}
    assert kept == {"plan": False, "columns": False, "compared columns": True, "pairs": True, "study": True}
    for name, pictures in drawn.items():
        assert len(pictures) == len(pictures.charts) > 0
        assert repr(pictures).startswith("<")
        assert len(repr(pictures)) < 250
        tags = _Tags()
        tags.feed(pictures._repr_html_())
        optional = {"p", "span"}
        assert tags.found - optional == {"div", "figure", "figcaption", "strong", "img"}
        assert ("NOT FOR RELEASE" in " ".join(tags.texts)) == pictures.confidential
        assert pictures._repr_html_().count("<img") == min(len(pictures), MOST_SHOWN)
        text = pictures.save(tmp_path / f"{name}.html").read_text(encoding="utf-8")
        assert ("NOT FOR RELEASE" in text) == pictures.confidential
    assert {chart.caption for chart in drawn["columns"].charts} <= set(everything().names)


def test_a_notebook_tells_which_colour_is_real(objects: dict[str, object]) -> None:
    release = cast(us.Release, objects["release"])
    evaluation = us.evaluate(people(), release.table, everything(), metrics=["marginals"])
    html = evaluation.plot()._repr_html_()
    colours = [re.search(rf'color:(#[0-9a-f]+)">■</span> {name}<?', html) for name in ("real", "synthetic")]
    assert all(colours)
    assert len({found[1] for found in colours if found}) == 2
    for found in colours:
        assert found is not None
        assert any(f"fill: {found[1]}" in text for text in map(render_picture, evaluation.plot().charts))
    assert "■" not in release.plot()._repr_html_(), "one colour needs no key"


def test_one_chart_is_a_file_of_svg_with_its_colours_written_out(objects: dict[str, object], tmp_path: Path) -> None:
    pictures = cast(Plan, objects["plan"]).plot()
    text = pictures.save(tmp_path / "plan.svg").read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert "var(" not in text
    assert "fill: #0b66a8" in text
    for name in ("plan.svg", "plan.png"):
        with pytest.raises(UsageError):
            pictures.save(tmp_path / name)
    with pytest.raises(UsageError, match="2 charts"):
        Pictures(pictures.figures * 2).save(tmp_path / "two.svg")
    with pytest.raises(UsageError, match='Known: "columns"'):
        cast(us.Release, objects["release"]).plot("nothing")
