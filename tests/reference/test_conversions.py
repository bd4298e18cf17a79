"""What the package claims against the exact number: never less, and hardly more."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.reference import conversions
from tests.reference.noise import decimal
from understudy.domain import RESIDUAL_UNIT, ROUNDED_GRID
from understudy.privacy.composition import tight_epsilon, tight_factor
from understudy.privacy.cost import (
    DELTA_UNIT,
    UNIT,
    Budget,
    Cost,
    distribution_for,
    epsilon_of_rho,
    residual_distribution,
    rho_of_epsilon,
    score_distribution,
)
from understudy.privacy.gaussian import SMOOTHING, gaussian_delta, gaussian_epsilon, gaussian_rho, residual_shift


def powers(low: float, high: float) -> st.SearchStrategy[Fraction]:
    """Numbers between two powers of ten, as people write them."""
    return st.floats(low, high).map(lambda place: Fraction(f"{10**place:.6g}"))


EPSILONS, DELTAS, RHOS = powers(-3, 2), powers(-15, -1), powers(-8, 2)
SMALL = Decimal(10) ** -9


@settings(max_examples=20, deadline=None)
@given(RHOS, DELTAS)
def test_epsilon_of_rho_is_the_least_over_all_orders_rounded_up(rho: Fraction, delta: Fraction) -> None:
    least, found = conversions.least_epsilon_of_rho(rho, delta), decimal(epsilon_of_rho(rho, delta))
    assert least <= found <= least * (1 + SMALL) + SMALL**2


@settings(max_examples=20, deadline=None)
@given(EPSILONS, DELTAS)
def test_rho_of_epsilon_is_the_largest_over_all_orders_rounded_down(epsilon: Fraction, delta: Fraction) -> None:
    most, found = conversions.largest_rho_of_epsilon(epsilon, delta), decimal(rho_of_epsilon(epsilon, delta))
    assert most * (1 - SMALL) <= found <= most


@settings(max_examples=12, deadline=None)
@given(EPSILONS, DELTAS)
def test_some_order_proves_the_delta_of_what_a_budget_buys(epsilon: Fraction, delta: Fraction) -> None:
    rho = rho_of_epsilon(epsilon, delta)
    assume(rho > 0)
    # α = ε/(2ρ) is nearly the best order for small ρ; around it one proves nearly δ.
    near = Decimal(float(epsilon / rho) / 2)
    orders = [1 + near * Decimal(2) ** (Decimal(place) / 32) for place in range(-128, 65)]
    proved = min(conversions.zcdp_delta_at(order, rho, epsilon) for order in orders)
    assert proved <= decimal(delta) * Decimal("1.02")


@pytest.mark.parametrize(
    ("epsilon", "delta", "rho"),
    [
        ("1", "1e-6", 0.0243560),
        ("1", "1e-9", 0.0149731),
        ("1", "1e-3", 0.0593902),
        ("0.3", "2.2820544e-12", 0.00107131),
        ("8", "2.2820544e-12", 0.577246),
    ],
)
def test_the_reference_has_the_numbers_of_the_design(epsilon: str, delta: str, rho: float) -> None:
    assert float(conversions.largest_rho_of_epsilon(Fraction(epsilon), Fraction(delta))) == pytest.approx(rho, rel=1e-5)


@settings(max_examples=12, deadline=None)
@given(powers(-1.5, 1), powers(-12, -2), st.integers(1, 4))
def test_a_release_at_the_whole_budget_keeps_to_its_claim(epsilon: Fraction, delta: Fraction, rows: int) -> None:
    """The exact δ of integer noise on one table, moved by all rows of a unit, in the currencies of Gaussian noise."""
    budget = Budget(float(epsilon), float(delta))
    cost = budget.cost("zcdp")
    variance = distribution_for(cost, rows, "measure").parameter
    assume(variance < 400)
    claimed, beside = budget.claim(cost)
    found = conversions.exact_delta([Fraction(variance)], [rows], Fraction(repr(claimed)))
    assert found <= decimal(Fraction(repr(beside)))
    assert found > decimal(Fraction(repr(beside))) / 200  # and is not wasteful: the tight conversion is this good


PLANS = st.lists(st.sampled_from([Fraction(3, 2), Fraction(2), Fraction(9, 2), Fraction(8)]), min_size=1, max_size=3)


@settings(max_examples=7, deadline=None)
@given(PLANS, powers(-9, -2))
def test_the_tight_claim_of_a_fixed_plan_is_never_below_the_exact_one(
    variances: list[Fraction], delta: Fraction
) -> None:
    found = tight_epsilon(tuple(variances), delta)
    assert found is not None
    exact = conversions.exact_delta(variances, [1] * len(variances), Fraction(found))
    assert exact <= decimal(delta)
    less = conversions.exact_delta(variances, [1] * len(variances), Fraction(found) * Fraction(997, 1000))
    assert less > decimal(delta), "a thousandth above the exact ε is promised; three were granted"


@settings(max_examples=6, deadline=None)
@given(st.lists(st.sampled_from([Fraction(4), Fraction(9)]), min_size=1, max_size=2), powers(-7, -3))
def test_a_tight_factor_shrinks_noise_no_further_than_the_budget(variances: list[Fraction], delta: Fraction) -> None:
    rho = sum((Fraction(1, 2) / variance for variance in variances), Fraction(0))
    epsilon = epsilon_of_rho(rho, delta)
    factor = tight_factor(tuple(variances), epsilon, delta)
    assert factor > 1
    shrunk = [variance / factor for variance in variances]
    assert conversions.exact_delta(shrunk, [1] * len(shrunk), epsilon) <= decimal(delta)
    further = [variance / (factor * Fraction(103, 100)) for variance in variances]
    assert conversions.exact_delta(further, [1] * len(shrunk), epsilon) > decimal(delta)


@settings(max_examples=15, deadline=None)
@given(powers(-2, 1.5), powers(-5, 1))
def test_gaussian_delta_is_the_profile_rounded_up(epsilon: Fraction, rho: Fraction) -> None:
    found = gaussian_delta(epsilon, rho)
    assume(found is not None)
    exact = conversions.gaussian_delta(epsilon, rho)
    assert exact <= decimal(found)
    assert decimal(found) <= exact * (1 + Decimal(10) ** -5) + Decimal(10) ** -39


@settings(max_examples=12, deadline=None)
@given(powers(-2, 1.5), powers(-12, -2))
def test_gaussian_rho_and_epsilon_stay_on_the_safe_side(epsilon: Fraction, delta: Fraction) -> None:
    rho = gaussian_rho(epsilon, delta)
    assume(rho is not None)
    assert rho is not None
    assert conversions.gaussian_delta(epsilon, rho) <= decimal(delta)
    assert conversions.gaussian_delta(epsilon, rho * Fraction(1000001, 1000000)) > decimal(delta)
    back = gaussian_epsilon(rho, delta)
    assert back is not None
    assert conversions.gaussian_delta(back, rho) <= decimal(delta)
    assert back <= epsilon * Fraction(1000001, 1000000)


@settings(max_examples=6, deadline=None)
@given(powers(-0.7, 0.7), powers(-6, -2), st.sampled_from([(1,), (2, 1), (1, 1, 3)]), st.integers(1, 2))
def test_integer_answers_accounted_as_gaussian_keep_to_the_claim(
    epsilon: Fraction, delta: Fraction, weights: tuple[int, ...], rows: int
) -> None:
    """Exact δ of a whole plan on the fine lattice, each answer moved by all rows of a unit."""
    budget = Budget(float(epsilon), float(delta))
    parts = budget.cost("gaussian").split([float(weight) for weight in weights])
    noise = [distribution_for(part, rows, "measure", currency="gaussian") for part in parts]
    assert {found.grid for found in noise} == {ROUNDED_GRID}
    spent = sum(parts, Cost())
    for part, found in zip(parts, noise, strict=True):
        assert found.parameter == Fraction(rows**2 * UNIT, 2 * part.rho) + Fraction(SMOOTHING, ROUNDED_GRID**2)
    # On the coarse lattice the same shift costs at least as much: noise of the same variance knows fewer places.
    coarse = [Fraction(found.parameter) - Fraction(SMOOTHING, ROUNDED_GRID**2) for found in noise]
    assume(min(coarse) > 1 and max(coarse) < 60)
    claimed, beside = budget.claim(spent, "gaussian")
    normal = conversions.gaussian_delta(Fraction(repr(claimed)), sum(Fraction(rows**2) / (2 * one) for one in coarse))
    assert normal <= decimal(Fraction(repr(beside)))
    assert claimed <= float(epsilon)


@settings(max_examples=6, deadline=None)
@given(
    st.integers(4, 12),
    st.integers(1, 3),
    st.lists(st.sampled_from([40, 90, 260]), min_size=1, max_size=2),
    powers(-1, 0),
)
def test_smoothed_integer_noise_is_no_worse_than_normal_noise(
    smoothing: int, move: int, coarse: list[int], epsilon: Fraction
) -> None:
    """The theorem itself, on lattices small enough to sum: σ² ≥ Δ²/(2ρ) + 4 gives the δ of ρ as normal noise."""
    variances = [Fraction(one * move**2, 40) * 6 + smoothing for one in coarse]
    rho = sum(Fraction(move**2) / (2 * (variance - SMOOTHING)) for variance in variances)
    exact = conversions.exact_delta(variances, [move] * len(variances), epsilon)
    assert exact <= conversions.gaussian_delta(epsilon, rho) * (1 + Decimal(10) ** -9)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, UNIT), st.integers(0, 10 * UNIT), powers(-9, -3))
def test_claims_of_mixed_runs_are_the_smaller_of_two_bounds(pure: int, rho: int, delta: Fraction) -> None:
    budget = Budget(1e5, float(delta))
    claimed, beside = budget.claim(Cost(epsilon=pure, rho=rho + 1))
    first = conversions.least_epsilon_of_rho(
        Fraction(rho + 1, UNIT) + Fraction(pure, UNIT) ** 2 / 2, Fraction(repr(beside))
    )
    second = decimal(Fraction(pure, UNIT)) + conversions.least_epsilon_of_rho(
        Fraction(rho + 1, UNIT), Fraction(repr(beside))
    )
    assert (
        min(first, second) <= decimal(Fraction(repr(claimed))) <= min(first, second) * (1 + SMALL) + Decimal(10) ** -11
    )
    assert beside >= float(delta) * (1 - 1e-12)


@settings(max_examples=7, deadline=None)
@given(powers(-0.5, 0.5), st.fractions(2, 20, max_denominator=5), powers(-7, -2))
def test_mixed_claims_hold_for_the_worst_pure_answer(pure: Fraction, variance: Fraction, delta: Fraction) -> None:
    spent = Cost(epsilon=math.ceil(pure * UNIT), rho=math.ceil(UNIT / (2 * variance)))
    claimed, beside = Budget(1e5, float(delta)).claim(spent)
    assert conversions.mixed_delta(pure, variance, Fraction(repr(claimed))) <= decimal(Fraction(repr(beside)))


@settings(max_examples=30)
@given(st.integers(0, 10**15), st.integers(0, 10**15), st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_shares_are_floors_of_the_exact_ones(epsilon: int, rho: int, weights: list[int]) -> None:
    assume(any(weights))
    parts = Cost(epsilon, rho, 7).split([float(weight) for weight in weights])
    for part, weight in zip(parts, weights, strict=True):
        assert part.epsilon == epsilon * weight // sum(weights)
        assert part.rho == rho * weight // sum(weights)
        assert part.delta == 0


@settings(max_examples=30)
@given(st.floats(1e-9, 1e5), st.floats(1e-15, 0.5))
def test_budgets_are_read_as_written_and_rounded_down(epsilon: float, delta: float) -> None:
    budget = Budget(epsilon, delta)
    assert budget.epsilon_units == Fraction(repr(epsilon)) * UNIT // 1
    assert budget.delta_units == Fraction(repr(delta)) * DELTA_UNIT // 1
    assert budget.cost("pure") == Cost(epsilon=budget.epsilon_units)


@settings(max_examples=20, deadline=None)
@given(st.floats(1e-3, 50), powers(-12, -3), st.integers(0, 10**9), st.floats(0, 0.9))
def test_what_a_budget_buys_is_the_conversion_of_what_is_left(
    epsilon: float, delta: Fraction, failing: int, part: float
) -> None:
    budget = Budget(epsilon, float(delta))
    assume(failing < budget.delta_units)
    pure = int(part * budget.epsilon_units)
    cost = budget.cost("zcdp", failing, pure=pure)
    left = Fraction(budget.delta_units - failing, DELTA_UNIT)
    most = conversions.largest_rho_of_epsilon(Fraction(budget.epsilon_units - pure, UNIT), left) * UNIT
    assert (cost.epsilon, cost.delta) == (pure, failing)
    assert most * (1 - SMALL) - 1 <= cost.rho <= most
    gaussian = budget.cost("gaussian")
    exact = conversions.gaussian_delta(Fraction(budget.epsilon_units, UNIT), Fraction(max(gaussian.rho, 1), UNIT))
    zcdp = conversions.largest_rho_of_epsilon(
        Fraction(budget.epsilon_units, UNIT), Fraction(budget.delta_units, DELTA_UNIT)
    )
    assert exact <= decimal(Fraction(budget.delta_units, DELTA_UNIT)) or gaussian.rho <= zcdp * UNIT


@settings(max_examples=30)
@given(
    st.integers(10**3, 10**13),
    st.integers(1, 6),
    st.integers(1, 50),
    st.fractions(Fraction(1, 7), 9, max_denominator=9),
)
def test_noise_pays_for_the_whole_unit_and_no_more(units: int, rows: int, options: int, moved: Fraction) -> None:
    epsilon, rho = Fraction(units, UNIT), Fraction(units, UNIT)
    assert distribution_for(Cost(epsilon=units), rows, "x").parameter == rows / epsilon
    assert distribution_for(Cost(rho=units), rows, "x").parameter == Fraction(rows**2) / (2 * rho)
    assert score_distribution(Cost(epsilon=units), options, moved, "x").parameter == options * moved / epsilon
    assert score_distribution(Cost(rho=units), options, moved, "x").parameter == options * moved**2 / (2 * rho)
    wider = score_distribution(Cost(rho=units), options, moved, "x", currency="gaussian")
    assert wider.parameter == options * moved**2 / (2 * rho) + SMOOTHING
    laplace = distribution_for(Cost(rho=units), rows, "x", laplace=True)
    assert (rows / Fraction(laplace.parameter)) ** 2 / 2 <= rho  # ε-DP is ε²/2-zCDP
    assert (rows / Fraction(laplace.parameter) + Fraction(1, 10**17)) ** 2 / 2 > rho


def least_moved(rows: int, columns: int) -> int:
    """How far, squared, one row moves a residual table: by trial of row and column terms, with loops over all cells."""
    best = RESIDUAL_UNIT**2
    for rest in {0, -round(RESIDUAL_UNIT / (rows * columns))}:
        for row in range(RESIDUAL_UNIT // columns - 1, RESIDUAL_UNIT // columns + 3):
            for column in range(RESIDUAL_UNIT // rows - 3, RESIDUAL_UNIT // rows + 3):
                total = 0
                for at in range(rows):
                    for place in range(columns):
                        left = RESIDUAL_UNIT * (at == place == 0)
                        total += (left - (row if at == 0 else rest) - (column if place == 0 else 0)) ** 2
                best = min(best, total)
    return best


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 2), (3, 3), (4, 3), (2, 9), (7, 5), (12, 2), (9, 11)])
def test_a_residual_table_moves_as_far_as_said(shape: tuple[int, int]) -> None:
    rows, columns = shape
    real = Fraction(RESIDUAL_UNIT**2) * (1 - Fraction(1, rows)) * (1 - Fraction(1, columns))
    assert real <= residual_shift(shape) <= least_moved(rows, columns)
    assert residual_shift(shape) <= real * Fraction(102, 100)


@given(st.integers(2, 60))
def test_a_residual_column_moves_as_far_as_said(codes: int) -> None:
    tried = ((RESIDUAL_UNIT - kept) ** 2 + (codes - 1) * kept**2 for kept in range(RESIDUAL_UNIT + 1))
    assert residual_shift((codes,)) == min(tried)


@given(st.integers(1, 10**12), st.integers(1, 5), st.sampled_from([(2,), (5,), (2, 2), (4, 6)]))
def test_noise_of_residuals_pays_for_the_whole_unit(units: int, rows: int, shape: tuple[int, ...]) -> None:
    found = residual_distribution(Cost(rho=units), shape, rows, "x")
    assert rows**2 * residual_shift(shape) / (2 * Fraction(found.parameter)) == Fraction(units, UNIT)
    wider = residual_distribution(Cost(rho=units), shape, rows, "x", currency="gaussian")
    assert wider.parameter - found.parameter == SMOOTHING
