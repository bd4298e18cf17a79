"""Whole methods, run again and again on two tables one row apart: nobody can tell them apart better than was paid for.

Every run is the method itself with the real door and the secure randomizer; all its answers are kept. What tells the
tables apart best is close to the likelihood ratio of all answers: of noisy tables the distribution is known, for
choices the ratio is how often each path of choices came up. It, the place where it is cut, and (for ρ) the δ at which
the claim is held against it are chosen on one half of the runs and tested on the other. ε is bounded from below by
Clopper–Pearson bounds at a fixed level (a false alarm in 5,000 at most), without retries; the same number of runs with
half the noise must exceed the claim.

Draws a side: 100,000 for the flat table and 20,000 for the printed budget of STEPS, where each of as many rows with a
code of its own is an experiment; for methods with private choices, which all rows share, 2,000 to 8,000 whole runs.
That is fewer than the 100,000 one would like (4 ms each), and enough to tell half the noise, by about six standard
deviations of the bound. A claim in ρ is tested at a large δ, where few runs suffice (and where it holds too).
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from unittest import mock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from tests.nets.lower_bound import epsilon_lower
from understudy.codec.table import TableCodec
from understudy.counts.opening import open_table
from understudy.domain import Distribution
from understudy.methods.method import method_named
from understudy.privacy import cost as calibrate
from understudy.privacy.cost import UNIT, Budget, Cost, epsilon_of_rho
from understudy.privacy.curator import Curator
from understudy.privacy.randomizer import SecureRandomizer
from understudy.schema import Category, Integer, Schema, UniformBins, Unit
from understudy.testing.replay import Exchange, Recorder

pytestmark = pytest.mark.slow

Floats = npt.NDArray[np.float64]
Plant = Callable[[], AbstractContextManager[object]]
CONFIDENCE = 1 - 1e-4
DELTAS = (0.02, 0.05, 0.1, 0.2)
OTHERS = 4
"""Rows that both tables hold; the extra one differs from them in every column."""


@dataclass(frozen=True, slots=True)
class Game:
    """A method on so few columns that hundreds of runs take seconds."""

    method: str
    columns: int
    budget: Budget
    options: Mapping[str, object] = field(default_factory=dict)
    runs: int = 2000

    @property
    def schema(self) -> Schema:
        names = [f"c{place}" for place in range(self.columns)]
        return Schema(tuple(Category(name=name, labels=("x", "y"), missing=False) for name in names), Unit())

    @property
    def cost(self) -> Cost:
        return self.budget.cost("zcdp" if self.budget.delta else "pure")

    def claims(self) -> list[tuple[float, float]]:
        """(ε, δ) that the cost promises: one pair if it is ε, several if it is ρ."""
        if not self.cost.rho:
            return [(self.cost.epsilon / UNIT, 0.0)]
        rho = Fraction(self.cost.rho, UNIT)
        return [(float(epsilon_of_rho(rho, Fraction(delta))), delta) for delta in DELTAS]

    def play(self, *, extra: bool) -> list[list[Exchange]]:
        """All answers of every run on the table with or without the extra row."""
        schema = self.schema
        rows = [*["x"] * OTHERS, *(["y"] if extra else [])]
        table = open_table(pa.table(dict.fromkeys(schema.names, rows)), schema)
        codec, method = TableCodec.of(schema), method_named(self.method, self.options)
        found = []
        for _ in range(self.runs):
            recorder = Recorder(SecureRandomizer())
            curator = Curator(table, self.cost, recorder)
            curator.fix_codec(codec)
            method.fit(curator, self.cost)
            found.append(recorder.log)
        return found


Key = tuple[object, ...]


def _choices(log: Sequence[Exchange]) -> Key:
    """Every choice of a run: its path."""
    return tuple(
        tuple(np.asarray(exchange.answer).ravel().tolist()) for exchange in log if exchange.request.distribution is None
    )


def _cells(runs: Sequence[Sequence[Exchange]]) -> dict[Key, tuple[int, int]]:
    """Where the extra row is counted, and what that cell holds without it, by path and query."""
    found: dict[Key, tuple[int, int]] = {}
    for log in runs:
        path = _choices(log)
        for place, exchange in enumerate(log):
            if exchange.request.distribution is not None and (path, place) not in found:
                exact = np.asarray(exchange.exact)
                alone = np.flatnonzero(exact == 1)
                cell = int(alone[0]) if alone.size else int(np.argmax(exact))
                found[(path, place)] = cell, int(exact[cell]) - 1
    return found


def _log_ratio(distribution: Distribution, value: int, without: int) -> float:
    """log P(value | one row more) − log P(value | without)."""
    far, near = value - without, value - without - 1
    if distribution.kind == "laplace":
        return (abs(far) - abs(near)) / distribution.scale
    return (far**2 - near**2) / (2 * distribution.scale**2)


def _statistics(
    runs: Sequence[Sequence[Exchange]], cells: Mapping[Key, tuple[int, int]], paths: Mapping[Key, float]
) -> Floats:
    """What is known about each run: the log likelihood ratio of its noisy tables and of its path."""
    found = []
    for log in runs:
        path = _choices(log)
        total = paths.get(path, 0.0)
        for place, exchange in enumerate(log):
            if exchange.request.distribution is not None and (path, place) in cells:
                cell, without = cells[(path, place)]
                total += _log_ratio(exchange.request.distribution, int(np.asarray(exchange.answer)[cell]), without)
        found.append(total)
    return np.asarray(found)


def _excess(game: Game) -> float:
    """How far the proven leak lies above the claim (below 0: nothing was found); chosen and tested on other halves."""
    sides = [game.play(extra=extra) for extra in (False, True)]
    half = game.runs // 2
    first = [runs[:half] for runs in sides]
    cells = _cells(first[1])
    counts = [Counter(_choices(log) for log in runs) for runs in first]
    paths = {path: math.log((counts[1][path] + 1) / (counts[0][path] + 1)) for path in {*counts[0], *counts[1]}}
    chosen = [_statistics(runs, cells, paths) for runs in first]
    tested = [_statistics(runs[half:], cells, paths) for runs in sides]
    return _chosen_and_tested(chosen, tested, game.claims())


def _chosen_and_tested(
    chosen: Sequence[Floats], tested: Sequence[Floats], claims: Sequence[tuple[float, float]]
) -> float:
    """The cut and the claim that look worst on the chosen half, on the tested half."""

    def beyond(sides: Sequence[Floats], cut: float, claim: tuple[float, float]) -> float:
        hits = [int((side >= cut).sum()) for side in sides]
        return epsilon_lower(hits[0], hits[1], sides[0].size, CONFIDENCE, delta=claim[1]) - claim[0]

    cuts = np.unique(np.quantile(np.concatenate(chosen), np.linspace(0.01, 0.99, 99)))
    worst = max(((cut, claim) for cut in cuts for claim in claims), key=lambda option: beyond(chosen, *option))
    return beyond(tested, *worst)


def _half_the_noise() -> AbstractContextManager[object]:
    """Scales of noise as they should be, divided by 2; what is charged stays."""

    def halved(cost: Cost, sensitivity: int, step: str, *, laplace: bool = False) -> Distribution:
        distribution = calibrate.distribution_for(cost, sensitivity, step, laplace=laplace)
        return Distribution(distribution.kind, distribution.parameter / (2 if distribution.kind == "laplace" else 4))

    return mock.patch("understudy.privacy.curator.distribution_for", halved)


GAMES = {
    "steps": Game("steps", 2, Budget(2.0), {"layers": 1, "allocation": "custom", "shares": "0.2,0.8"}),
    "privbayes": Game("privbayes", 3, Budget(2.0), {"preset": "published", "degree": 2, "rows": OTHERS}, runs=4000),
    "mst": Game("mst", 3, Budget(6.0, 1e-6), runs=8000),
}


@pytest.mark.parametrize("name", GAMES)
def test_no_run_tells_more_than_was_paid_for_and_half_the_noise_is_caught(name: str) -> None:
    game = GAMES[name]
    choices = [exchange for exchange in game_log(game) if exchange.request.distribution is None]
    assert any(exchange.request.cells > 1 for exchange in choices), "the game has no private choice"
    assert _excess(game) <= 0, "the tables are told apart better than was paid for"
    with _half_the_noise():
        assert _excess(game) > 0, "half the noise is not noticed: the audit has lost its power"


def game_log(game: Game) -> list[Exchange]:
    """The answers of one run."""
    return Game(game.method, game.columns, game.budget, game.options, runs=1).play(extra=True)[0]


def _codes(number: int, *others: str) -> tuple[Schema, pa.Table]:
    """Columns of which the first has two codes for every experiment: the lower ones empty, the others one row each."""
    code = Integer(name="code", lower=0, upper=2 * number - 1, bins=UniformBins(2 * number), missing=False)
    schema = Schema((code, *(Category(name=name, labels=("x", "y"), missing=False) for name in others)), Unit())
    return schema, pa.table({"code": np.arange(number, 2 * number), **dict.fromkeys(others, ["y"] * number)})


def _both_sides(method: str, options: Mapping[str, object], cost: Cost, data: tuple[Schema, pa.Table]) -> list[Floats]:
    """Log likelihood ratios of the noisy cells of empty codes and of codes with a row, from one run."""
    schema, rows = data
    recorder = Recorder(SecureRandomizer())
    curator = Curator(open_table(rows, schema), cost, recorder)
    curator.fix_codec(TableCodec.of(schema))
    method_named(method, options).fit(curator, cost)
    sides = [np.zeros(rows.num_rows), np.zeros(rows.num_rows)]
    for exchange in recorder.log:
        if exchange.request.cells > 1:
            held = np.flatnonzero(np.asarray(exchange.exact) == 1)
            empty = held - rows.num_rows * (held[1] - held[0])
            assert held.size == rows.num_rows
            for side, cells in zip(sides, (empty, held), strict=True):
                side += [
                    _log_ratio(exchange.request.distribution, int(value), 0)
                    for value in np.asarray(exchange.answer)[cells]
                ]  # type: ignore[arg-type]
    return sides


def _split_and_tested(sides: Sequence[Floats], epsilon: float) -> float:
    return _chosen_and_tested([side[::2] for side in sides], [side[1::2] for side in sides], [(epsilon, 0.0)])


@pytest.mark.parametrize(("bug", "caught"), [(nullcontext, False), (_half_the_noise, True)])
def test_flat_table_at_a_hundred_thousand_draws(bug: Plant, caught: bool) -> None:
    """One run of the method on as many lone rows, each with a code of its own, beside as many empty codes."""
    with bug():
        sides = _both_sides("laplace", {"n_policy": "estimated"}, Budget(1.0).cost("pure"), _codes(100_000))
    found = _split_and_tested(sides, 1.0)
    assert (found > 0) == caught
    assert found > -0.1, "the bound is tight for one Laplace table: the audit has lost its power"


def test_the_printed_budget_of_steps_costs_more_than_it_says() -> None:
    """A given sequence of two columns out of three: 1.5 times the printed ε, and that is what our runs are charged."""
    printed = 3.0
    options = {"layers": 2, "sequence": "code,second", "as_published": "2020"}
    sides = _both_sides("steps", options, Budget(1.5 * printed).cost("pure"), _codes(20_000, "second", "third"))
    assert _split_and_tested(sides, 1.5 * printed) <= 0
    assert _split_and_tested(sides, printed) > 0, "the printed budget is not exceeded"
