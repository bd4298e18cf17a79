import numpy as np
import pytest
from scipy.optimize import minimize

from tests.models.enumeration import full_table, joint_of, marginal_of, noisy, rule, small_domain
from understudy.domain import Clique, Domain
from understudy.models.estimation import NoisyTable
from understudy.models.markov_field import fit
from understudy.models.tables import sub_indices


def best_loss(domain, tables, structural_zeros, total):
    """The least loss over all non-negative full tables with that total, by a general solver."""
    everything = domain.everything()
    cells = np.arange(domain.cells(everything))
    possible = np.ones(cells.size, dtype=bool)
    for each in structural_zeros:
        possible &= ~each.mask[sub_indices(domain, everything, cells, each.clique)]
    rows, targets = [], []
    for table in tables:
        places = sub_indices(domain, everything, cells, table.clique)
        places = places if table.groups is None else table.groups[places]
        matrix = (places[None, :] == np.arange(table.values.size)[:, None])[:, possible]
        known = matrix.any(axis=1)
        rows.append(matrix[known] / np.sqrt(table.variance))
        targets.append(table.values[known] / np.sqrt(table.variance))
    matrix, target = np.concatenate(rows), np.concatenate(targets)

    def loss(x):
        gap = matrix @ x - target
        return 0.5 * gap @ gap, matrix.T @ gap

    start = np.full(matrix.shape[1], total / matrix.shape[1])
    equal = {"type": "eq", "fun": lambda x: x.sum() - total, "jac": lambda x: np.ones_like(x)}
    found = minimize(
        loss, start, jac=True, bounds=[(0, None)] * start.size, constraints=equal, method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )  # fmt: skip
    return float(found.fun)


def around_a_truth(domain, columns, rng, *, total=1000.0, sigma=2.0):
    """Noisy tables of one distribution in which all these cliques matter."""
    cliques = [domain.clique(names) for names in columns]
    truth = full_table(domain, {clique: rng.normal(0.0, 1.0, domain.cells(clique)) for clique in cliques})
    return [
        NoisyTable(
            clique, total * marginal_of(domain, truth, clique) + rng.normal(0.0, sigma, domain.cells(clique)), sigma**2
        )
        for clique in cliques
    ]


def test_by_hand():
    domain = Domain.of({"a": 2})
    model = fit(domain, [NoisyTable(Clique("a"), np.array([8.0, 4.0]), 1.0)], total=10.0)
    np.testing.assert_allclose(model.marginal(Clique("a")) * 10.0, [7.0, 3.0], atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_loss_is_the_least_possible(seed):
    rng = np.random.default_rng(seed)
    domain = Domain.of({"a": 2, "b": 3, "c": 2})
    tables = [noisy(domain, columns, rng, sigma=3.0) for columns in ("a", "ab", "bc", "ac", "c")]
    plan = np.array([0, 0, 1, 1, 2, 2])
    tables.append(NoisyTable(domain.clique("bc"), rng.normal(30.0, 5.0, 3), 2.0, plan))
    structural_zeros = [rule(domain, "ab", rng)] if seed % 2 else []
    total = 120.0
    model = fit(domain, tables, structural_zeros, total=total, steps=20_000)
    best = best_loss(domain, tables, structural_zeros, total)
    # Table cells that the rules make certain are no part of the loss; both sides leave them out.
    assert model.fit.loss == pytest.approx(best, rel=2e-4, abs=1e-3)


def test_noise_free_tables_are_reproduced_on_a_loop_and_entropy_is_largest():
    rng = np.random.default_rng(1)
    domain = small_domain()
    cliques = [domain.clique(names) for names in ("ab", "bc", "cd", "ad", "e")]
    truth = full_table(domain, {clique: rng.normal(0.0, 1.0, domain.cells(clique)) for clique in cliques})
    tables = [NoisyTable(clique, 1000.0 * marginal_of(domain, truth, clique), 1.0) for clique in cliques]
    model = fit(domain, tables, total=1000.0, steps=20_000)
    for table in tables:
        np.testing.assert_allclose(1000.0 * model.marginal(table.clique), table.values, atol=1e-4)
    # The truth has the model's own form, so it is the only such distribution with these marginals.
    np.testing.assert_allclose(joint_of(model), truth, atol=1e-6)


def test_measured_cliques_agree_on_what_they_share():
    rng = np.random.default_rng(2)
    domain = small_domain()
    model = fit(domain, [noisy(domain, columns, rng, sigma=5.0) for columns in ("ab", "bc", "cd", "de")], steps=50)
    for left, right in (("ab", "bc"), ("bc", "cd")):
        first = model.marginal(domain.clique(left)).reshape(domain.shape(left)).sum(axis=0)
        second = model.marginal(domain.clique(right)).reshape(domain.shape(right)).sum(axis=1)
        np.testing.assert_allclose(first, second, atol=1e-12)


def test_a_warm_start_goes_on_where_the_last_fit_stopped():
    rng = np.random.default_rng(3)
    domain = small_domain()
    tables = around_a_truth(domain, ("a", "b", "ab", "bc", "cd"), rng)
    first = fit(domain, tables[:3], total=1000.0, steps=300)
    same = fit(domain, tables[:3], total=1000.0, start=first, steps=0)
    np.testing.assert_allclose(joint_of(same), joint_of(first), atol=1e-9)
    # What was measured since moves the start towards it; what was known stays as far as the new tables allow.
    exact = [NoisyTable(q, 1000.0 * first.marginal(q), 1e-6) for q in (domain.clique("bc"), domain.clique("cd"))]
    grown = fit(domain, [*tables[:3], *exact], total=1000.0, start=first, steps=0)
    np.testing.assert_allclose(joint_of(grown), joint_of(first), atol=1e-9)
    moved = fit(domain, tables, total=1000.0, start=first, steps=0)
    unmoved = sum(0.5 * ((1000.0 * first.marginal(t.clique) - t.values) ** 2).sum() / t.variance for t in tables)
    assert moved.fit.loss < 0.25 * unmoved
    warm = fit(domain, tables, total=1000.0, start=first, steps=20)
    assert warm.fit.loss < moved.fit.loss


def test_a_warm_start_ends_where_a_cold_one_does():
    rng = np.random.default_rng(6)
    domain = small_domain()
    tables = around_a_truth(domain, ("ab", "bc", "ac", "cde"), rng)
    cold = fit(domain, tables, total=1000.0, steps=20_000)
    warm = fit(domain, tables, total=1000.0, start=fit(domain, tables[:2], total=1000.0), steps=20_000)
    assert warm.fit.loss == pytest.approx(cold.fit.loss, rel=1e-5)
    np.testing.assert_allclose(joint_of(warm), joint_of(cold), atol=1e-4)


def test_steps_only_lower_the_loss():
    rng = np.random.default_rng(4)
    domain = small_domain()
    tables = [noisy(domain, columns, rng) for columns in ("ab", "bc", "ae")]
    losses = [fit(domain, tables, steps=steps).fit.loss for steps in (0, 1, 5, 25, 125)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]


def test_discrepancy_stops_once_noise_explains_the_rest():
    rng = np.random.default_rng(5)
    domain = Domain.of({"a": 12, "b": 14, "c": 10})
    circle = [domain.clique(pair) for pair in ("ab", "bc", "ac")]
    truth = full_table(domain, {pair: rng.normal(0.0, 1.0, domain.cells(pair)) for pair in circle})
    tables = []
    for columns in circle:
        clique = domain.clique(columns)
        values = 10_000.0 * marginal_of(domain, truth, clique) + rng.normal(0.0, 10.0, domain.cells(clique))
        tables.append(NoisyTable(clique, values, 100.0))
    measured = 0.5 * (168 + 140 + 120)
    stopped = fit(domain, tables, total=10_000.0, steps=5000, explained=1.0)
    assert stopped.fit.loss <= measured
    assert stopped.fit.steps < 5000
    assert fit(domain, tables, total=10_000.0, steps=stopped.fit.steps - 1).fit.loss > measured


def test_different_variances_are_respected():
    domain = Domain.of({"a": 2})
    tables = [
        NoisyTable(Clique("a"), np.array([80.0, 20.0]), 1.0),
        NoisyTable(Clique("a"), np.array([20.0, 80.0]), 3.0),
    ]
    model = fit(domain, tables, total=100.0)
    np.testing.assert_allclose(model.marginal(Clique("a")), [0.65, 0.35], atol=1e-6)
