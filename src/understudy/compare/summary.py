"""What the runs of a study say together: tidy tables, means with intervals, ranks, and a recommendation for each ε.

Judged are the methods that finished every repeat at an ε (if none did, those that finished most) and have the first
score of every metric in each; who is left out is named with the reason. A method is clearly ahead of another by a score
where the 95 % intervals of their means do not overlap, and better than it if it is ahead by some score and behind by
none. Recommended is the method that is better than every other; if there is none, nobody is: then those that no other
is better than are said to tie, with what tells them apart, if anything. One repeat gives no interval, so no winner.
Intervals are of each score by itself: of many comparisons a few may be apart by chance alone.
"""

import itertools
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import pyarrow as pa
from scipy import stats

from understudy.compare.study import Cell, Study
from understudy.evaluate.page import spoken

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class MeanScore:
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
        """Metric and score in one word, by which scores are told apart."""
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


def said(name: str) -> str:
    """A score as people say it.

    >>> said("marginals: two_way_mean")
    'pairs of columns, mean distance'
    """
    metric, _, score = name.partition(": ")
    return spoken(metric, score)


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


def levels(study: Study) -> tuple[MeanScore, ...]:
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


def resources(study: Study) -> tuple[MeanScore, ...]:
    """Seconds, CPU seconds and memory of every method at every ε, over its finished runs, with their intervals."""
    found: dict[tuple[str, str, str, str, float], list[float]] = {}
    for run in study.runs:
        if run.outcome.status == "done":
            took = run.outcome.seconds, run.outcome.cpu_seconds, run.outcome.peak_bytes / 2**20
            for name, value in zip(RESOURCES, took, strict=True):
                key = ("resources", name, "lower", run.cell.candidate.name, run.cell.epsilon)
                found.setdefault(key, []).append(value)
    return tuple(_level(key, values, [], 0.0) for key, values in found.items())


def summary_tables(study: Study) -> dict[str, pa.Table]:
    """What stands behind the pictures of the page, by the names of their files."""
    means, found = [*levels(study), *resources(study)], levels(study)
    columns = {
        "score": [level.name for level in means],
        "method": [level.candidate for level in means],
        "epsilon": [level.epsilon for level in means],
        "repeats": [level.repeats for level in means],
        "mean": [level.mean for level in means],
        "low": [level.low for level in means],
        "high": [level.high for level in means],
        "two_real_halves": [level.yardstick for level in means],
        "better": [level.direction for level in means],
    }
    ranked = [
        {"score": name, "epsilon": epsilon, "method": one, "best_place": best, "worst_place": worst}
        for epsilon in study.settings.epsilons
        for name in judging(found)
        for one, (best, worst) in places(found, name, epsilon).items()
    ]
    return {"means.csv": pa.table(columns, schema=_MEANS), "ranks.csv": pa.Table.from_pylist(ranked, schema=_RANKS)}


TABLES = ("means.csv", "ranks.csv")
RESOURCES = ("seconds", "CPU seconds", "memory, MiB")


def judging(found: Sequence[MeanScore]) -> tuple[str, ...]:
    """The names of scores that say which is better, in the order they were met."""
    return tuple(dict.fromkeys(level.name for level in found if level.direction != "none"))


def ranks(found: Sequence[MeanScore], name: str, epsilon: float) -> dict[str, float]:
    """Rank of every method by that score at that ε: 1 is best, ties share their mean rank."""
    rows = [level for level in found if level.name == name and level.epsilon == epsilon]
    signed = [level.mean if level.direction == "lower" else -level.mean for level in rows]
    order = stats.rankdata(signed, method="average") if signed else []
    return {level.candidate: float(rank) for level, rank in zip(rows, order, strict=True)}


def places(found: Sequence[MeanScore], name: str, epsilon: float) -> dict[str, tuple[int, int]]:
    """The best and the worst place of every method by that score at that ε that its interval leaves open.

    A place is lost to each method that is clearly ahead, and won from each that is clearly behind.
    """
    rows = [level for level in found if level.name == name and level.epsilon == epsilon]
    return {
        one.candidate: (
            1 + sum(_apart(other, one) for other in rows),
            len(rows) - sum(_apart(one, other) for other in rows),
        )
        for one in rows
    }


def agreements(found: Sequence[MeanScore], epsilon: float) -> tuple[Agreement, ...]:
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


_MEANS = pa.schema(
    [
        ("score", pa.string()),
        ("method", pa.string()),
        ("epsilon", pa.float64()),
        ("repeats", pa.int64()),
        ("mean", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("two_real_halves", pa.float64()),
        ("better", pa.string()),
    ]
)
_RANKS = pa.schema(
    [
        ("score", pa.string()),
        ("epsilon", pa.float64()),
        ("method", pa.string()),
        ("best_place", pa.int64()),
        ("worst_place", pa.int64()),
    ]
)


def _delta(study: Study, cell: Cell) -> float:
    return study.settings.budget(cell.candidate, cell.epsilon).delta


def _level(
    key: tuple[str, str, str, str, float], values: list[float], lines: list[float], best: float | None
) -> MeanScore:
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
    return MeanScore(*key, count, mean, low, high, line)


MUCH_FASTER = 5
"""A method that takes this many times less is called much faster."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to use at an ε and why.

    `candidate` is empty if no method is better than every other; then `tied` names those that none is better than,
    the lowest mean rank first. Both are empty if no method could be judged.
    """

    epsilon: float
    candidate: str
    grounds: str
    tied: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """In a few words.

        >>> Recommendation(1.0, "", "", ("aim", "mst")).answer
        'no winner: aim and mst tie'
        """
        if self.candidate:
            return self.candidate
        return f"no winner: {_and(self.tied)} tie" if self.tied else "none"


@dataclass(frozen=True, slots=True)
class _Field:
    """Who can be ranked at an ε and by which scores; what was left out, in words."""

    kept: tuple[str, ...]
    names: tuple[str, ...]
    left_out: tuple[str, ...]


def headlines(study: Study) -> tuple[str, ...]:
    """The first score of every metric that judges and has a value, by which methods are ranked together."""
    scores = [one for run in study.runs for one in run.outcome.scores if one.direction != "none"]
    known = {(one.metric, one.score) for one in scores if one.value is not None}
    names: dict[str, str] = {}
    for one in scores:
        if (one.metric, one.score) in known:
            names.setdefault(one.metric, f"{one.metric}: {one.score}")
    return tuple(names.values())


def judged_by(study: Study) -> str:
    """By which scores methods are judged, as a sentence."""
    return f"Judged by the first score of each metric: {_listed(headlines(study)) or 'none'}."


def recommend(study: Study) -> tuple[Recommendation, ...]:
    """One recommendation for each ε of the study."""
    found = levels(study)
    return tuple(_at(study, found, epsilon) for epsilon in study.settings.epsilons)


def is_running(study: Study, epsilon: float) -> bool:
    """Whether runs at that ε have not ended yet."""
    ended = sum(run.cell.epsilon == epsilon for run in study.runs)
    return ended < len(study.settings.candidates) * study.settings.repeats


def _at(study: Study, found: Sequence[MeanScore], epsilon: float) -> Recommendation:
    seconds = {one.name: _seconds(study, one.name, epsilon) for one in study.settings.candidates}
    if is_running(study, epsilon):
        return Recommendation(epsilon, "", "No method is named before all runs at this ε have ended.")
    most = max(len(spent) for spent in seconds.values())
    if not most:
        return Recommendation(epsilon, "", "No method finished at this ε.")
    here = [level for level in found if level.epsilon == epsilon]
    field = _field(study, here, {one: len(spent) for one, spent in seconds.items()})
    words = [] if most == study.settings.repeats else [f"No method finished more: {_runs(most, study)}."]
    if not field.kept:
        lack = "no method has every score" if field.names else "no score that judges has a number"
        words += [f"Methods finished at this ε, but {lack} in every run.", *field.left_out]
        return Recommendation(epsilon, "", " ".join(words))
    took = {one: math.fsum(seconds[one]) / most for one in field.kept}
    tied, grounds = _judged(field, here, took)
    if most == 1 and len(field.kept) > 1:
        grounds = f"One repeat only: chance is not ruled out, so no method is named. {grounds}"
    said = " ".join((*words, grounds, *field.left_out))
    return Recommendation(epsilon, tied[0], said) if len(tied) == 1 else Recommendation(epsilon, "", said, tied)


def _field(study: Study, here: Sequence[MeanScore], finished: Mapping[str, int]) -> _Field:
    """Those with the most finished runs that have a number in each, for every headline that one of them has so."""
    most, every = max(finished.values()), headlines(study)
    pool = [one for one, count in finished.items() if count == most]
    numbers = {(level.name, level.candidate): level.repeats for level in here}
    lost = {(name, one): most - numbers.get((name, one), 0) for name in every for one in pool}
    names = tuple(name for name in every if not all(lost[name, one] for one in pool))
    kept = tuple(one for one in pool if names and not any(lost[name, one] for name in names))
    out = [f"{one} ({_runs(count, study)})" for one, count in finished.items() if count < most]
    for one in pool:
        lacks = [f"{said(name)}: missing in {lost[name, one]} of {most} runs" for name in names if lost[name, one]]
        out += [f"{one} ({', '.join(lacks)})"] if lacks else []
    uncounted = [name for name in every if name not in names]
    left_out = [f"Not counted, because numbers are missing: {_listed(uncounted)}."] if uncounted else []
    left_out += [f"Left out: {', '.join(out)}."] if out else []
    return _Field(kept, names, tuple(left_out))


def _runs(finished: int, study: Study) -> str:
    return f"{finished} of {study.settings.repeats} runs finished"


def _judged(field: _Field, here: Sequence[MeanScore], took: Mapping[str, float]) -> tuple[tuple[str, ...], str]:
    """The one method that is better than every other, or those that tie; and on what grounds."""
    rows = [level for level in here if level.candidate in field.kept]
    tables = [ranks(rows, name, rows[0].epsilon) for name in field.names]
    means = {one: math.fsum(table[one] for table in tables) / len(tables) for one in field.kept}
    order = sorted(field.kept, key=lambda one: (means[one], took[one]))
    if len(order) == 1:
        return tuple(order), f"There was nothing to compare it with. It took {_time(took[order[0]])}."
    at = {(level.name, level.candidate): level for level in rows}
    leads = {pair: _leads(at, field.names, *pair) for pair in itertools.permutations(order, 2)}
    worse = {(one, other) for (one, other), (ahead, behind) in leads.items() if behind and not ahead}
    tied = _not_beaten(order, worse)
    return tied, " ".join((*_against(leads, tied, order), *_speed(tied, took)))


def _not_beaten(order: Sequence[str], worse: Set[tuple[str, str]]) -> tuple[str, ...]:
    """The method than which every other is worse; if there is none, those than which no other is better.

    One that nobody is better than may still not be told from others, which then tie with it.
    """
    free = [one for one in order if not any((one, other) in worse for other in order)] or list(order)
    first = free[0]
    rest = [one for one in order if one != first and (one, first) not in worse]
    return (first, *(one for one in rest if one in free or len(free) == 1))


def _speed(tied: Sequence[str], took: Mapping[str, float]) -> list[str]:
    """What the best took, and which of those that tie is much faster than the first."""
    if len(tied) == 1:
        return [f"It took {_time(took[tied[0]])} on average."]
    fastest = min(tied, key=took.__getitem__)
    slowest = max(took[one] for one in tied)
    much = " by far" if MUCH_FASTER * took[fastest] <= slowest else ""
    return [f"The fastest of those that tie{much}: {fastest} ({_time(took[fastest])}; others up to {_time(slowest)})."]


_Leads = tuple[tuple[str, ...], tuple[str, ...]]
"""Scores by which a method is clearly ahead of another, and clearly behind it."""


def _leads(at: Mapping[tuple[str, str], MeanScore], names: Sequence[str], best: str, other: str) -> _Leads:
    ahead = tuple(name for name in names if _apart(at[name, best], at[name, other]))
    behind = tuple(name for name in names if _apart(at[name, other], at[name, best]))
    return ahead, behind


def _against(leads: Mapping[tuple[str, str], _Leads], tied: Sequence[str], order: Sequence[str]) -> list[str]:
    """What tells those that tie apart, and who of them is better than each of the others."""
    words = []
    for first, second in itertools.combinations(tied, 2):
        ahead, behind = leads[first, second]
        if ahead and behind:
            words.append(f"{first} and {second} are each ahead by some score: {first} by {_listed(ahead)}, {second} "
                         f"by {_listed(behind)}.")  # fmt: skip
    alike = [pair for pair in itertools.combinations(tied, 2) if not any(leads[pair])]
    if alike and len(alike) == len(tied) * (len(tied) - 1) // 2:
        words.append(f"The runs do not tell {_and(tied)} apart.")
    elif alike:
        words.append(f"The runs do not tell apart: {'; '.join(_and(pair) for pair in alike)}.")
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for other in order:
        if other not in tied:
            better = next(one for one in (*tied, *order) if one != other and _is_better(leads, one, other))
            groups.setdefault((better, leads[better, other][0]), []).append(other)
    words += [f"{one} is clearly ahead of {_and(others)} by {_listed(by)}." for (one, by), others in groups.items()]
    return words


def _is_better(leads: Mapping[tuple[str, str], _Leads], one: str, other: str) -> bool:
    ahead, behind = leads[one, other]
    return bool(ahead) and not behind


def _listed(names: Sequence[str]) -> str:
    """Scores as people say them, in quotes: their names hold commas."""
    return _and([f"“{said(name)}”" for name in names]) if names else ""


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _apart(one: MeanScore, other: MeanScore) -> bool:
    """Whether the first is better and the intervals do not overlap."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.high < other.low if one.direction == "lower" else one.low > other.high


def _seconds(study: Study, candidate: str, epsilon: float) -> list[float]:
    """What each finished run of a method took."""
    return [
        run.outcome.seconds
        for run in study.runs
        if run.outcome.status == "done" and (run.cell.candidate.name, run.cell.epsilon) == (candidate, epsilon)
    ]


def _time(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 1000 else f"{seconds:.3g} s"
