"""Tests of `understudy.models.histogram_tree`."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.domain import Domain, Partition
from understudy.errors import ReleaseError, UsageError
from understudy.models.histogram_tree import (
    HistogramTree,
    TreeModel,
    TreeNode,
    TreeStructure,
    column_targets,
    least_squares,
    nonnegative_tree,
    project_children,
    rake,
)
from understudy.models.model import load_model, save_model
from understudy.models.tables import clip_rescale, nonnegative

DOMAIN = Domain.of({"a": 2, "one": 1, "b": 3, "c": 4})
TREE = TreeStructure.root(DOMAIN).split(["b"]).refine(["c", "a", None], parts=2)


def model(rounding="multinomial"):
    rng = np.random.default_rng(4)
    signed = rng.normal(3, 5, 24)
    return TreeModel.of(TREE, signed, np.maximum(signed, 0.0), 70.0, rounding)


def test_signed_estimates_are_kept_and_summed():
    found = model()
    assert found.signed.min() < 0.0
    assert found.signed_marginal(DOMAIN.clique(["b"])) == pytest.approx(found.signed.reshape(2, 3, 4).sum(axis=(0, 2)))
    leaves = np.bincount(TREE.leaf_parents(), weights=found.signed)
    assert leaves.size == TREE.size()
    given = found.condition({"a": np.array([1])})
    assert given.signed.reshape(2, 12)[0].tolist() == [0.0] * 12
    assert given.signed.reshape(2, 12)[1].tolist() == found.signed.reshape(2, 12)[1].tolist()


def test_controlled_rounding_draws_fewer_surprises():
    expected = model().probabilities * 5_000
    codes = model("controlled").draw(5_000, np.random.default_rng(1))
    places = np.ravel_multi_index(tuple(codes[name].astype(int) for name in ("a", "b", "c")), (2, 3, 4))
    assert np.all(np.abs(np.bincount(places, minlength=24) - expected) < 1.0 + 1e-9)
    assert not np.array_equal(places, np.sort(places))  # in random order: any part of the rows is a fair sample


def test_files_keep_tree_tables_and_rounding(tmp_path):
    save_model(model("controlled"), tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert isinstance(again, TreeModel)
    assert again.rounding == "controlled"
    assert again.structure.nodes() == TREE.nodes()
    assert again.signed.tolist() == model().signed.tolist()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("layers", [0, 1]),
        ("layers", "x"),
        ("layers", [0, 1, 9, 9]),
        ("rounding", "up"),
        ("total", -1),
        ("domain", [["a", 2]]),
    ],
)
def test_altered_documents_are_refused(tmp_path, key, value):
    save_model(model(), tmp_path / "model")
    place = tmp_path / "model" / "model.json"
    document = json.loads(place.read_text())
    document[key] = value
    place.write_text(json.dumps(document))
    with pytest.raises(ReleaseError):
        load_model(tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("probabilities", np.full(24, 0.5)),
        ("probabilities", np.full(23, 1 / 23)),
        ("signed", np.full(24, np.nan)),
        ("columns", np.full(8, 99, dtype=np.int32)),
        ("parents", np.zeros(8, dtype=np.int64)),
    ],
)
def test_altered_arrays_are_refused(tmp_path, name, array):
    save_model(model(), tmp_path / "model")
    np.save(tmp_path / "model" / f"{name}.npy", array)
    with pytest.raises(ReleaseError):
        load_model(tmp_path / "model")


def test_faults_are_refused():
    with pytest.raises(UsageError, match="one probability"):
        TreeModel.of(TREE, np.zeros(24), np.ones(23), 1.0)
    with pytest.raises(UsageError, match="rounding"):
        TreeModel.of(TREE, np.zeros(24), np.ones(24), 1.0, "nearest")
    with pytest.raises(UsageError, match="cannot happen"):
        TreeModel.of(TREE, np.zeros(24), np.r_[np.ones(12), np.zeros(12)], 1.0).condition({"a": np.array([1])})


STRUCTURE_DOMAIN = Domain.of({"a": 2, "b": 3, "c": 5})


def all_codes(domain=STRUCTURE_DOMAIN):
    shape = domain.shape(domain.columns)
    return dict(zip(domain.columns, (axis.ravel() for axis in np.indices(shape)), strict=True))


def by_hand(structure, layer, codes):
    """The node of each record, found by comparing it with every box."""
    lows, highs = structure.boxes(layer)
    table = np.stack([codes[name] for name in structure.domain.columns], axis=1)
    inside = np.all((table[:, None] >= lows) & (table[:, None] < highs), axis=2)
    assert np.all(inside.sum(axis=1) == 1)
    return inside.argmax(axis=1)


@st.composite
def structures(draw):
    structure = TreeStructure.root(STRUCTURE_DOMAIN)
    for _ in range(draw(st.integers(0, 4))):
        columns = [draw(st.sampled_from([*STRUCTURE_DOMAIN.columns, None])) for _ in range(structure.size())]
        structure = structure.refine(columns, parts=draw(st.integers(1, 6)))
    return structure


@settings(max_examples=60, deadline=None)
@given(structures())
def test_every_record_finds_the_node_whose_box_holds_it(structure):
    codes = all_codes()
    for layer in range(structure.layers + 1):
        partition = structure.partition(layer)
        assert isinstance(partition, Partition)
        assert partition.cells == structure.size(layer)
        expected = by_hand(structure, layer, codes)
        found = partition.assign({name: codes[name].astype(np.uint8) for name in partition.columns})
        assert found.tolist() == expected.tolist()
    assert structure.leaf_parents().tolist() == by_hand(structure, -1, codes).tolist()
    assert structure.faults() == []


@settings(max_examples=60, deadline=None)
@given(structures())
def test_parents_hold_what_their_children_hold(structure):
    for layer, parents in enumerate(structure.parent_places(), start=1):
        cells = structure.widths(layer).prod(axis=1)
        above = structure.widths(layer - 1).prod(axis=1)
        assert np.bincount(parents, weights=cells).tolist() == above.tolist()
    assert structure.widths().prod(axis=1).sum() == 30


def test_nodes_are_told_as_parent_column_and_range():
    structure = TreeStructure.root(STRUCTURE_DOMAIN).split(["a"]).refine(["c", None], parts=2)
    assert structure.nodes(0) == [TreeNode(-1, None, 0, 0)]
    assert structure.nodes(1) == [TreeNode(0, "a", 0, 1), TreeNode(0, "a", 1, 2)]
    assert structure.nodes() == [TreeNode(0, "c", 0, 2), TreeNode(0, "c", 2, 5), TreeNode(1, None, 0, 0)]
    assert structure.partition().name == "layer 2"
    assert structure.partition().columns == ("a", "c")
    assert structure.partition(0).columns == ("a",)  # a rule that looks at nothing could not be told how many rows
    assert structure.partition(0).assign({"a": np.array([1, 0, 1])}).tolist() == [0, 0, 0]


def test_ranges_can_be_given():
    structure = TreeStructure.root(STRUCTURE_DOMAIN).divide(["c"], [[2, 4]]).divide(["c", "a", None], [[1], [], []])
    assert [(node.low, node.high) for node in structure.nodes(1)] == [(0, 2), (2, 4), (4, 5)]
    assert [(node.parent, node.column) for node in structure.nodes()] == [(0, "c"), (0, "c"), (1, "a"), (2, None)]
    assert structure.leaf_parents().reshape(2, 3, 5)[1, 2].tolist() == [0, 1, 2, 2, 3]


def test_many_records_go_through_in_blocks():
    rng = np.random.default_rng(1)
    codes = {name: rng.integers(0, size, 150_001).astype(np.uint16) for name, size in STRUCTURE_DOMAIN.sizes.items()}
    structure = TreeStructure.root(STRUCTURE_DOMAIN).split(["b"]).refine(["c"] * 3, parts=2)
    found = structure.partition().assign(codes)
    assert found.tolist() == (codes["b"].astype(int) * 2 + (codes["c"] >= 2)).tolist()


@pytest.mark.parametrize(
    ("grow", "named"),
    [
        (lambda tree: tree.split(["a", "b"]), "columns"),
        (lambda tree: tree.split(["d"]), "'d'"),
        (lambda tree: tree.refine(["a"], parts=0), "parts"),
        (lambda tree: tree.divide(["c"], [[3, 3]]), "starts"),
        (lambda tree: tree.divide(["c"], [[0]]), "starts"),
        (lambda tree: tree.divide(["c"], []), "starts"),
        (lambda tree: tree.partition(1), "layer"),
    ],
)
def test_wrong_calls_say_what_is_wrong(grow, named):
    with pytest.raises(UsageError, match=named):
        grow(TreeStructure.root(STRUCTURE_DOMAIN))


@pytest.mark.parametrize(
    ("array", "place", "value"),
    [("parents", 2, 1), ("parents", 3, 0), ("columns", 1, 7), ("columns", 3, 0), ("lows", 1, 1), ("highs", 5, 4)],
)
def test_arrays_that_are_no_tree_are_noticed(array, place, value):
    tree = TreeStructure.root(STRUCTURE_DOMAIN).split(["a"]).refine(["c", "b"], parts=2)
    arrays = {name: getattr(tree, name).copy() for name in ("parents", "columns", "lows", "highs")}
    assert TreeStructure(STRUCTURE_DOMAIN, *arrays.values(), tree.starts).faults() == []  # type: ignore[call-arg]
    arrays[array][place] = value
    assert TreeStructure(STRUCTURE_DOMAIN, *arrays.values(), tree.starts).faults()  # type: ignore[call-arg]
    assert TreeStructure(STRUCTURE_DOMAIN, tree.parents, tree.columns, tree.lows, tree.highs, (0, 1, 3)).faults()


BINARY = HistogramTree((np.array([0, 0]), np.array([0, 0, 1, 1])))


def check(estimate, expected, tolerance=5e-5):
    for found, level in zip(estimate.values, expected, strict=True):
        np.testing.assert_allclose(found, level, atol=tolerance)


def estimate_variances(tree, estimate):
    """The variance of every estimate, from those of the way up: level by level, infinite where nothing was measured.

    An estimate is z_u − (V_u/T)·S, which does not correlate with the parent's, plus V_u/T of the parent's.
    """
    found = [estimate.upward[0]]
    for number, parents in enumerate(tree.parents):
        own = estimate.upward[number + 1]
        total = np.bincount(parents, weights=own, minlength=found[number].size)[parents]
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(total > 0.0, own / total, 0.0)
            level = own - own * share + share**2 * found[number][parents]
        found.append(np.where(np.isinf(own), np.inf, np.where(np.isinf(total), own, level)))
    return found


def dense(tree, values, variances):
    """Weighted least squares over the leaves by linear algebra: nodes without children are the unknowns."""
    rows, weights, wanted, members = [], [], [], []
    sizes, leaves = tree.sizes, 0
    below: list[list[list[int]]] = []
    for level in reversed(range(len(sizes))):
        sets: list[list[int]] = [[] for _ in range(sizes[level])]
        if level < len(sizes) - 1:
            for node, parent in enumerate(tree.parents[level]):
                sets[parent] += below[-1][node]
        for node in range(sizes[level]):
            if not sets[node]:
                sets[node] = [leaves]
                leaves += 1
        below.append(sets)
    for level, sets in enumerate(reversed(below)):
        for node, covered in enumerate(sets):
            row = np.zeros(leaves)
            row[covered] = 1.0
            members.append(row)
            if np.isfinite(variances[level][node]):
                rows.append(row)
                weights.append(1.0 / variances[level][node] ** 0.5)
                wanted.append(values[level][node])
    scaled = np.array(rows) * np.array(weights)[:, None]
    solution = np.linalg.lstsq(scaled, np.array(wanted) * np.array(weights), rcond=None)[0]
    covariance = np.linalg.inv(scaled.T @ scaled)
    members = np.array(members)  # type: ignore[assignment]
    return members @ solution, np.einsum("ij,jk,ik->i", members, covariance, members)


@st.composite
def measured_trees(draw):
    """Unequal branching and depth; variances over six orders of magnitude; upper nodes perhaps unmeasured."""
    parents, above = [], 1
    for _ in range(draw(st.integers(1, 4))):
        level = draw(st.lists(st.integers(0, above - 1), min_size=1, max_size=7))
        parents.append(np.array(level))
        above = len(level)
    tree = HistogramTree(tuple(parents))
    spread = st.floats(1e-3, 1e3)
    values = [np.array(draw(st.lists(st.integers(-50, 500), min_size=n, max_size=n)), float) for n in tree.sizes]
    variances = []
    for level, size in enumerate(tree.sizes):
        childless = np.ones(size, dtype=bool)
        if level < len(parents):
            childless[parents[level]] = False
        choice = [draw(spread if childless[node] else spread | st.just(np.inf)) for node in range(size)]
        variances.append(np.array(choice))
    return tree, values, variances


@settings(max_examples=150, deadline=None)
@given(measured_trees())
def test_equals_dense_weighted_least_squares(measured):
    tree, values, variances = measured
    estimate = least_squares(tree, values, variances)
    expected, spread = dense(tree, values, variances)
    scale = 1.0 + np.abs(expected).max()
    np.testing.assert_allclose(np.concatenate(estimate.values), expected, atol=1e-7 * scale)
    np.testing.assert_allclose(np.concatenate(estimate_variances(tree, estimate)), spread, rtol=1e-6)


@settings(max_examples=100, deadline=None)
@given(measured_trees(), st.data())
def test_children_add_up_and_phantoms_change_nothing(measured, data):
    tree, values, variances = measured
    estimate = least_squares(tree, values, variances)
    for above, below, parents in zip(estimate.values, estimate.values[1:], tree.parents, strict=False):
        inner = np.isin(np.arange(above.size), parents)
        sums = np.bincount(parents, weights=below, minlength=above.size)
        np.testing.assert_allclose(sums[inner], above[inner], rtol=0, atol=1e-9 * (1 + np.abs(above).max()))
    # Phantoms: more children of inner nodes of the last level, known to be empty.
    inner = np.unique(tree.parents[-1])
    added = np.array(data.draw(st.lists(st.sampled_from(inner.tolist()), min_size=1, max_size=5)))
    larger = HistogramTree((*tree.parents[:-1], np.concatenate((tree.parents[-1], added))))
    zeros = np.zeros(added.size)
    padded = least_squares(
        larger,
        [*values[:-1], np.concatenate((values[-1], zeros))],
        [*variances[:-1], np.concatenate((variances[-1], zeros))],
    )
    for level, expected in zip(padded.values, estimate.values, strict=True):
        np.testing.assert_allclose(level[: expected.size], expected, rtol=1e-12, atol=1e-12)
    assert not padded.values[-1][-added.size :].any()


def test_the_printed_binary_tree():
    estimate = least_squares(BINARY, [[20], [11, 8], [7, 2, 5, 6]], [1, 1, 1])
    check(estimate, [[19.7143], [10.5238, 9.1905], [7.7619, 2.7619, 4.0952, 5.0952]])
    np.testing.assert_allclose(estimate.upward[1], 2 / 3)
    np.testing.assert_allclose(estimate.upward[0], 4 / 7)


def test_the_same_tree_with_a_public_root_and_unequal_variances():
    estimate = least_squares(BINARY, [[19], [11, 8], [7, 2, 5, 6]], [0, 2, 8])
    check(estimate, [[19.0], [10.7222, 8.2778], [7.8611, 2.8611, 3.6389, 4.6389]])


def test_unequal_branching_as_printed():
    tree = HistogramTree((np.array([0, 0, 0]), np.array([0, 0, 1, 1, 2, 2])))
    estimate = least_squares(tree, [[100], [52, 30, 21], [33, 15, 12, 22, 9, 8]], [0, 2, 8])
    leaves = [34.3519, 16.3519, 9.7963, 19.7963, 10.3519, 9.3519]
    check(estimate, [[100.0], [50.7037, 29.5926, 19.7037], leaves])


def test_two_nodes_as_printed():
    tree = HistogramTree((np.array([0, 0]),))
    check(least_squares(tree, [[120], [48, 50]], [1, 1]), [[112.6667], [55.3333, 57.3333]])


def test_a_phantom_child_as_printed():
    tree = HistogramTree((np.array([0, 0, 0]),))
    check(least_squares(tree, [[12], [7, 2, 0]], [0, [1, 1, 0]]), [[12], [8.5, 3.5, 0]])


@pytest.mark.parametrize(("branching", "height"), [(2, 3), (2, 4), (3, 3), (14, 2)])
def test_the_closed_form_for_equal_trees(branching, height):
    rng = np.random.default_rng(branching)
    sizes = [branching**level for level in range(height)]
    tree = HistogramTree(tuple(np.arange(size) // branching for size in sizes[1:]))
    values = [rng.integers(0, 100, size).astype(float) for size in sizes]
    upward = list(values)
    for level in reversed(range(height - 1)):
        up = height - level
        power, lower = branching**up, branching ** (up - 1)
        sums = upward[level + 1].reshape(-1, branching).sum(axis=1)
        upward[level] = ((power - lower) * values[level] + (lower - 1) * sums) / (power - 1)
    closed = [upward[0]]
    for level in range(1, height):
        surplus = closed[-1] - upward[level].reshape(-1, branching).sum(axis=1)
        closed.append(upward[level] + np.repeat(surplus, branching) / branching)
    check(least_squares(tree, values, [1.0] * height), closed, tolerance=1e-9)


@pytest.mark.parametrize(
    ("branching", "up", "weights"),
    [(2, 2, (2 / 3, 1 / 3)), (2, 3, (4 / 7, 3 / 7)), (14, 2, (0.93333, 0.06667)), (14, 3, (0.92891, 0.07109))],
)
def test_the_printed_weights(branching, up, weights):
    sizes = [branching**level for level in range(up)]
    tree = HistogramTree(tuple(np.arange(size) // branching for size in sizes[1:]))
    own = least_squares(tree, [np.ones(1), *map(np.zeros, sizes[1:])], [1.0] * up).values[0]
    assert own[0] == pytest.approx(weights[0], abs=5e-6)
    assert 1 - own[0] == pytest.approx(weights[1], abs=5e-6)


def test_what_was_not_measured_is_what_is_missing():
    tree = HistogramTree((np.array([0, 0, 0]),))
    estimate = least_squares(tree, [[10], [3, 99, 99]], [1.0, [2.0, np.inf, np.inf]])
    check(estimate, [[10], [3, 3.5, 3.5]])
    unmeasured_root = least_squares(tree, [[99], [3, 4, 5]], [np.inf, 1.0])
    check(unmeasured_root, [[12], [3, 4, 5]])
    assert unmeasured_root.upward[0][0] == 3.0


def test_what_is_known_is_kept():
    estimate = least_squares(BINARY, [[20], [11, 8], [7, 2, 0, 0]], [0, 1, [1, 1, 0, 0]])
    check(estimate, [[20], [20, 0], [12.5, 7.5, 0, 0]])


def test_empirical_means_and_variances():
    """100,000 trees at once, as siblings of one unmeasured root: means are right, variances are the computed ones."""
    rng, repeats = np.random.default_rng(7), 100_000
    truth, noise = [np.array([30.0, 12.0]), np.array([25.0, 5.0, 4.0, 8.0])], (3.0, 5.0)
    one = HistogramTree((np.array([0, 0]), np.array([0, 0, 1, 1])))
    shape = least_squares(one, [[0], [0, 0], [0] * 4], [np.inf, noise[0] ** 2, noise[1] ** 2])
    expected = estimate_variances(one, shape)
    parents = (np.zeros(2 * repeats, dtype=np.int64), np.repeat(np.arange(2 * repeats), 2))
    values = [
        np.tile(truth[level], repeats) + rng.normal(0, noise[level], repeats * truth[level].size) for level in (0, 1)
    ]
    found = least_squares(HistogramTree(parents), [[0], *values], [np.inf, noise[0] ** 2, noise[1] ** 2]).values[1:]
    for level in (0, 1):
        table = found[level].reshape(repeats, -1)
        spread = expected[level + 1]
        assert np.all(np.abs(table.mean(axis=0) - truth[level]) < 6 * np.sqrt(spread / repeats))
        # The variance of a sample variance is 2V²/n for normal noise.
        assert np.all(np.abs(table.var(axis=0) / spread - 1) < 6 * np.sqrt(2 / repeats))


def test_sums_hold_with_a_million_leaves():
    rng = np.random.default_rng(8)
    tree = HistogramTree((np.zeros(4, dtype=np.int64), rng.integers(0, 4, 1_290_240)))
    values = [np.array([44_821.0]), rng.laplace(11_000, 20, 4), rng.laplace(0, 10, 1_290_240)]
    estimate = least_squares(tree, values, [np.inf, 800.0, 200.0])
    sums = np.bincount(tree.parents[1], weights=estimate.values[2])
    np.testing.assert_allclose(sums, estimate.values[1], rtol=1e-9)
    assert estimate.values[1].sum() == pytest.approx(estimate.values[0][0], rel=1e-9)
    # The leaves say next to nothing about their parents: with 322,560 of them the weight is 1 in 80,000.
    np.testing.assert_allclose(estimate.values[1], values[1], atol=1.0)


def test_least_squares_faults_are_refused():
    with pytest.raises(UsageError, match="level 2"):
        HistogramTree((np.array([0, 0]), np.array([0, 2])))
    with pytest.raises(UsageError, match="all 3 levels"):
        least_squares(BINARY, [[1], [1, 1]], [1, 1])
    with pytest.raises(UsageError, match="variances"):
        least_squares(BINARY, [[1], [1, 1], [1] * 4], [1, -1, 1])
    with pytest.raises(UsageError, match="finite"):
        least_squares(BINARY, [[1], [np.nan, 1], [1] * 4], [1, 1, 1])


@pytest.mark.parametrize(("variances", "expected"), [((1, 1), (10.3333, 9.0)), ((2, 8), (10.7778, 8.3333))])
def test_the_upward_values_of_the_printed_trees(variances, expected):
    """What a node knows from itself and below is what least squares make of it as the root of its own tree."""
    family = HistogramTree((np.array([0, 0]),))
    for own, leaves, wanted in zip((11, 8), ([7, 2], [5, 6]), expected, strict=True):
        found = least_squares(family, [[own], leaves], list(variances)).values[0]
        np.testing.assert_allclose(found, wanted, atol=5e-5)


WAYS = ("clip_rescale", "norm_sub")


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(WAYS), st.data())
def test_every_sibling_set_is_treated_as_if_alone(way, data):
    size = data.draw(st.integers(1, 30))
    sets = data.draw(st.integers(1, 5))
    parents = np.array(data.draw(st.lists(st.integers(0, sets - 1), min_size=size, max_size=size)))
    values = np.array(data.draw(st.lists(st.integers(-50, 100), min_size=size, max_size=size)), dtype=float)
    totals = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.5, 7.0, 200.0]), min_size=sets, max_size=sets)))
    possible = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    found = project_children(values, parents, totals, possible, way)
    assert not found[~possible].any()
    for number in range(sets):
        here = (parents == number) & possible
        if here.any():
            np.testing.assert_allclose(found[here], nonnegative(way, values[here], totals[number]), atol=1e-9)


@pytest.mark.parametrize("way", WAYS)
def test_children_add_up_all_the_way_down(way):
    rng = np.random.default_rng(3)
    tree = HistogramTree((np.zeros(40, dtype=int), np.repeat(np.arange(40), 25)))
    estimates = [np.array([500.0]), rng.normal(10, 20, 40), rng.normal(0.5, 5, 1_000)]
    possible = rng.random(1_000) < 0.7
    possible[:25] = False
    counts = nonnegative_tree(tree, estimates, 500.0, way, possible=possible)
    assert counts[0][0] == 500.0
    assert counts[1][0] == 0.0  # nothing below it is possible
    assert min(level.min() for level in counts) >= 0.0
    assert not counts[2][~possible].any()
    np.testing.assert_allclose(np.bincount(tree.parents[1], weights=counts[2]), counts[1], atol=1e-9)
    assert counts[1].sum() == pytest.approx(500.0, abs=1e-9)


def test_by_hand():
    tree = HistogramTree((np.array([0, 0]), np.array([0, 0, 1, 1])))
    estimates = [np.array([10.0]), np.array([8.0, 2.0]), np.array([9.0, -1.0, -2.0, -3.0])]
    clipped = nonnegative_tree(tree, estimates, 10.0, "clip_rescale")
    np.testing.assert_allclose(clipped[2], [8.0, 0.0, 1.0, 1.0])
    projected = nonnegative_tree(tree, estimates, 10.0, "norm_sub")
    np.testing.assert_allclose(projected[2], [8.0, 0.0, 1.5, 0.5])


def test_refusals():
    tree = HistogramTree((np.array([0, 0]),))
    estimates = [np.array([1.0]), np.array([1.0, 0.0])]
    with pytest.raises(UsageError, match="norm_sub"):
        nonnegative_tree(tree, estimates, 1.0, "norm_sup")
    with pytest.raises(UsageError, match="total"):
        nonnegative_tree(tree, estimates, 0.0, "norm_sub")
    with pytest.raises(UsageError, match="possible"):
        nonnegative_tree(tree, estimates, 1.0, "norm_sub", possible=np.zeros(2, dtype=bool))


# Raking: columns meet their targets, nodes keep their sums, empty cells stay empty, noise alone moves nothing.


RAKING_DOMAIN = Domain({"a": 2, "b": 3, "c": 4})
SHAPE = (2, 3, 4)
NODES = np.repeat(np.arange(2), 12)


def sums(counts: np.ndarray, axis: int) -> np.ndarray:
    others = tuple(place for place in range(3) if place != axis)
    return counts.reshape(SHAPE).sum(axis=others)


def test_without_noise_every_column_is_met() -> None:
    rng = np.random.default_rng(3)
    exact = rng.integers(1, 50, 24).astype(np.float64)
    start = np.full(24, exact.sum() / 24)
    start[:12] *= exact[:12].sum() / start[:12].sum()
    start[12:] *= exact[12:].sum() / start[12:].sum()
    moved = rake(RAKING_DOMAIN, start, exact, np.full(24, 1e-9), NODES)
    for axis in range(3):
        assert sums(moved, axis) == pytest.approx(sums(exact, axis), rel=1e-4)


@given(st.integers(0, 2**32 - 1))
def test_nodes_keep_their_sums_and_empty_cells_stay_empty(seed: int) -> None:
    rng = np.random.default_rng(seed)
    signed = rng.normal(2.0, 10.0, 24)
    counts = clip_rescale(signed, 100.0)
    moved = rake(RAKING_DOMAIN, counts, signed, np.full(24, 100.0), NODES)
    assert (moved >= 0).all()
    assert (moved[counts == 0] == 0).all()
    assert np.bincount(NODES, weights=moved) == pytest.approx(np.bincount(NODES, weights=counts), abs=1e-6)


def test_a_difference_that_noise_explains_is_left_alone() -> None:
    counts = np.full(24, 10.0)
    signed = counts + np.tile([1.0, -1.0], 12)
    assert not list(column_targets(RAKING_DOMAIN, counts, signed, np.full(24, 1000.0)))
    assert (rake(RAKING_DOMAIN, counts, signed, np.full(24, 1000.0), NODES) == counts).all()


def test_the_target_goes_as_far_as_noise_does_not_explain() -> None:
    counts = np.full(24, 10.0)
    signed = counts.copy()
    signed[:12] += 5.0
    signed[12:] -= 5.0
    ((place, target),) = column_targets(RAKING_DOMAIN, counts, signed, np.full(24, 10.0))
    # The codes of "a" are 60 rows apart from their sums; two sums of variance 120, their total known: 120 in all.
    share = 1.0 - 120.0 / (2 * 60.0**2)
    assert place == 0
    assert target == pytest.approx([120.0 + share * 60.0, 120.0 - share * 60.0])


def test_columns_that_were_not_measured_are_left_alone() -> None:
    counts = np.arange(24, dtype=np.float64)
    assert not list(column_targets(RAKING_DOMAIN, counts, counts * 3, np.full(24, np.inf)))
    assert not list(column_targets(RAKING_DOMAIN, counts, counts * 3, np.zeros(24)))


def test_sparse_tables_come_closer_to_their_columns() -> None:
    rng = np.random.default_rng(11)
    domain = Domain({"a": 2, "b": 2, "c": 2, "d": 500})
    exact = np.zeros((2, 2, 2, 500))
    places = [rng.random(3000) < share for share in (0.1, 0.2, 0.5)]
    np.add.at(exact, (*(place.astype(int) for place in places), rng.integers(0, 500, 3000)), 1)
    signed = exact.ravel() + np.rint(rng.laplace(0, 5.0, 4000))
    counts = clip_rescale(signed, 3000.0)
    moved = rake(domain, counts, signed, np.full(4000, 50.0), np.zeros(4000, dtype=np.int64))
    for axis in range(2):
        others = tuple(place for place in range(4) if place != axis)
        truth = exact.sum(axis=others)
        before = np.abs(counts.reshape(exact.shape).sum(axis=others) - truth).sum()
        after = np.abs(moved.reshape(exact.shape).sum(axis=others) - truth).sum()
        assert after < before / 2
