"""Verdicts on printed statements: decided by intervals, setting by setting, and never by single numbers."""

import math
import statistics
from collections.abc import Sequence
from typing import Literal

from scipy import stats

from studies.writing import Estimate, estimate

__all__ = ["Answer", "above", "alike", "count_of", "difference", "verdict"]

Answer = Literal["yes", "no", "open"]
CHANCE = 0.025


def difference(first: Sequence[float], second: Sequence[float], *, paired: bool = False) -> Estimate:
    """Mean of the first less mean of the second with its 95 % interval.

    Independent repeats by Welch's rule; `paired` where repeats of both share what varies (the same random trees), by
    the differences repeat by repeat.
    """
    if paired:
        return estimate([one - other for one, other in zip(first, second, strict=True)])
    gap = statistics.fmean(first) - statistics.fmean(second)
    if min(len(first), len(second)) < 2:
        return Estimate(gap, math.inf, min(len(first), len(second)))
    parts = [statistics.variance(values) / len(values) for values in (first, second)]
    if sum(parts) == 0:
        return Estimate(gap, 0.0, min(len(first), len(second)))
    shares = [part**2 / (len(values) - 1) for part, values in zip(parts, (first, second), strict=True)]
    freedom = sum(parts) ** 2 / sum(shares)
    return Estimate(gap, float(stats.t.ppf(0.975, freedom)) * math.sqrt(sum(parts)), min(len(first), len(second)))


def above(first: Sequence[float], second: Sequence[float], *, paired: bool = False) -> Answer:
    """Whether the first is clearly larger than the second, clearly smaller, or neither."""
    gap = difference(first, second, paired=paired)
    return "yes" if gap.low > 0 else "no" if gap.high < 0 else "open"


def alike(first: Sequence[float], second: Sequence[float], margin: float, *, paired: bool = False) -> Answer:
    """Whether the two are within the margin for sure, apart by more for sure, or neither."""
    gap = difference(first, second, paired=paired)
    if -margin < gap.low and gap.high < margin:
        return "yes"
    return "no" if gap.low > margin or gap.high < -margin else "open"


def verdict(answers: Sequence[Answer], *, most: bool = False) -> str:
    """What the settings say together; `most` for statements that claim to hold in most cases only.

    An interval contradicts a true statement by chance in 2.5 % of all cases. A statement about all settings is refuted
    by more contradictions than chance gives in 5 % of all studies, and confirmed if every setting clearly agrees.
    """
    yes, no = answers.count("yes"), answers.count("no")
    if most:
        return "confirmed" if yes > len(answers) / 2 else "refuted" if no >= len(answers) / 2 else "not decided"
    if no and float(stats.binom.sf(no - 1, len(answers), CHANCE)) < 0.05:
        return "refuted"
    return "confirmed" if yes == len(answers) else "confirmed in part" if yes > len(answers) / 2 else "not decided"


def count_of(answers: Sequence[Answer]) -> str:
    """The answers in words."""
    return f"clearly so in {answers.count('yes')} of {len(answers)} comparisons, clearly not in {answers.count('no')}"
