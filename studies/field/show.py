"""The page of the study: what was run, curves over ε, orders of the methods, and how far the orders agree."""

import itertools
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from studies.field.entrants import ENTRANTS, MENDED, WGAN_STEPS, Knowledge
from studies.field.results import MARGINS, MEASURES, Results, compared
from studies.field.tables import Bench
from studies.verdicts import RULE, Comparison, count_of, range_of, verdict
from studies.writing import Estimate, StudyPage, table
from understudy.charts import Lines, Series
from understudy.evaluate.nist import MOST

__all__ = ["REVIEW", "describe", "judging", "row", "show"]

CHALLENGE = {"fire": ("match1", "match2"), "census": ("match1", "match2", "match3"), "voters": ("match1", "match2")}
REVIEW = ("cart_ratio", "cart_specks", "logistic_ratio", "logistic_specks")
BESIDE = ("common_ratio", "common_specks")
PANELS = ("complexity", "error", "columns")
"""Curves that decide no order: what Figures 2 and 4 draw beside the measures of CART, and single columns."""


def row(page: StudyPage, printed: str, answers: Sequence[Comparison], more: str = "", *, most: bool = False) -> None:
    """A statement and what the comparisons say about it."""
    text = f"{count_of(answers)} ({range_of(answers)})"
    page.find(printed, text + (f"; {more}" if more else ""), verdict(answers, most=most))


def judging(bench: str, results: Results) -> tuple[str, ...]:
    """The measures that order the methods of a table: its last match score, then those of the review."""
    wanted = (CHALLENGE[bench][-1], *REVIEW, *BESIDE)
    return tuple(measure for measure in wanted if results.defined(bench, measure))


def describe(page: StudyPage, benches: Mapping[str, Bench], repeats: int, results: Results) -> None:
    """What was run, on what, and what differs from the challenge and its review."""
    lines = []
    for bench in benches.values():
        per_set = ", ".join(f"{epsilon / bench.sets:.3g}" for epsilon in bench.epsilons)
        lines.append(
            f"* {bench.title}: {bench.private.num_rows:,} private and {bench.public.num_rows:,} public rows, "
            f"{len(bench.schema.columns)} columns; ε {', '.join(f'{one:g}' for one in bench.epsilons)} for "
            f"{bench.sets} sets, so {per_set} for each; δ = 1/n̂² = {bench.delta:.2g} where a method uses one; a column "
            f"enters a conjunction with probability {bench.probability:g}."
        )
    page.say(
        "Bowen and Snoke (2021) rank the entries of the 2018 challenge by its own scores and by pMSE-ratio and SPECKS "
        "(its Tables 4 to 6). The entries' files are not at hand; here their methods run again, "
        f"{repeats} synthetic tables for each method and ε, each at the ε of one set of the challenge. Under a team's "
        "name stands its entry as it was (“as entered”); what this package offers by default stands beside it (“as "
        "mended”) and decides no row about a team. Where intervals are shown, they are 95 % over these tables. The "
        "last edition had 20 tables for each method and ε, and mended forms under the names of four teams; all runs "
        "of this one are new, and how statements are read is as it was. A rank that is refuted below is refuted for "
        "these methods on these tables; the printed ones are those of other files."
    )
    page.say("\n".join(lines))
    page.say(
        "Public knowledge, as the challenge gave it by an earlier year or another state. Fire calls: January to June "
        "2016 is public, July to December private. Survey: Illinois is public, Ohio private. The list of marginals of "
        "`nist_mst` and `dpsyn` and the groups of `fieldgroups` come from the public part; `pfr` has the groups place, "
        "time, call (its outline names them) on fire calls, and the public groups on the survey. "
        "`mst`, `aim`, `privsyn` and `independent` are told nothing."
    )
    page.say(_differences())
    page.say(_entries())
    ran = {method for name in benches for method in results.methods(name)}
    for one in ENTRANTS:
        if one.name not in ran:
            page.say(f"Not among these runs: `{one.method}`, the method of team {one.team}, younger than they are.")
    page.say(
        f"{RULE} Margins: {MARGINS['match']:,.0f} in scores of the challenge (0 to 1,000,000), {MARGINS['ratio']:g} in "
        f"logarithms of pMSE-ratios, {MARGINS['specks']:g} in SPECKS. A rank: a method that is clearly beaten by b "
        "others and clearly beats w has a rank between 1 + b and n − w; confirmed if only the printed rank is left, "
        "refuted if it is not among them, a tie if what keeps several ranks open are differences within the margin. "
        "Statements about a match look at its five teams: Gardn999 did not compete in Match 1, UCLANESL not in Match "
        "2, pfr not in Match 3; their methods ran on all tables. “Repeats” are synthetic tables at all ε of a match; "
        "what a statement says about ranks is asked of every repeat, and holds if it does in more than half of them."
    )


def _differences() -> str:
    return (
        "What differs from the source. Columns are an extract (16 of 32 and of 35), so that both tables and all "
        "methods fit in one study. The fire calls are those of 2016 alone, with numbers already in 100 bins; codes of "
        "time that the private half-year cannot hold stay in the schema, as nobody told the methods. The survey stands "
        "in for the 1940 census, which is not public: areas for cities, wages in bins of 5,000 dollars. `fieldgroups` "
        "and `pfr` give pure ε. `pfr` is a reading of an outline, `privbayes nist` of a description. Propensity "
        "measures look at samples of rows and score the rows they were fitted to (the review: five folds, 70/30, "
        "divided by a formula for the in-sample case); pMSE is divided by its mean under permuted labels for both "
        "classifiers. The tree's complexity is chosen by cross-validation for each entry, as in the review; beside it "
        "stands one complexity for all entries. The tree's cross-validated error is a multiple of that of a tree "
        "without splits."
    )


def _entries() -> str:
    """What was changed of each entry, and what is not as it was even under the team's name."""
    body = [[_named(one.mends), one.name, one.changes] for one in ENTRANTS if one.mends]
    left = (
        "Not as they were, even as entered: noise is in whole numbers everywhere, domains are public, and the whole "
        "budget is used. `nist_mst` merges until its model fits where the source drops large tables, and its code "
        "lists of places are public; the list of marginals is that of a rule, not the team's. `dpsyn` has one list and "
        "one block instead of the team's, nothing reserved, and tables are drawn towards independence a little. "
        "`fieldgroups` has groups by a rule, and a group of which nothing is left is uniform. "
        f"`dpwgan` runs {WGAN_STEPS} critic steps, where the entry walked 20 times through the rows (20·n/64, about "
        "48,000 on fire calls): no GPU was at hand, and a processor takes ten minutes for one such table; rows are "
        "drawn by coins, gradients are cut jointly, wide columns enter as 12 ranges of codes, the rectifier's slope "
        "is 0.2 (0.01), starting weights give every range of codes its width. `privbayes nist` and `pfr` have no "
        "mended form: they are what a description and an outline say."
    )
    return "\n\n".join([table(("entry", "mended form", "what was changed"), body), left])


def show(
    page: StudyPage, bench: Bench, told: Knowledge, results: Results, yardstick: Mapping[str, float | None]
) -> None:
    """One table: curves, numbers, ranks, agreement."""
    page.say(f"## {bench.title}")
    listed = told.marginals.split(", ")
    page.say(
        f"From the public part: {len(listed)} marginals, {sum(one.count('×') == 2 for one in listed)} of three "
        f"columns; groups {told.groups.replace(chr(34), '')}."
    )
    for measure in dict.fromkeys((*CHALLENGE[bench.name], *REVIEW, *PANELS)):
        _curves(page, bench, results, measure)
    _numbers(page, bench, results, yardstick)
    _orders(page, bench, results)
    _agreement(page, bench, results)
    _mended(page, bench, results)
    _without_wages(page, bench, results)


def _mended(page: StudyPage, bench: Bench, results: Results) -> None:
    """The entries as they were beside their mended forms, by the last match score."""
    measure, body, curves = CHALLENGE[bench.name][-1], [], []
    here = [(entry, form) for entry, form in MENDED.items() if {entry, form} <= set(results.methods(bench.name))]
    for epsilon in results.epsilons(bench.name):
        for entry, form in here:
            levels = [results.level(bench.name, measure, one, epsilon) for one in (entry, form)]
            gap = compared(*(results.at(bench.name, measure, one, epsilon) for one in (form, entry)), measure).gap
            body.append([f"{epsilon:g}", _named(entry), *(_text(one, measure) for one in levels), _text(gap, measure)])
    for name in itertools.chain.from_iterable(here):
        levels = [results.level(bench.name, measure, name, epsilon) for epsilon in results.epsilons(bench.name)]
        curves.append(Series(name, results.epsilons(bench.name), tuple(MOST - level.mean for level in levels), (), ()))
    page.say(f"### {bench.title}: entries as they were, and as they are mended here")
    caption = f"{bench.title}: {drawn_name(measure)}, as entered and as mended; lower is better"
    upward = drawn_name(measure).split(" (")[0]
    page.figure(f"{bench.name}-mended", Lines(caption, "ε", upward, tuple(curves), logarithmic=True))
    page.say(table(("ε", "entry", "as entered", "as mended", "mended − entered"), body))


def _without_wages(page: StudyPage, bench: Bench, results: Results) -> None:
    """How often cities of the original have nobody who earns anything in a synthetic table, and what that changes."""
    runs = [one for one in results.records if one["bench"] == bench.name and one.get("wageless") is not None]
    if not runs:
        return
    touched = [one for one in runs if float(str(one["wageless"])) > 0]
    gaps = [float(str(one["regression"])) - float(str(one["regression_without"])) for one in touched]
    absent = sum(float(str(one["absent"])) > 0 for one in runs)
    parts = [
        f"The third score ranks cities in which nobody is known to earn anything (Gini index 1, pay gap 0), as the "
        f"official program does; it left them out before. {len(touched)} of {len(runs)} synthetic tables have such a "
        f"city; in {absent} a city does not occur at all."
    ]
    if touched:
        cities = [float(str(one["wageless"])) for one in touched]
        by_method = Counter(f"{one['entrant']} at ε = {float(str(one['epsilon'])):g}" for one in touched)
        parts.append(
            f"Where they do, they are {statistics.fmean(cities):.1f} cities on average ({max(cities):.0f} at most), "
            f"and the rule moves the third score by {min(gaps):+,.0f} to {max(gaps):+,.0f}, "
            f"{statistics.fmean(gaps):+,.0f} on average (the match score by a third of that). Tables: "
            f"{', '.join(f'{name} {number}' for name, number in by_method.items())}."
        )
    page.say(f"### {bench.title}: cities without wages")
    page.say(" ".join(parts))


def _curves(page: StudyPage, bench: Bench, results: Results, measure: str) -> None:
    if not results.defined(bench.name, measure):
        return
    epsilons = results.epsilons(bench.name)
    curves = []
    for method in _drawn(results.methods(bench.name)):
        levels = [results.level(bench.name, measure, method, epsilon) for epsilon in epsilons]
        if MEASURES[measure].higher:
            levels = [replace(level, mean=MOST - level.mean) for level in levels]
        ends = ((), ())
        if len(results.values(bench.name, measure, method, epsilons[0])) > 1:
            ends = tuple(level.low for level in levels), tuple(level.high for level in levels)
        curves.append(Series(method, epsilons, tuple(level.mean for level in levels), *ends))
    better = "" if measure in ("complexity", "error") else "lower is better; "
    caption = f"{bench.title}: {drawn_name(measure)}; {better}ε for all {bench.sets} sets; "
    caption += "other methods are in the table"
    upward = drawn_name(measure).split(" (")[0] if MEASURES[measure].higher else drawn_name(measure)
    stem = f"{bench.name}-{measure}".replace("_", "-")
    page.figure(stem, Lines(caption, "ε", upward, tuple(curves), logarithmic=True))


def drawn_name(measure: str) -> str:
    """What a curve shows: scores of which more is better are drawn as what they lack, so that lower is better."""
    return f"{MOST:,} − {MEASURES[measure].name}" if MEASURES[measure].higher else MEASURES[measure].name


def _drawn(methods: tuple[str, ...]) -> tuple[str, ...]:
    """Teams' methods and two yardsticks: more curves could not be told apart."""
    teams = {one.name for one in ENTRANTS if one.team}
    return tuple(method for method in methods if method in teams or method in ("privsyn", "independent"))


def _numbers(page: StudyPage, bench: Bench, results: Results, yardstick: Mapping[str, float | None]) -> None:
    shown = [one for one in (*CHALLENGE[bench.name], *REVIEW, *BESIDE) if results.defined(bench.name, one)]
    body = [
        [
            f"{epsilon:g}",
            method,
            *(_text(results.level(bench.name, measure, method, epsilon), measure) for measure in shown),
            f"{results.seconds(bench.name, method):.1f}",
        ]
        for epsilon in results.epsilons(bench.name)
        for method in results.methods(bench.name)
    ]
    lines = [MEASURES[measure].value(dict(yardstick)) for measure in shown]
    body.append(["", "private rows against private rows", *("" if one is None else f"{one:.4g}" for one in lines), ""])
    page.say(table(("ε", "method", *(MEASURES[one].name for one in shown), "CPU s"), body))


def _text(level: Estimate, measure: str) -> str:
    """Scores of the challenge as whole numbers, others with three digits."""
    if MEASURES[measure].higher:
        return f"{level.mean:,.0f} ± {level.half:,.0f}"
    return f"{level.mean:.3f} ± {level.half:.2g}"


def _orders(page: StudyPage, bench: Bench, results: Results) -> None:
    """Tables 5 and 6 of the review in our numbers, and the ranks as a figure."""
    measures = judging(bench.name, results)
    ranks = {measure: results.ranks(bench.name, measure) for measure in measures}
    methods = results.methods(bench.name)
    orders = {measure: sorted(methods, key=lambda one: ranks[measure][one]) for measure in measures}
    body = [[place + 1, *(_named(orders[measure][place]) for measure in measures)] for place in range(len(methods))]
    page.say(f"### {bench.title}: which measure ranks which method first")
    page.say("By the mean over all ε; in brackets the team whose entry the method stands for.")
    page.say(table(("rank", *(MEASURES[one].name for one in measures)), body))
    places = tuple(float(place + 1) for place in range(len(measures)))
    words = "; ".join(f"{place + 1} {MEASURES[measure].name}" for place, measure in enumerate(measures))
    for stem, teams in (("ranks", True), ("ranks-beside", False)):
        shown = [one for one in methods if (_named(one) != one) == teams]
        curves = [Series(one, places, tuple(ranks[measure][one] for measure in measures)) for one in shown]
        which = "methods of the teams" if teams else "methods beside them"
        caption = f"{bench.title}: rank among all {len(methods)} methods by each measure (1 is best), {which}"
        page.figure(f"{bench.name}-{stem}", Lines(f"{caption}. Measures: {words}", "measure", "rank", tuple(curves)))


def _named(method: str) -> str:
    team = next((one.team for one in ENTRANTS if one.name == method), "")
    return f"{method} ({team})" if team else method


def _agreement(page: StudyPage, bench: Bench, results: Results) -> None:
    measures = judging(bench.name, results)
    body = [
        [MEASURES[first].name, *(f"{results.agreement(bench.name, first, second):.2f}" for second in measures)]
        for first in measures
    ]
    page.say(f"### {bench.title}: how far the orders agree (Kendall's τ)")
    page.say(table(("", *(MEASURES[one].name for one in measures)), body))
