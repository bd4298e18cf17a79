"""The trainer at the door: bounded rows, a noisy number of rows, and with privacy off an ordinary WGAN."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.methods.door import door, letters, rows_of
from understudy.answers import Course, Distribution
from understudy.counts.source import Records
from understudy.methods.dpwgan import WganTrainer, column_counts
from understudy.methods.networks import Critic, NetworkSettings, NumpyNetworks, average_gradient
from understudy.privacy.cost import DELTA_UNIT, UNIT, Cost
from understudy.privacy.randomizer import Request
from understudy.testing import NoNoise
from understudy.testing.replay import coins_of

AMPLE = Cost(epsilon=10_000 * UNIT, delta=DELTA_UNIT // 10**6)
SIZES = {"a": 3, "b": 2, "c": 5}
CODES = {name: np.random.default_rng(size).integers(size, size=80) for name, size in SIZES.items()}
MATRIX = np.stack(list(CODES.values()), axis=1).astype(np.uint8)
SETTINGS = NetworkSettings(3, hidden=6, generator_hidden=6, latent=3, batch=32)


def _trainer(course, unit_rows=1):
    return WganTrainer(tuple(SIZES.values()), course, unit_rows, NumpyNetworks(SETTINGS), 4)


def _course(clip=1024, steps=6):
    return Course(clip, steps, Fraction(3), Fraction(1, 2))


@pytest.mark.parametrize("unit_rows", [1, 3])
@pytest.mark.parametrize("clip", [32, 1024])
def test_no_row_exceeds_its_part_of_the_bound(unit_rows, clip) -> None:
    trainer = _trainer(_course(clip), unit_rows)
    look = trainer.look(MATRIX)
    assert len(SIZES) * int(look.shared[0, 0]) ** 2 <= (clip / unit_rows) ** 2
    trainer.looked(np.full(10, 100 * trainer.first_value), Distribution("gaussian", Fraction(1)))
    trainer.networks.critic.weights[:] *= 20.0  # gradients far beyond the norm they are cut to
    given = trainer.contribute(MATRIX)
    squares = 4 * (given.shared.astype(float) ** 2).sum(axis=1) + (given.own.astype(float) ** 2).sum(axis=1)
    assert squares.max() <= (clip / unit_rows) ** 2
    if clip > 32:
        assert squares.max() > (0.9 * clip / unit_rows) ** 2


def test_the_number_of_rows_is_estimated_from_all_columns() -> None:
    trainer = _trainer(_course())
    noisy = np.concatenate([np.bincount(CODES[name], minlength=size) for name, size in SIZES.items()])
    trainer.looked(noisy * trainer.first_value, Distribution("gaussian", Fraction(1)))
    assert trainer.total == pytest.approx(80.0)
    assert [part.tolist() for part in column_counts(noisy, (3, 2, 5), 1)][1] == np.bincount(CODES["b"]).tolist()
    trainer.looked(-noisy, Distribution("gaussian", Fraction(1)))
    assert trainer.total == 0.0


def _plain(course):
    """An ordinary WGAN on the same batches: mean gradients in floats, no bound, no grid, no noise."""
    networks = NumpyNetworks(SETTINGS)
    counted = [np.bincount(CODES[name], minlength=size).astype(float) for name, size in SIZES.items()]
    trainer = _trainer(course)
    trainer.looked(
        np.concatenate(counted).astype(np.int64) * trainer.first_value, Distribution("gaussian", Fraction(1))
    )  # groups and shares only
    networks.start(trainer.encoding)
    blocks = trainer.encoding.blocks(MATRIX)
    records = Records(MATRIX, np.arange(81))
    expected = 80 * -math.expm1(-1 / 3)
    for layer in range(1, course.steps + 1):
        request = Request("train", "dpwgan", 1, None, Fraction(1), Fraction(1, 3), layer=layer)
        batch = blocks[coins_of(request, records)]
        mean = average_gradient(networks.critic, batch, 1e9)
        share = len(batch) / expected
        networks.improve(Critic(mean.weights * share, mean.output * share))
    return networks


def test_with_privacy_off_it_is_an_ordinary_wgan(monkeypatch) -> None:
    monkeypatch.setattr(NetworkSettings, "most_norm", property(lambda self: 50.0))  # longer than any gradient here
    course = _course(2**20, 8)
    trainer = _trainer(course)
    door(rows_of(CODES), letters(SIZES), AMPLE, NoNoise()).train(trainer, AMPLE)
    plain = _plain(course)
    np.testing.assert_allclose(trainer.networks.critic.weights, plain.critic.weights, atol=2e-3)
    np.testing.assert_allclose(trainer.networks.probabilities(20), plain.probabilities(20), atol=1e-3)
    assert not np.allclose(plain.probabilities(20), _untrained().probabilities(20), atol=1e-3)


def _untrained():
    networks = NumpyNetworks(SETTINGS)
    counted = [np.bincount(CODES[name], minlength=size).astype(float) for name, size in SIZES.items()]
    trainer = _trainer(_course())
    trainer.networks = networks
    trainer.looked(
        np.concatenate(counted).astype(np.int64) * trainer.first_value, Distribution("gaussian", Fraction(1))
    )
    return networks
