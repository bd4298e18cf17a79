"""Accounts: from what a claim was computed, and how much of it one event shows, written as an ε.

A claim follows from an account: every answer has a price, and prices add up by a theorem. At many answers, and at the δ
of a release, the claim is about outcomes far rarer than any number of runs shows; the account is about all outcomes.
So an event is held against the account too: how much larger must all noise-to-price ratios of the account be than they
should, for the event to be as frequent as it was? That factor times the claim (or the claim that such an account would
print) is the bound. It refutes the account, from which the claim was computed, and not the claim itself.

`RhoAccount`       ρ, zero-concentrated or Gaussian: the least ρ that the rates allow, as the (ε, δ) account prints it.
`PureAccount`      answers of ε₁, …, ε_m. An ε_i-private answer tells no more than a coin that is right with odds e^ε_i,
                   and adaptively chosen ones together no more than independent coins (Kairouz, Oh, Viswanath 2015). The
                   most power that m coins of s·ε_i allow at a level is computed on a grid, losses rounded up, so that
                   it is never too little; the least s for which the rates are allowed is the factor. Steps that may
                   fail add their probability on both tables.
`TrainingAccount`  Rényi divergences of noisy sums over sampled units: a rate's divergence of every order is at most the
                   account's. The factor divides all noise.
"""

import functools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from understudy.arrays import Floats
from understudy.audit.bounds import EventRates
from understudy.privacy.composition import tight_epsilon
from understudy.privacy.cost import DELTA_UNIT, UNIT, Cost, Currency, epsilon_of_rho
from understudy.privacy.gaussian import gaussian_epsilon
from understudy.privacy.training import TrainingPart, parts_epsilon, renyi

_FACTORS = np.arange(1, 401) / 100
"""What prices are multiplied with; a bound is the largest of these that the rates refute."""
_STEPS = 4000
_TRAINING_ORDERS = tuple(range(2, 65))


@dataclass(frozen=True, slots=True)
class ClaimedAccount:
    """A claim. This class knows nothing of how it was computed, so only the claim itself can be held against rates."""

    epsilon: float
    delta: float

    def bound(self, rates: EventRates) -> float | None:
        """The ε of the least account that allows these rates; None if there is no account to hold against them."""
        return None

    @property
    def is_known(self) -> bool:
        """Whether there is an account."""
        return False


@dataclass(frozen=True, slots=True)
class RhoAccount(ClaimedAccount):
    """All answers are paid in ρ; steps that may fail have a part of δ."""

    cost: Cost
    currency: Currency
    variances: tuple[Fraction, ...] = ()

    @property
    def is_known(self) -> bool:
        """It is."""
        return True

    def bound(self, rates: EventRates) -> float:
        """As this account prints the least ρ that the rates allow.

        Steps that may fail (of probability δ', part of the cost) count against the bound twice, once for each table.
        """
        failure = 2 * self.cost.delta / DELTA_UNIT
        if self.currency == "gaussian":
            rho = rates.gaussian_lower(failure + self.delta)
        else:
            rho = rates.rho_lower(failure)
        return self._printed(rho, Fraction(self.delta) - Fraction(self.cost.delta, DELTA_UNIT))

    def _printed(self, rho: float, delta: Fraction) -> float:
        if rho < 1e-9:
            return 0.0
        exact = Fraction(rho)
        if self.currency == "gaussian":
            return float(gaussian_epsilon(exact, delta) or 0.0)
        if self.variances:  # the same noise, wider or narrower throughout
            factor = Fraction(self.cost.rho, UNIT) / exact
            tight = tight_epsilon(tuple(variance * factor for variance in self.variances), delta)
            if tight is not None:
                return tight
        return float(epsilon_of_rho(exact, delta))


@dataclass(frozen=True, slots=True)
class PureAccount(ClaimedAccount):
    """Answers paid in ε, one price for each; `failure` is the probability of steps that may fail, on one table."""

    parts: tuple[float, ...]
    failure: float = 0.0

    @property
    def is_known(self) -> bool:
        """A single price is the claim itself, about which its account tells nothing new."""
        return len(self.parts) > 1

    def bound(self, rates: EventRates) -> float:
        """The sum of all prices, times the largest factor that the rates refute."""
        pairs = rates.apart(2 * self.failure)
        low, high = 0, _FACTORS.size  # the factors below `low` are refuted
        while low < high:
            middle = (low + high) // 2
            most = _most_power(self.parts, middle)
            if any(one > float(np.interp(other, *most)) for one, other in pairs):
                low = middle + 1
            else:
                high = middle
        return float(_FACTORS[low - 1]) * sum(self.parts) if low else 0.0


@dataclass(frozen=True, slots=True)
class TrainingAccount(ClaimedAccount):
    """A training on sampled units."""

    parts: tuple[TrainingPart, ...]

    @property
    def is_known(self) -> bool:
        """It is."""
        return True

    def bound(self, rates: EventRates) -> float:
        """The ε of this training with so much less noise."""
        shown = rates.divergences(_TRAINING_ORDERS)
        low, high = 0, _FACTORS.size
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if bool((shown > _allowed(self.parts, middle)).any()) else (low, middle)
        return _printed_of_training(self.parts, self.delta, low - 1) if low else 0.0


@functools.lru_cache(maxsize=1024)
def _most_power(parts: tuple[float, ...], factor: int) -> tuple[Floats, Floats]:
    """Levels and the largest powers at them of coins of these prices times the factor, as corners of a curve."""
    places, masses = _losses(parts, float(_FACTORS[factor]))
    losses = places * (sum(parts) * float(_FACTORS[factor]) / _STEPS)
    falling = np.argsort(-losses)
    powers = np.cumsum(masses[falling])
    levels = np.cumsum(masses[falling] * np.exp(-losses[falling]))
    # What rounding took from the second table lies where no loss is: beyond the last level everything is allowed.
    return np.concatenate([[0.0], levels, [levels[-1], 1.0]]), np.concatenate([[0.0], powers, [1.0, 1.0]])


def _losses(parts: tuple[float, ...], factor: float) -> tuple[Floats, Floats]:
    """Privacy loss of all coins together on a grid of 1/`_STEPS` of the sum, every coin's loss rounded up."""
    step = sum(parts) / _STEPS
    up = [int(np.ceil(part / step - 1e-9)) for part in parts]
    down = [int(np.floor(part / step + 1e-9)) for part in parts]
    found = np.zeros(sum(up) + sum(down) + 1)
    found[sum(down)] = 1.0
    for part, high, low in zip(parts, up, down, strict=True):
        right = 1 / (1 + np.exp(-part * factor))
        found = np.roll(found, high) * right + np.roll(found, -low) * (1 - right)
    kept = np.flatnonzero(found > 0)
    return (kept - sum(down)).astype(np.float64), found[kept]


@functools.lru_cache(maxsize=1024)
def _allowed(parts: tuple[TrainingPart, ...], factor: int) -> Floats:
    scaled = _less_noise(parts, factor)
    return np.array([sum(renyi(part, order) for part in scaled) for order in _TRAINING_ORDERS])


@functools.lru_cache(maxsize=1024)
def _printed_of_training(parts: tuple[TrainingPart, ...], delta: float, factor: int) -> float:
    return parts_epsilon(_less_noise(parts, factor), delta)


def _less_noise(parts: tuple[TrainingPart, ...], factor: int) -> list[TrainingPart]:
    return [TrainingPart(part.rate, part.multiplier / float(_FACTORS[factor]), part.steps) for part in parts]
