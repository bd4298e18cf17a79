"""`understudy leafsize`: the answer, the table, the figure; nothing else is touched."""

import json
from pathlib import Path

import pytest

from tests.cli.terminal import run


def test_the_answer_and_its_table() -> None:
    done = run("leafsize", "--width", "0.05", "--rate", "0.4", "--share", "0.25")
    assert done.status == 0, done.err
    assert "leaf_size = 836" in done.out
    for number in ("0.2272", "0.2728", "0.1638"):
        assert number in done.out


def test_a_budget_gives_the_rate() -> None:
    words = ["leafsize", "--width", "0.2", "--epsilon", "2", "--columns", "2", "--relation", "label_change", "--json"]
    done = run(*words, "--simulate", "2000", "--seed", "3")
    assert done.status == 0, done.err
    document = json.loads(done.out)
    assert document["rate"] == pytest.approx(0.1)
    line = next(line for line in document["intervals"] if line["records"] == 1000)
    assert round(line["lower"], 4) == 0.4660
    assert abs(line["simulated_lower"] - line["lower"]) < 0.01
    assert document == json.loads(run(*words, "--simulate", "2000", "--seed", "3").out)


def test_the_figure_is_written_once(tmp_path: Path) -> None:
    figure = tmp_path / "intervals.svg"
    done = run("leafsize", "--width", "0.3", "--rate", "1", "--svg", figure)
    assert done.status == 0, done.err
    assert figure.read_text(encoding="utf-8").startswith("<svg")
    again = run("leafsize", "--width", "0.3", "--rate", "1", "--svg", figure)
    assert again.status == 2
    assert "overwritten" in again.err


@pytest.mark.parametrize(
    "words",
    [
        ["--width", "0.1"],
        ["--width", "0.1", "--rate", "1", "--epsilon", "1"],
        ["--width", "2", "--rate", "1"],
        ["--width", "0.1", "--rate", "0"],
        ["--width", "0.1", "--rate", "1", "--simulate", "5"],
        ["--width", "0.1", "--rate", "1", "--seed", "-1"],
        ["--width", "0.1", "--epsilon", "1", "--relation", "none"],
        [],
    ],
    ids=" ".join,
)
def test_mistakes_end_with_status_2(words: list[str]) -> None:
    done = run("leafsize", *words)
    assert done.status == 2
    assert done.out == ""
