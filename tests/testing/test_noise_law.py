"""Every kind of answer is uniform after the transform if the noise is right, and the audit says so if it is not."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from understudy.answers import Distribution
from understudy.counts.source import LabelCounts, OccupiedCells
from understudy.privacy.randomizer import Randomizer, Request, SecureRandomizer
from understudy.testing.doubles import NoNoise
from understudy.testing.replay import Exchange, Leak, Recorder, check_noise, draws_of, uniforms

LAPLACE, GAUSSIAN, WIDE = (
    Distribution("laplace", Fraction(3)),
    Distribution("gaussian", Fraction(9)),
    Distribution("gaussian", Fraction(10**8)),
)
Ask = Callable[[Randomizer, Fraction], object]
"""Asks with the scale of the noise (or the rate of a choice) multiplied by a number."""


def _request(kind: str, cells: int, distribution: Distribution | None, factor: Fraction, **rest: int) -> Request:
    if distribution is not None:
        distribution = replace(
            distribution, parameter=distribution.parameter * (factor if distribution.kind == "laplace" else factor**2)
        )
    return Request(kind, "asked", cells, distribution, Fraction(1), rate=Fraction(1, 2) / factor, **rest)


def _dense(distribution: Distribution) -> Ask:
    exact = np.arange(100, dtype=np.int64)
    return lambda randomizer, factor: randomizer.add_noise(_request("measure", 100, distribution, factor), exact)


def _sparse(randomizer: Randomizer, factor: Fraction) -> object:
    occupied = OccupiedCells(np.arange(0, 600, 10), np.tile(np.array([1, 8], dtype=np.int64), 30))
    return randomizer.add_sparse_noise(_request("sparse", 1000, LAPLACE, factor, threshold=5), occupied)


def _labels(randomizer: Randomizer, factor: Fraction) -> object:
    exact = LabelCounts(tuple(f"label {place:02}" for place in range(90)), np.tile(np.array([1, 3, 6]), 30))
    return randomizer.keep_frequent(_request("discover", 0, LAPLACE, factor, threshold=4), exact)


def _choice(randomizer: Randomizer, factor: Fraction) -> object:
    return randomizer.choose(_request("select", 4, None, factor), np.array([0, 3, 5, -2]))


def _choices(randomizer: Randomizer, factor: Fraction) -> object:
    scores, allowed = np.tile(np.array([0, 3, 5, 90]), (80, 1)), np.tile([True, True, True, False], (80, 1))
    return randomizer.choose_each(_request("select within", 4, None, factor), scores, allowed)


def _tree(randomizer: Randomizer, factor: Fraction) -> object:
    return randomizer.split(_request("grow", 99, LAPLACE, factor, threshold=5), np.tile(np.array([2, 5, 9]), 33))


ASKED: dict[str, tuple[Ask, int]] = {
    "Laplace": (_dense(LAPLACE), 20),
    "Gaussian": (_dense(GAUSSIAN), 20),
    "wide Gaussian": (_dense(WIDE), 20),
    "sparse": (_sparse, 20),
    "labels": (_labels, 20),
    "choice": (_choice, 1200),
    "choices within cells": (_choices, 30),
    "tree": (_tree, 80),
}
"""What is asked, and how often: twice or half the noise is seen six or more standard deviations beyond the limit."""


def _queries(kind: str, factor: Fraction, noise: Fraction) -> list[list[Exchange]]:
    """Two runs whose requests say one scale while the noise has another."""
    ask, times = ASKED[kind]
    runs = []
    for _ in range(2):
        told, real = Recorder(NoNoise()), Recorder(SecureRandomizer())
        for _ in range(times):
            ask(told, factor)
            ask(real, noise)
        runs.append([replace(got, request=said.request) for said, got in zip(told.log, real.log, strict=True)])
    return runs


@pytest.mark.parametrize("kind", ASKED)
def test_right_noise_passes_and_half_or_twice_the_noise_does_not(kind: str) -> None:
    check_noise(_queries(kind, Fraction(1), Fraction(1)), fewest=600)
    for noise in (Fraction(1, 2), Fraction(2)):
        with pytest.raises(Leak, match="the noise"):
            check_noise(_queries(kind, Fraction(1), noise), fewest=600)


@pytest.mark.parametrize("kind", ["Laplace", "Gaussian"])
def test_noise_used_again_is_found(kind: str) -> None:
    first, second = _queries(kind, Fraction(1), Fraction(1))
    with pytest.raises(Leak, match="of the run before"):
        check_noise([first, first], fewest=600)
    with pytest.raises(Leak, match="of the question before"):
        check_noise([[exchange for exchange in first for _ in range(2)], second], fewest=600)


def test_the_transform_of_one_draw_covers_its_share_of_the_distribution() -> None:
    """A residual of 0 under P(k) ∝ exp(−|k|/3): below it lies less than half, at it tanh(1/6)."""
    exchange = Exchange(_request("measure", 1, LAPLACE, Fraction(1)), np.array([7]), np.array([7]))
    rng = np.random.default_rng(1)
    found = np.concatenate([uniforms(exchange, rng) for _ in range(2000)])
    assert draws_of(exchange) == 1
    middle = float(np.tanh(1 / 6))
    assert (found.min(), found.max()) == pytest.approx(((1 - middle) / 2, (1 + middle) / 2), abs=2e-3)


def test_too_few_draws_do_not_pass() -> None:
    with pytest.raises(Leak, match="no power"):
        check_noise(_queries("labels", Fraction(1), Fraction(1)), fewest=10**6)


def test_no_question_is_no_fault() -> None:
    check_noise([[], []], fewest=0)
