"""A row for every printed rank: printed, ours, verdict; what is said in words is in `words` and `predictions`.

A rank is decided by intervals. Among the methods that stand for the printed teams, a method that is clearly beaten by b
others and clearly beats w of them has a rank between 1 + b and n − w. Confirmed: only the printed rank is left.
Refuted: the printed rank is not among them. A tie: what keeps other ranks open are differences within the margin.
"""

from studies.field.entrants import MENDED, TEAMS
from studies.field.predictions import say_predictions
from studies.field.printed import PRINTED, Match, PrintedOrder
from studies.field.results import MEASURES, Results, margin
from studies.field.words import say_words
from studies.verdicts import Answer, kind_of
from studies.writing import StudyPage, estimate, table

__all__ = ["judge", "rank_between", "say_mended"]


def judge(page: StudyPage, results: Results, *, smoke: bool) -> None:
    """All rows; the smoke form reads its one table as if it were both."""
    matches = {
        order.match: Match(order.match, "voters" if smoke else order.bench, _measure(order, smoke=smoke))
        for order in PRINTED
        if order.table == 4
    }
    for order in PRINTED:
        match = matches[order.match]
        for place, team in enumerate(order.teams):
            printed = (
                f"Table {order.table}, Match {order.match}, {order.by}: {team} is {place + 1} of {len(order.teams)}"
            )
            page.find(printed, *_rank(results, match.bench, order, team, _measure(order, smoke=smoke)))
    say_words(page, results, matches)
    say_predictions(page, results, matches)


def say_mended(page: StudyPage, results: Results, *, smoke: bool) -> None:
    """Printed ranks that come out otherwise once the mended forms stand in the places of the entries."""
    mended = results.renamed({form: entry for entry, form in MENDED.items()})
    rows = []
    for order in PRINTED:
        bench, measure = "voters" if smoke else order.bench, _measure(order, smoke=smoke)
        for place, team in enumerate(order.teams):
            entered, offered = (_rank(one, bench, order, team, measure)[1] for one in (results, mended))
            if kind_of(entered) != kind_of(offered):
                which = f"Table {order.table}, Match {order.match}, {order.by}: {team} is {place + 1}"
                rows.append((which, entered, offered))
    page.say("### Printed ranks whose verdict hangs on it")
    number = sum(len(order.teams) for order in PRINTED)
    said = f"Of {number} printed ranks {len(rows)} have another verdict with the mended forms in the entries' places."
    page.say(said)
    if rows:
        page.say(table(("printed", "as entered", "as mended"), rows))


def _measure(order: PrintedOrder, *, smoke: bool) -> str:
    """The measure of an order; the smoke form's table has no incomes."""
    return "match2" if smoke and order.measure == "match3" else order.measure


def rank_between(
    results: Results, bench: str, measure: str, methods: list[str], method: str
) -> tuple[int, int, set[Answer]]:
    """The ranks that intervals leave open for a method among others, and the answers that leave them open."""
    answers = [results.against(bench, measure, method, other).answer for other in methods if other != method]
    return 1 + answers.count("no"), len(methods) - answers.count("yes"), set(answers) - {"yes", "no"}


def _rank(results: Results, bench: str, order: PrintedOrder, team: str, measure: str) -> tuple[str, str]:
    here = [TEAMS[one] for one in order.teams if TEAMS[one] in results.methods(bench)]
    if TEAMS[team] not in here:
        return "no runs of the method of this team", "cannot be compared"
    if not results.defined(bench, measure):
        return "the measure is undefined for some entries: no tree split under permuted labels", "cannot be compared"
    printed = 1 + [TEAMS[one] for one in order.teams if TEAMS[one] in here].index(TEAMS[team])
    low, high, left = rank_between(results, bench, measure, here, TEAMS[team])
    mean = estimate(results.over_epsilons(bench, measure, TEAMS[team]))
    found = results.ranks(bench, measure, here)[TEAMS[team]]
    among = "" if len(here) == len(order.teams) else f" (printed: {printed} of those {len(here)} that are here)"
    between = f"{low}" if low == high else f"{low} to {high}"
    level = f"{mean.mean:,.0f} ± {mean.half:,.0f}" if MEASURES[measure].higher else f"{mean.mean:.3f} ± {mean.half:.2g}"
    text = f"{found:g} of {len(here)} by means ({level}); intervals allow rank {between}{among}"
    return text, _decided(printed, low, high, left, measure)


def _decided(printed: int, low: int, high: int, left: set[Answer], measure: str) -> str:
    if not low <= printed <= high:
        return "refuted"
    if low == high:
        return "confirmed"
    return f"a tie: no difference larger than {margin(measure):,g}" if left == {"same"} else "not decided"
