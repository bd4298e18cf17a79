from fractions import Fraction

import numpy as np
import pytest

from tests.methods.door import VOTERS, door, epsilon, letters, rho, rows_of
from tests.methods.test_independent import voters
from understudy.domain import Distribution, Domain
from understudy.errors import ResourceError, UsageError
from understudy.methods.method import PublicFacts, facts_of
from understudy.methods.tree_layers import average_variance
from understudy.methods.universal_histogram import UniversalHistogram, best_branching, cut_levels
from understudy.models.histogram_tree import HistogramTree, TreeStructure, least_squares
from understudy.privacy.cost import Budget
from understudy.testing.method_contract import MethodChecks


def test_levels_keep_the_fan_out():
    domain = Domain.of({"a": 2, "b": 3, "c": 14, "d": 1, "e": 2})
    levels = cut_levels(domain, domain.columns, 6)
    assert [[tuple(cut) for cut in level] for level in levels] == [
        [("a", 2), ("b", 3)],
        [("c", 4)],
        [("c", 4)],
        [("e", 2)],
    ]
    flat = cut_levels(domain, domain.columns, 10**6)
    assert [[cut.column for cut in level] for level in flat] == [["a", "b", "c", "e"]]
    assert cut_levels(Domain.of({"a": 1}), ["a"], 2) == [[]]


@pytest.mark.parametrize("size", [1, 2, 5, 7, 16, 100, 1_000])
@pytest.mark.parametrize("branching", [2, 3, 10])
def test_one_column_is_cut_down_to_its_codes(size, branching):
    domain = Domain.of({"a": size})
    levels = cut_levels(domain, ["a"], branching)
    structure = TreeStructure.root(domain)
    for level in levels:
        (cut,) = level or [None]
        structure = structure if cut is None else structure.refine(["a"] * structure.size(), parts=cut.parts)
    assert structure.size() == size
    assert len(levels) == max(1, int(np.ceil(np.log(size) / np.log(branching) - 1e-9)))


def test_padding_changes_nothing():
    """Seven codes in a binary tree of eight places, the eighth known to be empty, against the tree without it."""
    rng = np.random.default_rng(3)
    padded = HistogramTree((np.arange(2) // 2, np.arange(4) // 2, np.arange(8) // 2))
    values = [rng.integers(0, 50, size).astype(float) for size in padded.sizes]
    values[3][7] = 0.0
    variances = [np.inf, 3.0, 3.0, np.array([3.0] * 7 + [0.0])]
    bare = HistogramTree((np.arange(2) // 2, np.arange(4) // 2, np.arange(7) // 2))
    expected = least_squares(padded, values, variances).values[3][:7]
    found = least_squares(bare, [*values[:3], values[3][:7]], [np.inf, 3.0, 3.0, 3.0]).values[3]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("budget", [epsilon(1), rho(0.1)])
@pytest.mark.parametrize(
    "method",
    [
        UniversalHistogram(),
        UniversalHistogram(branching=2, n_policy="estimated"),
        UniversalHistogram(branching=2, allocation="optimal", first="age", negatives="norm_sub"),
        UniversalHistogram(branching=100, rounding="controlled"),
    ],
)
def test_the_run_spends_what_the_plan_says(method, budget):
    curator = door(rows_of(voters(50)), VOTERS, budget)
    plan = method.plan(facts_of(curator), budget)
    method.fit(curator, budget)
    assert plan.fixed
    assert plan.cost == budget - curator.left
    assert curator.left.epsilon == 0
    assert curator.left.rho <= 8
    assert [charge for _, charge in curator.charges] == [step.cost for step in plan.steps]
    assert [answer.distribution.scale for answer in curator.transcript] == [step.noise_scale for step in plan.steps]
    assert [answer.values.size for answer in curator.transcript] == [step.cells for step in plan.steps]


def test_noise_of_a_level_is_the_height_over_epsilon():
    plan = UniversalHistogram(branching=2, n_policy="estimated").plan(
        PublicFacts(Domain.of({"a": 8}), (), 1), epsilon(1)
    )
    assert [step.noise_scale for step in plan.steps] == pytest.approx([3.0] * 3)
    assert [step.cells for step in plan.steps] == [2, 4, 8]
    zcdp = UniversalHistogram(branching=2, n_policy="estimated").plan(PublicFacts(Domain.of({"a": 8}), (), 1), rho(0.5))
    assert [step.noise_scale**2 for step in zcdp.steps] == pytest.approx([3.0] * 3)  # type: ignore[operator]


def enumerated(fanouts, variances):
    """The average variance of all ranges by linear algebra."""
    sizes = np.cumprod([1, *fanouts])
    rows = np.concatenate([np.repeat(np.eye(size), sizes[-1] // size, axis=1) for size in sizes[1:]])
    covariance = np.linalg.inv(rows.T @ (rows / np.repeat(variances, sizes[1:])[:, None]))
    prefix = np.pad(covariance, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)
    ranges = np.diag(prefix)[:, None] + np.diag(prefix) - 2 * prefix
    return ranges[np.triu_indices(sizes[-1] + 1, 1)].mean()


@pytest.mark.parametrize("zcdp", [False, True])
def test_the_chosen_branching_is_the_best_of_all_depths(zcdp):
    found = {}
    for depth, base in [(1, 64), (2, 8), (3, 4), (6, 2)]:
        found[base] = enumerated([base] * depth, [float(depth if zcdp else depth**2)] * depth)
    chosen = best_branching(Domain.of({"a": 64}), ["a"], zcdp=zcdp)
    assert chosen == min(found, key=found.get)


def test_branching_for_one_code_few_codes_and_many_columns():
    assert best_branching(Domain.of({"a": 1}), ["a"], zcdp=False) == 2
    assert best_branching(Domain.of({"a": 16}), ["a"], zcdp=False) == 16  # best left flat
    domain = Domain.of({f"c{place}": 2 for place in range(12)})
    chosen = best_branching(domain, domain.columns, zcdp=False)
    assert [len(level) for level in cut_levels(domain, domain.columns, chosen)] == [4, 4, 4]


def test_branching_is_chosen_from_the_domain_and_the_currency():
    facts = PublicFacts(Domain.of({"a": 65_536}), (), 1)
    method = UniversalHistogram(n_policy="estimated")
    assert [step.cells for step in method.plan(facts, epsilon(1)).steps] == [16, 256, 4096, 65_536]
    assert len(method.plan(facts, rho(1)).steps) == 16


def test_ranges_are_as_good_as_computed_and_better_than_flat_noise():
    """1,024 codes at ε = 0.5, two levels of 32: squared errors of all ranges of signed estimates, on average."""
    size, runs = 1_024, 60
    rng = np.random.default_rng(6)
    codes = {"a": rng.integers(0, size, 4_000)}
    schema, table = letters({"a": size}), rows_of(codes)
    exact = np.bincount(codes["a"], minlength=size)
    found = []
    for _ in range(runs):
        model = UniversalHistogram(n_policy="estimated").fit(door(table, schema, epsilon(0.5)), epsilon(0.5))
        prefix = np.concatenate(([0.0], np.cumsum(model.signed - exact)))  # type: ignore
        found.append(((size + 1) * (prefix**2).sum() - prefix.sum() ** 2) / (size * (size + 1) / 2))
    computed = average_variance([32, 32], [Distribution("laplace", Fraction(4)).variance] * 2)
    flat = average_variance([size], [Distribution("laplace", Fraction(2)).variance])
    assert computed < flat / 2
    # One run's average spreads by 0.53 of its mean (2,000 simulated runs); the bound is six standard errors.
    assert abs(np.mean(found) / computed - 1) < 6 * 0.53 / runs**0.5


def test_gaussian_noise_replays_and_keeps_its_budget():
    checks = MethodChecks(
        "universal_histogram",
        [Budget(1.0, 1e-6)],
        [["registered", "voted", "age"]],
        {"branching": 3},
        pairs=24,
        part=(0, 2),
    )
    checks.budget_is_kept()
    checks.replays_on_neighbours()
    checks.recovers_at_a_huge_budget()


def test_columns_named_first_come_first():
    facts = PublicFacts(Domain.of({"a": 2, "b": 3, "c": 4}), (), 1)
    plan = UniversalHistogram(branching=4, first="c, a").plan(facts, epsilon(1))
    assert plan.notes[:2] == ("Level 1 cuts c into 4.", "Level 2 cuts a into 2.")
    for wrong in ("d", "a,a"):
        with pytest.raises(UsageError):
            UniversalHistogram(first=wrong).plan(facts, epsilon(1))


def test_wrong_options_are_refused():
    for options in (
        {"branching": 1},
        {"first": 3},
        {"allocation": "half_leaf"},
        {"n_policy": "public"},
        {"most_cells": 0},
    ):
        with pytest.raises(UsageError):
            UniversalHistogram(**options)


def test_a_full_table_that_does_not_fit_is_refused():
    facts = PublicFacts(Domain.of({f"c{place}": 10 for place in range(12)}), (), 1)
    with pytest.raises(ResourceError, match="12 columns"):
        UniversalHistogram().plan(facts, epsilon(1))
