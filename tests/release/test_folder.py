"""A folder that is there completely or not at all, also when its writer is killed at any moment."""

import json
import signal
import time
from pathlib import Path

import pytest

from tests.processes import Forked
from understudy.errors import InputError, UsageError
from understudy.release.files import (
    FILE_TIME,
    MANIFEST,
    check_free,
    file_digest,
    listed_files,
    published,
    put_in_place,
    reserved,
    waiting_folders,
)
from understudy.release.verify import verify_release

KILLS = 20

KILLED = """
import os, random, signal, sys, time
from pathlib import Path
from understudy.release.release import Release
release, target = Release.load(sys.argv[1]), Path(sys.argv[2])
release.save(target / "warm")
start = time.monotonic()
release.save(target / "timed")
usual = time.monotonic() - start
clock = random.Random(7)
for attempt in range(int(sys.argv[3])):
    child = os.fork()
    if not child:
        for number in range(1000):
            release.save(target / f"{attempt}-{number}")
        os._exit(0)
    while attempt % 2 and not (target / f"{attempt}-0").exists():
        time.sleep(0.01)  # every other writer is let finish once, however loaded the machine is
    time.sleep(clock.uniform(0.05, 2.5) * usual)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


def test_a_killed_writer_leaves_no_half_folder(plain_folder: Path, tmp_path: Path) -> None:
    assert Forked(KILLED, plain_folder, tmp_path, KILLS).ended().status == 0
    visible = [entry for entry in tmp_path.iterdir() if not entry.name.startswith(".")]
    unfinished = [entry for entry in tmp_path.iterdir() if entry.name.endswith(".partial")]
    assert unfinished, "no kill hit a writer at work"
    assert len(visible) > 2, "no writer ever finished"
    for folder in visible:
        assert verify_release(folder) == []


def test_a_folder_appears_complete_with_its_manifest(tmp_path: Path) -> None:
    with published(tmp_path / "out") as folder:
        (folder / "b.txt").write_text("b")
        (folder / "sub").mkdir()
        (folder / "sub" / "a.txt").write_text("a")
        assert not (tmp_path / "out").exists()
    listed = json.loads((tmp_path / "out" / MANIFEST).read_text())["files"]
    assert list(listed) == listed_files(tmp_path / "out") == ["b.txt", "sub/a.txt"]
    assert listed["b.txt"] == {"sha256": file_digest(tmp_path / "out" / "b.txt"), "bytes": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), published(tmp_path / "out") as folder:
        (folder / "a" / "b").write_text("the folder a is not there")
    assert list(tmp_path.iterdir()) == []


def test_a_target_that_exists_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "folder", "link"):
        with pytest.raises(UsageError, match=f"is a {name} that exists already"):
            check_free(tmp_path / name)
    with pytest.raises(InputError, match="does not exist"):
        check_free(tmp_path / "no" / "such")


def test_a_target_that_appears_meanwhile_is_not_replaced_and_nothing_is_lost(tmp_path: Path) -> None:
    def taken() -> None:
        (tmp_path / "out").mkdir()

    told = r"complete in .*\.out\..*partial.* taken in the meantime"
    with pytest.raises(InputError, match=told) as refused, published(tmp_path / "out", taken) as made:
        (made / "a.txt").write_text("paid for")
    assert str(made) in str(refused.value)
    assert list((tmp_path / "out").iterdir()) == []
    assert waiting_folders(tmp_path / "out") == [made]
    (tmp_path / "out").rmdir()
    put_in_place(made, tmp_path / "out")
    assert (tmp_path / "out" / "a.txt").read_text() == "paid for"


def test_what_is_refused_on_completion_is_not_kept(tmp_path: Path) -> None:
    def refused() -> None:
        raise UsageError("run", "was released by another process.")

    with pytest.raises(UsageError, match="another process"), published(tmp_path / "out", refused):
        pass
    assert list(tmp_path.iterdir()) == []


def test_files_and_folders_carry_one_fixed_time(tmp_path: Path) -> None:
    with published(tmp_path / "out") as folder:
        (folder / "sub").mkdir()
        (folder / "sub" / "a.txt").write_text("a")
    everything = [tmp_path / "out", *(tmp_path / "out").rglob("*")]
    assert len(everything) == 4
    assert {path.stat().st_mtime_ns for path in everything} == {FILE_TIME * 10**9}


def _reserve(target: Path) -> None:
    with reserved(target):
        pass


def test_a_reserved_target_is_refused_and_free_again_afterwards(tmp_path: Path) -> None:
    with reserved(tmp_path / "out"):
        with pytest.raises(UsageError, match=r"another process.*nothing was charged"):
            _reserve(tmp_path / "out")
        _reserve(tmp_path / "other")
    _reserve(tmp_path / "out")
    (tmp_path / "out").mkdir()
    with pytest.raises(UsageError, match="exists already"):
        _reserve(tmp_path / "out")
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


HOLDER = """
import sys, time
from pathlib import Path
from understudy.release.files import reserved
with reserved(Path(sys.argv[1])):
    Path(sys.argv[2]).touch()
    time.sleep(600)
"""


def test_a_killed_holder_blocks_nobody(tmp_path: Path) -> None:
    holder = Forked(HOLDER, tmp_path / "out", tmp_path / "held")
    while not (tmp_path / "held").exists():
        assert holder.runs(), holder.ended()
        time.sleep(0.01)
    (tmp_path / "held").unlink()
    with pytest.raises(UsageError, match="another process"):
        _reserve(tmp_path / "out")
    holder.send(signal.SIGKILL)
    holder.ended()
    assert [entry.name for entry in tmp_path.iterdir()] == [".out.reserved"], "a stale reservation"
    _reserve(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
