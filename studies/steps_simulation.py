"""The simulation of the STEPS paper (2020, section 3): regressions on synthetic data from trees and a network.

Two models of Y on four categorical predictors, four ε, two n. Y is binned into 15 public bins on [−7, 7]. Every method
makes four sets at ε/4 each; the true model is fitted to each set and pooled by Liu's rule. Reported per method: mean
absolute bias and RMSE of the coefficients, coverage of their 95 % intervals, RMSE of predictions for 100 new records.
Beside them: the original data, and the data with binned Y and nothing else.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np

from studies.editions import finished
from studies.runs import carry_out, kept_file, spent_on
from studies.steps import design
from studies.steps.claims import judge
from studies.steps.design import BINNED, EPSILONS, METHODS, SETS, SIZES, Run, carried, truths
from studies.steps.judge import Judge
from studies.steps.measures import BY_COEFFICIENT, MARGINS, MEASURES, NOMINAL, Cell, collected
from studies.steps.reading import remarks
from studies.steps.unchanged import ORIGINAL, unchanged
from studies.verdicts import RULE, kind_of
from studies.writing import Form, StudyPage, estimate, run_as_script, table
from understudy.charts import Bundle, Lines, Series
from understudy.report import render_panels

__all__ = ["runs", "study"]

REPEATS = 200


def runs(form: Form) -> list[Run]:
    """Every run of the study, first repeats first."""
    sizes, epsilons = _settings(form)
    methods = [(method, epsilon) for method in METHODS for epsilon in epsilons]
    return [
        Run(model, rows, epsilon, method, repeat)
        for repeat in range(form.repeats or form.pick(2, REPEATS))
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
    sizes, epsilons = _settings(form)
    plain = [
        Run(model, rows, 0.0, ORIGINAL, repeat)
        for model in (1, 2)
        for rows in sizes
        for repeat in range(form.repeats or form.pick(2, REPEATS))
    ]
    originals = [unchanged(run) for run in plain]
    given = Judge(collected([*todo, *plain], [*records, *originals], truths()), sizes, epsilons)
    _describe(page, form.repeats or form.pick(2, REPEATS))
    for model in (1, 2):
        for rows in sizes:
            _show(page, given, model, rows)
    tops = [str(one["top"]) for run, one in zip(todo, records, strict=True) if run.method == "STEPS"]
    judge(page, given, tops, [cast(Mapping[str, float], one["aic"]) for one in originals])
    page.say(_reading(page, given))
    return finished(page)


def _describe(page: StudyPage, repeats: int) -> None:
    page.say(
        f"Design as in section 3 of the paper: {SETS} sets at ε/{SETS} each, {repeats} repeats (the paper: 200). X are "
        "independent and uniform; Y is clamped to 15 equal bins on [−7, 7], values uniform inside a bin: the paper "
        "leaves these open. STEPS is the grouped variant with a tenth of the budget for its choice, the modified "
        "universal histogram has four layers of random order, PrivBayes has degree 2 and half of the budget for its "
        "structure. Trees sum their columns up, as in the paper (no raking). A repeat has the same data for all "
        "methods and ε. Bias and RMSE: over repeats, coefficient by coefficient, then the mean over coefficients; "
        "intervals of 95 % by the jackknife over repeats. Coverage is shown as the share of all intervals, but judged "
        f"by its distance from {NOMINAL:.0%}, which is taken coefficient by coefficient as well: too much does not "
        f"make up for too little elsewhere. With right intervals it is about {_by_chance(repeats):.3f} by chance "
        f"alone. “{BINNED}” draws Y anew inside its bins, “{ORIGINAL}” leaves all as it is: neither is private."
    )
    margins = ", ".join(f"{MARGINS[measure]:g} in {measure}" for measure in MEASURES)
    page.say(
        f"{RULE} Margins: {margins} (coverage: of its distance from {NOMINAL:.0%}). Margins and everything marked “we "
        "say” are ours; the paper gives none. “In general” is judged by means over ε, repeat by repeat. A statement "
        "that something *can* be so or is so in *some* cases is confirmed when “in no case” is refuted by the rule, "
        "and refuted when it is not and more than half of the cases speak against it. How coverage, trends, causes, "
        "the AIC of groups and the conclusions are judged was settled after an earlier run of this simulation, and "
        "before this one was looked at."
    )


def _by_chance(repeats: int) -> float:
    """The mean distance from the nominal coverage of a share over repeats whose expectation is the nominal one."""
    return math.sqrt(2 / math.pi * NOMINAL * (1 - NOMINAL) / repeats)


def _show(page: StudyPage, given: Judge, model: int, rows: int) -> None:
    page.say(f"## Model {model}, n = {rows:,}")
    for measure in MEASURES:
        curves = []
        for name in METHODS:
            ours = [given.cell(model, rows, epsilon, name).shown(measure) for epsilon in given.epsilons]
            curves.append(
                Series(
                    name,
                    tuple(given.epsilons),
                    tuple(one.mean for one in ours),
                    tuple(one.low for one in ours),
                    tuple(one.high for one in ours),
                )
            )
        caption = f"model {model}, n = {rows:,}: {measure}"
        line = NOMINAL if measure == "coverage" else None
        stem = f"model-{model}-{rows}-{measure}".replace(" ", "-")
        page.figure(stem, Lines(caption, "ε", measure, tuple(curves), logarithmic=True, yardstick=line))
    _spread(page, given, model, rows)
    lines = [
        (f"{epsilon:g}", name, given.cell(model, rows, epsilon, name)) for epsilon in given.epsilons for name in METHODS
    ]
    lines += [("none", name, given.cell(model, rows, 0.0, name)) for name in (BINNED, ORIGINAL)]
    page.say(_measured(lines))
    coefficients = len(truths()[model - 1].coefficients)
    file = f"{page.name}-model-{model}-{rows}-coefficients.svg"
    page.form.out.mkdir(parents=True, exist_ok=True)
    (page.form.out / file).write_text(_by_coefficient(given, model, rows), encoding="utf-8")
    title = f"model {model}, n = {rows:,}: a line for each of the {coefficients} coefficients"
    page.say(
        f"![{title}]({file})\n\n*{title}, as in the paper's figures; thick: their mean; dotted: no bias, and coverage "
        f"of {NOMINAL:.0%}*"
    )
    page.say(f"From the least to the greatest coefficient:\n\n{_spans(lines)}")


def _spread(page: StudyPage, given: Judge, model: int, rows: int) -> None:
    """How far estimates of the sets of a repeat lie apart, beside those of sets that are binned and nothing else."""
    curves = []
    for name in METHODS:
        ours = [estimate(_deviations(given.cell(model, rows, epsilon, name))) for epsilon in given.epsilons]
        ends = tuple(one.low for one in ours), tuple(one.high for one in ours)
        curves.append(Series(name, tuple(given.epsilons), tuple(one.mean for one in ours), *ends))
    binned = estimate(_deviations(given.cell(model, rows, 0.0, BINNED))).mean
    caption = f"model {model}, n = {rows:,}: spread of the estimates between sets; dotted: {BINNED}"
    chart = Lines(caption, "ε", "standard deviation", tuple(curves), logarithmic=True, yardstick=binned)
    page.figure(f"model-{model}-{rows}-spread", chart)


def _deviations(cell: Cell) -> list[float]:
    return [math.sqrt(one) for one in cell.spread]


def _by_coefficient(given: Judge, model: int, rows: int) -> str:
    """A line of panels for each measure, a panel for each method, a line for each coefficient over ε."""
    levels = {"bias": 0.0, "coverage": NOMINAL}
    drawn = []
    for measure in BY_COEFFICIENT:
        found = {
            name: np.array(
                [given.cell(model, rows, epsilon, name).by_coefficient(measure) for epsilon in given.epsilons]
            )
            for name in METHODS
        }
        ends = (min(float(one.min()) for one in found.values()), max(float(one.max()) for one in found.values()))
        heights = ends if measure in levels else (0.0, ends[1])
        drawn.append(
            [
                Bundle(
                    f"{name}: {measure}",
                    "ε",
                    tuple(given.epsilons),
                    tuple(tuple(line) for line in values.T.tolist()),
                    heights,
                    levels.get(measure),
                )
                for name, values in found.items()
            ]
        )
    return render_panels(f"model {model}, n = {rows:,}", drawn)


def _measured(lines: Sequence[tuple[str, str, Cell]]) -> str:
    """The measures with their intervals; behind coverage its distance from 95 %."""
    body = [
        [epsilon, name, *(cell.shown(measure) for measure in MEASURES), cell.judged("coverage")]
        for epsilon, name, cell in lines
    ]
    return table(("ε", "method", *MEASURES, f"distance of coverage from {NOMINAL:.0%}"), body)


def _spans(lines: Sequence[tuple[str, str, Cell]]) -> str:
    """The range over the coefficients, for each of which the paper's figures have a line."""
    body = []
    for epsilon, name, cell in lines:
        ends = [cell.span(measure) for measure in BY_COEFFICIENT]
        body.append([epsilon, name, *(f"{low:.3f} to {high:.3f}" for low, high in ends)])
    return table(("ε", "method", "bias with its sign", "estimation RMSE", "coverage"), body)


def _reading(page: StudyPage, given: Judge) -> str:
    kinds = Counter(kind_of(finding.verdict) for finding in page.findings)
    tally = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return "\n".join(["## Reading", "", f"Of {len(page.findings)} statements: {tally}.", "", *remarks(given)])


if __name__ == "__main__":
    run_as_script(study, __doc__ or "")
