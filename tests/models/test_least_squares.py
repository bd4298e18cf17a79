import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import UsageError
from understudy.models.histogram_tree import HistogramTree, least_squares

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
    members = np.array(members)
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


def test_faults_are_refused():
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
