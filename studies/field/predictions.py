"""What the review says about its measures as predictions of the challenge's order: printed, ours, verdict.

A hit: a team has the same rank by the measure and by the score of its match. Both are ours, repeat by repeat.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from scipy import stats

from studies.field.entrants import TEAMS
from studies.field.printed import PRINTED, Match, PrintedOrder, hits, printed_tau
from studies.field.results import MEASURES, Results
from studies.field.show import REVIEW, row
from studies.verdicts import Comparison, above, against
from studies.writing import StudyPage, estimate

__all__ = ["say_predictions"]

POOR, MUCH = 0.3, 0.5
TAU = 0.1
"""Difference of Kendall's τ that counts as none."""
HALF = 0.5
FORMS, KINDS = ("ratio", "specks"), {"cart": "CART", "logistic": "logistic regression"}
Event = Callable[[float, float], bool]
"""Whether something is so, by a team's rank by the measure and its rank by the score."""


def _both(rank: int) -> Event:
    return lambda by_measure, by_score: by_measure == by_score == rank


def _wrongly_first(by_measure: float, by_score: float) -> bool:
    return by_measure == 1 < by_score


PLACES: Sequence[tuple[int, str, Sequence[str], Sequence[tuple[str, Event]]]] = (
    (2, "CART correctly predicts that pfr is first", REVIEW[:2], [("pfr", _both(1))]),
    (2, "logistic regression wrongly predicts that PrivBayes is first", REVIEW[2:], [("PrivBayes", _wrongly_first)]),
    (
        3,
        "CART SPECKS correctly finds the top two, RMcKenna and DPSyn",
        REVIEW[1:2],
        [("RMcKenna", _both(1)), ("DPSyn", _both(2))],
    ),
    (
        3,
        "logistic regression correctly finds RMcKenna first and UCLANESL last",
        REVIEW[2:],
        [("RMcKenna", _both(1)), ("UCLANESL", _both(5))],
    ),
)


def say_predictions(page: StudyPage, results: Results, matches: Mapping[int, Match]) -> None:
    """All rows."""
    _places(page, results, matches)
    for order in PRINTED:
        if order.table > 4 and results.defined(matches[order.match].bench, order.measure):
            _bold(page, results, matches[order.match], order)
    _better(page, results, matches[2], "cart", "logistic")
    _single_columns(page, results, matches[2])
    _better(page, results, matches[3], "logistic", "cart")
    _because_of_incomes(page, results, matches[3])
    _poor_to_moderate(page, results, matches)
    _inverse(page, results, (matches[2], matches[3]))
    _disagreement(page, results, (matches[2], matches[3]))


def _share(results: Results, match: Match, measure: str, team: str, event: Event) -> list[float]:
    """1 for every repeat in which the event is so, 0 for the others."""
    place = match.methods.index(TEAMS[team])
    found = results.ranks_by_repeat(match.bench, [measure, match.score], match.methods)
    return [float(event(by_measure[place], by_score[place])) for by_measure, by_score in found.values()]


def _places(page: StudyPage, results: Results, matches: Mapping[int, Match]) -> None:
    """Places that the text names: whether they are so by our measure and by our score."""
    for number, printed, measures, events in PLACES:
        match, answers, parts = matches[number], [], []
        for measure in (one for one in measures if results.defined(match.bench, one)):
            for team, event in events:
                found = _share(results, match, measure, team, event)
                answers.append(against(found, HALF))
                parts.append(f"{team} by {MEASURES[measure].name} {sum(found):.0f} of {len(found)}")
        if answers:
            row(page, f"Match {number}: {printed}", answers, f"repeats in which it is so: {', '.join(parts)}")


def _bold(page: StudyPage, results: Results, match: Match, order: PrintedOrder) -> None:
    """Which teams are hits, and that the others are not."""
    answers, parts, bold = [], [], hits(order)
    for team in order.teams:
        found = _share(results, match, order.measure, team, lambda by_measure, by_score: by_measure == by_score)
        answers.append(against(found, HALF, at_least=team in bold))
        parts.append(f"{team} {sum(found):.0f}")
    named = f"{', '.join(bold)} and no other" if bold else "no team"
    bolds = "bold" if bold else "none is bold"
    text = "; the text counts the first two only" if len(bold) == 3 and order.measure == "cart_specks" else ""
    row(
        page,
        f"Match {order.match}, {order.by}: {named} at the challenge's rank ({bolds} in Table {order.table}{text})",
        answers,
        f"repeats of {len(found)} at the same rank as by our score: {', '.join(parts)}",
    )


def _taus(results: Results, match: Match, kind: str, score: str) -> list[float]:
    """Kendall's τ of a classifier's orders with that of a score: the mean of both measures, repeat by repeat."""
    forms = [form for form in FORMS if all(results.defined(match.bench, f"{one}_{form}") for one in KINDS)]
    taus = [results.agreements(match.bench, score, f"{kind}_{form}", match.methods) for form in forms]
    return [statistics.fmean(values) for values in zip(*taus, strict=True)]


def _better(page: StudyPage, results: Results, match: Match, first: str, second: str) -> None:
    """Whether one classifier's orders are nearer to the challenge's than the other's."""
    found = {kind: _taus(results, match, kind, match.score) for kind in (first, second)}
    shown = ", ".join(f"{KINDS[kind]} {estimate(taus)}" for kind, taus in found.items())
    row(
        page,
        f"Match {match.number}: {KINDS[first]} predicts the challenge's order better than {KINDS[second]}",
        [above(found[first], found[second], TAU)],
        f"Kendall's τ with our match score: {shown}",
    )


def _single_columns(page: StudyPage, results: Results, match: Match) -> None:
    answers = [
        results.against(match.bench, measure, "independent", method)
        for measure in REVIEW[2:]
        if results.defined(match.bench, measure)
        for method in match.methods
    ]
    row(
        page,
        "Match 2: likely because logistic regression measures single columns only (we say: it puts `independent`, "
        "which measures nothing else, before every team)",
        answers,
    )


def _because_of_incomes(page: StudyPage, results: Results, match: Match) -> None:
    """Whether the lead of logistic regression is larger with the score of incomes than without."""
    if match.score != "match3":
        return
    leads = []
    for score in ("match3", "match2"):
        one, other = (_taus(results, match, kind, score) for kind in ("logistic", "cart"))
        leads.append([first - second for first, second in zip(one, other, strict=True)])
    row(
        page,
        "Match 3: probably because incomes were scored too (we say: its lead in τ is larger with that score)",
        [above(leads[0], leads[1], TAU)],
        f"lead in τ with it {estimate(leads[0])}, without it {estimate(leads[1])}",
    )


def _poor_to_moderate(page: StudyPage, results: Results, matches: Mapping[int, Match]) -> None:
    """Measures that are poor by the printed orders are poor here, and the others are not."""
    orders = [one for one in PRINTED if one.table > 4 and results.defined(matches[one.match].bench, one.measure)]
    for poor in (True, False):
        chosen = [order for order in orders if (printed_tau(order) < POOR) == poor]
        answers, parts = [], []
        for order in chosen:
            match = matches[order.match]
            taus = results.agreements(match.bench, match.score, order.measure, match.methods)
            answers.append(against(taus, POOR, at_least=not poor))
            parts.append(
                f"Match {order.match}, {order.by}: {estimate(taus)} (printed orders: {printed_tau(order):.1f})"
            )
        printed = (
            f"some measures predict the challenge's order poorly (we say: those with τ below {POOR:g} in Tables 4 to 6)"
            if poor
            else f"others predict it moderately well (we say: those with a larger τ there; here, too, above {POOR:g})"
        )
        if chosen:
            row(page, printed, answers, "τ: " + "; ".join(parts))


def _inverse(page: StudyPage, results: Results, matches: Sequence[Match]) -> None:
    """What the panels of Figures 2 and 4 show beside the measures of CART, over teams and ε."""
    panels = (
        ("complexity", "the tree's complexity (CP) is roughly the inverse of the measures"),
        ("error", "so is the tree's cross-validated error"),
    )
    for beside, said in panels:
        answers, parts = [], []
        for match in matches:
            shown = [one for one in REVIEW[:2] if all(results.defined(match.bench, name) for name in (one, beside))]
            for measure in shown:
                taus = _over_cells(results, match, measure, beside)
                answers.append(against(taus, -POOR, at_least=False))
                parts.append(f"Match {match.number}, {MEASURES[measure].name} {estimate(taus)}")
        printed = f"Figures 2 and 4: {said} (we say: τ over teams and ε below −{POOR:g})"
        if answers:
            row(page, printed, answers, "τ: " + ", ".join(parts))


def _over_cells(results: Results, match: Match, measure: str, beside: str) -> list[float]:
    """Kendall's τ of two measures over teams and ε, repeat by repeat; 0 where one of them is constant."""
    cells = [(method, epsilon) for method in match.methods for epsilon in results.epsilons(match.bench)]
    columns = [[results.at(match.bench, name, *cell) for name in (beside, measure)] for cell in cells]
    taus = []
    for repeat in results.repeats(match.bench):
        pairs = [(one[repeat], other[repeat]) for one, other in columns if repeat in one and repeat in other]
        tau = float(stats.kendalltau(*zip(*pairs, strict=True)).statistic)
        taus.append(0.0 if math.isnan(tau) else tau)
    return taus


def _disagreement(page: StudyPage, results: Results, matches: Sequence[Match]) -> None:
    """Pairs of the score and the measures, by the teams of each match."""
    answers: list[Comparison] = []
    for match in matches:
        measures = [one for one in (match.score, *REVIEW) if results.defined(match.bench, one)]
        for pair in itertools.combinations(measures, 2):
            answers.append(against(results.agreements(match.bench, *pair, match.methods), MUCH, at_least=False))
    row(
        page,
        "in a competition much depends on the choice of measures (we say: most pairs of the score and the four "
        f"measures order the teams with τ below {MUCH:g})",
        answers,
        most=True,
    )
