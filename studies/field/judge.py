"""A row for every printed rank and for what the review says in words: printed, ours, verdict.

A rank is decided by intervals. Among the methods that stand for the printed teams, a method that is clearly beaten by b
others and clearly beats w of them has a rank between 1 + b and n − w. Confirmed: only the printed rank is left.
Refuted: the printed rank is not among them. Else not decided.
"""

import itertools
import math
import statistics

from studies.field.entrants import TEAMS
from studies.field.printed import PRINTED, PrintedOrder
from studies.field.results import MEASURES, Results
from studies.verdicts import Answer, above, alike, count_of
from studies.writing import StudyPage, estimate

__all__ = ["judge", "rank_between"]

REVIEW = ("cart_ratio", "cart_specks", "logistic_ratio", "logistic_specks")
FLAT = 50_000.0
"""Scores of the challenge (0 to 1,000,000) within this of each other count as flat."""
NEAR_ONE = 0.9


def judge(page: StudyPage, results: Results, *, smoke: bool) -> None:
    """All rows; the smoke form reads its one table as if it were both."""
    for order in PRINTED:
        bench = "voters" if smoke else order.bench
        for place, team in enumerate(order.teams):
            printed = (
                f"Table {order.table}, Match {order.match}, {order.by}: {team} is {place + 1} of {len(order.teams)}"
            )
            page.find(printed, *_rank(results, bench, order, team, smoke=smoke))
    _words(page, results, "voters" if smoke else "fire", "voters" if smoke else "census")


def rank_between(results: Results, bench: str, measure: str, methods: list[str], method: str) -> tuple[int, int]:
    """The ranks that intervals leave open for a method among others."""
    own = results.over_epsilons(bench, measure, method)
    beaten = beats = 0
    for other in methods:
        if other != method:
            answer = above(own, results.over_epsilons(bench, measure, other))
            better = answer == ("yes" if MEASURES[measure].higher else "no")
            beats += better
            beaten += answer != "open" and not better
    return 1 + beaten, len(methods) - beats


def _rank(results: Results, bench: str, order: PrintedOrder, team: str, *, smoke: bool) -> tuple[str, str]:
    measure = "match2" if smoke and order.measure == "match3" else order.measure
    here = [TEAMS[one] for one in order.teams if TEAMS[one] in results.methods(bench)]
    if TEAMS[team] not in here:
        return "no runs of the method of this team", "cannot be compared"
    if not results.defined(bench, measure):
        return "the measure is undefined for some entries: no tree split under permuted labels", "cannot be compared"
    printed = 1 + [TEAMS[one] for one in order.teams if TEAMS[one] in here].index(TEAMS[team])
    low, high = rank_between(results, bench, measure, here, TEAMS[team])
    mean = estimate(results.over_epsilons(bench, measure, TEAMS[team]))
    found = results.ranks(bench, measure, here)[TEAMS[team]]
    among = "" if len(here) == len(order.teams) else f" (printed: {printed} of those {len(here)} that are here)"
    between = f"{low}" if low == high else f"{low} to {high}"
    level = f"{mean.mean:,.0f} ± {mean.half:,.0f}" if MEASURES[measure].higher else f"{mean.mean:.3f} ± {mean.half:.2g}"
    text = f"{found:g} of {len(here)} by means ({level}); intervals allow rank {between}{among}"
    verdict = "not decided" if low <= printed <= high else "refuted"
    return text, "confirmed" if (low, high) == (printed, printed) else verdict


def _words(page: StudyPage, results: Results, fire: str, census: str) -> None:
    """What the result sections say in words."""
    last = "match3" if results.defined(census, "match3") else "match2"
    _flat(page, results, fire)
    _rising(page, results, census, last)
    _falling(page, results, census)
    _near_one(page, results, fire)
    for bench, match, measure, first, second in (
        (fire, 2, "match2", "cart", "logistic"),
        (census, 3, last, "logistic", "cart"),
    ):
        _prediction(page, results, (bench, match, measure), first, second)
    _recommended(page, results, fire, census, last)
    _disagreement(page, results, fire, census)


def _teams_here(results: Results, bench: str) -> list[str]:
    return [method for method in TEAMS.values() if method in results.methods(bench)]


def _flat(page: StudyPage, results: Results, bench: str) -> None:
    ends = results.epsilons(bench)[-1], results.epsilons(bench)[0]
    answers: list[Answer] = []
    gains = []
    for method in _teams_here(results, bench):
        most, least = (results.values(bench, "match2", method, epsilon) for epsilon in ends)
        answers.append(alike(most, least, FLAT))
        gains.append(statistics.fmean(most) - statistics.fmean(least))
    text = (
        f"from ε {ends[1]:g} to {ends[0]:g} the match score gains {min(gains):,.0f} to {max(gains):,.0f}: flat (within "
    )
    text += f"{FLAT:,.0f}) {count_of(answers)}"
    page.find("Match 2: scores are fairly flat over ε", text, _all(answers))


def _rising(page: StudyPage, results: Results, bench: str, measure: str) -> None:
    ends = results.epsilons(bench)[-1], results.epsilons(bench)[0]
    answers = [
        above(*(results.values(bench, measure, method, epsilon) for epsilon in ends))
        for method in _teams_here(results, bench)
    ]
    page.find("Match 3: scores increase slightly with ε", f"larger at the largest ε {count_of(answers)}", _all(answers))


def _falling(page: StudyPage, results: Results, bench: str) -> None:
    ends = results.epsilons(bench)[0], results.epsilons(bench)[-1]
    for measure in REVIEW:
        if results.defined(bench, measure):
            answers = [
                above(*(results.values(bench, measure, method, epsilon) for epsilon in ends))
                for method in _teams_here(results, bench)
            ]
            text = f"smaller at the largest ε than at the smallest {count_of(answers)}"
            page.find(f"Match 3: {MEASURES[measure].name} generally decreases as ε increases", text, _most(answers))


def _near_one(page: StudyPage, results: Results, bench: str) -> None:
    means = {
        method: statistics.fmean(results.over_epsilons(bench, "cart_specks", method))
        for method in _teams_here(results, bench)
    }
    near = [method for method, mean in means.items() if mean > NEAR_ONE]
    text = f"above {NEAR_ONE:g}: {len(near)} of {len(means)}; " + ", ".join(f"{one} {means[one]:.2f}" for one in means)
    others = [method for method in means if method not in ("pfr", "dpsyn")]
    verdict = "confirmed" if all(method in near for method in others) and "pfr" not in near else "refuted"
    page.find("Match 2, CART SPECKS: all but the first are close to 1 and cannot be told apart", text, verdict)


def _prediction(page: StudyPage, results: Results, where: tuple[str, int, str], first: str, second: str) -> None:
    """Whether one classifier's orders are nearer to the challenge's than the other's."""
    bench, match, measure = where
    teams = _teams_here(results, bench)
    found = {
        kind: [
            results.agreement(bench, measure, f"{kind}_{form}", teams)
            for form in ("ratio", "specks")
            if results.defined(bench, f"{kind}_{form}")
        ]
        for kind in (first, second)
    }
    shown = "; ".join(f"{kind} " + ", ".join(f"{tau:.2f}" for tau in taus) for kind, taus in found.items())
    usable = all(taus and not any(map(math.isnan, taus)) for taus in found.values())
    verdict = "not decided"
    if usable and min(found[first]) > max(found[second]):
        verdict = "confirmed"
    elif usable and max(found[first]) < min(found[second]):
        verdict = "refuted"
    printed = f"Match {match}: {_kind(first)} predicts the challenge's order better than {_kind(second)}"
    page.find(printed, f"Kendall's τ with our match score (pMSE-ratio, SPECKS): {shown}", verdict)


def _kind(kind: str) -> str:
    return "logistic regression" if kind == "logistic" else "CART"


def _recommended(page: StudyPage, results: Results, fire: str, census: str, last: str) -> None:
    scored = ((fire, "match1"), (fire, "match2"), (census, last))
    teams = [method for method in _teams_here(results, fire) if method in results.methods(census)]
    means = {
        method: statistics.fmean(results.ranks(bench, measure, teams)[method] for bench, measure in scored)
        for method in teams
    }
    order = sorted(means, key=lambda method: means[method])
    text = "mean rank over the three matches: " + ", ".join(f"{method} {means[method]:.1f}" for method in order)
    verdict = "confirmed" if set(order[:2]) == {TEAMS["DPSyn"], TEAMS["RMcKenna"]} else "refuted"
    page.find("DPSyn and RMcKenna are the overall best", text, verdict)


def _disagreement(page: StudyPage, results: Results, fire: str, census: str) -> None:
    lowest = []
    for bench in dict.fromkeys((fire, census)):
        measures = [measure for measure in REVIEW if results.defined(bench, measure)]
        pairs = {pair: results.agreement(bench, *pair) for pair in itertools.combinations(measures, 2)}
        worst = min(pairs, key=lambda pair: pairs[pair])
        lowest.append(
            (
                pairs[worst],
                f"{bench}: τ = {pairs[worst]:.2f} between {' and '.join(MEASURES[one].name for one in worst)}",
            )
        )
    verdict = "confirmed" if all(tau < 0.5 for tau, _ in lowest) else "not decided"
    text = "lowest agreement over all methods: " + "; ".join(words for _, words in lowest)
    page.find("In a competition much depends on the choice of measures and classifier", text, verdict)


def _all(answers: list[Answer]) -> str:
    if "no" in answers:
        return "refuted"
    return "confirmed" if all(answer == "yes" for answer in answers) else "not decided"


def _most(answers: list[Answer]) -> str:
    half = len(answers) / 2
    return "confirmed" if answers.count("yes") > half else "refuted" if answers.count("no") >= half else "not decided"
