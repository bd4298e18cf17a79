"""Empirical lower bounds: how much a mechanism provably leaks, from repeated runs on one pair of neighbours.

Every bound is one-sided: "with this confidence the mechanism leaks at least this much". A bound above the claim is a
violation; a bound far below it says little. One event is looked at; how often it occurs without and with the extra unit
is held in four one-sided Clopper–Pearson bounds (each rate from below and from above), which share the allowed error in
equal parts. So they hold together with the stated confidence, and all that follows from them does too. Nothing is
asymptotic.

Three readings of the same rates, from the weakest assumption to the strongest account:

`epsilon_lower`  (ε, δ) differential privacy itself: p₁ ≤ e^ε·p₀ + δ in both directions and for the complement.
`rho_lower`      ρ-zCDP: every Rényi divergence of order α > 1 between two outputs is at most α·ρ, and looking at one
                 event only makes divergences smaller. So ρ is at least D_α/α of the two rates, for the best α.
`gaussian_lower` Gaussian differential privacy of μ = √(2ρ): no test of power p₁ at level p₀ may have
                 Φ⁻¹(p₁) − Φ⁻¹(p₀) above μ.

At the δ of a release few runs can show an ε near the claim, however exact the claim is: δ is about events that occur
once in a million runs. What the last two hold is the account from which the claim was computed, and that shows at
events that are frequent.

Accounts
--------
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
`MixedAccount`     parts of both kinds, written in ρ (an ε-private part counts ε²/2, or ε²/8 for a choice, whose loss
                   has range ε). How much larger √ρ must be for the rates to be allowed is the factor.
`TrainingAccount`  Rényi divergences of noisy sums over sampled units: a rate's divergence of every order is at most the
                   account's. The factor divides all noise.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import betaincinv, ndtri

from understudy.arrays import Floats
from understudy.privacy.composition import tight_epsilon
from understudy.privacy.cost import DELTA_UNIT, UNIT, Cost, Currency, epsilon_of_rho
from understudy.privacy.gaussian import gaussian_epsilon
from understudy.privacy.training import TrainingPart, parts_epsilon, renyi

_ORDERS = np.concatenate([1 + np.geomspace(1e-4, 1.0, 40), np.geomspace(2.1, 400.0, 60)])


def rate_bounds(hits: int, runs: int, confidence: float) -> tuple[float, float]:
    """Clopper–Pearson bounds of a success rate, each holding with the given confidence.

    >>> low, high = rate_bounds(50, 100, 0.999)
    >>> low < 0.5 < high
    True
    """
    alpha = 1 - confidence
    low = 0.0 if hits == 0 else float(betaincinv(hits, runs - hits + 1, alpha))
    high = 1.0 if hits == runs else float(betaincinv(hits + 1, runs - hits, 1 - alpha))
    return low, high


@dataclass(frozen=True, slots=True)
class EventRates:
    """Bounds of how often one event occurs without and with the extra unit; all four hold with the confidence."""

    without: tuple[float, float]
    with_unit: tuple[float, float]

    @classmethod
    def of(cls, hits_without: int, hits_with: int, runs: int, confidence: float) -> "EventRates":
        """From how often it was seen in `runs` runs on each side."""
        each = 1 - (1 - confidence) / 4
        return cls(rate_bounds(hits_without, runs, each), rate_bounds(hits_with, runs, each))

    def epsilon_lower(self, delta: float = 0.0) -> float:
        """The least ε for which (ε, δ) differential privacy is not refuted."""
        (low_without, high_without), (low_with, high_with) = self.without, self.with_unit
        candidates = [
            (low_with - delta, high_without),
            (low_without - delta, high_with),
            (1 - high_with - delta, 1 - low_without),
            (1 - high_without - delta, 1 - low_with),
        ]
        return max([0.0, *(math.log(top / bottom) for top, bottom in candidates if top > 0 and bottom > 0)])

    def rho_lower(self, failure: float = 0.0) -> float:
        """The least ρ for which zCDP is not refuted, but for events of probability `failure`."""
        return max(_divergence(*pair) for pair in self.apart(failure))

    def gaussian_lower(self, failure: float = 0.0) -> float:
        """The least ρ = μ²/2 for which Gaussian differential privacy is not refuted."""
        shifts = [float(ndtri(high) - ndtri(low)) if high > low else 0.0 for high, low in self.apart(failure)]
        return max(0.0, *shifts) ** 2 / 2

    def divergences(self, orders: Sequence[int]) -> Floats:
        """For each of these orders the Rényi divergence that is shown, in whichever direction is the larger."""
        places = np.array(orders, np.float64)
        found = np.zeros(places.size)
        for high, low in self.apart():
            if 0 < low < high < 1:
                found = np.maximum(found, np.maximum(_renyi(high, low, places), _renyi(low, high, places)))
        return found

    def apart(self, failure: float = 0.0) -> list[tuple[float, float]]:
        """The rates as near to each other as the bounds allow, the larger first, for both directions."""
        pairs = ((self.with_unit[0], self.without[1]), (self.without[0], self.with_unit[1]))
        return [(min(max(high - failure, 0.0), 1.0), min(low + failure, 1.0)) for high, low in pairs]


def epsilon_lower(hits_without: int, hits_with: int, runs: int, confidence: float, *, delta: float = 0.0) -> float:
    """Lower bound on ε from how often one event occurs without and with the extra unit (both of `runs` runs)."""
    return EventRates.of(hits_without, hits_with, runs, confidence).epsilon_lower(delta)


def _divergence(high: float, low: float) -> float:
    """The largest D_α/α between a coin of chance `high` and one of chance `low`, in both directions."""
    if not low < high or low <= 0 or high >= 1:
        return 0.0
    forth, back = _renyi(high, low, _ORDERS), _renyi(low, high, _ORDERS)
    return max(0.0, float((forth / _ORDERS).max()), float((back / _ORDERS).max()))


def _renyi(one: float, other: float, orders: Floats) -> Floats:
    """Rényi divergences of a coin of chance `one` from a coin of chance `other`, for every order."""
    heads = orders * math.log(one) + (1 - orders) * math.log(other)
    tails = orders * math.log1p(-one) + (1 - orders) * math.log1p(-other)
    return np.asarray(np.logaddexp(heads, tails) / (orders - 1), np.float64)


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

    @property
    def shares_error(self) -> bool:
        """Whether the bound by the claim has to leave half of the allowed error to one by the account."""
        return self.is_known


@dataclass(frozen=True, slots=True)
class VaryingAccount(ClaimedAccount):
    """A claim whose account was not the same in all runs, so that none can be held against rates.

    That shows in the runs alone. Their outcome must not decide how much error the bound by the claim may have: it has
    the half that it would have had beside an account.
    """

    @property
    def shares_error(self) -> bool:
        """It does."""
        return True


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
class MixedAccount(ClaimedAccount):
    """A claim that is no conversion of one ρ, such as a sum of claims, whose parts together cost this ρ.

    `failure` is the probability of steps that may fail, on one table.
    """

    rho: float
    failure: float = 0.0

    @property
    def is_known(self) -> bool:
        """It is."""
        return True

    def bound(self, rates: EventRates) -> float:
        """The claim, times the factor by which the rates refute the account, which is 2 at half the noise."""
        return self.epsilon * math.sqrt(rates.rho_lower(2 * self.failure) / self.rho)


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
