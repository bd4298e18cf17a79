"""Every statement of the paper's section 3 on its simulation, those of its abstract and section 5, and its verdict."""

import itertools
import statistics
from collections.abc import Mapping, Sequence

from studies.steps.design import BINNED, METHODS
from studies.steps.judge import Judge, not_so, some, turned
from studies.steps.measures import MEASURES
from studies.steps.unchanged import COLUMNS, ORIGINAL
from studies.verdicts import Comparison, against, count_of, range_of, verdict
from studies.writing import Estimate, StudyPage, estimate

__all__ = ["judge"]

PLACES = (
    (1, "bias", "PrivBayes", "best"),
    (1, "coverage", "PrivBayes", "best"),
    (1, "prediction RMSE", "PrivBayes", "best"),
    (1, "estimation RMSE", "PrivBayes", "worst"),
    (1, "estimation RMSE", "STEPS", "best"),
    (1, "bias", "UH modified", "worst"),
    (1, "coverage", "UH modified", "worst"),
    (1, "prediction RMSE", "UH modified", "worst"),
    (2, "bias", "STEPS", "best"),
    (2, "coverage", "STEPS", "best"),
    (2, "estimation RMSE", "STEPS", "best"),
    (2, "prediction RMSE", "STEPS", "best"),
    (2, "estimation RMSE", "PrivBayes", "worst"),
    (2, "coverage", "UH modified", "worst"),
    (2, "prediction RMSE", "UH modified", "worst"),
)
NOT_COVERAGE = tuple(measure for measure in MEASURES if measure != "coverage")
TOP = ("x1", "x2", "x4")
MUCH = 10.0
"""A difference of AIC that is large by custom (Burnham and Anderson): the worse model has hardly any support."""


def judge(page: StudyPage, given: Judge, tops: Sequence[str], scores: Sequence[Mapping[str, float]]) -> None:
    """A row for each statement; `tops` are the columns on top of each tree, `scores` the AIC in each data set."""
    for model, measure, method, place in PLACES:
        _row(page, f"model {model}: {method} is {place} in {measure}", given.place(model, measure, method, place))
    _main_effects(page, given)
    _explanations(page, given)
    _saturated(page, given)
    _groups(page, tops, scores)
    _conclusions(page, given)


def _row(page: StudyPage, printed: str, answers: Sequence[Comparison], more: str = "") -> None:
    page.find(printed, _told(answers, more), verdict(answers))


def _told(answers: Sequence[Comparison], more: str = "") -> str:
    text = f"{count_of(answers)} ({range_of(answers)})"
    return text + (f"; {more}" if more else "")


def _main_effects(page: StudyPage, given: Judge) -> None:
    all_but = [(one, measure) for one in METHODS for measure in MEASURES if (one, measure) != ("PrivBayes", "coverage")]
    _row(page, "model 1: inferences improve as n increases", given.with_rows(1, tuple(METHODS)))
    _row(page, "model 1: inferences improve as ε increases, but for coverage of PrivBayes",
         given.with_epsilon(1, all_but))  # fmt: skip
    away = [turned(one) for one in given.with_epsilon(1, [("PrivBayes", "coverage")])]
    _row(page, "model 1: coverage of PrivBayes moves away from 95 % as ε grows", away,
         given.coverages(1, "PrivBayes"))  # fmt: skip


def _explanations(page: StudyPage, given: Judge) -> None:
    """Whether binning Y or all else is the main loss of PrivBayes, at both ends of ε."""
    least, most = given.epsilons[0], given.epsilons[-1]
    _row(page, f"model 1: … which is likely due to the binning of Y (we say: at ε = {most:g} binning alone takes "
               "coverage farther from 95 % than all that PrivBayes adds to it)",
         given.binning_first(1, "PrivBayes", most, ("coverage",)),
         _losses(given, 1, "PrivBayes", most, ("coverage",)))  # fmt: skip
    _row(page, f"model 1: at a large ε the main loss of information is by binning Y, not by sanitization (PrivBayes at "
               f"ε = {most:g}, as before, in bias and both RMSE)",
         given.binning_first(1, "PrivBayes", most, NOT_COVERAGE),
         _losses(given, 1, "PrivBayes", most, NOT_COVERAGE))  # fmt: skip
    _row(page, f"model 1: … and the sets then vary mainly by the sampling inside the bins of Y (PrivBayes at ε = "
               f"{most:g}; we say: binning alone has more than half of its variance between sets)",
         given.binning_spreads(1, "PrivBayes", most), given.spreads(1, "PrivBayes", most))  # fmt: skip
    _row(page, f"model 1: at a small ε the main loss is by sanitization (PrivBayes at ε = {least:g}, all measures; "
               "we say: all that is lost beside the binning, by its network, too)",
         [turned(one) for one in given.binning_first(1, "PrivBayes", least, MEASURES)],
         _losses(given, 1, "PrivBayes", least, MEASURES))  # fmt: skip
    _row(page, "model 1: at a small ε inferences are rather better than at a large one (coverage of PrivBayes; we say: "
               "at the smallest ε against the largest)",
         given.ends(1, "PrivBayes", "coverage"))  # fmt: skip


def _saturated(page: StudyPage, given: Judge) -> None:
    most = given.epsilons[-1]
    _row(page, "model 2: STEPS improves as n increases", given.with_rows(2, ("STEPS",)))
    _row(page, "model 2: STEPS improves as ε increases in bias, RMSE and prediction",
         given.with_epsilon(2, [("STEPS", measure) for measure in NOT_COVERAGE]))  # fmt: skip
    _row(page, "model 2: … but not in coverage", not_so(given.with_epsilon(2, [("STEPS", "coverage")])),
         given.coverages(2, "STEPS"))  # fmt: skip
    _row(page, f"model 2: … likely for the same reason (we say, as in model 1: at ε = {most:g} binning alone takes "
               "coverage farther from 95 % than all that STEPS adds to it)",
         given.binning_first(2, "STEPS", most, ("coverage",)),
         _losses(given, 2, "STEPS", most, ("coverage",)))  # fmt: skip
    _row(page, "model 2: UH modified improves as n increases", given.with_rows(2, ("UH modified",)))
    _row(page, "model 2: UH modified has no obvious trend across ε (we say: both ends are within the margin, or steps "
               "lead both ways by more than it)",
         given.flat_in_epsilon(2, "UH modified"))  # fmt: skip
    _row(page, "model 2: PrivBayes has no obvious trend across ε in any measure (as before)",
         given.flat_in_epsilon(2, "PrivBayes"), given.coverages(2, "PrivBayes"))  # fmt: skip
    _row(page, "model 2: PrivBayes has no obvious trend across n in any measure (we say: within the margin)",
         given.flat_in_rows(2, "PrivBayes"))  # fmt: skip


def _losses(given: Judge, model: int, method: str, epsilon: float, measures: Sequence[str]) -> str:
    """What a measure is in the original data, with binned Y and nothing else, and by a method."""
    texts = []
    for measure in measures:
        parts = []
        for rows in given.sizes:
            cells = (given.cell(model, rows, epsilon, one) for one in (ORIGINAL, BINNED, method))
            parts.append(f"{' → '.join(f'{one.judged(measure).mean:.3f}' for one in cells)} (n = {rows:,})")
        texts.append(f"{'distance from 95 %' if measure == 'coverage' else measure} {', '.join(parts)}")
    return f"original data → binned Y and nothing else → {method}: {'; '.join(texts)}"


def _groups(page: StudyPage, tops: Sequence[str], scores: Sequence[Mapping[str, float]]) -> None:
    """How far apart the groups of the paper are by their AIC, and which columns lie on top of the trees."""
    gaps = [_apart(one, TOP) for one in scores]
    hits = [float(gap > MUCH) for gap in gaps]
    rivals = [max(_splits(), key=lambda top, one=one: _apart(one, top)) for one in scores]  # type: ignore[misc]
    rival, times = statistics.mode(rivals), sum(one == TOP for one in rivals)
    page.find(
        f"in most cases the group (X1, X2, X4) has a much smaller AIC than (X3, Y) (we say: its mean, by {MUCH:g})",
        f"in {statistics.fmean(hits):.1%} of {len(hits):,} data sets, smaller by {estimate(gaps)}; but of all splits "
        f"this one is farthest apart in {times / len(rivals):.1%}, most often {', '.join(rival)} against the rest",
        verdict([against(hits, 0.5)]),
    )
    found = [float(top == "+".join(TOP)) for top in tops]
    common = statistics.mode(tops)
    page.find(
        "… and ends up in the first layer",
        f"in {statistics.fmean(found):.1%} of {len(tops):,} trees; most often on top: {common.replace('+', ', ')} "
        f"({_percent(estimate([float(top == common) for top in tops]))})",
        verdict([against(found, 0.5)]),
    )


def _splits() -> list[tuple[str, ...]]:
    """Every group of columns that may lie on top."""
    return [top for size in range(1, len(COLUMNS)) for top in itertools.combinations(COLUMNS, size)]


def _apart(score: Mapping[str, float], top: Sequence[str]) -> float:
    """Mean AIC of the columns below less that of the columns on top."""
    below = [score[name] for name in COLUMNS if name not in top]
    return statistics.fmean(below) - statistics.fmean(score[name] for name in top)


def _conclusions(page: StudyPage, given: Judge) -> None:
    histogram, network = (given.everywhere("STEPS", other) for other in ("UH modified", "PrivBayes"))
    overall = given.overall("STEPS", "UH modified")
    page.find(
        "section 5: STEPS outperformed the modified universal histogram in general (we say: in most models, n and "
        "measures by means over ε)",
        _told(overall, f"ε by ε: {count_of(histogram)}"),
        verdict(overall, most=True),
    )
    page.find(
        "… as it leverages the data to determine the partitioning sequence",
        "here STEPS has 2 layers and the histogram 4, as in the paper: they differ in more than the sequence",
        "cannot be checked: no runs with as many layers and a random sequence",
    )
    page.find(
        "abstract: STEPS can preserve population-level information better for some analyses than the modified "
        "universal histogram (we say: more often than chance gives, of all settings and measures)",
        _told(histogram),
        some(histogram),
    )
    page.find(
        "abstract, section 5: … and than PrivBayes, case by case (as before)",
        _told(network, "; ".join(f"model {model}: {count_of(part)}" for model, part in _halves(network))),
        some(network),
    )
    page.find(
        "abstract, section 5: … and than the flat Laplace sanitizer; and the same of the original information",
        "the simulation has no flat Laplace sanitizer, and its measures are about the population",
        "cannot be checked: not part of the simulation; see [young voters](youth_voters.md)",
    )


def _halves(answers: Sequence[Comparison]) -> list[tuple[int, Sequence[Comparison]]]:
    """The comparisons of model 1, which come first, and those of model 2."""
    half = len(answers) // 2
    return [(1, answers[:half]), (2, answers[half:])]


def _percent(one: Estimate) -> str:
    return f"{one.mean:.1%} ± {one.half:.1%}"
