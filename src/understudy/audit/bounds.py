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
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, ndtri

from understudy.arrays import Floats

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
