"""Halves of the real table, and randomness that follows from seed, metric and step."""

import numpy as np

from tests.evaluate.examples import mixed_frame, pair_of
from understudy.evaluate.metric import Context, Unavailable


def test_halves_are_a_partition() -> None:
    frame = mixed_frame(101)
    halves = pair_of(frame, frame).halves
    assert not isinstance(halves, Unavailable)
    assert [half.count for half in halves] == [50, 51]
    both = np.sort(np.concatenate([half.numbers["income"] for half in halves]))
    np.testing.assert_array_equal(both, np.sort(frame["income"].to_numpy()))


def test_halves_depend_on_the_seed_and_not_on_order() -> None:
    frame = mixed_frame(100)
    one, other = pair_of(frame, frame, seed=1), pair_of(frame, frame, seed=2)
    moved = pair_of(frame.sample(frac=1, random_state=1), frame, seed=1)
    codes = [pair.halves[0].codes["age"] for pair in (one, other, moved)]  # type: ignore[index]
    assert not np.array_equal(codes[0], codes[1])
    np.testing.assert_array_equal(codes[0], codes[2])


def test_too_few_rows_say_so() -> None:
    frame = mixed_frame(3)
    assert "too few to halve" in pair_of(frame, frame).halves.reason  # type: ignore[union-attr]


def test_generators_are_apart() -> None:
    context = Context("m", 1)
    first = context.rng("a").random()
    assert context.rng("a").random() == first
    assert len({first, context.rng("b").random(), context.rng("a", 1).random(), Context("n", 1).rng("a").random()}) == 4
