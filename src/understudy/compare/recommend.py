"""Recommendation: one method for each ε, in plain words, with the grounds on which it rests.

Grounds: the mean rank over the headline score of every metric that judges. A method that failed at an ε is out there.
A lead counts only where intervals of the decisive scores do not overlap; otherwise the recommendation says that the
runs do not tell the two apart, and prefers the faster one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from understudy.compare.study import Study
from understudy.compare.summary import Level, levels, ranks

__all__ = ["Recommendation", "headlines", "recommend"]


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to use at an ε and why; `candidate` is empty if no method finished."""

    epsilon: float
    candidate: str
    grounds: str


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
    names = headlines(study)
    means = _mean_ranks(study, found, names, epsilon)
    if not means:
        return Recommendation(epsilon, "", "No method finished at this ε with a score.")
    order = sorted(means, key=lambda one: (means[one], _seconds(study, one, epsilon)))
    best = order[0]
    wins = [name for name in names if ranks(found, name, epsilon).get(best) == 1.0]
    metrics = "1 metric" if len(names) == 1 else f"{len(names)} metrics"
    text = f"Mean rank {means[best]:.2f} over {metrics}; best by {', '.join(wins) or 'none of them alone'}."
    if len(order) > 1:
        text += " " + _against(found, names, best, order[1], epsilon)
    text += f" It took {_seconds(study, best, epsilon):.3g} s on average."
    if study.settings.repeats == 1:
        text += " One repeat only: chance is not ruled out."
    return Recommendation(epsilon, best, text)


def _mean_ranks(study: Study, found: Sequence[Level], names: Sequence[str], epsilon: float) -> Mapping[str, float]:
    tables = [ranks(found, name, epsilon) for name in names]
    kept = [one.name for one in study.settings.candidates if tables and all(one.name in table for table in tables)]
    return {one: math.fsum(table[one] for table in tables) / len(tables) for one in kept}


def _against(found: Sequence[Level], names: Sequence[str], best: str, other: str, epsilon: float) -> str:
    at = {(level.name, level.candidate): level for level in found if level.epsilon == epsilon}
    clear = [name for name in names if _apart(at[name, best], at[name, other])]
    if clear:
        return f"Clearly ahead of {other} by {', '.join(clear)}."
    return f"The runs do not tell it apart from {other}."


def _apart(one: Level, other: Level) -> bool:
    """Whether the first is better and the intervals do not overlap."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.high < other.low if one.direction == "lower" else one.low > other.high


def _seconds(study: Study, candidate: str, epsilon: float) -> float:
    spent = [
        run.outcome.seconds
        for run in study.runs
        if run.outcome.status == "done" and (run.cell.candidate.name, run.cell.epsilon) == (candidate, epsilon)
    ]
    return math.fsum(spent) / len(spent) if spent else math.inf
