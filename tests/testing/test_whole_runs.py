"""Many experiments in one run: rows with a code of their own each, beside as many codes that nobody has.

Noise is drawn for every cell on its own, so in one run of a flat table each lone row is an experiment. That is how far
more draws are reached than by whole runs (`tests/audit/test_bars.py`): 100,000 a side for the flat table and 20,000 for
the printed budget of STEPS. The threshold is chosen on one half of the cells and tested on the other, at a fixed level.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from tests.audit.halved import smaller_noise
from understudy.audit.audit import Samples, findings
from understudy.audit.bounds import ClaimedAccount
from understudy.codec.table import TableCodec
from understudy.counts.opening import open_table
from understudy.domain import Distribution
from understudy.methods.method import method_named
from understudy.privacy.cost import Budget, Cost
from understudy.privacy.curator import Curator
from understudy.privacy.randomizer import SecureRandomizer
from understudy.schema import Category, Integer, Schema, UniformBins, Unit
from understudy.testing.replay import Recorder

pytestmark = pytest.mark.slow

Floats = npt.NDArray[np.float64]
Plant = Callable[[], AbstractContextManager[object]]
CONFIDENCE = 1 - 1e-6


def _log_ratio(distribution: Distribution, value: int, without: int) -> float:
    """log P(value | one row more) − log P(value | without)."""
    far, near = value - without, value - without - 1
    if distribution.kind == "laplace":
        return (abs(far) - abs(near)) / distribution.scale
    return (far**2 - near**2) / (2 * distribution.scale**2)


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
    """How far the proven leak lies above the claim; below 0 where nothing was found."""
    samples = Samples(("ratio",), sides[0][:, None], sides[1][:, None])
    account = ClaimedAccount(epsilon, 0.0)
    return findings(samples, account, CONFIDENCE)[0].bound - epsilon


@pytest.mark.parametrize(("bug", "caught"), [(nullcontext, False), (smaller_noise, True)])
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
