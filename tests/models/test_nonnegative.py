import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import UsageError
from understudy.models.tables import clip_rescale, nonnegative, norm_cut, norm_sub

WAYS = [clip_rescale, norm_sub, norm_cut]
VECTORS = st.lists(st.integers(-50, 50), min_size=1, max_size=12)


def test_published_vectors():
    values = [5, -2, 1, 0.5, 3]
    np.testing.assert_allclose(norm_cut(values, 7.5), [5, 0, 0, 0, 2.5])
    np.testing.assert_allclose(norm_sub(values, 7.5), [4.5, 0, 0.5, 0, 2.5])
    np.testing.assert_allclose(clip_rescale(values, 9.5), [5, 0, 1, 0.5, 3])


def test_flat_sanitizer_by_hand():
    noisy = np.array([3, 0, 1, 0]) + np.array([-1, 2, 0, -1])
    np.testing.assert_allclose(clip_rescale(noisy, 1.0), [0.4, 0.4, 0.2, 0.0])
    np.testing.assert_allclose(norm_sub(noisy, 4.0), [5 / 3, 5 / 3, 2 / 3, 0.0])


@given(VECTORS, st.floats(0, 100))
def test_every_way_gives_the_total_without_negatives(values, total):
    for way in WAYS:
        result = way(values, total)
        assert result.min() >= 0
        assert result.sum() == pytest.approx(total, abs=1e-9)
        order = np.argsort(values, kind="stable")
        assert np.all(np.diff(result[order]) >= -1e-9) or way is norm_cut


@given(VECTORS, st.floats(0.1, 100), st.integers(0, 2**32))
def test_norm_sub_is_the_nearest_point(values, total, seed):
    nearest_point = norm_sub(values, total)
    other = np.random.default_rng(seed).dirichlet(np.full(len(values), 0.5)) * total
    assert np.linalg.norm(nearest_point - values) <= np.linalg.norm(other - values) + 1e-9


@pytest.mark.parametrize("way", WAYS)
def test_nothing_positive(way):
    np.testing.assert_allclose(way([-3, -3, -3, -3], 2.0), [0.5] * 4)
    np.testing.assert_allclose(way([-3, 4], 0.0), [0.0, 0.0])


@pytest.mark.parametrize("total", [-1.0, float("nan"), float("inf")])
def test_total_is_checked(total):
    with pytest.raises(UsageError, match="total"):
        clip_rescale([1], total)


def test_named_ways():
    np.testing.assert_allclose(nonnegative("norm_cut", [1, 2, 3], 3.0), [0, 0, 3])
    with pytest.raises(UsageError, match="norm_sub"):
        nonnegative("norm_subb", [1], 1.0)
    with pytest.raises(UsageError, match="at least one cell"):
        nonnegative("norm_sub", [], 1.0)
