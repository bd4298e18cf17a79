"""Settings of PrivBayes: shares of the cost, and how tables divide what is left."""

import pytest

from understudy.mechanisms.field.network_fit import Settings
from understudy.privacy.cost import Cost


def test_shares_add_up_to_no_more_than_the_cost() -> None:
    settings = Settings(0.3, 0.0, 0.01, 4.0, None)
    costs = settings.costs(Cost(epsilon=10**12), 15)
    assert costs.opening.epsilon == 10**10
    assert 0 <= 3 * 10**11 - costs.structure.epsilon <= 1
    assert 14 * costs.draw.epsilon <= costs.structure.epsilon < 14 * (costs.draw.epsilon + 1)


def test_a_single_column_needs_no_structure() -> None:
    assert Settings(0.1, 0.4, 0.0, 4.0, None, refined=True).costs(Cost(rho=100), 1).opening == Cost(rho=100)
    assert Settings(0.3, 0.0, 0.01, 4.0, None).costs(Cost(epsilon=100), 1).structure == Cost()


def test_refined_tables_share_so_that_the_sum_of_errors_is_smallest() -> None:
    """Two tables of 4 and 32 cells: 1 : 4 in ρ (cells^(2/3)), 1 : √8 in ε; equally as published."""
    refined, plain = Settings(0.1, 0.4, 0.0, 4.0, None, refined=True), Settings(0.3, 0.0, 0.01, 4.0, None)
    first, second = refined.weights(Cost(rho=1), [4, 32])
    assert second / first == pytest.approx(4.0)
    first, second = refined.weights(Cost(epsilon=1), [4, 32])
    assert second / first == pytest.approx(8.0**0.5)
    assert plain.weights(Cost(rho=1), [4, 32]) == [1.0, 1.0]
