"""What the review says in words about its results: printed, ours, verdict."""

import itertools
import statistics
from collections.abc import Sequence

from scipy import stats

from studies.field.entrants import TEAMS
from studies.field.results import MEASURES, Results
from studies.verdicts import Answer, Comparison, above, against, alike, count_of, range_of, verdict
from studies.writing import StudyPage, estimate

__all__ = ["say_words"]

REVIEW = ("cart_ratio", "cart_specks", "logistic_ratio", "logistic_specks")
FLAT = {"match": 50_000.0, "ratio": 0.3, "specks": 0.1}
"""Scores of the challenge (0 to 1,000,000), logarithms of ratios and SPECKS within this over ε count as flat."""
NEAR_ONE, POOR, WELL, MUCH = 0.9, 0.3, 0.7, 0.5
RANKS = 0.5
"""Difference of mean ranks that counts as none."""
TAU = 0.1
"""Difference of Kendall's τ that counts as none."""


def say_words(page: StudyPage, results: Results, fire: str, census: str) -> None:
    """All rows."""
    last = "match3" if results.defined(census, "match3") else "match2"
    _flat(page, results, fire)
    _rising(page, results, census, last)
    _falling(page, results, census)
    _near_one(page, results, fire)
    _separated(page, results, fire)
    _prediction(page, results, (fire, 2, "match2"), "cart", "logistic")
    _prediction(page, results, (census, 3, last), "logistic", "cart")
    _poor_to_moderate(page, results, ((fire, "match2"), (census, last)))
    _by_chance(page, results, ((fire, "match2"), (census, last)))
    _recommended(page, results, ((fire, "match1"), (fire, "match2"), (census, last)))
    _demanding(page, results, (fire, census))
    _disagreement(page, results, fire, census)


def _row(page: StudyPage, printed: str, answers: Sequence[Comparison], more: str = "", *, most: bool = False) -> None:
    text = f"{count_of(answers)} ({range_of(answers)})"
    page.find(printed, text + (f"; {more}" if more else ""), verdict(answers, most=most))


def _teams_here(results: Results, bench: str) -> list[str]:
    return [method for method in TEAMS.values() if method in results.methods(bench)]


def _flat(page: StudyPage, results: Results, bench: str) -> None:
    for measure in ("match2", *REVIEW):
        if not results.defined(bench, measure):
            continue
        limit = next(value for name, value in FLAT.items() if name in measure)
        ends = results.epsilons(bench)[-1], results.epsilons(bench)[0]
        answers = []
        for method in _teams_here(results, bench):
            most, least = (results.values(bench, measure, method, epsilon) for epsilon in ends)
            answers.append(alike(most, least, limit))
        name = "scores of the challenge" if measure == "match2" else MEASURES[measure].name
        _row(page, f"Match 2: {name} fairly flat over ε (we say: at its two ends within {limit:,g})", answers)


def _rising(page: StudyPage, results: Results, bench: str, measure: str) -> None:
    answers = [results.change(bench, measure, method) for method in _teams_here(results, bench)]
    _row(page, "Match 3: scores increase slightly with ε (but for UCLANESL on one table)", answers)


def _falling(page: StudyPage, results: Results, bench: str) -> None:
    for measure in REVIEW:
        if results.defined(bench, measure):
            answers = [results.change(bench, measure, method) for method in _teams_here(results, bench)]
            _row(page, f"Match 3: {MEASURES[measure].name} generally decreases as ε increases", answers, most=True)


def _near_one(page: StudyPage, results: Results, bench: str) -> None:
    found = {method: results.over_epsilons(bench, "cart_specks", method) for method in _teams_here(results, bench)}
    answers = [
        against(values, NEAR_ONE) for method, values in found.items() if method not in (TEAMS["pfr"], TEAMS["DPSyn"])
    ]
    answers.append(against(found[TEAMS["pfr"]], NEAR_ONE, at_least=False))
    shown = ", ".join(f"{method} {estimate(values)}" for method, values in found.items())
    _row(
        page,
        f"Match 2, CART SPECKS: pfr is apart, DPSyn barely, the rest is close to 1 (we say: above {NEAR_ONE:g})",
        answers,
        shown,
    )


def _separated(page: StudyPage, results: Results, bench: str) -> None:
    """Whether CART pMSE-ratio tells the teams behind the first apart: every pair by more than the margin."""
    if not results.defined(bench, "cart_ratio"):
        return
    names = [TEAMS[team] for team in ("Gardn999", "DPSyn", "RMcKenna", "PrivBayes")]
    answers = []
    for first, second in itertools.combinations([name for name in names if name in results.methods(bench)], 2):
        one = results.against(bench, "cart_ratio", first, second)
        apart: Answer = "yes" if one.answer in ("yes", "no") else "no" if one.answer == "same" else "open"
        answers.append(Comparison(one.gap, apart, one.margin, lead=False))
    _row(page, "Match 2: CART pMSE-ratio clearly separated the remaining teams", answers)


def _prediction(page: StudyPage, results: Results, where: tuple[str, int, str], first: str, second: str) -> None:
    """Whether one classifier's orders are nearer to the challenge's than the other's, repeat by repeat."""
    bench, match, measure = where
    teams, kinds = _teams_here(results, bench), (first, second)
    forms = [one for one in ("ratio", "specks") if all(results.defined(bench, f"{kind}_{one}") for kind in kinds)]
    found = {}
    for kind in kinds:
        taus = [results.agreements(bench, measure, f"{kind}_{form}", teams) for form in forms]
        found[kind] = [statistics.fmean(row) for row in zip(*taus, strict=True)]
    shown = ", ".join(f"{_kind(kind)} {estimate(taus)}" for kind, taus in found.items())
    _row(
        page,
        f"Match {match}: {_kind(first)} predicts the challenge's order better than {_kind(second)}",
        [above(found[first], found[second], TAU)],
        f"Kendall's τ with our match score: {shown}",
    )


def _kind(kind: str) -> str:
    return "logistic regression" if kind == "logistic" else "CART"


def _poor_to_moderate(page: StudyPage, results: Results, scored: Sequence[tuple[str, str]]) -> None:
    taus = {
        f"{bench}, {MEASURES[measure].name}": results.agreements(bench, score, measure, _teams_here(results, bench))
        for bench, score in scored
        for measure in REVIEW
        if results.defined(bench, measure)
    }
    order = sorted(taus, key=lambda name: statistics.fmean(taus[name]))
    poor = against(taus[order[0]], POOR, at_least=False).answer == "yes"
    well = against(taus[order[-1]], WELL).answer == "yes"
    page.find(
        "the measures predict the challenge's order from poorly to moderately well "
        f"(we say: Kendall's τ from below {POOR:g} to {WELL:g})",
        "; ".join(f"{name}: {estimate(taus[name])}" for name in (order[0], order[-1])),
        "confirmed, and some do better" if poor and well else "confirmed" if poor else "not decided",
    )


def _by_chance(page: StudyPage, results: Results, scored: Sequence[tuple[str, str]]) -> None:
    """How often a single repeat orders the teams in another way than the mean does."""
    parts, other = [], 0
    for bench, measure in scored:
        teams = _teams_here(results, bench)
        expected = [results.ranks(bench, measure, teams)[name] for name in teams]
        orders = [results.scores_of(bench, measure, repeat, teams) for repeat in results.repeats(bench)]
        different = sum(order is not None and list(stats.rankdata(order)) != expected for order in orders)
        parts.append(f"{bench}: {different} of {len(orders)} repeats put the entries in another order than the mean")
        other += different
    page.find(
        "many entries are close: slight changes or even randomness could lead to a difference in ranking",
        "; ".join(parts),
        "confirmed" if other else "not seen",
    )


def _recommended(page: StudyPage, results: Results, scored: Sequence[tuple[str, str]]) -> None:
    """Mean rank over the three matches, repeat by repeat."""
    everywhere = [set(results.methods(bench)) for bench, _ in scored]
    teams = [one for one in _teams_here(results, scored[0][0]) if all(one in here for here in everywhere)]
    ranks: dict[str, list[float]] = {team: [] for team in teams}
    for repeat in results.repeats(scored[0][0]):
        orders = [results.scores_of(bench, measure, repeat, teams) for bench, measure in scored]
        for place, team in enumerate(teams):
            ranks[team].append(statistics.fmean(stats.rankdata(order)[place] for order in orders if order is not None))
    best = [TEAMS["DPSyn"], TEAMS["RMcKenna"]]
    answers = [above(ranks[other], ranks[team], RANKS) for team in best for other in teams if other not in best]
    order = sorted(teams, key=lambda team: statistics.fmean(ranks[team]))
    shown = ", ".join(f"{team} {estimate(ranks[team])}" for team in order)
    _row(page, "DPSyn and RMcKenna are the overall best", answers, f"mean rank over the three matches: {shown}")


def _demanding(page: StudyPage, results: Results, benches: Sequence[str]) -> None:
    where = list(dict.fromkeys(benches))
    teams = _teams_here(results, where[0])
    seconds = {team: statistics.fmean(results.seconds(bench, team) for bench in where) for team in teams}
    ours = max(seconds[TEAMS["DPSyn"]], seconds[TEAMS["RMcKenna"]])
    dearer = [team for team in teams if seconds[team] > ours]
    page.find(
        "the methods of DPSyn and RMcKenna are not as computationally demanding as others",
        "processor seconds for a table: " + ", ".join(f"{team} {spent:.1f}" for team, spent in seconds.items()),
        f"confirmed in part: against {', '.join(dearer)} only"
        if dearer
        else "refuted for our programs: they take longest",
    )


def _disagreement(page: StudyPage, results: Results, fire: str, census: str) -> None:
    answers, lowest = [], []
    for bench in dict.fromkeys((fire, census)):
        measures = [measure for measure in REVIEW if results.defined(bench, measure)]
        pairs = {pair: results.agreement(bench, *pair) for pair in itertools.combinations(measures, 2)}
        worst = min(pairs, key=lambda pair: pairs[pair])
        taus = results.agreements(bench, *worst)
        answers.append(against(taus, MUCH, at_least=False))
        lowest.append(f"{bench}: τ = {estimate(taus)} between {' and '.join(MEASURES[one].name for one in worst)}")
    printed = f"In a competition much depends on the choice of measures and classifier (we say: a τ below {MUCH:g})"
    _row(page, printed, answers, "lowest agreement over all methods: " + "; ".join(lowest))
