"""The runs side by side: the comparisons that decide the statements of the paper."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from studies.steps.design import BINNED, METHODS
from studies.steps.measures import MARGINS, MEASURES, Cell, Corner, Found, better
from studies.steps.unchanged import ORIGINAL
from studies.verdicts import Comparison, above, alike, kind_of, verdict
from studies.writing import estimate

__all__ = ["Judge", "no_trend", "not_so", "some", "turned"]


@dataclass(frozen=True)
class Judge:
    """The runs, by setting and method, and the settings that were run."""

    found: Found
    sizes: Sequence[int]
    epsilons: Sequence[float]

    def cell(self, model: int, rows: int, epsilon: float, method: str) -> Cell:
        """The runs of a method in a setting; what is not private has no ε."""
        return self.found[Corner(model, rows, 0.0 if method in (BINNED, ORIGINAL) else epsilon), method]

    def place(self, model: int, measure: str, method: str, place: str) -> list[Comparison]:
        """Whether a method is better (worse) than each of the others in every setting."""
        answers = []
        for rows, epsilon in itertools.product(self.sizes, self.epsilons):
            own = self.cell(model, rows, epsilon, method)
            for other in METHODS:
                if other != method:
                    pair = (own, self.cell(model, rows, epsilon, other))
                    answers.append(better(*(pair if place == "best" else pair[::-1]), measure))
        return answers

    def everywhere(self, first: str, second: str) -> list[Comparison]:
        """Whether the first method is better than the second, in every setting and measure."""
        return [
            better(self.cell(model, rows, epsilon, first), self.cell(model, rows, epsilon, second), measure)
            for model, rows, measure, epsilon in itertools.product((1, 2), self.sizes, MEASURES, self.epsilons)
        ]

    def overall(self, first: str, second: str) -> list[Comparison]:
        """The same by means over ε."""
        return [
            above(self._mean(model, rows, second, measure), self._mean(model, rows, first, measure), MARGINS[measure])
            for model, rows, measure in itertools.product((1, 2), self.sizes, MEASURES)
        ]

    def _mean(self, model: int, rows: int, method: str, measure: str) -> list[float]:
        values = [self.cell(model, rows, epsilon, method).pseudo[measure] for epsilon in self.epsilons]
        return [float(one) for one in np.mean(values, axis=0)]

    def with_epsilon(self, model: int, pairs: Iterable[tuple[str, str]]) -> list[Comparison]:
        """Whether a larger ε is better, step by step, for pairs of a method and a measure."""
        return [
            better(self.cell(model, rows, high, method), self.cell(model, rows, low, method), measure)
            for method, measure in pairs
            for rows in self.sizes
            for low, high in itertools.pairwise(self.epsilons)
        ]

    def ends(self, model: int, method: str, measure: str) -> list[Comparison]:
        """Whether the smallest ε is better than the largest, for each n."""
        least, most = self.epsilons[0], self.epsilons[-1]
        return [
            better(self.cell(model, rows, least, method), self.cell(model, rows, most, method), measure)
            for rows in self.sizes
        ]

    def with_rows(self, model: int, methods: Sequence[str]) -> list[Comparison]:
        """Whether more rows are better in all measures; their data are independent."""
        return [
            better(
                self.cell(model, more, epsilon, method),
                self.cell(model, fewer, epsilon, method),
                measure,
                paired=False,
            )
            for more, fewer in itertools.pairwise(self.sizes)
            for epsilon in self.epsilons
            for method in methods
            for measure in MEASURES
        ]

    def flat_in_epsilon(self, model: int, method: str) -> list[Comparison]:
        """Whether a method has no trend over ε, for each n and measure."""
        answers = []
        for rows, measure in itertools.product(self.sizes, MEASURES):
            cells = [self.cell(model, rows, epsilon, method) for epsilon in self.epsilons]
            ends = alike(cells[-1].pseudo[measure], cells[0].pseudo[measure], MARGINS[measure])
            answers.append(no_trend(ends, [better(high, low, measure) for low, high in itertools.pairwise(cells)]))
        return answers

    def flat_in_rows(self, model: int, method: str) -> list[Comparison]:
        """Whether a method is much the same for the least and for the most rows, for each ε and measure."""
        most, least = max(self.sizes), min(self.sizes)
        return [
            alike(
                self.cell(model, most, epsilon, method).pseudo[measure],
                self.cell(model, least, epsilon, method).pseudo[measure],
                MARGINS[measure],
                paired=False,
            )
            for epsilon in self.epsilons
            for measure in MEASURES
        ]

    def binning_first(self, model: int, method: str, epsilon: float, measures: Sequence[str]) -> list[Comparison]:
        """Whether binning Y adds more to each measure than all else that a method does, for each n."""
        answers = []
        for rows, measure in itertools.product(self.sizes, measures):
            plain, binned, made = (
                self.cell(model, rows, epsilon, one).pseudo[measure] for one in (ORIGINAL, BINNED, method)
            )
            binning = [one - other for one, other in zip(binned, plain, strict=True)]
            rest = [one - other for one, other in zip(made, binned, strict=True)]
            answers.append(above(binning, rest, MARGINS[measure]))
        return answers

    def binning_spreads(self, model: int, method: str, epsilon: float) -> list[Comparison]:
        """Whether sets of binned data vary by more than half of the variance that a method's sets have, for each n."""
        return [
            above(
                self.cell(model, rows, epsilon, BINNED).spread,
                [one / 2 for one in self.cell(model, rows, epsilon, method).spread],
            )
            for rows in self.sizes
        ]

    def spreads(self, model: int, method: str, epsilon: float) -> str:
        """The variance between sets of binned data and of a method, by n."""
        texts = []
        for rows in self.sizes:
            pair = [estimate(self.cell(model, rows, epsilon, one).spread) for one in (BINNED, method)]
            texts.append(f"n = {rows:,}: {pair[0]} of {pair[1]}")
        return f"variance between sets, mean of the coefficients, {BINNED} of {method}: {'; '.join(texts)}"

    def coverages(self, model: int, method: str) -> str:
        """Coverage over all coefficients, and its mean distance from 95 %, by n and ε."""
        texts = []
        for rows in self.sizes:
            cells = [self.cell(model, rows, epsilon, method) for epsilon in self.epsilons]
            both = (f"{one.shown('coverage').mean:.3f} ({one.judged('coverage').mean:.3f})" for one in cells)
            texts.append(f"n = {rows:,}: {', '.join(both)}")
        places = ", ".join(f"{one:g}" for one in self.epsilons)
        return f"coverage (distance from 95 %) {'; '.join(texts)} at ε = {places}"


def turned(one: Comparison) -> Comparison:
    """The same comparison for the opposite statement."""
    gap = replace(one.gap, mean=-one.gap.mean)
    return replace(one, gap=gap, answer={"yes": "no", "no": "yes"}.get(one.answer, one.answer))  # type: ignore[arg-type]


def not_so(answers: Sequence[Comparison]) -> list[Comparison]:
    """For statements that deny an improvement: none, or a loss, agrees."""
    found = [turned(one) for one in answers]
    return [replace(one, answer="yes") if one.answer == "same" else one for one in found]


def no_trend(ends: Comparison, steps: Sequence[Comparison]) -> Comparison:
    """Whether there is no trend: both ends are alike, or steps lead both ways by more than the margin for sure."""
    up = any(one.gap.low > one.margin for one in steps)
    down = any(one.gap.high < -one.margin for one in steps)
    return replace(ends, answer="yes") if up and down else ends


def some(answers: Sequence[Comparison]) -> str:
    """The verdict on a statement that holds in some cases only: confirmed when “in none” is refuted."""
    if kind_of(verdict([turned(one) for one in answers])) in ("refuted", "mixed"):
        return "confirmed"
    against = sum(one.answer in ("no", "same") for one in answers)
    return "refuted" if against > len(answers) / 2 else "not decided"
