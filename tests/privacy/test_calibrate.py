"""Noise follows the cost exactly, thresholds keep their promise, and every refusal names the step."""

from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest

from understudy.answers import Distribution
from understudy.errors import UsageError
from understudy.privacy.cost import (
    DELTA_UNIT,
    MOST_KEPT,
    UNIT,
    Cost,
    check_sparse,
    discovery_threshold,
    distribution_for,
    growth_rule,
    score_distribution,
    selection_rate,
)


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
def test_a_price_must_be_in_one_currency(cost: Cost, words: str) -> None:
    with pytest.raises(UsageError, match=f"measure age: .*{words}"):
        distribution_for(cost, 1, "measure age")
    with pytest.raises(UsageError, match=f"measure age: .*{words}"):
        distribution_for(cost, 1, "measure age", laplace=True)
    with pytest.raises(UsageError, match=f"select tree: .*{words}"):
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
        with pytest.raises(UsageError, match="discover town: needs a part of δ"):
            discovery_threshold(laplace, 1, delta, "discover town")
    for call in (lambda: discovery_threshold(gaussian, 1, 5, "step"), lambda: check_sparse(gaussian, 9, 1, "step")):
        with pytest.raises(UsageError, match=r"step: .*Laplace noise"):
            call()
    with pytest.raises(UsageError, match="step: the rows of a unit"):
        discovery_threshold(laplace, 0, 5, "step")


def test_noise_of_scores_pays_exactly_their_price() -> None:
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
