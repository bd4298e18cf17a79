"""Mixtures fitted to pairs: the gradient against differences, known tables found again, what answers add to them."""

import numpy as np
import pytest

from understudy.domain import Clique, Domain, StructuralZeros, centred
from understudy.models.pair_mixtures import (
    CodeGroups,
    Fitting,
    PairEvidence,
    PairGrid,
    PairMixture,
    drawn_towards,
    interaction_share,
    raked,
    with_margins,
)

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2})
GRID = PairGrid.of(DOMAIN)
A_B, A_C, B_C = GRID.pairs


def evidence_of(mixture, precision=1e4):
    """All pairs and columns of a mixture, as if they had been measured."""
    found = PairEvidence.of_columns(GRID, mixture.weights @ mixture.chances, np.full(GRID.codes, precision))
    for pair in GRID.pairs:
        found.add(pair, GRID.table(mixture.pairs(), pair), precision)
    return found


def started(seed, components=4):
    return PairMixture.started(GRID, np.full(GRID.codes, 0.4), components, np.random.default_rng(seed))


def test_pairs_are_those_of_products_weighed_together():
    mixture = started(1)
    chances, weights = mixture.chances, mixture.weights
    for pair in GRID.pairs:
        first, second = chances[:, GRID.places(pair[0])], chances[:, GRID.places(pair[1])]
        together = sum(w * np.outer(a, b) for w, a, b in zip(weights, first, second, strict=True))
        assert GRID.table(mixture.pairs(), pair) == pytest.approx(together, abs=1e-6)


def loss(mixture, evidence, ridge):
    gap = mixture.pairs().astype(float) - evidence.values
    for pair in GRID.pairs:
        if GRID.table(evidence.by_residuals, pair).all():
            GRID.put(gap, pair, centred(GRID.table(gap, pair)))
    ones = (mixture.weights @ mixture.chances).astype(float) - evidence.column_values
    weights = mixture.weights.astype(float)
    apart = mixture.logits - weights @ mixture.logits
    held = 0.5 * ridge * float(weights @ (apart**2).sum(axis=1))
    # Every pair stands in the matrix twice.
    return (
        0.25 * float((evidence.precisions * gap**2).sum())
        + 0.5 * float((evidence.column_precisions * ones**2).sum())
        + held
    )


@pytest.mark.parametrize("by_residuals", [(), (A_B,), (A_B, B_C)])
def test_the_gradient_is_that_of_the_loss(by_residuals):
    mixture, evidence = started(3), evidence_of(started(4), precision=1.0)
    for pair in by_residuals:
        evidence.add_residuals(pair, GRID.table(started(5).pairs(), pair) + 0.25, 2.0)
    slopes, by_weight = mixture._slopes(evidence, 0.0)
    for place in [(0, 0), (1, 3), (3, 6)]:
        beside = []
        for step in (1e-2, -1e-2):
            moved = PairMixture(GRID, mixture.logits.copy(), mixture.log_weights.copy())
            moved.logits[place] += step
            beside.append(loss(moved, evidence, 0.0))
        assert (beside[0] - beside[1]) / 2e-2 == pytest.approx(float(slopes[place]), rel=0.02, abs=1e-6)
    beside = []
    for step in (1e-2, -1e-2):
        moved = PairMixture(GRID, mixture.logits.copy(), mixture.log_weights.copy())
        moved.log_weights[2] += step
        beside.append(loss(moved, evidence, 0.0))
    assert (beside[0] - beside[1]) / 2e-2 == pytest.approx(float(by_weight[2]), rel=0.02, abs=1e-6)


def test_residuals_of_groups_pull_as_those_of_their_codes_do():
    """Codes that are all alike within groups: the loss of groups moves as that of the codes, each known alike well."""
    members = np.array([1, 3, 2, 1, 1, 2, 2])
    fine = PairGrid.of(Domain.of({"a": 4, "b": 4, "c": 4}))
    groups = CodeGroups(fine, GRID, np.repeat(np.arange(7), members))
    rng = np.random.default_rng(0)
    noisy, precision = centred(rng.normal(size=(4, 4))), 3.0
    mixture, evidence = started(3), PairEvidence.of_columns(GRID, np.zeros(7), np.zeros(7), members)
    evidence.add_residuals(A_B, groups.table(A_B, noisy), precision / np.outer(members[:2], members[2:5]))

    def loss_of_codes(mixture):
        expected = GRID.table(mixture.pairs().astype(float), A_B) / np.outer(members[:2], members[2:5])
        spread = np.repeat(np.repeat(expected, members[:2], axis=0), members[2:5], axis=1)
        return 0.5 * precision * float((centred(spread - noisy) ** 2).sum())

    slopes, _ = mixture._slopes(evidence, 0.0)
    for place in [(0, 0), (1, 3), (3, 2)]:
        beside = []
        for step in (1e-2, -1e-2):
            moved = PairMixture(GRID, mixture.logits.copy(), mixture.log_weights.copy())
            moved.logits[place] += step
            beside.append(loss_of_codes(moved))
        assert (beside[0] - beside[1]) / 2e-2 == pytest.approx(float(slopes[place]), rel=0.02, abs=1e-6)


def test_groups_take_neighbours_together_and_leave_frequent_codes_alone():
    grid = PairGrid.of(Domain.of({"a": 6, "b": 3}))
    shares = np.array([0.05, 0.05, 0.6, 0.1, 0.1, 0.1, 0.4, 0.3, 0.3])
    groups = CodeGroups.of(grid, shares, 7)
    assert groups.grouped.codes <= 7
    assert groups.places.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7][: groups.places.size] or groups.grouped.codes < 8
    assert (np.diff(groups.places) >= 0).all()
    assert groups.members[groups.places[2]] == 1
    assert CodeGroups.of(grid, shares, 9).grouped.codes == 9
    assert CodeGroups.of(grid, shares, 1).grouped.codes == 2, "one group a column at least"


def test_tables_of_groups_add_up_and_spread_by_shares():
    grid = PairGrid.of(Domain.of({"a": 4, "b": 3}))
    (pair,) = grid.pairs
    shares = np.array([0.1, 0.3, 0.2, 0.4, 0.5, 0.25, 0.25])
    groups = CodeGroups(grid, PairGrid.of(Domain.of({"a": 2, "b": 2})), np.array([0, 0, 1, 1, 2, 3, 3]))
    together = groups.table(pair, np.arange(12.0).reshape(4, 3))
    assert together.tolist() == [[0 + 3, 1 + 2 + 4 + 5], [6 + 9, 7 + 8 + 10 + 11]]
    assert groups.sums(shares) == pytest.approx([0.4, 0.6, 0.5, 0.5])
    apart = groups.spread(pair, together, shares)
    assert groups.table(pair, apart) == pytest.approx(together)
    assert apart[0, 1] == pytest.approx(12.0 * 0.25 * 0.5)


def test_known_tables_are_found_again():
    truth = PairMixture(GRID, started(5).logits * 4.0, np.zeros(4, dtype=np.float32))
    fitted = started(6, components=8).fit(evidence_of(truth), Fitting(8, 400), ridge=0.0)
    assert np.abs(fitted.pairs() - truth.pairs())[evidence_of(truth).precisions > 0].max() < 0.005


def test_a_strong_ridge_holds_components_together():
    truth = PairMixture(GRID, started(5).logits * 4.0, np.zeros(4, dtype=np.float32))
    fitted = started(6).fit(evidence_of(truth, 1.0), Fitting(4, 300), ridge=1e4)
    ones = fitted.weights @ fitted.chances
    assert np.abs(GRID.table(fitted.pairs(), A_B) - np.outer(ones[:2], ones[2:5])).max() < 1e-3


def test_one_seed_one_fit():
    first, second = (started(7).fit(evidence_of(started(8)), Fitting(4, 20), 1.0) for _ in range(2))
    assert np.array_equal(first.logits, second.logits)


def test_pairs_are_written_in_both_places():
    matrix = np.zeros((GRID.codes, GRID.codes))
    GRID.put(matrix, B_C, np.arange(6.0).reshape(3, 2))
    assert np.array_equal(matrix, matrix.T)
    assert GRID.table(matrix, B_C).ravel().tolist() == list(range(6))


def test_rules_about_two_columns_are_marked():
    rules = [
        StructuralZeros(Clique("ab"), np.array([0, 0, 1, 0, 0, 0], dtype=bool)),
        StructuralZeros(Clique("abc"), np.ones(12, dtype=bool)),
    ]
    marked = GRID.impossible(rules)
    assert marked.sum() == 2
    assert GRID.table(marked, A_B)[0, 2]


def test_exact_answers_are_taken_and_noisy_ones_are_not():
    expected, noisy = np.array([100.0, 200.0, 50.0]), np.array([160.0, 150.0, 40.0])
    assert drawn_towards(expected, noisy, 1e-6) == pytest.approx(noisy, rel=1e-3)
    assert drawn_towards(expected, noisy, 1e9) == pytest.approx(expected, rel=1e-3)


def test_the_mean_error_falls_when_tables_are_drawn():
    rng = np.random.default_rng(0)
    expected = rng.gamma(1.0, 50.0, 500)
    truth = rng.poisson(expected * rng.gamma(20.0, 0.05, 500)).astype(float)
    noisy = truth + rng.normal(0.0, 8.0, 500)
    found = np.abs(drawn_towards(expected, noisy, 64.0) - truth).mean()
    assert found < 0.95 * min(np.abs(expected - truth).mean(), np.abs(noisy - truth).mean())


def test_a_few_cells_far_off_are_kept_and_the_noise_of_all_others_is_let_go():
    rng = np.random.default_rng(3)
    expected, truth = np.full(400, 100.0), np.full(400, 100.0)
    truth[:8] = 400.0
    noisy = truth + rng.normal(0.0, 20.0, 400)
    found = drawn_towards(expected, noisy, 400.0)
    assert np.abs(found - truth)[:8].mean() < 30.0, "noise alone moves them by 16 on average, and they are off by 300"
    assert np.abs(found - truth)[8:].mean() < 5.0


def test_tables_of_more_cells_than_are_judged_are_drawn_like_smaller_ones():
    rng = np.random.default_rng(4)
    expected = np.full((300, 200), 100.0)
    truth = expected + np.where(rng.random(expected.shape) < 0.02, 300.0, 0.0)
    found = drawn_towards(expected, truth + rng.normal(0.0, 20.0, expected.shape), 400.0)
    assert np.abs(found - truth).mean() < 5.0


def test_empty_cells_stay_empty_of_what_noise_says():
    assert drawn_towards(np.zeros(3), np.array([5.0, -3.0, 1.0]), 4.0).tolist() == [0.0, 0.0, 0.0]


def test_shifting_to_margins_is_the_nearest_table_that_has_them():
    rng = np.random.default_rng(0)
    table, whole = rng.normal(size=(3, 4)), np.ones((3, 4), dtype=bool)
    rows, columns = np.array([1.0, 5.0, 2.0]), np.array([2.0, 2.0, 3.0, 1.0])
    found = with_margins(table, rows, columns, whole)
    assert found.sum(axis=1) == pytest.approx(rows)
    assert found.sum(axis=0) == pytest.approx(columns)
    moved = found - table
    centred = moved - moved.mean(axis=0) - moved.mean(axis=1)[:, None] + moved.mean()
    assert centred == pytest.approx(np.zeros((3, 4)), abs=1e-12), "how columns go together is left as it was"


def test_shifting_leaves_impossible_cells_alone():
    possible = np.array([[True, False], [True, True]])
    found = with_margins(np.zeros((2, 2)), np.array([3.0, 5.0]), np.array([6.0, 2.0]), possible)
    assert found[0, 1] == 0.0


def test_noise_of_known_margins_is_gone_from_a_tables_variance():
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(4000, 3, 5))
    whole = np.ones((3, 5), dtype=bool)
    left = [with_margins(one, np.zeros(3), np.zeros(5), whole).var() for one in noise]
    assert np.mean(left) == pytest.approx(interaction_share(whole), rel=0.03)


def test_raking_keeps_zeros_and_takes_the_margins():
    table = np.array([[4.0, 0.0, 1.0], [2.0, 3.0, 1.0]])
    found = raked(table, np.array([6.0, 6.0]), np.array([5.0, 4.0, 3.0]))
    assert found[0, 1] == 0.0
    assert found.sum(axis=0) == pytest.approx([5.0, 4.0, 3.0])
    assert found.sum(axis=1) == pytest.approx([6.0, 6.0], rel=0.05)
