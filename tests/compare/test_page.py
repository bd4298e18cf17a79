from tests.compare.studies import made_up
from understudy.compare.page import CONFIDENTIAL, build_page
from understudy.compare.settings import Candidate, StudySettings
from understudy.compare.study import Study
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
