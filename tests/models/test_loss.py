from fractions import Fraction

import numpy as np
import pytest

from tests.models.enumeration import noisy, rule, small_domain
from understudy.answers import Distribution, Measurement
from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import UsageError
from understudy.models.estimation import Folded, NoisyTable, estimate_total, evaluate, fold, known_cells, maximal
from understudy.models.junction_tree import JunctionTree
from understudy.models.propagation import Program
from understudy.models.tables import sub_indices


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
