"""The process of one run: `python -m understudy.studio.worker FOLDER LOCK`.

It does what the command line would do with the same settings, tells its folder the stage it is in, and at the end how
it ended. It holds the lock that it was given until then. A request to end (SIGTERM) ends it as Ctrl-C ends a command:
the charge, if there is one, is closed as failed and stays.
"""

import os
import signal
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import understudy as us
from understudy.studio.invented import plainly_written, write_invented
from understudy.studio.workspace import read_json, write_json

QUICK = ("marginals", "correlations", "rules")
"""Scores that take a moment on a table of usual size."""
TRIAL = "study"
"""The folder of a trial's study, in the folder of its run."""
_LEAST_SECONDS, _MOST_TRIAL_SECONDS = 0.2, 900.0


class FolderProgress:
    """Writes the stage of a run into its folder, now and then."""

    def __init__(self, place: Path, number: int) -> None:
        self._place, self._number, self._began = place, number, time.time()
        self._last = 0.0
        self._stage = ""
        self.stage("check", 0.0)

    def stage(self, name: str, done: float) -> None:
        """Called at the start, now and then, and at the end of each stage."""
        if (self._place / "cancel").exists():
            raise KeyboardInterrupt
        now = time.monotonic()
        if name == self._stage and now - self._last < _LEAST_SECONDS:
            return
        self._stage, self._last = name, now
        state = {"pid": self._number, "began": self._began, "stage": name, "done": done}
        write_json(self._place / "state.json", state)


def work(place: Path, number: int) -> None:
    """Does what the settings in the folder say, and writes how it ended."""
    settings = read_json(place / "settings.json")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", us.errors.UnderstudyWarning)
        end = _ended(place, settings, number)
    remarks = [str(one.message) for one in told if issubclass(one.category, us.errors.UnderstudyWarning)]
    write_json(place / "end.json", {**end, "remarks": remarks})


def _ended(place: Path, settings: Mapping[str, Any], number: int) -> dict[str, object]:
    try:
        progress = FolderProgress(place, number)
        return _MAKERS[settings["kind"]](place, settings, progress)
    except KeyboardInterrupt as error:
        return {"outcome": "cancelled", "message": _notes(error) or "It was cancelled. Nothing was charged."}
    except (us.errors.BudgetError, us.errors.LedgerError) as error:
        return {"outcome": "refused", "message": f"{error} {_notes(error)}".strip()}
    except us.errors.UnderstudyError as error:
        return {"outcome": "failed", "message": f"{error} {_notes(error)}".strip()}
    except BaseException as error:  # noqa: BLE001 - its words may hold anything, so nobody gets to see them
        message = f"A fault of ours ({type(error).__name__}). {_notes(error)}".strip()
        return {"outcome": "fault", "message": message}


def _notes(error: BaseException) -> str:
    """What was charged, which `synthesize` adds to whatever ends it."""
    return " ".join(getattr(error, "__notes__", ()))


def _synthesize(place: Path, settings: Mapping[str, Any], progress: FolderProgress) -> dict[str, object]:
    us.synthesize(
        settings["table"], us.Schema.from_yaml(place / "schema.yaml"), method=settings["method"],
        epsilon=settings["epsilon"], delta=settings["delta"], ledger=settings["ledger"], dataset=settings["dataset"],
        out=settings["out"], progress=progress, resume=bool(settings.get("resume")),
    )  # fmt: skip
    return {"outcome": "released", "message": ""}


def _evaluate(_: Path, settings: Mapping[str, Any], progress: FolderProgress) -> dict[str, object]:
    metrics = QUICK if settings.get("quick") else None
    found = us.evaluate(settings["table"], settings["release"], metrics=metrics, progress=progress)
    found.save(settings["out"])
    return {"outcome": "compared", "message": ""}


def _try_methods(place: Path, settings: Mapping[str, Any], progress: FolderProgress) -> dict[str, object]:
    """Methods side by side on a table that a person has called public, or on invented rows; nothing is charged."""
    schema, table = us.Schema.from_yaml(place / "schema.yaml"), settings["table"]
    if not table:
        schema, table = plainly_written(schema), str(place / "invented.csv")
        write_invented(schema, settings["rows"], Path(table))
    study = us.compare(
        table, schema, methods=settings["methods"], epsilons=[settings["epsilon"]], delta=settings["delta"],
        repeats=settings["repeats"], seconds=_MOST_TRIAL_SECONDS, public_proxy=True, out=place / TRIAL,
        progress=progress,
    )  # fmt: skip
    answers = [{"answer": one.answer, "grounds": one.grounds, "method": one.candidate} for one in study.recommendations]
    return {"outcome": "tried", "message": "", "answers": answers, "failures": list(study.failures)}


_MAKERS = {"release": _synthesize, "comparison": _evaluate, "trial": _try_methods}


def _stop(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


def main(words: list[str]) -> None:
    """Works in the folder that is named first; the number of the inherited lock is named second and is kept open."""
    signal.signal(signal.SIGTERM, _stop)
    work(Path(words[0]), os.getpid())


if __name__ == "__main__":
    main(sys.argv[1:])
