"""Metric: two tables in, scores out, each with direction, range and yardstick, or the reason why there is no number.

A metric is a frozen dataclass whose fields are its options; it sees the real table and its stand-in (one or several
copies) as a `TablePair`, under one codec. Every random choice of an evaluation follows from the seed, the metric's name
and the step, so that a metric gives the same numbers whichever other metrics run beside it.
"""

import abc
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from understudy.codec.table import TableCodec
from understudy.errors import UsageError, nearest
from understudy.evaluate.data import Rows
from understudy.options import WithOptions
from understudy.progress import Progress, silent
from understudy.schema import Schema

Direction = Literal["lower", "higher", "none"]
"""Which way is better; "none" for numbers that describe and do not judge."""

SLACK = 1e-9
NEAR = 1.1
"""A distance of up to this many yardsticks is about as good as the yardstick."""
BLIND = 0.9
"""A yardstick this far from the best value towards the worst leaves no room to tell good from bad."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A number that cannot be computed, and why."""

    reason: str


Outcome = float | Unavailable


@dataclass(frozen=True, slots=True)
class Score:
    """One number: what it means, which way is better, its range, and the same number for two halves of the real table.

    Either `value` is there or `why_not` says why it is not; the same holds for `yardstick` and `why_no_yardstick`.
    """

    name: str
    meaning: str
    direction: Direction
    lowest: float | None
    highest: float | None
    best: float | None
    value: float | None
    why_not: str
    yardstick: float | None
    why_no_yardstick: str

    def __post_init__(self) -> None:
        pairs = ((self.value, self.why_not), (self.yardstick, self.why_no_yardstick))
        for number, reason in pairs:
            if (number is None) == (not reason):
                raise ValueError(f"{self.name}: a number or a reason, not both and not neither")
            if number is not None and not self._holds(number):
                raise ValueError(f"{self.name}: {number!r} is outside its range")

    @property
    def blind(self) -> bool:
        """Whether two halves of the real table themselves score next to the worst value: then nothing can be told."""
        worst = self._worst
        if self.direction == "none" or self.yardstick is None or self.best is None or worst is None:
            return False
        return (self.yardstick - self.best) / (worst - self.best) >= BLIND

    @property
    def _worst(self) -> float | None:
        """The far end of a distance; 0 for agreements, where nothing in common is the worst that is not contrary."""
        return self.highest if self.direction == "lower" else 0.0

    @property
    def reading(self) -> str:
        """The score in words, against its yardstick.

        >>> Scale("x", "x").score(0.3, 0.1).reading, Scale("x", "x").score(0.05, 0.1).reading
        ('3 × the yardstick', 'as close as two real halves')
        >>> Scale("x", "x").score(1.0, 0.98).reading
        'cannot tell: two halves of the real table score 0.98 themselves, and 1 is the worst'
        """
        if self.value is None:
            return f"not computed: {self.why_not}"
        if self.direction == "none":
            return "descriptive only"
        if self.yardstick is None:
            return f"no yardstick: {self.why_no_yardstick}"
        if self.blind:
            halves = f"two halves of the real table score {self.yardstick:,.3g} themselves"
            return f"cannot tell: {halves}, and {self._worst:,g} is the worst"
        better = self.value <= self.yardstick if self.direction == "lower" else self.value >= self.yardstick
        if better or math.isclose(self.value, self.yardstick):
            return "as close as two real halves"
        if self.direction == "lower" and self.yardstick > 0:
            times = self.value / self.yardstick
            return "about as close as two real halves" if times <= NEAR else f"{times:.3g} × the yardstick"
        return f"{abs(self.value - self.yardstick):.3g} below the yardstick"

    def _holds(self, number: float) -> bool:
        above = self.lowest is None or number >= self.lowest - SLACK * max(1.0, abs(self.lowest))
        below = self.highest is None or number <= self.highest + SLACK * max(1.0, abs(self.highest))
        return math.isfinite(number) and above and below


@dataclass(frozen=True, slots=True)
class Scale:
    """What a score measures, before it is measured."""

    name: str
    meaning: str
    direction: Direction = "lower"
    lowest: float | None = 0.0
    highest: float | None = 1.0
    best: float | None = 0.0

    def score(self, value: Outcome, yardstick: Outcome) -> Score:
        """The score with this value and this yardstick; a number that is not finite becomes a reason."""
        number, why_not = _number_or_reason(value)
        line, why_no_line = _number_or_reason(yardstick)
        facts = (self.name, self.meaning, self.direction, self.lowest, self.highest, self.best)
        return Score(*facts, number, why_not, line, why_no_line)

    def missing(self, reason: str) -> Score:
        """The score that cannot be computed, for this reason."""
        return self.score(Unavailable(reason), Unavailable(reason))


def _number_or_reason(outcome: Outcome) -> tuple[float | None, str]:
    if isinstance(outcome, Unavailable):
        return None, outcome.reason
    number = float(outcome)
    if not math.isfinite(number):
        return None, "the computation left the range of machine numbers"
    return number + 0.0, ""


def mean_outcome(outcomes: Sequence[Outcome]) -> Outcome:
    """The plain mean; the first reason if one of them cannot be computed."""
    numbers: list[float] = []
    for outcome in outcomes:
        if isinstance(outcome, Unavailable):
            return outcome
        numbers.append(outcome)
    return math.fsum(numbers) / len(numbers) if numbers else Unavailable("there is nothing to average")


@dataclass(frozen=True, slots=True)
class Detail:
    """Numbers behind a score, worst first, as a table. `caption` says what a row is and what comes first."""

    name: str
    caption: str
    table: pa.Table

    def records(self, limit: int | None = None) -> list[dict[str, object]]:
        """The first rows as plain values."""
        rows: list[dict[str, object]] = (self.table if limit is None else self.table.slice(0, limit)).to_pylist()
        return rows


def table_of(columns: Mapping[str, Sequence[object] | pa.Array], kinds: Mapping[str, pa.DataType]) -> pa.Table:
    """A table with these columns in the order of `kinds`."""
    return pa.table([pa.array(columns[name], kind) for name, kind in kinds.items()], names=list(kinds))


@dataclass(frozen=True, slots=True)
class Result:
    """What one metric found: the question it answers, its scores (the headline first), details, and remarks."""

    metric: str
    question: str
    scores: tuple[Score, ...]
    details: tuple[Detail, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> Score:
        """The first score."""
        return self.scores[0]

    @property
    def value(self) -> float | None:
        """The headline's value."""
        return self.headline.value

    @property
    def yardstick(self) -> float | None:
        """The headline's yardstick."""
        return self.headline.yardstick

    @property
    def why_not(self) -> str:
        """Why the headline has no value, if it has none."""
        return self.headline.why_not

    def score(self, name: str) -> Score:
        """The score of that name."""
        return next(score for score in self.scores if score.name == name)

    def detail(self, name: str) -> Detail:
        """The detail of that name."""
        return next(detail for detail in self.details if detail.name == name)


FEWEST_HALF_ROWS = 2


@dataclass(frozen=True, eq=False)
class TablePair:
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


@dataclass(frozen=True, slots=True)
class Metric(WithOptions, abc.ABC):
    """A comparison of the real table with its stand-in: a frozen dataclass whose fields are its options."""

    name: ClassVar[str]
    question: ClassVar[str]
    scales: ClassVar[tuple[Scale, ...]]
    """Every score the metric can report, the headline first."""

    @abc.abstractmethod
    def compare(self, pair: TablePair, context: Context) -> Result:
        """The scores, in the order of `scales`; a score that cannot be computed says why. No table is empty."""

    def _where(self, option: str) -> str:
        return f"{self.name}: {option}"

    def check(self, schema: Schema) -> None:
        """Raises where the options do not fit the schema."""

    def lacks(self, schema: Schema) -> str:
        """What the table or the call lacks for it, "" for nothing; what lacks something runs only if asked by name."""
        return ""


def refused(metric: Metric, reason: str) -> Result:
    """The result of a metric that cannot be computed at all."""
    return Result(metric.name, metric.question, tuple(scale.missing(reason) for scale in metric.scales))


def check_columns(metric: str, columns: Sequence[str], schema: Schema) -> None:
    """Raises for the first column that is not modelled."""
    known = [column.name for column in schema.modelled]
    for name in columns:
        if name not in known:
            raise UsageError(f"{metric}: column {name!r}", "is not a modelled column.", nearest(name, known))
