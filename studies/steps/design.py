"""The simulated data, the regressions on them, and one run of the simulation."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import stats

from studies.runs import Record
from understudy import Schema, Unit, synthesize
from understudy.models.histogram_tree import TreeModel
from understudy.schema import Category, Float, UniformBins

__all__ = ["BINNED", "EPSILONS", "METHODS", "SETS", "SIZES", "Run", "Truth", "carried", "fit", "truths"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LEVELS = (2, 3, 4, 5)
MAIN = ((0.5,), (0.5, -0.8), (1.0, 0.5, 0.5), (0.5, 0.7, 0.8, 0.5))
EDGE = 7.0
BINS = 15
SETS = 4
EPSILONS = (0.5, 2.0, 5.0, 10.0)
SIZES = (10_000, 4_000)
CELL_SEED = 2020
METHODS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "STEPS": (
        "steps",
        {"choice": "grouped", "layers": "2", "choice_share": "0.1", "allocation": "equal", "margins": "summed"},
    ),
    "UH modified": ("random_partition", {"layers": "4"}),
    "PrivBayes": ("privbayes", {"preset": "steps_paper"}),
}
BINNED = "binned only"
"""No method: Y is put into its bins and drawn again inside them, the rest stays."""


@dataclass(frozen=True)
class Truth:
    """A model of Y: the design of a record and the coefficients."""

    name: str
    coefficients: Floats
    saturated: bool

    def design(self, codes: Ints) -> Floats:
        """One row for each record: an indicator per cell, or an intercept and a dummy per level but the first."""
        if self.saturated:
            cells = np.ravel_multi_index(tuple(codes.T), LEVELS)
            return np.eye(int(np.prod(LEVELS)))[cells]
        dummies = [np.eye(levels)[codes[:, place]][:, 1:] for place, levels in enumerate(LEVELS)]
        return np.hstack([np.ones((len(codes), 1)), *dummies])

    def draw(self, rows: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """Predictors, independent and uniform, and outcomes with standard normal errors."""
        codes = np.column_stack([rng.integers(0, levels, rows) for levels in LEVELS])
        return codes, self.design(codes) @ self.coefficients + rng.standard_normal(rows)


def truths() -> tuple[Truth, Truth]:
    """The main-effects model, and the saturated one whose coefficients are drawn once."""
    main = np.array([0.0, *itertools.chain.from_iterable(MAIN)])
    cells = np.random.default_rng(CELL_SEED).standard_normal(int(np.prod(LEVELS)))
    return Truth("model 1", main, saturated=False), Truth("model 2", cells, saturated=True)


def schema() -> Schema:
    """Public facts: levels of the predictors, fifteen bins of Y."""
    predictors = tuple(
        Category(name=f"x{place + 1}", labels=tuple(str(level) for level in range(levels)), missing=False)
        for place, levels in enumerate(LEVELS)
    )
    outcome = Float(name="y", lower=-EDGE, upper=EDGE, bins=UniformBins(BINS), missing=False)
    return Schema(columns=(*predictors, outcome), unit=Unit(), title="simulated regression", unreadable="drop")


def as_table(codes: Ints, outcome: Floats) -> pa.Table:
    columns: dict[str, object] = {f"x{place + 1}": codes[:, place].astype(str) for place in range(len(LEVELS))}
    return pa.table(columns | {"y": outcome})


def read_back(made: pa.Table) -> tuple[Ints, Floats]:
    codes = np.column_stack([made.column(f"x{place + 1}").to_numpy().astype(np.int64) for place in range(len(LEVELS))])
    return codes, made.column("y").to_numpy()


def fit(truth: Truth, codes: Ints, outcome: Floats) -> tuple[Floats, Floats]:
    """Coefficients and their variances: least squares, or ridge with the penalty of least generalised cross-validation.

    The saturated design has orthogonal columns, so ridge shrinks every cell's mean by n/(n + penalty).
    """
    if not truth.saturated:
        design = truth.design(codes)
        inverse = np.linalg.pinv(design.T @ design)
        found = inverse @ design.T @ outcome
        noise = float(((outcome - design @ found) ** 2).sum()) / max(len(outcome) - design.shape[1], 1)
        return found, noise * np.diag(inverse)
    cells = np.ravel_multi_index(tuple(codes.T), LEVELS)
    counts = np.bincount(cells, minlength=int(np.prod(LEVELS))).astype(np.float64)
    sums = np.bincount(cells, weights=outcome, minlength=counts.size)
    squares = float((outcome**2).sum())
    best = min(np.geomspace(1e-3, 1e3, 61), key=lambda penalty: _gcv(penalty, counts, sums, squares))
    found = sums / (counts + best)
    fitted = found[cells]
    freedom = max(len(outcome) - float((counts / (counts + best)).sum()), 1.0)
    noise = float(((outcome - fitted) ** 2).sum()) / freedom
    return found, noise * counts / (counts + best) ** 2


def _gcv(penalty: float, counts: Floats, sums: Floats, squares: float) -> float:
    found = sums / (counts + penalty)
    residual = squares - 2 * float(found @ sums) + float(found**2 @ counts)
    rows = counts.sum()
    return residual / rows / (1 - float((counts / (counts + penalty)).sum()) / rows) ** 2


@dataclass(frozen=True)
class Run:
    """One data set and one method: model 1 or 2, rows, ε; the repeat is the seed of the data and of the method."""

    model: int
    rows: int
    epsilon: float
    method: str
    repeat: int

    @property
    def key(self) -> str:
        return f"{self.model}/{self.rows}/{self.epsilon:g}/{self.method}/{self.repeat}"

    @property
    def seed(self) -> int:
        return 1000 * self.rows + self.repeat


@cache
def _truths() -> tuple[Truth, Truth]:
    return truths()


def carried(run: Run) -> Record:
    """What one data set and one method give: estimates, their spread between sets, cover, the error of predictions.

    The data and the 100 new records of a repeat are the same for all methods and ε.
    """
    truth, rng = _truths()[run.model - 1], np.random.default_rng(run.seed)
    codes, outcome = truth.draw(run.rows, rng)
    fresh, answers = truth.draw(100, rng)
    found: Record = {}
    if run.method == BINNED:
        made = [(codes, _redrawn(outcome, rng)) for _ in range(SETS)]
    else:
        made, top = _released(run, codes, outcome)
        found["top"] = top
    fits = [fit(truth, *one) for one in made]
    mean, half = _pooled(fits)
    missed = answers - truth.design(fresh) @ mean
    covered = np.abs(mean - truth.coefficients) <= half
    return found | {
        "estimates": [round(float(value), 7) for value in mean],
        "covered": [int(one) for one in covered],
        "between": [round(float(one), 7) for one in np.array([values for values, _ in fits]).std(axis=0, ddof=1)],
        "prediction": float(np.sqrt((missed**2).mean())),
    }


def _released(run: Run, codes: Ints, outcome: Floats) -> tuple[list[tuple[Ints, Floats]], str]:
    """The synthetic sets, and the columns of the upper layers of the first tree where there is one."""
    method, options = METHODS[run.method]
    seeded = {"structure_seed": str(run.seed)} if method in ("random_partition", "privbayes") else {}
    release = synthesize(
        as_table(codes, outcome),
        schema(),
        method=method,
        options={**options, **seeded},
        epsilon=run.epsilon,
        rows=run.rows,
        copies=SETS,
        copies_mode="remeasure",
        seed=run.seed,
    )
    top = ""
    if isinstance(release.model, TreeModel):
        names = release.model.structure.domain.columns
        top = "+".join(sorted({names[place] for place in release.model.structure.columns.tolist() if place >= 0}))
    return [read_back(one) for one in release.tables], top


def _redrawn(outcome: Floats, rng: np.random.Generator) -> Floats:
    width = 2 * EDGE / BINS
    places = np.clip(np.floor((outcome + EDGE) / width), 0, BINS - 1)
    return -EDGE + width * (places + rng.random(len(outcome)))


def _pooled(fits: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Means of the coefficients over the sets, and half widths of their 95 % intervals by Liu's rule."""
    values = np.array([found for found, _ in fits])
    within = np.array([variance for _, variance in fits]).mean(axis=0)
    between = values.var(axis=0, ddof=1)
    with np.errstate(divide="ignore", over="ignore"):
        freedom = (SETS - 1) * (1 + SETS * within / np.maximum(between, 1e-300)) ** 2
    half = stats.t.ppf(0.975, np.minimum(freedom, 1e9)) * np.sqrt(within + between / SETS)
    return values.mean(axis=0), half
