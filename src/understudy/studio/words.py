"""Budgets and plans in plain words and pictures: what a steward has to know before a number is chosen.

All of it follows from public numbers. Why the sentences hold: for a claim ε, whoever holds a belief p before, that a
person is in the table, holds one of at most p·e^ε / (1 − p + p·e^ε) after (Bayes' rule with the largest ratio of
probabilities that ε allows). A δ above 0 allows for a failure of that; what is said of it is what every release says.
"""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import understudy as us
from understudy.charts import Amounts, SharesChart
from understudy.report import Block, Figure, FoldedBlocks, TextTable

EPSILONS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0)
DELTAS = (0.0, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
PRIORS = (0.01, 0.5)
_MOST_STEPS, _MOST_LISTED = 10, 300
MOST_MATTER = 6
"""Columns whose pairs are listed."""
_CHOSEN = re.compile(r"measure (?:up to )?(?:[\d,]+|chosen) (?:pairs|tables|groups)")
"""Steps whose tables a run chooses, whichever they will be."""
_INVENTED = (0.42, 0.27, 0.16, 0.1, 0.04, 0.01)
_INVENTED_NOISE = (0.4, -1.2, 0.9, -0.5, 2.1, -0.9)
"""One draw of noise, as it might be: in typical errors, which are the mean of their sizes."""
_LETTERS = "ABCDEF"
_INVENTED_ROWS = 10_000


def nearest_step(steps: Sequence[float], value: float) -> int:
    """The place on a slider that lies nearest.

    >>> nearest_step(EPSILONS, 1.2), nearest_step(DELTAS, 0.0)
    (6, 0)
    """
    return min(range(len(steps)), key=lambda place: abs(steps[place] - value))


def in_full(value: float) -> str:
    """A budget to the last digit that is charged.

    >>> in_full(1.0), in_full(0.1234567891), in_full(1e-9)
    ('1', '0.1234567891', '1e-09')
    """
    return f"{value:.15g}"


def several_runs(epsilon: float, delta: float, runs: int) -> tuple[str, str]:
    """What so many runs of one budget spend together, where budgets are added.

    >>> several_runs(0.1, 1e-9, 3), several_runs(2.0, 0.0, 3)
    (('0.3', '3e-09'), ('6', '0'))
    """
    return in_full(runs * epsilon), in_full(runs * delta)


def belief_after(prior: float, epsilon: float) -> float:
    """The most that somebody may come to believe.

    >>> round(belief_after(0.5, 1.0), 3)
    0.731
    """
    return prior / (prior + (1.0 - prior) * math.exp(-epsilon))


def percent_of(share: float) -> str:
    """A probability in percent, rounded up but never to certainty.

    >>> percent_of(0.01), percent_of(0.7311), percent_of(0.99999)
    ('1 %', '73.2 %', 'more than 99.9 %')
    """
    tenths = math.ceil(1000 * share - 1e-9)
    return "more than 99.9 %" if tenths > 999 else f"{tenths / 10:g} %"


def belief_sentences(epsilon: float, delta: float, whom: str) -> list[str]:
    """What the budget means for whoever is protected, in sentences."""
    said = [
        f"Somebody who is {percent_of(prior)} sure beforehand that {whom} is in your table "
        f"can become at most {percent_of(belief_after(prior, epsilon))} sure by looking at the release."
        for prior in PRIORS
    ]
    if delta:
        said.append(
            f"With a probability of at most δ = {in_full(delta)}, one in {1 / delta:,.0f}, this bound may not hold."
        )
    else:
        said.append("That holds without exception, because δ is 0.")
    return said


def budget_warnings(epsilon: float, delta: float) -> list[str]:
    """What speaks against the choice at either end; what the plan itself remarks comes on top."""
    found = []
    if epsilon < 0.1:
        few = "the noise may leave little of a table with fewer than a million rows."
        found.append(f"ε = {in_full(epsilon)} is very small: {few}")
    if epsilon >= 5:
        found.append(
            f"ε = {in_full(epsilon)} is large: the promise to each person is weak. Usual choices are 0.5 to 3."
        )
    if delta >= 1e-5:
        found.append(f"δ = {in_full(delta)} is large. It should be far below one divided by the number of rows.")
    return found


def plan_blocks(plan: Any, rows: int | None) -> list[Block]:
    """Where the budget goes, how large errors will be, and an invented column under that noise."""
    weights = [_weight(step.cost, mixed=bool(plan.cost.rho)) for step in plan.steps]
    costs = [(step, weight / (sum(weights) or 1.0)) for step, weight in zip(plan.steps, weights, strict=True)]
    large = sorted(costs, key=lambda one: one[1], reverse=True)[:_MOST_STEPS]
    shown = [one for one in costs if one in large]
    labels, shares = [step.name for step, _ in shown], [share for _, share in shown]
    if len(shown) < len(costs):
        labels.append(f"{len(costs) - len(shown):,} smaller steps")
        shares.append(max(0.0, 1.0 - sum(shares)))
    rows_text = [
        (step.name, f"{100 * share:.1f} %", f"{step.cells:,}", _rows(step.expected_error))
        for step, share in costs[:_MOST_LISTED]
    ]
    where = SharesChart(
        "Where the budget goes", tuple(labels), (Amounts("made", "share of the budget", tuple(shares)),)
    )
    header = ("what is measured", "budget", "cells", "± rows")
    caption = "Share of the budget, and the typical error of one cell"
    table = TextTable(header, tuple(rows_text), caption=caption, numeric=frozenset(header[1:]))
    found: list[Block] = [Figure(where), FoldedBlocks("How far off each column and table will be", (table,))]
    preview = _preview(plan, rows)
    return found if preview is None else [preview, *found]


def wanted_block(plan: Any, sizes: Mapping[str, int], wanted: Sequence[str], rows: int | None) -> Block | None:
    """How far off counts of the columns that matter will be, and of their pairs; `sizes` are numbers of cells."""
    sets = [(name,) for name in wanted] + list(itertools.combinations(wanted, 2))
    lines = []
    for names in sets:
        cells = math.prod(sizes[name] for name in names) if all(name in sizes for name in names) else None
        error, remark = _error_of(plan, names, cells)
        share = () if rows is None else (_share(error, cells, rows),)
        lines.append((" × ".join(names), "—" if cells is None else f"{cells:,}", _rows(error), *share, remark))
    header = ("counts of", "cells", "± rows", *(() if rows is None else ("of an average cell",)), "why")
    caption = "How far off what matters to you will typically be, in one cell"
    return TextTable(header, tuple(lines), caption=caption, numeric=frozenset(header[1:-1])) if lines else None


def _share(error: float | None, cells: int | None, rows: int) -> str:
    return "—" if error is None or cells is None else f"{100 * error * cells / rows:,.1f} %"


def _error_of(plan: Any, names: Sequence[str], cells: int | None) -> tuple[float | None, str]:
    """The expected error of a cell and where it comes from; None where the plan does not tell.

    A count that is added up from n cells of the full table has the error of one of them times √n: their noise is
    independent.
    """
    steps = {step.name: step for step in plan.steps}
    own = steps.get(f"measure {', '.join(names)}")
    if own is not None and own.expected_error is not None:
        return own.expected_error, "measured"
    whole = steps.get("measure table")
    if whole is not None and whole.expected_error is not None and cells:
        return whole.expected_error * math.sqrt(max(1.0, whole.cells / cells)), "at most: added up from the full table"
    if len(names) == 1:
        return None, "follows from what is measured together with it"
    if plan.method == "independent":
        return None, "not kept: this method draws columns one by one"
    chosen = [step for step in plan.steps if _CHOSEN.fullmatch(step.name) and step.expected_error is not None]
    if chosen:
        return chosen[-1].expected_error, "if the run chooses this pair; else it follows from others"
    return None, "follows from the model; no error can be told beforehand"


def _weight(cost: Any, *, mixed: bool) -> float:
    """What a step takes of the budget; beside steps paid in ρ, one paid in ε counts as the ρ = ε²/2 that it implies."""
    if not mixed:
        return float(cost.epsilon)
    unit = us.Budget(1.0).epsilon_units
    return float(cost.rho + cost.epsilon**2 / (2 * unit))


def _rows(error: float | None) -> str:
    return "—" if error is None else f"{error:,.1f}" if error < 100 else f"{error:,.0f}"


def typical_error(plan: Any) -> float | None:
    """The middle one of the expected errors of all tables with more than one cell, in rows of one cell."""
    errors = sorted(step.expected_error for step in plan.steps if step.expected_error is not None and step.cells > 1)
    return errors[len(errors) // 2] if errors else None


def _preview(plan: Any, rows: int | None) -> Figure | None:
    error = typical_error(plan)
    if error is None:
        return None
    number = rows or _INVENTED_ROWS
    counts = tuple(share * number for share in _INVENTED)
    noisy = tuple(max(0.0, count + error * off) for count, off in zip(counts, _INVENTED_NOISE, strict=True))
    caption = f"An invented column of {number:,} rows, and how it might look with that noise"
    amounts = (
        Amounts("real", "invented counts", counts),
        Amounts("made", "with noise", noisy, (error,) * len(counts)),
    )
    labels = tuple(f"group {letter}" for letter in _LETTERS)
    remark = f"Made-up numbers, not yours. The thin lines are ± {_rows(error)} rows, the typical error of one cell."
    return Figure(SharesChart(caption, labels, amounts, unit="count"), remark=remark)


def seconds_text(seconds: float | None) -> str:
    """A time as people say it.

    >>> seconds_text(None), seconds_text(3.2), seconds_text(200), seconds_text(8000)
    ('not known yet', 'a few seconds', 'about 3 minutes', 'about 2.2 hours')
    """
    if seconds is None:
        return "not known yet"
    if seconds < 10:
        return "a few seconds"
    if seconds < 90:
        return f"about {seconds:.0f} seconds"
    return f"about {seconds / 60:.0f} minutes" if seconds < 5400 else f"about {seconds / 3600:.1f} hours"
