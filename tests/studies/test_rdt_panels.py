"""The study of random decision trees runs on simulated voters; its judgements can come out both ways."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from studies.duke.benches import few_voters
from studies.duke.intervals import of_all, size_verdict
from studies.duke.judging import JOINT, Settings, odd_shares
from studies.duke.leaves import Grown
from studies.duke.panels import BASE, Labelled
from studies.rdt_panels import study
from studies.verdicts import verdict
from studies.writing import Form


def test_smoke_form_writes_a_page_with_intervals_panels_and_verdicts(tmp_path: Path) -> None:
    page = study(Form(smoke=True, out=tmp_path, data=None)).read_text(encoding="utf-8")
    assert "[0.2272, 0.2728]" in page
    rows = page.split("## Statement by statement")[1]
    assert all(f"Figure {number}" in rows for number in (1, 2, 4, 5, 6, 7, 8, 9, 14))
    assert "Figures 10, 11" in rows
    assert "Figures 12, 13" in rows
    assert "not printed" not in rows
    figures = sorted(tmp_path.glob("*.svg"))
    assert len(figures) == 13
    assert all(file.name in page for file in figures)
    panels = (tmp_path / "rdt_panels-figure-5.svg").read_text(encoding="utf-8")
    assert panels.count("(b) all columns: r = ") == panels.count("(a) largest joint levels") == 2
    assert "leafFreqMin" in rows


@pytest.fixture(scope="module")
def bench():
    return few_voters(50)


def releases(measure: str, values: Sequence[float]) -> list[Labelled]:
    return [Labelled({measure: value}, {}, 1.0, 0.0) for value in values]


@pytest.mark.parametrize(
    ("errors", "better", "no_better"),
    [
        ((0.5, 0.51, 0.49), "confirmed", "refuted"),
        ((1.0, 1.01, 0.99), "no difference larger than 0.2", "confirmed"),
        ((1.5, 1.51, 1.49), "refuted", "confirmed"),
    ],
)
def test_a_setting_is_better_the_same_or_worse(bench, errors, better, no_better) -> None:
    found = {BASE: releases("slopes", (1.0, 1.02, 0.97)), "other": releases("slopes", errors)}
    settings = Settings(found, bench)
    assert verdict(settings.better("other", BASE, ["slopes"])) == better
    assert verdict(settings.no_better("other", BASE, ["slopes"])) == no_better


def test_correlations_of_joint_shares_count_as_spread_around_a_line(bench) -> None:
    settings = Settings({BASE: releases(JOINT[0], (1.0, 0.6))}, bench)
    assert settings.errors(BASE, JOINT[0]) == pytest.approx([0.0, 0.8])


def test_odd_pairs_leave_out_the_same_trees() -> None:
    assert odd_shares([1.0, 2.0, 3.0], [9.0, 9.0, 9.0]) == [1.0, 1.0, 1.0]
    assert odd_shares([1.0, 2.0, 3.0], [9.0, 1.5, 0.0]) == [0.5, 0.5, 0.5]


def test_trees_are_the_same_by_their_splits() -> None:
    ours, same, other = (Grown([np.array(splits)], np.array([3]), 0) for splits in ([1, -1], [1, -1], [0, -1]))
    assert ours.same_trees(same)
    assert not ours.same_trees(other)


def test_exact_statements() -> None:
    assert [of_all(holds) for holds in ([True], [True, False], [True, False, False])] == [
        "confirmed", "mixed", "refuted",
    ]  # fmt: skip
    assert [size_verdict(needed, 1000) for needed in (800, 1050, 1300)] == [
        "refuted: fewer are enough", "confirmed", "refuted: 1,000 are too few",
    ]  # fmt: skip
