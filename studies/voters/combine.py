"""Comparisons taken together: statements such as “no better than”, “at most ε” and “in some analyses”."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from scipy import stats

from studies.verdicts import Answer, Comparison, kind_of, verdict
from studies.writing import Estimate

__all__ = ["apart", "better_or_similar", "more_than_slightly", "no_better", "somewhere", "together"]

BY_KIND: Mapping[str, Answer] = {
    "confirmed": "yes", "confirmed in part": "yes", "mixed": "no", "refuted": "no", "no difference": "same"
}  # fmt: skip


def no_better(better: Sequence[Comparison], similar: Sequence[Comparison]) -> list[Comparison]:
    """Worse or similar agrees, better and not similar contradicts."""
    found = []
    for one, other in zip(better, similar, strict=True):
        if one.answer == "no" or other.answer == "yes":
            found.append(replace(other, answer="yes"))
        else:
            found.append(replace(other, answer="no" if one.answer == "yes" else "open"))
    return found


def better_or_similar(better: Sequence[Comparison], similar: Sequence[Comparison]) -> list[Comparison]:
    """Better or similar agrees, worse by more than the margin contradicts."""
    found = []
    for one, other in zip(better, similar, strict=True):
        if "yes" in (one.answer, other.answer):
            found.append(replace(other, answer="yes"))
        else:
            found.append(replace(other, answer="no" if one.answer == other.answer == "no" else "open"))
    return found


def apart(similar: Sequence[Comparison]) -> list[Comparison]:
    """Surely further apart than the margin agrees, surely within it contradicts."""
    other: Mapping[Answer, Answer] = {"yes": "no", "no": "yes"}
    return [replace(one, answer=other.get(one.answer, one.answer)) for one in similar]


def together(comparisons: Sequence[Comparison]) -> Comparison:
    """All comparisons of one ε as one: it agrees if they confirm a statement about all of them, at least in part.

    Its lead is the smallest one.
    """
    smallest = min(comparisons, key=lambda one: one.gap.mean)
    return replace(smallest, answer=BY_KIND.get(kind_of(verdict(comparisons)), "open"))


def somewhere(cases: Sequence[Comparison]) -> Comparison:
    """Whether at least one case agrees; the lead is the best one, in units of its margin.

    The interval is widened for the number of cases, so that many of them do not help by chance. It contradicts when
    every case contradicts or shows no difference.
    """
    leads = [_in_margins(one, len(cases)) for one in cases]
    best = max(leads, key=lambda gap: gap.low)
    if best.low > 0:
        return Comparison(best, "yes", 1.0)
    return Comparison(best, "no" if all(one.answer in ("no", "same") for one in cases) else "open", 1.0)


def _in_margins(one: Comparison, cases: int) -> Estimate:
    gap = one.gap
    freedom = max(gap.repeats - 1, 1)
    wider = float(stats.t.ppf(1 - 0.025 / cases, freedom) / stats.t.ppf(0.975, freedom))
    return Estimate(gap.mean / one.margin, wider * gap.half / one.margin, gap.repeats)


def more_than_slightly(leads: Sequence[Comparison]) -> str:
    """What is said behind a verdict on “slightly”, if leads are surely larger than the margin of what is similar."""
    large = [one for one in leads if one.gap.low > one.margin]
    if not large:
        return ""
    return f" (but by more than {large[0].margin:g}, so not slightly, in {len(large)} of {len(leads)})"
