import numpy as np
import pytest

from understudy.methods.tree_layers import average_variance, best_shares, noise_variance, root_above


def dense(fanouts, variances):
    """The average over all ranges by linear algebra."""
    sizes = np.cumprod([1, *fanouts])
    leaves = sizes[-1]
    rows = np.concatenate([np.repeat(np.eye(size), leaves // size, axis=1) for size in sizes[1:]])
    weights = np.repeat(1.0 / np.array(variances), sizes[1:])
    covariance = np.linalg.inv(rows.T @ (rows * weights[:, None]))
    prefix = np.pad(covariance, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)
    spread = np.diag(prefix)
    ranges = spread[:, None] + spread - 2 * prefix
    return ranges[np.triu_indices(leaves + 1, 1)].mean()


@pytest.mark.parametrize(
    ("fanouts", "variances"),
    [
        ([4], [1.0]),
        ([2, 2], [1.0, 1.0]),
        ([3, 2, 4], [1.0, 2.5, 0.7]),
        ([2, 5], [3.0, 1.0]),
        ([5, 1, 2], [3.0, 1.0, 2.0]),
        ([2] * 6, [6.0] * 6),
        ([7, 3], [1e6, 1.0]),
    ],
)
def test_equals_enumeration(fanouts, variances):
    assert average_variance(fanouts, variances) == pytest.approx(dense(fanouts, variances), rel=1e-10)


def test_a_level_that_is_not_measured():
    assert average_variance([2, 3], [np.inf, 1.0]) == pytest.approx(dense([6], [1.0]))


@pytest.mark.parametrize(("leaves", "levels", "branching"), [(1, 1, 1), (8, 3, 2), (9, 3, 3), (10**12, 4, 1_000)])
def test_the_smallest_branching_that_reaches(leaves, levels, branching):
    assert root_above(leaves, levels) == branching


@pytest.mark.parametrize("zcdp", [False, True])
def test_shares_are_at_a_minimum(zcdp):
    fanouts = [4, 2, 3]
    shares = np.array(best_shares(fanouts, zcdp=zcdp))
    assert shares.sum() == pytest.approx(1.0, abs=1e-3)

    def loss(shares):
        return average_variance(fanouts, [noise_variance(part, zcdp=zcdp) for part in shares / shares.sum()])

    at_best = loss(shares)
    assert at_best < loss(np.ones(3))
    for place in np.flatnonzero(shares):
        for step in (-0.03, 0.03):
            moved = shares.copy()
            moved[place] += step
            assert loss(moved) > at_best * (1 - 1e-4)


def test_a_level_that_is_not_worth_it_gets_nothing():
    shares = best_shares([4, 2, 3], zcdp=False)
    assert shares[1] == 0.0
    rest = np.array(shares)[[0, 2]]
    noise = [noise_variance(share, zcdp=False) for share in rest]
    assert average_variance([4, 6], noise) < average_variance([4, 2, 3], [9.0] * 3)


def test_one_level_gets_everything():
    assert best_shares([9], zcdp=False) == [1.0]
