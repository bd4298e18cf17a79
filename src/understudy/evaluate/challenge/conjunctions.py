"""Score 2 of the challenge ("classification"): shares of rows that satisfy 300 random conjunctions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.evaluate.challenge.cells import CodeView, NumberView, Rule, challenge_columns, column_view
from understudy.evaluate.data.rows import Rows

__all__ = ["BASE_ROWS", "CodeSet", "Condition", "Interval", "conjunction_score", "draw_conjunctions", "shares"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

BASE_ROWS = 300
CHANCE = 0.10
LEAST_SHARE = 1e-6
TOLERATED = 1e-3


@dataclass(frozen=True, slots=True)
class CodeSet:
    """The value must be one of these codes (as the scorer sees them, or of the states in which a number is none)."""

    codes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Interval:
    """The number must lie in here, both ends included."""

    low: float
    high: float


Condition = Mapping[str, CodeSet | Interval]


def draw_conjunctions(
    rows: Rows, rng: np.random.Generator, *, number: int = BASE_ROWS, chance: float = CHANCE, rule: Rule = "buckets"
) -> tuple[Condition, ...]:
    """Conditions around rows of the original, drawn with replacement; rows drawn twice count once."""
    columns = challenge_columns(rows)
    views = {name: column_view(rows, name, rule) for name in columns}
    bases = sorted(set(rng.integers(0, rows.count, number).tolist()))
    found: list[Condition] = []
    for base in bases:
        chosen = [name for name in columns if rng.random() < chance]
        found.append({name: _condition(views[name], base, rng) for name in chosen})
    return tuple(found)


def _condition(view: CodeView | NumberView, base: int, rng: np.random.Generator) -> CodeSet | Interval:
    """Codes are drawn from all that the specification allows, whether or not a row has them, until one repeats."""
    if isinstance(view, CodeView):
        allowed = {view.at(base)}
        while True:
            drawn = int(rng.integers(0, view.largest + 1))
            if drawn in allowed:
                return CodeSet(tuple(sorted(allowed)))
            allowed.add(drawn)
    radius = float(rng.uniform(0, view.upper - view.lower))
    if view.states[base] >= 0:
        return CodeSet((int(view.states[base]),))
    value = float(view.values[base])
    return Interval(value - radius, value + radius)


def shares(rows: Rows, conditions: Sequence[Condition], rule: Rule = "buckets") -> Floats:
    """The share of rows that satisfy each conjunction."""
    columns = challenge_columns(rows)
    views = {name: column_view(rows, name, rule) for name in columns}
    found = []
    for condition in conditions:
        fits: Bools = np.ones(rows.count, np.bool_)
        for name, said in condition.items():
            if name in views:  # conditions on columns that a submission lacks are ignored
                fits &= _satisfied(views[name], said)
        found.append(float(fits.mean()))
    return np.asarray(found, np.float64)


def _satisfied(view: CodeView | NumberView, said: CodeSet | Interval) -> Bools:
    if isinstance(said, Interval):
        assert isinstance(view, NumberView)
        return (view.states < 0) & (view.values >= said.low) & (view.values <= said.high)
    if isinstance(view, NumberView):
        return np.isin(view.states, said.codes)
    fits: Bools = np.isin(view.levels, said.codes)[view.places]
    return fits


def conjunction_score(original: Floats, submission: Floats) -> float:
    """10⁶ · max(0, 1 + RMS(ln max(g, 10⁻⁶) − ln f) / ln 10⁻³).

    >>> round(conjunction_score(np.array([0.02, 0.1, 0.001]), np.array([0.03, 0.05, 0.0])), 1)
    418761.6
    """
    gaps = np.log(np.maximum(submission, LEAST_SHARE)) - np.log(original)
    return 1e6 * max(0.0, 1.0 + math.sqrt(float(np.mean(gaps**2))) / math.log(TOLERATED))
