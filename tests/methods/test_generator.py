"""The generator: starts at the given shares, climbs the exact expected score, draws what it says."""

import numpy as np
import pytest

from understudy.methods.networks import Adam, Critic, Generator, draw_blocks, effects, scores

SHARES = [np.array([0.7, 0.3]), np.array([0.2, 0.5, 0.3])]


def _fresh(seed=1):
    return Generator.fresh(SHARES, 3, 8, np.random.default_rng(seed))


def test_it_starts_near_the_given_shares() -> None:
    found = _fresh().probabilities(np.random.default_rng(2).normal(size=(4000, 3))).mean(axis=0)
    assert found.tolist() == pytest.approx([0.7, 0.3, 0.2, 0.5, 0.3], abs=0.02)


def test_draws_follow_the_distributions() -> None:
    probabilities = np.tile(np.concatenate(SHARES), (40_000, 1))
    drawn = draw_blocks(probabilities, [0, 2, 5], np.random.default_rng(3))
    assert (drawn[:, 2] == 5).all()
    for column, low in ((0, 0), (1, 2)):
        counts = np.bincount(drawn[:, column] - low) / len(drawn)
        assert counts.tolist() == pytest.approx(SHARES[column].tolist(), abs=0.015)
    sure = draw_blocks(np.array([[0.0, 1.0, 1.0, 0.0, 0.0]]), [0, 2, 5], np.random.default_rng(3))
    assert sure.tolist() == [[1, 2, 5]]


class _Recording(Adam):
    def steps(self, gradients):
        self.seen = [part.copy() for part in gradients]
        return [np.zeros_like(part) for part in gradients]


def test_the_gradient_is_the_derivative_of_the_expected_score() -> None:
    """All records enumerated: the estimate averaged over every record, weighed by its chance, is exact."""
    rng = np.random.default_rng(4)
    critic = Critic(rng.normal(size=(6, 5)), rng.normal(size=5))
    generator, latent = _fresh(), rng.normal(size=(1, 3))
    records = np.array([[a, 2 + b, 5] for a in range(2) for b in range(3)], dtype=np.int32)
    values, columns = scores(critic, records), np.array([0, 0, 1, 1, 1], dtype=np.int32)

    def expected():
        probabilities = generator.probabilities(latent)[0]
        return float(
            sum(probabilities[a] * probabilities[b] * value for (a, b, _), value in zip(records, values, strict=True))
        )

    probabilities = generator.probabilities(latent)
    probability = np.array([probabilities[0, a] * probabilities[0, b] for a, b, _ in records])
    recording = _Recording(0.1)
    gains = effects(critic, records, columns)
    generator.climb(latent, probabilities, (probability[:, np.newaxis] * gains).sum(axis=0, keepdims=True), recording)
    for part, slope in zip(generator.parts, recording.seen, strict=True):
        for at in list(np.ndindex(part.shape))[::7]:
            old = part[at]
            part[at] = old + 1e-6
            up = expected()
            part[at] = old - 1e-6
            assert slope[at] == pytest.approx((up - expected()) / 2e-6, abs=1e-7)
            part[at] = old


def test_climbing_raises_the_expected_score() -> None:
    rng = np.random.default_rng(6)
    critic = Critic(rng.normal(size=(6, 5)), rng.normal(size=5))
    generator, moves, bounds = _fresh(), Adam(0.05), [0, 2, 5]
    columns = np.array([0, 0, 1, 1, 1], dtype=np.int32)
    means = []
    for _ in range(60):
        latent = rng.normal(size=(200, 3))
        probabilities = generator.probabilities(latent)
        drawn = draw_blocks(probabilities, bounds, rng)
        means.append(scores(critic, drawn).mean())
        generator.climb(latent, probabilities, effects(critic, drawn, columns), moves)
    assert np.mean(means[-5:]) > np.mean(means[:5]) + 0.1
