"""Errors of the source documents that no other test shows; the register is docs/studies/errors.md."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm
from studies.steps.design import EPSILONS, SIZES, truths

from tests.methods.door import door, epsilon, letters, rows_of
from understudy.demo import LEVELS, ROWS
from understudy.evaluate.propensity import kolmogorov_smirnov
from understudy.methods.leaf_size import leaf_interval
from understudy.methods.steps_tree import ChoiceCosts, TreeSettings, choose
from understudy.privacy.cost import Budget, Cost, distribution_for
from understudy.privacy.trees import AIC_UNIT, node_criterion
from understudy.testing.doubles import NoNoise
from understudy.testing.replay import Exchange, Recorder

ROOT = Path(__file__).resolve().parents[2]
REGISTER = ROOT / "docs" / "studies" / "errors.md"


def aic(*counts: int) -> float:
    return float(node_criterion(np.array(counts, np.int64))) / AIC_UNIT


RULER = letters({"first": 2, "second": 3})


def chosen(codes: dict[str, list[int]], paid: Cost) -> tuple[str, Exchange]:
    """The column that our choice takes without noise, and what it asked the randomizer."""
    recorder = Recorder(NoNoise())
    curator = door(rows_of(codes), RULER, paid, recorder)
    tree = choose(curator, TreeSettings(1), ChoiceCosts(paid, paid, paid))
    return str(tree.structure.nodes(1)[0].column), recorder.log[0]


def distribution(exchange: Exchange) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Probabilities of the options: ∝ e^(rate · score)."""
    exponents = float(exchange.request.rate) * np.asarray(exchange.exact, np.float64)
    weights = np.exp(exponents - exponents.max())
    return weights / weights.sum()


def as_printed(exchange: Exchange, rate: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Probabilities with the rate in front of the exponential instead of inside."""
    scores = np.asarray(exchange.exact, np.float64) / AIC_UNIT
    weights = rate * np.exp(scores - scores.max())
    return weights / weights.sum()


def flipping_rows() -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Twelve rows of two columns, and the same less one: before it leaves, the first has the smaller AIC."""
    rows = 12
    first, second = next(
        (first, second)
        for first, second in itertools.product(range(rows), range(1, rows))
        if aic(rows - first, first) < aic(rows - second, second, 0)
        and aic(rows - first - 1, first) > aic(rows - second, second - 1, 0)
    )
    whole = {"first": [0] * (rows - first) + [1] * first, "second": [1] * second + [0] * (rows - second)}
    return whole, {name: column[1:] for name, column in whole.items()}


def test_item_7_an_unpaid_choice_can_be_changed_for_sure_by_one_row() -> None:
    """Without noise our choice takes another column when a row leaves; paid for, it moves by no more than its ε."""
    found = [chosen(codes, epsilon(0.5)) for codes in flipping_rows()]
    assert [column for column, _ in found] == ["first", "second"]
    before, after = (distribution(exchange) for _, exchange in found)
    assert np.abs(np.log(before / after)).max() <= 0.5 + 1e-12


def test_item_9_with_the_rate_outside_the_exponential_epsilon_has_no_effect() -> None:
    """As printed, every ε gives the same distribution, and a row moves it by more than ε = 0.1; ours follows ε."""
    whole = {"first": [0] * 99 + [1], "second": [0] * 50 + [1] * 50}
    less = {name: column[:-1] for name, column in whole.items()}
    (_, before), (_, after) = (chosen(codes, epsilon(0.1)) for codes in (whole, less))
    for rate in (0.1 / 4, 10.0 / 4):
        assert as_printed(before, rate) == pytest.approx(as_printed(before, 1.0))
        assert np.abs(np.log(as_printed(before, rate) / as_printed(after, rate))).max() > 0.1
    assert 0 < np.abs(np.log(distribution(before) / distribution(after))).max() <= 0.1
    louder = distribution(chosen(whole, epsilon(10))[1])
    assert not np.allclose(louder, distribution(before), atol=0.01)


def test_item_16_a_replaced_row_moves_a_histogram_by_two() -> None:
    """Noise that our code takes for ε = 0.5 and one row loses 2ε when a row is replaced; for two rows it loses ε."""

    def lost(sensitivity: int, table: tuple[int, int], other: tuple[int, int]) -> float:
        noise = distribution_for(epsilon(0.5), sensitivity, "histogram")
        outcomes = itertools.product(range(-5, 9), repeat=2)
        losses = [
            sum(abs(two - answer) - abs(one - answer) for one, two, answer in zip(table, other, seen, strict=True))
            for seen in outcomes
        ]
        return max(losses) / float(noise.parameter)

    assert lost(1, (3, 0), (2, 0)) == pytest.approx(0.5)
    assert lost(1, (3, 0), (2, 1)) == pytest.approx(1.0)
    assert lost(2, (3, 0), (2, 1)) == pytest.approx(0.5)


def test_item_17_the_simulation_has_sixteen_scenarios() -> None:
    assert len(truths()) * len(SIZES) * len(EPSILONS) == 16


def test_item_18_the_papers_own_shares_recomputed_do_not_add_up() -> None:
    """The printed pairs; the shares of our voters do add up."""
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


def classical_scale(epsilon: float) -> float:
    return math.sqrt(2 * math.log(1.25 / 0.001)) / epsilon


def test_item_35_the_papers_own_gaussian_scale_recomputed_is_too_small_at_its_largest_budget() -> None:
    assert exact_delta(0.3, classical_scale(0.3)) < 0.001
    assert exact_delta(8.0, classical_scale(8.0)) == pytest.approx(0.001313, rel=1e-3)


@pytest.mark.parametrize(("claimed", "more"), [(0.3, False), (1.0, False), (8.0, True)])
def test_item_35_our_noise_holds_where_the_classical_scale_does_not(claimed: float, more: bool) -> None:
    """What our code takes for (ε, 0.001): within the claim everywhere, above the classical scale where that fails."""
    noise = distribution_for(Budget(claimed, 0.001).cost("zcdp"), 1, "answer")
    sigma = math.sqrt(float(noise.parameter))
    assert exact_delta(claimed, sigma) <= 0.001
    assert (sigma > classical_scale(claimed)) == more


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
