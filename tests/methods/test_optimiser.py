"""Steps that adapt: the first by hand, and the way to the top of a hill."""

import numpy as np
import pytest

from understudy.methods.networks import Adam


def test_the_first_step_has_the_size_of_the_rate() -> None:
    (step,) = Adam(0.1, 0.9).steps([np.array([3.0, -0.002])])
    assert step.tolist() == pytest.approx([0.1, -0.1])


def test_the_second_step_by_hand() -> None:
    moves = Adam(0.1, 0.5, 0.9)
    moves.steps([np.array([1.0])])
    (step,) = moves.steps([np.array([3.0])])
    mean, square = (0.25 + 1.5) / 0.75, (0.09 + 0.9) / 0.19
    assert step[0] == pytest.approx(0.1 * mean / np.sqrt(square))


def test_it_climbs() -> None:
    place, moves = np.array([4.0, -3.0]), Adam(0.05)
    for _ in range(400):
        place += moves.steps([-2 * (place - np.array([1.0, 2.0]))])[0]
    assert place.tolist() == pytest.approx([1.0, 2.0], abs=0.05)


def test_steps_go_on_from_a_state() -> None:
    gradients = [[np.array([1.0, -2.0]), np.array([[0.5]])], [np.array([0.3, 4.0]), np.array([[-1.0]])]]
    one, other = Adam(0.1), Adam(0.1)
    one.steps(gradients[0])
    other.restore(one.state())
    for left, right in zip(one.steps(gradients[1]), other.steps(gradients[1]), strict=True):
        assert np.array_equal(left, right)
    fresh = Adam(0.1)
    fresh.restore(Adam(0.1).state())
    assert np.array_equal(fresh.steps(gradients[0])[0], Adam(0.1).steps(gradients[0])[0])
