"""Job: what one run of a study is told, and what it leaves behind, as JSON files in the study's folder."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from understudy.compare.settings import Plain, plain_options
from understudy.evaluate.store import write_closed

__all__ = ["Found", "Job", "Outcome", "read_outcome", "write_json"]

Status = Literal["done", "refused", "failed", "memory", "time"]


@dataclass(frozen=True, slots=True)
class Job:
    """One run: the table, the method and its budget, and what to score."""

    table: str
    schema: str
    method: str
    options: Mapping[str, str]
    epsilon: float
    delta: float
    rows: int | None
    copies: int
    copies_mode: str
    metrics: tuple[str, ...]
    seed: int
    public: str | None = None
    metric_options: Mapping[str, Mapping[str, Plain]] = field(default_factory=dict)
    formula: str | None = None

    def write(self, path: Path) -> None:
        """Writes the job for the process that runs it."""
        write_json(path, asdict(self))

    @classmethod
    def read(cls, path: Path) -> "Job":
        """Reads what `write` wrote."""
        document = json.loads(path.read_text(encoding="utf-8"))
        exact = {"metrics": tuple(document["metrics"]), "metric_options": plain_options(document["metric_options"])}
        return cls(**(document | exact))


@dataclass(frozen=True, slots=True)
class Found:
    """One score of a run and which way is better."""

    metric: str
    score: str
    value: float | None
    yardstick: float | None
    direction: str
    best: float | None
    why_not: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended; scores only if it is done, a reason only if it is not."""

    status: Status
    reason: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    scores: tuple[Found, ...] = ()

    def write(self, path: Path) -> None:
        """Writes the outcome in one step: the file is there as a whole or not at all."""
        write_json(path, asdict(self))


def read_outcome(path: Path) -> Outcome | None:
    """The outcome that was written there; None if there is none, or only a torn one."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        scores = tuple(Found(**score) for score in document.pop("scores"))
        return Outcome(**document, scores=scores)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_json(path: Path, document: object) -> None:
    """Writes plain values in one step, for their owner alone."""
    write_closed(path, json.dumps(document, indent=1, allow_nan=False).encode())
