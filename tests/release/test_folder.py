"""A folder that is there completely or not at all, also when its writer is killed at any moment."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from understudy.errors import InputError, UsageError
from understudy.release.folder import MANIFEST, check_free, file_digest, listed_files, published
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
    subprocess.run([sys.executable, "-c", KILLED, plain_folder, tmp_path, str(KILLS)], check=True)
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
        with pytest.raises(UsageError, match="exists already"):
            check_free(tmp_path / name)
    with pytest.raises(InputError, match="does not exist"):
        check_free(tmp_path / "no" / "such")


def test_a_target_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(UsageError), published(tmp_path / "out"):
        (tmp_path / "out").mkdir()
    assert list((tmp_path / "out").iterdir()) == []
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]
