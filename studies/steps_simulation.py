"""The simulation of the STEPS paper (2020, section 3): regressions on synthetic data from trees and a network.

Two models of Y on four categorical predictors, four ε, two n. Y is binned into 15 public bins on [−7, 7]. Every method
makes four sets at ε/4 each; the true model is fitted to each set and pooled by Liu's rule. Reported per method: mean
absolute bias and RMSE of the coefficients, coverage of their 95 % intervals, RMSE of predictions for 100 new records.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from studies.runs import carry_out, kept_file, spent_on
from studies.steps import design
from studies.steps.claims import Judge, judge
from studies.steps.design import BINNED, EPSILONS, METHODS, SETS, SIZES, Run, carried, truths
from studies.steps.measures import MARGINS, MEASURES, NOMINAL, Corner, Found, collected
from studies.steps.reading import remarks
from studies.verdicts import RULE, kind_of
from studies.writing import Form, StudyPage, run_as_script, table
from understudy.report.page import Lines, Series

__all__ = ["runs", "study"]

REPEATS = 200


def runs(form: Form) -> list[Run]:
    """Every run of the study, first repeats first."""
    sizes, epsilons = _settings(form)
    methods = [(method, epsilon) for method in METHODS for epsilon in epsilons]
    return [
        Run(model, rows, epsilon, method, repeat)
        for repeat in range(form.pick(2, REPEATS))
        for model in (1, 2)
        for rows in sizes
        for method, epsilon in [*methods, (BINNED, 0.0)]
    ]


def _settings(form: Form) -> tuple[Sequence[int], Sequence[float]]:
    return (SIZES, EPSILONS[1:3]) if form.smoke else (SIZES, EPSILONS)


def study(form: Form) -> Path:
    """Runs the simulation and writes its page."""
    page = StudyPage("steps_simulation", "STEPS simulation: regressions on synthetic data", form)
    todo = runs(form)
    records = carry_out(todo, carried, kept_file(form.keep, page.name, (design.__file__,)), form.jobs)
    page.spent = spent_on(records)
    found = collected(todo, records, truths())
    sizes, epsilons = _settings(form)
    _describe(page, form.pick(2, REPEATS))
    for model in (1, 2):
        for rows in sizes:
            _show(page, found, model, rows, epsilons)
    tops = [str(one["top"]) for run, one in zip(todo, records, strict=True) if run.method == "STEPS"]
    given = Judge(found, sizes, epsilons)
    judge(page, given, tops)
    page.say(_reading(page, given))
    return page.write()


def _describe(page: StudyPage, repeats: int) -> None:
    page.say(
        f"Design as in section 3 of the paper: {SETS} sets at ε/{SETS} each, {repeats} repeats (the paper: 200). X are "
        "independent and uniform; Y is clamped to 15 equal bins on [−7, 7], values uniform inside a bin: the paper "
        "leaves these open. STEPS is the grouped variant with a tenth of the budget for its choice, the modified "
        "universal histogram has four layers of random order, PrivBayes has degree 2 and half of the budget for its "
        "structure. Trees sum their columns up, as in the paper (no raking). A repeat has the same data for all "
        "methods and ε. Bias and RMSE: over repeats, coefficient by coefficient, then the mean over coefficients; "
        "intervals of 95 % by the jackknife over repeats."
    )
    margins = ", ".join(f"{MARGINS[measure]:g} in {measure}" for measure in MEASURES)
    page.say(f"{RULE} Margins: {margins} (of its distance from {NOMINAL:.0%}).")


def _show(page: StudyPage, found: Found, model: int, rows: int, epsilons: Sequence[float]) -> None:
    page.say(f"## Model {model}, n = {rows:,}")
    cells = {(name, one): found[Corner(model, rows, one), name] for name in METHODS for one in epsilons}
    for measure in MEASURES:
        curves = []
        for name in METHODS:
            ours = [cells[name, epsilon].shown(measure) for epsilon in epsilons]
            curves.append(
                Series(
                    name,
                    tuple(epsilons),
                    tuple(one.mean for one in ours),
                    tuple(one.low for one in ours),
                    tuple(one.high for one in ours),
                )
            )
        caption = f"model {model}, n = {rows:,}: {measure}"
        line = NOMINAL if measure == "coverage" else None
        stem = f"model-{model}-{rows}-{measure}".replace(" ", "-")
        page.figure(stem, Lines(caption, "ε", measure, tuple(curves), logarithmic=True, yardstick=line))
    body = [
        [f"{epsilon:g}", name, *(cells[name, epsilon].shown(measure) for measure in MEASURES)]
        for epsilon in epsilons
        for name in METHODS
    ]
    binned = found[Corner(model, rows, 0.0), BINNED]
    body.append(["none", BINNED, *(binned.shown(measure) for measure in MEASURES)])
    page.say(table(("ε", "method", *MEASURES), body))


def _reading(page: StudyPage, given: Judge) -> str:
    kinds = Counter(kind_of(finding.verdict) for finding in page.findings)
    tally = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return "\n".join(["## Reading", "", f"Of {len(page.findings)} statements: {tally}.", "", *remarks(given)])


if __name__ == "__main__":
    run_as_script(study, __doc__ or "")
