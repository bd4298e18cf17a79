"""Verdicts on printed statements: decided by intervals, setting by setting, and never by single numbers."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scipy import stats

from studies.writing import Estimate, estimate

__all__ = ["AT_MARGIN", "RULE", "Answer", "Comparison", "above", "against", "alike", "count_of", "difference",
           "kind_of", "range_of", "verdict"]  # fmt: skip

Answer = Literal["yes", "no", "same", "open"]
PROBABILITY = 0.025
KINDS = ("confirmed in part", "confirmed", "refuted", "mixed", "no difference", "a tie", "not decided",
         "cannot be checked", "cannot be compared", "a design choice")  # fmt: skip
AT_MARGIN = "not decided: about as far apart as the margin"
RULE = (
    "A comparison is decided by the 95 % interval of a difference, repeat by repeat: repeats share what varies beside "
    "the noise (data, random trees, samples of rows), and noise is always new. It agrees or contradicts when the "
    "interval lies on one side of 0; there is “no difference” when it does not and lies within a margin that the code "
    "fixes beforehand. A statement "
    "about all settings is *refuted* when more of them contradict it than chance gives in 5 % of all studies "
    "(binomial), and *mixed* if at least half agree nevertheless; it is *confirmed* when all agree, *confirmed in "
    "part* when more than half agree, or when at least as many agree as show no difference and both together are more "
    "than half; there is *no difference* when most show none. A statement about most settings needs more than half of "
    "them. What is left is *not decided*; where a similarity is left open although all its open differences are surely "
    "not 0, the page says that they are about as large as the margin: more repeats would hardly help there."
)


@dataclass(frozen=True)
class Comparison:
    """A difference with its interval, and what it says about a statement; a lead above 0 agrees with it."""

    gap: Estimate
    answer: Answer
    margin: float = 0.0
    lead: bool = True


def difference(first: Sequence[float], second: Sequence[float], *, paired: bool = True) -> Estimate:
    """Mean of the first less mean of the second with its 95 % interval.

    By the differences repeat by repeat; repeats that are not `paired` by Welch's rule.
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


def above(first: Sequence[float], second: Sequence[float], margin: float = 0.0, *, paired: bool = True) -> Comparison:
    """Whether the first is larger than the second, smaller, apart by less than the margin, or none of it for sure."""
    gap = difference(first, second, paired=paired)
    if gap.low > 0 or gap.high < 0:
        return Comparison(gap, "yes" if gap.low > 0 else "no", margin)
    return Comparison(gap, "same" if -margin < gap.low and gap.high < margin else "open", margin)


def alike(first: Sequence[float], second: Sequence[float], margin: float, *, paired: bool = True) -> Comparison:
    """Whether the two are within the margin for sure, apart by more for sure, or neither."""
    gap = difference(first, second, paired=paired)
    if -margin < gap.low and gap.high < margin:
        return Comparison(gap, "yes", margin, lead=False)
    return Comparison(gap, "no" if gap.low > margin or gap.high < -margin else "open", margin, lead=False)


def against(values: Sequence[float], level: float, *, at_least: bool = True) -> Comparison:
    """Whether the mean lies above a level (below it otherwise) for sure."""
    sign = 1.0 if at_least else -1.0
    return above([sign * (value - level) for value in values], [0.0] * len(values))


def verdict(comparisons: Sequence[Comparison], *, most: bool = False) -> str:
    """What the comparisons say together, by RULE; `most` for statements that claim to hold in most cases only."""
    answers = [one.answer for one in comparisons]
    yes, no, same, half = answers.count("yes"), answers.count("no"), answers.count("same"), len(answers) / 2
    if most:
        if yes > half:
            return "confirmed"
        return _undecided(comparisons) if no + same < half else "refuted" if no >= same else _none(comparisons)
    if no and float(stats.binom.sf(no - 1, len(answers), PROBABILITY)) < 0.05:
        return "mixed" if yes >= half else "refuted"
    if yes == len(answers):
        return "confirmed"
    if yes > half or (yes + same > half and yes >= same):
        return "confirmed in part"
    return _none(comparisons) if same >= half or yes + same > half else _undecided(comparisons)


def _undecided(comparisons: Sequence[Comparison]) -> str:
    """What is said of an open statement: whether a margin alone keeps it open, or intervals that are too wide."""
    left = [one for one in comparisons if one.answer == "open"]
    sure = all(not one.lead and (one.gap.low > 0 or one.gap.high < 0) for one in left)
    return AT_MARGIN if left and sure else "not decided"


def _none(comparisons: Sequence[Comparison]) -> str:
    margins = sorted({one.margin for one in comparisons if one.answer == "same"})
    return f"no difference larger than {' or '.join(f'{one:,.3g}' if one < 1000 else f'{one:,.0f}' for one in margins)}"


def kind_of(words: str) -> str:
    """The kind of a verdict, whatever is said behind it.

    >>> kind_of("no difference larger than 0.03"), kind_of("refuted: true of a single tree only")
    ('no difference', 'refuted')
    """
    for kind in KINDS:
        if words.startswith(kind):
            return kind
    return "tables differ"


def count_of(comparisons: Sequence[Comparison]) -> str:
    """The answers in words."""
    answers = [one.answer for one in comparisons]
    if len(answers) == 1:
        words = {"yes": "clearly so", "no": "clearly not", "same": "no difference", "open": "open"}
        return words[answers[0]]
    parts = [f"clearly so in {answers.count('yes')} of {len(answers)}", f"clearly not in {answers.count('no')}"]
    return ", ".join([*parts, f"no difference in {answers.count('same')}"] if "same" in answers else parts)


def range_of(comparisons: Sequence[Comparison]) -> str:
    """The smallest and the largest difference, each with its interval; leads above 0 agree with the statement."""
    word = "lead" if comparisons[0].lead else "difference"
    ends = sorted((one.gap for one in comparisons), key=lambda gap: gap.mean)
    if len(ends) == 1:
        return f"{word} {ends[0]}"
    return f"{word}s {ends[0]} to {ends[-1]}"
