"""What the papers print, and what it truly costs: by the account, by exact likelihood ratios, and by experiment."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.methods.door import door, epsilon, letters, rows_of
from tests.nets.lower_bound import epsilon_lower
from understudy.answers import Measurement
from understudy.errors import UsageError
from understudy.methods.steps import Steps, padded_counts, printed_factor, printed_shares
from understudy.models.histogram_tree import HistogramTree, least_squares
from understudy.privacy.cost import UNIT
from understudy.privacy.randomizer import Request, SecureRandomizer
from understudy.testing.doubles import NoNoise
from understudy.testing.replay import Recorder, cost_of

FOUR = letters({"a": 2, "b": 3, "c": 2, "d": 3})
TENTH = Fraction(1, 10)
CONFIDENCE = 0.999
RUNS = 20_000


@pytest.mark.parametrize(
    ("layers", "share", "factor"),
    [(2, TENTH, Fraction(155, 100)), (3, TENTH, Fraction(135, 100)), (2, 0, Fraction(3, 2)), (3, 0, Fraction(4, 3))],
)
def test_true_cost_of_the_printed_budgets(layers, share, factor):
    assert printed_factor("2020", layers, 15, share=Fraction(share)) == factor


@pytest.mark.parametrize("columns", range(2, 9))
def test_the_printed_budget_is_right_for_a_full_decomposition(columns):
    assert printed_factor("2020", columns, columns, share=TENTH) == 1


def test_half_sensitivities_cost_half_as_much_again():
    assert printed_factor("2019", 2, 15, allocation="half_leaf") == Fraction(3, 2)
    assert printed_factor("2019", 2, 15, allocation="equal") == Fraction(5, 3)
    with pytest.raises(UsageError, match="divides by zero"):
        printed_shares("2020", 1, 15, share=TENTH)


def queries(method, budget):
    """The requests and answers of a run on one row, without noise."""
    rows = {name: np.zeros(1, int) for name in "abcd"}
    recorder = Recorder(NoNoise())
    curator = door(rows_of(rows), FOUR, budget, recorder)
    method.fit(curator, budget)
    return recorder.log, curator


def test_the_account_of_a_published_run_is_its_true_cost():
    log, curator = queries(Steps(as_published="2020", layers=2, choice_share=0.1), epsilon(1.55))
    assert curator.left.epsilon == 0
    total = cost_of([exchange.request for exchange in log], zcdp=False).epsilon / UNIT
    assert total == pytest.approx(1.55, abs=1e-9)
    rates = [exchange.request for exchange in log if exchange.request.distribution is None]
    assert [float(2 * request.rate * request.sensitivity) for request in rates] == pytest.approx([0.1, 0.1])
    scales = [exchange.request.distribution.scale for exchange in log if exchange.request.distribution is not None]
    assert scales == pytest.approx([1 / 0.45] * 3)


def test_ours_costs_what_it_says():
    log, curator = queries(Steps(layers=2, choice_share=0.1, allocation="equal", n_policy="estimated"), epsilon(1))
    assert curator.left.epsilon == 0
    total = cost_of([exchange.request for exchange in log], zcdp=False).epsilon / UNIT
    assert total == pytest.approx(1.0, abs=1e-9)
    scales = [exchange.request.distribution.scale for exchange in log if exchange.request.distribution is not None]
    assert scales == pytest.approx([1 / 0.3] * 3)


def distributions(method, budget):
    _, curator = queries(method, budget)
    return [answer.distribution for answer in curator.transcript if isinstance(answer, Measurement)]


PUBLISHED = (Steps(as_published="2020", layers=2, choice_share=0.1), epsilon(1.55))
OURS = (Steps(layers=2, choice_share=0.1, allocation="equal", n_policy="estimated"), epsilon(1))


def test_exact_likelihoods_of_the_counts_alone_exceed_the_printed_budget():
    # One row more raises its node of each layer and its cell by one. All three answers at or above the larger count
    # are e^(Σ 1/b) times as likely with the row as without it, for every such outcome.
    assert sum(1 / distribution.scale for distribution in distributions(*PUBLISHED)) == pytest.approx(1.35)
    assert sum(1 / distribution.scale for distribution in distributions(*OURS)) == pytest.approx(0.9)


def audited(method, budget) -> float:
    """A lower bound of ε of the counts on one path, from real noise: how often all of them lie above the count."""
    noisy = []
    for count in (0, 1):
        above = np.ones(RUNS, dtype=bool)
        for distribution in distributions(method, budget):
            request = Request("measure", "audit", RUNS, distribution, Fraction(1))
            above &= SecureRandomizer().add_noise(request, np.full(RUNS, count, dtype=np.int64)) >= 1
        noisy.append(int(above.sum()))
    return epsilon_lower(noisy[0], noisy[1], RUNS, CONFIDENCE)


def test_an_audit_refutes_the_printed_budget_and_not_ours():
    assert audited(*PUBLISHED) > 1.0
    ours = audited(*OURS)
    assert 0.6 < ours <= 1.0


def test_a_published_run_makes_no_claim():
    from understudy.methods.method import facts_of

    curator = door(rows_of({name: np.zeros(1, int) for name in "abcd"}), FOUR, epsilon(1.55))
    method = Steps(as_published="2020", layers=2, choice_share=0.1)
    plan = method.plan(facts_of(curator), epsilon(1.55))
    assert "ε = 1.55" in plan.refused
    assert "says ε = 1;" in plan.refused
    assert not method.shares_structure
    assert Steps().plan(facts_of(curator), epsilon(1)).refused == ""


def test_padding_breaks_the_sums_and_weighted_least_squares_does_not():
    tree = HistogramTree((np.zeros(2, dtype=np.int64),))
    padded = padded_counts(tree, [np.array([7.0, 2.0])], 3, 12.0)
    assert padded[1].tolist() == [8.0, 3.0]
    assert padded[1].sum() != 12
    right = least_squares(tree, [[12.0], [7.0, 2.0]], [0.0, 1.0])
    assert right.values[1].tolist() == [8.5, 3.5]


def test_padded_categories_as_known_zeros_change_nothing():
    with_phantom = HistogramTree((np.zeros(3, dtype=np.int64),))
    found = least_squares(with_phantom, [[12.0], [7.0, 2.0, 0.0]], [0.0, np.array([1.0, 1.0, 0.0])])
    assert found.values[1].tolist() == [8.5, 3.5, 0.0]


def test_the_padded_rule_is_that_of_hay_on_a_complete_tree():
    tree = HistogramTree((np.array([0, 0]), np.array([0, 0, 1, 1])))
    noisy = [np.array([11.0, 8.0]), np.array([7.0, 2.0, 5.0, 6.0])]
    padded = padded_counts(tree, noisy, 2, 20.0)
    right = least_squares(tree, [[20.0], *noisy], [0.0, 1.0, 1.0])
    for one, other in zip(padded, right.values, strict=True):
        assert one == pytest.approx(other)


@pytest.mark.parametrize("options", [{}, {"choice": "grouped"}, {"sequence": "d,a"}, {"sequence": "d,a,b,c"}])
def test_published_runs_come_back_without_noise(options):
    rng = np.random.default_rng(2)
    codes = {name: rng.integers(0, FOUR_SIZES[name], 300) for name in FOUR_SIZES}
    curator = door(rows_of(codes), FOUR, epsilon(2), NoNoise())
    model = Steps(as_published="2020", **options).fit(curator, epsilon(2))
    exact = np.bincount(np.ravel_multi_index(tuple(codes.values()), tuple(FOUR_SIZES.values())), minlength=36)
    assert model.signed == pytest.approx(exact)
    assert curator.left.epsilon == 0


FOUR_SIZES = {"a": 2, "b": 3, "c": 2, "d": 3}


def test_upper_nodes_gain_nothing_from_their_many_cells():
    # Half for the full table at ε = 1, m = 5, L = 2: a node of the second layer has variance 800 (scale 20), each of
    # its 215,040 cells 200 (scale 10). Combining both improves the node in the fifth digit only.
    tree = HistogramTree((np.zeros(1, dtype=np.int64), np.zeros(215_040, dtype=np.int64)))
    upward = least_squares(tree, [[0.0], [0.0], 0.0], [math.inf, 800.0, 200.0]).upward
    assert upward[1][0] == pytest.approx(799.985, abs=5e-4)
