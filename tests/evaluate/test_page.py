"""The confidential report: questions first, every score beside its anchors, the worst first, no label as markup."""

from dataclasses import replace
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pytest

from tests.evaluate.examples import mixed, mixed_frame, shuffled
from tests.report.test_html import PAYLOADS, Tree
from understudy.charts import Matrix, PointMap, Points, SharesChart, in_digits
from understudy.errors import UsageError
from understudy.evaluate import Evaluation, evaluate
from understudy.evaluate.metric import METRICS as KNOWN
from understudy.evaluate.metric import Scale, describe_metric
from understudy.evaluate.page import MOST_ROWS, SPOKEN, build_report, light_of, verdicts
from understudy.evaluate.regression import Regression
from understudy.report import (
    Beside,
    Block,
    Figure,
    FoldedBlocks,
    Gallery,
    Page,
    Paragraph,
    TextTable,
    Verdicts,
    render_page,
)
from understudy.schema import Category, Integer, Schema, Unit

METRICS = ["marginals", "specks", "correlations", "prediction", "rules", "disclosure", Regression()]


@pytest.fixture(scope="module")
def found() -> Evaluation:
    frame = mixed_frame(300)
    return evaluate(frame, shuffled(frame), mixed(), metrics=METRICS, seed=4)


@pytest.fixture(scope="module")
def page(found: Evaluation) -> Page:
    return build_report(found)


def _blocks(page: Page) -> list[Block]:
    """All blocks, those folded away or in galleries too."""
    found: list[Block] = [block for section in page.sections for block in section.blocks]
    for block in found:
        if isinstance(block, FoldedBlocks):
            found += block.blocks
        if isinstance(block, Gallery):
            found += block.figures
        if isinstance(block, Beside):
            found += [one for part in block.parts for one in part]
    return found


def _charts(page: Page) -> list[object]:
    return [block.chart for block in _blocks(page) if isinstance(block, Figure)]


def test_every_section_opens_with_a_question(page: Page) -> None:
    assert page.confidential
    assert page.banner.startswith("NOT FOR RELEASE")
    titles = [section.title for section in page.sections]
    pictures = ["Columns", "Pairs", "Associations", "Classifier", "Subgroups", "Map", "Nearest rows"]
    assert titles == ["In short", *pictures, "All scores", "How it was done"]
    assert all("?" in section.question for section in page.sections)


def test_the_first_section_answers_in_words_with_a_light(page: Page, found: Evaluation) -> None:
    (cards,) = [block for block in page.sections[0].blocks if isinstance(block, Verdicts)]
    lights = {card.question: card.light for card in cards.cards}
    assert lights["How close are pairs of columns?"] == "poor", "shuffled columns are at the far end"
    assert lights["How close are single columns?"] in ("good", "fair")
    assert lights["Are the rules of the schema kept?"] == "poor", "no men in the east"
    assert {"Can a classifier tell them apart?", "Does any subgroup suffer?", "Are rows copied?"} <= set(lights)
    text = Tree(render_page(page)).text
    assert "; poor on pairs of columns" in text
    anchors = {section.anchor for section in page.sections}
    assert all(card.more in anchors for card in cards.cards if card.more)


def test_tables_are_as_far_apart_as_the_classifier_says_that_tells_them_apart_best(found: Evaluation) -> None:
    """Of a wide table: a tree that is fitted to all rows tells halves apart too; a regression sees the difference."""
    tree, regression = Scale("cart", "tree"), Scale("logistic", "regression")
    told = {}
    for name, value in (("poor", 0.697), ("good", 0.05)):
        scores = (tree.score(0.6, 0.644, 0.89), regression.score(value, 0.246, 0.218))
        results = tuple(replace(one, scores=scores) if one.metric == "specks" else one for one in found.results)
        (card,) = [card for card in verdicts(replace(found, results=results)) if "tell them apart" in card.question]
        told[name] = (card.light, card.answer, card.sentence.split(" separates")[0])
    assert told == {"poor": ("poor", "Yes", "A regression"), "good": ("good", "Hardly", "A tree")}


def test_equal_tables_are_good_in_everything_that_judges() -> None:
    frame = mixed_frame(300)
    same = evaluate(frame, frame, mixed(), metrics=["marginals", "correlations", "rules", "prediction"], seed=4)
    lights = {card.question: card.light for card in verdicts(same) if card.question != "Are rows copied?"}
    assert set(lights.values()) == {"good"}
    assert {card.light for card in verdicts(same) if card.question == "Are rows copied?"} == {"poor"}


def test_a_light_is_read_from_yardstick_and_baseline() -> None:
    scale = Scale("x", "x")
    assert light_of(scale.score(0.10, 0.10, 0.5)) == "good"
    assert light_of(scale.score(0.13, 0.10, 0.5)) == "good"
    assert light_of(scale.score(0.25, 0.10, 0.5)) == "fair"
    assert light_of(scale.score(0.45, 0.10, 0.5)) == "poor"
    assert light_of(scale.score(0.25, 0.10)) == "fair"
    assert light_of(scale.score(0.65, 0.10)) == "poor"
    assert light_of(scale.score(0.94, 0.36, 0.3)) == "poor", "a baseline nearer than the halves is no anchor"
    ratio = Scale("ratio", "a ratio", highest=None)
    assert [light_of(ratio.score(value, 1.0)) for value in (1.05, 2.0, 4.0)] == ["good", "fair", "poor"]
    assert light_of(scale.score(1.0, 0.95, 1.0)) == "unknown", "halves have nothing in common either"
    assert light_of(scale.missing("why")) == "unknown"
    assert light_of(Scale("a", "a", "higher", -1.0, 1.0, 1.0).score(0.5, 0.9, 0.1)) == "fair"


def test_every_score_stands_beside_its_yardstick_under_a_plain_name(page: Page, found: Evaluation) -> None:
    text = Tree(render_page(page)).text
    for result in found.results:
        for score in result.scores:
            assert SPOKEN[f"{result.metric}.{score.name}"] in text
            for number in (score.value, score.yardstick, score.baseline):
                assert number is None or in_digits(number) in text


def test_every_built_in_score_has_a_plain_name() -> None:
    every = {f"{name}.{scale.name}" for name in KNOWN.built_in for scale in describe_metric(name).scales}
    assert set(SPOKEN) == every
    assert not any("_" in words for words in SPOKEN.values())
    assert len(set(SPOKEN.values())) == len(SPOKEN)


def test_a_score_without_a_value_says_why(page: Page) -> None:
    text = Tree(render_page(page)).text
    assert "not computed: no formula was given" in text.lower()
    assert "nan" not in text.lower().split()


def test_the_worst_comes_first(page: Page, found: Evaluation) -> None:
    (fold,) = [
        block for block in _blocks(page) if isinstance(block, FoldedBlocks) and "same distribution" in block.title
    ]
    shown = [block for block in fold.blocks if isinstance(block, TextTable)][1:]
    for table, detail in zip(shown, found["marginals"].details, strict=True):
        assert len(table.rows) == min(MOST_ROWS, detail.table.num_rows)
        assert str(detail.caption) in table.caption
    (gallery,) = [block for block in page.sections[1].blocks if isinstance(block, Gallery)]
    columns = [figure.chart.caption for figure in gallery.figures]
    assert columns == [row["column_1"] for row in found["marginals"].detail("columns").records()]


def test_every_column_is_drawn_with_what_is_missing(page: Page, found: Evaluation) -> None:
    charts = {chart.caption: chart for chart in _charts(page) if isinstance(chart, SharesChart)}
    assert set(found.columns) <= set(charts)
    age = charts["age"]
    assert (age.bins, age.labels[-2:]) == (5, ("999", "missing")) or age.labels[-1] == "missing"
    real, made = age.amounts
    assert sum(real.values) == pytest.approx(1)
    assert sum(made.values) == pytest.approx(1)


def test_pairs_associations_and_maps_are_drawn(page: Page) -> None:
    matrices = {chart.caption: chart for chart in _charts(page) if isinstance(chart, Matrix)}
    whole = matrices["Distance of every pair of columns"]
    assert len(whole.cells) == 15
    anchors = {figure.anchor for figure in _blocks(page) if isinstance(figure, Figure) and figure.anchor}
    assert len({cell.link for cell in whole.cells}) == 15, "every pair leads to a picture of its own"
    assert {cell.link for cell in whole.cells} <= anchors
    assert {"real", "synthetic", "difference"} <= set(matrices)
    first, second = (chart for chart in _charts(page) if isinstance(chart, PointMap))
    assert first.ends == second.ends
    clouds = [block for block in _blocks(page) if isinstance(block, Points)]
    assert len(clouds[0].points) > 10


def test_the_picture_of_a_pair_is_that_of_its_cell(page: Page, found: Evaluation) -> None:
    matrices = {figure.anchor: figure.chart for figure in _blocks(page) if isinstance(figure, Figure) and figure.anchor}
    whole = next(chart for chart in _charts(page) if isinstance(chart, Matrix) and len(chart.cells) == 15)
    for cell in whole.cells:
        names = {whole.rows[cell.row], whole.columns[cell.column]}
        caption = matrices[cell.link].caption
        assert set(caption.removesuffix(": real").split(" × ")) == names
        plotted = found.plot(",".join(sorted(names)))
        assert plotted.charts[0].caption == caption
        assert len(plotted) == 3
        assert plotted.confidential


def test_pairs_beyond_the_limit_lead_to_why_and_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.evaluate.pictures.MOST_PAIR_CELLS", 60)
    frame = mixed_frame(200)
    part = evaluate(frame, shuffled(frame), mixed(), metrics=["marginals"], pairs=["sex, region"])
    page = build_report(part)
    whole = next(chart for chart in _charts(page) if isinstance(chart, Matrix) and chart.caption.startswith("Distance"))
    drawn = [cell.link for cell in whole.cells if cell.link != "more-pairs"]
    assert 1 <= len(drawn) < 15
    assert all(cell.link for cell in whole.cells)
    (why,) = [block.text for block in _blocks(page) if isinstance(block, Paragraph) and block.anchor == "more-pairs"]
    assert why.startswith(f"{len(drawn)} of 15 pairs are drawn")
    first = part.plot("region,sex")
    assert {one.caption for one in first.charts} == {f"region × sex: {w}" for w in ("real", "synthetic", "difference")}
    named = why.split("pairs=['")[1].split("'")[0]
    with pytest.raises(UsageError, match="was not drawn"):
        part.plot(named)
    again = evaluate(frame, shuffled(frame), mixed(), metrics=["marginals"], pairs=[named])
    assert len(again.plot(named)) == 3
    text = render_page(page)
    assert text.count('href="#more-pairs"') == 1, "one stop of the tabulator key for all of them"
    assert text.count("<a ") == text.count("</a>")


@pytest.mark.parametrize("wrong", [["sex"], ["sex,nobody"], ["sex,sex"], "sex,region"])
def test_pairs_that_name_no_two_columns_are_refused(wrong: list[str]) -> None:
    frame = mixed_frame(50)
    with pytest.raises(UsageError, match="pair"):
        evaluate(frame, frame, mixed(), metrics=["rules"], pairs=wrong)
    with pytest.raises(UsageError, match="pictures=False"):
        evaluate(frame, frame, mixed(), metrics=["rules"], pairs=["sex,region"], pictures=False)


def test_means_over_many_pairs_stand_beside_their_quantiles(page: Page) -> None:
    said = [block.text for block in _blocks(page) if isinstance(block, Paragraph)]
    assert sum("99 in 100 below" in text and "the largest is" in text for text in said) >= 3


def test_nearest_rows_are_no_proof_of_privacy(page: Page) -> None:
    (section,) = [one for one in page.sections if one.title == "Nearest rows"]
    assert section.blocks[0] == Paragraph(section.blocks[0].text, strong=True)  # type: ignore[union-attr]
    assert "proves nothing about privacy" in section.blocks[0].text  # type: ignore[union-attr]


def test_every_linked_file_is_written(found: Evaluation, tmp_path: "pytest.TempPathFactory") -> None:
    for name in ("report", "a b.html"):
        place = tmp_path / name  # type: ignore[operator]
        found.save(place)
        text = (place if place.suffix else place / "report.html").read_text("utf-8")
        targets = [part.split('"')[0] for part in text.split('href="')[1:]]
        files = [target for target in targets if not target.startswith("#")]
        assert len(files) > 10
        assert all(((place.parent if place.suffix else place) / unquote(target)).is_file() for target in files)


def test_without_pictures_the_report_is_still_a_page(found: Evaluation) -> None:
    bare = replace(found, pictures=())
    titles = [section.title for section in build_report(bare).sections]
    assert titles == ["In short", "Pairs", "Classifier", "All scores", "How it was done"]


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
    # Long names make a chart so wide that keys must be able to scroll it.
    kept = Tree(render_page(build_report(found))).elements
    return [(tag, tuple(name for name in names if name != "tabindex")) for tag, names in kept]


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
