"""One output, one charge, one release: runs that race for an output, and releases left before they were in place."""

import os
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.processes import COMMAND, Forked
from tests.release.people import people, simple
from understudy.privacy.cost import Budget
from understudy.privacy.ledger import Ledger
from understudy.release import verify_release

RACERS = 6
KILLED = """
import os, signal, sys
from understudy.release import files
files.put_in_place = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
from understudy.cli.app import app
app(sys.argv[1:])
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    pq.write_table(pa.Table.from_pandas(people(300)[["sex", "age", "voted"]]), tmp_path / "table.parquet")
    simple().to_yaml(tmp_path / "schema.yaml")
    return Ledger.create(tmp_path / "ledger.db", "people", Budget(20.0))


def _words(ledger: Ledger, *more: str) -> list[str]:
    here = ledger.path.parent
    words = ["synthesize", str(here / "table.parquet"), "--schema", str(here / "schema.yaml"), "--epsilon", "1"]
    return [*words, "--method", "laplace", "--out", str(here / "out"), *more]


def _start(ledger: Ledger, *more: str, script: str = COMMAND) -> Forked:
    return Forked(script, *_words(ledger, *more))


def _told(process: Forked) -> tuple[int, str]:
    ended = process.ended()
    return ended.status, ended.words


def _kinds(ledger: Ledger) -> list[str]:
    return [entry.kind for entry in ledger.entries()]


def test_runs_that_race_for_one_output_pay_once(ledger: Ledger) -> None:
    charged = ("--ledger", str(ledger.path), "--dataset", "people")
    ended = [_told(process) for process in [_start(ledger, *charged) for _ in range(RACERS)]]
    assert sorted(status for status, _ in ended) == [0] + [2] * (RACERS - 1), ended
    assert all("another process" in said or "exists already" in said for status, said in ended if status), ended
    assert ledger.balance("people").releases == 1
    assert verify_release(ledger.path.parent / "out") == []
    left = sorted(path.name for path in ledger.path.parent.iterdir())
    assert left == ["ledger.db", "out", "schema.yaml", "table.parquet"]


@pytest.mark.parametrize("lasting", [True, False])
def test_a_release_left_by_a_kill_is_put_in_place_and_paid_once(ledger: Ledger, lasting: bool) -> None:
    here = ledger.path.parent
    charged = ("--ledger", str(ledger.path), "--dataset", "people") if lasting else ()
    assert _told(_start(ledger, *charged, script=KILLED))[0] == -signal.SIGKILL
    (left,) = here.glob(".out.*.partial")
    status, said = _told(_start(ledger, *charged))
    assert status == 2
    assert f"complete in {str(left)!r}".replace(" ", "") in said.replace(" ", "")
    assert "--resume" in said
    status, said = _told(_start(ledger, *charged, "--epsilon", "2", "--resume"))
    assert status == 2
    assert "other settings (budget)" in said
    status, said = _told(_start(ledger, *charged, "--resume"))
    assert status == 0, said
    assert verify_release(here / "out") == []
    assert _kinds(ledger) == (["dataset", "charge", "finish"] if lasting else ["dataset"])
    assert [path.name for path in here.iterdir() if path.name.startswith(".")] == []


def test_a_damaged_leftover_blocks_nobody(ledger: Ledger) -> None:
    charged = ("--ledger", str(ledger.path), "--dataset", "people")
    assert _told(_start(ledger, *charged, script=KILLED))[0] == -signal.SIGKILL
    (left,) = ledger.path.parent.glob(".out.*.partial")
    os.truncate(left / "manifest.json", 40)
    status, said = _told(_start(ledger, *charged))
    assert status == 0, said
    assert ledger.balance("people").releases == 2
    assert left.exists(), "what was paid for is not removed"
