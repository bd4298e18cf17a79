"""Our reading of the field, in words whose numbers come from the runs."""

from collections import Counter

from studies.field.printed import Match
from studies.field.results import MEASURES, Results
from studies.field.words import NEAR_ONE
from studies.verdicts import kind_of
from studies.writing import StudyPage

__all__ = ["reading"]


def reading(page: StudyPage, results: Results, fire: str, census: str) -> str:
    """What agrees, what differs, and by how much."""
    ranks = [finding for finding in page.findings if finding.printed.startswith("Table ")]
    words = [finding for finding in page.findings if not finding.printed.startswith("Table ")]
    lines = [
        f"* Of {len(ranks)} printed ranks: {_tally([one.verdict for one in ranks])}. Of {len(words)} statements in "
        f"words: {_tally([one.verdict for one in words])}.{_carried([one.verdict for one in ranks])}"
    ]
    last = "match3" if results.defined(census, "match3") else "match2"
    for match in (Match(2, fire, "match2"), Match(3, census, last)):
        lines.append(_ends(results, match))
    if results.defined(fire, "cart_ratio"):
        lines += _low(results, fire)
    return "\n".join(["## Reading", "", *lines])


def _tally(verdicts: list[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in Counter(map(kind_of, verdicts)).most_common())


def _carried(verdicts: list[str]) -> str:
    """What is said if more than half of the printed ranks are refuted."""
    if 2 * sum(kind_of(one) == "refuted" for one in verdicts) <= len(verdicts):
        return ""
    return (
        " The order of the challenge is that of its entries' files; it does not carry over to these programs on "
        "these tables."
    )


def _ends(results: Results, match: Match) -> str:
    """The best at the smallest and at the largest ε, beside the method that knows single columns only."""
    bench, measure = match.bench, match.score
    parts = []
    for epsilon in (results.epsilons(bench)[0], results.epsilons(bench)[-1]):
        means = {one: results.level(bench, measure, one, epsilon) for one in results.methods(bench)}
        order = sorted(means, key=lambda one: -means[one].mean)
        team = next(one for one in order if one in match.methods)
        second = f", of the match's teams {team} ({means[team]})" if team != order[0] else ""
        parts.append(
            f"at ε = {epsilon:g} {order[0]} is first ({means[order[0]]}){second}; `independent`, which knows single "
            f"columns only, reaches {means['independent']}"
        )
    return f"* {bench}, {MEASURES[measure].name}: {'; '.join(parts)}."


def _low(results: Results, bench: str) -> list[str]:
    """A small ratio with SPECKS near 1, if that is seen: what trees say where everything is noise."""
    least = results.epsilons(bench)[0]
    first = min(results.methods(bench), key=lambda one: results.level(bench, "cart_ratio", one, least).mean)
    names = "cart_ratio", "cart_specks", "logistic_ratio"
    ratio, specks, other = (results.level(bench, name, first, least) for name in names)
    if not (specks.low > NEAR_ONE and other.low > ratio.high):
        return []
    return [
        f"* {bench} at ε = {least:g}: CART pMSE-ratio calls {first} nearest (log {ratio}) although a tree tells its "
        f"rows apart almost without fault (SPECKS {specks}). Its pMSE is near the largest possible, so the trees on "
        "permuted labels by which it is divided must be nearly as good: they fit what they were grown on. The logistic "
        f"ratio is not deceived (log {other})."
    ]
