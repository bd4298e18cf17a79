"""The torch form of the networks against the NumPy form, part by part; needs the package torch."""

import numpy as np
import pytest

from understudy.methods.networks import (
    Adam,
    Critic,
    Encoding,
    Generator,
    NetworkSettings,
    NumpyNetworks,
    average_gradient,
    effects,
)
from understudy.methods.torch_networks import TorchNetworks

pytest.importorskip("torch")
ENCODING = Encoding.of([np.array([60.0, 40.0]), np.array([20.0, 50.0, 30.0]), np.array([9.0, 1.0, 1.0, 9.0])], 4)
SETTINGS = NetworkSettings(3, hidden=8, generator_hidden=8, latent=4, batch=64)


def _started():
    networks = TorchNetworks(SETTINGS, "cpu")
    networks.start(ENCODING)
    return networks


def _arrays(tensors):
    return [np.asarray(tensor, dtype=np.float64) for tensor in tensors]


def test_both_start_alike() -> None:
    numpy = NumpyNetworks(SETTINGS)
    numpy.start(ENCODING)
    torch = _started()
    np.testing.assert_allclose(torch.critic.weights, numpy.critic.weights)
    np.testing.assert_allclose(torch.probabilities(50), numpy.probabilities(50), atol=1e-5)


def test_gradients_and_effects_are_those_of_the_kernels() -> None:
    networks = _started()
    blocks = np.asarray(networks._blocks).astype(np.int32)
    weights, output = _arrays(networks._drawn_gradient())
    expected = average_gradient(networks.critic, blocks, networks.most_norm)
    np.testing.assert_allclose(weights, expected.weights, atol=1e-6)
    np.testing.assert_allclose(output, expected.output, atol=1e-6)
    found = effects(networks.critic, blocks, ENCODING.column_of_block)
    np.testing.assert_allclose(np.asarray(networks._effects()), found, atol=1e-5)


def test_the_generator_climbs_alike() -> None:
    networks = _started()
    same = Generator(_arrays(networks._parts), ENCODING.bounds)
    latent, probabilities = _arrays([networks._latent, networks._probabilities])
    np.testing.assert_allclose(same.probabilities(latent), probabilities, atol=1e-5)
    gains = effects(networks.critic, np.asarray(networks._blocks).astype(np.int32), ENCODING.column_of_block)
    same.climb(latent, probabilities, gains, Adam(SETTINGS.generator_rate, SETTINGS.generator_momentum))
    networks._climb()
    for mine, other in zip(_arrays(networks._parts), same.parts, strict=True):
        np.testing.assert_allclose(mine, other, atol=2e-4)


def test_draws_follow_the_distributions() -> None:
    networks = TorchNetworks(NetworkSettings(3, hidden=8, generator_hidden=8, latent=4, batch=20_000), "cpu")
    networks.start(ENCODING)
    drawn = np.bincount(np.asarray(networks._blocks).reshape(-1), minlength=10) / 20_000
    means = np.asarray(networks._probabilities).mean(axis=0)
    assert drawn[:-1].tolist() == pytest.approx(means.tolist(), abs=0.02)
    assert drawn[-1] == 1.0


def test_it_moves_within_bounds() -> None:
    networks = _started()
    real = Critic(np.ones_like(networks.critic.weights), np.ones_like(networks.critic.output))
    before = networks.probabilities(10)
    for _ in range(80):
        networks.improve(real)
    assert np.abs(networks.critic.weights).max() <= 1.0
    assert not np.allclose(before, networks.probabilities(10))


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_networks_go_on_from_a_state_as_if_nothing_had_happened(steps) -> None:
    real = Critic(np.full((10, 8), 0.3), np.full(8, 0.1))
    whole, part, again = _started(), _started(), _started()
    for _ in range(7):
        whole.improve(real)
    for _ in range(steps):
        part.improve(real)
    again.improve(real)
    again.restore(part.state())
    for _ in range(7 - steps):
        again.improve(real)
    one, other = whole.state(), again.state()
    assert all(np.array_equal(one[name], other[name]) for name in one.keys() | other.keys())
    assert np.array_equal(whole.probabilities(9), again.probabilities(9))
