"""Recommendation: one method for each ε, in plain words, with the grounds on which it rests.

Grounds: the mean rank over the headline score of every metric that judges and has numbers at that ε; of equals, the
faster. Ranked are the methods that finished every repeat there (if none did, those that finished most) and have all of
these scores in each; who is left out is named with the reason. A lead or a lag counts as clear only where intervals do
not overlap. The best by mean rank is named even where the runs do not tell it from others: then these are named
beside it, and which of them is much faster.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from understudy.compare.study import Study
from understudy.compare.summary import Level, levels, ranks

__all__ = ["Recommendation", "headlines", "recommend"]

MUCH_FASTER = 5
"""A method that takes this many times less is called much faster."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to use at an ε and why; `candidate` is empty if no method could be ranked."""

    epsilon: float
    candidate: str
    grounds: str


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


def recommend(study: Study) -> tuple[Recommendation, ...]:
    """One recommendation for each ε of the study."""
    found = levels(study)
    return tuple(_at(study, found, epsilon) for epsilon in study.settings.epsilons)


def _at(study: Study, found: Sequence[Level], epsilon: float) -> Recommendation:
    seconds = {one.name: _seconds(study, one.name, epsilon) for one in study.settings.candidates}
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
    best, grounds = _first(field, here, took)
    if most == 1 and len(field.kept) > 1:
        grounds += " One repeat only: chance is not ruled out."
    return Recommendation(epsilon, best, " ".join((*words, grounds, *field.left_out)))


def _field(study: Study, here: Sequence[Level], finished: Mapping[str, int]) -> _Field:
    """Those with the most finished runs that have a number in each, for every headline that one of them has so."""
    most, every = max(finished.values()), headlines(study)
    pool = [one for one, count in finished.items() if count == most]
    numbers = {(level.name, level.candidate): level.repeats for level in here}
    lost = {(name, one): most - numbers.get((name, one), 0) for name in every for one in pool}
    names = tuple(name for name in every if not all(lost[name, one] for one in pool))
    kept = tuple(one for one in pool if names and not any(lost[name, one] for name in names))
    out = [f"{one} ({_runs(count, study)})" for one, count in finished.items() if count < most]
    for one in pool:
        lacks = [f"{name} missing in {lost[name, one]} of {most} runs" for name in names if lost[name, one]]
        out += [f"{one} ({', '.join(lacks)})"] if lacks else []
    uncounted = [name for name in every if name not in names]
    left_out = [f"Not counted, for want of numbers: {', '.join(uncounted)}."] if uncounted else []
    left_out += [f"Left out: {', '.join(out)}."] if out else []
    return _Field(kept, names, tuple(left_out))


def _runs(finished: int, study: Study) -> str:
    return f"{finished} of {study.settings.repeats} runs finished"


def _first(field: _Field, here: Sequence[Level], took: Mapping[str, float]) -> tuple[str, str]:
    """The best by mean rank, of equals the faster, and on what grounds."""
    rows = [level for level in here if level.candidate in field.kept]
    tables = {name: ranks(rows, name, rows[0].epsilon) for name in field.names}
    means = {one: math.fsum(table[one] for table in tables.values()) / len(tables) for one in field.kept}
    best, *others = sorted(field.kept, key=lambda one: (means[one], took[one]))
    spent = f"It took {_time(took[best])} on average"
    if not others:
        return best, f"Scored by {', '.join(field.names)}; there was nothing to compare it with. {spent}."
    wins = [name for name, table in tables.items() if table[best] == 1.0]
    metrics = "1 metric" if len(tables) == 1 else f"{len(tables)} metrics"
    words = [f"Mean rank {means[best]:.2f} over {metrics}; best by {', '.join(wins) or 'none of them alone'}."]
    equals = [one for one in others if means[one] == means[best]]
    if equals:
        words.append(f"Same mean rank as {', '.join(equals)}; of equals, the faster is named.")
    at = {(level.name, level.candidate): level for level in rows}
    leads = {one: _leads(at, field.names, best, one) for one in others}
    words += _against(leads)
    rivals = [one for one in others if leads[one][1] or not leads[one][0]]
    faster = [f"{one} ({_time(took[one])})" for one in rivals if MUCH_FASTER * took[one] <= took[best]]
    words.append(f"{spent}; much faster: {', '.join(faster)}." if faster else f"{spent}.")
    return best, " ".join(words)


_Leads = tuple[tuple[str, ...], tuple[str, ...]]
"""Scores by which a method is clearly ahead of another, and clearly behind it."""


def _leads(at: Mapping[tuple[str, str], Level], names: Sequence[str], best: str, other: str) -> _Leads:
    ahead = tuple(name for name in names if _apart(at[name, best], at[name, other]))
    behind = tuple(name for name in names if _apart(at[name, other], at[name, best]))
    return ahead, behind


def _against(leads: Mapping[str, _Leads]) -> list[str]:
    """How the best stands to every other method, those that it stands to in the same way taken together."""
    groups: dict[_Leads, list[str]] = {}
    for other, lead in leads.items():
        groups.setdefault(lead, []).append(other)
    words = []
    for (ahead, behind), others in groups.items():
        them, by, less = ", ".join(others), ", ".join(ahead), ", ".join(behind)
        if ahead and behind:
            words.append(f"Split with {them}: clearly ahead by {by}, clearly behind by {less}.")
        elif ahead:
            words.append(f"Clearly ahead of {them} by {by}.")
        elif behind:
            words.append(f"Clearly behind {them} by {less}, clearly ahead by none.")
        else:
            words.append(f"The runs do not tell it apart from {them}.")
    return words


def _apart(one: Level, other: Level) -> bool:
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
