"""Our reading of the field, in words whose numbers come from the runs."""

from collections import Counter

from studies.field.entrants import TEAMS
from studies.field.results import MEASURES, Results
from studies.verdicts import kind_of
from studies.writing import StudyPage

__all__ = ["reading"]


def reading(page: StudyPage, results: Results, fire: str, census: str) -> str:
    """What agrees, what differs, and by how much."""
    ranks = [finding for finding in page.findings if finding.printed.startswith("Table ")]
    words = [finding for finding in page.findings if not finding.printed.startswith("Table ")]
    lines = [
        f"* Of {len(ranks)} printed ranks: {_tally([one.verdict for one in ranks])}. Of {len(words)} statements in "
        f"words: {_tally([one.verdict for one in words])}. The order of the challenge is that of its entries' files; "
        "it does not carry over to these programs on these tables."
    ]
    for bench, measure in ((fire, "match2"), (census, "match3" if results.defined(census, "match3") else "match2")):
        lines.append(_ends(results, bench, measure))
    if results.defined(fire, "cart_ratio"):
        lines.append(_low(results, fire))
    return "\n".join(["## Reading", "", *lines])


def _tally(verdicts: list[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in Counter(map(kind_of, verdicts)).most_common())


def _ends(results: Results, bench: str, measure: str) -> str:
    """The best at the smallest and at the largest ε, beside the method that knows single columns only."""
    teams = [one for one in TEAMS.values() if one in results.methods(bench)]
    parts = []
    for epsilon in (results.epsilons(bench)[0], results.epsilons(bench)[-1]):
        means = {one: results.level(bench, measure, one, epsilon) for one in results.methods(bench)}
        order = sorted(means, key=lambda one: -means[one].mean)
        team = next(one for one in order if one in teams)
        second = f", of the teams {team} ({means[team]})" if team != order[0] else ""
        parts.append(
            f"at ε = {epsilon:g} {order[0]} is first ({means[order[0]]}){second}; `independent`, which knows single "
            f"columns only, reaches {means['independent']}"
        )
    return f"* {bench}, {MEASURES[measure].name}: {'; '.join(parts)}."


def _low(results: Results, bench: str) -> str:
    """A ratio near 1 with SPECKS near 1: what trees say where everything is noise."""
    least = results.epsilons(bench)[0]
    first = min(results.methods(bench), key=lambda one: results.level(bench, "cart_ratio", one, least).mean)
    names = "cart_ratio", "cart_specks", "logistic_ratio"
    ratio, specks, other = (results.level(bench, name, first, least) for name in names)
    return (
        f"* {bench} at ε = {least:g}: CART pMSE-ratio calls {first} nearest (log {ratio}) although a tree tells its "
        f"rows apart almost without fault (SPECKS {specks}). Its pMSE is near the largest possible, so the trees on "
        "permuted labels by which it is divided must be nearly as good: they fit what they were grown on. The logistic "
        f"ratio is not deceived (log {other})."
    )
