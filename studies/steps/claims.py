"""Every statement of the paper's section 3.3, and how it is decided."""

import itertools
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from studies.steps.design import BINNED, METHODS
from studies.steps.measures import MEASURES, Corner, Found, better
from studies.verdicts import Comparison, above, against, count_of, range_of, verdict
from studies.writing import Estimate, StudyPage, estimate

__all__ = ["Judge", "judge"]

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


@dataclass(frozen=True)
class Judge:
    """The runs, by setting and method, and the settings that were run."""

    found: Found
    sizes: Sequence[int]
    epsilons: Sequence[float]

    def place(self, model: int, measure: str, method: str, place: str) -> list[Comparison]:
        """Whether a method is better (worse) than each of the others in every setting."""
        answers = []
        for rows, epsilon in itertools.product(self.sizes, self.epsilons):
            corner = Corner(model, rows, epsilon)
            own = self.found[corner, method]
            for other in METHODS:
                if other != method:
                    pair = (own, self.found[corner, other])
                    answers.append(better(*(pair if place == "best" else pair[::-1]), measure))
        return answers

    def with_epsilon(self, model: int, pairs: Iterable[tuple[str, str]]) -> list[Comparison]:
        """Whether a larger ε is better, step by step, for pairs of a method and a measure."""
        return [
            better(self.found[Corner(model, rows, high), method], self.found[Corner(model, rows, low), method], measure)
            for method, measure in pairs
            for rows in self.sizes
            for low, high in itertools.pairwise(self.epsilons)
        ]

    def with_rows(self, model: int, methods: Sequence[str]) -> list[Comparison]:
        """Whether more rows are better in all measures; their data are independent."""
        return [
            better(
                self.found[Corner(model, more, epsilon), method],
                self.found[Corner(model, fewer, epsilon), method],
                measure,
                paired=False,
            )
            for more, fewer in itertools.pairwise(self.sizes)
            for epsilon in self.epsilons
            for method in methods
            for measure in MEASURES
        ]

    def coverages(self, model: int, method: str) -> str:
        return (
            "; ".join(
                f"n = {rows:,}: "
                + ", ".join(
                    f"{self.found[Corner(model, rows, epsilon), method].shown('coverage').mean:.3f}"
                    for epsilon in self.epsilons
                )
                for rows in self.sizes
            )
            + f" at ε = {', '.join(f'{one:g}' for one in self.epsilons)}"
        )


def judge(page: StudyPage, given: Judge, tops: Sequence[str]) -> list[str]:
    """A row for each statement; gives the verdicts."""
    for model, measure, method, place in PLACES:
        _row(page, f"model {model}: {method} is {place} in {measure}", given.place(model, measure, method, place))
    all_but = [(one, measure) for one in METHODS for measure in MEASURES if (one, measure) != ("PrivBayes", "coverage")]
    _row(page, "model 1: inferences improve as n increases", given.with_rows(1, tuple(METHODS)))
    _row(page, "model 1: inferences improve as ε increases, but for coverage of PrivBayes",
         given.with_epsilon(1, all_but))  # fmt: skip
    away = [_turned(one) for one in given.with_epsilon(1, [("PrivBayes", "coverage")])]
    _row(page, "model 1: coverage of PrivBayes moves away from 95 % as ε grows", away, given.coverages(1, "PrivBayes"))
    _explanation(page, given)
    _row(page, "model 2: STEPS improves as n increases", given.with_rows(2, ("STEPS",)))
    _row(page, "model 2: STEPS improves as ε increases in bias, RMSE and prediction",
         given.with_epsilon(2, [("STEPS", measure) for measure in NOT_COVERAGE]))  # fmt: skip
    _row(page, "model 2: … but not in coverage", _not(given.with_epsilon(2, [("STEPS", "coverage")])),
         given.coverages(2, "STEPS"))  # fmt: skip
    _row(page, "model 2: UH modified improves as n increases", given.with_rows(2, ("UH modified",)))
    _row(page, "model 2: UH modified has no obvious trend across ε (we say: does not improve step by step)",
         _not(given.with_epsilon(2, [("UH modified", measure) for measure in MEASURES])))  # fmt: skip
    _row(page, "model 2: PrivBayes has no obvious trend across n or ε in any measure (as before)",
         _not([*given.with_rows(2, ("PrivBayes",)),
               *given.with_epsilon(2, [("PrivBayes", measure) for measure in MEASURES])]))  # fmt: skip
    _groups(page, tops)
    return [finding.verdict for finding in page.findings]


def _row(page: StudyPage, printed: str, answers: Sequence[Comparison], more: str = "") -> None:
    text = f"{count_of(answers)} ({range_of(answers)})"
    page.find(printed, text + (f"; {more}" if more else ""), verdict(answers))


def _turned(one: Comparison) -> Comparison:
    """The same comparison for the opposite statement."""
    gap = replace(one.gap, mean=-one.gap.mean)
    return replace(one, gap=gap, answer={"yes": "no", "no": "yes"}.get(one.answer, one.answer))  # type: ignore[arg-type]


def _not(answers: Sequence[Comparison]) -> list[Comparison]:
    """For statements that deny an improvement: none, or a loss, agrees."""
    turned = [_turned(one) for one in answers]
    return [replace(one, answer="yes") if one.answer == "same" else one for one in turned]


def _explanation(page: StudyPage, given: Judge) -> None:
    """Whether binning Y alone makes intervals miss as PrivBayes does at the largest ε."""
    answers, texts = [], []
    for rows in given.sizes:
        binned = given.found[Corner(1, rows, 0.0), BINNED]
        network = given.found[Corner(1, rows, given.epsilons[-1]), "PrivBayes"]
        answers.append(above(binned.pseudo["coverage"], network.pseudo["coverage"]))
        texts.append(f"n = {rows:,}: {_percent(binned.shown('coverage'))} with binned Y and nothing else")
    page.find(
        "model 1: … because binning Y, and not the noise, is what is lost at a large ε (“likely”)",
        f"{'; '.join(texts)} (how much farther from 95 % than PrivBayes at the largest ε: {range_of(answers)})",
        "refuted: binning alone leaves the intervals nearer to 95 %"
        if all(one.answer == "no" for one in answers)
        else "not decided",
    )


def _percent(one: Estimate) -> str:
    return f"{one.mean:.1%} ± {one.half:.1%}"


def _groups(page: StudyPage, tops: Sequence[str]) -> None:
    """Which columns lie on top of the grouped trees."""
    hits = [float(top == "x1+x2+x4") for top in tops]
    common = statistics.mode(tops)
    share = estimate([float(top == common) for top in tops])
    page.find(
        "in most cases the group (X1, X2, X4) ends up in the first layer",
        f"in {statistics.fmean(hits):.1%} of {len(tops):,} trees; most often on top: {common.replace('+', ', ')} "
        f"({_percent(share)})",
        verdict([against(hits, 0.5)]),
    )
