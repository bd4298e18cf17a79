"""The doubles are what they say: reproducible or exact, and marked as not private."""

from fractions import Fraction

import numpy as np
import pytest

from understudy.counts.source import LabelCounts, OccupiedCells
from understudy.domain import Distribution
from understudy.privacy.cost import Budget
from understudy.privacy.randomizer import Request
from understudy.testing import NoNoise, SeededRandomizer
from understudy.testing import cases as tables
from understudy.testing.cases import Case

LAPLACE, GAUSSIAN = Distribution("laplace", Fraction(4)), Distribution("gaussian", Fraction(16))


def _request(distribution: Distribution | None, cells: int = 5, threshold: int = 0) -> Request:
    return Request("measure", "x", cells, distribution, Fraction(1), Fraction(1), threshold)


@pytest.mark.parametrize("distribution", [LAPLACE, GAUSSIAN])
def test_seeded_noise_repeats_and_has_the_right_size(distribution: Distribution) -> None:
    exact = np.zeros(20_000, dtype=np.int64)
    first = SeededRandomizer(1).add_noise(_request(distribution, 20_000), exact)
    assert np.array_equal(first, SeededRandomizer(1).add_noise(_request(distribution, 20_000), exact))
    assert not np.array_equal(first, SeededRandomizer(2).add_noise(_request(distribution, 20_000), exact))
    assert first.dtype == np.int64
    assert 0.9 * distribution.variance < first.var() < 1.1 * distribution.variance


def test_sparse_double_keeps_order_and_threshold() -> None:
    occupied = OccupiedCells(np.array([3, 10**9]), np.array([500, 700]))
    kept = SeededRandomizer(1).add_sparse_noise(_request(LAPLACE, 10**15, threshold=100), occupied)
    assert (np.diff(kept.indices) > 0).all()
    assert (kept.counts >= 100).all()
    assert {3, 10**9} <= set(kept.indices.tolist())


def test_no_noise_is_exact() -> None:
    double = NoNoise()
    assert double.add_noise(_request(LAPLACE), np.arange(5)).tolist() == [0, 1, 2, 3, 4]
    assert double.choose(_request(None), np.array([1, 9, 3])) == 1
    labels = double.keep_frequent(_request(LAPLACE, threshold=2), LabelCounts(("b", "a", "c"), np.array([2, 3, 1])))
    assert labels.labels == ("a", "b")
    sparse = double.add_sparse_noise(_request(LAPLACE, threshold=2), OccupiedCells(np.array([1, 4]), np.array([1, 2])))
    assert sparse.indices.tolist() == [4]


@pytest.mark.parametrize("double", [NoNoise(), SeededRandomizer(1)])
def test_a_release_made_with_a_double_makes_no_claim(double: NoNoise | SeededRandomizer) -> None:
    assert not double.private
    case = Case(tables.small(), "independent", Budget(1.0))
    statement = case.release(tables.some_rows(case.schema, 5, seed=1), double).statement
    assert statement.claim is None
    assert "NOT PRIVATE" in statement.markdown()


def test_doubles_choose_within_cells_and_split_nodes() -> None:
    scores, allowed = np.array([[1, 9, 3], [4, 4, 9]]), np.array([[True, True, True], [True, True, False]])
    request = _request(None, 3)
    assert NoNoise().choose_each(request, scores, allowed).tolist() == [1, 0]
    many = SeededRandomizer(1).choose_each(request, np.tile(scores, (20_000, 1)), np.tile(allowed, (20_000, 1)))
    shares = np.bincount(many[1::2], minlength=3) / 20_000
    assert np.abs(shares - [0.5, 0.5, 0.0]).max() < 0.02
    first = np.exp([1.0 - 9, 0, 3 - 9])
    assert np.abs(np.bincount(many[0::2], minlength=3) / 20_000 - first / first.sum()).max() < 0.02
    assert NoNoise().split(_request(LAPLACE, 3, threshold=5), np.array([4, 5, 6])).tolist() == [False, False, True]
    split = SeededRandomizer(1).split(_request(LAPLACE, 20_000, threshold=5), np.full(20_000, 5))
    assert 0.4 < split.mean() < 0.5  # above, not at, the threshold
