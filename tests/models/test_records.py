"""Records as a model: the contract, drawing without loss, files that are checked."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.moving import DOMAIN, NO_SUCH_CELL, RULE, counts, distance, pairs, shuffled, truth
from understudy.arrays import Ints
from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import ReleaseError, UsageError
from understudy.models import records
from understudy.models.model import load_model, save_model
from understudy.models.records import (
    RecordModel,
    Rules,
    Schedule,
    Target,
    breaks,
    changes,
    column_sweeps,
    gradual_update,
    joined,
    separate,
    stacked,
    unstacked,
)
from understudy.testing import check_model

ABC = Domain.of({"a": 3, "b": 2, "c": 4})


def model(records: int = 50) -> RecordModel:
    rng = np.random.default_rng(1)
    codes = {name: rng.integers(0, size, records).astype(np.uint8) for name, size in ABC.sizes.items()}
    codes["a"][codes["b"] == 1] = 0  # some cells stay empty
    return RecordModel(ABC, codes, 123.5)


def test_contract() -> None:
    made = model()
    check_model(made, made.marginal(ABC.everything()))


def test_as_many_rows_as_records_are_the_records() -> None:
    made = model()
    drawn = made.draw(50, np.random.default_rng(2))
    assert sorted(zip(*drawn.values(), strict=True)) == sorted(zip(*made.codes.values(), strict=True))
    assert any((drawn[name] != made.codes[name]).any() for name in ABC.columns), "the order must not give rows away"


@pytest.mark.parametrize("rows", [0, 1, 7, 99, 151])
def test_every_record_is_drawn_equally_often(rows: int) -> None:
    domain = Domain.of({"id": 50})
    made = RecordModel(domain, {"id": np.arange(50, dtype=np.uint8)}, 50.0)
    counts = np.bincount(made.draw(rows, np.random.default_rng(rows))["id"], minlength=50)
    assert counts.sum() == rows
    assert counts.max() - counts.min() <= 1


def test_wide_columns_survive_the_files(tmp_path: Path) -> None:
    domain = Domain.of({"narrow": 2, "wide": 300, "widest": 70_000, "one": 1})
    codes = {
        "narrow": np.array([0, 1, 1], np.uint8),
        "wide": np.array([299, 0, 256], np.uint16),
        "widest": np.array([69_999, 1, 0], np.uint32),
        "one": np.zeros(3, np.uint8),
    }
    save_model(RecordModel(domain, codes, 3.0), tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert isinstance(again, RecordModel)
    assert all(np.array_equal(again.codes[name], codes[name]) for name in domain.columns)


def test_a_condition_nobody_meets_is_refused() -> None:
    with pytest.raises(UsageError, match="no synthetic record"):
        model().condition({"b": np.array([1]), "a": np.array([2])})


def test_total_shrinks_with_the_condition() -> None:
    made = model()
    share = float(made.marginal(Clique(("b",)))[1])
    assert made.condition({"b": np.array([1])}).total == pytest.approx(123.5 * share)


@pytest.mark.parametrize(
    "change", [{"records": 49}, {"records": 0}, {"total": -1.0}, {"domain": [["a", 2], ["b", 2], ["c", 4]]}]
)
def test_altered_files_are_refused(tmp_path: Path, change: dict[str, object]) -> None:
    save_model(model(), tmp_path / "model")
    place = tmp_path / "model" / "model.json"
    place.write_text(json.dumps(json.loads(place.read_text(encoding="utf-8")) | change), encoding="utf-8")
    with pytest.raises(ReleaseError):
        load_model(tmp_path / "model")


def test_no_records_are_refused() -> None:
    with pytest.raises(UsageError, match="at least one"):
        RecordModel(Domain.of({"a": 2}), {"a": np.zeros(0, np.uint8)}, 0.0)


# Column sweeps: squared distance never rises, tables are reached to within rounding, rules hold, seeds decide.


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


# Gradual update: the vectors by hand, numbers of rows, falling distance, rules, and the same rows every time.


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


def test_gradual_update_no_row_breaks_a_rule_whatever_is_wanted() -> None:
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
def test_gradual_update_malformed_targets_are_refused(target: Target) -> None:
    with pytest.raises(UsageError):
        gradual_update(DOMAIN, truth(10), [target], seed=1)


@pytest.mark.parametrize("options", [{"rounds": -1}, {"first": 0.0}, {"decay": 1.5}, {"every": 0}])
def test_schedules_are_checked(options: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Schedule(**options)  # type: ignore[arg-type]


# Blocks: joined within shared codes, record by record otherwise, and never apart where a rule ties them.


def test_blocks_tied_by_a_rule_become_one() -> None:
    blocks = [[Clique("ab")], [Clique("cd")], [Clique("d")]]
    assert separate(DOMAIN, blocks, []) == [Clique("ab"), Clique("cd"), Clique("d")]
    assert separate(DOMAIN, blocks, [RULE]) == [Clique("d"), Clique("abcd")]
    assert separate(DOMAIN, [[Clique("b")]], [RULE]) == [Clique("b")]


def test_shared_columns_keep_the_tables_of_both_blocks() -> None:
    real = truth(4_000)
    rng = np.random.default_rng(1)
    first = {name: real[name] for name in "ab"}
    order = rng.permutation(4_000)
    second = {name: real[name][order] for name in "bcd"}
    found = dict(joined(DOMAIN, real, [first, second], rng))
    assert np.array_equal(counts(found, Clique("ab")), counts(real, Clique("ab")))
    assert np.array_equal(counts(found, Clique("bcd")), counts(real, Clique("bcd")))


def test_two_shared_columns_are_matched_together_not_each_for_itself() -> None:
    """Codes (0, 1) and (1, 0) are different cells: a block joined by anything coarser loses the joint table."""
    real = truth(4_000)
    rng = np.random.default_rng(1)
    first = {name: real[name] for name in "abc"}
    order = rng.permutation(4_000)
    second = {name: real[name][order] for name in "bcd"}
    found = dict(joined(DOMAIN, real, [first, second], rng))
    assert np.array_equal(counts(found, Clique("abc")), counts(real, Clique("abc")))
    assert np.array_equal(counts(found, Clique("bcd")), counts(real, Clique("bcd")))


def test_blocks_without_shared_columns_are_independent() -> None:
    real = truth(4_000)
    found = dict(joined(DOMAIN, real, [{"a": real["a"]}, {"c": real["c"], "b": real["b"]}], np.random.default_rng(1)))
    assert np.array_equal(counts(found, Clique("bc")), counts(real, Clique("bc")))
    expected = np.outer(counts(real, Clique("a")), counts(real, Clique("c"))).ravel() / 4_000
    assert np.abs(counts(found, Clique("ac")) - expected).max() < 6.0 * np.sqrt(expected.max())
    assert np.array_equal(found["d"], real["d"]), "a column of no block stays as it was laid out"


def test_codes_that_a_block_lacks_are_filled_with_any_record() -> None:
    first = {"b": np.array([0, 1, 2, 2], np.uint8)}
    second = {"b": np.array([0, 0, 1, 1], np.uint8), "c": np.array([4, 4, 3, 3], np.uint8)}
    start = {name: np.zeros(4, np.uint8) for name in "abcd"}
    found = joined(DOMAIN, start, [first, second], np.random.default_rng(1))
    assert found["b"].tolist() == [0, 1, 2, 2]
    assert found["c"][:2].tolist() == [4, 3]
    assert set(found["c"][2:].tolist()) <= {3, 4}


# Rows as arrays and back, and rules over several columns.


def test_rows_survive_being_stacked() -> None:
    domain = Domain.of({"narrow": 2, "wide": 300})
    codes = {"narrow": np.array([0, 1, 1], np.uint8), "wide": np.array([299, 0, 7], np.uint16)}
    columns = stacked(domain, codes)
    assert columns.dtype == np.uint16
    again = unstacked(domain, columns)
    assert all(np.array_equal(again[name], codes[name]) for name in codes)
    assert [again[name].dtype for name in codes] == [np.uint8, np.uint16]


def test_rules_are_looked_up_by_cell() -> None:
    other = StructuralZeros(Clique("abd"), np.arange(24) == 17)
    rules = Rules.of(DOMAIN, [RULE, other])
    codes = {name: np.concatenate([column, [2]]).astype(np.uint8) for name, column in truth(200).items()}
    codes["d"][-1] = 1
    columns = stacked(DOMAIN, codes)
    cells = (codes["a"].astype(int) * 3 + codes["b"]) * 2 + codes["d"]
    expected = NO_SUCH_CELL[codes["a"], codes["c"]] | (cells == 17)
    assert expected.any()
    found = [breaks(columns, row, np.array([0, 1]), rules) for row in range(201)]
    assert found == expected.tolist()


def test_rules_that_touch_a_column() -> None:
    rules = Rules.of(DOMAIN, [RULE, StructuralZeros(Clique("bd"), np.zeros(6, dtype=bool))])
    assert rules.touching([0]).tolist() == [0]
    assert rules.touching([3]).tolist() == [1]
    assert rules.touching([1, 2]).tolist() == [0, 1]
    assert Rules.of(DOMAIN, []).touching([0, 1, 2, 3]).tolist() == []


def test_wanted_rows_have_the_shares_of_the_counts() -> None:
    assert Target(Clique("d"), np.array([1.0, 3.0])).wanted(100).tolist() == [25.0, 75.0]


def test_sweeps_end_once_few_values_change():
    domain = Domain.of({"a": 3, "b": 3})
    rng = np.random.default_rng(0)
    codes = {name: rng.integers(0, 3, 600).astype(np.uint8) for name in "ab"}
    wanted = [Target(Clique("ab"), np.diag([3.0, 2.0, 1.0]).ravel() + 0.5)]
    full = column_sweeps(domain, codes, wanted, seed=1, sweeps=10)
    early = column_sweeps(domain, codes, wanted, seed=1, sweeps=10, tolerance=2.0)
    assert len(full.errors) > len(early.errors) == 1
    assert early.errors[0] == full.errors[0]


def swept_by_hand(domain: Domain, codes: dict[str, Ints], wanted: list[Target], seed: int) -> dict[str, list[int]]:
    """One sweep as its description says, row by row, every value tried."""
    rng = np.random.default_rng(seed)
    rows = len(next(iter(codes.values())))
    codes = {name: column.copy() for name, column in codes.items()}
    gaps = [
        np.bincount(np.ravel_multi_index([codes[n] for n in t.clique], domain.shape(t.clique)), minlength=t.counts.size)
        - t.wanted(rows)
        for t in wanted
    ]
    for pick in rng.permutation(len(domain.columns)):
        name = domain.columns[pick]
        start = int(rng.integers(rows))
        held = [table for table, target in enumerate(wanted) if name in target.clique]

        def cells(row: int, value: int, name: str = name, held: list[int] = held) -> list[tuple[int, int]]:
            values = {other: int(codes[other][row]) for other in domain.columns} | {name: value}
            places = [[values[other] for other in wanted[table].clique] for table in held]
            shapes = [domain.shape(wanted[table].clique) for table in held]
            return [(t, int(np.ravel_multi_index(p, s))) for t, p, s in zip(held, places, shapes, strict=True)]

        def score(row: int, value: int) -> float:
            return float(sum(gaps[table][cell] for table, cell in cells(row, value)))

        for low, high in ((start, rows), (0, start)):
            for begin in range(low, high, records._CHUNK):
                chunk = range(begin, min(begin + records._CHUNK, high))
                for row in [row for row in chunk if score(row, codes[name][row]) > 0.0]:
                    code, here = int(codes[name][row]), score(row, codes[name][row])
                    scores = [score(row, value) for value in range(domain.sizes[name])]
                    best = int(np.argmin(scores))
                    if here > 0.0 and scores[best] < here - len(held):
                        for table, cell in cells(row, code):
                            gaps[table][cell] -= 1.0
                        for table, cell in cells(row, best):
                            gaps[table][cell] += 1.0
                        codes[name][row] = best
    return {name: column.tolist() for name, column in codes.items()}


@pytest.mark.parametrize("seed", range(4))
def test_a_sweep_moves_the_rows_that_its_description_moves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = Domain.of({"a": 3, "b": 4, "c": 5})
    codes = {name: rng.integers(0, size, 700).astype(np.uint8) for name, size in domain.sizes.items()}
    cliques = [Clique("ab"), Clique("bc"), Clique("abc"), Clique("c")]
    wanted = [Target(clique, rng.integers(0, 50, domain.cells(clique)).astype(np.float64)) for clique in cliques]
    found = column_sweeps(domain, codes, wanted, seed=seed, sweeps=1).codes
    assert {name: column.tolist() for name, column in found.items()} == swept_by_hand(domain, codes, wanted, seed)
