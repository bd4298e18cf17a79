import math
from dataclasses import replace
from importlib.metadata import version

from tests.compare.studies import made_up, put_first
from understudy.charts import Lines, draw_lines
from understudy.compare.study import Candidate, Finished, Found, Outcome, Study, StudySettings
from understudy.compare.summary import CONFIDENTIAL, build_page
from understudy.report import BulletList, Page, Paragraph, TextTable, render_page


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


def _section(page: Page, title: str) -> list[object]:
    (section,) = [section for section in page.sections if section.title == title]
    return list(section.blocks)


def test_scores_without_a_number_are_listed_with_their_reasons() -> None:
    study = made_up({"a": [0.1] * 3, "b": [0.2] * 3}, epsilons=(0.1, 1.0))
    gap = Found("ci_overlap", "mean_overlap", None, None, "higher", 1.0, "no model was given")
    (table,) = _section(build_page(put_first(study, lambda _: gap)), "Scores without a number")
    assert isinstance(table, TextTable)
    assert table.rows == (("ci_overlap: mean_overlap", "all", "0.1, 1", "12", "no model was given"),)
    one = made_up({"a": [0.1] * 3, "b": [0.2] * 3}, other={"a": [1.0, None, None], "b": 2.0})
    (table,) = _section(build_page(one), "Scores without a number")
    assert isinstance(table, TextTable)
    assert table.rows == (("nist: score", "a", "1", "2", "no triples"),)
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
    lines, table = _section(build_page(replace(study, runs=runs)), "marginals")
    assert isinstance(lines, Lines)
    assert isinstance(table, TextTable)
    assert math.isnan(lines.series[0].lows[0])
    assert math.isfinite(lines.series[0].lows[1])
    assert [len(curve.whiskers) for curve in draw_lines(lines).curves] == [1, 2]
    assert table.rows[0][1] == "0.1 (n = 1)"
    assert "n =" not in "".join((*table.rows[0][2:], *table.rows[1]))
    assert table.caption.endswith("where it was not 3.")
    _, table = _section(build_page(study), "marginals")
    assert isinstance(table, TextTable)
    assert table.caption == "Mean and 95 % interval over repeats."


def test_half_an_interval_is_the_half_that_was_not_cut() -> None:
    _, table = _section(build_page(made_up({"a": [0.001, 0.02, 0.1]})), "marginals")
    assert isinstance(table, TextTable)
    assert table.rows == (("a", "0.04033 ± 0.13"),)


def test_the_page_says_whether_scores_agree_also_for_two_methods() -> None:
    errors = {"a": [0.1] * 3, "b": [0.2] * 3, "c": [0.3] * 3}
    for names in (("a", "b"), ("a", "b", "c")):
        chosen = {name: errors[name] for name in names}
        *_, said = _section(build_page(made_up(chosen, other={"a": 3.0, "b": 2.0, "c": 1.0})), "Ranks")
        assert isinstance(said, Paragraph)
        assert said.text.startswith("All scores that can be compared put the methods in the same order")
        *_, said, pairs = _section(build_page(made_up(chosen, other={"a": 1.0, "b": 2.0, "c": 3.0})), "Ranks")
        assert isinstance(said, Paragraph)
        assert said.text.startswith("Where scores disagree most")
        assert pairs == BulletList(("marginals: 2-way against nist: score: τ = -1.00",))
    assert len(_section(build_page(made_up(errors)), "Ranks")) == 1, "one score has nothing to agree with"


def test_epsilons_that_differ_little_have_headings_of_their_own() -> None:
    page = build_page(made_up({"a": [0.1] * 3}, epsilons=(1.0, 1.0000001)))
    _, table = _section(page, "marginals")
    assert isinstance(table, TextTable)
    assert table.header == ("Method", "ε = 1", "ε = 1.0000001")
    assert "Ranks at ε = 1.0000001" in render_page(page)


def test_the_page_names_the_version_that_wrote_it() -> None:
    assert f"This page was written by understudy {version('understudy')}." in render_page(
        build_page(made_up({"a": [0.1] * 3}))
    )
