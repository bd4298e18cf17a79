"""Nothing that is released tells the time of day: how long a run took depends on the rows that it read."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from tests.release.people import everything, people
from understudy.privacy.cost import Budget
from understudy.privacy.ledger import Ledger
from understudy.synthesizer import Environment, synthesize
from understudy.testing.doubles import SeededRandomizer

SLEEP = 1.1  # more than a second, the step of most clocks that get into files


class Slow(SeededRandomizer):
    """The same noise after a while: a run on a larger table."""

    slept = False

    def add_noise(self, request, exact):
        if not self.slept:
            time.sleep(SLEEP)
            self.slept = True
        return super().add_noise(request, exact)


def _left(folder: Path) -> dict[str, tuple[bytes, int]]:
    paths = [folder, *sorted(folder.rglob("*"))]
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in paths
    }


def _runs(tmp_path: Path, name: str, randomizer: type[SeededRandomizer]) -> dict[str, tuple[bytes, int]]:
    """What two runs of one lasting ledger leave, on the machine's own clock."""
    here = tmp_path / name
    here.mkdir()
    ledger = Ledger.create(here / "ledger.db", "people", Budget(30.0, 1e-3))
    left = {}  # type: ignore[var-annotated]
    for run in ("first", "second"):
        environment = Environment(randomizer(3), lambda: datetime.now(UTC), lambda run=run: run)  # type: ignore[misc]
        settings = {"epsilon": 9.0, "delta": 1e-6, "seed": 4, "method": "independent", "ledger": ledger}
        synthesize(people(), everything(), out=here / run, _environment=environment, **settings)
        left |= {f"{run}/{path}": what for path, what in _left(here / run).items()}
    return left


def test_a_slow_run_leaves_the_same_bytes_and_times_as_a_fast_one(tmp_path: Path) -> None:
    for attempt in range(2):  # the second only if midnight fell into the first
        day = datetime.now(UTC).date()
        fast = _runs(tmp_path, f"fast-{attempt}", SeededRandomizer)
        time.sleep(SLEEP)
        slow = _runs(tmp_path, f"slow-{attempt}", Slow)
        if datetime.now(UTC).date() == day:
            break
    assert len(fast) > 26
    assert fast == slow


def test_the_date_is_that_of_the_charge_however_long_the_run_takes() -> None:
    clock = [datetime(2026, 1, 2, 23, 59, 59, tzinfo=UTC)]

    class PastMidnight(SeededRandomizer):
        def add_noise(self, request, exact):
            clock[0] += timedelta(hours=1)
            return super().add_noise(request, exact)

    environment = Environment(PastMidnight(3), lambda: clock[0], lambda: "run-of-a-test")
    release = synthesize(
        people(), everything(), epsilon=9.0, delta=1e-6, method="independent", _environment=environment
    )
    assert clock[0].day == 3
    assert release.statement.date == "2026-01-02"


def test_no_line_of_a_ledger_has_a_time_of_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(3.0))
    for number, seconds in enumerate(np.linspace(0, 80_000, 4)):
        monkeypatch.setattr(time, "time", lambda seconds=seconds: 1_700_006_400.0 + seconds)
        cost = Budget(0.5).cost("pure", 0)
        ledger.charge("people", run=str(number), method="laplace", cost=cost, budget=Budget(0.5), unit="one row")
        ledger.finish(str(number), "released")
    assert {entry.made for entry in ledger.entries()[1:]} == {"2023-11-15"}
