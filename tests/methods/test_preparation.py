"""Tests of `understudy.methods.preparation`."""

import datetime as dt
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from tests.methods.door import VOTERS, door, epsilon, rho
from understudy.counts.frames import FrameTable
from understudy.domain import Discovery, Distribution, Measurement
from understudy.errors import UsageError
from understudy.methods.dpwgan import DpWgan
from understudy.methods.independent import Independent
from understudy.methods.laplace import Laplace
from understudy.methods.method import currency_for
from understudy.methods.preparation import (
    FINE_CELLS,
    bin_steps,
    equal_mass_edges,
    failure_delta,
    granted_cost,
    most_frequent,
    pool_of,
    preparation_cost,
    preparation_steps,
    prepare,
    public_facts,
    rare_columns,
    rare_steps,
)
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget, Cost
from understudy.schema import Category, Date, Float, Integer, OpenCategory, PrivateBins, Schema, Unit
from understudy.schema.columns import BIN_RULES
from understudy.testing import cases as tables
from understudy.testing.doubles import NoNoise, SeededRandomizer
from understudy.testing.replay import Recorder, cost_of

OPEN = Schema(
    columns=(
        OpenCategory(name="job", most_labels=2, missing=False),
        Integer(name="income", lower=0, upper=99_999, bins=PrivateBins(4), special=(999_999,)),
        Category(name="sex", labels=("f", "m"), missing=False),
    ),
    unit=Unit(),
)
BUDGET = Budget(50.0, 1e-9)


def people(rows=3_000):
    rng = np.random.default_rng(0)
    jobs = rng.choice(["baker", "nurse", "clerk"], rows, p=[0.5, 0.3, 0.2]).tolist()
    jobs[0] = "spy"
    income = np.where(rng.random(rows) < 0.1, 999_999, (rng.random(rows) ** 3 * 90_000).astype(int))
    return pa.table({"job": jobs, "income": pa.array(income), "sex": rng.choice(["f", "m"], rows).tolist()})


def test_shares_add_up():
    costs, rest = preparation_cost(OPEN, Cost(rho=1_000, delta=7))
    assert costs == {"job": Cost(rho=50, delta=7), "income": Cost(rho=50)}
    assert rest == Cost(rho=900)
    many = Schema(columns=tuple(OpenCategory(name=f"c{place}") for place in range(10)), unit=Unit())
    costs, rest = preparation_cost(many, Cost(epsilon=1_000, delta=100))
    assert set(costs.values()) == {Cost(epsilon=30, delta=10)}
    assert rest == Cost(epsilon=700)


def test_nothing_open_costs_nothing():
    assert preparation_cost(VOTERS, epsilon(1)) == ({}, epsilon(1))
    assert failure_delta(VOTERS, BUDGET, "zcdp") == 0
    assert preparation_steps(VOTERS, {}) == ()
    curator = door(
        pa.table({name: pa.array([], pa.string()) for name in VOTERS.names}), VOTERS, epsilon(1), fix_codec=False
    )
    assert prepare(curator, VOTERS, {}).domain == curator.domain
    assert curator.left == epsilon(1)


def test_delta_is_set_aside_by_currency():
    units = BUDGET.delta_units
    assert failure_delta(OPEN, BUDGET, "pure") == units
    assert failure_delta(OPEN, BUDGET, "zcdp") == units // 2
    assert granted_cost(OPEN, BUDGET, "pure") == Cost(epsilon=50 * UNIT, delta=units)
    assert granted_cost(OPEN, BUDGET, "zcdp").delta == units // 2
    for budget in (Budget(1.0), Budget(1.0, 1 / DELTA_UNIT)):
        with pytest.raises(UsageError, match=r"job.*delta="):
            failure_delta(OPEN, budget, "zcdp")


@pytest.mark.parametrize("method", [Independent(), Laplace()])
def test_the_whole_way(method):
    currency = currency_for(method, BUDGET, OPEN)
    granted = granted_cost(OPEN, BUDGET, currency)
    costs, rest = preparation_cost(OPEN, granted)
    curator = door(people(), OPEN, granted, SeededRandomizer(1), fix_codec=False)
    codec = prepare(curator, OPEN, costs)
    assert codec.labels["job"] == ("baker", "nurse")  # capped at two by noisy count; the spy is alone
    assert len(codec.edges["income"]) == 4
    steps = preparation_steps(OPEN, costs)
    assert [cost for _, cost in curator.charges] == [step.cost for step in steps]
    assert [answer.distribution.scale for answer in curator.transcript] == [step.noise_scale for step in steps]
    model = method.fit(curator, rest)
    shares = model.marginal(curator.domain.clique(["income"]))
    np.testing.assert_allclose(shares[:4], [0.225] * 4, atol=0.03)
    assert shares[4] == pytest.approx(0.1, abs=0.03)
    assert curator.left.fits(Cost(epsilon=10, rho=10, delta=1))
    epsilon_spent, delta_spent = BUDGET.claim(granted - curator.left)
    assert epsilon_spent <= BUDGET.epsilon
    assert delta_spent <= BUDGET.delta


def test_plans_know_the_largest_domain():
    facts = public_facts(OPEN, rows_hint=7)
    assert dict(facts.domain.sizes) == {"job": 3, "income": 6, "sex": 3}  # the last code of sex: unreadable
    assert (facts.unit_rows, facts.rows_hint, facts.structural_zeros) == (1, 7, ())


def test_empty_table_settles_all_the_same():
    empty = people(5).slice(0, 0)
    granted = granted_cost(OPEN, BUDGET, "pure")
    codec = prepare(door(empty, OPEN, granted, fix_codec=False), OPEN, preparation_cost(OPEN, granted)[0])
    assert codec.domain.sizes["job"] == 1
    assert 2 <= codec.domain.sizes["income"] <= 6


def test_private_bins_of_floats_and_dates():
    schema = Schema(
        columns=(
            Float(name="share", lower=0.0, upper=1.0, bins=PrivateBins(3)),
            Date(name="day", lower=dt.date(2020, 1, 1), upper=dt.date(2020, 1, 5), bins=PrivateBins(9)),
        ),
        unit=Unit(),
    )
    table = pa.table({"share": [0.1] * 50 + [0.9] * 50, "day": [dt.date(2020, 1, 2)] * 100})
    granted = epsilon(100)
    curator = door(table, schema, granted, fix_codec=False)
    codec = prepare(curator, schema, preparation_cost(schema, granted)[0])
    # Three bins at most: the two values fall into different ones, whatever lies between them.
    assert 3 <= codec.domain.sizes["share"] <= 4
    assert len(set(codec.encode("share", pa.array([0.1, 0.9])).tolist())) == 2
    assert 2 <= codec.domain.sizes["day"] <= 6


def test_most_frequent_labels_break_ties_by_label():
    distribution = Distribution("laplace", Fraction(1))
    found = Discovery("discover x", "x", ("a", "b", "c", "d"), np.array([5, 9, 5, 5]), distribution, 3)
    assert most_frequent(found, 3) == ["a", "b", "c"]
    assert most_frequent(found, 9) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("noisy", "count", "edges"),
    [
        ([10, 10, 10, 10], 2, [0, 2, 4]),
        ([10, 10, 10, 10], 9, [0, 1, 2, 3, 4]),
        ([0, 90, 0, 10], 4, [0, 1, 2, 4]),
        ([100, -3, -2, -4], 3, [0, 1, 4]),
        ([-1, -1, -1, -1], 2, [0, 2, 4]),
        ([7, 7, 7, 7], 1, [0, 4]),
    ],
)
def test_edges_of_equal_mass(noisy, count, edges):
    assert equal_mass_edges([0, 1, 2, 3, 4], noisy, count) == edges


def test_private_bins_of_a_split_column_are_chosen_on_its_size():
    column = Integer(name="wage", lower=0, upper=999, bins=PrivateBins(4), split=(100, 10), missing=False)
    schema = Schema(columns=(column,), unit=Unit())
    table = pa.table({"wage": [100, 150, 500, 730] * 50})
    granted = epsilon(100)
    costs, _ = preparation_cost(schema, granted)
    curator = door(table, schema, granted, fix_codec=False)
    codec = prepare(curator, schema, costs)
    assert [cost for _, cost in curator.charges] == [step.cost for step in preparation_steps(schema, costs)]
    assert codec.domain.columns == ("wage.size", "wage.kind")
    assert len(codec.edges["wage"]) == 4
    assert public_facts(schema).domain.sizes["wage.size"] == 5  # four bins, and what cannot be read


def test_public_labels_stand_for_those_to_be_discovered():
    facts = public_facts(OPEN, public=FrameTable(people(), OPEN, memory_bytes=2**26))
    assert dict(facts.domain.sizes) == dict(public_facts(OPEN).domain.sizes)
    held = facts.public([facts.domain.clique(["job"])])[facts.domain.clique(["job"])]  # type: ignore[misc]
    assert held[:2].min() > held[2:].max()  # the two most frequent labels are codes, the rest is other


# Private bins by mass, by quantiles and by halving: exact accounting, sensible edges, every kind of number.


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


# Rare labels: which are pooled follows from noisy counts alone, at the cost the plan says.


LABELS = tuple(f"L{place:02d}" for place in range(40))
SCHEMA = Schema(
    (
        Category(name="town", labels=LABELS, other="elsewhere", rare="private"),
        Category(name="sex", labels=("F", "M"), missing=False),
    ),
    Unit(),
)


def _table(rows: int = 3_000) -> pa.Table:
    rng = np.random.default_rng(4)
    towns = np.where(rng.random(rows) < 0.98, rng.integers(0, 5, rows), rng.integers(5, 40, rows))
    return pa.table({"town": [LABELS[place] for place in towns], "sex": rng.choice(["F", "M"], rows).tolist()})


def _answer(values: list[int], distribution: Distribution) -> Measurement:
    return Measurement("town", ("town",), (len(values),), np.array(values), distribution)


def test_labels_below_three_standard_deviations_are_pooled() -> None:
    """Gaussian noise of σ = 10: 30 stays, 29 does not; codes beyond the labels play no part."""
    pool = pool_of(("a", "b", "c", "d"), _answer([30, 29, -5, 11, 0, 0], Distribution("gaussian", Fraction(100))))
    assert [label for label, _ in pool] == ["b", "c", "d"]
    shares = dict(pool)
    assert shares["c"] == 0.0
    assert sum(shares.values()) == pytest.approx(35.0)
    assert shares["b"] - shares["d"] == pytest.approx(18.0)
    assert pool_of(("a", "b"), _answer([90, 90], Distribution("gaussian", Fraction(100)))) == ()


def test_shares_exist_even_where_all_counts_are_negative() -> None:
    pool = pool_of(("a", "b"), _answer([-9, -9], Distribution("laplace", Fraction(10))))
    assert [share for _, share in pool] == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("granted", [epsilon(20), rho(5)])
def test_rare_the_whole_way(granted: Cost) -> None:
    costs, rest = preparation_cost(SCHEMA, granted)
    assert set(costs) == {"town"}
    curator = door(_table(), SCHEMA, granted, SeededRandomizer(1), fix_codec=False)
    codec = prepare(curator, SCHEMA, costs)
    steps = preparation_steps(SCHEMA, costs)
    assert curator.charges == [(step.name, step.cost) for step in steps]
    assert [step.cells for step in steps] == [42]
    pooled = [label for label, _ in codec.pools["town"]]
    assert set(LABELS[:5]).isdisjoint(pooled)
    assert len(pooled) > 25
    assert codec.domain.sizes["town"] == 42 - len(pooled) + 1
    model = Independent().fit(curator, rest)
    rows = codec.decode(model.draw(3_000, np.random.default_rng(1)), np.random.default_rng(2))
    towns = rows.column("town").to_pylist()
    assert set(towns) <= {*LABELS, "elsewhere", None}
    rare = sum(town in pooled for town in towns) / 3_000
    assert abs(rare - 0.02) < 0.03
    assert public_facts(SCHEMA).domain.sizes["town"] == 42
    assert "town" in public_facts(SCHEMA).prepared


def test_one_rare_label_keeps_its_code() -> None:
    few = Schema((Category(name="town", labels=("a", "b"), missing=False, rare="private"),), Unit())
    curator = door(pa.table({"town": ["a"] * 500}), few, epsilon(1), NoNoise(), fix_codec=False)
    codec = prepare(curator, few, {"town": epsilon(1)})
    assert codec.pools == {}
    assert codec.domain.sizes["town"] == 3  # two labels, and what cannot be read


def test_nothing_rare_asks_nothing() -> None:
    plain = Schema((Category(name="town", labels=("a", "b")),), Unit())
    assert rare_columns(plain) == []
    assert rare_steps(plain, {}) == []


# A method that pays in ε and δ: its currency, its grant, and what is left after open labels.


def test_it_is_kept_in_the_pure_currency_and_needs_delta() -> None:
    assert DpWgan().spends_delta
    assert not Independent().spends_delta
    assert currency_for(DpWgan(), Budget(1.0, 1e-6)) == "pure"
    with pytest.raises(UsageError, match="δ above 0"):
        currency_for(DpWgan(), Budget(1.0))


def test_all_of_epsilon_and_delta_is_granted() -> None:
    budget = Budget(1.0, 1e-6)
    granted = granted_cost(tables.small(), budget, "pure", spends_delta=True)
    assert granted == Cost(epsilon=budget.epsilon_units, delta=budget.delta_units)
    assert preparation_cost(tables.small(), granted, spends_delta=True) == ({}, granted)


def test_open_labels_take_half_of_delta() -> None:
    budget = Budget(1.0, 1e-6)
    granted = granted_cost(tables.open_labels(), budget, "pure", spends_delta=True)
    costs, rest = preparation_cost(tables.open_labels(), granted, spends_delta=True)
    assert costs["job"].delta == budget.delta_units // 2
    assert rest.delta + costs["job"].delta == budget.delta_units
    assert rest.epsilon + costs["job"].epsilon == budget.epsilon_units


def test_other_methods_are_granted_as_before() -> None:
    budget = Budget(1.0, 1e-6)
    assert granted_cost(tables.small(), budget, "pure") == Cost(epsilon=budget.epsilon_units)
    costs, rest = preparation_cost(tables.open_labels(), granted_cost(tables.open_labels(), budget, "pure"))
    assert costs["job"].delta == budget.delta_units
    assert rest.delta == 0
