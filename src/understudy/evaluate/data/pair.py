"""Pair: the real table and its stand-in (one or several copies) under one codec, with what metrics need to be fair.

Every random choice of an evaluation follows from the seed, the metric's name and the step, so that a metric gives
the same numbers whichever other metrics run beside it.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from understudy.codec.table_codec import TableCodec
from understudy.evaluate.data.rows import Rows
from understudy.evaluate.score import Outcome, Unavailable
from understudy.progress import Progress, silent
from understudy.schema import Schema

__all__ = ["FEWEST_HALF_ROWS", "Context", "Pair"]

FEWEST_HALF_ROWS = 2


@dataclass(frozen=True, eq=False)
class Pair:
    """The real rows and the rows of every copy. `promise` and `copies_mode` come from a release, if there is one."""

    codec: TableCodec
    real: Rows
    copies: tuple[Rows, ...]
    seed: int = 0
    promise: str = ""
    copies_mode: str = ""

    @property
    def schema(self) -> Schema:
        """What both tables may contain."""
        return self.codec.schema

    @cached_property
    def halves(self) -> tuple[Rows, Rows] | Unavailable:
        """Two random halves of the real table: the yardstick of every metric."""
        if self.real.count < 2 * FEWEST_HALF_ROWS:
            return Unavailable(f"the real table has fewer than {2 * FEWEST_HALF_ROWS} rows, too few to halve")
        order = np.random.default_rng([self.seed, zlib.crc32(b"halves")]).permutation(self.real.count)
        middle = self.real.count // 2
        return self.real.take(np.sort(order[:middle])), self.real.take(np.sort(order[middle:]))

    def between_halves(self, measured: Callable[[Rows, Rows], Sequence[Outcome]], scores: int) -> Sequence[Outcome]:
        """What is measured between the halves, one outcome for each score: the yardsticks, or why there are none."""
        return [self.halves] * scores if isinstance(self.halves, Unavailable) else measured(*self.halves)


@dataclass(frozen=True)
class Context:
    """Where a metric gets its randomness and tells how far it is."""

    metric: str
    seed: int
    start: float = 0.0
    stop: float = 1.0
    progress: Progress = field(default=silent)

    def rng(self, *step: int | str) -> np.random.Generator:
        """A generator for one step of the metric."""
        words = [word if isinstance(word, int) else zlib.crc32(word.encode()) for word in step]
        return np.random.default_rng([self.seed, zlib.crc32(self.metric.encode()), *words])

    def done(self, share: float) -> None:
        """Reports that this share of the metric's work is done."""
        self.progress.stage("measure", self.start + (self.stop - self.start) * min(max(share, 0.0), 1.0))
