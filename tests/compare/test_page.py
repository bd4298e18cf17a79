from dataclasses import replace

from tests.compare.studies import made_up
from understudy.compare.job import Found, Outcome
from understudy.compare.page import CONFIDENTIAL, build_page
from understudy.compare.settings import Candidate, StudySettings
from understudy.compare.study import Finished, Study
from understudy.report.html import render_page
from understudy.report.page import Lines


def test_the_page_shows_every_section_with_a_question() -> None:
    study = made_up({"a": [0.1, 0.2, 0.3], "b": [0.2] * 3, "c": []}, other={"a": 1.0, "b": 2.0, "c": 3.0})
    page = build_page(study)
    assert page.confidential
    assert page.banner == CONFIDENTIAL
    assert all(section.question.endswith("?") for section in page.sections)
    titles = [section.title for section in page.sections]
    assert titles[0] == "Recommendation"
    assert {"marginals", "nist", "Ranks", "Time and memory", "Runs without scores"} <= set(titles)
    text = render_page(page)
    assert "was still running" in text
    assert "<svg" in text


def test_curves_hold_one_series_for_each_method_with_scores() -> None:
    page = build_page(made_up({"a": [0.1, 0.2, 0.3], "b": [0.2, 0.2, 0.2], "c": []}))
    (lines,) = [block for section in page.sections for block in section.blocks if isinstance(block, Lines)]
    assert [series.name for series in lines.series] == ["a", "b"]
    assert lines.series[0].lows != ()
    assert lines.yardstick == 0.01


def test_errors_far_apart_are_drawn_in_decades_and_the_axis_says_so() -> None:
    other = {"a": 1.0, "b": 1000.0}
    for small, decades in ((0.005, True), (0.2, False), (0.0, False)):
        page = build_page(made_up({"a": [small] * 3, "b": [0.25] * 3}, other=other))
        errors, scores = [block for section in page.sections for block in section.blocks if isinstance(block, Lines)]
        assert errors.decades == decades
        assert errors.upward.endswith("(logarithmic)") == decades
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
    (lines,) = [block for section in build_page(study).sections for block in section.blocks if isinstance(block, Lines)]
    places = [series.places for series in lines.series]
    assert places[1] == (0.5, 2.0)
    assert len({first for first, _ in places}) == 3
    assert all(abs(first / 0.5 - 1) < 0.05 and abs(last / 2.0 - 1) < 0.05 for first, last in places)


def test_the_page_says_who_had_which_delta() -> None:
    both = StudySettings((Candidate.read("aim"), Candidate.read("laplace")), (1.0,), 1e-9, repeats=1)
    text = render_page(build_page(Study(both, (), confidential=True)))
    assert "δ = 1e-09; laplace had δ = 0" in text
    assert "1 repeat, each with fresh noise; 1 copy a run" in text
    every = render_page(build_page(Study(replace(both, open_labels=True), (), confidential=True)))
    assert "δ = 1e-09 for every method." in every
