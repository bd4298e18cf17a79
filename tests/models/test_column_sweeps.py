"""Column sweeps: squared distance never rises, tables are reached to within rounding, rules hold, seeds decide."""

import numpy as np
import pytest

from tests.models.moving import DOMAIN, NO_SUCH_CELL, RULE, counts, distance, pairs, shuffled, truth
from understudy.domain import Clique, Domain
from understudy.errors import UsageError
from understudy.models.records import Target, column_sweeps


def squares(codes: dict[str, np.ndarray], targets: list[Target]) -> float:
    rows = len(codes["a"])
    return float(sum(((counts(codes, t.clique) - t.wanted(rows)) ** 2).sum() for t in targets))


def test_tables_are_reached_to_within_a_few_rows() -> None:
    real = truth(5_000)
    targets = [*pairs(real), Target(Clique("abc"), counts(real, Clique("abc")))]
    found = column_sweeps(DOMAIN, shuffled(real), targets, seed=1, structural_zeros=[RULE])
    codes = dict(found.codes)
    assert all(len(column) == 5_000 for column in codes.values())
    assert distance(codes, targets) < 0.003
    assert found.errors[-1] == pytest.approx(distance(codes, targets) * 2 * 5_000 * len(targets))


def test_squared_distance_never_rises() -> None:
    real = truth(800)
    targets = pairs(real)
    before = squares(shuffled(real), targets)
    for sweeps in range(1, 5):
        found = dict(column_sweeps(DOMAIN, shuffled(real), targets, seed=4, sweeps=sweeps).codes)
        after = squares(found, targets)
        assert after <= before
        before = after


def test_no_row_breaks_a_rule_whatever_is_wanted() -> None:
    wrong = [Target(Clique("ab"), np.ones(12)), Target(Clique("cd"), np.ones(10))]
    found = dict(column_sweeps(DOMAIN, truth(3_000), wrong, seed=1, structural_zeros=[RULE]).codes)
    assert not NO_SUCH_CELL[found["a"], found["c"]].any()
    assert np.ptp(counts(found, Clique("cd"))) < 100


def test_one_seed_one_result_and_the_start_stays() -> None:
    real = truth(2_000)
    start = shuffled(real)
    kept = {name: codes.copy() for name, codes in start.items()}
    runs = [column_sweeps(DOMAIN, start, pairs(real), seed=seed, sweeps=3) for seed in (5, 5, 6)]
    assert all(np.array_equal(runs[0].codes[name], runs[1].codes[name]) for name in "abcd")
    assert any((runs[0].codes[name] != runs[2].codes[name]).any() for name in "abcd")
    assert all(np.array_equal(start[name], kept[name]) for name in "abcd")


def test_it_stops_when_nothing_moves() -> None:
    real = truth(300)
    assert len(column_sweeps(DOMAIN, real, pairs(real), seed=1, sweeps=50).errors) == 1


def test_columns_without_a_table_stay() -> None:
    real = truth(300)
    found = column_sweeps(DOMAIN, real, [Target(Clique("ab"), np.ones(12))], seed=1)
    assert np.array_equal(found.codes["c"], real["c"])
    assert not np.array_equal(found.codes["a"], real["a"])


def test_wide_codes_and_no_rows() -> None:
    domain = Domain.of({"a": 300, "b": 2})
    start = {"a": np.full(1_200, 299, dtype=np.uint16), "b": np.zeros(1_200, dtype=np.uint8)}
    found = column_sweeps(domain, start, [Target(Clique("ab"), np.ones(600))], seed=1)
    assert np.bincount(found.codes["a"].astype(np.int64) * 2 + found.codes["b"]).tolist() == [2] * 600
    empty = {name: codes[:0] for name, codes in start.items()}  # type: ignore[index]
    assert len(column_sweeps(domain, empty, [Target(Clique("ab"), np.ones(600))], seed=1).codes["a"]) == 0


def test_malformed_targets_are_refused() -> None:
    with pytest.raises(UsageError):
        column_sweeps(DOMAIN, truth(10), [Target(Clique("ab"), np.ones(3))], seed=1)
