"""What one release of labels is worth: slopes, correlations, joint shares, and coefficients of logistic regressions."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from studies.duke.benches import Bench, Ints
from studies.runs import Record
from understudy import synthesize
from understudy.evaluate.glm import design_of, factor, fit_logistic
from understudy.evaluate.marginals import correlation_table, slope_table

__all__ = ["BASE", "SETTINGS", "Labelled", "Setting", "as_record", "labelled", "read_record"]

Floats = npt.NDArray[np.float64]
Pairs = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Setting:
    """One corner of the design: λ is 1/scale of the noise on a count, so ε = λ · trees · private columns."""

    collapsed: bool = True
    trees: int = 5
    agency: int = 1
    occupation: int = 1
    rate: float = 0.1
    leaf_size: int = 1000
    route: str = "true"
    leaf_minimum: int = 0


BASE = "base"
SETTINGS: Mapping[str, Setting] = {
    BASE: Setting(),
    "not collapsed": Setting(collapsed=False),
    "occupation 10": Setting(occupation=10),
    "occupation 10, not collapsed": Setting(collapsed=False, occupation=10),
    "10 trees": Setting(trees=10),
    "10 trees, same ε": Setting(trees=10, rate=0.05),
    "agency 60": Setting(agency=60),
    "agency 60, not collapsed": Setting(collapsed=False, agency=60),
    "λ = 0.4": Setting(rate=0.4),
    "n_B = 2,000": Setting(leaf_size=2000),
    "occupation 60": Setting(occupation=60),
    "synthetic route": Setting(route="synthetic"),
    "leaves of 200": Setting(leaf_minimum=200),
}


@dataclass(frozen=True)
class Labelled:
    """Numbers of one release, points for its panels, and the ε that it states."""

    numbers: Mapping[str, float]
    points: Mapping[str, Pairs]
    epsilon: float
    seconds: float


def as_record(found: Labelled, *, points: bool) -> Record:
    """What is kept of a release; points only where they are wanted."""
    kept = {name: list(map(list, pairs)) for name, pairs in found.points.items()} if points else {}
    return {"numbers": dict(found.numbers), "points": kept, "epsilon": found.epsilon, "seconds": found.seconds}


def read_record(record: Mapping[str, Any]) -> Labelled:
    """A release as it was kept."""
    points = {name: tuple((one, other) for one, other in pairs) for name, pairs in record["points"].items()}
    return Labelled(record["numbers"], points, record["epsilon"], record["seconds"])


def labelled(bench: Bench, setting: Setting, repeat: int) -> Labelled:
    """Makes a release, labels the private table's public columns with it, and compares."""
    began = time.process_time()
    options = {
        "private": f"{bench.outcome},{bench.second}",
        "weights": f"{bench.agency}:{setting.agency},{bench.occupation}:{setting.occupation}",
        "leaf_size": str(setting.leaf_size),
        "leaf_minimum": str(setting.leaf_minimum),
        "trees": str(setting.trees),
        "route": setting.route,
        "structure_seed": str(repeat),
        "total_share": "0",
    }
    if setting.collapsed:
        options["collapse"] = bench.collapse
    release = synthesize(
        bench.private,
        bench.coarse if setting.collapsed else bench.fine,
        method="rdt",
        options=options,
        epsilon=setting.rate * setting.trees * 2,
        public=bench.public,
        rows=1,
        seed=repeat,
    )
    made = release.label(bench.private.drop_columns([bench.outcome, bench.second]), seed=repeat)
    numbers, points = _compared(bench, made)
    return Labelled(numbers, points, release.statement.epsilon or math.nan, time.process_time() - began)


def _compared(bench: Bench, made: pa.Table) -> tuple[dict[str, float], dict[str, Pairs]]:
    ours = {name: bench.codes(name, bench.private) for name in bench.fine.names}
    theirs = {name: bench.codes(name, made) for name in bench.fine.names}
    numbers: dict[str, float] = {}
    slopes: list[tuple[float, float]] = []
    correlations: list[tuple[float, float]] = []
    for name in bench.predictors:
        here = _level_pairs(bench, ours, theirs, name)
        numbers[f"slopes {name}"] = float(np.mean([abs(one - other) for one, other in here[0]]))
        numbers[f"correlations {name}"] = float(np.mean([abs(one - other) for one, other in here[1]]))
        slopes += here[0]
        correlations += here[1]
    numbers["slope agreement"] = _agreement(slopes)
    numbers["correlation agreement"] = _agreement(correlations)
    joint = _shares(ours, theirs, bench.fine.names)
    third = _shares(ours, theirs, (bench.outcome, bench.second, bench.agency))
    numbers["joint shares, all columns"] = _agreement(joint)
    numbers["joint shares with agency"] = _agreement(third)
    numbers["private pair off by"] = (
        sum(abs(one - other) for one, other in _shares(ours, theirs, (bench.outcome, bench.second))) / 2
    )
    new = {pair for pair, (real, _) in zip(range(len(joint)), joint, strict=True) if real == 0}
    numbers["share of new combinations"] = sum(joint[place][1] for place in new)
    models = {"agency": [bench.agency], "occupation": [bench.occupation], "both": [bench.agency, bench.occupation]}
    points: dict[str, Pairs] = {"slopes": tuple(slopes), "correlations": tuple(correlations), "joint": tuple(third)}
    points["all columns"] = tuple(sorted(set(joint)))  # levels with the same two counts are one point
    for title, names in models.items():
        found = _coefficients(bench, ours, names), _coefficients(bench, theirs, names)
        pairs = list(zip(*found, strict=True))
        numbers[f"coefficients {title}"] = math.sqrt(float(np.mean([(one - other) ** 2 for one, other in pairs])))
        numbers[f"coefficient agreement {title}"] = _agreement(pairs)
        points[f"coefficients {title}"] = tuple(pairs)
    return numbers, points


def _agreement(pairs: Sequence[tuple[float, float]]) -> float:
    return float(np.corrcoef(np.array(pairs).T)[0, 1])


def _frequent(bench: Bench, codes: Ints, name: str) -> Ints:
    """Levels that collapsing leaves alone, so that methods are compared on the same ones."""
    least = bench.sizes[0] if name == bench.agency else bench.sizes[1]
    return np.flatnonzero(np.bincount(codes) >= least)


def _level_pairs(
    bench: Bench, ours: Mapping[str, Ints], theirs: Mapping[str, Ints], name: str
) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Slopes and correlations of every level of the private columns on every frequent level of a public one."""
    levels = _frequent(bench, ours[name], name)
    slopes: list[tuple[float, float]] = []
    correlations: list[tuple[float, float]] = []
    for target in (bench.outcome, bench.second):
        known = np.flatnonzero(np.bincount(ours[target]))
        tables = [_crossed(one[target], one[name]) for one in (ours, theirs)]
        for measure, found in ((slope_table, slopes), (correlation_table, correlations)):
            first, second = (measure(table)[np.ix_(known, levels)].ravel() for table in tables)
            found += zip(first.tolist(), np.nan_to_num(second).tolist(), strict=True)
    return slopes, correlations


def _crossed(rows: Ints, columns: Ints) -> Ints:
    shape = int(rows.max()) + 1, int(columns.max()) + 1
    counts = np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1])
    return counts.reshape(shape).astype(np.int64)


def _shares(ours: Mapping[str, Ints], theirs: Mapping[str, Ints], names: Sequence[str]) -> list[tuple[float, float]]:
    """Shares of every joint level that occurs in either table."""
    stacked = np.column_stack([np.concatenate([ours[name], theirs[name]]) for name in names])
    _, places = np.unique(stacked, axis=0, return_inverse=True)
    places = places.ravel()
    half = len(places) // 2
    cells = int(places.max()) + 1
    parts = [np.bincount(part, minlength=cells) / half for part in (places[:half], places[half:])]
    return list(zip(parts[0].tolist(), parts[1].tolist(), strict=True))


def _coefficients(bench: Bench, table: Mapping[str, Ints], names: Sequence[str]) -> list[float]:
    """Log odds of the event by level: a regression on indicators, rare levels together as the reference."""
    terms = []
    for name in names:
        levels = _frequent(bench, table[name], name)
        codes = np.zeros(len(table[name]), np.int64)
        for place, level in enumerate(levels):
            codes[table[name] == level] = place + 1
        terms.append(factor([f"{name}={place}" for place in range(len(levels) + 1)], codes, 0))
    event = int(np.searchsorted(np.unique(np.asarray(bench.private.column(bench.outcome).to_pylist())), bench.event))
    design = design_of(terms, len(table[names[0]]))
    fit = fit_logistic(design, (table[bench.outcome] == event).astype(np.float64))
    return [float(value) for value in fit.coefficients[1:]]
