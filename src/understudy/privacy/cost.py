"""Cost and Budget: prices kept as integers and always rounded against us.

Units: 10⁻¹² of ε, 10⁻¹² of ρ, 10⁻¹⁸ of δ. (Nano-units would be too coarse: at ε = 0.001 and δ = 10⁻⁹ the whole budget
is ρ ≈ 1.2·10⁻⁸, twelve nano-units to share among all questions.) A budget given as a float is rounded down when it
becomes integers, a charge computed from real numbers is rounded up.

Two currencies. *Pure*: ε of Laplace noise and of the exponential mechanism, adding up (Dwork et al. 2006).
*Concentrated*: ρ of zero-concentrated DP (Bun and Steinke 2016), adding up over adaptively chosen questions; δ that a
step fails outright adds on top ("approximate zCDP", ibid. §8), and the rest of δ pays for the conversion to (ε, δ).

Both in one run: steps of ε₁ in all, pure, and steps of ρ in all, asked in any order, each question depending on earlier
answers. Two bounds hold, and the smaller one is claimed. *In ρ*: an ε-DP step is ε²/2-zCDP (ibid., proposition 1.4), so
the sum is ρ + Σεᵢ²/2 ≤ ρ + ε₁²/2. *Side by side*: (ε₁ + ε(ρ, δ), δ). Proof: write a transcript's probability as a
product of conditional ones, p on one table and q on its neighbour. Each pure step has q_i ≥ e^(−εᵢ)·p_i, so in
δ(ε) = ∫ (p − e^ε·q)₊ those factors of q may be replaced by those of p at the price of e^(−ε₁): δ(ε) is at most
∫ (p − e^(ε−ε₁)·q')₊, where q' draws pure answers as p does. There they are one and the same kernel on both sides,
part of how later questions are chosen, and what is left is the adaptive composition of the steps in ρ, at ε − ε₁. The
same holds if what is left is bounded by summing exact laws of noise whose scales were fixed beforehand.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from understudy.errors import UsageError
from understudy.privacy.conversion import epsilon_of_rho, rho_of_epsilon

__all__ = ["DELTA_UNIT", "UNIT", "Budget", "Cost", "Currency"]

Currency = Literal["pure", "concentrated"]
UNIT = 10**12
DELTA_UNIT = 10**18


@dataclass(frozen=True, slots=True)
class Cost:
    """A price in integer units; adds component by component."""

    epsilon: int = 0
    rho: int = 0
    delta: int = 0

    def __post_init__(self) -> None:
        for name, units in (("epsilon", self.epsilon), ("rho", self.rho), ("delta", self.delta)):
            if type(units) is not int or units < 0:
                raise UsageError(f"cost: {name}", f"must be a whole number of units, 0 or more, got {units!r}.")

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.epsilon + other.epsilon, self.rho + other.rho, self.delta + other.delta)

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(self.epsilon - other.epsilon, self.rho - other.rho, self.delta - other.delta)

    def fits(self, limit: "Cost") -> bool:
        """Whether no component exceeds the limit's."""
        return self.epsilon <= limit.epsilon and self.rho <= limit.rho and self.delta <= limit.delta

    def share(self, fraction: Fraction | float) -> "Cost":
        """That fraction of ε and ρ, rounded down; δ stays behind (it is given to a step by name)."""
        if not math.isfinite(fraction) or not 0 <= fraction <= 1:
            raise UsageError("cost share", f"must lie between 0 and 1, got {float(fraction)!r}.")
        part = Fraction(fraction)
        return Cost(math.floor(self.epsilon * part), math.floor(self.rho * part))

    def split(self, weights: Sequence[float]) -> list["Cost"]:
        """Shares of ε and ρ proportional to the weights, never more in sum than the whole.

        >>> [part.epsilon for part in Cost(epsilon=10).split([1, 1, 1])]
        [3, 3, 3]
        """
        if not all(math.isfinite(weight) and weight >= 0 for weight in weights) or not any(weights):
            raise UsageError("cost split", "needs weights of 0 or more, not all 0.")
        total = sum(map(Fraction, weights), Fraction(0))
        return [self.share(Fraction(weight) / total) for weight in weights]

    def __str__(self) -> str:
        parts = []
        if self.epsilon:
            parts.append(f"ε = {self.epsilon / UNIT:.6g}")
        if self.rho:
            parts.append(f"ρ = {self.rho / UNIT:.6g}")
        if self.delta:
            parts.append(f"δ = {self.delta / DELTA_UNIT:.6g}")
        return ", ".join(parts) or "nothing"


@dataclass(frozen=True, slots=True)
class Budget:
    """What the steward grants: (ε, δ) for one release, checked at construction."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not _is_number(self.epsilon) or not 0 < self.epsilon <= 1e6:
            raise UsageError("epsilon", f"must be a number above 0 and at most 1,000,000, got {self.epsilon!r}.")
        if not _is_number(self.delta) or not 0 <= self.delta < 1:
            raise UsageError("delta", f"must be a number from 0 to below 1, got {self.delta!r}.")
        if self.delta and self.delta_units < 1:
            raise UsageError("delta", f"must be 0 or at least {1 / DELTA_UNIT}, got {self.delta!r}.")
        if self.epsilon_units < 1:
            raise UsageError("epsilon", f"must be at least {1 / UNIT}, got {self.epsilon!r}.")

    @property
    def epsilon_units(self) -> int:
        """ε in whole units, rounded down; 0.7 means seven tenths, not the binary number just below."""
        return math.floor(_as_written(self.epsilon) * UNIT)

    @property
    def delta_units(self) -> int:
        """δ in whole units, rounded down."""
        return math.floor(_as_written(self.delta) * DELTA_UNIT)

    def cost(self, currency: Currency, failure_delta: int = 0, *, pure: int = 0) -> Cost:
        """What may be spent in that currency; `failure_delta` units of δ are set aside for steps that may fail.

        The rest of δ pays for the conversion of ρ into ε. In the pure currency only the failure δ is spent. Of a
        concentrated run's ε, `pure` units stay as they are, for steps paid in ε beside those paid in ρ.
        """
        if failure_delta > self.delta_units:
            raise UsageError("delta", "is smaller than the part set aside for steps that may fail.")
        if currency == "pure":
            return Cost(epsilon=self.epsilon_units, delta=failure_delta)
        left = self.delta_units - failure_delta
        if left < 1:
            raise UsageError("delta", "must be above 0 for Gaussian noise.", "Give --delta, for example 1e-9.")
        if not 0 <= pure < self.epsilon_units:
            raise UsageError("epsilon", "is smaller than the part kept for steps paid in pure ε.")
        rho = rho_of_epsilon(Fraction(self.epsilon_units - pure, UNIT), Fraction(left, DELTA_UNIT))
        return Cost(pure, math.floor(rho * UNIT), failure_delta)

    def claim(self, spent: Cost) -> tuple[float, float]:
        """The (ε, δ) that holds for this spending, rounded up; never above the budget if the spending fits."""
        if not spent.rho:
            return _float_above(Fraction(spent.epsilon, UNIT)), _float_above(Fraction(spent.delta, DELTA_UNIT))
        left = self.delta_units - spent.delta
        if left < 1:
            raise UsageError("delta", "is used up: no part is left to convert ρ into ε.")
        granted, rest = Fraction(self.epsilon_units, UNIT), Fraction(left, DELTA_UNIT)
        pure, rho = Fraction(spent.epsilon, UNIT), Fraction(spent.rho, UNIT)
        in_rho, beside = rho + pure**2 / 2, granted - pure
        epsilon = min(epsilon_of_rho(in_rho, rest), pure + epsilon_of_rho(rho, rest))
        holds = in_rho <= rho_of_epsilon(granted, rest) or (beside > 0 and rho <= rho_of_epsilon(beside, rest))
        if holds:  # then the granted ε holds too, and may be smaller by rounding
            epsilon = min(epsilon, granted)
        return _float_above(epsilon), _float_above(Fraction(self.delta_units, DELTA_UNIT))


def _float_above(number: Fraction) -> float:
    """The smallest float that, as it is printed, is not below the number."""
    nearest_float = float(number)
    while _as_written(nearest_float) < number:
        nearest_float = math.nextafter(nearest_float, math.inf)
    return nearest_float


def _as_written(number: float) -> Fraction:
    """The decimal number a person wrote: the shortest one that reads as this float."""
    return Fraction(repr(float(number)))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
