"""Our reading of the labelled records, in words whose numbers come from the runs."""

from collections import Counter
from collections.abc import Mapping, Sequence

from studies.duke.benches import Bench
from studies.duke.panels import BASE, Labelled
from studies.verdicts import difference, kind_of
from studies.writing import Estimate, StudyPage

__all__ = ["reading"]


def reading(page: StudyPage, bench: Bench, found: Mapping[str, Sequence[Labelled]]) -> str:
    """What agrees, what differs, and by how much."""
    kinds = Counter(kind_of(finding.verdict) for finding in page.findings)
    tally = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    agency, occupation = f"slopes {bench.agency}", f"slopes {bench.occupation}"

    def change(setting: str, measure: str, other: str = BASE) -> str:
        return _percent(_relative(found, setting, other, measure))

    def collapsing(setting: str, measure: str) -> str:
        return _percent(_relative(found, setting, f"{setting}, not collapsed", measure))

    return "\n".join(
        [
            "## Reading",
            "",
            f"Of {len(page.findings)} statements: {tally}.",
            "",
            "* What trees ask about matters most. Weight 60 for Agency changes the error of its slopes by "
            f"{change('agency 60', agency)} and weight 60 for Occupation that of its slopes by "
            f"{change('occupation 60', occupation)}; the other column pays or gains: slopes of Occupation "
            f"{change('agency 60', occupation)} under the first, of Agency {change('occupation 60', agency)} under the "
            "second. The source shows the gains only.",
            "* Figure 7 has no such gain without collapsed codes; here it is "
            f"{change('agency 60, not collapsed', agency, 'not collapsed')} there. Collapsing itself changes errors of "
            f"slopes by {collapsing('occupation 10', agency)} (Agency) and {collapsing('occupation 10', occupation)} "
            "(Occupation) with weight 10 for Occupation; with equal weights, which the source does not show, by "
            f"{_percent(_relative(found, BASE, 'not collapsed', agency))} and "
            f"{_percent(_relative(found, BASE, 'not collapsed', occupation))}.",
            "* “No visible difference” is not no difference. Four times the ε changes the error of slopes by "
            f"{change('λ = 0.4', agency)} (Agency) and {change('λ = 0.4', occupation)} (Occupation): below the margin, "
            "but §3 of the source expects it, and Figure 8 seemed to show the opposite. Ten trees for the price of "
            "five, which the source does not try, change the same errors by "
            f"{change('10 trees, same ε', agency)} and {change('10 trees, same ε', occupation)}.",
        ]
    )


def _relative(found: Mapping[str, Sequence[Labelled]], setting: str, other: str, measure: str) -> Estimate:
    """Change of an error as a share of the other setting's."""
    ours, theirs = ([one.numbers[measure] for one in found[name]] for name in (setting, other))
    unit = sum(theirs) / len(theirs)
    return difference([one / unit for one in ours], [one / unit for one in theirs])


def _percent(one: Estimate) -> str:
    return f"{100 * one.mean:+.0f} ± {100 * one.half:.0f} %".replace("-", "−")
