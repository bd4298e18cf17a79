import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.models.enumeration import full_table, joint_of, marginal_of, small_domain
from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import UsageError
from understudy.models.estimation import NoisyTable, _project, head_start, is_forest, shrink, towards_independence
from understudy.models.markov_field import fit, fit_forest
from understudy.testing.contracts import check_model


def exact(domain, truth, columns, total=1000.0):
    clique = domain.clique(columns)
    return NoisyTable(clique, total * marginal_of(domain, truth, clique), 1.0)


def test_by_hand():
    domain = Domain.of({"a": 2})
    model = fit_forest(domain, [NoisyTable(Clique("a"), np.array([8.0, 4.0]), 1.0)], total=10.0)
    np.testing.assert_allclose(model.marginal(Clique("a")), [0.7, 0.3])


@pytest.mark.parametrize("shrunk", [False, True])
def test_noise_free_trees_are_reproduced_and_equal_the_product_of_conditionals(shrunk):
    rng = np.random.default_rng(0)
    domain = small_domain()
    edges = ["ab", "bc", "bd"]
    truth = full_table(domain, {domain.clique(edge): rng.normal(0, 1, domain.cells(edge)) for edge in edges})
    tables = [exact(domain, truth, columns) for columns in ("a", "b", "c", "d", "e", *edges)]
    if shrunk:  # without noise nothing may be drawn towards independence
        tables = [NoisyTable(table.clique, table.values, 1e-12) for table in tables]
    model = fit_forest(domain, tables, shrunk=shrunk)
    assert model.total == pytest.approx(1000.0)
    for table in tables:
        np.testing.assert_allclose(model.marginal(table.clique), table.values / 1000.0, atol=1e-6)
    pair = {edge: marginal_of(domain, truth, domain.clique(edge)).reshape(domain.shape(edge)) for edge in edges}
    middle = pair["ab"].sum(axis=0)
    product = np.einsum("ab,bc,bd,b,e->abcde", *pair.values(), middle**-2.0, marginal_of(domain, truth, Clique("e")))
    np.testing.assert_allclose(joint_of(model).reshape(product.shape), product, atol=1e-6)
    check_model(model, joint_of(model).ravel())


def test_projection_is_the_nearest_table_with_the_margins():
    rng = np.random.default_rng(1)
    values = rng.normal(2.0, 4.0, (3, 4))
    rows, columns = np.array([10.0, 0.0, 5.0]), np.array([4.0, 6.0, 0.0, 5.0])
    found = _project(values, rows, columns)
    np.testing.assert_allclose(found.sum(axis=1), rows, atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=0), columns, atol=1e-6)
    margins = [{"type": "eq", "fun": lambda x, i=i: x.reshape(3, 4)[i].sum() - rows[i]} for i in range(3)]
    margins += [{"type": "eq", "fun": lambda x, j=j: x.reshape(3, 4)[:, j].sum() - columns[j]} for j in range(4)]
    best = minimize(
        lambda x: ((x - values.ravel()) ** 2).sum(), np.ones(12), bounds=[(0, None)] * 12, constraints=margins[:-1]
    )
    assert ((found - values) ** 2).sum() <= best.fun + 1e-4


def test_least_squares_agrees_with_descent_where_no_count_is_cut_off():
    # Far from 0 the closed form is the least squares solution itself, so descent cannot end lower.
    rng = np.random.default_rng(2)
    domain = Domain.of({"a": 3, "b": 4, "c": 2})
    tables = []
    for columns, variance in (("a", 4.0), ("b", 1.0), ("ab", 9.0), ("bc", 2.0), ("ab", 5.0)):
        clique = domain.clique(columns)
        cells = domain.cells(clique)
        tables.append(NoisyTable(clique, 12_000.0 / cells + rng.normal(0.0, variance**0.5, cells), variance))
    closed = fit_forest(domain, tables, total=12_000.0, shrunk=False)
    descended = fit(domain, tables, total=12_000.0, steps=5000)
    for columns in ("ab", "bc", "a", "c"):
        clique = domain.clique(columns)
        np.testing.assert_allclose(closed.marginal(clique), descended.marginal(clique), atol=1e-6)


def test_rules_hold_in_the_closed_form():
    rng = np.random.default_rng(3)
    domain = small_domain()
    mask = np.zeros((2, 3), dtype=bool)
    mask[0, 1:] = True
    rules = [
        StructuralZeros(domain.clique("ab"), mask.ravel()),
        StructuralZeros(Clique("d"), np.array([True, False, False])),
    ]
    tables = [NoisyTable(domain.clique(c), rng.normal(20, 9, domain.cells(c)), 81.0) for c in ("ab", "bd", "a", "d")]
    model = fit_forest(domain, tables, rules)
    joint = joint_of(model)
    assert marginal_of(domain, joint, Clique("ab")).reshape(2, 3)[mask].sum() == 0.0
    assert marginal_of(domain, joint, Clique("d"))[0] == 0.0
    assert (marginal_of(domain, joint, Clique("ab")).reshape(2, 3)[~mask] > 0.0).all()
    check_model(model, joint.ravel())


def test_possible_combinations_stay_possible_however_negative_their_noisy_counts():
    domain = Domain.of({"a": 2, "b": 2})
    model = fit_forest(domain, [NoisyTable(domain.everything(), np.array([90.0, -40.0, -40.0, 90.0]), 100.0)])
    assert (model.marginal(domain.everything()) > 0.0).all()
    assert model.condition({"a": np.array([0]), "b": np.array([1])}).total > 0.0


@pytest.mark.parametrize(
    ("columns", "expected"),
    [(["a", "ab", "bc"], True), (["ab", "bc", "ac"], False), (["abc"], False), (["ab", "ab"], True), ([], True)],
)
def test_forests_are_recognised(columns, expected):
    domain = small_domain()
    tables = [NoisyTable(domain.clique(c), np.zeros(domain.cells(c)), 1.0) for c in columns]
    assert is_forest(domain, tables, ()) is expected
    if not expected:
        with pytest.raises(UsageError, match="circle"):
            fit_forest(domain, tables)


def test_groups_and_stray_rules_are_no_forest():
    domain = small_domain()
    plain = NoisyTable(domain.clique("ab"), np.zeros(6), 1.0)
    assert not is_forest(domain, [NoisyTable(domain.clique("ab"), np.zeros(1), 1.0, np.zeros(6, dtype=int))], ())
    assert not is_forest(domain, [plain], [StructuralZeros(domain.clique("bc"), np.zeros(12, dtype=bool))])
    assert is_forest(domain, [plain], [StructuralZeros(domain.clique("ab"), np.zeros(6, dtype=bool))])


def test_shrinking_follows_the_noise():
    rng = np.random.default_rng(4)
    expected = rng.gamma(2.0, 50.0, 400)
    pure_noise = NoisyTable(Clique("a"), expected + rng.normal(0.0, 30.0, 400), 900.0)
    drawn = shrink(pure_noise, expected)
    assert np.abs(drawn.values - expected).mean() < 0.3 * np.abs(pure_noise.values - expected).mean()
    strong = NoisyTable(Clique("a"), rng.permutation(expected) * 10.0, 1.0)
    np.testing.assert_allclose(shrink(strong, expected).values, strong.values, rtol=0.05, atol=5.0)


def test_shrinking_keeps_few_high_cells_of_a_sparse_table_and_drops_the_noise_of_the_others():
    """One factor for all cells, 0.61 here, left the others off by 4.9 and the high cells by 34."""
    rng = np.random.default_rng(6)
    truth = np.where(np.arange(100_000) % 50 == 0, 90.0, 0.0)
    expected = np.full(truth.size, truth.mean())
    noisy = NoisyTable(Clique("a"), truth + rng.normal(0.0, 10.0, truth.size), 100.0)
    off = np.abs(shrink(noisy, expected).values - truth)
    assert off[truth == 0.0].mean() < 1.0
    assert off[truth > 0.0].mean() < 10.0


def test_shrinking_towards_independence_brings_pairs_closer_to_the_truth():
    rng = np.random.default_rng(5)
    domain = Domain.of({"a": 20, "b": 20})
    clique = domain.everything()
    truth = full_table(domain, {Clique("a"): rng.normal(size=20), Clique("b"): rng.normal(size=20)}).ravel() * 5000.0
    tables = [NoisyTable(clique, truth + rng.normal(0.0, 20.0, 400), 400.0)]
    for name, axis in (("a", 1), ("b", 0)):
        sums = truth.reshape(20, 20).sum(axis=axis)
        tables.append(NoisyTable(Clique(name), sums + rng.normal(0.0, 20.0, 20), 400.0))
    drawn = towards_independence(domain, tables, (), 5000.0)
    assert np.abs(drawn[0].values - truth).sum() < 0.5 * np.abs(tables[0].values - truth).sum()
    for before, after in itertools.islice(zip(tables, drawn, strict=True), 1, None):
        assert before is after


def test_a_head_start_is_the_closed_form_of_the_strongest_forest():
    rng = np.random.default_rng(6)
    domain = Domain.of({"a": 4, "b": 5, "c": 3})
    truth = full_table(domain, {Clique("ab"): rng.normal(0, 1, 20), Clique("bc"): rng.normal(0, 1, 15)})
    tables = [exact(domain, truth, columns, 10_000.0) for columns in ("ab", "bc", "ac")]
    potentials = head_start(domain, tables, (), 10_000.0)
    assert set(potentials) == {Clique("ab"), Clique("bc")}  # a and c depend on each other least
    np.testing.assert_allclose(full_table(domain, potentials), truth, atol=1e-3)
    # The pairs may also be margins of one larger table.
    whole = head_start(domain, [exact(domain, truth, "abc", 10_000.0)], (), 10_000.0)
    np.testing.assert_allclose(full_table(domain, whole), truth, atol=1e-3)


def test_a_head_start_takes_noise_for_noise():
    rng = np.random.default_rng(7)
    domain = Domain.of({"a": 20, "b": 20})
    tables = [NoisyTable(domain.everything(), 10.0 + rng.normal(0.0, 5.0, 400), 50.0)]
    assert set(head_start(domain, tables, (), 4000.0)) == {Clique("a"), Clique("b")}
