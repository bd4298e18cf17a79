"""Planted blunders with noise: too little of it, the wrong law, used twice, or accounted for wrongly."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

from understudy.marginals.answer import GROWTH_UNIT, Law
from understudy.privacy import calibrate, curator, secure
from understudy.privacy.cost import Cost
from understudy.privacy.curator import Curator
from understudy.privacy.exact.choices import choose_each
from understudy.privacy.noise import discrete_gaussian, discrete_laplace
from understudy.privacy.selection import choose_exponentially
from understudy.release.statement import Statement
from understudy.schema import Unit
from understudy.testing.planted.bug import PlantedBug, patched

__all__ = ["BLUNDERS"]


@contextmanager
def _noise_law(factor: int) -> Iterator[None]:
    """Noise as if the question had `factor` times its share of the budget."""

    def wrong(cost: Cost, sensitivity: int, step: str, *, laplace: bool = False) -> Law:
        more = Cost(cost.epsilon * factor, cost.rho * factor, cost.delta)
        return calibrate.law_for(more, sensitivity, step, laplace=laplace)

    with mock.patch("understudy.privacy.curator.law_for", wrong):
        yield


@contextmanager
def _no_half() -> Iterator[None]:
    def wrong(cost: Cost, sensitivity: Fraction, step: str, **_: bool) -> Fraction:
        return calibrate.selection_rate(cost, sensitivity, step, monotone=True)

    with mock.patch("understudy.privacy.curator.selection_rate", wrong):
        yield


def _flip(scores: list[int], rate: Fraction) -> int:
    """Permute-and-flip: ε-DP, but not with the bounded range that ε²/8 rests on."""
    rng = np.random.default_rng()
    gaps = np.max(scores) - np.array(scores)
    for index in rng.permutation(len(scores)):
        if rng.random() < np.exp(-float(rate) * gaps[index]):
            return int(index)
    return int(np.argmax(scores))


def _worst(scores: list[int], rate: Fraction) -> int:
    return choose_exponentially([-score for score in scores], rate)


def _worst_each(scores: Any, allowed: Any, rate: Fraction) -> Any:
    return choose_each(-scores, allowed, rate)


@contextmanager
def _choices_for_one_row() -> Iterator[None]:
    """Choices within cells paid for once per layer, but calibrated as if a unit held one row."""
    right = Curator.select_within

    def wrong(self: Curator, *question: Any) -> Any:
        rows, self._unit_rows = self._unit_rows, 1
        try:
            return right(self, *question)
        finally:
            self._unit_rows = rows

    with mock.patch.object(Curator, "select_within", wrong):
        yield


def _not_lowered(exact: Any, *_: object) -> Any:
    """Counts of nodes as they are: every layer of a tree then costs anew."""
    return exact * GROWTH_UNIT


def _tree_for_one_row(cost: Cost, _: int, decay: Fraction, step: str) -> Any:
    return calibrate.growth_rule(cost, 1, decay, step)


def _law_of_one_score(cost: Cost, _: int, sensitivity: Fraction, step: str) -> Law:
    return calibrate.score_law(cost, 1, sensitivity, step)


@contextmanager
def _reused_noise() -> Iterator[None]:
    draw, kept = secure._noisy, {}

    def reusing(law: Law, exact: Any) -> Any:
        key = (law, exact.size)
        if key not in kept:
            kept[key] = draw(law, np.zeros_like(exact))
        return kept[key] + exact

    with mock.patch.object(secure, "_noisy", reusing):
        yield


def _float_noise(law: Law, exact: Any) -> Any:
    return exact + np.random.default_rng().normal(0.0, law.scale, exact.size)


def _biased(draw: Callable[..., Any]) -> Callable[..., Any]:
    """One in twenty zeros becomes a one: the size of a bias that a released library once had."""

    def biased(size: int, parameter: Fraction) -> Any:
        values = draw(size, parameter)
        zeros = np.flatnonzero(values == 0)[::20]
        values[zeros] = 1
        return values

    return biased


@contextmanager
def _fixed_seed() -> Iterator[None]:
    def fixed(size: int) -> bytes:
        return np.random.default_rng(0).bytes(size)

    with mock.patch("os.urandom", fixed):
        yield


@contextmanager
def _continuous_accounting() -> Iterator[None]:
    """ρ from the formula of the continuous Gaussian, which integer noise of small scale does not obey."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    def rho(epsilon: Fraction, delta: Fraction) -> Fraction:
        def excess(mu: float) -> float:
            far = norm.cdf(-float(epsilon) / mu + mu / 2)
            return float(far - np.exp(float(epsilon)) * norm.cdf(-float(epsilon) / mu - mu / 2) - float(delta))

        return Fraction(brentq(excess, 1e-3, 30.0)) ** 2 / 2

    with mock.patch("understudy.privacy.cost.rho_of_epsilon", rho):
        yield


def _generous_share(self: Cost, fraction: Fraction | float) -> Cost:
    part = Fraction(fraction)
    return Cost(-((-self.epsilon * part) // 1), -((-self.rho * part) // 1))


def _as_if_of_one_row(self: Statement, otherwise: float) -> float:
    return _BY_EXACT_LAW(replace(self, unit=Unit()), otherwise)


_BY_EXACT_LAW = Statement._by_exact_law


def _low_threshold(_: Law, unit_rows: int, *__: object) -> int:
    return unit_rows + 1


def _no_empty(*_: object) -> Any:
    return np.empty(0, dtype=np.int64)


BLUNDERS: tuple[PlantedBug, ...] = (
    PlantedBug("half the noise", "replay", lambda: _noise_law(4)),
    PlantedBug("noise as if each question had all of the budget", "replay", lambda: _noise_law(3)),
    PlantedBug("missing ½ in selection", "replay", _no_half),
    PlantedBug("permute-and-flip charged as exponential", "selection", patched(secure, "choose_exponentially", _flip)),
    PlantedBug("worst option chosen", "selection", patched(secure, "choose_exponentially", _worst)),
    PlantedBug("worst option of a cell chosen", "selection", patched(secure, "choose_each", _worst_each)),
    PlantedBug("choices within cells as if a unit held one row", "tree replay", _choices_for_one_row),
    PlantedBug("nodes of a tree not lowered", "growth", patched(curator, "biased_counts", _not_lowered)),
    PlantedBug("tree as if a unit held one row", "tree replay", patched(curator, "growth_rule", _tree_for_one_row)),
    PlantedBug("scores as if there were one", "tree replay", patched(curator, "score_law", _law_of_one_score)),
    PlantedBug("fixed seed", "noise", _fixed_seed),
    PlantedBug("noise reused", "noise", _reused_noise),
    PlantedBug("float noise", "noise", patched(secure, "_noisy", _float_noise)),
    PlantedBug("biased Laplace sampler", "noise", patched(secure, "discrete_laplace", _biased(discrete_laplace))),
    PlantedBug("biased Gaussian sampler", "noise", patched(secure, "discrete_gaussian", _biased(discrete_gaussian))),
    PlantedBug("sparse noise forgets empty cells", "noise", patched(secure, "rare_positions", _no_empty)),
    PlantedBug(
        "discovery threshold too low",
        "discovery",
        lambda: mock.patch("understudy.privacy.curator.discovery_threshold", _low_threshold),
    ),
    PlantedBug("continuous accounting", "accounting", _continuous_accounting),
    PlantedBug(
        "exact laws of one row for a unit of several", "claims", patched(Statement, "_by_exact_law", _as_if_of_one_row)
    ),
    PlantedBug("shares rounded up", "accounting", patched(Cost, "share", _generous_share)),
)
