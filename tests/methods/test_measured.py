import math
from fractions import Fraction

import numpy as np
import pytest

from tests.methods.door import door, letters, rho, rows_of
from tests.methods.test_mst import CHAIN, chain
from understudy.answers import Distribution, Measurement
from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.methods.rounds import (
    Chosen,
    Measured,
    RemainingBudget,
    Round,
    RoundCosts,
    check_start,
    live_columns,
    shares_of,
    spend_in_rounds,
    start_size,
)
from understudy.privacy.cost import Cost
from understudy.testing.doubles import NoNoise

DOMAIN = Domain.of({"a": 4, "b": 4, "c": 4, "d": 4})
AB, BC, CD = (DOMAIN.clique(pair) for pair in ("ab", "bc", "cd"))


def answer(clique, values, variance=1.0):
    shape = DOMAIN.shape(clique)
    return Measurement("t", tuple(clique), shape, np.array(values), Distribution("gaussian", Fraction(variance)))


def test_total_and_expected_counts_follow_from_the_answers():
    measured = Measured(DOMAIN, (), 2**20)
    measured.add([answer("a", [5, 5, 0, 10]), answer(AB, np.full(16, 1), 3.0)])
    # sums 20 (4 cells of variance 1) and 16 (16 cells of variance 3)
    assert measured.total == pytest.approx((20 / 4 + 16 / 48) / (1 / 4 + 1 / 48))
    measured.refit(500)
    expected = measured.expected([DOMAIN.clique("a"), CD])
    assert expected[("a",)].sum() == pytest.approx(measured.total)  # type: ignore[index]
    assert expected[CD] == pytest.approx(np.full(16, measured.total / 16))


def test_no_model_before_the_first_fit():
    with pytest.raises(UsageError, match="not fitted"):
        Measured(DOMAIN, (), 2**20).expected([AB])


def test_noise_that_is_surely_zero_still_gets_a_weight():
    measured = Measured(DOMAIN, (), 2**20)
    distribution = Distribution("laplace", Fraction(1, 10**6))
    measured.add([Measurement("a", ("a",), (4,), np.array([1, 2, 3, 4]), distribution)])
    assert distribution.variance == 0.0
    assert measured.refit(300).marginal(DOMAIN.clique("a")) == pytest.approx(np.array([1, 2, 3, 4]) / 10, abs=1e-3)


def test_only_candidates_that_fit_or_change_nothing_remain():
    measured = Measured(DOMAIN, (), 2**20)
    measured.add([answer(AB, np.ones(16))])
    # a·b, c, d: 16 + 4 + 4 cells; with b·c 16 + 16 + 4; a·b again changes nothing
    assert measured.fitting([AB, BC], 36 * 8) == [AB, BC]
    assert measured.fitting([AB, BC], 35 * 8) == [AB]
    assert measured.fitting([AB, BC], 0) == [AB]
    assert measured.fitting([BC], 36 * 8, extra=[CD]) == []
    assert [measured.bytes_with(extra) for extra in ([], [AB], [BC])] == [24 * 8, 24 * 8, 36 * 8]


def test_a_forest_is_fitted_in_closed_form_and_rules_by_descent():
    tables = [answer(AB, np.arange(16)), answer(BC, np.arange(16))]
    measured = Measured(DOMAIN, (), 2**20)
    measured.add(tables)
    assert measured.fit_tree(300).fit is None
    tied = StructuralZeros(DOMAIN.clique("abc"), np.arange(64) % 7 == 0)
    ruled = Measured(DOMAIN, (tied,), 2**20)
    ruled.add(tables)
    assert not ruled.fit_tree(300).marginal(tied.clique)[tied.mask].any()


def test_a_round_chooses_measures_and_moves_the_model():
    cost = rho(1)
    curator = door(rows_of(chain(2_000)), CHAIN, cost, NoNoise())
    measured = Measured(curator.domain, (), 2**20)
    measured.add(curator.measure([Clique((name,)) for name in "abcd"], rho(0.5)))
    measured.refit(300)
    chosen = measured.next_table(curator, {AB: 1.0, CD: 1.0}, Round(rho(0.1), rho(0.4), 2**20, 300))
    assert chosen.clique == AB
    assert chosen.noise == pytest.approx(16 * np.sqrt(2 / np.pi / 0.8))
    assert chosen.moved > 1_000
    assert curator.left == Cost()


def test_tables_of_nothing_but_noise_are_not_worth_choosing():
    schema = letters({"u": 50, "v": 50, "a": 2})
    curator = door(rows_of({"u": [1] * 20, "v": [2] * 20, "a": [0, 1] * 10}), schema, rho(1), NoNoise())
    measured = Measured(curator.domain, (), 2**20)
    measured.add(curator.measure([Clique((name,)) for name in "uva"], rho(0.5)))
    measured.refit(300)
    wide, small = curator.domain.clique("uv"), curator.domain.clique("a")
    measured.next_table(curator, {wide: 1.0, small: 1.0}, Round(rho(0.1), rho(0.4), 2**20, 50))
    assert curator.transcript.answers[-2].options == 2
    assert curator.transcript.answers[-1].columns == small


def test_the_purse_counts_only_its_own_run():
    curator = door(rows_of(chain(10)), CHAIN, rho(1))
    curator.measure([AB], rho(0.25))
    remaining = RemainingBudget(curator, rho(0.5))
    curator.measure([AB], rho(0.125))
    assert remaining.spent == rho(0.125)
    assert remaining.left == rho(0.375)


def test_live_columns_shares_and_the_smallest_model():
    domain = Domain.of({"x": 1, "y": 8, "z": 27})
    assert live_columns(domain) == ["y", "z"]
    assert live_columns(Domain.of({"x": 1, "w": 1})) == ["x"]
    assert shares_of(domain, [Clique("y"), Clique("z")]) == pytest.approx([4.0, 9.0])
    tied = StructuralZeros(domain.clique("yz"), np.zeros(216, dtype=bool))
    assert start_size(domain, []).cells == 35
    assert start_size(domain, [tied]).cells == 216
    check_start(domain, [tied], 216 * 8, "aim")
    with pytest.raises(ResourceError, match="method aim"):
        check_start(domain, [tied], 216 * 8 - 1, "aim")


@pytest.mark.parametrize(("moved", "dearer"), [(0.0, 4), (0.9, 4), (1.0, 4), (1.1, 1), (3.0, 1)])
def test_rounds_become_dearer_when_the_model_moved_by_no_more_than_the_noise(moved, dearer):
    """The threshold of AIM's annealing is the expected noise itself, neither half of it nor twice."""
    curator = door(rows_of(chain(50, 1)), CHAIN, rho(1), NoNoise())
    paid = []

    def next_table(cost, last):
        paid.append(cost.measure.rho)
        curator.measure([Clique("a")], cost.select + cost.measure)
        return Chosen(Clique("a"), 10.0 * moved, 10.0)

    spend_in_rounds(RemainingBudget(curator, rho(1)), RoundCosts(rho(0.001), rho(0.009), 0.1, 1), 2**20, next_table)
    assert paid[1] == dearer * paid[0]


def test_the_noise_of_a_round_is_its_expected_absolute_noise_over_all_cells():
    curator = door(rows_of(chain(2_000, 1)), CHAIN, rho(1), NoNoise())
    measured = Measured(curator.domain, (), 2**20)
    measured.add(curator.measure([Clique((name,)) for name in curator.domain.columns], rho(0.1)))
    measured.refit(100)
    pair = curator.domain.clique("ab")
    chosen = measured.next_table(curator, {pair: 1.0}, Round(rho(0.01), rho(0.02), 2**20, 100))
    sigma = math.sqrt(1 / (2 * 0.02))
    assert chosen.noise == pytest.approx(math.sqrt(2 / math.pi) * sigma * curator.domain.cells(pair), rel=0.01)
