"""Choosing pairs: the split of the cost by hand, greedy choice against all subsets, and dense groups."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from understudy.domain import Clique, Domain
from understudy.methods.privsyn import SplitNoise, chosen_pairs, combined, steadied
from understudy.privacy.cost import UNIT, Cost

RHO, PURE = Cost(rho=UNIT), Cost(epsilon=UNIT)


def test_the_vector_by_hand() -> None:
    noise = SplitNoise(RHO)
    weights = np.array([noise.weight(4), noise.weight(32)])
    np.testing.assert_allclose(weights / weights.sum(), [0.2, 0.8])
    assert noise.total(float(weights.sum())) == pytest.approx(25.2313, abs=5e-5)


@pytest.mark.parametrize(("cost", "error"), [(RHO, lambda c, s: c / np.sqrt(np.pi * s)), (PURE, lambda c, s: c / s)])
def test_no_other_split_has_less_noise(cost, error) -> None:
    noise, cells = SplitNoise(cost), np.array([4.0, 32.0])
    shares = np.linspace(0.001, 0.999, 9_999)
    least = (error(cells[0], shares) + error(cells[1], 1.0 - shares)).min()
    assert noise.total(sum(noise.weight(c) for c in cells)) == pytest.approx(least, rel=1e-6)


def test_a_unit_of_several_rows_multiplies_the_noise() -> None:
    assert SplitNoise(RHO, 3).total(8.0) == pytest.approx(3.0 * SplitNoise(RHO).total(8.0))


DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4, "d": 5})
PAIRS = [Clique(pair) for pair in itertools.combinations("abcd", 2)]


@settings(max_examples=100, deadline=None)
@example([60.0, 0.0, 0.0, 0.0, 0.0, 69.0], PURE)
@given(st.lists(st.floats(-50.0, 400.0), min_size=6, max_size=6), st.sampled_from([RHO, PURE]))
def test_no_single_pair_would_improve_the_choice(scores, cost) -> None:
    given_scores = dict(zip(PAIRS, scores, strict=True))
    noise = SplitNoise(Cost(cost.epsilon // 10, cost.rho // 100))
    taken = chosen_pairs(DOMAIN, given_scores, noise, [])

    def error(chosen: list[Clique]) -> float:
        weights = sum(noise.weight(DOMAIN.cells(pair)) for pair in chosen)
        return sum(score for pair, score in given_scores.items() if pair not in chosen) + float(noise.total(weights))

    assert len(set(taken)) == len(taken)
    for pair in PAIRS:
        if pair not in taken:
            assert error([*taken, pair]) >= error(taken) - 1e-9
    for count in range(len(taken)):  # a gain below the rounding of the sums above is no gain that they could show
        assert error(taken[: count + 1]) < error(taken[:count]) + 1e-9


def test_columns_left_alone_get_their_best_pair() -> None:
    scores = dict.fromkeys(PAIRS, 1.0) | {Clique("ab"): 1000.0}
    noise = SplitNoise(Cost(rho=UNIT // 100))
    assert chosen_pairs(DOMAIN, scores, noise, []) == [Clique("ab")]
    taken = chosen_pairs(DOMAIN, scores, noise, list("abcd"))
    assert taken == [Clique("ab"), Clique("ac"), Clique("ad")], "the narrowest partner adds the least noise"


def test_penalty_weighs_the_noise() -> None:
    scores = dict.fromkeys(PAIRS, 60.0)
    noise = SplitNoise(Cost(rho=UNIT // 10))
    sizes = [len(chosen_pairs(DOMAIN, scores, noise, [], penalty=penalty)) for penalty in (0.0, 0.5, 2.0)]
    assert sizes[0] == 6
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[2] < sizes[0]


def test_dense_groups_become_tables() -> None:
    pairs = [Clique(p) for p in ("ab", "ac", "bc", "cd")]
    assert combined(DOMAIN, pairs, 5_000) == [Clique("abc"), Clique("cd")]
    assert combined(DOMAIN, pairs, 24) == pairs, "24 cells are not fewer than 24"
    assert combined(DOMAIN, pairs, 25) == [Clique("abc"), Clique("cd")]


def test_groups_share_at_most_two_columns_and_cover_every_pair() -> None:
    domain = Domain.of(dict.fromkeys("abcdefg", 2))
    pairs = [Clique(pair) for pair in itertools.combinations("abcdef", 2)] + [Clique("fg")]
    found = combined(domain, pairs, 9)
    assert max(map(len, found)) == 3
    for first, second in itertools.combinations([c for c in found if len(c) > 2], 2):
        assert len(set(first) & set(second)) <= 2
    assert all(any(set(pair) <= set(clique) for clique in found) for pair in pairs)
    assert combined(domain, pairs, 5_000)[0] == Clique("abcdef")


def test_steadied_scores_follow_what_noise_leaves() -> None:
    rng = np.random.default_rng(1)
    true = rng.normal(100.0, 30.0, 5_000)
    noisy = true + rng.normal(0.0, 60.0, 5_000)
    better = steadied(noisy, 3_600.0)
    assert np.mean((better - true) ** 2) < 0.3 * np.mean((noisy - true) ** 2)
    assert np.array_equal(np.argsort(better), np.argsort(noisy)), "only distances shrink, the order stays"
    np.testing.assert_allclose(steadied(true, 0.0), true)
    np.testing.assert_allclose(steadied(noisy, 1e9), noisy.mean())
