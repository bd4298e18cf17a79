"""Summary: what the runs of a study say together, as tidy tables, means with intervals, ranks and their agreement."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from scipy import stats

from understudy.compare.settings import Cell
from understudy.compare.study import Study

__all__ = [
    "Agreement",
    "Gap",
    "Level",
    "agreements",
    "failures",
    "gaps",
    "judging",
    "levels",
    "ranks",
    "spelled",
    "tidy",
]

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Level:
    """The mean of one score of one method at one ε over its repeats, with its interval (none for a single repeat).

    The interval ends at the best value that the score can take: nothing lies beyond it.
    """

    metric: str
    score: str
    direction: str
    candidate: str
    epsilon: float
    repeats: int
    mean: float
    low: float | None
    high: float | None
    yardstick: float | None

    @property
    def name(self) -> str:
        """Metric and score in one word."""
        return f"{self.metric}: {self.score}"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Kendall's τ of the order in which two scores put the methods: 1 the same order, −1 the opposite one."""

    first: str
    second: str
    tau: float


@dataclass(frozen=True, slots=True)
class Gap:
    """A score without a number: of which methods, at which ε, in how many runs, and why."""

    name: str
    candidates: tuple[str, ...]
    epsilons: tuple[float, ...]
    runs: int
    why: str


def spelled(epsilon: float) -> str:
    """ε in few digits, but in as many as tell it from every other number.

    >>> spelled(1.0), spelled(1.0000001)
    ('1', '1.0000001')
    """
    short = f"{epsilon:g}"
    return short if float(short) == epsilon else repr(epsilon)


def tidy(study: Study) -> pa.Table:
    """One row for each score of each run (and one without a score for a run that has none)."""
    columns: dict[str, list[object]] = {name: [] for name in _TIDY.names}
    for run in study.runs:
        cell, outcome = run.cell, run.outcome
        facts = (cell.candidate.name, cell.candidate.method, cell.epsilon, _delta(study, run.cell), cell.repeat)
        ends = (outcome.status, outcome.reason, outcome.seconds, outcome.cpu_seconds, outcome.peak_bytes)
        rows: list[tuple[object, ...]] = [
            (one.metric, one.score, one.value, one.yardstick, one.direction, one.why_not) for one in outcome.scores
        ]
        for row in rows or [(None, None, None, None, None, "")]:
            for name, value in zip(_TIDY.names, (*facts, *ends, *row), strict=True):
                columns[name].append(value)
    return pa.table(columns, schema=_TIDY)


def failures(study: Study) -> tuple[str, ...]:
    """Runs that ended without scores and why, runs of one method with the same reason taken together."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for run in study.runs:
        if run.outcome.status != "done":
            key = (run.cell.candidate.name, run.outcome.status, run.outcome.reason)
            found.setdefault(key, []).append(run.cell.epsilon)
    return tuple(
        f"{name} at ε = {', '.join(map(spelled, dict.fromkeys(places)))} "
        f"({len(places)} {'run' if len(places) == 1 else 'runs'}, {status}): {reason}"
        for (name, status, reason), places in found.items()
    )


def gaps(study: Study) -> tuple[Gap, ...]:
    """Scores of finished runs that have no number, and why; methods with the same gaps are taken together."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for run in study.runs:
        for one in run.outcome.scores:
            if one.value is None:
                key = (f"{one.metric}: {one.score}", one.why_not, run.cell.candidate.name)
                found.setdefault(key, []).append(run.cell.epsilon)
    together: dict[tuple[str, str, tuple[float, ...]], list[str]] = {}
    for (name, why, candidate), places in found.items():
        together.setdefault((name, why, tuple(sorted(places))), []).append(candidate)
    return tuple(
        Gap(name, tuple(candidates), tuple(dict.fromkeys(places)), len(candidates) * len(places), why)
        for (name, why, places), candidates in together.items()
    )


def levels(study: Study) -> tuple[Level, ...]:
    """Every score of every method at every ε, over the repeats that gave a number."""
    found: dict[tuple[str, str, str, str, float], list[float]] = {}
    lines: dict[tuple[str, str, str, str, float], list[float]] = {}
    best: dict[tuple[str, str, str, str, float], float | None] = {}
    for run in study.runs:
        for one in run.outcome.scores:
            if one.value is None:
                continue
            key = (one.metric, one.score, one.direction, run.cell.candidate.name, run.cell.epsilon)
            found.setdefault(key, []).append(one.value)
            best[key] = one.best
            if one.yardstick is not None:
                lines.setdefault(key, []).append(one.yardstick)
    return tuple(_level(key, values, lines.get(key, []), best[key]) for key, values in found.items())


def judging(found: Sequence[Level]) -> tuple[str, ...]:
    """The names of scores that say which is better, in the order they were met."""
    return tuple(dict.fromkeys(level.name for level in found if level.direction != "none"))


def ranks(found: Sequence[Level], name: str, epsilon: float) -> dict[str, float]:
    """Rank of every method by that score at that ε: 1 is best, ties share their mean rank."""
    rows = [level for level in found if level.name == name and level.epsilon == epsilon]
    signed = [level.mean if level.direction == "lower" else -level.mean for level in rows]
    order = stats.rankdata(signed, method="average") if signed else []
    return {level.candidate: float(rank) for level, rank in zip(rows, order, strict=True)}


def agreements(found: Sequence[Level], epsilon: float) -> tuple[Agreement, ...]:
    """How far each pair of scores agrees on the order of methods at that ε, the worst agreement first."""
    orders = {name: ranks(found, name, epsilon) for name in judging(found)}
    pairs = []
    for first, second in itertools.combinations(orders, 2):
        shared = [one for one in orders[first] if one in orders[second]]
        if len(shared) < 2:
            continue
        tau = stats.kendalltau([orders[first][one] for one in shared], [orders[second][one] for one in shared])
        if not math.isnan(tau.statistic):
            pairs.append(Agreement(first, second, float(tau.statistic)))
    return tuple(sorted(pairs, key=lambda pair: pair.tau))


_TIDY = pa.schema(
    [
        ("candidate", pa.string()),
        ("method", pa.string()),
        ("epsilon", pa.float64()),
        ("delta", pa.float64()),
        ("repeat", pa.int64()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("seconds", pa.float64()),
        ("cpu_seconds", pa.float64()),
        ("peak_bytes", pa.int64()),
        ("metric", pa.string()),
        ("score", pa.string()),
        ("value", pa.float64()),
        ("yardstick", pa.float64()),
        ("direction", pa.string()),
        ("why_not", pa.string()),
    ]
)


def _delta(study: Study, cell: Cell) -> float:
    return study.settings.budget(cell.candidate, cell.epsilon).delta


def _level(key: tuple[str, str, str, str, float], values: list[float], lines: list[float], best: float | None) -> Level:
    count = len(values)
    mean = math.fsum(values) / count
    low = high = None
    if count > 1:
        spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1) / count)
        half = float(stats.t.ppf(0.5 + CONFIDENCE / 2, count - 1)) * spread
        low, high = mean - half, mean + half
        if best is not None and key[2] == "lower":
            low = min(max(low, best), mean)
        if best is not None and key[2] == "higher":
            high = max(min(high, best), mean)
    line = math.fsum(lines) / len(lines) if lines else None
    return Level(*key, count, mean, low, high, line)
