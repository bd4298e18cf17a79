"""Tests of `understudy.models.estimation`."""

import itertools
import json
import os
import subprocess
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.models.enumeration import full_table, joint_of, marginal_of, noisy, rule, small_domain
from understudy.domain import Clique, Distribution, Domain, Measurement, StructuralZeros
from understudy.errors import UsageError
from understudy.models.estimation import (
    Folded,
    NoisyTable,
    _project,
    estimate_total,
    evaluate,
    fold,
    head_start,
    is_forest,
    known_cells,
    maximal,
    shrink,
    towards_independence,
)
from understudy.models.junction_tree import JunctionTree
from understudy.models.markov_field import fit, fit_forest
from understudy.models.propagation import Program
from understudy.models.tables import sub_indices
from understudy.testing import check_model


def grouped(domain, columns, rng, groups=3):
    clique = domain.clique(columns)
    plan = rng.integers(0, groups, domain.cells(clique))
    plan[:groups] = np.arange(groups)
    return NoisyTable(clique, rng.normal(50.0, 5.0, groups), 4.0, plan)


def measured(domain, rng):
    """Nested, repeated, grouped, and with a column of one code."""
    tables = [
        noisy(domain, columns, rng, sigma=2.0) for columns in ("a", "b", "ab", "ab", "bcd", "cd", "", ["a", "one"])
    ]
    return [*tables, noisy(domain, "ab", rng, sigma=0.5), grouped(domain, "bc", rng), grouped(domain, "ab", rng)]


def plain_loss(domain, tables, structural_zeros, values_of):
    """The definition, table by table, without cells known to be 0."""
    loss = 0.0
    for table in tables:
        sums = values_of(table.clique)
        if table.groups is not None:
            sums = np.bincount(table.groups, weights=sums, minlength=table.values.size)
        gap = (sums - table.values)[known_cells(domain, table, structural_zeros)]
        loss += 0.5 * float((gap**2).sum()) / table.variance
    return loss


@pytest.mark.parametrize("seed", range(4))
def test_loss_and_gradient(seed):
    rng = np.random.default_rng(seed)
    domain = small_domain()
    tables = measured(domain, rng)
    structural_zeros = [rule(domain, "ab", rng), rule(domain, "c", rng)] if seed % 2 else []
    program = Program(JunctionTree.of(domain, [t.clique for t in tables]), maximal(t.clique for t in tables))
    folded = fold(program, tables, structural_zeros)
    # Marginals of one table, so that nested cliques are read off consistently.
    joint = rng.gamma(1.0, 3.0, domain.cells(domain.everything()))
    cells = np.arange(joint.size)
    possible = np.ones(joint.size, dtype=bool)
    for each in structural_zeros:
        possible &= ~each.mask[sub_indices(domain, domain.everything(), cells, each.clique)]
    joint *= possible

    def values_of(clique):
        places = sub_indices(domain, domain.everything(), cells, clique)
        return np.bincount(places, weights=joint, minlength=domain.cells(clique))

    marginals = np.concatenate([program.inward(clique, values_of(clique)) for clique in program.parameters])
    gradient = np.zeros(marginals.size)
    loss = evaluate(folded, marginals, gradient)
    assert loss == pytest.approx(plain_loss(domain, tables, structural_zeros, values_of), rel=1e-10)
    step = 1e-4
    scratch = np.zeros_like(gradient)
    for cell in rng.choice(marginals.size, size=25, replace=False):
        sides = []
        for sign in (1.0, -1.0):
            moved = marginals.copy()
            moved[cell] += sign * step
            sides.append(evaluate(folded, moved, scratch))
        assert gradient[cell] == pytest.approx((sides[0] - sides[1]) / (2 * step), abs=1e-4)


def test_repeated_tables_count_by_inverse_variance():
    domain = Domain.of({"a": 2})
    clique = domain.everything()
    tables = [NoisyTable(clique, np.array([10.0, 0.0]), 1.0), NoisyTable(clique, np.array([0.0, 10.0]), 3.0)]
    folded = fold(Program(JunctionTree.of(domain, [clique]), [clique]), tables)
    np.testing.assert_allclose(folded.target, [7.5, 2.5])
    np.testing.assert_allclose(folded.precision, 4 / 3)


def test_total_is_the_inverse_variance_mean_of_the_sums():
    domain = Domain.of({"a": 2, "b": 3})
    one = NoisyTable(Clique("a"), np.array([60.0, 50.0]), 1.0)  # sum 110, variance 2
    two = NoisyTable(Clique("b"), np.array([30.0, 30.0, 30.0]), 2.0)  # sum 90, variance 6
    assert estimate_total(domain, [one, two]) == pytest.approx((110 / 2 + 90 / 6) / (1 / 2 + 1 / 6))
    assert estimate_total(domain, [NoisyTable(Clique("a"), np.array([-5.0, -9.0]), 1.0)]) == 1.0
    # A value that is known to be 0 is not summed and adds no variance.
    ruled = StructuralZeros(Clique("b"), np.array([True, False, False]))
    assert estimate_total(domain, [one, two], [ruled]) == pytest.approx((110 / 2 + 60 / 4) / (1 / 2 + 1 / 4))
    with pytest.raises(UsageError, match="State the total"):
        estimate_total(domain, [])


def test_groups_of_forbidden_cells_only_are_known():
    domain = Domain.of({"a": 4})
    table = NoisyTable(domain.everything(), np.zeros(2), 1.0, np.array([0, 0, 1, 1]))
    for mask, expected in (([1, 1, 0, 0], [False, True]), ([1, 0, 0, 0], [True, True])):
        found = known_cells(domain, table, [StructuralZeros(domain.everything(), np.array(mask, dtype=bool))])
        assert found.tolist() == expected


def test_maximal_cliques():
    cliques = [Clique(names) for names in ("a", "ab", "ab", "bc", "b", "")]
    assert sorted(maximal(cliques)) == [("a", "b"), ("b", "c")]


def test_a_measurement_becomes_a_noisy_table():
    domain = small_domain()
    distribution = Distribution("gaussian", Fraction(9))
    table = NoisyTable.of(Measurement("x", ("a", "b"), (2, 3), np.arange(6), distribution), domain)
    assert table.clique == Clique("ab")
    assert table.variance == 9.0
    assert table.values.dtype == np.float64


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (NoisyTable(Clique("ba"), np.zeros(6), 1.0), "order of the domain"),
        (NoisyTable(Clique("ab"), np.zeros(5), 1.0), "needs 6 values, got 5"),
        (NoisyTable(Clique("ab"), np.zeros(6), 0.0), "variance above 0"),
        (NoisyTable(Clique("ab"), np.zeros(6), float("nan")), "variance above 0"),
        (NoisyTable(Clique("ab"), np.full(6, np.inf), 1.0), "finite values"),
        (NoisyTable(Clique("ab"), np.zeros(2), 1.0, np.zeros(5, dtype=int)), "one group between 0 and 1"),
        (NoisyTable(Clique("ab"), np.zeros(2), 1.0, np.full(6, 2)), "one group between 0 and 1"),
        (NoisyTable(Clique("ab"), np.zeros(2), 1.0, np.full(6, -1)), "one group between 0 and 1"),
        (NoisyTable(Clique("z"), np.zeros(2), 1.0), "not a modelled column"),
    ],
)
def test_malformed_tables_are_refused(table, message):
    with pytest.raises(UsageError, match=message):
        table.check(small_domain())


@pytest.mark.parametrize("cells", [4, 7, 16, 20])
def test_the_loss_does_not_depend_on_where_arrays_lie_in_memory(cells: int) -> None:
    """Loops that may reorder sums are compiled twice, and how close arrays lie decides which one runs."""
    rng = np.random.default_rng(cells)
    values = [rng.normal(size=cells) * 10.0 ** rng.integers(-3, 4, cells) for _ in range(3)]
    found = set()
    for gap in (0, 1, 2, 4, 8, 16, 64):
        room = np.zeros(4 * (cells + gap))
        views = [room[place * (cells + gap) :][:cells] for place in range(4)]
        for view, value in zip(views, values, strict=False):
            view[:] = value
        marginals, target, precision, gradient = views
        none = np.zeros(0)
        sums, maps = np.zeros((0, 5), dtype=np.int64), np.zeros(0, dtype=np.int32)
        loss = evaluate(Folded(precision, target, sums, maps, none, none, 0.0), marginals, gradient)
        found.add((loss, gradient.tobytes()))
    assert len(found) == 1


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


# The same measurements to this engine and to mbi: equal loss or lower.
#
# For development only: set UNDERSTUDY_MBI_PYTHON to a Python of an environment of its own in which `mbi` is
# installed.


PYTHON = os.environ.get("UNDERSTUDY_MBI_PYTHON", "")
TOTAL, SIGMA = 20_000.0, 15.0

PEER = """
import json, sys
import jax
jax.config.update("jax_enable_x64", True)
import numpy as np
from mbi import Domain, LinearMeasurement, estimation
given = json.load(sys.stdin)
domain = Domain([name for name, _ in given["domain"]], [size for _, size in given["domain"]])
measured = [LinearMeasurement(np.array(y), tuple(clique), stddev=given["sigma"]) for clique, y in given["tables"]]
model = estimation.MirrorDescent().estimate(domain, measured, known_total=given["total"], iters=given["steps"])
loss = 0.0
for clique, y in given["tables"]:
    found = np.asarray(model.project(tuple(clique)).datavector(), dtype=np.float64)
    loss += 0.5 * float((((found - np.array(y)) / given["sigma"]) ** 2).sum())
print(json.dumps(loss))
"""


@pytest.mark.skipif(not PYTHON, reason="UNDERSTUDY_MBI_PYTHON names no Python with mbi")
@pytest.mark.parametrize("edges", [("ab", "bc", "cd", "ce"), ("ab", "bc", "ac", "cd", "de", "ce")])
def test_loss_is_equal_or_lower(edges):
    rng = np.random.default_rng(0)
    domain = Domain.of({"a": 12, "b": 9, "c": 15, "d": 7, "e": 20})
    truth = full_table(domain, {domain.clique(edge): rng.normal(0.0, 1.0, domain.cells(edge)) for edge in edges})
    tables = []
    for columns in ("a", "b", "c", "d", "e", *edges):
        clique = domain.clique(columns)
        values = TOTAL * marginal_of(domain, truth, clique) + rng.normal(0.0, SIGMA, domain.cells(clique))
        tables.append(NoisyTable(clique, values, SIGMA**2))
    given = {
        "domain": list(domain.sizes.items()),
        "tables": [[list(table.clique), table.values.tolist()] for table in tables],
        "sigma": SIGMA,
        "total": TOTAL,
        "steps": 3000,
    }
    answer = subprocess.run(
        [PYTHON, "-c", PEER], input=json.dumps(given), capture_output=True, text=True, check=True, timeout=300
    )
    theirs = json.loads(answer.stdout.strip().splitlines()[-1])
    ours = fit(domain, tables, total=TOTAL, steps=3000).fit.loss
    print(f"loss {ours:.6f}, mbi {theirs:.6f}")
    assert ours <= theirs * (1.0 + 1e-4)
