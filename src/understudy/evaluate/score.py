"""Scores: one number each, with its direction, its range, its yardstick, or the reason why there is no number."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

__all__ = ["Detail", "Direction", "Outcome", "Result", "Scale", "Score", "Unavailable", "mean_outcome", "table_of"]

Direction = Literal["lower", "higher", "none"]
"""Which way is better; "none" for numbers that describe and do not judge."""

SLACK = 1e-9


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
        number, why_not = _settled(value)
        line, why_no_line = _settled(yardstick)
        facts = (self.name, self.meaning, self.direction, self.lowest, self.highest, self.best)
        return Score(*facts, number, why_not, line, why_no_line)

    def missing(self, reason: str) -> Score:
        """The score that cannot be computed, for this reason."""
        return self.score(Unavailable(reason), Unavailable(reason))


def _settled(outcome: Outcome) -> tuple[float | None, str]:
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
