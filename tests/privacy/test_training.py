"""Tests of `understudy.privacy.training`."""

import itertools
import math
import os
import stat
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.methods.door import door, letters, rows_of
from tests.nets.doubles import Trainee
from understudy.codec.table import TableCodec
from understudy.counts.frames import FrameTable
from understudy.counts.streaming import ChunkedSource
from understudy.domain import Clique, Course, Distribution, Trained
from understudy.errors import BudgetError, LedgerError, UsageError
from understudy.folders import write_durably
from understudy.methods.dpwgan import DpWgan, WganTrainer
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget, Cost
from understudy.privacy.curator import Curator
from understudy.privacy.ledger import Ledger
from understudy.privacy.randomizer import Randomizer
from understudy.privacy.training import (
    ORDERS,
    Checkpoint,
    Contributions,
    FolderKeeper,
    TrainingPart,
    bounded_sum,
    course_parts,
    epsilon_of,
    from_bytes,
    is_due,
    parts_epsilon,
    rate_of,
    renyi,
    to_bytes,
    training_distributions,
)
from understudy.schema import Unit
from understudy.testing import NoNoise, SeededRandomizer
from understudy.testing import cases as tables
from understudy.testing.replay import Leak, check_pair, designed_pairs, random_pairs

# The verb `train`: exact bounds, whole units, charge before reading, and nothing that tells how many took part.


COST = Cost(epsilon=UNIT, delta=DELTA_UNIT // 10**6)
COURSE = Course(64, 3, Fraction(2), Fraction(1, 2))
FOUR = letters({"a": 4, "b": 2})
ROWS = rows_of({"a": [0, 1, 1, 3, 3, 3], "b": [0, 0, 1, 1, 0, 1]})


def _given(blocks, shared, own):
    return Contributions(*(np.array(part, dtype=np.int32) for part in (blocks, shared, own)))


def _sum_by_hand(given, starts, clip, cells):
    width, total = given.shared.shape[1], np.zeros(cells, dtype=np.int64)
    for low, high in itertools.pairwise(starts):
        vector = np.zeros(cells, dtype=np.int64)
        for row in range(low, high):
            for block in given.blocks[row]:
                vector[block * width : (block + 1) * width] += given.shared[row]
            vector[cells - given.own.shape[1] :] += given.own[row]
        if (vector**2).sum() <= clip**2:
            total += vector
    return total


@pytest.mark.parametrize("rows_of_unit", [1, 3])
def test_sums_are_those_of_units_within_the_bound(rows_of_unit) -> None:
    rng = np.random.default_rng(rows_of_unit)
    rows = 60
    blocks = np.sort(np.argsort(rng.random((rows, 7)), axis=1)[:, :3], axis=1)
    given = _given(blocks, rng.integers(-9, 10, (rows, 4)), rng.integers(-9, 10, (rows, 2)))
    starts = np.arange(0, rows + 1, rows_of_unit)
    for clip in (15, 22, 30, 1000):
        found = bounded_sum(given, starts, clip, 30)
        assert found.tolist() == _sum_by_hand(given, starts.tolist(), clip, 30).tolist()


def test_the_bound_is_exact() -> None:
    given = _given([[0]], [[3]], [[4]])
    assert bounded_sum(given, np.array([0, 1]), 5, 3).tolist() == [3, 0, 4]
    assert bounded_sum(_given([[0]], [[3]], [[5]]), np.array([0, 1]), 5, 3).tolist() == [0, 0, 0]


def test_rows_of_a_unit_are_bounded_together() -> None:
    """Two rows of length 3 on the same place make 6; apart they make √18."""
    same, apart = _given([[0], [0]], [[3], [3]], [[0], [0]]), _given([[0], [1]], [[3], [3]], [[0], [0]])
    unit = np.array([0, 2])
    assert bounded_sum(same, unit, 5, 3).tolist() == [0, 0, 0]
    assert bounded_sum(apart, unit, 5, 3).tolist() == [3, 3, 0]


@pytest.mark.parametrize(
    "given",
    [
        _given([[1, 0]], [[1]], [[0]]),
        _given([[0, 0]], [[1]], [[0]]),
        _given([[0, 2]], [[1]], [[0]]),
        _given([[-1, 0]], [[1]], [[0]]),
        _given([[0, 1]], [[-(2**31)]], [[0]]),
        _given([[0, 1]], [[0]], [[2**31 - 1]]),
    ],
)
def test_malformed_vectors_count_as_too_long(given) -> None:
    assert not bounded_sum(given, np.array([0, 1]), 5, 3).any()


def test_large_numbers_do_not_overflow() -> None:
    wide = _given([[0]], [[2**20] * 5000], np.zeros((1, 0)))
    assert not bounded_sum(wide, np.array([0, 1]), 2**20, 5000).any()


@pytest.mark.parametrize(
    "given",
    [
        Contributions(np.zeros((1, 1), np.int32), np.zeros((1, 1)), np.zeros((1, 1), np.int32)),  # floats
        _given([[0], [0]], [[1]], [[1]]),
        _given([[0]], [[1, 1]], [[1, 1]]),
    ],
)
def test_wrong_shapes_are_refused(given) -> None:
    with pytest.raises(UsageError):
        bounded_sum(given, np.array([0, 1]), 5, 3)


def test_the_first_look_sees_everybody_and_steps_see_some() -> None:
    trainee = Trainee(4, COURSE, 64)
    answer = door(ROWS, FOUR, COST, NoNoise()).train(trainee, COST)
    assert isinstance(answer, Trained)
    assert trainee.sums[0].tolist() == [64, 128, 0, 192]
    assert answer.values.tolist() == trainee.sums[0].tolist()
    assert len(trainee.sums) == 1 + COURSE.steps
    assert all(((part >= 0) & (part % 64 == 0)).all() for part in trainee.sums[1:])
    assert answer.first_distribution is not None
    assert answer.first_distribution.parameter > 0


def test_units_of_several_rows_come_and_go_together() -> None:
    schema = letters({"a": 4, "b": 2}, unit=Unit(column="person", rows=3))
    people = ROWS.append_column("person", pa.array(["x", "x", "y", "y", "y", "z"]))
    trainee = Trainee(4, Course(64, 40, Fraction(1)), 20)
    door(people, schema, COST, NoNoise()).train(trainee, COST)
    parts = [[20, 20, 0, 0], [0, 20, 0, 40], [0, 0, 0, 20]]
    sums = {tuple(np.array(parts)[[bool(mask >> place & 1) for place in range(3)]].sum(axis=0)) for mask in range(8)}
    assert {tuple(part[:-1].tolist()) for part in trainee.sums} <= sums
    assert len({tuple(part.tolist()) for part in trainee.sums}) > 1


def test_a_unit_longer_than_the_bound_is_left_out() -> None:
    trainee = Trainee(4, Course(64, 2, Fraction(1, 8), Fraction(1, 2)), 65)
    door(ROWS, FOUR, COST, NoNoise()).train(trainee, COST)
    assert not any(part.any() for part in trainee.sums)


def test_noise_has_the_calibrated_size() -> None:
    trainee = Trainee(4, Course(64, 4000, Fraction(2)), 64)
    answer = door(ROWS, FOUR, COST).train(trainee, COST)
    untouched = np.array([part[-1] for part in trainee.sums], dtype=np.float64)
    assert untouched.var() == pytest.approx(answer.distribution.variance, rel=0.2)


def test_the_order_of_rows_does_not_matter_to_the_double() -> None:
    found = []
    for table in (ROWS, ROWS.take([5, 3, 1, 0, 2, 4])):
        trainee = Trainee(4, COURSE, 64)
        door(table, FOUR, COST, SeededRandomizer(3)).train(trainee, COST)
        found.append([part.tolist() for part in trainee.sums])
    assert found[0] == found[1]


def test_the_cost_is_spent_before_a_row_is_read(monkeypatch) -> None:
    curator = door(ROWS, FOUR, COST)
    left = []
    monkeypatch.setattr(ChunkedSource, "records", lambda source: left.append(curator.left) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        curator.train(Trainee(4, COURSE, 64), COST)
    assert left == [Cost()]
    assert curator.charges == [("train trainee", COST)]


def test_what_cannot_be_paid_is_refused_without_reading(monkeypatch) -> None:
    monkeypatch.setattr(ChunkedSource, "records", lambda source: pytest.fail("rows were read"))
    with pytest.raises(BudgetError):
        door(ROWS, FOUR, Cost(epsilon=UNIT)).train(Trainee(4, COURSE, 64), COST)
    with pytest.raises(UsageError):
        door(ROWS, FOUR, COST).train(Trainee(4, COURSE, 64), Cost(rho=UNIT))


def test_an_empty_table_trains_like_any_other() -> None:
    trainee = Trainee(4, COURSE, 64)
    door(ROWS.slice(0, 0), FOUR, COST).train(trainee, COST)
    assert [part.size for part in trainee.sums] == [4, 5, 5, 5]


def test_progress_tells_steps_and_nothing_else() -> None:
    heard = []

    class Told:
        def stage(self, name, done):
            heard.append((name, done))

    curator = Curator(FrameTable(ROWS, FOUR, memory_bytes=2**28), COST, NoNoise(), progress=Told())
    curator.fix_codec(TableCodec.of(FOUR))
    curator.train(Trainee(4, COURSE, 64), COST)
    assert heard == [("measure", number / 3) for number in (1, 2, 3)]


# The cost of training against direct sums of the exact integer distribution and against published numbers.


ACCOUNTANT_ROWS = 661_967
STEPS = 103_440
DELTA = 1 / ACCOUNTANT_ROWS**2
ACCOUNTANT_COURSE = Course(1024, 500, Fraction(40), Fraction(2, 5))


def _cost(epsilon, delta=1e-6):
    return Cost(epsilon=int(epsilon * UNIT), delta=int(delta * DELTA_UNIT))


def test_numbers_of_a_published_entry() -> None:
    """ε that a challenge entry really spent: batch 64 of 661,967, ten epochs, δ = 1/n²."""
    loud, quiet = TrainingPart(64 / ACCOUNTANT_ROWS, 1.0, STEPS), TrainingPart(64 / ACCOUNTANT_ROWS, 3.0, STEPS)
    assert parts_epsilon([loud], DELTA, tight=False) == pytest.approx(1.60, abs=0.005)
    assert parts_epsilon([loud], DELTA) == pytest.approx(1.37, abs=0.005)
    assert parts_epsilon([quiet], DELTA, range(2, 201), tight=False) == pytest.approx(0.17, abs=0.005)


def test_orders_that_end_at_32_can_report_no_less_than_a_constant() -> None:
    """The moments accountant of that entry knew λ = α − 1 up to 32: an artefact that made small ε look impossible."""
    capped = parts_epsilon([TrainingPart(64 / ACCOUNTANT_ROWS, 3.0, STEPS)], DELTA, range(2, 34), tight=False)
    assert math.log(1 / DELTA) / 32 == pytest.approx(0.8375, abs=3e-4)
    assert capped >= math.log(1 / DELTA) / 32


def _direct(order, rate, variance, shift):
    """Both moments by summing the integer distribution over the lattice (one coordinate holds the whole shift)."""
    points = np.arange(-4000, 4001, dtype=np.float64)
    noise, moved = -(points**2) / (2 * variance), -((points - shift) ** 2) / (2 * variance)
    here = noise - np.logaddexp.reduce(noise)
    there = np.logaddexp(math.log(1 - rate) + noise, math.log(rate) + moved) - np.logaddexp.reduce(noise)
    forward = np.logaddexp.reduce(order * there + (1 - order) * here)
    return float(forward), float(np.logaddexp.reduce(order * here + (1 - order) * there))


@pytest.mark.parametrize("order", [2, 3, 8, 21])
@pytest.mark.parametrize("rate", [0.01, 0.3, 0.5, 0.9])
@pytest.mark.parametrize(("variance", "shift"), [(0.6, 1), (4.0, 2), (100.0, 7)])
def test_the_formula_is_the_exact_moment_and_bounds_the_other_direction(order, rate, variance, shift) -> None:
    bound = renyi(TrainingPart(rate, math.sqrt(variance) / shift), order) * (order - 1)
    forward, backward = _direct(order, rate, variance, shift)
    assert forward == pytest.approx(bound, rel=3e-6, abs=1e-9)
    assert backward <= forward + 1e-9
    assert bound >= forward - 1e-12


def test_a_shift_spread_over_coordinates_costs_what_its_norm_costs() -> None:
    """The normaliser survives integer shifts in every direction: (3, 4) moves as far as (5, 0)."""
    points = np.arange(-60, 61, dtype=np.float64)
    x, y = np.meshgrid(points, points, indexing="ij")
    noise = np.exp(-(x**2 + y**2) / 18.0)
    total = noise.sum()

    def moment(shift_x, shift_y):
        moved = np.exp(-((x - shift_x) ** 2 + (y - shift_y) ** 2) / 18.0)
        return ((0.8 + 0.2 * moved / noise) ** 3 * noise).sum() / total

    assert moment(3, 4) == pytest.approx(moment(5, 0), rel=1e-9)
    assert math.log(moment(3, 4)) == pytest.approx(2 * renyi(TrainingPart(0.2, 3 / 5), 3), rel=3e-6)


def test_a_look_at_everybody_is_the_plain_gaussian_mechanism() -> None:
    assert renyi(TrainingPart(1.0, 2.0), 10) == pytest.approx(10 / 8, rel=2e-6)
    assert renyi(TrainingPart(1 - 1e-12, 2.0), 10) == pytest.approx(10 / 8, rel=1e-5)


def test_steps_add_up_and_more_noise_costs_less() -> None:
    assert renyi(TrainingPart(0.1, 1.0, 7), 5) == pytest.approx(7 * renyi(TrainingPart(0.1, 1.0), 5))
    costs = [parts_epsilon([TrainingPart(0.02, noise, 300)], 1e-6) for noise in (0.5, 1.0, 2.0, 8.0)]
    assert costs == sorted(costs, reverse=True)
    costs = [parts_epsilon([TrainingPart(rate, 1.0, 300)], 1e-6) for rate in (0.001, 0.01, 0.1, 1.0)]
    assert costs == sorted(costs)


def test_the_search_over_orders_finds_the_best_of_all() -> None:
    for part in (TrainingPart(0.02, 0.7, 1000), TrainingPart(0.001, 4.0, 10_000), TrainingPart(0.3, 40.0, 50)):
        every = min(epsilon_of(renyi(part, order), order, 1e-6) for order in ORDERS)
        assert parts_epsilon([part], 1e-6) == pytest.approx(every + 1e-9, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0, 1e5])
def test_calibrated_noise_uses_the_budget_and_no_more(epsilon) -> None:
    first, distribution = training_distributions(_cost(epsilon), ACCOUNTANT_COURSE, "train")
    assert first is not None
    spent = parts_epsilon(course_parts(ACCOUNTANT_COURSE, first, distribution), 1e-6)
    assert 0.995 * epsilon < spent <= epsilon
    alone = parts_epsilon([TrainingPart(1.0, first.scale / ACCOUNTANT_COURSE.clip)], 1e-6)
    assert 0.38 * epsilon < alone <= 0.4 * epsilon


def test_without_a_first_look_the_steps_get_everything() -> None:
    course = Course(1024, 500, Fraction(40))
    first, distribution = training_distributions(_cost(1.0), course, "train")
    with_look = training_distributions(_cost(1.0), ACCOUNTANT_COURSE, "train")[1]
    assert first is None
    assert distribution.parameter < with_look.parameter
    assert distribution.kind == "gaussian"


@pytest.mark.parametrize(
    ("cost", "course"),
    [
        (Cost(epsilon=UNIT), ACCOUNTANT_COURSE),
        (Cost(rho=UNIT, delta=1), ACCOUNTANT_COURSE),
        (_cost(1.0), Course(0, 500, Fraction(40))),
        (_cost(1.0), Course(1024, 0, Fraction(40))),
        (_cost(1.0), Course(1024, 5, Fraction(1, 100))),
        (_cost(1.0), Course(1024, 5, Fraction(4), Fraction(1))),
        (_cost(1e-9), ACCOUNTANT_COURSE),
    ],
)
def test_bad_courses_and_costs_are_refused(cost, course) -> None:
    with pytest.raises(UsageError):
        training_distributions(cost, course, "train")


@pytest.mark.parametrize(
    ("told", "course"),
    [
        ("bound of a contribution", Course(2**20 + 1, 500, Fraction(40))),
        ("number of steps", Course(1024, 10**7 + 1, Fraction(40))),
        ("mean gap", Course(1024, 5, Fraction(2**40) + 1)),
        ("mean gap", Course(1024, 5, Fraction(1, 8) - Fraction(1, 10**9))),
        ("share of ε", Course(1024, 5, Fraction(4), Fraction(-1, 10**9))),
    ],
)
def test_courses_just_beyond_a_bound_are_refused_for_it(told: str, course: Course) -> None:
    with pytest.raises(UsageError, match=told):
        training_distributions(_cost(1.0), course, "train")


def test_courses_at_their_bounds_are_taken() -> None:
    training_distributions(_cost(1.0), Course(1, 1, Fraction(2**40)), "train")
    training_distributions(_cost(100.0), Course(2**20, 1, Fraction(1, 8)), "train")


def test_bad_parts_are_refused() -> None:
    with pytest.raises(UsageError):
        renyi(TrainingPart(0.0, 1.0), 2)
    with pytest.raises(UsageError):
        parts_epsilon([TrainingPart(0.5, 1.0)], 0.0)
    assert course_parts(ACCOUNTANT_COURSE, None, Distribution("gaussian", Fraction(1024**2)))[0].multiplier == 1.0


@pytest.mark.parametrize("gap", [Fraction(1, 8), Fraction(19, 2), Fraction(977), Fraction(10**6, 3), Fraction(2**40)])
def test_the_rate_is_the_probability_of_a_coin_rounded_up(gap) -> None:
    with localcontext() as context:
        context.prec = 40
        exact = 1 - (-Decimal(gap.denominator) / Decimal(gap.numerator)).exp()
        assert exact <= Decimal(rate_of(gap)) <= exact * (1 + Decimal("1e-10"))
    (part,) = course_parts(Course(64, 7, gap), None, Distribution("gaussian", Fraction(10_000)))
    assert (part.rate, part.multiplier, part.steps) == (rate_of(gap), 100 / 64, 7)


# Checkpoints: due by the plan, the same bytes for the same content, and nothing in them that noise did not cover.


ABOUT = {"run": "r", "charge": "c", "configuration": "d"}

TINY = {"steps": 6, "hidden": 4, "latent": 2, "batch": 8, "components": 16, "rate": 0.3}


class Kept:
    """Checkpoints in memory."""

    def __init__(self, start: Checkpoint | None = None) -> None:
        self.start, self.all = start, []  # type: ignore[var-annotated]

    def newest(self) -> Checkpoint | None:
        return self.start

    def keep(self, checkpoint: Checkpoint) -> None:
        self.all.append(checkpoint)


def _curator(table, schema, randomizer, keeper):
    curator = Curator(FrameTable(table, schema, memory_bytes=2**28), COST, randomizer, keeper=keeper)
    curator.fix_codec(TableCodec.of(schema))
    return curator


def test_they_are_due_by_the_plan_alone() -> None:
    looked = Fraction(1, 2)
    for steps, every in ((1, 1), (10, 1), (11, 2), (500, 50), (10_000, 1000)):
        course = Course(64, steps, Fraction(2), looked)
        due = [step for step in range(steps + 1) if is_due(step, course)]
        assert due == sorted({0, *range(every, steps + 1, every), steps})
    assert not is_due(0, Course(64, 5, Fraction(2)))


def test_a_file_gives_back_what_was_kept_and_always_the_same_bytes() -> None:
    state = {"a b": np.arange(6.0).reshape(2, 3), "count": np.array(3), "bits": np.frombuffer(b"xy", dtype=np.uint8)}
    content = to_bytes(Checkpoint(7, np.array([1, -2]), state), ABOUT)
    assert content == to_bytes(Checkpoint(7, np.array([1, -2]), dict(state)), ABOUT)
    found = from_bytes(content, ABOUT)
    assert (found.step, found.first.tolist(), set(found.state)) == (7, [1, -2], set(state))
    for name, array in state.items():
        assert found.state[name].dtype == array.dtype
        assert found.state[name].shape == array.shape
        assert np.array_equal(found.state[name], array)


@pytest.mark.parametrize("name", ABOUT)
def test_another_runs_file_is_refused(name) -> None:
    content = to_bytes(Checkpoint(7, np.array([1]), {}), ABOUT | {name: "x"})
    with pytest.raises(LedgerError, match="no checkpoint of this run"):
        from_bytes(content, ABOUT)


def test_no_file_at_all_is_refused() -> None:
    content = to_bytes(Checkpoint(7, np.array([1]), {"x": np.arange(50)}), ABOUT)
    object_array = to_bytes(Checkpoint(7, np.array([1.5]), {}), ABOUT)
    for broken in (b"", b"PK", content[:100], content[:-30], object_array):
        with pytest.raises(LedgerError, match="no checkpoint of this run"):
            from_bytes(broken, ABOUT)


def _pipeline(schema):
    """Everything that a training keeps, as a function of table and randomizer."""

    def run(table: pa.Table, randomizer: Randomizer):
        kept = Kept()
        DpWgan(**TINY).fit(_curator(table, schema, randomizer, kept), COST)
        assert [checkpoint.step for checkpoint in kept.all] == list(range(7))
        return b"".join(to_bytes(checkpoint, ABOUT) for checkpoint in kept.all), COST

    return run


@pytest.mark.parametrize("make", [tables.small, tables.several_rows])
def test_replay_on_neighbours_gives_the_same_bytes(make) -> None:
    """With noise frozen, tables that differ by a unit give the same checkpoints: nothing but noisy sums is in them."""
    schema = make()
    pairs = [*list(designed_pairs(schema))[::8], *random_pairs(schema, 6, np.random.default_rng(5))]
    for number, pair in enumerate(pairs):
        check_pair(_pipeline(schema), pair.table, pair.neighbour, SeededRandomizer(number))


@pytest.mark.parametrize("what", ["rows", "batch"])
def test_a_checkpoint_with_an_exact_number_is_caught(monkeypatch, what) -> None:
    seen = {"rows": 0, "batch": 0}
    look, contribute, state = WganTrainer.look, WganTrainer.contribute, WganTrainer.state

    def looked(trainer, codes):
        seen["rows"] = len(codes)
        return look(trainer, codes)

    def contributed(trainer, codes):
        seen["batch"] += len(codes)
        return contribute(trainer, codes)

    monkeypatch.setattr(WganTrainer, "look", looked)
    monkeypatch.setattr(WganTrainer, "contribute", contributed)
    monkeypatch.setattr(WganTrainer, "state", lambda trainer: {**state(trainer), "leak": np.array(seen[what])})
    schema = tables.small()

    def fresh(table, randomizer):
        seen.update(rows=0, batch=0)
        return _pipeline(schema)(table, randomizer)

    (pair,) = random_pairs(schema, 1, np.random.default_rng(5))
    with pytest.raises(Leak, match="released bytes differ"):
        check_pair(fresh, pair.table, pair.neighbour, SeededRandomizer(1))


def test_a_course_goes_on_where_it_stood() -> None:
    schema = tables.small()
    table = tables.possible_rows(schema, 80, seed=2)
    whole = Kept()
    model: Any = DpWgan(**TINY).fit(_curator(table, schema, NoNoise(), whole), COST)
    for start in whole.all:
        again = Kept(from_bytes(to_bytes(start, ABOUT), ABOUT))
        curator = _curator(table, schema, NoNoise(), again)
        same: Any = DpWgan(**TINY).fit(curator, COST)
        assert [checkpoint.step for checkpoint in again.all] == list(range(start.step + 1, 7))
        assert curator.left == Cost()
        assert np.array_equal(same.weights, model.weights)
        assert all(np.array_equal(same.probabilities[name], model.probabilities[name]) for name in model.probabilities)


def test_a_trainer_that_cannot_be_put_back_keeps_nothing() -> None:
    schema = letters({"a": 4, "b": 2})
    table = rows_of({"a": [0, 1], "b": [0, 1]})
    trainee = Trainee(4, Course(64, 3, Fraction(2), Fraction(1, 2)), 64)
    with pytest.raises(UsageError, match="cannot be restored"):
        _curator(table, schema, NoNoise(), Kept()).train(trainee, COST)


def test_a_run_that_can_be_continued_asks_for_nothing_else() -> None:
    schema = tables.small()
    curator = _curator(tables.some_rows(schema, 20, seed=1), schema, NoNoise(), Kept())
    with pytest.raises(UsageError, match="one training and for nothing else"):
        curator.measure([Clique(("age",))], Cost(epsilon=COST.epsilon // 10))
    assert curator.charges == []


# Checkpoints on disk: for their owner only, whole or absent, the newest recorded one or none.


ONE = Budget(1.0)


def _at(step: int) -> Checkpoint:
    return Checkpoint(step, np.array([step, 7]), {"x": np.arange(step)})


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("checkpoint-*"))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.db", "people", Budget(5.0))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def _begun(folder: Path, ledger: Ledger, run: str = "run") -> FolderKeeper:
    keeper = FolderKeeper(folder, ledger, run, "configuration")
    keeper.begun(ledger.charge("people", run=run, method="dpwgan", cost=ONE.cost("pure"), budget=ONE))
    return keeper


def _again(folder: Path, ledger: Ledger, configuration: str = "configuration") -> FolderKeeper:
    return FolderKeeper(folder, ledger, "run", configuration)


def test_the_newest_one_is_taken_up(folder: Path, ledger: Ledger) -> None:
    begun = _begun(folder, ledger)
    assert begun.newest() is None
    for step in (0, 5, 10):
        begun.keep(_at(step))
        (kept,) = _files(folder)
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    again = _again(folder, ledger)
    receipt = again.take_up()
    found = again.newest()
    assert found is not None
    assert (found.step, found.first.tolist(), found.state["x"].tolist()) == (10, [10, 7], list(range(10)))
    assert receipt.holder == ledger.head()
    again.keep(_at(15))
    with pytest.raises(LedgerError, match=r"continued by another process since\. The run stopped"):
        begun.keep(_at(15))
    assert _again(folder, ledger).take_up().hash == receipt.hash, "what another process wrote does no harm"


def test_a_run_without_a_checkpoint_begins_again(folder: Path, ledger: Ledger) -> None:
    _begun(folder, ledger)
    again = _again(folder, ledger)
    again.take_up()
    assert again.newest() is None
    again.keep(_at(0))


@pytest.mark.parametrize("moment", ["write", "rename", "record"])
def test_a_kill_while_keeping_leaves_the_one_before(folder: Path, ledger: Ledger, monkeypatch, moment: str) -> None:
    begun = _begun(folder, ledger)
    begun.keep(_at(5))

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    target = {"write": (os, "fsync"), "rename": (os, "rename"), "record": (Ledger, "checkpoint")}[moment]
    with monkeypatch.context() as broken:
        broken.setattr(*target, killed)
        with pytest.raises(KeyboardInterrupt):
            begun.keep(_at(10))
    again = _again(folder, ledger)
    again.take_up()
    found = again.newest()
    assert found is not None
    assert found.step == 5
    assert len(_files(folder)) == 1, "what was not recorded is gone"


def _altered(folder: Path) -> None:
    (path,) = _files(folder)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _missing(folder: Path) -> None:
    _files(folder)[0].unlink()


def _older(folder: Path) -> None:
    (path,) = _files(folder)
    path.write_bytes((folder / "older").read_bytes())


@pytest.mark.parametrize(("harm", "told"), [(_altered, "does not match"), (_missing, "is missing"), (_older, "match")])
def test_what_is_not_the_recorded_file_is_refused(folder: Path, ledger: Ledger, harm, told: str) -> None:
    begun = _begun(folder, ledger)
    begun.keep(_at(5))
    (folder / "older").write_bytes(_files(folder)[0].read_bytes())
    begun.keep(_at(10))
    harm(folder)
    before = ledger.head()
    with pytest.raises(LedgerError, match=told):
        _again(folder, ledger).take_up()
    assert ledger.head() == before


def test_other_settings_and_other_runs_are_refused(folder: Path, ledger: Ledger) -> None:
    _begun(folder, ledger).keep(_at(5))
    before = ledger.head()
    with pytest.raises(LedgerError, match="no checkpoint of this run"):
        _again(folder, ledger, "other").take_up()
    assert ledger.head() == before
    _begun(folder, ledger, "second").keep(_at(7))
    with pytest.raises(LedgerError, match="is missing"):
        _again(folder, ledger).take_up()


def test_a_file_is_whole_or_absent(tmp_path: Path, monkeypatch) -> None:
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    write_durably(tmp_path / "file", b"content")
    assert (tmp_path / "file").read_bytes() == b"content"
    assert synced == [(tmp_path / "file").stat().st_ino, tmp_path.stat().st_ino]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
