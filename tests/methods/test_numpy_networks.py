"""Networks on the processor: reproducible, bounded, and with privacy off an ordinary WGAN."""

import numpy as np
import pytest

from understudy.methods.networks import Critic, Encoding, NetworkSettings, NumpyNetworks, average_gradient, scores

ENCODING = Encoding.of([np.array([50.0, 50.0]), np.array([50.0, 50.0])], 4)
SETTINGS = NetworkSettings(2, hidden=16, generator_hidden=16, latent=4, batch=128, seed=3)
TWINS = np.array([[0, 2, 4], [1, 3, 4]], dtype=np.int32)
"""Records whose two columns always agree: each column alone says nothing."""


def _trained(steps, seed=3):
    networks = NumpyNetworks(NetworkSettings(2, hidden=16, generator_hidden=16, latent=4, batch=128, seed=seed))
    networks.start(ENCODING)
    for _ in range(steps):
        networks.improve(average_gradient(networks.critic, TWINS, networks.most_norm))
    return networks


def test_it_learns_a_relationship_that_no_column_shows() -> None:
    def agreement(networks):
        probabilities = networks.probabilities(2000)
        return float((probabilities[:, 0] * probabilities[:, 2] + probabilities[:, 1] * probabilities[:, 3]).mean())

    assert agreement(_trained(0)) == pytest.approx(0.5, abs=0.05)
    assert agreement(_trained(400)) > 0.8


def test_the_same_seed_gives_the_same_networks() -> None:
    one, two, other = _trained(20), _trained(20), _trained(20, seed=4)
    assert np.array_equal(one.probabilities(9), two.probabilities(9))
    assert not np.array_equal(one.probabilities(9), other.probabilities(9))


def test_critic_weights_stay_within_bounds() -> None:
    networks = _trained(200)
    assert max(np.abs(part).max() for part in networks.critic) <= 1.0


def test_gradients_are_seldom_longer_than_the_norm_they_are_cut_to() -> None:
    """The bound for weights of ±1 is hidden^½ · (columns + 1) · √(1 + 1/(columns + 1)) at most."""
    full = Critic(np.ones((5, 16)), np.ones(16))
    longest = average_gradient(full, TWINS[:1], 1e9)
    norm = np.sqrt((longest.weights**2).sum() + (longest.output**2).sum())
    assert norm == pytest.approx(np.sqrt(16 * (3 + 9)))
    assert 0 < SETTINGS.most_norm < norm


def test_the_critic_prefers_what_it_is_shown() -> None:
    networks = NumpyNetworks(
        NetworkSettings(2, hidden=16, generator_hidden=16, latent=4, batch=128, generator_rate=1e-6)
    )
    networks.start(ENCODING)
    for _ in range(100):
        networks.improve(average_gradient(networks.critic, TWINS, networks.most_norm))
    crossed = np.array([[0, 3, 4], [1, 2, 4]], dtype=np.int32)
    assert scores(networks.critic, TWINS).mean() > scores(networks.critic, crossed).mean()


@pytest.mark.parametrize("steps", [0, 1, 6])
def test_networks_go_on_from_a_state_as_if_nothing_had_happened(steps) -> None:
    whole, part = _trained(11), _trained(steps)
    state = {name: array.copy() for name, array in part.state().items()}
    part.improve(Critic(np.ones((5, 16)), np.ones(16)))  # what was lost leaves no trace
    again = NumpyNetworks(SETTINGS)
    again.start(ENCODING)
    again.restore(state)
    for _ in range(11 - steps):
        again.improve(average_gradient(again.critic, TWINS, again.most_norm))
    one, other = whole.state(), again.state()
    assert all(np.array_equal(one[name], other[name]) for name in one.keys() | other.keys())
