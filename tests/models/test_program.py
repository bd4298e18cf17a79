import numpy as np
import pytest

from tests.models.enumeration import full_table, joint_of, marginal_of, random_cliques, rule, small_domain
from understudy.domain import Domain, StructuralZeros
from understudy.errors import UsageError
from understudy.models.junction_tree import JunctionTree
from understudy.models.markov_field import MarkovField
from understudy.models.propagation import FLOOR, Program, from_bag_order, run


def pieces_of(program):
    return zip(program.parameters, program.bounds[:-1], program.bounds[1:], strict=True)


def updated(program, potentials, times=1):
    """Multiplies the state by the exponential of the potentials; returns the last marginals, scaled to 1."""
    for _ in range(times):
        for clique, low, high in pieces_of(program):
            program.data[low:high] = np.exp(program.inward(clique, potentials[clique]))
        run(program.forward, program.offsets, program.data, FLOOR)
        run(program.accept, program.offsets, program.data, FLOOR)
    found = {}
    for clique, low, high in pieces_of(program):
        table = program.data[program.marginals_at + low : program.marginals_at + high]
        found[clique] = program.outward(clique, table / table.sum())
    return found


def field_of(program):
    tree = program.tree
    factors = [from_bag_order(tree, bag, program.state(bag)) for bag in range(len(tree.bags))]
    return MarkovField.of_factors(tree, factors, 1.0)


@pytest.mark.parametrize("seed", range(10))
def test_propagation_equals_enumeration_with_zeros_and_repeated_updates(seed):
    rng = np.random.default_rng(seed)
    domain = small_domain()
    cliques = list(dict.fromkeys(random_cliques(domain, rng)))
    structural_zeros = [rule(domain, "ad", rng), rule(domain, "bce", rng)] if seed % 2 else []
    program = Program(JunctionTree.of(domain, [*cliques, *(each.clique for each in structural_zeros)]), cliques)
    program.reset(structural_zeros)
    potentials = {clique: rng.normal(0.0, 1.5, domain.cells(clique)) for clique in cliques}
    found = updated(program, potentials, times=2)
    table = full_table(domain, {clique: 2.0 * theta for clique, theta in potentials.items()}, structural_zeros)
    for clique in cliques:
        np.testing.assert_allclose(found[clique], marginal_of(domain, table, clique), atol=1e-12)
    np.testing.assert_allclose(joint_of(field_of(program)), table, atol=1e-12)


def test_extreme_updates_neither_overflow_nor_lose_cells():
    domain = Domain.of(dict.fromkeys("abcde", 3))
    pairs = [domain.clique(pair) for pair in ("ab", "bc", "cd", "de")]
    program = Program(JunctionTree.of(domain, pairs), pairs)
    program.reset()
    rng = np.random.default_rng(0)
    steep = {pair: rng.normal(0.0, 8.0, 9) for pair in pairs}
    updated(program, steep, times=200)  # potentials of ± 1600 and more in all
    assert np.isfinite(program.data).all()
    assert joint_of(field_of(program)).max() == pytest.approx(1.0)
    back = updated(program, {pair: -theta for pair, theta in steep.items()}, times=400)
    assert all(np.isfinite(table).all() for table in back.values())
    mirrored = full_table(domain, {pair: -200.0 * theta for pair, theta in steep.items()})
    for pair in pairs:  # no cell had been lost for good: the model has turned to the opposite corner
        assert np.abs(back[pair] - marginal_of(domain, mirrored, pair)).max() < 1e-6


def test_forbidden_cells_stay_zero_whatever_the_updates():
    domain = Domain.of(dict.fromkeys("abc", 2))
    pairs = [domain.clique(pair) for pair in ("ab", "bc")]
    mask = np.array([True, False, False, False])
    program = Program(JunctionTree.of(domain, pairs), pairs)
    program.reset([StructuralZeros(pairs[0], mask)])
    pull = {pairs[0]: np.array([50.0, 0.0, 0.0, 0.0]), pairs[1]: np.zeros(4)}
    found = updated(program, pull, times=50)
    assert found[pairs[0]][0] == 0.0


def test_a_code_impossible_through_a_neighbour_is_zero_in_every_bag():
    # b = 1 is impossible with either a, so it must have no mass in the bag (b, c) either.
    domain = Domain.of({"a": 2, "b": 2, "c": 9})
    pairs = [domain.clique(pair) for pair in ("ab", "bc")]
    program = Program(JunctionTree.of(domain, pairs), pairs)
    program.reset([StructuralZeros(pairs[0], np.array([False, True, False, True]))])
    found = updated(program, {pairs[0]: np.zeros(4), pairs[1]: np.linspace(-5, 5, 18)}, times=30)
    assert found[pairs[1]][9:].sum() == 0.0


def test_impossible_rules_and_stray_cliques_are_refused():
    domain = small_domain()
    tree = JunctionTree.of(domain, [domain.clique("ab")])
    with pytest.raises(UsageError, match="inside a bag"):
        Program(tree, [domain.clique("bc")])
    program = Program(tree, [domain.clique("ab")])
    with pytest.raises(UsageError, match="inside a bag"):
        program.reset([StructuralZeros(domain.clique("bc"), np.zeros(12, dtype=bool))])
    with pytest.raises(UsageError, match="no combination"):
        program.reset([StructuralZeros(domain.clique("ab"), np.ones(6, dtype=bool))])


def test_tables_turn_both_ways():
    domain = small_domain()
    program = Program(JunctionTree.of(domain, [domain.clique("abcd")]), [])
    table = np.arange(domain.cells("abcd"), dtype=float)
    clique = domain.clique(["c", "one", "a", "b", "d"])
    assert program.axes(clique) == ["a", "b", "d", "c"]
    np.testing.assert_array_equal(program.outward(clique, program.inward(clique, table)), table)
