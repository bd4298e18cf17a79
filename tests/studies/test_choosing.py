"""The chooser page: made from runs, and its rule is what `auto` does."""

from pathlib import Path

import pytest
from studies.chooser.rule import CASES, Listed, read_cases
from studies.chooser.words import Grid
from studies.choosing import study
from studies.writing import Form

from understudy.methods import auto
from understudy.methods.privsyn import PrivSyn

PAGE = Path(__file__).parents[2] / "docs" / "choosing.md"


def test_smoke_form_writes_the_page(tmp_path: Path) -> None:
    page = study(Form(smoke=True, out=tmp_path, data=None)).read_text(encoding="utf-8")
    assert "Smoke form" in page
    assert [listed.row[:5] for listed, _ in read_cases(page)] == [listed.row[:5] for listed in CASES]
    assert "voters, 5 columns: 44,821 rows × 5" in page


def test_every_documented_case_is_what_auto_picks() -> None:
    cases = read_cases(PAGE.read_text(encoding="utf-8"))
    assert {picked for _, picked in cases} == {"aim", "mst", "privsyn", "laplace", "mwem", "independent"}
    assert [(listed.columns, listed.picked) for listed, _ in cases] == [(one.columns, name) for one, name in cases]


def test_the_numbers_of_the_rule_are_those_of_the_code() -> None:
    words = PAGE.read_text(encoding="utf-8").split("## If you do not want to choose")[1].split("| columns |")[0]
    assert f"`aim` up to {auto.MOST_COLUMNS} columns, `mst` beyond" in words
    assert f"is at most {auto.MOST_NOISE:,} rows" in words
    assert f"`mwem` if ε is at least {auto.LEAST_EPSILON:g} for each row of a unit" in words
    assert f"`privsyn` if ε is at least {auto.AMPLE_EPSILON:g} for each row of a unit" in words
    assert f"if ρ is at least {float(auto.AMPLE_RHO):g} for a unit of one row" in words
    assert f"no pair of columns has more than {PrivSyn().table_cells:,} cells" in words


@pytest.mark.parametrize(
    "changed",
    [
        {"MOST_COLUMNS": 59},
        {"MOST_NOISE": 1_999},
        {"LEAST_EPSILON": 0.51},
        {"AMPLE_EPSILON": 6.01},
        {"AMPLE_RHO": 0.32},
        {"AMPLE_RHO": 0.01},
    ],
)
def test_another_rule_in_the_code_would_show(monkeypatch: pytest.MonkeyPatch, changed: dict[str, float]) -> None:
    for name, value in changed.items():
        monkeypatch.setattr(auto, name, value)
    assert any(listed.picked != picked for listed, picked in read_cases(PAGE.read_text(encoding="utf-8")))


def test_columns_as_a_case_writes_them() -> None:
    assert list(Listed("2 of 10, 1 of 20", 1, 1.0, 0.0).facts.domain.sizes.values()) == [10, 10, 20]


def test_means_over_repeats_best_first() -> None:
    records = tuple(
        {"table": "a", "epsilon": 1.0, "delta": 0.0, "repeat": place, "method": method, "pairs": value}
        for method, values in {"far": (0.3, 0.5), "near": (0.1, 0.2)}.items()
        for place, value in enumerate(values)
    )
    found = Grid(records, {}).means(("a", 1.0, 0.0), "pairs")
    assert list(found) == ["near", "far"]
    assert found == pytest.approx({"near": 0.15, "far": 0.4})
