"""What the review says in words about scores and times of the teams: printed, ours, verdict."""

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from studies.field.entrants import TEAMS
from studies.field.printed import Match
from studies.field.results import MEASURES, Results, margin
from studies.field.show import REVIEW, row
from studies.verdicts import Answer, Comparison, above, against
from studies.writing import StudyPage, estimate

__all__ = ["NEAR_ONE", "apart", "say_words"]

FLAT = {"match": 50_000.0, "ratio": 0.3, "specks": 0.1}
"""Scores of the challenge (0 to 1,000,000), logarithms of ratios and SPECKS within this over ε count as flat."""
NEAR_ONE = 0.9
RANKS = 0.5
"""Difference of mean ranks that counts as none."""
RARE = 0.05
"""Share of repeats that counts as the work of chance alone."""
TIMES, MUCH_LONGER = 1.1, 2.0
"""Quotients of processor seconds: below the first there is no difference, above the second it is large."""
PARAMETRIC, OTHERS = ("PrivBayes", "RMcKenna", "UCLANESL"), ("DPSyn", "Gardn999", "pfr")
COMPUTING: Sequence[tuple[str, Sequence[str], Sequence[str], float]] = (
    ("Gardn999 has the fastest method", ["Gardn999"], ["DPSyn", "pfr", *PARAMETRIC], 1.0),
    ("pfr is quick (we say: faster than all but Gardn999)", ["pfr"], ["DPSyn", *PARAMETRIC], 1.0),
    (
        "DPSyn and RMcKenna are light to moderate, not as demanding as others (we say: than PrivBayes and UCLANESL, "
        "which Table 2 calls complex)",
        ["DPSyn", "RMcKenna"],
        ["PrivBayes", "UCLANESL"],
        1.0,
    ),
    ("PrivBayes takes more than others (we say: than all but UCLANESL)", [*OTHERS, "RMcKenna"], ["PrivBayes"], 1.0),
    ("UCLANESL takes most of all", [*OTHERS, "PrivBayes", "RMcKenna"], ["UCLANESL"], 1.0),
    (
        "parametric methods are generally much more demanding than non-parametric ones (we say: in most pairs more "
        f"than {MUCH_LONGER:g} times)",
        OTHERS,
        PARAMETRIC,
        MUCH_LONGER,
    ),
)
"""What is said about computing, the teams that are said to take less, those that take more, and how many times."""


def say_words(page: StudyPage, results: Results, matches: Mapping[int, Match]) -> None:
    """All rows."""
    _flat(page, results, matches[2])
    _rising(page, results, matches[3])
    _falling(page, results, matches[3])
    _match_two_trees(page, results, matches[2])
    _match_three_trees(page, results, matches[3])
    _close(page, results, (matches[2], matches[3]))
    _by_chance(page, results, (matches[2], matches[3]))
    _recommended(page, results, tuple(matches.values()))
    _well(page, results, tuple(matches.values()))
    _simple(page, results, (matches[1], matches[2]))
    _demanding(page, results, tuple(dict.fromkeys(match.bench for match in matches.values())))
    _not_run(page)


def apart(one: Comparison) -> Comparison:
    """A similarity turned round: whether the two are apart by more than the margin for sure."""
    turned: dict[Answer, Answer] = {"yes": "no", "no": "yes"}
    return replace(one, answer=turned.get(one.answer, one.answer))


def _flat(page: StudyPage, results: Results, match: Match) -> None:
    for measure in (match.score, *REVIEW):
        if not results.defined(match.bench, measure):
            continue
        limit = _limit(measure)
        answers = [results.level_change(match.bench, measure, method, limit) for method in match.methods]
        name = "scores of the challenge" if measure == match.score else MEASURES[measure].name
        row(page, f"Match 2: {name} fairly flat over ε (we say: at its two ends within {limit:,g})", answers)
    page.find(
        "Match 2: scores and measures are flat because ε is very small and its range narrow",
        "whether ours are flat at these ε: the rows above",
        "cannot be checked: the fire calls were not run at a larger ε",
    )


def _limit(measure: str) -> float:
    return next(value for name, value in FLAT.items() if name in measure)


def _rising(page: StudyPage, results: Results, match: Match) -> None:
    one = TEAMS["UCLANESL"]
    others = [method for method in match.methods if method != one]
    limit = _limit(match.score)
    rises = [results.change(match.bench, match.score, method) for method in others]
    row(page, "Match 3: scores increase with ε (UCLANESL: see below)", rises)
    row(
        page,
        f"Match 3: they increase slightly (we say: by less than {limit:,g}, our bound for flat)",
        [results.level_change(match.bench, match.score, method, limit) for method in others],
    )
    page.find(
        "Match 3: the score of UCLANESL increases on Arizona, not on Vermont",
        f"on our survey, from the smallest ε to the largest: {results.change(match.bench, match.score, one).gap}",
        "cannot be compared: one table stands for both states",
    )


def _falling(page: StudyPage, results: Results, match: Match) -> None:
    for measure in REVIEW:
        if results.defined(match.bench, measure):
            answers = [results.change(match.bench, measure, method) for method in match.methods]
            row(page, f"Match 3: {MEASURES[measure].name} generally decreases as ε increases", answers, most=True)


def _match_two_trees(page: StudyPage, results: Results, match: Match) -> None:
    """What CART says of the teams behind pfr, which it is said to put first."""
    rest = [TEAMS[team] for team in ("PrivBayes", "RMcKenna", "Gardn999")]
    bench, syn = match.bench, TEAMS["DPSyn"]
    near = margin("cart_specks")
    better = [results.against(bench, "cart_specks", syn, other) for other in rest]
    row(page, "Match 2, CART SPECKS: DPSyn is better than PrivBayes, RMcKenna and Gardn999", better)
    barely = [results.within(bench, "cart_specks", other, syn, near) for other in rest]
    row(page, f"Match 2, CART SPECKS: but barely (we say: within {near:g})", barely)
    _not_told_apart(page, results, match, rest)
    if not results.defined(bench, "cart_ratio"):
        return
    far = margin("cart_ratio")
    pairs = itertools.combinations([syn, *rest], 2)
    answers = [apart(results.within(bench, "cart_ratio", *pair, far)) for pair in pairs]
    row(
        page, f"Match 2: CART pMSE-ratio clearly separates the teams behind pfr (we say: by more than {far:g})", answers
    )
    own, *others = results.paired(bench, "cart_ratio", syn, *(one for one in match.methods if one != syn))
    mean = [statistics.fmean(values) for values in zip(*others, strict=True)]
    row(
        page,
        "Match 2: CART pMSE-ratio finds DPSyn among the better teams (we say: better than the mean of the other four)",
        [above(mean, own, far)],
    )


def _match_three_trees(page: StudyPage, results: Results, match: Match) -> None:
    _not_told_apart(page, results, match, [TEAMS[team] for team in ("PrivBayes", "UCLANESL", "Gardn999")])


def _not_told_apart(page: StudyPage, results: Results, match: Match, rest: Sequence[str]) -> None:
    """CART SPECKS of the last three teams: all near 1, and so near each other."""
    team_of = {method: team for team, method in TEAMS.items()}
    named, near = ", ".join(team_of[method] for method in rest), margin("cart_specks")
    values = {method: results.over_epsilons(match.bench, "cart_specks", method) for method in rest}
    row(
        page,
        f"Match {match.number}, CART SPECKS: {named} are close to 1 (we say: above {NEAR_ONE:g})",
        [against(values[method], NEAR_ONE) for method in rest],
        ", ".join(f"{team_of[method]} {estimate(values[method])}" for method in rest),
    )
    pairs = itertools.combinations(rest, 2)
    row(
        page,
        f"Match {match.number}, CART SPECKS: they cannot be told from one another (we say: within {near:g})",
        [results.within(match.bench, "cart_specks", *pair, near) for pair in pairs],
    )


def _close(page: StudyPage, results: Results, matches: Sequence[Match]) -> None:
    """Neighbours in our order of the teams: whether most are within the margin."""
    answers, limit = [], margin("match2")
    for match in matches:
        ranks = results.ranks(match.bench, match.score, match.methods)
        order = sorted(match.methods, key=lambda method: ranks[method])
        pairs = itertools.pairwise(order)
        answers += [results.within(match.bench, match.score, *pair, limit) for pair in pairs]
    printed = f"many entries are very close in accuracy (we say: most neighbours in our order within {limit:,g})"
    row(page, printed, answers, "Matches 2 and 3", most=True)


def _by_chance(page: StudyPage, results: Results, matches: Sequence[Match]) -> None:
    """How often a single repeat orders the teams in another way than the mean does."""
    answers, parts = [], []
    for match in matches:
        ranks = results.ranks(match.bench, match.score, match.methods)
        expected = [ranks[name] for name in match.methods]
        orders = results.ranks_by_repeat(match.bench, [match.score], match.methods)
        other = [float(order[0] != expected) for order in orders.values()]
        answers.append(against(other, RARE))
        parts.append(f"Match {match.number}: {sum(other):.0f} of {len(other)} repeats")
    row(
        page,
        "slight changes or even randomness could lead to a difference in ranking (we say: more than "
        f"{100 * RARE:g} % of the repeats order the teams otherwise than the mean does)",
        answers,
        ", ".join(parts),
    )


def _recommended(page: StudyPage, results: Results, matches: Sequence[Match]) -> None:
    """Mean rank over the matches in which a team took part, repeat by repeat."""
    orders = [results.ranks_by_repeat(match.bench, [match.score], match.methods) for match in matches]
    common = [repeat for repeat in orders[0] if all(repeat in order for order in orders)]
    means = {}
    for method in TEAMS.values():
        own = [
            (order, match.methods.index(method))
            for order, match in zip(orders, matches, strict=True)
            if method in match.methods
        ]
        means[method] = [statistics.fmean(order[repeat][0][place] for order, place in own) for repeat in common]
    best = [TEAMS["DPSyn"], TEAMS["RMcKenna"]]
    answers = [above(means[other], means[team], RANKS) for team in best for other in means if other not in best]
    order = sorted(means, key=lambda method: statistics.fmean(means[method]))
    shown = ", ".join(f"{method} {estimate(means[method])}" for method in order)
    row(
        page,
        "DPSyn and RMcKenna are the overall best (we say: in mean rank over a team's matches; the review also counts "
        "ease of use and availability)",
        answers,
        shown,
    )


def _well(page: StudyPage, results: Results, matches: Sequence[Match]) -> None:
    """Whether a team's method beats the one that knows single columns only."""
    claims = {"DPSyn": "consistently performs well", "Gardn999": "performs well", "PrivBayes": "performs fairly well"}
    for team, said in claims.items():
        own = [match for match in matches if TEAMS[team] in match.methods]
        row(
            page,
            f"{team} {said} (we say: a higher score than `independent`, which knows single columns only)",
            [results.against(match.bench, match.score, TEAMS[team], "independent") for match in own],
            f"Matches {', '.join(str(match.number) for match in own)}",
        )


def _simple(page: StudyPage, results: Results, matches: Sequence[Match]) -> None:
    """Whether pfr is nowhere worse than the parametric teams by more than the margin."""
    answers, limit = [], margin("match2")
    for match in matches:
        for method in (TEAMS[team] for team in PARAMETRIC if TEAMS[team] in match.methods):
            own, other = results.paired(match.bench, match.score, TEAMS["pfr"], method)
            answers.append(against([one - two for one, two in zip(own, other, strict=True)], -limit))
    row(
        page,
        "Matches 1 and 2: pfr shows that simpler methods with public knowledge do as well as more complicated ones "
        f"(we say: its score at most {limit:,g} below those of the parametric teams; leads count from there)",
        answers,
    )


def _demanding(page: StudyPage, results: Results, benches: Sequence[str]) -> None:
    """What Section 3 and its Tables 1 and 2 say about computing, by the processor seconds of our programs."""
    spent = {team: [results.times(bench, method) for bench in benches] for team, method in TEAMS.items()}
    seconds = ", ".join(
        f"{team} {' and '.join(f'{results.seconds(bench, method):.2f}' for bench in benches)}"
        for team, method in TEAMS.items()
    )
    for printed, fast, slow, times in COMPUTING:
        answers = [
            _longer(spent[more][place], spent[less][place], times)
            for less in fast
            for more in slow
            for place in range(len(benches))
        ]
        named = f"logarithms of processor seconds; a table took ({' and '.join(benches)}) {seconds}"
        more = named if printed == COMPUTING[0][0] else ""
        row(page, f"Computing: {printed}", answers, more, most=times > 1)
    page.find("Computing: UCLANESL needs much memory", "not measured", "cannot be checked: the runs keep no memory")


def _longer(slow: Sequence[float], fast: Sequence[float], times: float) -> Comparison:
    """Whether the first takes longer than so many times the second, by logarithms of seconds."""
    return above([one - math.log(times) for one in slow], fast, math.log(TIMES) if times == 1 else 0.0)


def _not_run(page: StudyPage) -> None:
    page.find(
        "pfr would perform poorly without public knowledge",
        "no such run",
        "cannot be checked: `pfr` had public groups in all runs",
    )
    page.find(
        "complex data need more ε; structural missing values and many variables greatly increase the difficulty",
        "no such run",
        "cannot be checked: no table ran with more or fewer columns or without its missing values, and none is simple",
    )
