"""Tests of `understudy.methods.networks`."""

import numpy as np
import pytest

from understudy.errors import UsageError
from understudy.methods.networks import (
    Adam,
    Critic,
    Encoding,
    Generator,
    NetworkSettings,
    NumpyNetworks,
    array_of,
    average_gradient,
    contributions,
    cut_evenly,
    draw_blocks,
    effects,
    filed,
    floats_of,
    listed,
    one_hot_blocks,
    scores,
    structure_draws,
    structure_state,
    taken,
)

# The critic's gradients against differences, record by record, and on the integer grid.


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


# The generator: starts at the given shares, climbs the exact expected score, draws what it says.


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


# Groups of codes, blocks of records, and the way back to codes.


COUNTS = [np.array([60.0, 40.0]), np.array([5.0, -3.0, 40.0, 2.0, 3.0, 45.0, 5.0])]


def test_few_codes_stay_as_they_are() -> None:
    assert cut_evenly(np.array([0.9, 0.1]), 16).tolist() == [0, 1]


def test_frequent_codes_stand_alone_and_rare_neighbours_share() -> None:
    groups = cut_evenly(np.array([0.01] * 10 + [0.4] + [0.01] * 10 + [0.4]), 4)
    assert len(set(groups.tolist())) <= 4
    assert (np.diff(groups) >= 0).all()
    assert np.count_nonzero(groups == groups[-1]) == 1


@pytest.mark.parametrize("most", [1, 2, 5, 16])
def test_there_are_never_more_groups_than_allowed(most) -> None:
    rng = np.random.default_rng(most)
    for _ in range(20):
        groups = cut_evenly(rng.dirichlet(np.full(40, 0.2)), most)
        assert sorted(set(groups.tolist())) == list(range(int(groups.max()) + 1))
        assert groups.max() < most


def test_shares_are_positive_and_close_to_the_counts() -> None:
    encoding = Encoding.of(COUNTS, 4)
    for shares in encoding.shares:
        assert shares.min() > 0
        assert shares.sum() == pytest.approx(1.0)
    assert encoding.shares[0].tolist() == pytest.approx([0.6, 0.4], abs=1e-5)
    assert encoding.shares[1][1] < 1e-5


def test_nothing_but_noise_still_gives_shares() -> None:
    encoding = Encoding.of([np.array([-5.0, -9.0, -7.0])], 2)
    assert encoding.shares[0].min() > 0


def test_blocks_name_the_group_of_each_column_and_the_bias() -> None:
    encoding = Encoding.of(COUNTS, 3)
    codes = np.array([[0, 0], [1, 5], [1, 6]], dtype=np.uint8)
    found = encoding.blocks(codes)
    bounds = encoding.bounds
    for row, (first, second) in enumerate(codes.tolist()):
        assert found[row].tolist() == [first, bounds[1] + encoding.groups[1][second], bounds[2]]
    assert encoding.column_of_block.tolist() == [0, 0] + [1] * (bounds[2] - 2)
    assert encoding.blocks(codes[:0]).shape == (0, 3)


def test_groups_fall_apart_as_the_noisy_counts_say() -> None:
    encoding = Encoding.of(COUNTS, 3)
    shares = np.concatenate(encoding.group_shares())[np.newaxis]
    for found, expected in zip(encoding.code_probabilities(shares), encoding.shares, strict=True):
        assert found[0].tolist() == pytest.approx(expected.tolist())


def test_one_hot_blocks_number_codes_through() -> None:
    assert one_hot_blocks(np.array([[1, 2], [0, 0]], dtype=np.uint8), (2, 3)).tolist() == [[1, 4], [0, 2]]


# Steps that adapt: the first by hand, and the way to the top of a hill.


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


# State as named arrays: groups, lists, and a public generator that goes on where it stood.


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


# Networks on the processor: reproducible, bounded, and with privacy off an ordinary WGAN.


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
