"""The critic's gradients against differences, record by record, and on the integer grid."""

import numpy as np
import pytest

from understudy.methods.networks import Critic, average_gradient, contributions, effects, scores

RNG = np.random.default_rng(5)
CRITIC = Critic(RNG.normal(0.0, 0.5, (9, 6)), RNG.normal(0.0, 0.5, 6))
BLOCKS = np.array([[0, 3, 6, 8], [2, 3, 7, 8], [1, 5, 6, 8]], dtype=np.int32)


def _numeric(blocks):
    """The gradient of the mean score by differences."""
    found = Critic(np.zeros_like(CRITIC.weights), np.zeros_like(CRITIC.output))
    for part, slope in zip(CRITIC, found, strict=True):
        for at in np.ndindex(part.shape):
            old = part[at]
            part[at] = old + 1e-6
            up = scores(CRITIC, blocks).mean()
            part[at] = old - 1e-6
            slope[at] = (up - scores(CRITIC, blocks).mean()) / 2e-6
            part[at] = old
    return found


def test_the_average_gradient_is_the_derivative_of_the_mean_score() -> None:
    found, expected = average_gradient(CRITIC, BLOCKS, 1e9), _numeric(BLOCKS)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-8)
    np.testing.assert_allclose(found.output, expected.output, atol=1e-8)


def _dense(given, row):
    vector = np.zeros((9, 6))
    vector[given.blocks[row]] = given.shared[row]
    return np.concatenate([vector.reshape(-1), given.own[row]])


def test_contributions_are_the_clipped_gradients_on_a_grid() -> None:
    for most_norm in (0.4, 100.0):
        given = contributions(CRITIC, BLOCKS, most_norm, 10_000.0)
        for row in range(3):
            single = average_gradient(CRITIC, BLOCKS[row : row + 1], most_norm)
            exact = np.concatenate([single.weights.reshape(-1), single.output]) * (10_000.0 / most_norm)
            assert np.abs(_dense(given, row) - exact).max() <= 0.5 + 1e-9
            assert np.linalg.norm(_dense(given, row)) <= 10_000.0 + np.sqrt(5 * 6) / 2


def test_a_record_alone_decides_its_vector() -> None:
    together = contributions(CRITIC, BLOCKS, 0.7, 1000.0)
    for row in range(3):
        alone = contributions(CRITIC, BLOCKS[row : row + 1], 0.7, 1000.0)
        assert alone.shared.tolist() == [together.shared[row].tolist()]
        assert alone.own.tolist() == [together.own[row].tolist()]


def test_effects_are_the_scores_of_changed_records() -> None:
    columns = np.array([0, 0, 0, 1, 1, 1, 2, 2], dtype=np.int32)
    found = effects(CRITIC, BLOCKS, columns)
    for row in range(3):
        for block, column in enumerate(columns):
            changed = BLOCKS[row : row + 1].copy()
            changed[0, column] = block
            assert found[row, block] == pytest.approx(scores(CRITIC, changed)[0])


def test_no_records() -> None:
    assert contributions(CRITIC, BLOCKS[:0], 1.0, 10.0).shared.shape == (0, 6)
    assert not average_gradient(CRITIC, BLOCKS[:0], 1.0).weights.any()
    assert CRITIC.size == 60
