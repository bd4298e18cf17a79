"""Rows that no comparison of releases decides: the data, the choice of columns, time, and what cannot be checked."""

import math
import statistics
import time

import numpy as np

from studies.verdicts import above, range_of, verdict
from studies.voters.judge import Found
from studies.voters.measures import EPSILONS, SYSTEMS, Truth
from studies.voters.nodes import node_rows
from studies.writing import StudyPage, table
from understudy import synthesize
from understudy.privacy.trees import AIC_UNIT, node_criterion

__all__ = ["data_rows", "other_rows", "possible_cells"]

HOUR = 3600
DEEP = (4, 5)
"""Layers that the paper of 2019 found too many."""
DEARER = 0.1
"""A difference of time within this share counts as none."""
PRINTED_CELLS = 1_290_240
PRINTED_SIZES = ("1,268,911", "14,061", "3,545", "1,508", "740", "425", "1,050")
INCOME = "family_income"
UNCHECKED = (
    (
        "[both] the falling trend is evidence that SPECKS measures what it should",
        "the trend itself is judged above",
        "cannot be checked: it is a conclusion from the trend; nothing here measures SPECKS itself",
    ),
    (
        "[2019] for ε < 1 Random Partition-2 is similar likely because noise overshadows what STEPS recognizes",
        "the similarity itself is judged above",
        "cannot be checked: no run tells the noise in the counts from the choice of columns",
    ),
    (
        "[2019] Table 3: the columns of layer 2 by level of Family Income",
        "—",
        "cannot be checked: their rows are not here",
    ),
    (
        "[2020] the public PrivBayes program made the same synthetic set every time until a seed was set",
        "ours is another program; its five sets differ, and the seed of its structure is an option that is recorded",
        "cannot be checked: it is about another program",
    ),
)


def possible_cells(truth: Truth) -> int:
    """Cells of the full table without those of people who voted and were not registered."""
    return math.prod(truth.codec.domain.sizes.values()) * 3 // 4


def data_rows(page: StudyPage, truths: dict[str, Truth]) -> None:
    """Rows on the table itself."""
    if "simulated" not in truths:
        return
    truth = truths["simulated"]
    cells = possible_cells(truth)
    page.find(
        f"[both] {PRINTED_CELLS:,} possible cells",
        f"simulated voters, columns and levels as printed: {cells:,}",
        "confirmed" if cells == PRINTED_CELLS else "refuted",
    )
    sizes = np.bincount(np.bincount(truth.rows.groups), minlength=7)
    ours = [cells - int(sizes[1:].sum()), *(int(one) for one in sizes[1:6]), int(sizes[6:].sum())]
    page.find(
        f"[both] Table 2: cells with 0, 1, 2, 3, 4, 5 and more records: {'; '.join(PRINTED_SIZES)}; 98.35 % are empty",
        f"simulated voters: {'; '.join(f'{one:,}' for one in ours)}; {ours[0] / cells:.2%} are empty",
        "cannot be checked: their rows are not here, and ours are made to be alike",
    )


def other_rows(page: StudyPage, truths: dict[str, Truth], found: Found) -> None:
    """All other rows."""
    for name, truth in truths.items():
        _aic_row(page, name, truth, found)
    first = next(iter(truths))
    _time_row(page, first, truths[first], found)
    _layer_rows(page, truths[first])
    node_rows(page, truths[first])
    for printed, ours, words in UNCHECKED:
        page.find(printed, ours, words)


def _aic_row(page: StudyPage, name: str, truth: Truth, found: Found) -> None:
    values = _aic(truth)
    ranked = sorted(values, key=lambda column: values[column])
    drawn = [one.chosen[0] for epsilon in EPSILONS for one in found[name, "AIC-2", epsilon] if len(one.chosen) == 1]
    wide = max(truth.codec.domain.sizes, key=lambda column: truth.codec.domain.sizes[column])
    if INCOME not in values:
        words = f"cannot be checked: there is no such column here; the one with most levels is {wide}"
    else:
        words = "confirmed" if ranked[0] == INCOME else "refuted"
    page.find(
        "[2019] Family Income, the column with most levels, has the smallest AIC of all columns and forms the first "
        "layer (we say: −2 log L + 2K of the model that fits the table of one column)",
        f"{truth.table.title}: smallest AIC {ranked[0]} ({values[ranked[0]]:.1f}); {wide} is number "
        f"{ranked.index(wide) + 1} of {len(ranked)} ({values[wide]:.1f}); drawn most often for the first layer: "
        f"{statistics.mode(drawn) if drawn else '—'}; {wide} in {drawn.count(wide)} of {len(drawn)} releases",
        words,
    )


def _aic(truth: Truth) -> dict[str, float]:
    sizes = truth.codec.domain.sizes
    counts = {name: np.bincount(truth.rows.codes[name], minlength=sizes[name]) for name in truth.codec.domain.columns}
    return {name: float(node_criterion(count.astype(np.int64))) / AIC_UNIT for name, count in counts.items()}


def _time_row(page: StudyPage, name: str, truth: Truth, found: Found) -> None:
    seconds = {
        system: statistics.fmean(run.seconds for epsilon in EPSILONS for run in found[name, system, epsilon])
        for system in SYSTEMS
    }
    spent = [[run.seconds for one in EPSILONS for run in found[name, system, one]] for system in ("AIC-3", "AIC-2")]
    dearer = above(spent[0], spent[1], DEARER * seconds["AIC-2"])
    page.say("## Time\n\nCPU seconds for five sets, read back as tables.\n\n" + table(
        ("system", truth.table.title), [(system, f"{value:.2f}") for system, value in seconds.items()]
    ))  # fmt: skip
    page.find(
        "[2019] STEPS-3 is computationally more expensive than STEPS-2",
        f"CPU seconds for five sets: AIC-2 {seconds['AIC-2']:.2f}, AIC-3 {seconds['AIC-3']:.2f} ({range_of([dearer])})",
        verdict([dearer]),
    )


def _layer_rows(page: StudyPage, truth: Truth) -> None:
    taken = {layers: _seconds(truth, layers) for layers in DEEP}
    shown = ", ".join(f"{layers} layers {seconds:.1f}" for layers, seconds in taken.items())
    page.find(
        "[2019] computational limits are felt when L ≥ 4 (we say: five sets take more than an hour)",
        f"CPU seconds for five sets, one run each: {shown}; children are the real codes, not 14 of each",
        "refuted" if max(taken.values()) < HOUR else "confirmed",
    )
    cells = math.prod(truth.codec.domain.sizes.values())
    page.find(
        "[2020] the universal histogram with L = 15 and b = 14 would need O(14¹⁵) steps",
        f"not run: 14¹⁵ = {14**15:.1e} counts phantom codes; the real codes have {cells:,} cells",
        "cannot be checked: L = 15 was not run",
    )


def _seconds(truth: Truth, layers: int) -> float:
    """CPU seconds of five sets by a tree of so many layers."""
    began = time.process_time()
    synthesize(
        truth.table.table, truth.table.schema, method="steps", options={"layers": str(layers)}, epsilon=1.0,
        copies=truth.table.sets, copies_mode="remeasure", rows=truth.rows.count, seed=1,
    )  # fmt: skip
    return time.process_time() - began
