"""`schema check --rows`: for the steward's eyes, marked, written nowhere; or with noise and charged."""

import json
from pathlib import Path

import pytest

from tests.cli.terminal import Outcome, listing, run
from tests.cli.workspace import Workspace
from understudy.schema.table_check import CONFIDENTIAL

HEADER = "region,sex,age,income,visited\n"
ROWS = {
    "good": "north,F,30,1.5,2020-05-05\n" * 3,
    "odd": "Zaphod,female,30 years,€ 1.50,05/05/2020\nnorth,F,30,1.5,2020-05-05\n,,200,-7,2031-01-01\n" * 2,
    "none": "",
    "broken": '"\n\0,,,,,,\n\xff\n',
}


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    made = Workspace.make(tmp_path, rows=5)
    made.table.write_text(HEADER + ROWS["odd"], encoding="utf-8")
    return made


def test_rows_are_shown_between_two_warnings_and_written_nowhere(place: Workspace) -> None:
    before = listing(place.folder)
    shown = run("schema", "check", place.schema, place.table, "--rows")
    lines = shown.out.rstrip().splitlines()
    assert shown.status == 0
    assert lines[0] == CONFIDENTIAL
    assert lines[-1].startswith("CONFIDENTIAL. Decisions taken from these numbers are not covered by the guarantee")
    cells = {line.split()[0]: " ".join(line.split()[1:]) for line in lines if line.startswith("  ") and line.strip()}
    assert cells["sex"] == "category 33.3 % 0 % 33.3 % 33.3 % aaaaaa (33.3 %)"
    assert cells["region"] == "category 33.3 % 33.3 % 33.3 % 0 % aaaaaa (33.3 %)"
    assert cells["age"] == "integer 33.3 % 33.3 % 0 % 33.3 % 99 aaaaa (33.3 %)"
    assert cells["visited"] == "date 33.3 % 33.3 % 0 % 33.3 % 99/99/9999 (33.3 %)"
    assert "Zaphod" not in shown.words
    assert listing(place.folder) == before


def test_the_table_may_follow_the_flag_and_json_says_the_same(place: Workspace) -> None:
    shown = run("schema", "check", place.schema, "--rows", place.table, "--json")
    document = json.loads(shown.out)
    assert (shown.status, document["confidential"], document["rows"]) == (0, True, 6)
    assert document["notice"].startswith(CONFIDENTIAL)
    sex = next(one for one in document["columns"] if one["column"] == "sex")
    assert sex["unreadable"] == pytest.approx(1 / 3)
    assert sex["shapes"] == [{"shape": "aaaaaa", "share": pytest.approx(1 / 3)}]
    header = json.loads(run("schema", "check", place.schema, place.table, "--json").out)
    assert (header["confidential"], "columns" in header) == (False, False)


def test_noise_is_charged_and_may_be_shown(place: Workspace) -> None:
    words = ("schema", "check", place.schema, place.table, "--rows", "--epsilon", "5", "--ledger", place.ledger)
    shown = run(*words)
    assert shown.status == 0
    assert "CONFIDENTIAL" not in shown.out
    assert shown.out.startswith("With noise, paid with ε = 5: a share may be off by ")
    assert "Charged to 'people' in" in shown.out
    assert "left: ε = 95, δ = 1e-06" in shown.out
    assert "aaa" not in shown.out
    document = json.loads(run(*words, "--delta", "1e-7", "--json").out)
    assert (document["confidential"], document["epsilon"], document["delta"]) == (False, 5.0, 1e-7)
    assert run("ledger", "show", place.ledger).out.count(" check ") == 2
    refused = run(*words[:-3], "500", "--ledger", place.ledger)
    assert (refused.status, refused.panels) == (3, 1)
    assert "Nothing was charged." in refused.words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--rows",), "--rows needs a table"),
        (("TABLE", "--epsilon", "1", "--ledger", "LEDGER"), "Give --rows too"),
        (("TABLE", "--rows", "--epsilon", "1"), "Give --ledger too"),
        (("TABLE", "--rows", "--ledger", "LEDGER"), "--ledger is for a look with noise. Give --epsilon too."),
        (("TABLE", "--rows", "--delta", "1e-6"), "--delta is for a look with noise"),
    ],
)
def test_flags_that_do_not_go_together(words: tuple[str, ...], said: str, place: Workspace) -> None:
    names = {"TABLE": place.table, "LEDGER": place.ledger}
    shown = run("schema", "check", place.schema, *(names.get(word, word) for word in words))
    assert (shown.status, shown.panels) == (2, 1)
    assert said in shown.words
    assert "CONFIDENTIAL" not in shown.words


def _checked(place: Workspace, rows: str, schema: Path) -> Outcome:
    place.table.write_bytes((HEADER + rows).encode("latin-1", errors="ignore"))
    return run("schema", "check", schema, place.table, "--rows")


def test_the_exit_status_does_not_depend_on_the_rows(place: Workspace, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(place.schema.read_text(encoding="utf-8").replace("upper: 65", "upper: 1"), encoding="utf-8")
    for rows in ROWS.values():
        good, refused = _checked(place, rows, place.schema), _checked(place, rows, bad)
        assert (good.status, good.panels) == (0, 0)
        assert (refused.status, refused.panels, refused.out) == (2, 1, "")
        assert good.err == _checked(place, ROWS["good"], place.schema).err
