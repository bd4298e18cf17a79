"""Figures and tables of the youth voter study, one set for each table."""

import statistics
from collections.abc import Sequence

from studies.voters.judge import Found, Judge, powers
from studies.voters.measures import EPSILONS, Truth
from studies.writing import StudyPage, table
from understudy.charts import Forest, IntervalRow, Lines, Series
from understudy.evaluate.regression import Compared
from understudy.report import render_panels

__all__ = ["CORNERS", "intervals", "show"]

LATER = ("Laplace", "PrivBayes", "STEPS-2", "STEPS-3", "UH-2", "UH-3")
EARLIER = ("Laplace", "AIC-2", "AIC-3", "RP-2")
LOW, HIGH = EPSILONS[1], EPSILONS[3]
SHOWN = 3.0
"""End of the axis of coefficients: a few beyond it (nobody votes who is not registered) would squeeze all others."""
PRINTED_SIGNS = {
    "(intercept)": ("Y", "Y", "Y", "Y"),
    "age": ("N", "Y", "N", "Y"),
    "married": ("N", "Y", "Y", "Y"),
    "female": ("N", "N", "Y", "Y"),
    "family_income": ("1/13", "9/13", "3/13", "10/13"),
    "college_degree": ("Y", "Y", "N", "N"),
    "white": ("N", "N", "N", "N"),
    "hispanic": ("N", "Y", "Y", "Y"),
    "metropolitan": ("N", "N", "Y", "Y"),
    "residence": ("2/5", "0/5", "4/5", "4/5"),
    "business_or_farm": ("Y", "N", "N", "N"),
    "in_person_interview": ("N", "Y", "Y", "Y"),
    "dmv_registration": ("N", "Y", "Y", "Y"),
    "preregistration_state": ("Y", "N", "N", "N"),
    "registered": ("Y", "Y", "Y", "Y"),
    "preregistration_state:registered": ("N", "N", "N", "N"),
}
"""Table 4 of 2019: Laplace and STEPS-2 at 1/e, then both at e."""
CORNERS = (("Laplace", LOW), ("AIC-2", LOW), ("Laplace", HIGH), ("AIC-2", HIGH))


def show(page: StudyPage, judge: Judge, truth: Truth) -> None:
    """Everything about one table."""
    page.say(f"## {truth.table.title.capitalize() if judge.table != 'cps' else truth.table.title}")
    _lines(page, judge, "SPECKS", LATER, "specks", "SPECKS (2020, Figure 5)")
    _lines(page, judge, "SPECKS", [one for one in LATER if one != "PrivBayes"], "specks-trees",
           "SPECKS without PrivBayes (2020, Figure 5, right)")  # fmt: skip
    _lines(page, judge, "SPECKS", EARLIER, "specks-aic", "SPECKS (2019, Figure 2)")
    _numbers(page, judge, ("SPECKS", "legacy", "half l1"), tuple(dict.fromkeys((*LATER, *EARLIER))))
    for level, stem in (("1", "chi2-1"), ("5", "chi2"), ("10", "chi2-10")):
        _lines(page, judge, f"chi2 {level}%", (*LATER, "AIC-2"), stem,
               f"Chi-square consistency at the {level} % level (2020, Figure 6; 2019, Figure 3)", 1.0)  # fmt: skip
    _lines(page, judge, "single columns", LATER, "columns", "Total variation of single columns, mean of all", None)
    _columns(page, judge, truth)
    _numbers(page, judge, ("chi2 1%", "chi2 5%", "chi2 10%"), tuple(dict.fromkeys((*LATER, "AIC-2"))))
    _lines(page, judge, "overlap", LATER, "overlap", "Interval overlap, mean of all coefficients (2020, Figure 7)", 1.0)
    for place, name in enumerate(truth.table.interest):
        _lines(page, judge, f"overlap {name}", LATER, f"overlap-{place + 1}",
               f"Interval overlap of {name} (2020, Figure 7)", 1.0)  # fmt: skip
    _numbers(page, judge, ("overlap", "overlap near 0", "same sign", "covered"), LATER)
    _coefficients(page, judge)
    _signs(page, judge, truth)


def _lines(
    page: StudyPage, judge: Judge, measure: str, systems: Sequence[str], stem: str, title: str,
    line: float | None = None,
) -> None:  # fmt: skip
    curves = []
    for system in systems:
        found = [judge.mean(system, epsilon, measure) for epsilon in EPSILONS]
        curves.append(
            Series(
                system,
                EPSILONS,
                tuple(one.mean for one in found),
                tuple(max(0.0, one.low) for one in found),
                tuple(min(1.0, one.high) for one in found),
            )
        )
    chart = Lines(
        f"{title}: {judge.table}; 95 % intervals over repeats, cut to 0 … 1",
        "ε",
        measure,
        tuple(curves),
        logarithmic=True,
        yardstick=line,
    )
    page.figure(f"{judge.table}-{stem}", chart)


def _numbers(page: StudyPage, judge: Judge, measures: Sequence[str], systems: Sequence[str]) -> None:
    body = [
        [powers(epsilon), system, *(judge.mean(system, epsilon, measure) for measure in measures)]
        for epsilon in EPSILONS
        for system in systems
    ]
    page.say(table(("ε", "system", *measures), body))


def _columns(page: StudyPage, judge: Judge, truth: Truth) -> None:
    """The error of every column at ε = 1, the experts' first ones before the others."""
    first = [name for name in truth.table.expert if name in truth.codec.domain.sizes]
    rest = [name for name in truth.codec.domain.columns if name not in first]
    body = [[name, *(judge.mean(system, 1.0, f"column {name}") for system in LATER)] for name in [*first, *rest]]
    page.say(
        f"Total variation of every column at ε = 1; the experts' columns first:\n\n{table(('column', *LATER), body)}"
    )


def _coefficients(page: StudyPage, judge: Judge) -> None:
    """Figure 4 of 2019: original and synthetic coefficients with their intervals, in the first repeat."""
    for epsilon in (LOW, HIGH):
        file = f"{page.name}-{judge.table}-intervals{'-low' if epsilon == LOW else ''}.svg"
        title = (
            f"95 % intervals of the coefficients at ε = {powers(epsilon)}, one repeat (2019, Figure 4): {judge.table}"
        )
        page.form.out.mkdir(parents=True, exist_ok=True)
        (page.form.out / file).write_text(intervals(judge.found, judge.table, epsilon, title), encoding="utf-8")
        page.say(f"![{title}]({file})\n\n*{title}; grey: original, blue: synthetic; cut at ±{SHOWN:g}*")


def intervals(found: Found, table: str, epsilon: float, title: str) -> str:
    """The first repeat of both systems side by side; intervals that reach beyond the axis end at its ends."""
    rows = {
        system: tuple(map(_row, found[table, system, epsilon][0].coefficients))
        for system, at in CORNERS
        if at == epsilon
    }
    return render_panels(title, [[Forest(system, group, (-SHOWN, SHOWN)) for system, group in rows.items()]])


def _row(one: Compared) -> IntervalRow:
    made = one.synthetic
    ends = None if made is None else (made.value, made.low, made.high)
    return IntervalRow(one.name, (one.real.value, one.real.low, one.real.high), ends)


def _signs(page: StudyPage, judge: Judge, truth: Truth) -> None:
    """Table 4 of 2019: coefficients of the same sign, by column, as means over repeats beside the printed ones."""
    groups = {name: _column(name) for name in truth.estimates}
    body = []
    for group in dict.fromkeys(groups.values()):
        members = [name for name in groups if groups[name] == group]
        ours = [f"{_agreeing(judge, system, epsilon, members):.1f}/{len(members)}" for system, epsilon in CORNERS]
        printed = PRINTED_SIGNS.get(group, ("—",) * len(CORNERS)) if judge.table == "simulated" else ()
        body.append([group, *ours, *printed])
    header = [f"{system} {powers(epsilon)}" for system, epsilon in CORNERS]
    more = [f"printed {name}" for name in header] if judge.table == "simulated" else []
    page.say(
        "Coefficients with the sign of the original, mean over repeats (2019, Table 4)."
        + (" The printed ones are of the real youth table, the others of simulated voters." if more else "")
    )
    page.say(table(("coefficients", *header, *more), body))


def _column(name: str) -> str:
    return ":".join(part.split("=")[0] for part in name.split(":"))


def _agreeing(judge: Judge, system: str, epsilon: float, members: Sequence[str]) -> float:
    runs = [run.coefficients for run in judge.found[judge.table, system, epsilon]]
    return statistics.fmean(_same(found, members) for found in runs)


def _same(found: Sequence[Compared], members: Sequence[str]) -> int:
    return sum(one.same_sign for one in found if one.name in members)
