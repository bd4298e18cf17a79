"""The verb `train`: exact bounds, whole units, charge before reading, and nothing that tells how many took part."""

import itertools
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from tests.methods.door import door, letters, rows_of
from tests.nets.doubles import Trainee
from understudy.answers import Course, Trained
from understudy.codec.table import TableCodec
from understudy.counts.frames import FrameTable
from understudy.counts.streaming import ChunkedSource
from understudy.errors import BudgetError, UsageError
from understudy.privacy.cost import DELTA_UNIT, UNIT, Cost
from understudy.privacy.curator import Curator
from understudy.privacy.training import Contributions, bounded_sum
from understudy.schema import Unit
from understudy.testing import NoNoise, SeededRandomizer

PRICE = Cost(epsilon=UNIT, delta=DELTA_UNIT // 10**6)
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
    answer = door(ROWS, FOUR, PRICE, NoNoise()).train(trainee, PRICE)
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
    door(people, schema, PRICE, NoNoise()).train(trainee, PRICE)
    parts = [[20, 20, 0, 0], [0, 20, 0, 40], [0, 0, 0, 20]]
    sums = {tuple(np.array(parts)[[bool(mask >> place & 1) for place in range(3)]].sum(axis=0)) for mask in range(8)}
    assert {tuple(part[:-1].tolist()) for part in trainee.sums} <= sums
    assert len({tuple(part.tolist()) for part in trainee.sums}) > 1


def test_a_unit_longer_than_the_bound_is_left_out() -> None:
    trainee = Trainee(4, Course(64, 2, Fraction(1, 8), Fraction(1, 2)), 65)
    door(ROWS, FOUR, PRICE, NoNoise()).train(trainee, PRICE)
    assert not any(part.any() for part in trainee.sums)


def test_noise_has_the_calibrated_size() -> None:
    trainee = Trainee(4, Course(64, 4000, Fraction(2)), 64)
    answer = door(ROWS, FOUR, PRICE).train(trainee, PRICE)
    untouched = np.array([part[-1] for part in trainee.sums], dtype=np.float64)
    assert untouched.var() == pytest.approx(answer.distribution.variance, rel=0.2)


def test_the_order_of_rows_does_not_matter_to_the_double() -> None:
    found = []
    for table in (ROWS, ROWS.take([5, 3, 1, 0, 2, 4])):
        trainee = Trainee(4, COURSE, 64)
        door(table, FOUR, PRICE, SeededRandomizer(3)).train(trainee, PRICE)
        found.append([part.tolist() for part in trainee.sums])
    assert found[0] == found[1]


def test_the_price_is_spent_before_a_row_is_read(monkeypatch) -> None:
    curator = door(ROWS, FOUR, PRICE)
    left = []
    monkeypatch.setattr(ChunkedSource, "records", lambda source: left.append(curator.left) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        curator.train(Trainee(4, COURSE, 64), PRICE)
    assert left == [Cost()]
    assert curator.charges == [("train trainee", PRICE)]


def test_what_cannot_be_paid_is_refused_without_reading(monkeypatch) -> None:
    monkeypatch.setattr(ChunkedSource, "records", lambda source: pytest.fail("rows were read"))
    with pytest.raises(BudgetError):
        door(ROWS, FOUR, Cost(epsilon=UNIT)).train(Trainee(4, COURSE, 64), PRICE)
    with pytest.raises(UsageError):
        door(ROWS, FOUR, PRICE).train(Trainee(4, COURSE, 64), Cost(rho=UNIT))


def test_an_empty_table_trains_like_any_other() -> None:
    trainee = Trainee(4, COURSE, 64)
    door(ROWS.slice(0, 0), FOUR, PRICE).train(trainee, PRICE)
    assert [part.size for part in trainee.sums] == [4, 5, 5, 5]


def test_progress_tells_steps_and_nothing_else() -> None:
    heard = []

    class Told:
        def stage(self, name, done):
            heard.append((name, done))

    curator = Curator(FrameTable(ROWS, FOUR, memory_bytes=2**28), PRICE, NoNoise(), progress=Told())
    curator.fix_codec(TableCodec.of(FOUR))
    curator.train(Trainee(4, COURSE, 64), PRICE)
    assert heard == [("measure", number / 3) for number in (1, 2, 3)]
