import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.metadata import version

from tests.compare.studies import made_up, put_first
from understudy.charts import CurvePanel, draw_panel
from understudy.compare.page import CONFIDENTIAL, build_page
from understudy.compare.runs import Found, Outcome
from understudy.compare.study import Candidate, Finished, Study, StudySettings
from understudy.report import (
    Block,
    BulletList,
    FoldedBlocks,
    Gallery,
    Page,
    Paragraph,
    TextTable,
    Verdicts,
    prose,
    render_page,
)


def _panels(page: Page) -> list[CurvePanel]:
    """Pictures of errors, also folded ones."""
    found: list[CurvePanel] = []
    for block in _all(_section(page, "Errors")):
        if isinstance(block, Gallery):
            found += [one.chart for one in block.figures if isinstance(one.chart, CurvePanel)]
    return found


def _all(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        if isinstance(block, FoldedBlocks):
            yield from _all(block.blocks)


def _numbers(page: Page, section: str) -> list[TextTable]:
    return [block for block in _all(_section(page, section)) if isinstance(block, TextTable)]


def test_the_page_shows_every_section_with_a_question() -> None:
    study = made_up({"a": [0.1, 0.2, 0.3], "b": [0.2] * 3, "c": []}, other={"a": 1.0, "b": 2.0, "c": 3.0})
    page = build_page(study)
    assert page.confidential
    assert page.banner == CONFIDENTIAL
    assert all(section.question.endswith("?") for section in page.sections)
    titles = [section.title for section in page.sections]
    assert titles[0] == "Recommendation"
    assert {"Errors", "Ranks", "Time and memory", "Runs without scores"} <= set(titles)
    text = render_page(page)
    assert "was still running" in text
    assert "<svg" in text


def test_every_method_has_its_curve_in_every_picture_so_that_styles_agree() -> None:
    (panel,) = _panels(build_page(made_up({"c": [], "a": [0.1, 0.2, 0.3], "b": [0.2, 0.2, 0.2]})))
    assert [series.name for series in panel.series] == ["c", "a", "b"]
    assert [len(series.lows) for series in panel.series] == [0, 1, 1]
    assert panel.yardstick == 0.01
    drawing = draw_panel(panel)
    assert {one.style for one in drawing.shapes if one.style.startswith("dot")} == {"dot colour-1", "dot colour-2"}
    assert [one.text for one in drawing.shapes if one.style == "value"] == ["none"]
    assert "a at ε 1: 0.2 (0 to 0.448)" in drawing.summary


def test_errors_far_apart_are_drawn_in_decades_and_the_page_says_so() -> None:
    other = {"a": 1.0, "b": 1000.0}
    for small, decades in ((0.005, True), (0.2, False), (0.0, False)):
        page = build_page(made_up({"a": [small] * 3, "b": [0.25] * 3}, other=other))
        errors, scores = _panels(page)
        assert errors.decades == decades
        assert ("logarithmic" in render_page(page)) == decades
        assert not scores.decades, "a score that is better when higher keeps its scale"


def test_a_study_with_nothing_in_it_is_still_a_page() -> None:
    assert "No method finished" in render_page(build_page(made_up({"a": []})))


def test_the_page_says_who_had_the_public_table_and_which_options() -> None:
    candidates = (Candidate.read("aim"), Candidate.read("independent"))
    settings = StudySettings(candidates, (1.0,), 1e-9, metric_options={"marginals": {"ways": 2}}, formula="age ~ sex")
    text = render_page(build_page(Study(settings, (), confidential=True, has_public=True)))
    assert "A public table was given to aim. independent cannot use one and had none." in text
    assert "marginals.ways=2" in text
    assert "age ~ sex" in text
    assert "public table was given" not in render_page(build_page(Study(settings, (), confidential=True)))


def test_intervals_at_one_epsilon_do_not_cover_one_another() -> None:
    names = ("independent", "laplace", "mwem")
    settings = StudySettings(tuple(map(Candidate.read, names)), (0.5, 2.0), repeats=2)
    scores = (Found("marginals", "2-way", 0.1, 0.01, "lower", 0.0, ""),)
    outcome = Outcome("done", "", 1.0, 2.0, 2**20, scores)
    study = Study(settings, tuple(Finished(cell, outcome) for cell in settings.cells), confidential=True)
    (panel,) = _panels(build_page(study))
    places = [series.places for series in panel.series]
    assert places[1] == (0.5, 2.0)
    assert len({first for first, _ in places}) == 3
    assert all(abs(first / 0.5 - 1) < 0.05 and abs(last / 2.0 - 1) < 0.05 for first, last in places)


def test_the_page_says_who_had_which_delta() -> None:
    both = StudySettings((Candidate.read("aim"), Candidate.read("laplace")), (1.0,), 1e-9, repeats=1)
    text = render_page(build_page(Study(both, (), confidential=True)))
    assert prose("δ = 1e-09; δ = 0, a stronger promise, for methods that need no δ: laplace.") in text
    assert "1 repeat, each with fresh noise; 1 copy a run" in text
    every = render_page(build_page(Study(replace(both, open_labels=True), (), confidential=True)))
    assert prose("δ = 1e-09 for every method.") in every


def _section(page: Page, title: str) -> list[Block]:
    (section,) = [section for section in page.sections if section.title == title]
    return list(section.blocks)


def test_scores_without_a_number_are_listed_with_their_reasons() -> None:
    study = made_up({"a": [0.1] * 3, "b": [0.2] * 3}, epsilons=(0.1, 1.0))
    gap = Found("ci_overlap", "mean_overlap", None, None, "higher", 1.0, "no model was given")
    (table,) = _section(build_page(put_first(study, lambda _: gap)), "Scores without a number")
    assert isinstance(table, TextTable)
    assert table.rows == (("Confidence intervals, mean overlap", "all", "0.1, 1", "12", "no model was given"),)
    one = made_up({"a": [0.1] * 3, "b": [0.2] * 3}, other={"a": [1.0, None, None], "b": 2.0})
    (table,) = _section(build_page(one), "Scores without a number")
    assert isinstance(table, TextTable)
    assert table.rows == (("Nist: score", "a", "1", "2", "no triples"),)
    assert "Scores without a number" not in [section.title for section in build_page(study).sections]


def test_a_point_without_an_interval_leaves_the_others_theirs_and_shows_its_n() -> None:
    study = made_up({"a": [0.1, 0.2, 0.3], "b": [0.2, 0.3, 0.4]}, epsilons=(0.1, 1.0))
    lost = Outcome("time", "was still running.", 9.0, 0.0, 0)
    runs = tuple(
        replace(run, outcome=lost)
        if run.cell.candidate.name == "a" and run.cell.epsilon == 0.1 and run.cell.repeat > 1
        else run
        for run in study.runs
    )
    page = build_page(replace(study, runs=runs))
    (panel,), (table,) = _panels(page), _numbers(page, "Errors")
    assert math.isnan(panel.series[0].lows[0])
    assert math.isfinite(panel.series[0].lows[1])
    whiskers = [one for one in draw_panel(panel).shapes if (one.element, one.style) == ("line", "trace colour-0")]
    assert len(whiskers) == 1
    assert table.rows[0][1] == "0.1 (n = 1)"
    assert "n =" not in "".join((*table.rows[0][2:], *table.rows[1]))
    assert table.caption.endswith("where it is not 3.")
    (table,) = _numbers(build_page(study), "Errors")
    assert table.caption == "Marginals: 2-way: mean and 95 % interval over repeats."


def test_half_an_interval_is_the_half_that_was_not_cut() -> None:
    (table,) = _numbers(build_page(made_up({"a": [0.001, 0.02, 0.1]})), "Errors")
    assert table.rows == (("a", "0.0403 ± 0.13"),)


def test_the_page_says_whether_scores_agree_also_for_two_methods() -> None:
    errors = {"a": [0.1] * 3, "b": [0.2] * 3, "c": [0.3] * 3}
    for names in (("a", "b"), ("a", "b", "c")):
        chosen = {name: errors[name] for name in names}
        (said,) = _agreement(made_up(chosen, other={"a": 3.0, "b": 2.0, "c": 1.0}))
        assert isinstance(said, Paragraph)
        assert said.text.startswith("All scores that can be compared put the methods in the same order")
        said, pairs = _agreement(made_up(chosen, other={"a": 1.0, "b": 2.0, "c": 3.0}))
        assert isinstance(said, Paragraph)
        assert said.text.startswith("Where scores disagree most")
        assert pairs == BulletList(("marginals: 2-way against nist: score: τ = -1.00",))
    alone = render_page(build_page(made_up(errors)))
    assert "Kendall" not in alone, "one score has nothing to agree with"


def test_epsilons_that_differ_little_have_headings_of_their_own() -> None:
    page = build_page(made_up({"a": [0.1] * 3}, epsilons=(1.0, 1.0000001)))
    (table,) = _numbers(page, "Errors")
    assert table.header == ("Method", "ε = 1", "ε = 1.0000001")
    assert prose("Ranks at ε = 1.0000001") in render_page(page)


def test_the_page_names_the_version_that_wrote_it() -> None:
    assert f"This page was written by understudy {version('understudy')}." in render_page(
        build_page(made_up({"a": [0.1] * 3}))
    )


def test_places_are_those_that_intervals_leave_open() -> None:
    errors = {"a": [0.10, 0.11, 0.12], "b": [0.10, 0.11, 0.13], "c": [0.5, 0.51, 0.52]}
    table, *_ = _numbers(build_page(made_up(errors)), "Ranks")
    assert table.rows == (("Marginals: 2-way", "1–2", "1–2", "3"),)
    assert table.lights == (("", "good", "good", "poor"),)
    table, *_ = _numbers(build_page(made_up({"a": [0.1, 0.9, 0.5], "b": [0.2, 0.8, 0.6]})), "Ranks")
    assert table.rows[0][1:] == ("1–2", "1–2")
    assert table.lights == (("", "", ""),), "where nothing is told apart, nothing is coloured"


def test_a_page_of_a_study_that_runs_says_how_far_it_is_and_names_nobody() -> None:
    study = made_up({"a": [0.1, 0.1, 0.1], "b": [0.9] * 3}, epsilons=(0.1, 1.0))
    part = replace(study, runs=tuple(run for run in study.runs if run.cell.repeat < 3 or run.cell.epsilon == 0.1))
    page = build_page(part)
    assert "10 of 12 runs are done." in render_page(page)
    (cards,) = [block for block in _section(page, "Recommendation") if isinstance(block, Verdicts)]
    assert [card.answer for card in cards.cards] == ["a", "Not known yet"]
    assert "runs are done" not in render_page(build_page(study))
    empty = build_page(replace(study, runs=()))
    assert "0 of 12 runs are done." in render_page(empty)
    assert [section.title for section in empty.sections] == ["Recommendation", "Runs without scores", "How it was done"]


def test_seconds_of_runs_side_by_side_are_said_to_be_longer() -> None:
    study = made_up({"a": [0.1] * 3})
    assert "took longer" not in render_page(build_page(study))
    runs = tuple(replace(run, outcome=replace(run.outcome, jobs=2)) for run in study.runs)
    assert "Up to 2 runs went on at the same time" in render_page(build_page(replace(study, runs=runs)))


def _agreement(study: Study) -> tuple[Block, ...]:
    (fold,) = [block for block in _section(build_page(study), "Ranks") if isinstance(block, FoldedBlocks)]
    return fold.blocks
