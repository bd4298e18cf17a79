"""Checkpoint: what a training needs to go on after an interruption, and why going on costs nothing.

What it holds. The number of steps done, the noisy sum of the first look, and the trainer's state, which the trainer
makes of noisy sums, public settings and a public seed (it sees rows only to make contributions of them). So a
checkpoint is a function of the noisy sums so far and of public facts: no exact count, no number of rows, no batch, no
coin, no noise by itself, nothing of the secure generator, which has no state. Replay on neighbouring tables compares
checkpoints byte by byte.

When. After the first look, after every tenth of the steps, and after the last one: by the plan, not by the data and
not by the clock.

Why continuing costs nothing. Steps since the newest recorded checkpoint are lost with the process. The run goes on from
that checkpoint, with fresh coins and fresh noise for every step. Claim: all recorded checkpoints and the release
together have the law of an uninterrupted run's, whose price was charged, provided that whoever interrupts has seen at
most what was recorded. Proof, by induction over the recorded checkpoints: the ledger takes one sequence of them for a
charge, with rising steps, each made from the one before (`bookkeeping/hold.py`: only the holder may add to it, and only
from the newest may it be continued). Given the recorded ones, the steps up to the next one are drawn anew at every
attempt. Assume that whether an attempt is interrupted does not depend on its own coins and noise; then the attempt
that gets through has the law of an attempt that nobody could interrupt. (A machine so short of memory that it stops
large batches, or a time limit that does, would break the assumption: give the run room before it is continued.) The
release follows from the last checkpoint, the schema and the recorded seed of drawing rows, so an interruption while it
is written changes nothing.

The proviso is about working memory. A checkpoint is written to a temporary file, made durable, renamed, and only then
recorded: for that moment, and in the memory of the process, there are steps that may be lost. Somebody who reads them,
interrupts and reads again sees steps that were not paid for, at most a tenth of the course (and before the first
checkpoint the first look) for each interruption; the ledger counts the interruptions. Whoever can do that can read the
private table too. Files of a run are confidential until its release is complete, and for their owner only.

An older copy of a checkpoint is refused (it is not the newest one), and so is a second release from one charge. Copying
the ledger along with the checkpoint forks the ledger, with all that follows from that (`ledger.py`).

The table may have changed in between: every step bounds what a unit adds to it, whatever the table is by then, so the
price stays the same. That the table is the one the charge was made for is the steward's word, as for every charge;
a digest of the rows would be a private number and is not kept.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from understudy.counts.source import Ints
from understudy.errors import LedgerError
from understudy.marginals.answer import Course

__all__ = ["Checkpoint", "Keeper", "Resumable", "State", "from_bytes", "is_due", "to_bytes"]

State = Mapping[str, npt.NDArray[np.generic]]

FORMAT = "understudy checkpoint, format 1"
PARTS = 10
_ABOUT, _FIRST = "about", "first"


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """The steps done, the noisy sum of the first look (empty without one), and the trainer's state after them."""

    step: int
    first: Ints
    state: State


class Keeper(Protocol):
    """Keeps checkpoints where they survive the process."""

    def newest(self) -> Checkpoint | None:
        """What the run goes on from; None at the beginning."""
        ...

    def keep(self, checkpoint: Checkpoint) -> None:
        """Returns once the checkpoint is on disk and recorded."""
        ...


@runtime_checkable
class Resumable(Protocol):
    """A trainer that can be put back where it was."""

    def state(self) -> State:
        """Everything it learned since the first look was told, as arrays."""
        ...

    def restore(self, state: State) -> None:
        """Takes up a state again, after the first look was told."""
        ...


def is_due(step: int, course: Course) -> bool:
    """Whether a checkpoint is kept after that many steps (0: after the first look).

    >>> from fractions import Fraction
    >>> [step for step in range(1, 101) if is_due(step, Course(64, 100, Fraction(2)))][:3]
    [10, 20, 30]
    """
    if step == 0:
        return course.first_share > 0
    return step % max(1, -(-course.steps // PARTS)) == 0 or step == course.steps


def to_bytes(checkpoint: Checkpoint, about: Mapping[str, str]) -> bytes:
    """The checkpoint as a file: arrays and a header that says whose it is; the same content gives the same bytes."""
    header = json.dumps({"format": FORMAT, "step": checkpoint.step, **about}, sort_keys=True, ensure_ascii=True)
    arrays: dict[str, npt.NDArray[np.generic]] = {_ABOUT: np.frombuffer(header.encode(), dtype=np.uint8)}
    arrays |= {_FIRST: checkpoint.first} | {f"state/{name}": array for name, array in checkpoint.state.items()}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as part:  # with a date that never changes
                np.lib.format.write_array(part, np.array(array, order="C"), allow_pickle=False)
    return stream.getvalue()


def from_bytes(content: bytes, about: Mapping[str, str]) -> Checkpoint:
    """The checkpoint in a file.

    Raises:
        LedgerError: if the file is none, or belongs to another run.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            header = json.loads(stored[_ABOUT].tobytes())
            state = {name.removeprefix("state/"): stored[name] for name in stored.files if name.startswith("state/")}
            first, step = stored[_FIRST], header.pop("step")
        if header != {"format": FORMAT, **about} or type(step) is not int or first.dtype != np.int64:
            raise ValueError("header")
    except (ValueError, KeyError, TypeError, AttributeError, OSError, EOFError, zipfile.BadZipFile) as error:
        rule = "is no checkpoint of this run."
        raise LedgerError("checkpoint", rule, "Restore the file that the run wrote; nothing was continued.") from error
    return Checkpoint(step, first, state)
