"""Costs and budgets: integers rounded against us, the conversion of ρ into (ε, δ), and the noise that a cost buys.

From zCDP to (ε, δ) and back
----------------------------
By the tight formula, rounded to the safe side. A ρ-zCDP mechanism has Rényi divergence at most αρ at every order α > 1,
hence is (ε, δ)-DP as soon as for *one* α

    δ ≥ exp((α − 1)(αρ − ε)) · (1 − 1/α)^α / (α − 1)            (Canonne, Kamath, Steinke 2020, Proposition 12).

With x = α − 1 and c(x) = (log δ + log(1 + x)) / x + log(1 + 1/x) this condition reads

    ε ≥ (1 + x) ρ − c(x)            or            ρ ≤ (ε + c(x)) / (1 + x).

Every x gives a valid answer; the search for the best one runs in floats and cannot break the guarantee, only waste
some of it. The answer is then computed at the x found, with 80 decimal digits and a margin far above all rounding.

Costs and budgets
-----------------
Costs are kept as integers and always rounded against us. Units: 10⁻¹² of ε, 10⁻¹² of ρ, 10⁻¹⁸ of δ. (Nano-units would
be too coarse: at ε = 0.001 and δ = 10⁻⁹ the whole budget is ρ ≈ 1.2·10⁻⁸, twelve nano-units to share among all
queries.) A budget given as a float is rounded down when it becomes integers, a charge computed from real numbers is
rounded up.

Three currencies. *Pure*: ε of Laplace noise and of the exponential mechanism, adding up (Dwork et al. 2006).
*zCDP*: ρ of zero-concentrated DP (Bun and Steinke 2016), adding up over adaptively chosen queries; δ that a
step fails outright adds on top ("approximate zCDP", ibid. §8), and the rest of δ pays for the conversion to (ε, δ).
*Gaussian*: the same ρ, for runs all of whose answers have integer Gaussian noise; (ε, δ) follow from Gaussian
differential privacy, μ² = 2ρ, for which noise is a little wider (`SMOOTHING`; `gaussian.py` proves it).

Both in one run: steps of ε₁ in all, pure, and steps of ρ in all, asked in any order, each query depending on earlier
answers. Two bounds hold, and the smaller one is claimed. *In ρ*: an ε-DP step is ε²/2-zCDP (ibid., proposition 1.4), so
the sum is ρ + Σεᵢ²/2 ≤ ρ + ε₁²/2. *Side by side*: (ε₁ + ε(ρ, δ), δ). Proof: write a transcript's probability as a
product of conditional ones, p on one table and q on its neighbour. Each pure step has q_i ≥ e^(−εᵢ)·p_i, so in
δ(ε) = ∫ (p − e^ε·q)₊ those factors of q may be replaced by those of p at the cost of e^(−ε₁): δ(ε) is at most
∫ (p − e^(ε−ε₁)·q')₊, where q' draws pure answers as p does. There they are one and the same kernel on both sides,
part of how later queries are chosen, and what is left is the adaptive composition of the steps in ρ, at ε − ε₁. The
same holds if what is left is bounded by summing exact distributions of noise whose scales were fixed beforehand.

From a cost to noise
--------------------
Which distribution, which selection rate, which threshold: exact fractions, rounded against us. k is the most rows one
unit holds, so neighbouring tables differ by at most k rows, all added or all removed.

`distribution_for`  A histogram moves by at most Δ = k in L1 and in L2. Discrete Laplace noise of scale b changes each
    probability by at most e^(L1/b), so b = Δ/ε is ε-DP (Ghosh, Roughgarden, Sundararajan 2009). Discrete Gaussian
    noise of parameter σ² on integers moved by at most Δ in L2 is Δ²/(2σ²)-zCDP (Canonne, Kamath, Steinke 2020,
    Theorem 4), so σ² = Δ²/(2ρ). Laplace noise paid in ρ: ε-DP is ε²/2-zCDP (Bun, Steinke 2016, Proposition 1.4),
    so ε is √(2ρ) rounded down.

`selection_rate`  P(i) ∝ e^(rate·score_i). Between neighbours each score moves by at most Δ, so the log-probabilities
    of two options move against each other by at most 2Δ·rate, or Δ·rate if all scores move in the same direction
    ("monotone"). That range is ε: rate = ε/(2Δ), or ε/Δ. A mechanism whose privacy loss has range ε is ε-DP and
    ε²/8-zCDP (Cesar, Rogers 2021), so ε is √(8ρ) rounded down.

`discovery_threshold`  Labels in one table only are held by a single unit: at most k labels of at most k rows each.
    Any of them shows with probability ≤ k·P(noise ≥ τ − k), which must be ≤ δ. For labels in both tables the counts
    differ by at most k in L1 altogether, so Laplace noise of scale k/ε gives ε: (ε, δ)-DP in all.

`score_distribution`  P scores, each moved by at most Δ by one unit: by at most P·Δ in L1 and √P·Δ in L2. So b = P·Δ/ε,
    and σ² = P·Δ²/(2ρ).

`residual_distribution`  A residual table, on its lattice, moves by at most k·√S in L2, S = `residual_shift` of its
    shape (`gaussian.py`): σ² = k²·S/(2ρ). There is no such table under pure ε.

In the Gaussian currency σ² is wider by `SMOOTHING`, in squared steps of the lattice that the noise lies on. Counts are
multiplied by ROUNDED_GRID first, so that these steps are small, and rounded after the noise, which is post-processing.

`growth_rule`  PrivTree on a grid of 1/GROWTH_UNIT rows; `trees.py` proves it. For decay β, one row costs
    ε' if λ = (2β − 1)/((β − 1)·ε') and the bias per level is at least λ·ln β and at least one row. k rows are k single
    rows one after the other, so ε' = ε/k. Paid in ρ: ε-DP is ε²/2-zCDP, so ε is √(2ρ) rounded down.

`check_sparse`  how many empty cells of a huge table pass the threshold by noise alone, a public number.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from understudy.domain import GROWTH_UNIT, ROUNDED_GRID, Distribution
from understudy.errors import UsageError
from understudy.privacy.gaussian import SMOOTHING, gaussian_epsilon, gaussian_rho, residual_shift
from understudy.privacy.noise import LARGEST_SCALE, LARGEST_SCORE_VARIANCE, LARGEST_VARIANCE, Interval, exp_minus

_DIGITS = 80
_ANSWER_DIGITS = 30
_MARGIN = Decimal(10) ** (6 - _DIGITS)  # each of the < 20 operations is off by at most 10^(1 − digits), relatively
_GOLDEN = (math.sqrt(5) - 1) / 2


@lru_cache(maxsize=256)
def rho_of_epsilon(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The ρ that (ε, δ) buys: ρ-zCDP implies (ε, δ)-DP. Rounded down, at most one part in 10¹² below the largest."""
    _check("epsilon", epsilon > 0)
    _check_delta(delta)
    epsilon_float, log_delta = float(epsilon), _log(delta)
    best = _best_order(lambda order: -(epsilon_float + _gain(order, log_delta)) / (1 + order))
    with localcontext(Context(prec=_DIGITS, rounding=ROUND_HALF_EVEN)):
        order = Decimal(best)
        start = _decimal(epsilon)
        gain, size = _exact_gain(order, delta)
        # Inside, numbers are rounded to nearest; the margin covers that, and only the last line decides to which side
        # we err.
        rho = (start + gain - (start + size + 1) * _MARGIN) / (1 + order)
        rho = max(rho * (1 - _MARGIN), Decimal(0))
        return Fraction(Context(prec=_ANSWER_DIGITS, rounding=ROUND_FLOOR).plus(rho))


@lru_cache(maxsize=256)
def epsilon_of_rho(rho: Fraction, delta: Fraction) -> Fraction:
    """The ε that a ρ-zCDP mechanism satisfies together with δ. Rounded up."""
    _check("rho", rho >= 0)
    _check_delta(delta)
    if rho == 0:
        return Fraction(0)
    rho_float, log_delta = float(rho), _log(delta)
    best = _best_order(lambda order: (1 + order) * rho_float - _gain(order, log_delta))
    with localcontext(Context(prec=_DIGITS, rounding=ROUND_HALF_EVEN)):
        order = Decimal(best)
        start = (1 + order) * _decimal(rho)
        gain, size = _exact_gain(order, delta)
        epsilon = max(start - gain + (start + size + 1) * _MARGIN, Decimal(0))
        return Fraction(Context(prec=_ANSWER_DIGITS, rounding=ROUND_CEILING).plus(epsilon))


def _gain(order: float, log_delta: float) -> float:
    """c(x) in floats."""
    return (log_delta + math.log1p(order)) / order + math.log1p(1 / order)


def _exact_gain(order: Decimal, delta: Fraction) -> tuple[Decimal, Decimal]:
    """c(x) to about 80 digits, and the sum of the sizes of its terms, which bounds its rounding error."""
    log_delta = _decimal(delta).ln() / order
    log_order = (1 + order).ln() / order
    # log(1 + 1/x) as a difference of logarithms would lose digits for large x; 80 digits leave plenty for x ≤ e^60.
    log_ratio = (1 + 1 / order).ln()
    return log_delta + log_order + log_ratio, abs(log_delta) + abs(log_order) + abs(log_ratio) + 1 / order


def _best_order(loss: Callable[[float], float]) -> float:
    """The x = α − 1 with the smallest loss: a coarse scan of log x, then golden section."""
    # The best x is near √(log(1/δ)/ρ), far inside of e^−40 … e^60 for every budget that can be stated.
    exponents = [0.5 * step for step in range(-80, 121)]
    losses = [loss(math.exp(exponent)) for exponent in exponents]
    at = min(range(len(losses)), key=losses.__getitem__)
    low, high = exponents[max(at - 1, 0)], exponents[min(at + 1, len(exponents) - 1)]
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    loss_left, loss_right = loss(math.exp(left)), loss(math.exp(right))
    for _ in range(45):
        if loss_left < loss_right:
            high, right, loss_right = right, left, loss_left
            left = high - _GOLDEN * (high - low)
            loss_left = loss(math.exp(left))
        else:
            low, left, loss_left = left, right, loss_right
            right = low + _GOLDEN * (high - low)
            loss_right = loss(math.exp(right))
    return math.exp((low + high) / 2)


def _log(number: Fraction) -> float:
    return math.log(number.numerator) - math.log(number.denominator)


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def _check_delta(delta: Fraction) -> None:
    _check("delta", 0 < delta < 1)


def _check(name: str, holds: bool) -> None:
    if not holds:
        rule = {"epsilon": "must be above 0.", "rho": "must be 0 or more.", "delta": "must lie between 0 and 1."}[name]
        raise UsageError(name, rule)


Currency = Literal["pure", "zcdp", "gaussian"]
UNIT = 10**12
DELTA_UNIT = 10**18


@dataclass(frozen=True, slots=True)
class Cost:
    """A cost in integer units; adds component by component."""

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
        # Raises below 0, by the check of the constructor.
        return Cost(self.epsilon - other.epsilon, self.rho - other.rho, self.delta - other.delta)

    def fits(self, limit: "Cost") -> bool:
        """Whether no component exceeds the limit's."""
        return self.epsilon <= limit.epsilon and self.rho <= limit.rho and self.delta <= limit.delta

    def share(self, fraction: Fraction | float) -> "Cost":
        """That fraction of ε and ρ, rounded down; δ stays behind (it is given to a step by name)."""
        if not math.isfinite(fraction) or not 0 <= fraction <= 1:
            raise UsageError("cost share", f"must lie between 0 and 1, got {float(fraction)!r}.")
        # Exactly the binary fraction that the float is, so that shares which add up to 1 cannot cost more than the
        # whole.
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
        for name, value in (("epsilon", self.epsilon), ("delta", self.delta)):
            if type(value) not in (int, float):  # a number of another library becomes a plain one, as files hold it
                object.__setattr__(self, name, float(value))
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
        zCDP run's ε, `pure` units stay as they are, for steps paid in ε beside those paid in ρ.
        """
        if failure_delta > self.delta_units:
            raise UsageError("delta", "is smaller than the part set aside for steps that may fail.")
        if currency == "pure":
            return Cost(epsilon=self.epsilon_units, delta=failure_delta)
        # One δ pays for both: that steps fail outright, and that the conversion of ρ does (Bun and Steinke 2016,
        # section 8).
        left = self.delta_units - failure_delta
        if left < 1:
            raise UsageError("delta", "must be above 0 for Gaussian noise.", "Give delta=, for example 1e-9.")
        if not 0 <= pure < self.epsilon_units:
            raise UsageError("epsilon", "is smaller than the part kept for steps paid in pure ε.")
        if currency == "gaussian":
            if pure or failure_delta:
                raise UsageError("budget", "a run accounted as Gaussian has no steps in pure ε and none that may fail.")
            return Cost(rho=self._gaussian_rho())
        rho = rho_of_epsilon(Fraction(self.epsilon_units - pure, UNIT), Fraction(left, DELTA_UNIT))
        return Cost(pure, math.floor(rho * UNIT), failure_delta)

    def _gaussian_rho(self) -> int:
        """Units of ρ that all-Gaussian answers may cost: never less than zCDP alone allows, for that holds as well."""
        epsilon, delta = Fraction(self.epsilon_units, UNIT), Fraction(self.delta_units, DELTA_UNIT)
        return math.floor(max(rho_of_epsilon(epsilon, delta), gaussian_rho(epsilon, delta) or Fraction(0)) * UNIT)

    def claim(self, spent: Cost, currency: Currency = "zcdp") -> tuple[float, float]:
        """The (ε, δ) that holds for this spending, rounded up; never above the budget if the spending fits.

        Args:
            spent: What was spent, in ε or ρ, and the δ of steps that may fail.
            currency: "gaussian" if every answer has Gaussian noise, wide enough for Gaussian differential privacy.
        """
        if currency == "gaussian":
            return self._gaussian_claim(spent)
        # Without ρ nothing is converted, and δ is what failing steps have: 0 under pure ε.
        if not spent.rho:
            return _float_above(Fraction(spent.epsilon, UNIT)), _float_above(Fraction(spent.delta, DELTA_UNIT))
        left = self.delta_units - spent.delta
        if left < 1:
            raise UsageError("delta", "is used up: no part is left to convert ρ into ε.")
        granted, rest = Fraction(self.epsilon_units, UNIT), Fraction(left, DELTA_UNIT)
        pure, rho = Fraction(spent.epsilon, UNIT), Fraction(spent.rho, UNIT)
        # Two valid accounts of one run (proof above); since both hold, the smaller ε may be claimed.
        in_rho, beside = rho + pure**2 / 2, granted - pure
        epsilon = min(epsilon_of_rho(in_rho, rest), pure + epsilon_of_rho(rho, rest))
        holds = in_rho <= rho_of_epsilon(granted, rest) or (beside > 0 and rho <= rho_of_epsilon(beside, rest))
        if holds:  # then the granted ε holds too, and may be smaller by rounding
            epsilon = min(epsilon, granted)
        return _float_above(epsilon), _float_above(Fraction(self.delta_units, DELTA_UNIT))

    def _gaussian_claim(self, spent: Cost) -> tuple[float, float]:
        if spent.epsilon or spent.delta or not spent.rho:
            raise UsageError("claim", "a run accounted as Gaussian spends ρ, and nothing else.")
        rho, delta = Fraction(spent.rho, UNIT), Fraction(self.delta_units, DELTA_UNIT)
        found = gaussian_epsilon(rho, delta)
        epsilon = min(filter(None, (epsilon_of_rho(rho, delta), found)))
        if spent.rho <= self._gaussian_rho():  # then the granted ε holds too, and may be smaller by rounding
            epsilon = min(epsilon, Fraction(self.epsilon_units, UNIT))
        return _float_above(epsilon), _float_above(delta)


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


LARGEST_DECAY = 2**20
_LARGEST_GROWTH_SCALE = Fraction(2**40)
_LARGEST_RESIDUAL_VARIANCE = Fraction(2**99)
MOST_KEPT = 50_000_000
_ROOT_UNIT = 10**18  # square roots are rounded down to this resolution
_BITS = 192


def distribution_for(
    cost: Cost, sensitivity: int, step: str, *, laplace: bool = False, currency: Currency | None = None
) -> Distribution:
    """The noise that makes a histogram of that sensitivity cost exactly `cost` (or less, by rounding).

    Args:
        cost: either ε (Laplace noise) or ρ (Gaussian noise); its δ plays no part here.
        sensitivity: most rows one unit holds.
        step: named in error messages.
        laplace: Laplace noise also where the cost is ρ.
        currency: currency of the run; it matters if it is "gaussian".
    """
    if sensitivity < 1:
        raise UsageError(step, f"the sensitivity must be at least 1, got {sensitivity}.")
    if laplace or _in_epsilon(cost, step):
        return Distribution("laplace", _within(Fraction(sensitivity) / _epsilon(cost, 2, step), LARGEST_SCALE, step))
    # An exact fraction, as the sampler wants it: σ itself may be irrational and would have to be rounded.
    variance = _within(Fraction(sensitivity**2 * UNIT, 2 * cost.rho), LARGEST_VARIANCE, step)
    if currency == "gaussian":
        # SMOOTHING is in squared steps of the lattice that noise lies on, here 1/ROUNDED_GRID rows.
        return Distribution("gaussian", variance + Fraction(SMOOTHING, ROUNDED_GRID**2), ROUNDED_GRID)
    return Distribution("gaussian", variance)


def smoothing(currency: Currency | None) -> int:
    """By how much Gaussian noise of a run in that currency is wider, in squared steps of its lattice."""
    return SMOOTHING if currency == "gaussian" else 0


def residual_distribution(
    cost: Cost, shape: tuple[int, ...], unit_rows: int, step: str, *, currency: Currency | None = None
) -> Distribution:
    """The noise of a residual table of that shape, on its lattice, that costs `cost`."""
    if len(shape) not in (1, 2) or min(shape) < 2:
        raise UsageError(step, "residual tables have one or two columns, of two codes or more each.")
    if unit_rows < 1:
        raise UsageError(step, f"the rows of a unit must be at least 1, got {unit_rows}.")
    if _in_epsilon(cost, step):
        raise UsageError(step, "residual tables have Gaussian noise and are paid in ρ.", "Give delta=, such as 1e-9.")
    variance = Fraction(unit_rows**2 * residual_shift(shape) * UNIT, 2 * cost.rho)
    return Distribution("gaussian", _within(variance, _LARGEST_RESIDUAL_VARIANCE, step) + smoothing(currency))


def selection_rate(cost: Cost, sensitivity: Fraction, step: str, *, monotone: bool) -> Fraction:
    """The rate per unit of score at which the exponential mechanism costs `cost`."""
    if sensitivity <= 0:
        raise UsageError(step, f"the sensitivity of a score must be above 0, got {sensitivity}.")
    # ε²/8 and not ε²/2, because the loss of this mechanism has range ε. Permute-and-flip has no such range: drawing
    # that way at this rate would leak.
    epsilon = _epsilon(cost, 8, step)
    return epsilon / sensitivity if monotone else epsilon / (2 * sensitivity)


def score_distribution(
    cost: Cost, options: int, sensitivity: Fraction, step: str, *, currency: Currency | None = None
) -> Distribution:
    """The noise that makes that many scores, none moved by more than `sensitivity`, cost `cost` in all."""
    if sensitivity <= 0 or options < 1:
        raise UsageError(step, "needs at least one score, and a sensitivity above 0.")
    if _in_epsilon(cost, step):
        return Distribution("laplace", _within(options * sensitivity / _epsilon(cost, 2, step), LARGEST_SCALE, step))
    # In L2 all scores together move by √options times one, so their number enters once and not squared.
    variance = options * sensitivity**2 * Fraction(UNIT, 2 * cost.rho)
    return Distribution("gaussian", _within(variance, LARGEST_SCORE_VARIANCE, step) + smoothing(currency))


def growth_rule(cost: Cost, unit_rows: int, decay: Fraction, step: str) -> tuple[Distribution, int]:
    """Noise and bias per level, both in 1/GROWTH_UNIT rows, at which growing a whole tree costs `cost`."""
    if not 2 <= decay <= LARGEST_DECAY:
        raise UsageError(step, f"the decay must lie between 2 and {LARGEST_DECAY:,}, got {float(decay)!r}.")
    if unit_rows < 1:
        raise UsageError(step, f"the rows of a unit must be at least 1, got {unit_rows}.")
    per_row = _epsilon(cost, 2, step) / unit_rows
    # k rows are k single rows one after the other, each of which costs a k-th.
    scale = _within((2 * decay - 1) / ((decay - 1) * per_row) * GROWTH_UNIT, _LARGEST_GROWTH_SCALE, step)
    # The float only says where to begin; what is returned is proved: e^(−bias/scale) ≤ 1/decay.
    # At least one row a level: the published rule does not ask for it, step (3) of the proof in `trees.py` does.
    bias = max(GROWTH_UNIT, math.floor(float(scale) * math.log(decay)) - 2)
    while Fraction(exp_minus(bias / scale, _BITS)[1], 1 << _BITS) > 1 / decay:
        bias += 1
    return Distribution("laplace", scale), bias


def discovery_threshold(distribution: Distribution, unit_rows: int, delta_units: int, step: str) -> int:
    """The smallest threshold τ with unit_rows · P(noise ≥ τ − unit_rows) ≤ δ, proved by intervals."""
    if distribution.kind != "laplace":
        raise UsageError(step, "labels are discovered with Laplace noise.")
    if unit_rows < 1:
        raise UsageError(step, f"the rows of a unit must be at least 1, got {unit_rows}.")
    if not 0 < delta_units < DELTA_UNIT:
        raise UsageError(
            step,
            "needs a part of δ above 0 and below 1: it is the probability that a label of a single unit shows.",
            "Grant a budget with delta, for example 1e-9, or declare the labels in the schema.",
        )
    # One unit may hold this many labels of its own, and none of them may show.
    target = Fraction(delta_units, DELTA_UNIT) / unit_rows
    # P(noise ≥ m) = q^m / (1 + q) falls in m, so the answer is found by bisection on the proved upper bound.
    above = 1
    while not _tail_at_most(distribution.parameter, above, target):
        above *= 2
    below = above // 2
    while above - below > 1:
        middle = (above + below) // 2
        if _tail_at_most(distribution.parameter, middle, target):
            above = middle
        else:
            below = middle
    # All rows of the unit may carry the same label; noise has to cover only the way from there to the threshold.
    return above + unit_rows


def check_sparse(distribution: Distribution, cells: int, threshold: int, step: str) -> None:
    """Refuses a sparse table of which so many empty cells would be kept that the answer cannot be held.

    Depends on public numbers only, so that it can run before anything is charged or read.
    """
    if distribution.kind != "laplace":
        raise UsageError(step, "sparse noise is Laplace noise.")
    # The lower bound: only what surely keeps too many cells is refused.
    lower, _ = _tail(distribution.parameter, threshold, _BITS)
    if cells * lower > MOST_KEPT << _BITS:
        needed = threshold
        while cells * _tail(distribution.parameter, needed, _BITS)[0] > MOST_KEPT << _BITS:
            needed += max(1, math.ceil(distribution.parameter / 8))
        raise UsageError(
            step,
            f"at threshold {threshold} noise alone would keep more than {MOST_KEPT:,} empty cells of {cells:,}.",
            f"Use a threshold of about {needed} or more, fewer columns, or a larger budget.",
        )


def _tail(scale: Fraction, least: int, bits: int) -> Interval:
    """Bounds of P(discrete Laplace noise ≥ least) = q^least / (1 + q) for least ≥ 1."""
    one = 1 << bits
    at_lower, at_upper = exp_minus(least / scale, bits)
    ratio_lower, ratio_upper = exp_minus(1 / scale, bits)
    return (at_lower << bits) // (one + ratio_upper), -(-(at_upper << bits) // (one + ratio_lower))


def _tail_at_most(scale: Fraction, least: int, target: Fraction) -> bool:
    """Whether the tail is proved to be at most the target; a tie that 192 bits cannot decide counts as no."""
    return Fraction(_tail(scale, least, _BITS)[1], 1 << _BITS) <= target


def _in_epsilon(cost: Cost, step: str) -> bool:
    if cost.epsilon and cost.rho:
        raise UsageError(step, f"must be paid in ε or in ρ, not in both ({cost}).")
    if not cost.epsilon and not cost.rho:
        raise UsageError(
            step,
            "gets no share of the budget, so its noise would be infinite.",
            "Make fewer queries or raise the budget.",
        )
    return bool(cost.epsilon)


def _epsilon(cost: Cost, factor: int, step: str) -> Fraction:
    """ε of the cost, or √(factor · ρ) rounded down."""
    if _in_epsilon(cost, step):
        return Fraction(cost.epsilon, UNIT)
    # Rounded down: a smaller ε means more noise for the same ρ.
    return Fraction(math.isqrt(factor * cost.rho * (_ROOT_UNIT**2 // UNIT)), _ROOT_UNIT)


def _within(parameter: Fraction, largest: Fraction, step: str) -> Fraction:
    if parameter > largest:
        raise UsageError(
            step,
            "the noise would drown every count: the share of the budget is too small.",
            "Make fewer queries, bound the rows of a unit more tightly, or raise the budget.",
        )
    return parameter
