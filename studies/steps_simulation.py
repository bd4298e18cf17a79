"""The simulation of the STEPS paper (2020, section 3): regressions on synthetic data from trees and a network.

Two models of Y on four categorical predictors, four ε, two n. Y is binned into 15 public bins on [−7, 7]. Every method
makes four sets at ε/4 each; the true model is fitted to each set and pooled by Liu's rule. Reported per method: mean
absolute bias and RMSE of the coefficients, coverage of their 95 % intervals, RMSE of predictions for 100 new records.
"""

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import stats

from studies.writing import Estimate, Form, StudyPage, estimate, run_as_script, table
from understudy import Schema, Unit, synthesize
from understudy.report.page import Lines, Series
from understudy.schema import Category, Float, UniformBins

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LEVELS = (2, 3, 4, 5)
MAIN = ((0.5,), (0.5, -0.8), (1.0, 0.5, 0.5), (0.5, 0.7, 0.8, 0.5))
EDGE = 7.0
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
MEASURES = ("bias", "estimation RMSE", "coverage", "prediction RMSE")


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
    outcome = Float(name="y", lower=-EDGE, upper=EDGE, bins=UniformBins(15), missing=False)
    return Schema(columns=(*predictors, outcome), unit=Unit(), title="simulated regression")


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
class Scenario:
    """One corner of the design."""

    truth: Truth
    rows: int
    epsilon: float


@dataclass(frozen=True)
class Repeat:
    """What one data set and one method give: estimates, whether intervals cover, and the error of predictions."""

    estimates: Floats
    covered: npt.NDArray[np.bool_]
    prediction: float


def one_repeat(scenario: Scenario, method: str, options: Mapping[str, str], seed: int) -> Repeat:
    rng = np.random.default_rng(seed)
    truth = scenario.truth
    codes, outcome = truth.draw(scenario.rows, rng)
    given = dict(options)
    if method in ("random_partition", "privbayes"):
        given["structure_seed"] = str(seed)
    release = synthesize(
        as_table(codes, outcome),
        schema(),
        method=method,
        options=given,
        epsilon=scenario.epsilon,
        rows=scenario.rows,
        copies=SETS,
        copies_mode="resanitize",
        seed=seed,
    )
    fits = [fit(truth, *read_back(made)) for made in release.tables]
    values = np.array([found for found, _ in fits])
    within = np.array([variance for _, variance in fits]).mean(axis=0)
    between = values.var(axis=0, ddof=1)
    mean, total = values.mean(axis=0), within + between / SETS
    with np.errstate(divide="ignore", over="ignore"):
        freedom = (SETS - 1) * (1 + SETS * within / np.maximum(between, 1e-300)) ** 2
    half = stats.t.ppf(0.975, np.minimum(freedom, 1e9)) * np.sqrt(total)
    fresh, answers = truth.draw(100, rng)
    missed = answers - truth.design(fresh) @ mean
    covered = np.abs(mean - truth.coefficients) <= half
    return Repeat(mean, covered, float(np.sqrt((missed**2).mean())))


def measured(truth: Truth, repeats: Sequence[Repeat]) -> dict[str, Estimate]:
    """The four measures; intervals over repeats (for bias over coefficients' batches of repeats)."""
    errors = np.array([repeat.estimates - truth.coefficients for repeat in repeats])
    groups = np.array_split(errors, min(5, len(errors)))
    return {
        "bias": estimate([float(np.abs(group.mean(axis=0)).mean()) for group in groups]),
        "estimation RMSE": estimate([float(np.sqrt((row**2).mean())) for row in errors]),
        "coverage": estimate([float(repeat.covered.mean()) for repeat in repeats]),
        "prediction RMSE": estimate([repeat.prediction for repeat in repeats]),
    }


Found = Mapping[tuple[str, int, float, str], Mapping[str, Estimate]]


def study(form: Form) -> Path:
    """Runs the simulation and writes its page."""
    page = StudyPage("steps_simulation", "STEPS simulation: regressions on synthetic data", form)
    repeats = form.pick(2, 100)
    epsilons = EPSILONS[1:3] if form.smoke else EPSILONS
    sizes = SIZES[1:] if form.smoke else SIZES
    found: dict[tuple[str, int, float, str], Mapping[str, Estimate]] = {}
    for truth, rows, epsilon in itertools.product(truths(), sizes, epsilons):
        scenario = Scenario(truth, rows, epsilon)
        for name, (method, options) in METHODS.items():
            runs = [one_repeat(scenario, method, options, 1000 * rows + seed) for seed in range(repeats)]
            found[truth.name, rows, epsilon, name] = measured(truth, runs)
    _describe(page, repeats)
    for truth, rows in itertools.product(truths(), sizes):
        _show(page, found, truth.name, rows, epsilons)
    _judge(page, found, sizes, epsilons)
    return page.write()


def _describe(page: StudyPage, repeats: int) -> None:
    page.say(
        f"Design as in section 3 of the paper: {SETS} sets at ε/{SETS} each, {repeats} repeats (the paper: 200). X are "
        "independent and uniform; Y is clamped to 15 equal bins on [−7, 7], values uniform inside a bin: the paper "
        "leaves these open. STEPS is the grouped variant with a tenth of the budget for its choice, the modified "
        "universal histogram has four layers of random order, PrivBayes has degree 2 and half of the budget for its "
        "structure. Trees sum their columns up, as in the paper (no raking). Intervals are 95 % over repeats."
    )


def _show(page: StudyPage, found: Found, model: str, rows: int, epsilons: Sequence[float]) -> None:
    page.say(f"## {model.capitalize()}, n = {rows:,}")
    for measure in MEASURES:
        curves = []
        for name in METHODS:
            ours = [found[model, rows, epsilon, name][measure] for epsilon in epsilons]
            curves.append(
                Series(
                    name,
                    tuple(epsilons),
                    tuple(one.mean for one in ours),
                    tuple(one.low for one in ours),
                    tuple(one.high for one in ours),
                )
            )
        caption = f"{model}, n = {rows:,}: {measure}"
        line = 0.95 if measure == "coverage" else None
        stem = f"{model}-{rows}-{measure}".replace(" ", "-")
        page.figure(stem, Lines(caption, "ε", measure, tuple(curves), logarithmic=True, yardstick=line))
    body = [
        [f"{epsilon:g}", name, *(found[model, rows, epsilon, name][measure] for measure in MEASURES)]
        for epsilon in epsilons
        for name in METHODS
    ]
    page.say(table(("ε", "method", *MEASURES), body))


def _judge(page: StudyPage, found: Found, sizes: Sequence[int], epsilons: Sequence[float]) -> None:
    """A row for each statement of the paper's results."""
    claims = [
        ("model 1", "bias", "PrivBayes", "best"),
        ("model 1", "coverage", "PrivBayes", "best"),
        ("model 1", "prediction RMSE", "PrivBayes", "best"),
        ("model 1", "estimation RMSE", "PrivBayes", "worst"),
        ("model 1", "estimation RMSE", "STEPS", "best"),
        ("model 1", "bias", "UH modified", "worst"),
        ("model 1", "coverage", "UH modified", "worst"),
        ("model 1", "prediction RMSE", "UH modified", "worst"),
        ("model 2", "bias", "STEPS", "best"),
        ("model 2", "coverage", "STEPS", "best"),
        ("model 2", "estimation RMSE", "STEPS", "best"),
        ("model 2", "prediction RMSE", "STEPS", "best"),
        ("model 2", "estimation RMSE", "PrivBayes", "worst"),
        ("model 2", "coverage", "UH modified", "worst"),
        ("model 2", "prediction RMSE", "UH modified", "worst"),
    ]
    corners = [(rows, epsilon) for rows in sizes for epsilon in epsilons]
    for model, measure, name, place in claims:
        holds = [_stands(found, (model, rows, epsilon), measure, name, place) for rows, epsilon in corners]
        text = f"clearly so in {holds.count('yes')} of {len(corners)} settings, clearly not in {holds.count('no')}"
        verdict = "confirmed" if holds.count("yes") > len(corners) / 2 and "no" not in holds else "mixed"
        if holds.count("no") > len(corners) / 2:
            verdict = "refuted"
        elif not holds.count("yes") and not holds.count("no"):
            verdict = "not decided"
        page.find(f"{model}: {name} is {place} in {measure}", text, verdict)
    better, text = _improvement(found, sizes, epsilons)
    page.find("results improve with ε", text, "confirmed" if better > 0.95 else "mixed")
    away, text = _coverage_of_network(found, sizes, epsilons)
    page.find("coverage of PrivBayes moves away from 95 % as ε grows (model 1)", text, away)


def _coverage_of_network(found: Found, sizes: Sequence[int], epsilons: Sequence[float]) -> tuple[str, str]:
    """Whether intervals of PrivBayes miss more often at the largest ε than where they miss least."""
    falls = []
    texts = []
    for rows in sizes:
        ours = [found["model 1", rows, epsilon, "PrivBayes"]["coverage"] for epsilon in epsilons]
        best = max(ours, key=lambda one: one.mean)
        falls.append(ours[-1].high < best.low)
        texts.append(
            f"n = {rows:,}: {', '.join(f'{one.mean:.3f}' for one in ours)} at ε = {', '.join(map(str, epsilons))}"
        )
    verdict = "confirmed" if all(falls) else "mixed" if any(falls) else "not decided"
    return verdict, "; ".join(texts)


def _error(estimated: Estimate, measure: str) -> tuple[float, float]:
    """The ends of a measure's interval, turned so that lower is better."""
    if measure != "coverage":
        return estimated.low, estimated.high
    ends = (abs(estimated.low - 0.95), abs(estimated.high - 0.95), abs(estimated.mean - 0.95))
    inside = estimated.low <= 0.95 <= estimated.high
    return (0.0 if inside else min(ends), max(ends))


def _stands(found: Found, corner: tuple[str, int, float], measure: str, name: str, place: str) -> str:
    """Whether the method is clearly best (or worst) there: its interval lies apart from all the others'."""
    ends = {one: _error(found[(*corner, one)][measure], measure) for one in METHODS}
    own = ends.pop(name)
    if place == "best":
        if all(own[1] < other[0] for other in ends.values()):
            return "yes"
        return "no" if any(other[1] < own[0] for other in ends.values()) else "open"
    if all(own[0] > other[1] for other in ends.values()):
        return "yes"
    return "no" if any(other[0] > own[1] for other in ends.values()) else "open"


def _improvement(found: Found, sizes: Sequence[int], epsilons: Sequence[float]) -> tuple[float, str]:
    better = [
        found[model, rows, high, name]["estimation RMSE"].mean < found[model, rows, low, name]["estimation RMSE"].mean
        for model in ("model 1", "model 2")
        for rows in sizes
        for low, high in itertools.pairwise(epsilons)
        for name in METHODS
    ]
    share = statistics.fmean(better)
    return share, f"estimation RMSE falls in {sum(better)} of {len(better)} steps to a larger ε ({share:.0%})"


if __name__ == "__main__":
    run_as_script(study, __doc__ or "")
