"""Plans: numbers without data, memory limits, output for programs."""

import json
import re
from pathlib import Path

import pyarrow.csv as pacsv
import pytest

from tests.cli.terminal import listing, run
from tests.cli.workspace import SCHEMA, people


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "schema.yaml"
    path.write_text(SCHEMA, encoding="utf-8")
    return path


def test_plan_prints_cells_memory_time_split_and_error_and_writes_nothing(schema: Path) -> None:
    before = listing(schema.parent)
    shown = run("plan", "--schema", schema, "--method", "independent", "--epsilon", 1, "--rows-hint", 5000)
    assert (shown.status, shown.err) == (0, "")
    for word in ("cells to measure", "memory", "time", "ε = 0.2", "measure region", "expected error", "5,000 rows"):
        assert word in shown.words
    assert listing(schema.parent) == before


def test_plan_for_programs_adds_up(schema: Path) -> None:
    words = ("plan", "--schema", schema, "--method", "independent", "--epsilon", 2, "--delta", "1e-9", "--json")
    plan = json.loads(run(*words).out)
    assert plan["method"] == "independent"
    assert plan["cost"]["rho"] == pytest.approx(sum(step["cost"]["rho"] for step in plan["steps"]))
    assert plan["cost"]["rho"] > 0
    assert plan["cells"] == sum(step["cells"] for step in plan["steps"])
    assert plan["bytes"] > 0


def test_a_plan_does_not_contradict_itself_on_time(schema: Path) -> None:
    """The time lies between the ends that are printed beside it; it was above both, which left out reading rows."""
    words = ("plan", "--schema", schema, "--method", "aim", "--epsilon", 1, "--delta", "1e-9", "--rows-hint", 50_000)
    shown = run(*words)
    about, *ends = (float(found) for found in re.findall(r"([\d.]+)(?: to|(?: CPU)? s\b)", shown.words))
    assert len(ends) == 2
    assert min(ends) <= about <= max(ends)
    found = json.loads(run(*words, "--json").out)
    assert found["span"][0] <= found["seconds"] <= found["span"][1]


def test_a_limit_is_held_against_the_most_memory(schema: Path) -> None:
    words = ("plan", "--schema", schema, "--method", "aim", "--epsilon", 1, "--delta", "1e-9")
    found = json.loads(run(*words, "--json").out)
    assert found["bytes"] < found["most_bytes"]
    assert run(*words, "--memory", f"{found['most_bytes']}B").status == 0
    shown = run(*words, "--memory", f"{found['most_bytes'] - 1}B")
    assert shown.status == 4
    assert "at most" in shown.words


def test_plan_takes_options_of_the_method(schema: Path) -> None:
    words = ("plan", "--schema", schema, "--method", "laplace", "--epsilon", 1, "--json")
    plain, cut = json.loads(run(*words).out), json.loads(run(*words, "--set", "n_policy=estimated").out)
    assert len(plain["steps"]) == len(cut["steps"]) + 1


def test_plan_above_the_memory_limit_ends_with_status_4(schema: Path) -> None:
    shown = run("plan", "--schema", schema, "--epsilon", 1, "--memory", "1kB")
    assert (shown.status, shown.panels) == (4, 1)
    assert "--memory" in shown.words


@pytest.mark.parametrize("hint", [-1, 0])
def test_strange_hints_do_not_break_the_plan(schema: Path, hint: int) -> None:
    shown = run("plan", "--schema", schema, "--epsilon", 1, "--rows-hint", hint)
    assert shown.status in (0, 2)


def test_plan_with_a_public_table_lists_what_it_suggests(schema: Path) -> None:
    public = schema.parent / "public.csv"
    pacsv.write_csv(people(300), public)
    words = ("plan", "--schema", schema, "--epsilon", 1, "--delta", "1e-9", "--json")
    plan = json.loads(run(*words, "--method", "nist_mst", "--public", public).out)
    assert "×" in plan["options"]["marginals"]
    assert any("public table" in note for note in plan["notes"])
    assert run(*words, "--method", "nist_mst").status == 2
    refused = run(*words, "--method", "mst", "--public", public)
    assert (refused.status, "does not use a public table" in refused.words) == (2, True)


def test_plan_says_that_no_claim_can_be_made_and_why(schema: Path) -> None:
    words = ("plan", "--schema", schema, "--method", "steps", "--epsilon", 1, "--set", "layers=2")
    shown = run(*words, "--set", "as_published=2020")
    assert shown.status == 0
    assert "No privacy claim:" in shown.words
    assert json.loads(run(*words, "--set", "as_published=2020", "--json").out)["refused"]
    assert "No privacy claim:" not in run(*words).words
    assert json.loads(run(*words, "--json").out)["refused"] == ""


def test_plan_says_which_codes_are_counted_at_their_most(schema: Path) -> None:
    text = schema.read_text(encoding="utf-8")
    words = ("plan", "--schema", schema, "--method", "independent", "--epsilon", 1, "--json")
    assert not any("are fixed by" in note for note in json.loads(run(*words).out)["notes"])
    rare = text.replace("labels: [north, south, east, west]", "labels: [north, south, east, west]\n    rare: private")
    assert rare != text
    schema.write_text(rare, encoding="utf-8")
    notes = json.loads(run(*words).out)["notes"]
    assert [note for note in notes if "are fixed by" in note] == [
        "Codes of region are fixed by noisy answers first; this plan assumes the largest possible number of codes."
    ]


@pytest.mark.parametrize(
    ("delta", "hint", "said"), [(0.01, None, True), (1e-4, None, False), (1e-4, 20_000, True), (1e-3, 500, True)]
)
def test_plan_remarks_on_a_large_delta(schema: Path, delta: float, hint: int | None, said: bool) -> None:
    words = ("plan", "--schema", schema, "--epsilon", 1, "--delta", delta)
    shown = run(*words, *(() if hint is None else ("--rows-hint", hint)))
    assert shown.status == 0
    assert (f"Note: δ = {delta:g} is large" in shown.words) is said


def test_a_named_table_is_opened_up_to_its_header(schema: Path, tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    pacsv.write_csv(people(20), table)
    words = ("plan", table, "--schema", schema, "--method", "independent", "--epsilon", 1)
    note = next(note for note in json.loads(run(*words, "--json").out)["notes"] if "The table" in note)
    assert note.startswith("The table (text, ")
    assert "read" in note
    assert "The table (text, " in run(*words).words
    table.write_text("nothing,of,it\n1,2,3\n", encoding="utf-8")
    assert run(*words).status != 0


def test_codes_beyond_memory_are_told_as_disk(schema: Path) -> None:
    words = ("plan", "--schema", schema, "--method", "independent", "--epsilon", 1, "--rows-hint")
    few, many = (json.loads(run(*words, rows, "--json").out) for rows in (5_000, 10**9))
    assert few["temporary_bytes"] == 0
    assert few["code_bytes"] == many["code_bytes"] > 0
    assert many["temporary_bytes"] == 10**9 * many["code_bytes"] - (1 << 29)
    assert "temporary file" in run(*words, 10**9).words
    assert "temporary file" not in run(*words, 5_000).words
