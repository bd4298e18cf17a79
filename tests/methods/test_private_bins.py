"""Private bins by mass, by quantiles and by halving: exact accounting, sensible edges, every kind of number."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from tests.methods.door import door, epsilon, rho
from understudy.errors import UsageError
from understudy.methods.preparation import (
    FINE_CELLS,
    bin_steps,
    preparation_cost,
    preparation_steps,
    prepare,
    public_facts,
)
from understudy.privacy.cost import Cost
from understudy.schema import Date, Float, Integer, PrivateBins, Schema, Unit
from understudy.schema.columns import BIN_RULES
from understudy.testing.doubles import NoNoise, SeededRandomizer
from understudy.testing.replay import Recorder, cost_of

RNG = np.random.default_rng(2)
INCOME = np.clip(RNG.lognormal(10.0, 0.7, 4_000), 0, 199_999).astype(int)


def _income(count: int, by: str, **changes: object) -> Schema:
    column = Integer(name="income", lower=0, upper=199_999, bins=PrivateBins(count, by), **changes)  # type: ignore[arg-type]
    return Schema((column,), Unit())


def _largest_share(edges: tuple[int, ...]) -> float:
    counts, _ = np.histogram(INCOME, bins=[*edges, 200_000])
    return float(counts.max() / counts.sum())


@pytest.mark.parametrize("by", BIN_RULES)
@pytest.mark.parametrize("granted", [epsilon(8), rho(2)])
def test_charges_are_what_the_plan_says(by: str, granted: Cost) -> None:
    schema = _income(16, by)
    costs, rest = preparation_cost(schema, granted)
    recorder = Recorder(SeededRandomizer(1))
    curator = door(pa.table({"income": INCOME}), schema, granted, recorder, fix_codec=False)
    codec = prepare(curator, schema, costs)
    steps = preparation_steps(schema, costs)
    assert [(name, cost) for name, cost in curator.charges] == [(step.name, step.cost) for step in steps]
    assert curator.left - rest in (Cost(), granted - rest - sum((step.cost for step in steps), Cost()))
    queries = cost_of([exchange.request for exchange in recorder.log], zcdp=granted.rho > 0)
    assert queries.fits(sum((cost for _, cost in curator.charges), Cost()))
    assert 8 <= len(codec.edges["income"]) <= 16
    assert _largest_share(codec.edges["income"]) < 0.3  # of sixteen even bins one holds more than a third of the rows
    assert public_facts(schema).domain.sizes["income"] >= codec.domain.sizes["income"]


def test_quantiles_without_noise_are_quantiles() -> None:
    schema = _income(8, "quantiles", missing=False)
    curator = door(pa.table({"income": INCOME}), schema, epsilon(1), NoNoise(), fix_codec=False)
    edges = prepare(curator, schema, {"income": epsilon(1)}).edges["income"]
    wanted = np.quantile(INCOME, np.arange(8) / 8)
    assert len(edges) == 8
    assert np.abs(np.array(edges[1:]) - wanted[1:]).max() < 4 * 200_000 / FINE_CELLS


def test_halves_without_noise_follow_the_rows() -> None:
    """400 rows, 8 bins: ranges with more than 100 rows are halved, less two rows of bias per level or so."""
    schema = _income(8, "privtree", missing=False)
    table = pa.table({"income": [10] * 300 + [150_000] * 100})
    curator = door(table, schema, epsilon(100), NoNoise(), fix_codec=False)
    edges = prepare(curator, schema, {"income": epsilon(100)}).edges["income"]
    assert len(edges) == 8
    assert edges[-2:] == (50_000, 100_000)
    assert edges[1] == 1_562  # 200,000 / 128, on the grid: halved until the leaves are used up


@pytest.mark.parametrize("by", BIN_RULES)
def test_rows_on_one_value_and_no_rows_at_all(by: str) -> None:
    schema = _income(6, by)
    for values in (np.full(500, 17), np.array([], dtype=np.int64)):
        curator = door(pa.table({"income": values}), schema, epsilon(2), fix_codec=False)
        codec = prepare(curator, schema, {"income": epsilon(2)})
        assert 1 <= len(codec.edges["income"]) <= 6


@pytest.mark.parametrize("by", BIN_RULES)
@pytest.mark.parametrize("count", [1, 2, 3, 2_000])
def test_any_number_of_bins(by: str, count: int) -> None:
    schema = _income(count, by)
    curator = door(pa.table({"income": INCOME[:200]}), schema, epsilon(50), fix_codec=False)
    costs = {"income": epsilon(50)}
    codec = prepare(curator, schema, costs)
    assert len(codec.edges["income"]) <= min(count, FINE_CELLS)
    assert sum((step.cost for step in bin_steps(schema, costs)), Cost()).fits(epsilon(50))


@pytest.mark.parametrize("by", BIN_RULES)
def test_floats_dates_and_several_columns_at_once(by: str) -> None:
    schema = Schema(
        (
            Float(name="share", lower=0.0, upper=1.0, bins=PrivateBins(4, by)),
            Date(name="day", lower=dt.date(2020, 1, 1), upper=dt.date(2020, 1, 5), bins=PrivateBins(9, by)),
            Integer(name="plain", lower=0, upper=999, bins=PrivateBins(4)),
        ),
        Unit(column="who", rows=2),
    )
    table = pa.table(
        {
            "share": RNG.random(300),
            "day": [dt.date(2020, 1, 2)] * 300,
            "plain": RNG.integers(0, 999, 300),
            "who": [str(place) for place in range(300)],
        }
    )
    granted = epsilon(100)
    costs, _ = preparation_cost(schema, granted)
    curator = door(table, schema, granted, fix_codec=False)
    codec = prepare(curator, schema, costs)
    steps = preparation_steps(schema, costs)
    assert [name for name, _ in curator.charges] == [step.name for step in steps][: len(curator.charges)]
    assert set(codec.edges) == {"share", "day", "plain"}
    assert 1 <= len(codec.edges["day"]) <= 5


@pytest.mark.parametrize("by", BIN_RULES)
def test_shares_that_buy_nothing_are_refused_in_advance(by: str) -> None:
    with pytest.raises(UsageError, match="no share of the budget"):
        bin_steps(_income(20, by), {"income": Cost()})
