"""Gradual update: the vectors by hand, numbers of rows, falling distance, rules, and the same rows every time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.moving import DOMAIN, NO_SUCH_CELL, RULE, counts, distance, pairs, shuffled, truth
from understudy.domain import Clique, Domain
from understudy.errors import UsageError
from understudy.models.records import Schedule, Target, changes, gradual_update, working_bytes

CURRENT, WANTED = np.array([4, 3, 3, 0]), np.array([2.0, 4.0, 3.0, 1.0])


def test_full_step_by_hand() -> None:
    found = changes(CURRENT, WANTED, 1.0)
    assert found.whole.tolist() == [-2, 1, 0, 1]
    assert found.beta == pytest.approx(0.5)


def test_small_step_by_hand() -> None:
    found = changes(CURRENT, WANTED, 0.2)
    np.testing.assert_allclose(found.raw, [-0.8, 0.6, 0.0, 0.2])
    assert found.beta == pytest.approx(0.2)
    assert found.whole.tolist() == [-1, 1, 0, 0]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 40), min_size=2, max_size=12),
    st.lists(st.integers(0, 40), min_size=2, max_size=12),
    st.floats(0.01, 1.0),
    st.floats(0.0, 0.999),
)
def test_as_many_rows_come_as_go_and_none_too_many(current, shares, alpha, offset) -> None:
    size = min(len(current), len(shares))
    rows, want = np.array(current[:size]), np.array(shares[:size], dtype=float) + 1e-3
    want *= rows.sum() / want.sum()
    found = changes(rows, want, alpha, offset)
    assert found.whole.sum() == 0
    assert abs(found.raw.sum()) < 1e-6
    assert (rows + found.whole >= 0).all()
    assert np.abs(found.whole - found.raw).max() < 1.0 + 1e-6
    assert ((found.raw > 1e-9) <= (want > rows)).all()
    assert np.abs(rows + found.raw - want).sum() <= np.abs(rows - want).sum() + 1e-6


def test_distance_falls_and_rows_stay_as_many() -> None:
    real = truth(20_000)
    targets = pairs(real)
    start = shuffled(real)
    found = gradual_update(DOMAIN, start, targets, seed=3, schedule=Schedule(30), structural_zeros=[RULE])
    codes = dict(found.codes)
    assert all(len(column) == 20_000 for column in codes.values())
    assert distance(codes, targets) < 0.1 * distance(start, targets)


def test_distance_falls_on_average_over_rounds_and_seeds() -> None:
    real = truth(20_000)
    runs = [
        gradual_update(
            DOMAIN, shuffled(real, seed), pairs(real), seed=seed, schedule=Schedule(30), structural_zeros=[RULE]
        )
        for seed in range(8)
    ]
    means = np.mean([run.errors for run in runs], axis=0).reshape(3, 10).mean(axis=1)
    assert means[1] < means[0] / 2
    assert means[2] <= 1.05 * means[1], "once settled, the distance may shake but must not rise"


def test_no_row_breaks_a_rule_whatever_is_wanted() -> None:
    real = truth(3_000)
    wrong = [Target(Clique("ab"), np.ones(12)), Target(Clique("cd"), np.ones(10)), Target(Clique("abd"), np.ones(24))]
    found = dict(gradual_update(DOMAIN, real, wrong, seed=1, schedule=Schedule(20), structural_zeros=[RULE]).codes)
    assert not NO_SUCH_CELL[found["a"], found["c"]].any()
    assert np.ptp(counts(found, Clique("ab"))) < 100, "the rule must not keep rows from moving"


def test_one_seed_one_result() -> None:
    real = truth(2_000)
    runs = [
        gradual_update(DOMAIN, shuffled(real), pairs(real), seed=seed, schedule=Schedule(6), structural_zeros=[RULE])
        for seed in (5, 5, 6)
    ]
    assert all(np.array_equal(runs[0].codes[name], runs[1].codes[name]) for name in "abcd")
    assert runs[0].errors == runs[1].errors
    assert any((runs[0].codes[name] != runs[2].codes[name]).any() for name in "abcd")


def test_given_rows_are_not_changed() -> None:
    real = truth(500)
    start = shuffled(real)
    kept = {name: codes.copy() for name, codes in start.items()}
    gradual_update(DOMAIN, start, pairs(real), seed=1, schedule=Schedule(3))
    assert all(np.array_equal(start[name], kept[name]) for name in "abcd")


def test_empty_cells_are_filled() -> None:
    domain = Domain.of({"a": 3})
    start = {"a": np.zeros(900, dtype=np.uint8)}
    found = gradual_update(domain, start, [Target(Clique("a"), np.array([1.0, 1.0, 1.0]))], seed=1)
    assert np.bincount(found.codes["a"]).tolist() == [300, 300, 300]


def test_wide_columns_and_no_rows() -> None:
    domain = Domain.of({"a": 300, "b": 2})
    start = {"a": np.zeros(0, dtype=np.uint16), "b": np.zeros(0, dtype=np.uint8)}
    found = gradual_update(domain, start, [Target(Clique("ab"), np.ones(600))], seed=1)
    assert found.codes["a"].dtype == np.uint16
    assert len(found.codes["b"]) == 0


@pytest.mark.parametrize(
    "target",
    [
        Target(Clique("ba"), np.ones(12)),
        Target(Clique("ab"), np.ones(11)),
        Target(Clique("ab"), -np.ones(12)),
        Target(Clique("ab"), np.zeros(12)),
        Target(Clique("ab"), np.full(12, np.nan)),
    ],
)
def test_malformed_targets_are_refused(target: Target) -> None:
    with pytest.raises(UsageError):
        gradual_update(DOMAIN, truth(10), [target], seed=1)


@pytest.mark.parametrize("options", [{"rounds": -1}, {"first": 0.0}, {"decay": 1.5}, {"every": 0}])
def test_schedules_are_checked(options: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Schedule(**options)  # type: ignore[arg-type]


def test_stated_bytes_grow_with_rows_and_columns() -> None:
    assert working_bytes(DOMAIN, 10**6, 12) > 10**6 * (2 * 4 + 16)
