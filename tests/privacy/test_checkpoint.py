"""Checkpoints: due by the plan, the same bytes for the same content, and nothing in them that noise did not cover."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from tests.methods.door import letters, rows_of
from tests.nets.doubles import Trainee
from understudy.answers import Course
from understudy.codec.table import TableCodec
from understudy.counts.frames import FrameTable
from understudy.domain import Clique
from understudy.errors import LedgerError, UsageError
from understudy.methods.dpwgan import DpWgan, WganTrainer
from understudy.privacy.cost import DELTA_UNIT, UNIT, Cost
from understudy.privacy.curator import Curator
from understudy.privacy.randomizer import Randomizer
from understudy.privacy.training import Checkpoint, from_bytes, is_due, to_bytes
from understudy.testing import NoNoise, SeededRandomizer
from understudy.testing import cases as tables
from understudy.testing.replay import Leak, check_pair, designed_pairs, random_pairs

ABOUT = {"run": "r", "charge": "c", "configuration": "d"}
PRICE = Cost(epsilon=UNIT, delta=DELTA_UNIT // 10**6)
TINY = {"steps": 6, "hidden": 4, "latent": 2, "batch": 8, "components": 16, "rate": 0.3}


class Kept:
    """Checkpoints in memory."""

    def __init__(self, start: Checkpoint | None = None) -> None:
        self.start, self.all = start, []

    def newest(self) -> Checkpoint | None:
        return self.start

    def keep(self, checkpoint: Checkpoint) -> None:
        self.all.append(checkpoint)


def _curator(table, schema, randomizer, keeper):
    curator = Curator(FrameTable(table, schema, memory_bytes=2**28), PRICE, randomizer, keeper=keeper)
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
        DpWgan(**TINY).fit(_curator(table, schema, randomizer, kept), PRICE)
        assert [checkpoint.step for checkpoint in kept.all] == list(range(7))
        return b"".join(to_bytes(checkpoint, ABOUT) for checkpoint in kept.all), PRICE

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
    model = DpWgan(**TINY).fit(_curator(table, schema, NoNoise(), whole), PRICE)
    for start in whole.all:
        again = Kept(from_bytes(to_bytes(start, ABOUT), ABOUT))
        curator = _curator(table, schema, NoNoise(), again)
        same = DpWgan(**TINY).fit(curator, PRICE)
        assert [checkpoint.step for checkpoint in again.all] == list(range(start.step + 1, 7))
        assert curator.left == Cost()
        assert np.array_equal(same.weights, model.weights)
        assert all(np.array_equal(same.probabilities[name], model.probabilities[name]) for name in model.probabilities)


def test_a_trainer_that_cannot_be_put_back_keeps_nothing() -> None:
    schema = letters({"a": 4, "b": 2})
    table = rows_of({"a": [0, 1], "b": [0, 1]})
    trainee = Trainee(4, Course(64, 3, Fraction(2), Fraction(1, 2)), 64)
    with pytest.raises(UsageError, match="cannot be put back"):
        _curator(table, schema, NoNoise(), Kept()).train(trainee, PRICE)


def test_a_run_that_can_be_continued_asks_for_nothing_else() -> None:
    schema = tables.small()
    curator = _curator(tables.some_rows(schema, 20, seed=1), schema, NoNoise(), Kept())
    with pytest.raises(UsageError, match="one training and for nothing else"):
        curator.measure([Clique(("age",))], Cost(epsilon=PRICE.epsilon // 10))
    assert curator.charges == []
