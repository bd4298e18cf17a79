"""The chooser page: made from its results, and its rule is what `auto` does."""

from dataclasses import replace
from pathlib import Path

import pytest
from studies.chooser.rule import CASES, Listed, read_cases
from studies.chooser.words import ALIKE, Grid, Result, read_results, write
from studies.choosing import study
from studies.writing import Form

from understudy.methods import auto, expected_error

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "choosing.md"


@pytest.mark.slow
def test_smoke_form_writes_the_page(tmp_path: Path) -> None:
    page = study(Form(smoke=True, out=tmp_path, data=None)).read_text(encoding="utf-8")
    assert "Smoke form" in page
    assert [listed.row[:4] for listed, _ in read_cases(page)] == [listed.row[:4] for listed in CASES]
    assert "voters, 5 columns: 44,821 rows × 5" in page
    assert {one.method for one in read_results(tmp_path / "choosing.csv")} >= {"ensemble", "laplace", "aim"}


def test_the_page_follows_from_the_results_beside_it(tmp_path: Path) -> None:
    write(Form(smoke=False, out=tmp_path, data=None), read_results(DOCS / "choosing.csv"))
    for name in ("choosing.md", "choosing.csv", "choosing-delta.svg", "choosing-pure.svg"):
        assert (tmp_path / name).read_bytes() == (DOCS / name).read_bytes(), name


def test_every_documented_case_is_what_auto_picks() -> None:
    cases = read_cases(PAGE.read_text(encoding="utf-8"))
    assert [(listed.columns, listed.picked) for listed, _ in cases] == [(one.columns, name) for one, name in cases]
    assert {"ensemble", "laplace"} < {picked for _, picked in cases}


@pytest.mark.parametrize("changed", [(auto, "ALIKE", 0.05), (expected_error, "MISSED", 0.7)], ids=str)
def test_another_rule_in_the_code_would_show(
    monkeypatch: pytest.MonkeyPatch, changed: tuple[object, str, float]
) -> None:
    where, name, value = changed
    monkeypatch.setattr(where, name, value)
    cases = read_cases(PAGE.read_text(encoding="utf-8"))
    assert any(listed.picked != picked for listed, picked in cases)


def test_columns_as_a_case_writes_them() -> None:
    assert list(Listed("2 of 10, 1 of 20", 1, 1.0, 0.0).facts.domain.sizes.values()) == [10, 10, 20]


def test_what_the_pick_loses_is_held_against_the_best() -> None:
    one = Result("a", 10_000, "5 of 4", 1e-9, 1.0, "ensemble", 1, 0.0, 0.03, 0.1)
    found = Grid((one, replace(one, method="aim", pairs=0.02))).lost("pairs", fitted=False, pure=False)
    assert [(round(ratio, 6), round(more, 6)) for ratio, more, _ in found] == [(1.5, 0.01)]
    near = Grid((replace(one, pairs=ALIKE / 2), replace(one, method="aim", pairs=0.0)))
    assert near.lost("pairs", fitted=False, pure=False)[0][0] == 1.0
