"""How a command ends: whatever stops it, and whenever, it says truly what was charged and what exists."""

import errno
import os
import re
import resource
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

import understudy
from tests.cli.terminal import Outcome, run
from tests.cli.workspace import SCHEMA, Workspace, people
from tests.processes import Forked
from understudy.errors import DamagedLedgerError, InputError, LedgerError, UsageError
from understudy.privacy.ledger import Ledger
from understudy.schema.document import schema_from_text

STANDS = re.compile(r"[Tt]he charge of ε = 1 \(run [0-9a-f]{32}\)")
SECRET = "Zaphod-7731"


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    return Workspace.make(tmp_path)


def _told(place: Workspace, words: str, charges: int) -> None:
    """The sentence at the end of what was printed, against the ledger and the folder as they are."""
    entries = Ledger.open(place.ledger).entries()
    assert sum(entry.kind == "charge" for entry in entries) == charges
    released = (place.release / "manifest.json").exists()
    assert ("Nothing was charged." in words) == (charges == 0)
    assert bool(STANDS.search(words)) == (charges == 1)
    assert ("no release was written" in words) == (charges == 1 and not released)
    assert (f"The release is complete in {place.release}" in words) == released
    ends = [entry.outcome for entry in entries if entry.kind == "finish"]
    assert ends == ([] if charges == 0 else ["released" if released else "failed"])
    assert [path.name for path in place.folder.iterdir() if path.name.startswith(".")] == []
    assert SECRET not in words


def _signal(number: int) -> Callable[..., None]:
    def send(*_: object, **__: object) -> None:
        os.kill(os.getpid(), number)
        time.sleep(5)

    return send


def _raise(error: BaseException) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def _swallowed(*_: object, **__: object) -> None:
    """As a library does that is called back while the signal arrives, and makes an error of its own of it."""
    try:
        _signal(signal.SIGINT)()
    except KeyboardInterrupt:
        raise RuntimeError(SECRET) from None


class _Finalized:
    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)


def _unraisable(*_: object, **__: object) -> None:
    """The signal strikes in a finalizer, out of which no exception can leave."""
    _Finalized()
    time.sleep(5)


ENDINGS = {
    "usage": (_raise(UsageError("--rows", "is wrong.")), 2),
    "ledger": (_raise(LedgerError("ledger", "does not add up.")), 3),
    "damaged ledger": (_raise(DamagedLedgerError("ledger", "is damaged.")), 2),
    "failing disk": (_raise(OSError(errno.EIO, SECRET)), 4),
    "lost drive": (_raise(OSError(errno.ESTALE, SECRET)), 4),
    "full disk": (_raise(OSError(errno.ENOSPC, SECRET)), 4),
    "file size limit": (_raise(OSError(errno.EFBIG, SECRET)), 2),
    "open files": (_raise(OSError(errno.EMFILE, SECRET)), 2),
    "no right": (_raise(PermissionError(errno.EACCES, SECRET)), 2),
    "pipe": (_raise(BrokenPipeError(errno.EPIPE, SECRET)), 1),
    "memory": (_raise(MemoryError()), 4),
    "fault": (_raise(RuntimeError(SECRET)), 1),
    "Ctrl-C": (_raise(KeyboardInterrupt()), 130),
    "SIGINT": (_signal(signal.SIGINT), 130),
    "SIGTERM": (_signal(signal.SIGTERM), 143),
    "SIGHUP": (_signal(signal.SIGHUP), 129),
    "SIGINT as another error": (_swallowed, 130),
    "SIGTERM in a finalizer": (_unraisable, 143),
}
MOMENTS = {
    "before the charge": ("understudy.synthesizer.pipeline.Account.charge", 0),
    "after the charge": ("understudy.synthesizer.pipeline._release", 1),
    "while saving": ("understudy.release.store._write_fits", 1),
    "after saving": ("understudy.cli.synthesize.show_release", 1),
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("ending", ENDINGS)
def test_every_ending_is_told_truly(
    place: Workspace, monkeypatch: pytest.MonkeyPatch, moment: str, ending: str
) -> None:
    action, status = ENDINGS[ending]
    target, charges = MOMENTS[moment]
    monkeypatch.setattr(target, action)
    shown = place.synthesize("--method", "independent")
    assert (shown.status, shown.panels) == (status, 1), shown.words
    _told(place, shown.words, charges)


def test_a_signal_between_the_commit_and_the_receipt_is_told_truly(
    place: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.privacy.ledger._receipt", _signal(signal.SIGTERM))
    shown = place.synthesize("--method", "independent")
    assert shown.status == 143
    assert STANDS.search(shown.words)
    assert "no release was written" in shown.words
    assert len(Ledger.open(place.ledger).entries()) == 2


@pytest.mark.parametrize("saved", [True, False])
def test_a_commit_of_which_nobody_knows_is_looked_up(
    place: Workspace, monkeypatch: pytest.MonkeyPatch, saved: bool
) -> None:
    """The commit itself reports failure: the ledger is read again, and only what stands there counts."""
    from understudy.privacy import ledger_file as store

    real = store.Store.append

    def append(self: store.Store, entry: store.Entry) -> None:
        real(self, entry)
        if saved:
            self._connection.execute("COMMIT")
        raise OSError(errno.EIO, "failed")

    monkeypatch.setattr(store.Store, "append", append)
    shown = place.synthesize("--method", "independent")
    monkeypatch.undo()
    assert shown.status == 3
    assert bool(STANDS.search(shown.words)) == saved
    assert ("Nothing was charged." in shown.words) != saved
    assert len(Ledger.open(place.ledger).entries()) == 1 + saved


def test_a_ledger_that_breaks_after_saving_does_not_deny_the_release(
    place: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from understudy.synthesizer import pipeline

    real = pipeline.save_release  # type: ignore[attr-defined]

    def save(*arguments: object) -> object:
        statement = real(*arguments)  # type: ignore[arg-type]
        place.ledger.write_bytes(b"rubbish")
        return statement

    monkeypatch.setattr(pipeline, "save_release", save)
    shown = place.synthesize("--method", "independent")
    assert (shown.status, shown.panels) == (3, 1)
    assert f"The release is complete in {place.release}" in shown.words
    assert "othing private was read" not in shown.words
    assert run("verify", place.release).status == 0


def test_a_charge_without_a_ledger_is_found_where_the_message_says(
    place: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.synthesizer.pipeline._release", _raise(MemoryError()))
    words = ["synthesize", place.table, "--schema", place.schema, "--epsilon", 1, "--method", "independent"]
    shown = run(*words, "--out", place.release)
    assert shown.status == 4
    assert STANDS.search(shown.words)
    assert "only record" in shown.words
    (record,) = place.folder.glob(".understudy-*/ledger.db")
    assert str(record) in re.sub(r"[│\s]", "", shown.err)
    assert run("ledger", "show", record).status == 0


def test_exceptions_of_the_library_carry_what_was_charged(place: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = schema_from_text(SCHEMA, "schema.yaml")
    monkeypatch.setattr("understudy.synthesizer.pipeline._release", _raise(MemoryError()))
    with pytest.raises(MemoryError) as ended:
        understudy.synthesize(place.table, schema, epsilon=1, method="independent", ledger=place.ledger)
    assert STANDS.search(" ".join(ended.value.__notes__))
    with pytest.raises(InputError) as refused:
        understudy.synthesize(place.folder / "none.csv", schema, epsilon=1, method="independent")
    assert not hasattr(refused.value, "__notes__")


def _damaged_parquet(place: Workspace) -> str:
    path = place.folder / "damaged.parquet"
    pq.write_table(people(20_000), path, compression="snappy")
    start = pq.ParquetFile(path).metadata.row_group(0).column(3).data_page_offset + 40
    content = bytearray(path.read_bytes())
    content[start : start + 200] = bytes(7 * one % 256 for one in range(200))
    path.write_bytes(content)
    return str(path)


def _damaged_duckdb(place: Workspace) -> str:
    path = place.folder / "damaged.duckdb"
    with duckdb.connect(str(path)) as opened:
        opened.register("rows", people(20_000))
        opened.execute("CREATE TABLE people AS FROM rows")
    content = bytearray(path.read_bytes())
    for start in range(3 * 4096 + 2**18 + 1000, len(content), 2**18):
        content[start : start + 300] = b"\xa5" * 300
    path.write_bytes(content)
    return f"{path}::people"


@pytest.mark.parametrize("damaged", [_damaged_parquet, _damaged_duckdb])
def test_damage_that_shows_while_rows_are_read_is_told_with_the_charge(
    place: Workspace, damaged: Callable[[Workspace], str]
) -> None:
    shown = place.synthesize("--method", "independent", table=damaged(place))
    assert (shown.status, shown.panels) == (2, 1)
    _told(place, shown.words, 1)


@pytest.mark.parametrize("name", ["x" * 255, "x" * 240, "\udcff\udcfe"])
def test_names_that_cannot_be_used_cost_nothing(place: Workspace, name: str) -> None:
    shown = place.synthesize("--method", "independent", "--out", place.folder / name)
    assert (shown.status, shown.panels) == (2, 1)
    _told(place, shown.words, 0)


def test_the_longest_name_that_fits_is_accepted(place: Workspace) -> None:
    name = "x" * (255 - len("..012345678901.partial"))
    assert place.synthesize("--method", "independent", "--out", place.folder / name).status == 0


# As real processes.


def _words(place: Workspace) -> list[str]:
    words = ["synthesize", place.table, "--schema", place.schema, "--epsilon", 1, "--method", "independent"]
    return [str(word) for word in [*words, "--out", place.release, "--ledger", place.ledger, "--dataset", "people"]]


def _shell(place: Workspace, line: str) -> Outcome:
    command = ["bash", "-c", line, "bash", sys.executable, "-m", "understudy", *_words(place)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    return Outcome(shown.returncode, shown.stdout, shown.stderr)


def test_standard_output_that_is_full_does_not_deny_the_release(place: Workspace) -> None:
    shown = _shell(place, '"$@" >/dev/full')
    assert (shown.status, shown.panels) == (4, 1), shown.err
    _told(place, shown.words, 1)
    assert "Exception ignored" not in shown.err


def test_closed_standard_output_is_refused_before_anything_happens(place: Workspace) -> None:
    shown = _shell(place, '"$@" >&-')
    assert (shown.status, shown.panels) == (2, 1), shown.err
    assert len(Ledger.open(place.ledger).entries()) == 1
    assert _shell(place, '"$@" >&- 2>&-').status == 2


def test_closed_standard_input_and_error_do_no_harm(place: Workspace) -> None:
    shown = _shell(place, '"$@" <&- 2>&-')
    assert (shown.status, shown.err) == (0, "")
    assert run("verify", place.release).status == 0


def test_a_reader_that_has_seen_enough_is_no_error(place: Workspace) -> None:
    shown = _shell(place, '"$@" | true; exit ${PIPESTATUS[0]}')
    assert (shown.status, shown.panels) == (141, 0)
    assert "Exception ignored" not in shown.err
    assert run("verify", place.release).status == 0


@pytest.mark.parametrize("line", ["--help", "--version", "methods --json"])
@pytest.mark.parametrize(("redirect", "status"), [(">/dev/full", 4), (">&-", 2), ("| true", 141)])
def test_pages_that_cannot_be_printed(line: str, redirect: str, status: int) -> None:
    command = f"{sys.executable} -m understudy {line} {redirect}; exit ${{PIPESTATUS[0]}}"
    shown = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert shown.returncode == status, shown.stderr
    assert "Traceback" not in shown.stderr
    assert "Exception ignored" not in shown.stderr


@pytest.mark.parametrize("limit", ["-f 1", "-f 20", "-n 12"])
def test_limits_of_the_process_are_refused_before_the_charge(place: Workspace, limit: str) -> None:
    shown = _shell(place, f'ulimit {limit}; "$@"')
    assert (shown.status, shown.panels) == (2, 1), shown.err
    assert "ulimit" in shown.words
    _told(place, shown.words, 0)


def test_a_low_limit_that_may_be_raised_is_raised(place: Workspace) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, hard))
        assert run("methods").status == 0
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 64
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


WAITING = """
import sys, time
from pathlib import Path
import understudy.release.store as store
from understudy.cli.app import main

def wait(*_):
    Path(sys.argv[1]).touch()
    time.sleep(60)

store._write_fits = wait
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_signal_leaves_nothing_half_made(place: Workspace, number: int, status: int) -> None:
    ready = place.folder / "ready"
    running = Forked(WAITING, ready, *_words(place))
    while not ready.exists() and running.runs():
        time.sleep(0.05)
    assert list(place.folder.glob(".release.*.partial"))
    running.send(number)
    running.send(number)  # an impatient second one does not cut the orderly end short
    ended = running.ended()
    shown = Outcome(ended.status, "", ended.said)
    assert (shown.status, shown.panels) == (status, 1), ended
    _told(place, shown.words, 1)


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    code = "import signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); from understudy.cli.console import *\n"
    code += "import os\nwith orderly_signals(): os.kill(os.getpid(), signal.SIGHUP)\nsys.exit(stopped_by() or 7)"
    assert Forked(code).ended().status == 7


def test_ctrl_c_while_the_command_is_loading_is_one_line(tmp_path: Path) -> None:
    loading = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)\n"
    (tmp_path / "typer.py").write_text(loading, encoding="utf-8")
    command = [sys.executable, "-m", "understudy", "--help"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    shown = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (shown.returncode, shown.stdout) == (130, "")
    assert shown.stderr == "Stopped before anything was read, charged or written.\n"


def test_the_command_that_is_installed_is_the_one_that_loads_quietly() -> None:
    project = Path(__file__).resolve().parents[2] / "pyproject.toml"
    assert 'understudy = "understudy.__main__:main"' in project.read_text(encoding="utf-8")


def test_a_progress_bar_on_a_terminal_that_has_gone_does_not_end_a_run() -> None:
    code = textwrap.dedent("""
        import os, pty, sys
        leader, follower = pty.openpty()
        os.dup2(follower, 2)
        os.close(follower)
        from understudy.cli.console import Shell
        with Shell().running() as progress:
            progress.stage("measure", 0.5)
            os.close(leader)
            progress.stage("measure", 0.9)
        Shell().note("a note")
        print("done")
    """)
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stdout) == (0, "done\n")
