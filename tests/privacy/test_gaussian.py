"""Gaussian accounting of integer noise and residual tables, held against sums over all outcomes on small lattices.

Two independent checks of the theorem: exact distributions of whole adaptive runs are summed and compared with its
(ε, δ), and each step of its proof is computed by itself.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from understudy.domain import RESIDUAL_UNIT, ROUNDED_GRID, Clique, Distribution, ResidualTable, centred
from understudy.errors import UsageError
from understudy.privacy import gaussian
from understudy.privacy.composition import tight_epsilon
from understudy.privacy.cost import (
    DELTA_UNIT,
    UNIT,
    Budget,
    Cost,
    distribution_for,
    residual_distribution,
    rho_of_epsilon,
    score_distribution,
)
from understudy.privacy.gaussian import SMOOTHING, gaussian_delta, gaussian_epsilon, gaussian_rho, residual_shift
from understudy.privacy.ledger import require_claim
from understudy.privacy.randomizer import Request, SecureRandomizer, contrasts
from understudy.testing.replay import Exchange, Leak, check_noise

BUDGETS = [(0.1, 1e-9), (1.0, 1e-9), (1.0, 1e-3), (10.0, 1e-9), (3.0, 1e-15), (0.01, 1e-6)]


def lattice(variance: float, reach: int) -> np.ndarray:
    """P(z) of integer Gaussian noise for z = −reach … reach."""
    places = np.arange(-reach, reach + 1)
    weights = np.exp(-(places**2) / (2 * variance))
    return weights / weights.sum()


def delta_of(epsilon: float, rho: float | Fraction) -> float:
    """The theorem's δ."""
    found = gaussian_delta(Fraction(epsilon), Fraction(rho))
    assert found is not None
    return float(found)


def hockey_stick(one: np.ndarray, other: np.ndarray, epsilon: float) -> float:
    """The δ of two distributions at ε, in the worse direction."""
    return max(float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) for p, q in ((one, other), (other, one)))


@pytest.mark.parametrize(("epsilon", "rho"), list(itertools.product([0.05, 0.5, 1, 4], [0.02, 0.2, 1.5])))
def test_the_formula_is_that_of_a_normal_answer(epsilon: float, rho: float) -> None:
    shift = math.sqrt(2 * rho)
    expected = norm.cdf(shift / 2 - epsilon / shift) - math.exp(epsilon) * norm.cdf(-shift / 2 - epsilon / shift)
    assert delta_of(epsilon, rho) == pytest.approx(expected, rel=1e-6, abs=1e-16)


def test_the_formula_holds_far_in_the_tail_where_floats_cancel() -> None:
    # δ = ∫ (1 − e^(ε − loss)) of the density of the loss, which is N(ρ, 2ρ): positive terms, no difference of tails
    for epsilon, rho in ((1.0, 0.0165), (10.0, 1.18), (0.1, 1.98e-4)):

        def term(loss: float, epsilon: float = epsilon, rho: float = rho) -> float:
            return -math.expm1(epsilon - loss) * norm.pdf(loss, rho, math.sqrt(2 * rho))

        expected, _ = quad(term, epsilon, epsilon + 12 * math.sqrt(2 * rho), epsabs=0, epsrel=1e-10)
        assert delta_of(epsilon, rho) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_cost_and_claim_are_inverse_and_err_on_the_safe_side(epsilon: float, delta: float) -> None:
    rho = gaussian_rho(Fraction(epsilon), Fraction(delta))
    assert rho is not None
    assert delta_of(epsilon, rho) <= delta
    assert delta_of(epsilon, rho * Fraction(1001, 1000)) > delta
    back = gaussian_epsilon(rho, Fraction(delta))
    assert back is not None
    assert epsilon * (1 - 1e-6) < float(back) < epsilon * (1 + 1e-6)
    assert 1 < rho / rho_of_epsilon(Fraction(epsilon), Fraction(delta)) < 1.6


def test_it_agrees_with_the_summed_distributions_of_fixed_answers() -> None:
    """An independent way to the same number: exact losses of integer noise, summed for scales fixed beforehand."""
    delta = Fraction(1, 10**6)
    for count, variance in ((1, 40), (30, 900), (400, 9000)):
        summed = tight_epsilon((Fraction(variance + SMOOTHING),) * count, delta)
        assert summed is not None
        claimed = gaussian_epsilon(Fraction(count, 2 * variance), delta)
        assert summed <= float(claimed) <= summed * (1 + 3 * SMOOTHING / variance + 1e-3)


@pytest.mark.parametrize("rho", [0.02, 0.3, 2.0])
@pytest.mark.parametrize("moved", [1, 3])
def test_one_answer_never_tells_more_than_the_theorem(rho: float, moved: int) -> None:
    variance = moved**2 / (2 * rho) + SMOOTHING
    reach = math.ceil(14 * math.sqrt(variance)) + moved
    noise = lattice(variance, reach)
    shifted = np.roll(noise, moved)
    shifted[:moved] = 0
    for epsilon in (0.01, 0.2, 1.0, 3.0):
        assert hockey_stick(noise, shifted, epsilon) <= delta_of(epsilon, rho) + 1e-15


@pytest.mark.parametrize("rho", [0.3, 2.0, 20.0])
def test_a_rounded_count_tells_no_more_than_the_theorem(rho: float) -> None:
    """Also where noise is far below a row: the distribution of the whole number that leaves, with and without a row."""
    noise = distribution_for(Cost(rho=round(rho * UNIT)), 1, "step", currency="gaussian")
    reach = ROUNDED_GRID * math.ceil(9 * noise.scale + 1) + ROUNDED_GRID // 2
    fine = lattice(float(noise.parameter) * ROUNDED_GRID**2, reach)
    whole = fine.reshape(-1, ROUNDED_GRID).sum(axis=1)
    assert np.argmax(whole) == whole.size // 2
    without, with_row = np.append(whole, 0.0), np.append(0.0, whole)
    for epsilon in (0.01, 0.5, 2.0, 5.0):
        assert hockey_stick(without, with_row, epsilon) <= delta_of(epsilon, rho) + 1e-14


def test_rounded_noise_follows_its_distribution() -> None:
    runs = []
    noise = distribution_for(Cost(rho=UNIT // 5), 1, "step", currency="gaussian")
    for _ in range(4):
        exact = np.arange(4096, dtype=np.int64)
        request = Request("measure", "x", exact.size, noise, Fraction(1))
        runs.append([Exchange(request, exact, SecureRandomizer().add_noise(request, exact))])
    check_noise(runs, fewest=10_000)
    drawn = SecureRandomizer().add_noise(request, exact) - exact
    assert drawn.var() == pytest.approx(noise.variance, rel=0.08)
    assert abs(drawn.mean()) < 6 * math.sqrt(noise.variance / drawn.size)


def test_costs_that_depend_on_answers_tell_no_more_than_their_sum() -> None:
    """Two answers; the second's cost follows from the first, with the sum never above ρ. Every outcome is summed."""
    rho = 0.5
    first_rho = 0.2
    variance = 1 / (2 * first_rho) + SMOOTHING
    reach = 60
    first = lattice(variance, reach)
    second_costs = np.where(np.arange(-reach, reach + 1) > 1, rho - first_rho, 0.02)  # spends when it looks like x + 1
    tables = []
    for moved in (0, 1):
        joint = []
        for place, mass in zip(range(-reach, reach + 1), np.roll(first, moved), strict=True):
            noise = lattice(1 / (2 * second_costs[place + reach]) + SMOOTHING, 120)
            joint.append(mass * np.roll(noise, moved))
        tables.append(np.concatenate(joint))
    without, with_row = tables
    for epsilon in (0.1, 0.5, 1.0, 2.0, 3.0):
        assert hockey_stick(without, with_row, epsilon) <= delta_of(epsilon, rho) + 1e-14


def test_integer_noise_is_rounded_normal_noise_up_to_the_stated_factor() -> None:
    """Step 1 of the proof, for narrow rounding, where the factor can be seen in floats."""
    for square, variance, place in itertools.product((0.2, 0.35, 0.6), (2.0, 5.0), (0.0, 0.3)):
        bound = 2.1 * math.exp(-2 * math.pi**2 * square)

        def rounded(value: int, square: float = square, variance: float = variance, place: float = place) -> float:
            def density(normal: float) -> float:
                sums = sum(math.exp(-((one - normal) ** 2) / (2 * square)) for one in range(-30, 31))
                kernel = math.exp(-((value - normal) ** 2) / (2 * square)) / sums
                return float(norm.pdf(normal, place, math.sqrt(variance - square))) * kernel

            return float(quad(density, place - 14, place + 14, limit=400, points=[value])[0])

        weights = np.exp(-((np.arange(-40, 41) - place) ** 2) / (2 * variance))
        for value in (-2, 0, 3):
            ratio = rounded(value) / (weights[value + 40] / weights.sum())
            assert abs(math.log(ratio)) <= 4.2 * bound + 1e-8


def test_the_factor_of_all_entries_is_far_inside_the_slack() -> None:
    per_entry = 4.2 * 2.1 * math.exp(-2 * math.pi**2 * SMOOTHING)
    assert 2 * per_entry * 2**40 < float(gaussian._SLACK * gaussian.LEAST_EPSILON)


@pytest.mark.parametrize("shape", [(2,), (3,), (7,), (64,), (2, 2), (2, 3), (3, 3), (4, 9), (20, 20), (2, 500)])
def test_a_row_moves_residuals_by_the_stated_amount(shape: tuple[int, ...]) -> None:
    """Every way to take integers off rows and columns that treats equal cells alike, tried out."""
    least = RESIDUAL_UNIT**2 * math.prod(1 - 1 / size for size in shape)
    assert least <= residual_shift(shape) + 1e-9
    assert residual_shift(shape) <= 1.04 * least + 2
    row_moves = range(RESIDUAL_UNIT + 1)
    if len(shape) == 1:
        tried = min((RESIDUAL_UNIT - kept) ** 2 + (shape[0] - 1) * kept**2 for kept in row_moves)
        assert residual_shift(shape) == tried
        return
    rows, columns = shape
    found = []
    for row, column, rest in itertools.product(row_moves, row_moves, range(-8, 3)):
        moved = (RESIDUAL_UNIT - row - column) ** 2 + (rows - 1) * column**2 + (columns - 1) * (row + rest) ** 2
        found.append(moved + (rows - 1) * (columns - 1) * rest**2)
    if rows * columns >= 9:  # the mean of all is then at most 8 steps
        assert residual_shift(shape) >= min(found)
        assert residual_shift(shape) <= 1.01 * min(found)


def test_the_smallest_shift_is_that_of_a_vector_with_the_same_contrasts() -> None:
    """An explicit v for one row in a cell of a 3 × 4 table, and what is left of the row."""
    best = None
    row = np.zeros((3, 4), np.int64)
    row[1, 2] = RESIDUAL_UNIT
    for one, other, rest in itertools.product(range(40), range(40), range(-8, 1)):
        taken = np.full((3, 4), rest)
        taken[1, :] = one + rest
        taken[:, 2] = other
        taken[1, 2] = one + other
        left = row - taken
        assert np.array_equal(contrasts(taken.ravel(), (3, 4)), np.zeros(6))
        best = int((left**2).sum()) if best is None else min(best, int((left**2).sum()))
    assert residual_shift((3, 4)) == best


@given(st.integers(2, 5), st.integers(2, 6), st.integers(0, 2**32))
def test_contrasts_forget_row_and_column_sums_and_nothing_else(rows: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(-1000, 1000, (rows, columns))
    moved = table + rng.integers(-50, 50, (rows, 1)) + rng.integers(-50, 50, (1, columns))
    assert np.array_equal(contrasts(table.ravel(), (rows, columns)), contrasts(moved.ravel(), (rows, columns)))
    distribution = Distribution("gaussian", Fraction(1))
    answer = ResidualTable("x", ("a", "b"), (rows, columns), contrasts(table.ravel(), (rows, columns)), distribution)
    assert answer.residuals * RESIDUAL_UNIT == pytest.approx(centred(table.astype(float)), abs=1e-9)


@pytest.mark.parametrize("shape", [(2,), (2, 2)])
@pytest.mark.parametrize("rho", [0.3, 1.0])
def test_a_residual_is_as_private_as_it_costs_summed_over_all_outcomes(shape: tuple[int, ...], rho: float) -> None:
    """One contrast of two or four cells: its exact distribution with and without the row, by ε and by Rényi order."""
    noise = residual_distribution(Cost(rho=round(rho * UNIT)), shape, 1, "step", currency="gaussian")
    cells = math.prod(shape)
    one = lattice(float(noise.parameter), math.ceil(9 * noise.scale))
    contrast = one
    for _ in range(cells - 1):  # the noise is symmetric, so signs do not matter
        contrast = np.convolve(contrast, one)
    with_row = np.roll(contrast, RESIDUAL_UNIT)
    for epsilon in (0.05, 0.5, 1.0, 2.0):
        told = hockey_stick(contrast, with_row, epsilon)
        # Noise for a contrast is not wasted: nearly all of what is paid for is used.
        assert 0.97 * delta_of(epsilon, rho) - 1e-9 < told <= delta_of(epsilon, rho) + 1e-13
    inside = slice(RESIDUAL_UNIT, contrast.size - RESIDUAL_UNIT)
    for order in (1.5, 2.0, 4.0):
        terms = with_row[inside] ** order * contrast[inside] ** (1 - order)
        assert math.log(terms.sum()) / (order - 1) <= order * rho + 1e-9


def test_a_residual_of_three_codes_summed_over_all_outcomes() -> None:
    rho = 1.0
    noise = residual_distribution(Cost(rho=UNIT), (3,), 1, "step", currency="gaussian")
    reach = math.ceil(6 * noise.scale)
    one = lattice(float(noise.parameter), reach)
    # (Y_1 − Y_0, Y_2 − Y_0), mixed over Y_0; the row lies in cell 0 or in cell 1
    width = 4 * reach + 2 * RESIDUAL_UNIT + 1

    def joint(cell: int) -> np.ndarray:
        found = np.zeros((width, width))
        for base in range(-reach, reach + 1):
            moved = [RESIDUAL_UNIT * (cell == at) for at in range(3)]
            start = [width // 2 - reach + moved[at] - base - moved[0] for at in (1, 2)]
            part = one[base + reach] * np.outer(one, one)
            found[start[0] : start[0] + one.size, start[1] : start[1] + one.size] += part
        return found

    without = joint(-1)
    for cell, epsilon in itertools.product((0, 1), (0.2, 1.0, 2.0)):
        bound = delta_of(epsilon, rho)
        told = hockey_stick(without.ravel(), joint(cell).ravel(), epsilon)
        assert 0.97 * bound - 1e-7 < told <= bound + 1e-7


def test_noise_is_wider_by_the_smoothing_in_the_gaussian_currency_alone() -> None:
    cost = Cost(rho=UNIT // 100)
    plain, wide = distribution_for(cost, 2, "step"), distribution_for(cost, 2, "step", currency="gaussian")
    assert wide.parameter - plain.parameter == Fraction(SMOOTHING, ROUNDED_GRID**2)
    assert (plain.parameter, plain.grid, wide.grid) == (200, 1, ROUNDED_GRID)
    scores = [score_distribution(cost, 5, Fraction(3), "step", currency=one) for one in ("zcdp", "gaussian")]
    assert scores[1].parameter - scores[0].parameter == SMOOTHING
    residuals = [residual_distribution(cost, (4, 4), 2, "step", currency=one) for one in (None, "gaussian")]
    assert residuals[1].parameter - residuals[0].parameter == SMOOTHING
    assert residuals[0].parameter == Fraction(4 * residual_shift((4, 4)) * 100, 2)


@pytest.mark.parametrize(
    ("cost", "shape", "problem"),
    [
        (Cost(epsilon=UNIT), (2, 2), "paid in ρ"),
        (Cost(rho=UNIT), (2, 2, 2), "one or two columns"),
        (Cost(rho=UNIT), (1, 2), "two codes or more"),
        (Cost(), (2, 2), "no share"),
    ],
)
def test_residuals_that_have_no_cost_are_refused(cost: Cost, shape: tuple[int, ...], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        residual_distribution(cost, shape, 1, "step")


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_a_gaussian_budget_buys_more_and_claims_what_was_granted(epsilon: float, delta: float) -> None:
    budget = Budget(epsilon, delta)
    wide, narrow = budget.cost("gaussian"), budget.cost("zcdp")
    assert narrow.rho < wide.rho < 1.6 * narrow.rho
    claimed = budget.claim(wide, "gaussian")
    assert epsilon * (1 - 1e-7) <= claimed[0] <= epsilon
    assert claimed[1] == delta
    assert budget.claim(wide)[0] > epsilon  # as zCDP alone it would claim more
    assert budget.claim(Cost(rho=wide.rho // 2), "gaussian")[0] < 0.75 * epsilon
    require_claim(wide, budget, currency="gaussian")
    with pytest.raises(UsageError, match="does not give the claimed"):
        require_claim(wide, budget)
    with pytest.raises(UsageError, match="does not give the claimed"):
        require_claim(Cost(rho=wide.rho + 1), budget, currency="gaussian")


def test_a_gaussian_budget_has_no_other_parts() -> None:
    with pytest.raises(UsageError, match="no steps in pure ε"):
        Budget(1.0, 1e-6).cost("gaussian", pure=UNIT // 2)
    with pytest.raises(UsageError, match="no steps in pure ε"):
        Budget(1.0, 1e-6).cost("gaussian", DELTA_UNIT // 10**7)
    with pytest.raises(UsageError, match="spends ρ"):
        Budget(1.0, 1e-6).claim(Cost(epsilon=1, rho=1), "gaussian")


SHAPES = [(3,), (2, 2), (5, 7), (12, 3)]


def residual_runs(factor: float) -> list[list[Exchange]]:
    """Residual answers with the noise that was asked for, times `factor`."""
    runs = []
    for _ in range(30):
        log = []
        for shape in SHAPES:
            asked = residual_distribution(Cost(rho=UNIT // 50), shape, 1, "step")
            drawn = Distribution("gaussian", asked.parameter * Fraction(factor) ** 2)
            exact = np.arange(math.prod(shape), dtype=np.int64) * 1000
            request, actual = (
                Request("residuals", "x", exact.size, one, Fraction(1), shape=shape) for one in (asked, drawn)
            )
            log.append(Exchange(request, exact, SecureRandomizer().add_residual_noise(actual, exact)))
        runs.append(log)
    return runs


def test_residual_noise_follows_its_distribution_and_half_of_it_is_noticed() -> None:
    check_noise(residual_runs(1.0), fewest=1000)
    with pytest.raises(Leak, match="distribution"):
        check_noise(residual_runs(0.5), fewest=1000)


def test_residuals_of_a_wrong_shape_are_refused() -> None:
    request = Request("residuals", "x", 4, Distribution("gaussian", Fraction(9)), Fraction(1), shape=(2, 3))
    with pytest.raises(UsageError, match="announced number of cells"):
        SecureRandomizer().add_residual_noise(request, np.zeros(4, np.int64))


def test_nothing_of_a_residual_answer_follows_from_row_and_column_sums() -> None:
    """A table that is a sum of rows and columns gives noise around 0, whatever its counts."""
    exact = (np.arange(5)[:, None] * 10**6 + np.arange(4)[None, :] * 10**7).astype(np.int64)
    distribution = residual_distribution(Cost(rho=UNIT), (5, 4), 1, "step")
    request = Request("residuals", "x", 20, distribution, Fraction(1), shape=(5, 4))
    noisy = SecureRandomizer().add_residual_noise(request, exact.ravel())
    assert np.abs(noisy).max() < 2 * 9 * distribution.scale
    answer = ResidualTable("x", tuple(Clique(("a", "b"))), (5, 4), noisy, distribution)
    assert answer.variance == pytest.approx(distribution.variance / RESIDUAL_UNIT**2)


@pytest.mark.parametrize("wrong", [0.5, 0.999])
def test_a_search_that_errs_promises_nothing_that_does_not_hold(wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Floats only say where to look: what they find is held against the decimals, or nothing is said."""
    about = gaussian._about
    monkeypatch.setattr(gaussian, "_about", lambda epsilon, rho: wrong * about(epsilon, rho))
    delta = Fraction(1, 10**6)
    epsilon, rho = gaussian_epsilon(Fraction(1, 20), delta), gaussian_rho.__wrapped__(Fraction(1), delta)
    for found in (epsilon and gaussian_delta(epsilon, Fraction(1, 20)), rho and gaussian_delta(Fraction(1), rho)):
        assert found is None or found <= delta
