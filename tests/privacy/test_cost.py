"""Costs are integers rounded against us: shares never exceed the whole, claims never fall below the truth."""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.domain import Distribution
from understudy.errors import UsageError
from understudy.privacy.cost import (
    DELTA_UNIT,
    MOST_KEPT,
    UNIT,
    Budget,
    Cost,
    check_sparse,
    discovery_threshold,
    distribution_for,
    epsilon_of_rho,
    growth_rule,
    rho_of_epsilon,
    score_distribution,
    selection_rate,
)

COSTS = st.builds(Cost, *(st.integers(0, 10**15) for _ in range(3)))


@given(COSTS, st.lists(st.floats(0, 1e6), min_size=1, max_size=20).filter(any))
def test_parts_never_add_up_to_more_than_the_whole(cost: Cost, weights: list[float]) -> None:
    parts = cost.split(weights)
    total = sum(parts, Cost())
    assert total.fits(cost)
    assert cost.epsilon - total.epsilon <= len(weights)
    assert total.delta == 0
    for weight, part in zip(weights, parts, strict=True):
        assert part.epsilon <= cost.epsilon * Fraction(weight) / sum(map(Fraction, weights)) < part.epsilon + 1


@given(COSTS, COSTS)
def test_adding_and_taking_away(first: Cost, second: Cost) -> None:
    assert (first + second) - second == first
    assert first.fits(first + second)
    if (second.epsilon, second.rho, second.delta) != (0, 0, 0):
        assert not (first + second).fits(first)


@pytest.mark.parametrize("bad", [-1, 1.0, True, "1", None])
def test_units_are_whole_numbers(bad: object) -> None:
    for name in ("epsilon", "rho", "delta"):
        with pytest.raises(UsageError, match=name):
            Cost(**{name: bad})  # type: ignore[arg-type]


@pytest.mark.parametrize("fraction", [-0.1, 1.1, math.nan, math.inf])
def test_shares_outside_the_unit_interval_are_refused(fraction: float) -> None:
    with pytest.raises(UsageError, match="cost share"):
        Cost(epsilon=5).share(fraction)


@pytest.mark.parametrize("weights", [[], [0.0, 0.0], [1.0, -1.0], [math.nan], [math.inf, 1.0]])
def test_weights_that_split_nothing_are_refused(weights: list[float]) -> None:
    with pytest.raises(UsageError, match="cost split"):
        Cost(epsilon=5).split(weights)


BAD = [0, -1, math.nan, math.inf, -math.inf, 1e-13, 1e7, "1", None, True]


@pytest.mark.parametrize("epsilon", BAD)
def test_bad_epsilon(epsilon: object) -> None:
    with pytest.raises(UsageError, match="epsilon"):
        Budget(epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [-1e-9, 1, 1.5, math.nan, math.inf, 1e-19, "0", None, False])
def test_bad_delta(delta: object) -> None:
    with pytest.raises(UsageError, match="delta"):
        Budget(1.0, delta)  # type: ignore[arg-type]


@given(st.floats(1e-3, 1e3), st.floats(1e-17, 0.5))
def test_what_a_budget_grants_is_never_claimed_above_it(epsilon: float, delta: float) -> None:
    budget = Budget(epsilon, delta)
    claimed = budget.claim(budget.cost("pure"))
    assert claimed[0] <= epsilon
    assert Fraction(repr(claimed[0])) >= Fraction(budget.epsilon_units, UNIT)
    failure = budget.delta_units // 3
    granted = budget.cost("zcdp", failure)
    claimed = budget.claim(granted)
    assert claimed[0] <= epsilon
    assert claimed[1] <= delta
    if granted.rho > 10**6:
        assert claimed[0] >= 0.999 * epsilon


@given(st.integers(1, 10**13), st.integers(0, 10**12))
def test_claims_are_rounded_up(rho: int, epsilon: int) -> None:
    budget = Budget(1.0, 1e-9)
    claimed, delta = budget.claim(Cost(epsilon=epsilon, rho=rho))
    pure, rest = Fraction(epsilon, UNIT), Fraction(budget.delta_units, DELTA_UNIT)
    in_rho = epsilon_of_rho(Fraction(rho, UNIT) + pure**2 / 2, rest)
    exact = min(in_rho, pure + epsilon_of_rho(Fraction(rho, UNIT), rest))
    assert Fraction(repr(claimed)) >= min(exact, Fraction(1))
    if exact > 1:
        assert Fraction(repr(claimed)) >= exact
    assert Fraction(repr(delta)) >= Fraction(budget.delta_units, DELTA_UNIT)


@given(st.floats(0.01, 20.0), st.floats(1e-12, 1e-3), st.floats(0.0, 0.99))
def test_pure_and_concentrated_parts_together_claim_what_was_granted(epsilon: float, delta: float, part: float) -> None:
    budget = Budget(epsilon, delta)
    granted = budget.cost("zcdp", pure=math.floor(budget.epsilon_units * part))
    claimed = budget.claim(granted)
    assert claimed[0] <= epsilon
    assert claimed[0] >= granted.epsilon / UNIT or granted.epsilon**2 / (2 * UNIT) < granted.rho
    assert claimed[1] <= delta


@pytest.mark.parametrize("pure", [0.05, 0.5, 1.5])
@pytest.mark.parametrize("rho", [0.001, 0.1, 1.0])
def test_the_claim_of_both_holds_for_the_worst_pair(pure: float, rho: float) -> None:
    """A randomised bit at ε beside one Gaussian answer: the exact δ at the claimed ε is no more than claimed."""
    budget = Budget(1.0, 1e-6)
    epsilon, delta = budget.claim(Cost(round(pure * UNIT), round(rho * UNIT)))
    likely = math.exp(pure) / (1.0 + math.exp(pure))
    exact = sum(
        probability * gaussian_delta(rho, epsilon - loss)
        for probability, loss in ((likely, pure), (1.0 - likely, -pure))
    )
    assert exact <= delta
    assert exact > 1e-3 * delta, "the claim is of the right size"


def gaussian_delta(rho: float, epsilon: float) -> float:
    """δ at ε of a number with Gaussian noise, one unit moving it by √(2ρ) standard deviations."""
    moved = math.sqrt(2.0 * rho)
    upper, lower = moved / 2.0 - epsilon / moved, -moved / 2.0 - epsilon / moved
    return 0.5 * (math.erfc(-upper / math.sqrt(2.0)) - math.exp(epsilon) * math.erfc(-lower / math.sqrt(2.0)))


@given(st.integers(1, 10**18), st.integers(0, DELTA_UNIT - 1))
def test_pure_claims_are_rounded_up(epsilon: int, delta: int) -> None:
    claimed = Budget(1.0).claim(Cost(epsilon=epsilon, delta=delta))
    assert Fraction(repr(claimed[0])) >= Fraction(epsilon, UNIT)
    assert Fraction(repr(claimed[1])) >= Fraction(delta, DELTA_UNIT)


def test_delta_is_needed_and_can_be_used_up() -> None:
    with pytest.raises(UsageError, match="delta must be above 0 for Gaussian"):
        Budget(1.0).cost("zcdp")
    budget = Budget(1.0, 1e-9)
    with pytest.raises(UsageError, match="set aside"):
        budget.cost("pure", budget.delta_units + 1)
    with pytest.raises(UsageError, match="used up"):
        budget.claim(Cost(rho=1, delta=budget.delta_units))


def test_costs_read_well() -> None:
    assert str(Cost(epsilon=UNIT // 2, delta=10**9)) == "ε = 0.5, δ = 1e-09"
    assert str(Cost(rho=UNIT)) == "ρ = 1"
    assert str(Cost()) == "nothing"


def test_a_budget_means_the_decimal_number_that_was_written() -> None:
    assert Budget(0.7).epsilon_units == 7 * UNIT // 10
    assert 3 * Budget(0.1).epsilon_units == Budget(0.3).epsilon_units
    assert Budget(1.0, 1e-9).delta_units == DELTA_UNIT // 10**9


# Noise follows the cost exactly, thresholds keep their promise, and every refusal names the step.


def test_laplace_scale_is_sensitivity_over_epsilon() -> None:
    assert distribution_for(Cost(epsilon=UNIT // 3), 2, "step") == Distribution(
        "laplace", Fraction(2 * UNIT, UNIT // 3)
    )


def test_gaussian_variance_pays_exactly_rho() -> None:
    distribution = distribution_for(Cost(rho=123_456_789), 3, "step")
    assert distribution.kind == "gaussian"
    assert Fraction(9) / (2 * distribution.parameter) == Fraction(123_456_789, UNIT)


@pytest.mark.parametrize("rho", [1, 7, 10**6, UNIT // 2, 3 * UNIT])
def test_laplace_paid_in_rho_never_costs_more(rho: int) -> None:
    epsilon = 1 / distribution_for(Cost(rho=rho), 1, "step", laplace=True).parameter
    assert epsilon**2 / 2 <= Fraction(rho, UNIT)
    assert (epsilon + Fraction(1, 10**17)) ** 2 / 2 > Fraction(rho, UNIT)


def test_selection_rate() -> None:
    cost = Cost(epsilon=UNIT)
    assert selection_rate(cost, Fraction(4), "step", monotone=False) == Fraction(1, 8)
    assert selection_rate(cost, Fraction(4), "step", monotone=True) == Fraction(1, 4)
    rate = selection_rate(Cost(rho=UNIT // 8), Fraction(1), "step", monotone=True)
    assert rate == 1
    rate = selection_rate(Cost(rho=5), Fraction(1), "step", monotone=True)
    assert rate**2 / 8 <= Fraction(5, UNIT) < (rate + Fraction(1, 10**17)) ** 2 / 8


def _tail(scale: Fraction, least: int) -> Decimal:
    ratio = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()
    return ratio**least / (1 + ratio)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(12345, 7)])
@pytest.mark.parametrize("rows", [1, 3, 20])
@pytest.mark.parametrize("delta", [1, 10**9, 10**15, DELTA_UNIT // 2])
def test_threshold_is_the_smallest_that_keeps_lone_labels_hidden(scale: Fraction, rows: int, delta: int) -> None:
    threshold = discovery_threshold(Distribution("laplace", scale), rows, delta, "step")
    with localcontext(Context(prec=60)):
        promised = Decimal(delta) / DELTA_UNIT
        assert rows * _tail(scale, threshold - rows) <= promised
        if threshold - rows > 1:
            assert rows * _tail(scale, threshold - rows - 1) > promised
    assert threshold > rows


def test_sparse_tables_are_refused_from_public_numbers() -> None:
    distribution = Distribution("laplace", Fraction(2))
    check_sparse(distribution, 10**15, 50, "step")
    with pytest.raises(UsageError, match=r"measure x: .*more than 50,000,000 empty cells.*threshold of about \d+"):
        check_sparse(distribution, 10**15, 10, "measure x")
    with localcontext(Context(prec=40)):
        for threshold in range(1, 60):
            many = 10**15 * _tail(Fraction(2), threshold) > MOST_KEPT
            if many:
                with pytest.raises(UsageError):
                    check_sparse(distribution, 10**15, threshold, "step")
            else:
                check_sparse(distribution, 10**15, threshold, "step")


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (Cost(), "no share of the budget"),
        (Cost(delta=5), "no share of the budget"),
        (Cost(epsilon=1, rho=1), "not in both"),
    ],
)
def test_a_cost_must_be_in_one_currency(cost: Cost, words: str) -> None:
    with pytest.raises(UsageError, match=f"measure age .*{words}"):
        distribution_for(cost, 1, "measure age")
    with pytest.raises(UsageError, match=f"measure age .*{words}"):
        distribution_for(cost, 1, "measure age", laplace=True)
    with pytest.raises(UsageError, match=f"select tree .*{words}"):
        selection_rate(cost, Fraction(1), "select tree", monotone=False)


def test_noise_that_would_drown_everything_is_refused() -> None:
    with pytest.raises(UsageError, match="measure age: the noise would drown"):
        distribution_for(Cost(rho=1), 10**3, "measure age")
    with pytest.raises(UsageError, match="measure age: the noise would drown"):
        distribution_for(Cost(epsilon=1), 10**7, "measure age")


def test_bad_arguments_name_the_step() -> None:
    laplace, gaussian = Distribution("laplace", Fraction(1)), Distribution("gaussian", Fraction(1))
    with pytest.raises(UsageError, match="step: the sensitivity"):
        distribution_for(Cost(epsilon=UNIT), 0, "step")
    with pytest.raises(UsageError, match="step: the sensitivity"):
        selection_rate(Cost(epsilon=UNIT), Fraction(0), "step", monotone=True)
    for delta in (0, -1, DELTA_UNIT):
        with pytest.raises(UsageError, match="discover town needs a part of δ"):
            discovery_threshold(laplace, 1, delta, "discover town")
    for call in (lambda: discovery_threshold(gaussian, 1, 5, "step"), lambda: check_sparse(gaussian, 9, 1, "step")):
        with pytest.raises(UsageError, match=r"step: .*Laplace noise"):
            call()
    with pytest.raises(UsageError, match="step: the rows of a unit"):
        discovery_threshold(laplace, 0, 5, "step")


def test_noise_of_scores_pays_exactly_their_cost() -> None:
    """P scores, each moved by Δ: L1 = P·Δ, L2² = P·Δ²."""
    assert score_distribution(Cost(epsilon=UNIT // 2), 7, Fraction(3), "step") == Distribution("laplace", Fraction(42))
    distribution = score_distribution(Cost(rho=123_456_789), 7, Fraction(3), "step")
    assert distribution.kind == "gaussian"
    assert 7 * Fraction(9) / (2 * distribution.parameter) == Fraction(123_456_789, UNIT)
    for options, sensitivity in ((0, Fraction(1)), (1, Fraction(0))):
        with pytest.raises(UsageError, match="at least one score"):
            score_distribution(Cost(epsilon=UNIT), options, sensitivity, "step")


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("decay", [Fraction(2), Fraction(14)])
def test_a_tree_in_epsilon_or_rho(rows: int, decay: Fraction) -> None:
    distribution, bias = growth_rule(Cost(epsilon=UNIT), rows, decay, "grow")
    assert distribution.parameter == rows * 1024 * (2 * decay - 1) / (decay - 1)
    assert (distribution, bias) == growth_rule(Cost(rho=UNIT // 2), rows, decay, "grow")
    with pytest.raises(UsageError, match="drown every count"):
        growth_rule(Cost(epsilon=1), rows, decay, "grow")
    with pytest.raises(UsageError, match="rows of a unit"):
        growth_rule(Cost(epsilon=UNIT), 0, decay, "grow")


# The tight conversion: published vectors, safe rounding shown against the formula itself, extremes.


VECTORS = [
    ("1", "1e-6", 0.0243560, 0.0174689),
    ("1", "1e-9", 0.0149731, 0.0117812),
    ("1", "1e-3", 0.0593902, 0.0337869),
    ("0.3", "2.2820544e-12", 0.00107131, 0.000834702),
    ("1", "2.2820544e-12", 0.0111179, 0.00915628),
    ("8", "2.2820544e-12", 0.577246, 0.521588),
]
EXTREMES = [(epsilon, delta) for epsilon in ("0.001", "0.1", "10", "10000") for delta in ("1e-18", "1e-6", "0.5")]


def _log_delta(order: Decimal, rho: Decimal, epsilon: Decimal) -> Decimal:
    """Logarithm of the δ that order α proves, straight from the formula."""
    return (order - 1) * (order * rho - epsilon) + order * (1 - 1 / order).ln() - (order - 1).ln()


def _best_log_delta(rho: Fraction, epsilon: Fraction) -> Decimal:
    """Smallest over a fine grid of orders, refined once around the best: an independent evaluation."""
    with localcontext(Context(prec=60)):
        rho_decimal, epsilon_decimal = (Decimal(x.numerator) / Decimal(x.denominator) for x in (rho, epsilon))
        low, high = Decimal(-30), Decimal(45)
        for _ in range(12):
            points = [low + (high - low) * i / 60 for i in range(61)]
            values = [_log_delta(1 + point.exp(), rho_decimal, epsilon_decimal) for point in points]
            at = min(range(61), key=values.__getitem__)
            low, high = points[max(at - 1, 0)], points[min(at + 1, 60)]
        return min(values)


@pytest.mark.parametrize(("epsilon", "delta", "tight", "classical"), VECTORS)
def test_published_vectors(epsilon: str, delta: str, tight: float, classical: float) -> None:
    rho = rho_of_epsilon(Fraction(epsilon), Fraction(delta))
    assert float(rho) == pytest.approx(tight, rel=5e-6)
    with localcontext(Context(prec=40)):
        log = -Decimal(delta).ln()
        plain = ((Decimal(epsilon) + log).sqrt() - log.sqrt()) ** 2
    assert float(plain) == pytest.approx(classical, rel=5e-6)
    assert rho > Fraction(plain)


@pytest.mark.parametrize(("epsilon", "delta"), [vector[:2] for vector in VECTORS] + EXTREMES)
def test_rho_is_safe_and_not_wasteful(epsilon: str, delta: str) -> None:
    """δ proved for the returned ρ is at most δ, and for a ρ one part in 10⁹ larger it is more than δ."""
    rho = rho_of_epsilon(Fraction(epsilon), Fraction(delta))
    log_delta = Decimal(delta).ln(Context(prec=50))
    assert _best_log_delta(rho, Fraction(epsilon)) <= log_delta + Decimal("1e-25")
    assert _best_log_delta(rho * (1 + Fraction(1, 10**9)), Fraction(epsilon)) > log_delta


@pytest.mark.parametrize(("epsilon", "delta"), EXTREMES)
def test_round_trip(epsilon: str, delta: str) -> None:
    given = Fraction(epsilon)
    rho = rho_of_epsilon(given, Fraction(delta))
    back = epsilon_of_rho(rho, Fraction(delta))
    assert abs(back / given - 1) < Fraction(1, 10**12)
    assert epsilon_of_rho(rho * 2, Fraction(delta)) > given


def test_epsilon_is_safe() -> None:
    for rho, delta in (("0.001", "1e-9"), ("0.5", "1e-6"), ("40", "1e-12")):
        epsilon = epsilon_of_rho(Fraction(rho), Fraction(delta))
        log_delta = Decimal(delta).ln(Context(prec=50))
        assert _best_log_delta(Fraction(rho), epsilon) <= log_delta + Decimal("1e-25")
        assert _best_log_delta(Fraction(rho), epsilon * (1 - Fraction(1, 10**9))) > log_delta


def test_both_grow_with_what_they_should() -> None:
    rhos = [rho_of_epsilon(Fraction(epsilon, 100), Fraction(1, 10**9)) for epsilon in range(1, 400, 7)]
    assert rhos == sorted(rhos)
    rhos = [rho_of_epsilon(Fraction(1), Fraction(1, 10**power)) for power in range(18, 0, -1)]
    assert rhos == sorted(rhos)
    epsilons = [epsilon_of_rho(Fraction(rho, 1000), Fraction(1, 10**9)) for rho in range(0, 400, 7)]
    assert epsilons == sorted(epsilons)


def test_nothing_spent_claims_nothing_and_large_delta_gives_zero() -> None:
    assert epsilon_of_rho(Fraction(0), Fraction(1, 10**9)) == 0
    assert epsilon_of_rho(Fraction(1, 10**12), Fraction(1, 2)) == 0


@pytest.mark.parametrize(("epsilon", "delta"), [("0", "1e-9"), ("-1", "1e-9"), ("1", "0"), ("1", "1"), ("1", "-0.1")])
def test_impossible_budgets_are_refused(epsilon: str, delta: str) -> None:
    with pytest.raises(UsageError, match="epsilon" if epsilon != "1" else "delta"):
        rho_of_epsilon(Fraction(epsilon), Fraction(delta))


@pytest.mark.parametrize(("rho", "delta"), [("-1", "1e-9"), ("1", "0"), ("1", "1")])
def test_impossible_spending_is_refused(rho: str, delta: str) -> None:
    with pytest.raises(UsageError, match="rho" if rho != "1" else "delta"):
        epsilon_of_rho(Fraction(rho), Fraction(delta))
