"""Tests of `understudy.models.propagation`."""

import itertools
import math

import numpy as np
import pytest

from tests.models import enumeration
from tests.models.enumeration import full_table, joint_of, marginal_of, random_cliques, rule, small_domain
from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.models import propagation as answers
from understudy.models.junction_tree import JunctionTree, sum_to, table_faults
from understudy.models.markov_field import MarkovField
from understudy.models.propagation import (
    ACROSS,
    ALONG,
    CONDITION,
    COPY,
    DIVIDE,
    FLOOR,
    MULTIPLY,
    PRODUCT,
    SCALE,
    SUM,
    Operation,
    Program,
    calibrate,
    from_bag_order,
    joints,
    run,
    spread,
)


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


TABLE = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
ROWS, COLUMNS = np.array([2.0, 0.5]), np.array([1.0, 0.0, 10.0])
AT = {"table": 0, "rows": 6, "columns": 8, "result": 11}
# Runs of three cells: along the columns every run starts at 0, across the rows run i belongs to row i.
OFFSETS = np.array([0, 0, 0, 1])


def after(*operations, floor=0.0):
    data = np.concatenate([TABLE.ravel(), ROWS, COLUMNS, np.full(6, 7.0)])
    run(np.array(operations, dtype=np.int64), OFFSETS, data, floor)
    return data


def along(code, large, small, third=0):
    return Operation(code | ALONG, large, small, 2, 3, 0, 3, third)


def across(code, large, small, third=0):
    return Operation(code | ACROSS, large, small, 2, 3, 2, 2, third)


def test_products():
    data = after(across(MULTIPLY, AT["table"], AT["rows"]), along(PRODUCT, AT["result"], AT["columns"], AT["table"]))
    np.testing.assert_array_equal(data[:6].reshape(2, 3), TABLE * ROWS[:, None])
    np.testing.assert_array_equal(data[11:].reshape(2, 3), TABLE * ROWS[:, None] * COLUMNS)


def test_sums():
    data = after(across(SUM, AT["table"], AT["rows"]), along(SUM, AT["table"], AT["columns"]))
    np.testing.assert_array_equal(data[6:8], TABLE.sum(axis=1))
    np.testing.assert_array_equal(data[8:11], TABLE.sum(axis=0))


def test_conditioning_keeps_zeros_floors_the_rest_and_leaves_massless_rows():
    data = after(across(CONDITION, AT["result"], AT["rows"], AT["table"]))
    np.testing.assert_array_equal(data[11:].reshape(2, 3), TABLE / ROWS[:, None])
    data = after(along(CONDITION, AT["result"], AT["columns"], AT["table"]))
    np.testing.assert_array_equal(data[11:].reshape(2, 3), [[1.0, 7.0, 0.3], [4.0, 7.0, 0.6]])
    data = after(along(CONDITION, AT["result"], AT["columns"], AT["table"]), floor=0.5)
    np.testing.assert_array_equal(data[11:].reshape(2, 3), [[1.0, 7.0, 0.5], [4.0, 7.0, 0.6]])
    zeroed = after(
        across(PRODUCT, AT["result"], AT["rows"], AT["table"]),
        along(MULTIPLY, AT["result"], AT["columns"]),
        across(CONDITION, AT["result"], AT["rows"], AT["table"]),
        floor=0.5,
    )
    assert zeroed[12] == zeroed[15] == 0.0


def test_copy_divide_scale():
    data = after(
        Operation(COPY, AT["result"], AT["table"], 0, 3, 0, 0, 0),
        Operation(DIVIDE, AT["result"], AT["columns"], 0, 3, 0, 0, 0),
        Operation(SCALE, AT["table"], 0, 0, 6, 0, 0, 0),
    )
    np.testing.assert_array_equal(data[11:14], [1.0, 0.0, 0.3])
    np.testing.assert_array_equal(data[:6], TABLE.ravel() / 6.0)


def random_field(seed, sizes=(2, 3, 1, 4, 3, 2, 2), count=6, width=3, zeros=0.2):
    rng = np.random.default_rng(seed)
    domain = Domain.of({f"c{i}": size for i, size in enumerate(sizes)})
    tree = JunctionTree.of(domain, enumeration.random_cliques(domain, rng, count, width))
    shapes = [(domain.cells(s), domain.cells(f)) for s, f in zip(tree.separators, tree.fresh, strict=True)]
    factors = [rng.gamma(1.0, 1.0, shape) * (rng.random(shape) >= zeros) + 1e-3 for shape in shapes]
    factors[0][0, 0] = 0.0
    return MarkovField.of_factors(tree, factors, 1.0)


@pytest.mark.parametrize("seed", range(10))
def test_every_clique_equals_enumeration_alone_and_in_one_batch(seed):
    field = random_field(seed, count=2 + seed, width=2 + seed % 2)
    table = enumeration.joint_of(field)
    cliques = enumeration.all_cliques(field.domain, range(len(field.domain.columns) + 1))
    together = field.marginals(cliques)
    assert set(together) == set(cliques)
    for clique in cliques:
        expected = enumeration.marginal_of(field.domain, table, clique)
        np.testing.assert_allclose(field.marginal(clique), expected, atol=1e-13)
        np.testing.assert_allclose(together[clique], expected, atol=1e-13)


def test_batches_in_pieces_give_the_same(monkeypatch):
    field = random_field(3, count=5)
    cliques = enumeration.all_cliques(field.domain, (2, 3))
    whole = field.marginals(cliques)
    monkeypatch.setattr(answers, "MESSAGE_CELLS", 1)
    monkeypatch.setattr(answers, "CACHED_CELLS", 0)
    pieces = MarkovField(field.tree, field.tables, 1.0).marginals(cliques)
    for clique in cliques:
        np.testing.assert_allclose(pieces[clique], whole[clique], atol=1e-13)


@pytest.mark.parametrize("room", [0, 50, 400])
def test_what_is_kept_for_later_answers_has_a_limit_for_all_of_it(room, monkeypatch):
    monkeypatch.setattr(answers, "CACHED_CELLS", room)
    field = random_field(3, count=5)
    queries = field.answers
    found = dict(queries.many(enumeration.all_cliques(field.domain, (1, 2, 3))))
    assert len(found) > 20
    assert sum(table.size for table in queries._cache.values()) <= room


def test_all_pairs_of_a_long_chain():
    # Far more columns than a full table could hold: compare with products of transition matrices.
    rng = np.random.default_rng(0)
    names = [f"c{i}" for i in range(40)]
    domain = Domain.of(dict.fromkeys(names, 5))
    tree = JunctionTree.of(domain, [domain.clique(pair) for pair in itertools.pairwise(names)])
    factors = [
        rng.gamma(1.0, 1.0, (domain.cells(s), domain.cells(f)))
        for s, f in zip(tree.separators, tree.fresh, strict=True)
    ]
    field = MarkovField.of_factors(tree, factors, 1.0)
    steps = [field.marginal(domain.clique(pair)).reshape(5, 5) for pair in itertools.pairwise(names)]
    pairs = field.marginals(enumeration.all_cliques(domain, (2,)))
    assert len(pairs) == 780
    for first, second in ((0, 39), (3, 17), (20, 38)):
        expected = steps[first]
        for step in steps[first + 1 : second]:
            expected = expected @ (step / step.sum(axis=1, keepdims=True))
        np.testing.assert_allclose(pairs[domain.clique([names[first], names[second]])], expected.ravel(), atol=1e-12)


def test_asking_for_too_much_is_refused_before_it_is_built(monkeypatch):
    field = random_field(1, count=3, width=2)
    monkeypatch.setattr(answers, "WORKING_CELLS", 8)
    with pytest.raises(ResourceError, match="fewer columns"):
        field.marginal(field.domain.everything())
    wide = Domain.of({f"c{i}": 100 for i in range(5)})
    uniform = MarkovField.of_factors(JunctionTree.of(wide, []), [np.ones((1, 100))] * 5, 1.0)
    with pytest.raises(ResourceError, match="fewer columns"):
        uniform.marginal(wide.everything())


DOMAIN = small_domain()
TREE = JunctionTree.of(DOMAIN, [DOMAIN.clique(names) for names in ("abc", "bcd", "de")])


def random_factors(seed, zeros=0.0):
    rng = np.random.default_rng(seed)
    shapes = [(DOMAIN.cells(s), DOMAIN.cells(f)) for s, f in zip(TREE.separators, TREE.fresh, strict=True)]
    return [rng.gamma(1.0, 1.0, shape) * (rng.random(shape) >= zeros) for shape in shapes]


def product_of(factors):
    everything = DOMAIN.everything()
    table = np.ones(DOMAIN.shape(everything))
    for bag, rows in enumerate(factors):
        axes = (*TREE.separators[bag], *TREE.fresh[bag])
        ordered = DOMAIN.clique(axes)
        turned = rows.reshape(DOMAIN.shape(axes)).transpose([axes.index(name) for name in ordered])
        table = table * spread(DOMAIN, everything, ordered, np.ascontiguousarray(turned))
    return table


@pytest.mark.parametrize(("seed", "zeros"), [(0, 0.0), (1, 0.3), (2, 0.6), (3, 0.6)])
def test_calibration_equals_the_normalised_product(seed, zeros):
    factors = random_factors(seed, zeros)
    table = product_of(factors)
    tables, logarithm = calibrate(TREE, factors)
    assert logarithm == pytest.approx(math.log(table.sum()))
    assert not table_faults(TREE, tables)
    field = MarkovField(TREE, tables, 1.0)
    np.testing.assert_allclose(joint_of(field), table / table.sum(), atol=1e-14)
    for bag, joint in enumerate(joints(TREE, tables)):
        axes = (*TREE.separators[bag], *TREE.fresh[bag])
        np.testing.assert_allclose(joint, sum_to(DOMAIN.columns, table / table.sum(), axes), atol=1e-14)


def test_nothing_left_has_no_mass():
    factors = random_factors(0)
    factors[-1] = np.zeros_like(factors[-1])
    assert calibrate(TREE, factors)[1] == -math.inf


def test_scales_do_not_matter():
    factors = random_factors(1)
    scaled = [factor * 10.0**power for factor, power in zip(factors, (-200, 150, -90), strict=True)]
    for one, other in zip(calibrate(TREE, factors)[0], calibrate(TREE, scaled)[0], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_bag_tables_turn_to_rows_and_columns():
    bag = TREE.bag_of("de")
    table = np.arange(6.0)
    rows = from_bag_order(TREE, bag, table)
    assert TREE.separators[bag] == Clique("d")
    np.testing.assert_array_equal(rows, table.reshape(3, 2))


def test_faults_are_named():
    tables, _ = calibrate(TREE, random_factors(2))
    assert "one table per bag" in table_faults(TREE, tables[:-1])[0]
    assert "rows and" in table_faults(TREE, (tables[0].T, *tables[1:]))[0]
    for bad in (-1.0, math.nan, math.inf):
        broken = tables[0].copy()
        broken[0, 0] = bad
        assert "finite and 0 or more" in table_faults(TREE, (broken, *tables[1:]))[0]
    assert "add up to 1" in table_faults(TREE, (tables[0] * 1.01, *tables[1:]))[0]
    cut = tables[-1].copy()
    cut[0] = 0.0
    assert "no continuation" in table_faults(TREE, (*tables[:-1], cut))[0]
