"""Releases made once and shared: reading them costs nothing, so tests only copy or read them."""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Generator
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.processes import ForkedRun
from tests.release.people import release_of_everything, release_of_simple
from understudy.release.release import Release

# A slow machine is not a failure: what is asserted is what is computed, never how long it took. The suite draws the
# same examples every time, so that a change is judged by what it changed; `make test-explore` looks for new ones.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("understudy", settings.get_profile("explore"), derandomize=True)
settings.load_profile("understudy")

# A suite that is started in the background or by nohup inherits signals that are ignored, and so would every command
# that it starts, rightly: but what Ctrl-C and a closed terminal do is what some tests are about.
for number, action in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, action)

# Ledgers and releases wait for the disk at every step, as they must. What tests write lies in memory where it can:
# nobody needs it after a loss of power, and a process that is killed leaves as much of it there as on a disk.
MEMORY = Path("/dev/shm")
LEAST_ROOM = 2**31
if (
    "TMPDIR" not in os.environ
    and MEMORY.is_dir()
    and os.access(MEMORY, os.W_OK)
    and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC  # some tests make small programs
    and shutil.disk_usage(MEMORY).free >= LEAST_ROOM
):
    os.environ["TMPDIR"], tempfile.tempdir = str(MEMORY), None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collected tests stay for the whole run: searching them for garbage again and again is a third of collecting."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_sessionfinish() -> None:
    """Lets the interpreter take everything apart at its end, as libraries of compiled code expect."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def full_release() -> Release:
    """A release of a table with every kind of column, under δ."""
    return release_of_everything()


@pytest.fixture(scope="session")
def full_folder(full_release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its folder on disk. Read it or copy it, never change it."""
    folder = tmp_path_factory.mktemp("releases") / "full"
    full_release.save(folder)
    return folder


@pytest.fixture(scope="session")
def plain_release() -> Release:
    """A release of three columns under pure ε."""
    return release_of_simple()


@pytest.fixture(scope="session")
def plain_folder(plain_release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its folder on disk. Read it or copy it, never change it."""
    folder = tmp_path_factory.mktemp("releases") / "plain"
    plain_release.save(folder)
    return folder


@pytest.fixture
def quick_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs of a study in processes that are forked ready."""
    monkeypatch.setattr(import_module("understudy.compare.compare"), "WatchedProcess", ForkedRun)
