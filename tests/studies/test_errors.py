"""Errors of the source documents that no other test shows; the register is docs/studies/errors.md."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm
from studies.steps.design import EPSILONS, SIZES, truths

from understudy.demo.voters import LEVELS, ROWS
from understudy.evaluate.propensity.distance import kolmogorov_smirnov
from understudy.mechanisms.labels.leaf_interval import leaf_interval
from understudy.privacy.questions.node_aic import AIC_UNIT, node_aic

ROOT = Path(__file__).resolve().parents[2]
REGISTER = ROOT / "docs" / "studies" / "errors.md"


def aic(*counts: int) -> float:
    return float(node_aic(np.array(counts, np.int64))) / AIC_UNIT


def test_item_7_an_unpaid_choice_can_be_changed_for_sure_by_one_row() -> None:
    """Two columns of the same rows: before a row leaves, the first has the smaller AIC, afterwards the second."""
    rows = 12
    flips = [
        (first, second)
        for first, second in itertools.product(range(rows), repeat=2)
        if aic(rows - first, first) < aic(rows - second, second, 0)
        and second > 0
        and aic(rows - first - 1, first) > aic(rows - second, second - 1, 0)
    ]
    assert flips


def test_item_9_with_the_rate_outside_the_exponential_epsilon_has_no_effect() -> None:
    """exp(u) times a constant is normalised to the same law for every ε, and one row moves it by more than 0.1."""

    def chance(scores: tuple[float, float], rate: float) -> float:
        weights = [rate * math.exp(score) for score in scores]
        return weights[0] / sum(weights)

    before, after = (-aic(99, 1), -aic(50, 50)), (-aic(99, 0), -aic(49, 50))
    assert chance(before, 0.1 / 4) == pytest.approx(chance(before, 10.0 / 4))
    assert abs(math.log((1 - chance(after, 0.025)) / (1 - chance(before, 0.025)))) > 0.1


def test_item_16_a_replaced_row_moves_a_histogram_by_two() -> None:
    """With noise of scale 1/ε a replaced row loses 2ε, not ε: exact likelihoods at an outcome between the tables."""
    epsilon = 0.5

    def likelihood(counts: tuple[int, int], seen: tuple[int, int]) -> float:
        return sum(-epsilon * abs(one - other) for one, other in zip(counts, seen, strict=True))

    lost = max(
        abs(likelihood((3, 0), seen) - likelihood((2, 1), seen)) for seen in itertools.product(range(-5, 9), repeat=2)
    )
    assert lost == pytest.approx(2 * epsilon)


def test_item_17_the_simulation_has_sixteen_scenarios() -> None:
    assert len(truths()) * len(SIZES) * len(EPSILONS) == 16


def test_item_18_printed_shares_that_do_not_add_up() -> None:
    printed = {"voted": (34.7, 63.3), "female": (50.7, 40.3), "white": (69.3, 31.7), "registered": (52.4, 47.8)}
    assert [round(sum(pair), 1) for pair in printed.values()] == [98.0, 91.0, 101.0, 100.2]
    assert all(sum(level.share for level in LEVELS[name]) == pytest.approx(100.0) for name in printed)


def test_item_21_which_table_counts_as_1_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    real, made = rng.random(50), rng.random(70) ** 2
    distance = kolmogorov_smirnov(real, made)
    assert distance == pytest.approx(kolmogorov_smirnov(1 - made, 1 - real))
    assert distance > 0.05


def exact_delta(epsilon: float, sigma: float) -> float:
    """δ of Gaussian noise on a number of sensitivity 1 (Balle and Wang)."""
    side = 1 / (2 * sigma)
    return float(norm.cdf(side - epsilon * sigma) - math.exp(epsilon) * norm.cdf(-side - epsilon * sigma))


def test_item_35_the_classical_gaussian_scale_is_too_small_at_the_largest_budget_of_match_3() -> None:
    delta = 0.001

    def scale(epsilon: float) -> float:
        return math.sqrt(2 * math.log(1.25 / delta)) / epsilon

    assert exact_delta(0.3, scale(0.3)) < delta
    assert exact_delta(8.0, scale(8.0)) == pytest.approx(0.001313, rel=1e-3)
    assert exact_delta(8.0, scale(8.0)) > delta


def test_item_39_family_income_has_the_largest_aic_by_the_printed_shares() -> None:
    """Neither reading of "AIC of a univariate log-linear model" puts the column with fourteen levels first."""
    counts = {name: np.array([round(level.share / 100 * ROWS) for level in levels]) for name, levels in LEVELS.items()}
    one_column = {name: aic(*held.tolist()) for name, held in counts.items()}
    assert max(one_column, key=one_column.__getitem__) == "family_income"
    assert min(one_column, key=one_column.__getitem__) == "college_degree"
    gain = {}
    for name, held in counts.items():
        shares = held / held.sum()
        gain[name] = 2 * ROWS * (math.log(len(held)) + float((shares * np.log(shares)).sum())) - 2 * len(held)
    assert max(gain, key=gain.__getitem__) == "college_degree"
    assert sorted(gain, key=gain.__getitem__).index("family_income") < len(gain) - 5


def test_item_40_noise_matters_beyond_a_thousand_records_for_rare_labels() -> None:
    assert leaf_interval(0.0, 0.1, 1000).width > 10 * leaf_interval(0.0, 1.0, 1000).width
    assert leaf_interval(0.5, 0.1, 1000).width > 1.3 * leaf_interval(0.5, 1.0, 1000).width
    assert leaf_interval(0.5, 0.4, 1000).width < 1.03 * leaf_interval(0.5, 1.0, 1000).width


def test_the_register_is_complete_and_names_tests_that_exist() -> None:
    text = REGISTER.read_text(encoding="utf-8")
    items = [int(number) for number in re.findall(r"^\| (\d+) \|", text, flags=re.MULTILINE)]
    assert sorted(items) == list(range(1, 41))
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", text)
    assert len(named) >= 25
    for file, name in named:
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), (file, name)
