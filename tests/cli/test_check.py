"""A check from the command line: criteria before the run, verdicts after it, and the exit status of verify."""

import json
from pathlib import Path

import pytest

from tests.cli.terminal import run
from tests.cli.workspace import Workspace

CRITERIA = "criteria:\n  - {columns: all, within: 0.9, name: loose}\n  - {share_of: {sex: F}, within: 60 points}\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    made = Workspace.make(tmp_path_factory.mktemp("check"))
    (made.folder / "criteria.yaml").write_text(CRITERIA, encoding="utf-8")
    words = ("--method", "independent", "--check-share", "0.5", "--criteria", made.folder / "criteria.yaml", "--yes")
    shown = made.synthesize(*words, epsilon=60)
    assert shown.status == 0, shown.err
    assert "Criterion pass: loose: every column within 90 %" in shown.out
    return made


def _criteria(folder: Path, text: str) -> Path:
    path = folder / "limits.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_status_0_where_every_criterion_passes(place: Workspace, tmp_path: Path) -> None:
    shown = run("verify", place.release, "--criteria", _criteria(tmp_path, CRITERIA))
    assert shown.status == 0
    assert "Criterion pass: share of sex = F within 60 points" in shown.words
    document = json.loads(run("verify", place.release, "--json").out)
    assert document["verdicts"] == []
    assert {one["outcome"] for one in document["check"]["verdicts"]} == {"pass"}


def test_status_5_where_one_fails(tmp_path: Path) -> None:
    """Four rows cannot be close to a column of many bins, and the noise is a fraction of a row."""
    made = Workspace.make(tmp_path)
    few = ("--method", "independent", "--check-share", "0.5", "--rows", "4", "--yes")
    assert made.synthesize(*few, epsilon=60).status == 0
    limits = "criteria: [{columns: all, within: 0.999}, {columns: [visited], within: 0.05}]"
    shown = run("verify", made.release, "--criteria", _criteria(tmp_path, limits), "--json")
    assert shown.status == 5
    document = json.loads(shown.out)
    assert [one["outcome"] for one in document["verdicts"]] == ["pass", "fail"]
    assert document["problems"] == []
    assert (
        "Criterion fail: column visited within 5 %"
        in run("verify", made.release, "--criteria", tmp_path / "limits.yaml").words
    )


def test_status_6_where_one_is_undecided(place: Workspace, tmp_path: Path) -> None:
    stated = json.loads((place.release / "statement.json").read_text(encoding="utf-8"))["check"]
    (region,) = (one for one in stated["distances"] if one["columns"] == ["region"])
    lower, upper = region["lower"], region["upper"]
    assert lower < upper
    text = f"criteria: [{{columns: [region], within: {(lower + upper) / 2:.9f}}}]"
    shown = run("verify", place.release, "--criteria", _criteria(tmp_path, text))
    assert shown.status == 6
    assert "Criterion undecided: column region" in shown.words


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("criteria: [{columns: [regoin], within: 0.1}]", 'Did you mean "region"'),
        ("criteria: [{share_of: {sex: X}, within: 0.1}]", "matches no code"),
        ("criteria: [{columns: all, within: 7}]", "between 0 and 1"),
        ("criteria: [{pairs_with: [sex, age, region, income, visited], within: 0.1}]", "no check answers for"),
    ],
)
def test_status_2_for_criteria_that_cannot_be_judged(place: Workspace, tmp_path: Path, text: str, said: str) -> None:
    shown = run("verify", place.release, "--criteria", _criteria(tmp_path, text))
    assert (shown.status, shown.panels) == (2, 1)
    assert said in shown.words


def test_a_release_without_a_check_cannot_be_judged(tmp_path: Path) -> None:
    made = Workspace.make(tmp_path)
    assert made.synthesize("--method", "independent").status == 0
    shown = run("verify", made.release, "--criteria", _criteria(tmp_path, CRITERIA))
    assert shown.status == 2
    assert "this release has no check" in shown.words


@pytest.mark.parametrize("words", [("--check-share", "0.7"), ("--check-share", "0"), ("--criteria", "none.yaml")])
def test_a_wrong_share_charges_nothing(place: Workspace, words: tuple[str, str]) -> None:
    before = place.balance()
    shown = place.synthesize("--out", place.folder / "wrong", "--method", "independent", *words)
    assert shown.status == 2
    assert "Nothing was charged" in shown.words
    assert place.balance() == before


def test_the_plan_tells_the_check_apart(place: Workspace) -> None:
    words = ("plan", "--schema", place.schema, "--epsilon", "1", "--method", "independent", "--check-share", "0.2")
    steps = json.loads(run(*words, "--json").out)["steps"]
    checks = [step for step in steps if step["name"].startswith("check ")]
    assert sum(step["cost"]["epsilon"] for step in checks) == pytest.approx(0.2)
    assert sum(step["cost"]["epsilon"] for step in steps) == pytest.approx(1.0)
