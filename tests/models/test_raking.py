"""Raking: columns meet their targets, nodes keep their sums, empty cells stay empty, noise alone moves nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.domain import Domain
from understudy.models.histogram_tree import column_targets, rake
from understudy.models.tables import clip_rescale

DOMAIN = Domain({"a": 2, "b": 3, "c": 4})
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
    moved = rake(DOMAIN, start, exact, np.full(24, 1e-9), NODES)
    for axis in range(3):
        assert sums(moved, axis) == pytest.approx(sums(exact, axis), rel=1e-4)


@given(st.integers(0, 2**32 - 1))
def test_nodes_keep_their_sums_and_empty_cells_stay_empty(seed: int) -> None:
    rng = np.random.default_rng(seed)
    signed = rng.normal(2.0, 10.0, 24)
    counts = clip_rescale(signed, 100.0)
    moved = rake(DOMAIN, counts, signed, np.full(24, 100.0), NODES)
    assert (moved >= 0).all()
    assert (moved[counts == 0] == 0).all()
    assert np.bincount(NODES, weights=moved) == pytest.approx(np.bincount(NODES, weights=counts), abs=1e-6)


def test_a_difference_that_noise_explains_is_left_alone() -> None:
    counts = np.full(24, 10.0)
    signed = counts + np.tile([1.0, -1.0], 12)
    assert not list(column_targets(DOMAIN, counts, signed, np.full(24, 1000.0)))
    assert (rake(DOMAIN, counts, signed, np.full(24, 1000.0), NODES) == counts).all()


def test_the_target_goes_as_far_as_noise_does_not_explain() -> None:
    counts = np.full(24, 10.0)
    signed = counts.copy()
    signed[:12] += 5.0
    signed[12:] -= 5.0
    ((place, target),) = column_targets(DOMAIN, counts, signed, np.full(24, 10.0))
    # The codes of "a" are 60 rows apart from their sums; two sums of variance 120, their total known: 120 in all.
    share = 1.0 - 120.0 / (2 * 60.0**2)
    assert place == 0
    assert target == pytest.approx([120.0 + share * 60.0, 120.0 - share * 60.0])


def test_columns_that_were_not_measured_are_left_alone() -> None:
    counts = np.arange(24, dtype=np.float64)
    assert not list(column_targets(DOMAIN, counts, counts * 3, np.full(24, np.inf)))
    assert not list(column_targets(DOMAIN, counts, counts * 3, np.zeros(24)))


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
