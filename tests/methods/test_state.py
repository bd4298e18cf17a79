"""State as named arrays: groups, lists, and a public generator that goes on where it stood."""

import numpy as np
import pytest

from understudy.errors import UsageError
from understudy.methods.networks import array_of, filed, floats_of, listed, structure_draws, structure_state, taken


def test_groups_and_lists_come_back() -> None:
    parts = [np.arange(3.0), np.ones((2, 2))]
    state = {**filed("a", listed(parts)), **filed("a b", {"x": np.array(4)})}
    assert list(state) == ["a.0", "a.1", "a b.x"]
    assert all(np.array_equal(one, other) for one, other in zip(floats_of(state, "a"), parts, strict=True))
    assert {name: int(part) for name, part in taken("a b", state).items()} == {"x": 4}
    assert floats_of(state, "nothing") == []
    parts[0][0] = 9.0
    assert state["a.0"][0] == 0.0, "a state does not move with what it was made of"
    with pytest.raises(UsageError, match="holds no 'steps'"):
        array_of(state, "steps")


def test_a_long_list_keeps_its_order() -> None:
    parts = [np.array([float(place)]) for place in range(12)]
    assert [float(part[0]) for part in floats_of(filed("a", listed(parts)), "a")] == list(range(12))


def test_the_public_generator_goes_on() -> None:
    draws = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(1,)))
    draws.random(7)
    stored = structure_state(draws)
    assert np.array_equal(structure_draws(stored).normal(size=9), draws.normal(size=9))
