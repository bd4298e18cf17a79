"""Disks that are full, fail, are lost or may not be written, at every call that a command makes; memory and the clock.

A tiny disk that is really full needs the right to mount one, as root has; all else needs no rights.
"""

import errno
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.campaign import Before, Site, check_after, check_finished
from tests.faults.struck import Strike
from tests.processes import Ended

ERRORS = {"full": errno.ENOSPC, "failing": errno.EIO, "lost": errno.ESTALE}
KINDS = ("synthesize", "alone", "ledger")
DAY = 86_400.0
FEW = 3
LONGER = ("train", "choose")
"""Commands that write much: of their calls so many are struck."""
MANY = 25


def _calls(site: Site, *, reads: bool) -> int:
    """How many calls a command makes that nothing strikes."""
    ended = site.start(Strike(str(site.place), reads=reads)).ended()
    assert ended.status == 0, ended.words
    return int(ended.said.rsplit("calls=", 1)[1])


def _struck(site: Site, strike: Strike) -> Ended:
    before = Before.of(site)
    ended = site.start(strike).ended()
    assert ended.status >= 0, ended
    check_after(site, before, ended)
    check_finished(site)
    return ended


def _every(tmp_path: Path, kind: str, error: str, step: int) -> None:
    """Strikes at every call, or at every so many of them. A lost drive stays lost, for reading too."""
    lost = error == "lost"
    calls = _calls(Site.of(kind, tmp_path / "whole"), reads=lost)
    for number in range(1, calls + 1, step):
        site = Site.of(kind, tmp_path / str(number))
        strike = Strike(str(site.place), number, ERRORS[error], stays=error != "failing", reads=lost)
        ended = _struck(site, strike)
        assert ended.status in (0, 2, 3, 4), (number, ended.words)


@pytest.mark.parametrize("error", ERRORS)
def test_a_disk_that_fails_at_some_calls(tmp_path: Path, error: str) -> None:
    calls = _calls(Site.of("synthesize", tmp_path / "whole"), reads=error == "lost")
    _every(tmp_path / "struck", "synthesize", error, -(-calls // FEW))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", ERRORS)
def test_a_disk_that_fails_at_every_call(tmp_path: Path, error: str, kind: str) -> None:
    _every(tmp_path, kind, error, 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LONGER)
@pytest.mark.parametrize("error", ERRORS)
def test_a_disk_that_fails_at_some_calls_of_longer_commands(tmp_path: Path, error: str, kind: str) -> None:
    calls = _calls(Site.of(kind, tmp_path / "whole"), reads=error == "lost")
    _every(tmp_path / "struck", kind, error, -(-calls // MANY))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few kilobytes, remounted with other sizes by the test."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small disk is not allowed here")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def _resize(disk: Path, kibibytes: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={kibibytes}k", disk], check=True, capture_output=True)


def _on_full_disks(disk: Path, kibibytes: list[int]) -> list[int]:
    """The statuses of runs on a disk with so much room, each of which finds more room when it is given again."""
    ended = []
    for number, size in enumerate(kibibytes):
        _resize(disk, 100_000)
        site = Site.of("synthesize", disk / str(number))
        used = sum(path.stat().st_blocks for path in disk.rglob("*")) // 2
        _resize(disk, used + size)
        before = Before.of(site)
        told = site.start(Strike(str(site.place), room_is_told=False)).ended()
        assert told.status >= 0, told
        _resize(disk, 100_000)
        check_after(site, before, told)
        check_finished(site)
        ended.append(told.status)
    return ended


def test_a_disk_that_fills_up_after_it_was_looked_at(small_disk: Path) -> None:
    statuses = _on_full_disks(small_disk, [4, 60])
    assert set(statuses) <= {2, 3, 4}, statuses


@pytest.mark.slow
def test_a_disk_that_fills_up_at_every_page(small_disk: Path) -> None:
    statuses = _on_full_disks(small_disk, list(range(0, 260, 4)))
    assert {3, 4} <= set(statuses) <= {0, 2, 3, 4}, statuses


@pytest.mark.parametrize("kind", KINDS)
def test_a_disk_that_may_not_be_written(small_disk: Path, tmp_path: Path, kind: str) -> None:
    _resize(small_disk, 100_000)
    site = Site.of(kind, small_disk / "site")
    before = Before.of(site)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True, capture_output=True)
    ended = site.start().ended()
    assert ended.status in (2, 3), ended.words
    assert not site.is_done()
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True, capture_output=True)
    check_after(site, before, ended)
    assert site.charges() == before.charges
    check_finished(site)


@pytest.mark.parametrize("days", [-400, 400])
def test_a_clock_that_is_wrong(tmp_path: Path, days: int) -> None:
    """Dates may then run backwards in the ledger; nothing else of it depends on them."""
    site = Site.of("synthesize", tmp_path / "site")
    _struck(site, Strike(str(site.place), seconds=days * DAY))
    first = site.lines()
    (site.out).rename(site.root / "first")
    assert check_finished(site) == 1
    assert site.lines()[: len(first)] == first


@pytest.mark.parametrize("mebibytes", [1, 24, 200])
def test_memory_that_runs_out(tmp_path: Path, mebibytes: int) -> None:
    site = Site.of("synthesize", tmp_path / "site")
    before = Before.of(site)
    ended = site.start(Strike(str(site.place), most_bytes=mebibytes * 2**20)).ended()
    check_after(site, before, ended)
    assert ended.status < 0 or ended.status in (0, 1, 2, 4), ended.words
    check_finished(site)
