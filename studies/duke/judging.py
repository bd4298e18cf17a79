"""What the source says about Figures 4 to 14, held against the runs: settings compared measure by measure."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from studies.duke.benches import Bench
from studies.duke.panels import BASE, Labelled
from studies.verdicts import Comparison, above, against, alike, count_of, range_of, verdict
from studies.writing import StudyPage, estimate

__all__ = ["JOINT", "NEW", "VISIBLE", "Settings", "judge", "odd_shares"]

Found = Mapping[str, Sequence[Labelled]]
VISIBLE = 0.2
"""A difference is called visible when it is more than this share of the error of the setting compared with."""
JOINT = ("joint shares with agency", "joint shares, all columns")
COEFFICIENTS = ("coefficients agency", "coefficients occupation", "coefficients both")
NEW = "share of new combinations"
PROBABILITY = 0.05
LISTED = 4
"""Most measures that a row lists one by one."""


@dataclass(frozen=True)
class Settings:
    """Releases by setting, and the measures of a bench by the panel that shows them."""

    found: Found
    bench: Bench

    @property
    def slopes(self) -> list[str]:
        return [f"slopes {name}" for name in self.bench.predictors]

    @property
    def slopes_and_correlations(self) -> list[str]:
        return [*self.slopes, *(f"correlations {name}" for name in self.bench.predictors)]

    @property
    def panels(self) -> list[str]:
        """All of (a) to (d)."""
        return [*JOINT, *self.slopes_and_correlations]

    def errors(self, setting: str, measure: str) -> list[float]:
        """Errors repeat by repeat; a correlation r of joint shares counts as √(1 − r²)."""
        values = [one.numbers[measure] for one in self.found[setting]]
        return [math.sqrt(max(0.0, 1 - value**2)) for value in values] if measure in JOINT else values

    def shares(self, setting: str, other: str, measure: str) -> tuple[list[float], list[float]]:
        """Errors of both settings over the mean error of the other one."""
        ours, theirs = self.errors(setting, measure), self.errors(other, measure)
        unit = statistics.fmean(theirs)
        return [one / unit for one in ours], [one / unit for one in theirs]

    def better(self, setting: str, other: str, measures: Sequence[str]) -> list[Comparison]:
        """Whether the first setting has the smaller error, as a share of the other's."""
        return [
            above(theirs, ours, VISIBLE) for ours, theirs in (self.shares(setting, other, name) for name in measures)
        ]

    def same(self, setting: str, other: str, measures: Sequence[str]) -> list[Comparison]:
        """Whether errors differ by less than the margin."""
        return [alike(*self.shares(setting, other, name), VISIBLE) for name in measures]

    def no_better(self, setting: str, other: str, measures: Sequence[str]) -> list[Comparison]:
        """Whether the first setting's gain is below the margin for sure."""
        pairs = [self.shares(setting, other, name) for name in measures]
        gains = [[theirs - ours for ours, theirs in zip(*pair, strict=True)] for pair in pairs]
        return [against(gain, VISIBLE, at_least=False) for gain in gains]

    def text(self, answers: Sequence[Comparison], setting: str, other: str, measures: Sequence[str]) -> str:
        """The answers in words, with the errors of all measures, or of those at the two ends."""
        named = list(zip(measures, answers, strict=True))
        if len(named) > LISTED:
            named.sort(key=lambda pair: pair[1].gap.mean)
            named = [named[0], named[-1]]
        shown = "; ".join(
            f"{name}: " + ", ".join(f"{estimate(self.errors(one, name))} ({one})" for one in (setting, other))
            for name, _ in named
        )
        ends = "at the ends " if len(measures) > LISTED else ""
        return f"{count_of(answers)} ({range_of(answers)}, as shares of the error of “{other}”): {ends}{shown}"


def judge(page: StudyPage, bench: Bench, found: Found) -> None:
    """A row for every statement about labelled records."""
    settings = Settings(found, bench)
    _collapsing_and_trees(page, settings)
    _weights(page, settings)
    _noise(page, settings)
    _branches(page, settings)
    _coefficients(page, settings)


def _same_row(page: StudyPage, settings: Settings, printed: str, setting: str, measures: Sequence[str]) -> None:
    answers = settings.same(setting, BASE, measures)
    page.find(printed, settings.text(answers, setting, BASE, measures), verdict(answers))


def _better_row(
    page: StudyPage, settings: Settings, printed: str, pair: tuple[str, str], measures: Sequence[str]
) -> None:
    answers = settings.better(*pair, measures)
    page.find(printed, settings.text(answers, *pair, measures), verdict(answers))


def _beyond(page: StudyPage, settings: Settings, printed: str, setting: str, what: str) -> None:
    """A row on what is said of other settings too, of which the runs hold one."""
    measures = settings.slopes_and_correlations
    answers = settings.same(setting, BASE, measures)
    page.find(
        printed,
        f"at the base alone, for slopes and correlations: {count_of(answers)} ({range_of(answers)})",
        f"cannot be checked beyond the base: {what} was run with the base's other values only",
    )


def _collapsing_and_trees(page: StudyPage, settings: Settings) -> None:
    bench = settings.bench
    agency, occupation = f"slopes {bench.agency}", f"slopes {bench.occupation}"
    _better_row(
        page, settings, "Figure 4: with the highest weight on Occupation (we say: 10), collapsing improves the slopes "
        "of Agency and Occupation", ("occupation 10", "occupation 10, not collapsed"), (agency, occupation),
    )  # fmt: skip
    _same_row(
        page, settings, "Figure 5: differences between five and ten trees do not appear significant", "10 trees",
        settings.panels,
    )  # fmt: skip
    _beyond(
        page, settings, "… generally no difference in slopes and correlations, regardless of collapsing, weights, n_B "
        "and ε", "10 trees", "an ensemble of ten trees",
    )  # fmt: skip
    measures = [*settings.panels, *COEFFICIENTS]
    answers = settings.no_better("10 trees", BASE, measures)
    gains = sorted(VISIBLE - one.gap.mean for one in answers)
    page.find(
        "… trees beyond five (with additional ε) do not help to improve utility",
        f"gain of ten trees: {gains[0]:.1%} to {gains[-1]:.1%} of the base's errors, surely below {VISIBLE:.0%} in "
        f"{sum(one.answer == 'yes' for one in answers)} of {len(answers)} measures",
        verdict(answers),
    )


def _weights(page: StudyPage, settings: Settings) -> None:
    related = (f"slopes {settings.bench.agency}", f"correlations {settings.bench.agency}")
    _better_row(
        page, settings, "Figure 6: a high weight of Agency makes a significant difference in the fit of slopes and "
        "correlations (we say: a better fit of Agency's)", ("agency 60", BASE), related,
    )  # fmt: skip
    pair = "agency 60, not collapsed", "not collapsed"
    answers = settings.same(*pair, related)
    page.find(
        "Figure 7: … but not when only Pay is collapsed", settings.text(answers, *pair, related), verdict(answers)
    )


def _noise(page: StudyPage, settings: Settings) -> None:
    agency = f"slopes {settings.bench.agency}"
    measures = [*settings.panels, *COEFFICIENTS]
    answers = settings.better("λ = 0.4", BASE, measures)
    page.find(
        "§3: generally, lower ε reduces utility (agreement of synthetic with authentic attributes)",
        f"λ = 0.4 against 0.1: {settings.text(answers, 'λ = 0.4', BASE, measures)}",
        verdict(answers, most=True),
    )
    _same_row(
        page, settings, "Figure 8: with n_B = 1,000 there is no significant difference in distribution between "
        "ε = 0.1 and 0.4 (we say: in any of the four panels)", "λ = 0.4", settings.panels,
    )  # fmt: skip
    _beyond(
        page, settings, "… ε comparison plots generally show no significant difference of distributions", "λ = 0.4",
        "λ = 0.4",
    )  # fmt: skip
    _better_row(
        page, settings, "Figure 8: slopes of Agency agree better at ε = 0.1 than at 0.4, against intuition "
        "(and against §3)", (BASE, "λ = 0.4"), (agency,),
    )  # fmt: skip
    odd = odd_shares(settings.errors(BASE, agency), settings.errors("λ = 0.4", agency))
    repeats = list(zip(settings.errors(BASE, agency), settings.errors("λ = 0.4", agency), strict=True))
    page.find(
        "… which may result from variation of trees and labels",
        f"of pairs of releases with different trees {estimate(odd)} show slopes of Agency better at λ = 0.1; with the "
        f"same trees {sum(low < high for low, high in repeats)} of {len(repeats)} (we say: it may if more than "
        f"{PROBABILITY:.0%} of the former do)",
        verdict([against(odd, PROBABILITY)]),
    )


def odd_shares(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """For each repeat of the first: the share of all other repeats of the second that have the larger error."""
    return [
        statistics.fmean(float(one < other) for place, other in enumerate(theirs) if place != here)
        for here, one in enumerate(ours)
    ]


def _branches(page: StudyPage, settings: Settings) -> None:
    _same_row(
        page, settings, "Figure 9: n_B = 1,000 and 2,000 do not differ significantly in utility", "n_B = 2,000",
        settings.panels,
    )  # fmt: skip
    _beyond(
        page, settings, "… lack of influence of n_B is generally observed in the other plots", "n_B = 2,000",
        "n_B = 2,000",
    )  # fmt: skip
    measures = [*settings.slopes, NEW]
    answers = settings.better(BASE, "n_B = 2,000", measures)
    page.find(
        "§4: depth and n_B limit the columns of a branch; fewer columns cause greater confounding",
        "whether errors of slopes, and new combinations, are smaller at n_B = 1,000 than at 2,000: "
        f"{settings.text(answers, BASE, 'n_B = 2,000', measures)}",
        "cannot be checked alone: a larger n_B means fewer columns, but also more records in a leaf and so less noise; "
        "depth was not varied",
    )
    fresh = settings.errors(BASE, NEW)
    page.find(
        "§4: labels drawn from leaves can make combinations that do not exist in the authentic table",
        f"share of labelled records whose combination of all columns is new: {estimate(fresh)}",
        verdict([against(fresh, 0.0)]),
    )


def _coefficients(page: StudyPage, settings: Settings) -> None:
    _same_row(
        page, settings, "Figures 10, 11: coefficients of Agency alone differ little between ε = 0.1 and 0.4",
        "λ = 0.4", ("coefficients agency",),
    )  # fmt: skip
    both = ("coefficients both",)
    _better_row(
        page, settings, "Figures 12, 13: with Agency and Occupation as predictors, weight 60 for Occupation comes with "
        "a significant improvement of fit (we say: over all coefficients; ε is the same here)", ("occupation 60", BASE),
        both,
    )  # fmt: skip
    first, second = (_occupations(settings, name) for name in (BASE, "occupation 60"))
    margin = VISIBLE * statistics.fmean(first)
    nearer = sum(two < one - margin for one, two in zip(first, second, strict=True))
    farther = sum(two > one + margin for one, two in zip(first, second, strict=True))
    page.find(
        "… for certain occupations",
        f"in the first release of either, of {len(first)} occupations {nearer} come visibly nearer and {farther} move "
        f"visibly away; mean error {statistics.fmean(first):.3f} (base), {statistics.fmean(second):.3f} (occupation "
        "60)",
        "cannot be checked: coefficients one by one are kept of one release, and all of them share the error of the "
        "reference level there",
    )
    by_weight, by_noise = (settings.better(name, BASE, both)[0].gap for name in ("occupation 60", "λ = 0.4"))
    page.find(
        "… note also the difference in ε between Figures 12 and 13",
        f"one at a time, for all coefficients of both columns: weight 60 lowers the error by {by_weight} of the "
        f"base's, λ = 0.4 instead of 0.1 by {by_noise}",
        "cannot be compared: the text does not say which ε belongs to which figure, and the two were changed together",
    )
    _close_fit(page, settings)


def _occupations(settings: Settings, setting: str) -> list[float]:
    """Errors of Occupation's coefficients in the model of both columns; they stand behind those of Agency."""
    points = settings.found[setting][0].points
    return [abs(one - other) for one, other in points["coefficients both"][len(points["coefficients agency"]) :]]


def _close_fit(page: StudyPage, settings: Settings) -> None:
    name = "coefficients occupation"
    pairs = settings.found["occupation 60"][0].points[name]
    spread = statistics.stdev(real for real, _ in pairs)
    after, before = (
        [error / spread for error in settings.errors(setting, name)] for setting in ("occupation 60", BASE)
    )
    answer = against(after, VISIBLE, at_least=False)
    near = sum(abs(real - made) <= VISIBLE * spread for real, made in pairs)
    page.find(
        "Figure 14: close fit for certain occupations when Occupation is the sole predictor, after high preference",
        f"{count_of([answer])}: error over all occupations {estimate(after)} of the spread of authentic coefficients "
        f"(we say: close if below {VISIBLE:g}), {estimate(before)} with equal weights; in the first release {near} of "
        f"{len(pairs)} occupations are that close",
        verdict([answer]),
    )
