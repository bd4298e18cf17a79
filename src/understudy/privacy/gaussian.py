"""Gaussian differential privacy of integer noise: (ε, δ) for any number of answers, chosen and weighed adaptively.

Neighbours differ by the rows of one unit, at most k. An answer is a vector of integers, public queries of the table,
to each entry of which integer Gaussian noise P(z) ∝ e^(−z²/(2σ²)) is added. Between two neighbours the vector of
answer i moves by a vector of integers d_i with |d_i| ≤ Δ_i. It *costs* ρ_i if

    σ_i² ≥ Δ_i²/(2ρ_i) + SMOOTHING.

Theorem. Let queries and costs be chosen one after the other, each by public facts and earlier answers, so that the
costs never add up to more than ρ, and let all answers together have at most 2⁴⁰ entries. Then all answers together
satisfy (ε, δ) for every ε ≥ 10⁻⁹ with

    δ = Φ(μ/2 − ε'/μ) − e^ε'·Φ(−μ/2 − ε'/μ),      μ² = 2ρ,      ε' = (1 − 10⁻⁹)·ε,        raised by one part in 10⁹.

Proof. *1. One entry is as good as continuous.* Let ϱ_s(x) = e^(−x²/(2s²)), and s² = SMOOTHING. For every real w, by
Poisson summation,

    Σ_{y ∈ ℤ} ϱ_s(y − w) = s·√(2π)·(1 + 2·Σ_{n ≥ 1} e^(−2π²s²n²)·cos 2πnw),

which lies within s·√(2π)·(1 ± c), c = 2.1·e^(−2π²s²). Draw w from the normal distribution N(x, σ² − s²) and then an
integer y with probability ϱ_s(y − w)/Σ_z ϱ_s(z − w). Normal densities convolve, ∫ N(w; x, σ² − s²)·ϱ_s(y − w) dw =
(s/σ)·ϱ_σ(y − x), so the probability of y is ϱ_σ(y − x)/(σ·√(2π)) up to a factor within (1 ± c)^±1. Integer noise gives
y the probability ϱ_σ(y − x)/Σ_z ϱ_σ(z), and Σ_z ϱ_σ(z) is σ·√(2π) within (1 ± c) because σ ≥ s. So the two
probabilities differ by a factor within e^(±4.2·c), for whatever x: integer noise is continuous normal noise of variance
σ² − s², followed by rounding that does not know x, up to this factor.

*2. Many entries.* Replace every entry by its continuous twin, one after the other. The probability of any transcript
changes by a factor of at most e^(±η), η = 4.2·c·2⁴⁰, however queries depend on earlier answers. For s² = 4 that is
below 10⁻²⁰. If the twins satisfy (ε', δ'), the answers satisfy (ε' + 2η, e^η·δ').

*3. The twins.* Fix two neighbours, and let μ_i² = |d_i|²/(σ_i² − s²) ≤ 2ρ_i, which is known before answer i is drawn.
A normal vector moved by d_i has privacy loss (log of the ratio of densities, under the first table) μ_i²/2 + μ_i·Z_i
with Z_i standard normal, independent of all that was answered before. Let W be a Brownian motion with drift ½ and give
answer i its increment over the next μ_i² of time: the loss of the transcript is W(t), t = Σ μ_i² ≤ 2ρ = μ². Ask one
answer more, whose loss is the increment from t to μ²: that can only help whoever wants to tell the tables apart. Then
the loss is W(μ²), which is normal with mean μ²/2 and variance μ² whatever was asked. That is the loss of one normal
answer moved by μ times its standard deviation, and δ'(ε') = E[(1 − e^(ε' − loss))⁺] is the formula above (Balle and
Wang 2018). Removing a unit is the same with the tables exchanged. ∎

(That continuous Gaussian answers compose fully adaptively is known: Smith and Thakurta 2022; Koskela, Tobaben and
Honkela 2023. That an integer Gaussian is a rounded continuous one is the convolution lemma of lattice cryptography,
Peikert 2010.)

The same answers are ρ-zCDP as well, because σ_i² ≥ Δ_i²/(2ρ_i) (Canonne, Kamath, Steinke 2020). So a ledger that adds
up ρ is charged the same ρ, and only the (ε, δ) of the run itself is read off the better formula: at δ = 10⁻⁹ it allows
about a tenth more ρ. It holds for Gaussian answers alone; the curator refuses any other in such a run.

Counts are put on the lattice of 1/ROUNDED_GRID rows before noise is added, where SMOOTHING squared steps are a
thousandth of a squared row, and their noisy sums are rounded to whole rows: post-processing of an answer as above.

Residual tables
---------------
What is new in the table of a pair, once its columns are known, are its *residuals*: counts less the means of their row
and column plus the mean of all (Xiao, He, Zhang, Kifer 2023, measure bases of these with continuous noise). The curator
draws integer noise Z on the lattice of 1/RESIDUAL_UNIT rows, Y = RESIDUAL_UNIT·X + Z, and releases only the contrasts

    T(Y)_ij = Y_ij − Y_i0 − Y_0j + Y_00.

T forgets row and column sums: T(Y + v) = T(Y) for every v_ij = r_i + c_j. So for neighbours with tables X and X + D the
answer T(RESIDUAL_UNIT·(X + D) + Z) has the distribution of T(RESIDUAL_UNIT·X + (RESIDUAL_UNIT·D − v) + Z) for *every*
such v of integers: one row moves the lattice vector by no more than the least |RESIDUAL_UNIT·D − v|, not by
RESIDUAL_UNIT. `residual_shift` gives a v for a single row and the exact square of what is left, close to
RESIDUAL_UNIT²·(1 − 1/a)·(1 − 1/b) for a × b codes, the least that real numbers allow. k rows move it by at most k times
as much (triangle inequality). What T releases is a function of Y = noise on a vector so moved: theorem and zCDP hold as
they stand. A single column is the same with T(Y)_i = Y_i − Y_0 and v constant.

Sums with noise are cut at ±2⁶¹, and T of a cut sum is not invariant. Scales are at most 2⁵⁰ here and counts below
2⁵⁹, so that a cut has probability below e^(−10⁵): far inside of the raised δ.

Numbers. δ is computed in decimals with 60 digits beyond all cancellation, from series of positive terms.
"""

import math
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from understudy.domain import RESIDUAL_UNIT

SMOOTHING = 4
"""What the variance of integer Gaussian noise has beyond that of its twin, in squared steps of its lattice."""
LEAST_EPSILON = Fraction(1, 10**9)
_SLACK = Fraction(1, 10**9)
_DIGITS = 60
_LARGEST_PLACE = 30.0
"""Places of the normal distribution beyond which nothing is computed: ε or ρ is then absurd."""


def gaussian_delta(epsilon: Fraction, rho: Fraction) -> Fraction | None:
    """A δ for which Gaussian answers of that cost satisfy (ε, δ), rounded up; None where it is not computed.

    >>> round(float(gaussian_delta(Fraction(1), Fraction(1, 2))), 6)  # moved by one standard deviation
    0.126937
    """
    if epsilon < LEAST_EPSILON or rho <= 0:
        return None
    shift = math.sqrt(2 * float(rho))
    if shift < 1e-6 or float(epsilon) / shift + shift / 2 > _LARGEST_PLACE:
        return None
    exact = _profile(epsilon * (1 - _SLACK), rho)
    return exact * (1 + _SLACK)


@lru_cache(maxsize=256)
def gaussian_rho(epsilon: Fraction, delta: Fraction) -> Fraction | None:
    """About the largest cost ρ of Gaussian answers that satisfy (ε, δ), rounded down; None where it is not computed.

    The search runs in floats; what it returns has been held against `gaussian_delta`.
    """
    # At the upper end μ/2 − ε/μ is above 8, so no δ that anybody states allows so much.
    low, high = 0.0, 4 * (float(epsilon) + 40)
    for _ in range(90):
        middle = (low + high) / 2
        low, high = (middle, high) if _about(float(epsilon), middle) <= float(delta) else (low, middle)
    # The floats may end on the wrong side by their last digits: step back by 10⁻⁸, then by ten times as much.
    for step in range(4):
        rho = Fraction(low) * (1 - Fraction(10**step, 10**8))
        found = gaussian_delta(epsilon, rho)
        if found is not None and found <= delta:
            return rho
    return None


@lru_cache(maxsize=256)
def gaussian_epsilon(rho: Fraction, delta: Fraction) -> Fraction | None:
    """An ε that Gaussian answers of that cost satisfy together with δ, rounded up; None where it is not computed."""
    low, high = 0.0, 1e6
    for _ in range(90):
        middle = (low + high) / 2
        low, high = (low, middle) if _about(middle, float(rho)) <= float(delta) else (middle, high)
    for step in range(4):
        epsilon = max(Fraction(high) * (1 + Fraction(10**step, 10**8)), LEAST_EPSILON)
        found = gaussian_delta(epsilon, rho)
        if found is not None and found <= delta:
            return epsilon
    return None


def residual_shift(shape: tuple[int, ...]) -> int:
    """Square of how far one row moves a residual table, in steps of its lattice: an upper bound that is attained.

    >>> residual_shift((2,)) / RESIDUAL_UNIT**2
    0.5
    >>> round(residual_shift((3, 4)) / RESIDUAL_UNIT**2, 4)  # (1 − 1/3)·(1 − 1/4) = 0.5
    0.5002
    """
    if len(shape) == 1:
        (codes,) = shape
        kept = _rounded(RESIDUAL_UNIT, codes)
        return (RESIDUAL_UNIT - kept) ** 2 + (codes - 1) * kept**2
    rows, columns = shape
    # v is `row + column` in the cell that moves, `row + rest` along its row, `column` along its column, else `rest`.
    best = RESIDUAL_UNIT**2
    # Every whole v gives a valid bound, so trying those around the best real one can miss the least, never the truth.
    for rest in {0, -_rounded(RESIDUAL_UNIT, rows * columns)}:
        for row in _around(Fraction(RESIDUAL_UNIT, columns)):
            for column in _around(Fraction(RESIDUAL_UNIT, rows) + rest):
                moved = (RESIDUAL_UNIT - row - column) ** 2 + (rows - 1) * column**2
                moved += (columns - 1) * (row + rest) ** 2 + (rows - 1) * (columns - 1) * rest**2
                best = min(best, moved)
    return best


def _rounded(number: int, parts: int) -> int:
    return (2 * number + parts) // (2 * parts)


def _around(place: Fraction) -> range:
    return range(math.floor(place), math.floor(place) + 2)


def _about(epsilon: float, rho: float) -> float:
    """The profile in floats, from below and above alike: where to look."""
    from scipy.special import log_ndtr

    shift = math.sqrt(2 * rho)
    if not shift:
        return 0.0
    first = float(log_ndtr(shift / 2 - epsilon / shift))
    second = epsilon + float(log_ndtr(-shift / 2 - epsilon / shift))
    return math.exp(first) * -math.expm1(min(second - first, 0.0))


def _profile(epsilon: Fraction, rho: Fraction) -> Fraction:
    """Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) for μ² = 2ρ, rounded up, exact to dozens of digits."""
    furthest = float(epsilon) / math.sqrt(2 * float(rho)) + math.sqrt(2 * float(rho)) / 2
    # Each tail is a difference of numbers near 1 that cancels about furthest²/2 / ln 10 digits.
    digits = _DIGITS + math.ceil(furthest**2)
    with localcontext(Context(prec=digits, Emax=10**9, Emin=-(10**9))):
        shift = (2 * Decimal(rho.numerator) / Decimal(rho.denominator)).sqrt()
        budget = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
        near, far = shift / 2 - budget / shift, -shift / 2 - budget / shift
        found = _below(near, digits) - budget.exp() * _below(far, digits)
        # e^ε is below 10^(furthest²/4), so what is rounded here is far below the 40th digit.
        found += abs(found) * Decimal(10) ** -30 + Decimal(10) ** -40
        raised = Context(prec=30, rounding=ROUND_CEILING).plus(found)
    return min(Fraction(raised), Fraction(1))


def _below(place: Decimal, digits: int) -> Decimal:
    """Φ(place): ½ + φ(x)·(x + x³/3 + x⁵/(3·5) + …), a series of terms of one sign."""
    square, term, total, odd = place * place, place, place, 1
    while term and abs(term) > abs(total) * Decimal(10) ** -(digits + 2):
        odd += 2
        term = term * square / odd
        total += term
    return Decimal("0.5") + (-square / 2).exp() / (2 * _pi(digits)).sqrt() * total


@lru_cache(maxsize=8)
def _pi(digits: int) -> Decimal:
    """π by Machin's formula."""
    with localcontext(Context(prec=digits + 10)):
        return 4 * (4 * _arctangent(5, digits) - _arctangent(239, digits))


def _arctangent(inverse: int, digits: int) -> Decimal:
    power = total = Decimal(1) / inverse
    odd, sign = 1, 1
    while power > Decimal(10) ** -(digits + 10):
        power /= inverse * inverse
        odd, sign = odd + 2, -sign
        total += sign * power / odd
    return total
