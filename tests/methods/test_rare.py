"""Rare labels: which are pooled follows from noisy counts alone, at the cost the plan says."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from tests.methods.door import door, epsilon, rho
from understudy.answers import Distribution, Measurement
from understudy.methods.independent import Independent
from understudy.methods.preparation import (
    pool_of,
    preparation_cost,
    preparation_steps,
    prepare,
    public_facts,
    rare_columns,
    rare_steps,
)
from understudy.privacy.cost import Cost
from understudy.schema import Category, Schema, Unit
from understudy.testing.doubles import NoNoise, SeededRandomizer

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
def test_the_whole_way(granted: Cost) -> None:
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
