"""train: the one question that hands rows to an optimiser, and takes nothing from it but bounded whole numbers.

Neighbours differ by one unit, at most k rows. In every step each unit takes part by a coin of its own, with the same
public probability; the rows of a unit come and go together. The trainer turns rows into integer vectors, each row by
itself: a row's vector may depend on that row and on what the trainer was told before (noisy sums, public settings), on
nothing else. The door adds up the vectors of each unit, leaves a unit out whose sum is longer than `clip` in L2 norm
(exact integers: a comparison, not a matter of rounding), adds up the units, puts discrete Gaussian noise on every
coordinate and hands the noisy sum back. How many units took part is told to nobody. `accountant.py` proves the price.

All that is asked of a trainer is that it keeps rows apart. If it does not, the bound on each unit still holds, but a
unit could change what others contribute; so contributions are computed row by row, without sums over a batch in
floating point, and replay on neighbouring tables looks at the exact sums.

The number of steps, the coins' probability and the noise are settled before the first row is read. Nothing here ends
early, and no message depends on a row. A course that was interrupted goes on from its newest checkpoint, with fresh
coins and noise for every step that is left: `checkpoint.py` says what that holds and proves that it costs nothing.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled
from understudy.counts.source import Ints, Records
from understudy.errors import UsageError
from understudy.marginals.answer import Course, Law, Trained
from understudy.privacy.randomizer import Randomizer, Request
from understudy.privacy.training.checkpoint import Checkpoint, Keeper, Resumable, is_due
from understudy.progress import Progress, silent

__all__ = ["Contributions", "Trainer", "bounded_sum", "train"]

Codes = npt.NDArray[np.unsignedinteger]
Whole = npt.NDArray[np.int32]

_CHUNK_UNITS = 1 << 16
_REPORTS = 100


@dataclass(frozen=True, slots=True, eq=False)
class Contributions:
    """One integer vector per row: `shared[i]` in every block of `blocks[i]`, then `own[i]` behind the last block.

    A vector of `cells` coordinates consists of blocks as wide as `shared`, followed by as many as `own` has. The blocks
    of a row must increase.
    """

    blocks: Whole
    shared: Whole
    own: Whole


class Trainer(Protocol):
    """An optimiser that sees rows only to make contributions of them, and learns from noisy sums only."""

    @property
    def name(self) -> str:
        """What the transcript calls it."""
        ...

    @property
    def course(self) -> Course:
        """The public numbers of the training."""
        ...

    @property
    def first_cells(self) -> int:
        """Coordinates of the first look's sum."""
        ...

    @property
    def cells(self) -> int:
        """Coordinates of a step's sum, once the first look was told."""
        ...

    def look(self, codes: Codes) -> Contributions:
        """What every row contributes to the first look; one line of codes per row, columns in domain order."""
        ...

    def looked(self, noisy: Ints, law: Law) -> None:
        """Takes the noisy sum of the first look over all units."""
        ...

    def contribute(self, codes: Codes) -> Contributions:
        """What every one of these rows contributes to the step now due."""
        ...

    def step(self, noisy: Ints) -> None:
        """Takes the noisy sum of a step and moves on."""
        ...


def train(
    trainer: Trainer,
    records: Records,
    laws: tuple[Law | None, Law],
    randomizer: Randomizer,
    *,
    delta: int,
    progress: Progress = silent,
    keeper: Keeper | None = None,
) -> Trained:
    """Runs the whole course, or what is left of it. The price must have been paid before the records were read."""
    first_law, law = laws
    course, sensitivity = trainer.course, Fraction(trainer.course.clip)
    saved = None if keeper is None else keeper.newest()
    values = np.zeros(0, dtype=np.int64) if saved is None else saved.first
    if first_law is not None:
        if saved is None:
            request = Request("train", trainer.name, trainer.first_cells, first_law, sensitivity, delta=delta)
            values = randomizer.add_noise(request, _sum_over_all(trainer, records))
        trainer.looked(values.copy(), first_law)
    if saved is not None:
        _resumable(trainer).restore(saved.state)
    else:
        _keep(keeper, trainer, 0, values)
    for number in range(1 if saved is None else saved.step + 1, course.steps + 1):
        request = Request(
            "train", trainer.name, trainer.cells, law, sensitivity, 1 / course.gap, layer=number, delta=delta
        )
        sampled = _gathered(records, randomizer.sample(request, records))
        exact = bounded_sum(trainer.contribute(sampled.codes), sampled.starts, course.clip, trainer.cells)
        trainer.step(randomizer.add_noise(request, exact))
        _keep(keeper, trainer, number, values)
        if number % max(1, course.steps // _REPORTS) == 0:
            progress.stage("measure", number / course.steps)
    return Trained(trainer.name, course, values, first_law, law)


def _keep(keeper: Keeper | None, trainer: Trainer, number: int, values: Ints) -> None:
    """Keeps a checkpoint where the plan wants one; of noisy sums and what was made of them alone."""
    if keeper is not None and is_due(number, trainer.course):
        keeper.keep(Checkpoint(number, values, _resumable(trainer).state()))


def _resumable(trainer: Trainer) -> Resumable:
    if not isinstance(trainer, Resumable):
        raise UsageError(f"train {trainer.name}", "this trainer cannot be put back where it was.")
    return trainer


def bounded_sum(given: Contributions, starts: Ints, clip: int, cells: int) -> Ints:
    """The sum of all units' vectors, without those that are longer than `clip` or not well formed.

    Rows starts[u] to starts[u + 1] are of unit u.

    Raises:
        UsageError: if the arrays do not have the announced shapes, which does not depend on what rows hold.
    """
    rows, width, own = int(starts[-1]), given.shared.shape[-1], given.own.shape[-1]
    shapes = [array.shape[:-1] for array in (given.blocks, given.shared, given.own)]
    kinds = {array.dtype for array in (given.blocks, given.shared, given.own)}
    if shapes != [(rows,)] * 3 or kinds != {np.dtype(np.int32)}:
        raise UsageError("training", "a trainer must give 32-bit integers, one line per row.")
    if width < 1 or cells < own or (cells - own) % width:
        raise UsageError("training", "the contributions do not have the announced number of coordinates.")
    total = np.zeros(cells, dtype=np.int64)
    scratch = np.zeros(cells, dtype=np.int64)
    touched = np.zeros((cells - own) // width, dtype=np.bool_)
    _add_units(given.blocks, given.shared, given.own, starts, clip, total, scratch, touched)
    return total


def _sum_over_all(trainer: Trainer, records: Records) -> Ints:
    total = np.zeros(trainer.first_cells, dtype=np.int64)
    for low in range(0, records.units, _CHUNK_UNITS):
        part = records.starts[low : low + _CHUNK_UNITS + 1]
        given = trainer.look(records.codes[part[0] : part[-1]])
        total += bounded_sum(given, part - part[0], trainer.course.clip, trainer.first_cells)
    return total


def _gathered(records: Records, units: Ints) -> Records:
    """The rows of these units."""
    held = records.starts[units + 1] - records.starts[units]
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(held)])
    if starts[-1] == units.size:
        return Records(records.codes[records.starts[units]], starts)
    rows = np.arange(starts[-1]) + np.repeat(records.starts[units] - starts[:-1], held)
    return Records(records.codes[rows], starts)


@compiled()  # pragma: no cover
def _add_units(blocks, shared, own, starts, clip, total, scratch, touched):  # type: ignore[no-untyped-def]
    """Adds up units into `total`; `scratch` and `touched` are clean before and after."""
    width, count, behind = shared.shape[1], blocks.shape[1], own.shape[1]
    tail = touched.size * width
    limit = np.int64(clip) * np.int64(clip)
    for unit in range(starts.size - 1):
        low, high = starts[unit], starts[unit + 1]
        fine = _well_formed(blocks, shared, own, low, high, clip, touched.size)
        if fine and high - low == 1:
            norm = np.int64(0)
            for at in range(width):  # cut above the bound, so that nothing overflows
                norm = min(norm + np.int64(shared[low, at]) * np.int64(shared[low, at]), limit + 1)
            norm *= count
            for at in range(behind):
                norm = min(norm + np.int64(own[low, at]) * np.int64(own[low, at]), 2 * (count + 1) * (limit + 1))
            if norm <= limit:
                for place in range(count):
                    begin = blocks[low, place] * width
                    for at in range(width):
                        total[begin + at] += shared[low, at]
                for at in range(behind):
                    total[tail + at] += own[low, at]
        elif fine:
            _add_rows(blocks, shared, own, low, high, scratch, touched)
            norm = np.int64(0)
            for block in range(touched.size):
                if touched[block]:
                    for at in range(block * width, (block + 1) * width):
                        beyond = min(abs(scratch[at]), clip + 1)  # cut above the bound, so that no square wraps
                        norm = min(norm + beyond * beyond, limit + 1)
            for at in range(tail, tail + behind):
                beyond = min(abs(scratch[at]), clip + 1)
                norm = min(norm + beyond * beyond, limit + 1)
            for block in range(touched.size):
                if touched[block]:
                    touched[block] = False
                    for at in range(block * width, (block + 1) * width):
                        if norm <= limit:
                            total[at] += scratch[at]
                        scratch[at] = 0
            for at in range(tail, tail + behind):
                if norm <= limit:
                    total[at] += scratch[at]
                scratch[at] = 0


@compiled()  # pragma: no cover
def _add_rows(blocks, shared, own, low, high, scratch, touched):  # type: ignore[no-untyped-def]
    """Adds the rows of one unit into the scratch space and marks the blocks they touch."""
    width = shared.shape[1]
    for row in range(low, high):
        for place in range(blocks.shape[1]):
            block = blocks[row, place]
            touched[block] = True
            for at in range(width):
                scratch[block * width + at] += shared[row, at]
        for at in range(own.shape[1]):
            scratch[touched.size * width + at] += own[row, at]


@compiled()  # pragma: no cover
def _well_formed(blocks, shared, own, low, high, clip, most):  # type: ignore[no-untyped-def]
    """Whether blocks exist and increase, and no number is beyond the bound: then no square overflows."""
    for row in range(low, high):
        before = -1
        for place in range(blocks.shape[1]):
            if blocks[row, place] <= before or blocks[row, place] >= most:
                return False
            before = blocks[row, place]
        for at in range(shared.shape[1]):
            if shared[row, at] > clip or shared[row, at] < -clip:
                return False
        for at in range(own.shape[1]):
            if own[row, at] > clip or own[row, at] < -clip:
                return False
    return True
