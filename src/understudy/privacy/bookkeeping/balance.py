"""Balance: what a dataset's cap still covers, and why adding up is allowed.

Runs follow one another, and whoever plans the next one has seen all earlier releases. So not only questions but prices
are chosen adaptively, and a rule that grants or refuses must hold for every such strategy (a *privacy filter*: Rogers,
Roth, Ullman, Vadhan 2016). Both rules here have the same shape: a limit L, fixed when the dataset is opened; each run
has a price p; it is granted iff (sum of earlier prices) + p ≤ L in every component. Refused runs read nothing.

*basic* — L = (ε, δ) of the cap; the price is the (ε_i, δ_i) the run claims.
  Claim: all granted runs together are (ε, δ)-DP. By induction on how many runs may follow, with "what is left" for L.
  None: nothing is released. Otherwise the next price p depends only on releases already made; the run is p-DP by its
  claim, and, whatever it releases, the rest of the strategy faces the limit L − p with one run fewer, hence is
  (L − p)-DP. The composition of a p-DP step with continuations that are each (L − p)-DP is L-DP (Dwork et al. 2006;
  Dwork and Lei 2009).

*concentrated* — L = (ρ, φ); the price of a run is its ρ_i plus ε_i²/2 for steps paid in pure ε (an ε-DP step is
  ε²/2-zCDP: Bun and Steinke 2016, proposition 1.4), rounded up, together with the δ_i that its steps fail outright.
  The same induction, with two-step composition of δ-approximate ρ-zCDP (ibid., lemma 8.2), shows that all granted runs
  together are φ-approximate ρ-zCDP. With ρ = ρ(ε, δ − φ) of `conversion.py`, rounded down, this gives (ε, δ)-DP
  for the cap (ε, δ).
  φ is a share of δ set aside when the dataset is opened and never moved afterwards. A rule that recomputed ρ from the
  failure δ spent so far would let a strategy trade one for the other *depending on what it saw*; the induction needs
  one fixed limit from which prices are taken away, and we know of no proof for the trade.

The price of a run in one composition says nothing about the other, so a dataset keeps the composition it was opened
with. All runs of a dataset must protect the same unit: guarantees for different neighbours do not add up.
"""

import math
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Literal, get_args

from understudy.errors import UsageError, nearest
from understudy.privacy.conversion import epsilon_of_rho, rho_of_epsilon
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget, Cost
from understudy.privacy.exact.composition import tight_epsilon

__all__ = ["FAILURE_SHARE", "Balance", "Composition", "in_full", "require_claim"]

Composition = Literal["basic", "concentrated"]
FAILURE_SHARE = Fraction(1, 10)
_ROUNDING = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True)
class Balance:
    """A dataset's cap (ε, δ), the limit that stands for it, what has been spent of the limit, and by how many runs.

    In the basic composition cap and limit are the same; in the concentrated one the limit is in ρ and failure δ.
    """

    composition: Composition
    cap: Cost
    limit: Cost
    spent: Cost = field(default_factory=Cost)
    releases: int = 0

    @classmethod
    def opened(cls, cap: Budget, composition: Composition, failure_share: Fraction = FAILURE_SHARE) -> "Balance":
        """The untouched balance of a dataset with this cap."""
        if composition not in get_args(Composition):
            known = nearest(str(composition), get_args(Composition))
            raise UsageError("composition", f"must be basic or concentrated, got {composition!r}.", known)
        whole = Cost(epsilon=cap.epsilon_units, delta=cap.delta_units)
        if composition == "basic":
            return cls(composition, whole, whole)
        if not 0 <= failure_share < 1:
            raise UsageError("failure share", f"must be at least 0 and below 1, got {float(failure_share)!r}.")
        return cls(composition, whole, cap.cost("concentrated", math.floor(whole.delta * failure_share)))

    @property
    def left(self) -> Cost:
        """What later runs may cost in all."""
        return self.limit - self.spent

    def price(self, cost: Cost, *, budget_epsilon: int, budget_delta: int) -> Cost:
        """What a run that spends `cost` under this claim takes from the limit, rounded up."""
        if self.composition == "basic":
            return Cost(epsilon=budget_epsilon, delta=budget_delta)
        return Cost(rho=_rho_units(cost), delta=cost.delta)

    def after(self, price: Cost) -> "Balance":
        """The balance once one more run has been charged."""
        return replace(self, spent=self.spent + price, releases=self.releases + 1)

    def is_within_limit(self) -> bool:
        """Whether the cap still covers all that was spent."""
        return self.spent.fits(self.limit)

    def claim(self) -> Cost:
        """The (ε, δ) that holds for all charged runs together, in units, rounded up."""
        if self.composition == "basic" or not self.releases:
            return self.spent
        rest = Fraction(self.cap.delta - self.limit.delta, DELTA_UNIT)
        epsilon = math.ceil(epsilon_of_rho(Fraction(self.spent.rho, UNIT), rest) * UNIT)
        # The conversion's rounding must not report more than the cap that the limit was derived from.
        return Cost(epsilon=min(epsilon, self.cap.epsilon), delta=self.cap.delta - self.limit.delta + self.spent.delta)

    def largest(self, cost: Cost, budget: Budget) -> Cost | None:
        """About the largest (ε, δ) that a run like this one could still claim, in units; None if no run fits any more.

        Exactly, unless exact laws let the run spend more ρ than its claim alone does. In the concentrated composition δ
        stays as asked for, and so does the part of it set aside for failing steps.
        """
        left = self.left
        if self.composition == "basic":
            return Cost(epsilon=left.epsilon, delta=left.delta) if left.epsilon else None
        if not left.rho:
            return None
        failure = min(cost.delta, left.delta)
        if not cost.rho:
            epsilon = math.isqrt(2 * UNIT * left.rho)
        else:
            pure = Fraction(cost.epsilon, budget.epsilon_units)
            room = math.floor(left.rho * min(Fraction(1), Fraction(_rho_alone(cost, budget), cost.rho)))
            epsilon = _largest_epsilon(room, budget.delta_units - failure, budget.epsilon_units, pure)
        return Cost(epsilon=min(epsilon, budget.epsilon_units), delta=budget.delta_units) if epsilon else None

    def largest_in_words(self, cost: Cost, budget: Budget) -> str | None:
        """The same to the last unit, as text; "about" where exact laws are summed, whose factor moves with ε."""
        largest = self.largest(cost, budget)
        if largest is None:
            return None
        by_exact_laws = self.composition == "concentrated" and cost.rho > _rho_alone(cost, budget)
        return ("about " if by_exact_laws else "") + in_full(largest)


def require_claim(cost: Cost, budget: Budget, variances: tuple[Fraction, ...] = ()) -> None:
    """Refuses a cost that does not imply the claimed (ε, δ).

    `variances` are those of all answers that are not paid in ε, if they all have Gaussian noise of scales fixed
    beforehand, on histograms of one row per unit; then the claim may also rest on the sum of their exact laws.
    """
    if cost == Cost():
        raise UsageError("charge", "must cost something.", "A run that reads nothing needs no charge.")
    if not cost.delta <= budget.delta_units:
        raise UsageError("charge", f"steps may fail with {in_full(Cost(delta=cost.delta))}, above the claimed δ.")
    if not cost.rho:
        holds = cost.epsilon <= budget.epsilon_units
    else:
        holds = (
            _rho_units(cost) <= budget.cost("concentrated", cost.delta).rho
            or _holds_beside(cost, budget)
            or _holds_exactly(cost, budget, variances)
        )
    if not holds:
        claimed = in_full(Cost(epsilon=budget.epsilon_units, delta=budget.delta_units))
        raise UsageError("charge", f"a cost of {in_full(cost)} does not give the claimed {claimed}.")


def _rho_alone(cost: Cost, budget: Budget) -> int:
    """Units of ρ that the claim allows beside the ε and δ of the cost, unless exact laws are summed."""
    if not cost.rho:
        return 0
    return budget.cost("concentrated", cost.delta, pure=min(cost.epsilon, budget.epsilon_units - 1)).rho


def _holds_beside(cost: Cost, budget: Budget) -> bool:
    """Whether pure ε and the ε of ρ add up to the claim (proof in `cost.py`)."""
    if cost.epsilon >= budget.epsilon_units:
        return False
    return cost.rho <= budget.cost("concentrated", cost.delta, pure=cost.epsilon).rho


def _holds_exactly(cost: Cost, budget: Budget, variances: tuple[Fraction, ...]) -> bool:
    bought = sum((Fraction(UNIT) / (2 * variance) for variance in variances), Fraction(len(variances)))
    if cost.delta or cost.rho > bought * (1 + _ROUNDING):  # other answers than these would be paid by it
        return False
    found = tight_epsilon(variances, Fraction(budget.delta_units, DELTA_UNIT)) if variances else None
    return found is not None and Fraction(found) <= Fraction(budget.epsilon_units - cost.epsilon, UNIT)


def in_full(cost: Cost) -> str:
    """The amounts to the last unit, as decimals that can be typed back.

    >>> in_full(Cost(epsilon=299_999_999_999, delta=10**9))
    'ε = 0.299999999999, δ = 1e-9'
    """
    parts = []
    if cost.epsilon or cost == Cost():
        parts.append(f"ε = {(Decimal(cost.epsilon) / UNIT).normalize():f}")
    if cost.rho:
        parts.append(f"ρ = {(Decimal(cost.rho) / UNIT).normalize():f}")
    if cost.delta:
        parts.append(f"δ = {(Decimal(cost.delta) / DELTA_UNIT).normalize():e}")
    return ", ".join(parts)


def _rho_units(cost: Cost) -> int:
    return cost.rho + math.ceil(Fraction(cost.epsilon**2, 2 * UNIT))


def _largest_epsilon(rho: int, delta: int, below: int, pure: Fraction) -> int:
    """Largest ε units, under `below`, that cost at most `rho` units of ρ at `delta` units of δ; 0 if none does.

    A share `pure` of ε is spent as it is.
    """
    if delta < 1:
        return 0
    low, high = 0, below
    while high - low > 1:
        middle = (low + high) // 2
        kept = math.floor(middle * pure)
        needed = math.floor(rho_of_epsilon(Fraction(middle - kept, UNIT), Fraction(delta, DELTA_UNIT)) * UNIT)
        low, high = (middle, high) if _rho_units(Cost(kept, needed)) <= rho else (low, middle)
    return low
