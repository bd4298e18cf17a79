"""Systems of the youth voter studies, and every measure on one of their releases."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from studies.runs import Record
from studies.voters.tables import VoterTable
from understudy import synthesize
from understudy.codec.table import TableCodec
from understudy.evaluate.marginals import ChiSquare
from understudy.evaluate.metric import (
    Context,
    Rows,
    TablePair,
    Unavailable,
    fixed_codec,
    joint_counts,
    open_for_comparison,
    read_rows,
)
from understudy.evaluate.pooling_rules import pool_liu
from understudy.evaluate.propensity import Logistic, kolmogorov_smirnov, labels, legacy_distance
from understudy.evaluate.regression import Compared, Estimate, checked_formula, fit_model, model_data, references
from understudy.models.histogram_tree import TreeModel

__all__ = ["EPSILONS", "SYSTEMS", "Measured", "System", "Truth", "as_record", "measure", "read_record", "truth_of"]

IMPORTANT = 3
"""Columns that the experts put first."""
EPSILONS = tuple(math.exp(power) for power in (-2, -1, 0, 1, 2))


@dataclass(frozen=True)
class System:
    """A method with its options; `steps` puts in the experts' first columns, `drawn` a seed for every repeat."""

    method: str
    options: Mapping[str, str]
    expert: int = 0
    drawn: bool = False
    regression: tuple[float, ...] = EPSILONS
    """At which ε the regression is run: it takes most of the time."""

    def chosen(self, table: VoterTable, repeat: int) -> dict[str, str]:
        """The options for a table."""
        given = dict(self.options)
        if self.expert:
            given["sequence"] = ",".join(table.expert[: self.expert])
        if self.drawn:
            given["structure_seed"] = str(repeat)
        return given


NO_MODEL: tuple[float, ...] = ()
AS_PRINTED = {"margins": "summed"}
"""Columns as the papers sum them up: our default rakes them, which is not what is studied here."""
SYSTEMS: Mapping[str, System] = {
    "Laplace": System("laplace", {}),
    "STEPS-2": System("steps", {"allocation": "equal"} | AS_PRINTED, expert=2),
    "STEPS-3": System("steps", {"allocation": "equal"} | AS_PRINTED, expert=3),
    "UH-2": System("random_partition", {"layers": "2", "allocation": "equal"}, drawn=True),
    "UH-3": System("random_partition", {"layers": "3", "allocation": "equal"}, drawn=True),
    "PrivBayes": System("privbayes", {"preset": "steps_paper"}, drawn=True),
    "AIC-2": System("steps", {"layers": "2"} | AS_PRINTED, regression=(EPSILONS[1], EPSILONS[3])),
    "AIC-3": System("steps", {"layers": "3"} | AS_PRINTED, regression=NO_MODEL),
    "AIC-2 equal": System("steps", {"layers": "2", "allocation": "equal"} | AS_PRINTED, regression=NO_MODEL),
    "AIC-3 equal": System("steps", {"layers": "3", "allocation": "equal"} | AS_PRINTED, regression=NO_MODEL),
    "RP-2": System("random_partition", {"layers": "2", "allocation": "half_leaf"}, drawn=True, regression=NO_MODEL),
}


@dataclass(frozen=True)
class Truth:
    """The real table, read once: rows, and the regression on them."""

    table: VoterTable
    codec: TableCodec
    rows: Rows
    reference: Mapping[str, int]
    estimates: Mapping[str, Estimate]


@dataclass(frozen=True)
class Measured:
    """Every number of one release: by measure, and the regression's coefficients where it was run."""

    numbers: Mapping[str, float]
    coefficients: tuple[Compared, ...] = ()
    seconds: float = 0.0
    chosen: tuple[str, ...] = field(default=())
    """Columns of the first layer, where they were chosen."""


def as_record(found: Measured) -> Record:
    """What is kept of a release: all but the real coefficients."""
    made = {
        one.name: None
        if one.synthetic is None
        else [one.synthetic.value, one.synthetic.error, one.synthetic.low, one.synthetic.high]
        for one in found.coefficients
    }
    return {"numbers": dict(found.numbers), "made": made, "seconds": found.seconds, "chosen": list(found.chosen)}


def read_record(record: Mapping[str, Any], truth: Truth) -> Measured:
    """A release as it was kept, beside the real coefficients."""
    found = tuple(
        Compared(name, truth.estimates[name], None if made is None else Estimate(*made))
        for name, made in record["made"].items()
    )
    return Measured(record["numbers"], found, record["seconds"], tuple(record["chosen"]))


@cache
def truth_of(table: VoterTable) -> Truth:
    """What the releases are held against."""
    opened = open_for_comparison(table.table, table.schema)
    codec = fixed_codec(opened, table.schema)
    rows = read_rows(opened, codec)
    formula = checked_formula(table.formula, "firth", table.schema)
    reference = references(formula, rows)
    return Truth(table, codec, rows, reference, _estimates(table, rows, reference))


def _estimates(table: VoterTable, rows: Rows, reference: Mapping[str, int]) -> Mapping[str, Estimate]:
    """Coefficients by name; none where the outcome never varies."""
    formula = checked_formula(table.formula, "firth", table.schema)
    found = fit_model(model_data(formula, rows, dict(reference)), "firth")
    return {} if isinstance(found, Unavailable) else found.estimates


def measure(truth: Truth, name: str, epsilon: float, repeat: int, *, model: bool = True) -> Measured:
    """Makes one release, its sets at equal parts of ε, and measures it."""
    system, table = SYSTEMS[name], truth.table
    began = time.process_time()
    release = synthesize(
        table.table,
        table.schema,
        method=system.method,
        options=system.chosen(table, repeat),
        epsilon=epsilon,
        rows=truth.rows.count,
        copies=table.sets,
        copies_mode="remeasure",
        seed=repeat,
    )
    copies = tuple(read_rows(open_for_comparison(one, table.schema), truth.codec) for one in release.tables)
    seconds = time.process_time() - began
    numbers = _scores(truth, copies)
    found: tuple[Compared, ...] = ()
    if model and epsilon in system.regression:
        found = _compared(truth, copies)
        numbers |= _summaries(found, table.interest)
    chosen: tuple[str, ...] = ()
    if isinstance(release.model, TreeModel) and name.startswith("AIC"):
        chosen = tuple(sorted({node.column or "" for node in release.model.structure.nodes(1)}))
    return Measured(numbers, found, seconds, chosen)


def _scores(truth: Truth, copies: Sequence[Rows]) -> dict[str, float]:
    pairs = []
    for copy in copies:
        target = labels(truth.rows, copy)
        classifier = Logistic.of(truth.rows, copy)
        assert not isinstance(classifier, Unavailable)
        scores = classifier.scores(target).scores
        parts = scores[target == 0], scores[target == 1]
        pairs.append((kolmogorov_smirnov(*parts), legacy_distance(*parts)))
    tests = ChiSquare().compare(TablePair(truth.codec, truth.rows, tuple(copies)), Context("chi2", 0))
    rates = {score.name: float(score.value) for score in tests.scores if score.value is not None}
    gaps = [float(np.abs(np.subtract(*joint_counts(truth.rows, copy))).sum()) / 2 for copy in copies]
    return {
        "SPECKS": float(np.mean([pair[0] for pair in pairs])),
        "legacy": float(np.mean([pair[1] for pair in pairs])),
        "chi2 1%": rates["at_1_percent"],
        "chi2 5%": rates["at_5_percent"],
        "chi2 10%": rates["at_10_percent"],
        "half l1": float(np.mean(gaps)),
    } | _columns(truth, copies)


def _columns(truth: Truth, copies: Sequence[Rows]) -> dict[str, float]:
    """Total variation of every column, and its mean over all, over the experts' first three, and over the others."""
    found = {
        name: float(np.mean([np.abs(_levels(copy, name, size) - _levels(truth.rows, name, size)).sum() / 2
                             for copy in copies]))
        for name, size in truth.codec.domain.sizes.items()
    }  # fmt: skip
    important = [error for name, error in found.items() if name in truth.table.expert[:IMPORTANT]]
    others = [error for name, error in found.items() if name not in truth.table.expert[:IMPORTANT]]
    means = {"single columns": [*important, *others], "important columns": important, "other columns": others}
    return {f"column {name}": error for name, error in found.items()} | {
        name: float(np.mean(errors)) for name, errors in means.items()
    }


def _levels(rows: Rows, name: str, size: int) -> npt.NDArray[np.float64]:
    return np.bincount(rows.codes[name], minlength=size) / rows.count


def _compared(truth: Truth, copies: Sequence[Rows]) -> tuple[Compared, ...]:
    fits = [_estimates(truth.table, copy, truth.reference) for copy in copies]
    found = []
    for name, real in truth.estimates.items():
        ours = [fit.get(name) for fit in fits]
        known = [one for one in ours if one is not None]
        pooled = None
        if len(known) == len(ours):
            liu = pool_liu([one.value for one in known], [one.error**2 for one in known])
            pooled = Estimate(liu.estimate, math.sqrt(liu.variance), liu.low, liu.high)
        found.append(Compared(name, real, pooled))
    return tuple(found)


def _summaries(found: Sequence[Compared], interest: Sequence[str]) -> dict[str, float]:
    by_name = {one.name: max(0.0, one.overlap) for one in found}
    numbers = {
        "overlap": float(np.mean(list(by_name.values()))),
        "overlap near 0": float(np.mean([value < 0.05 for value in by_name.values()])),
        "same sign": float(sum(one.same_sign for one in found)),
        "covered": float(sum(one.covered for one in found)),
    }
    return numbers | {f"overlap {name}": by_name[name] for name in interest}
