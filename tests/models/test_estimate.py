import itertools

import numpy as np
import pytest

from tests.models.enumeration import joint_of, noisy, small_domain
from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.models.estimation import NoisyTable
from understudy.models.junction_tree import GraphicalSize
from understudy.models.markov_field import fit, model_cliques


def test_a_model_that_does_not_fit_is_refused_before_it_is_built():
    domain = Domain.of({f"c{i}": 50 for i in range(12)})
    circle = [domain.clique([f"c{i}", f"c{(i + 1) % 12}"]) for i in range(12)]
    tables = [NoisyTable(clique, np.ones(2500), 1.0) for clique in circle]
    size = GraphicalSize.of(domain, model_cliques(tables, ()))
    assert size.largest == 50**3
    with pytest.raises(ResourceError) as caught:
        fit(domain, tables, model_bytes=size.bytes - 1)
    assert caught.value.needed_bytes == size.bytes
    fit(domain, tables, model_bytes=size.bytes, steps=1)


def test_domains_of_any_size_work_as_long_as_the_cliques_are_small():
    # 10⁸⁰ combinations and more; also more columns than numpy has dimensions.
    domain = Domain.of({f"c{i}": 10 + i % 5 for i in range(80)} | {f"one{i}": 1 for i in range(30)})
    rng = np.random.default_rng(0)
    tables = [noisy(domain, [f"c{i}", f"c{i + 1}"], rng) for i in range(0, 79)]
    tables.append(noisy(domain, ["c3", "one5"], rng))
    model = fit(domain, tables, steps=20)
    assert np.isfinite(model.fit.loss)
    far = model.marginal(domain.clique(["c0", "c79", "one3"]))
    assert far.sum() == pytest.approx(1.0)
    pairs = model.marginals([domain.clique(pair) for pair in itertools.combinations([f"c{i}" for i in range(9)], 2)])
    assert all(table.sum() == pytest.approx(1.0) for table in pairs.values())
    codes = model.draw(1000, np.random.default_rng(0))
    assert all(codes[name].max() < size for name, size in domain.sizes.items())


def test_huge_and_tiny_counts():
    domain = small_domain()
    for scale in (1e-6, 1.0, 1e12):
        rng = np.random.default_rng(1)
        tables = [
            NoisyTable(table.clique, table.values * scale, scale**2)
            for table in (noisy(domain, columns, rng) for columns in ("ab", "bc"))
        ]
        model = fit(domain, tables, total=100.0 * scale, steps=500)
        if scale == 1e-6:
            reference = joint_of(model)
        np.testing.assert_allclose(joint_of(model), reference, atol=1e-6)


def test_without_tables_every_possible_combination_is_equally_likely():
    domain = Domain.of({"a": 2, "b": 2, "one": 1})
    rule = StructuralZeros(domain.clique("ab"), np.array([True, False, False, False]))
    model = fit(domain, [], [rule], total=5.0)
    np.testing.assert_allclose(model.marginal(domain.clique("ab")), [0, 1 / 3, 1 / 3, 1 / 3])
    assert model.total == 5.0
    with pytest.raises(UsageError, match="State the total"):
        fit(domain, [])


def test_a_domain_without_choices():
    domain = Domain.of({"one": 1, "same": 1})
    model = fit(domain, [NoisyTable(domain.everything(), np.array([40.0]), 4.0)])
    assert model.total == 40.0
    np.testing.assert_array_equal(model.marginal(domain.everything()), [1.0])
    assert not model.draw(3, np.random.default_rng(0))["one"].any()


def test_the_total_is_estimated_unless_given():
    domain = small_domain()
    table = NoisyTable(Clique("a"), np.array([70.0, 50.0]), 1.0)
    assert fit(domain, [table]).total == 120.0
    assert fit(domain, [table], total=100.0).total == 100.0


def test_contradicting_rules_and_bad_tables_are_refused():
    domain = small_domain()
    rules = [
        StructuralZeros(Clique("a"), np.array([True, False])),
        StructuralZeros(Clique("a"), np.array([False, True])),
    ]
    with pytest.raises(UsageError, match="no combination"):
        fit(domain, [NoisyTable(Clique("b"), np.ones(3), 1.0)], rules)
    with pytest.raises(UsageError, match="needs 2 values"):
        fit(domain, [NoisyTable(Clique("a"), np.ones(3), 1.0)])


def test_grouped_tables_alone_spread_their_groups_evenly():
    domain = Domain.of({"a": 4})
    plan = np.array([0, 0, 0, 1])
    model = fit(domain, [NoisyTable(domain.everything(), np.array([60.0, 40.0]), 1.0, plan)], steps=3000)
    np.testing.assert_allclose(model.marginal(domain.everything()), [0.2, 0.2, 0.2, 0.4], atol=1e-6)


def test_fits_are_deterministic():
    domain = small_domain()
    tables = [noisy(domain, columns, np.random.default_rng(2)) for columns in ("ab", "bc", "ac")]
    first, second = fit(domain, tables), fit(domain, tables)
    for one, other in zip(first.tables, second.tables, strict=True):
        np.testing.assert_array_equal(one, other)
