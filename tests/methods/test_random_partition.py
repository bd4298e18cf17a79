import numpy as np
import pytest

from tests.methods.door import VOTERS, door, epsilon, letters, rho, rows_of
from tests.methods.test_independent import voters
from understudy.domain import Domain
from understudy.errors import ResourceError, UsageError
from understudy.methods.method import PublicFacts, facts_of
from understudy.methods.random_partition import RandomPartition, random_structure
from understudy.testing.doubles import SeededRandomizer

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4, "one": 1, "d": 2})


def columns_of(structure):
    return [
        {node.column for node in structure.nodes(layer) if node.column is not None}
        for layer in range(1, structure.layers + 1)
    ]


def test_the_seed_decides_the_tree_and_nothing_else_does():
    trees = [columns_of(random_structure(DOMAIN, 2, seed, "layer")) for seed in range(60)]
    assert trees == [columns_of(random_structure(DOMAIN, 2, seed, "layer")) for seed in range(60)]
    firsts = {next(iter(tree[0])) for tree in trees}
    assert firsts == {"a", "b", "c", "d"}  # any column that has something to split, sooner or later
    assert all(len(layer) == 1 for tree in trees for layer in tree)
    assert all(tree[0] != tree[1] for tree in trees)


def test_nodes_may_draw_for_themselves():
    structure = random_structure(DOMAIN, 3, 5, "node")
    assert any(len(layer) > 1 for layer in columns_of(structure))
    widths = structure.widths()
    assert np.all((widths == 1).sum(axis=1) == 4)  # three columns used up on every path, and the one with one code
    assert structure.widths().prod(axis=1).sum() == 48


def test_one_column_is_left_for_the_full_table():
    assert random_structure(DOMAIN, 64, 0, "layer").layers == 3
    assert random_structure(Domain.of({"a": 9}), 2, 0, "node").layers == 0
    plan = RandomPartition(layers=9).plan(PublicFacts(DOMAIN, (), 1), epsilon(1))
    assert "3 layers are all that the columns allow." in plan.notes
    with pytest.raises(UsageError, match="allow 3"):
        RandomPartition(layers=4, allocation="custom", shares="0.2,0.2,0.2,0.2,0.2").plan(
            PublicFacts(DOMAIN, (), 1), epsilon(1)
        )


@pytest.mark.parametrize("budget", [epsilon(1), rho(0.1)])
@pytest.mark.parametrize(
    "method",
    [
        RandomPartition(),
        RandomPartition(layers=1, drawn_by="node", allocation="half_leaf", n_policy="estimated"),
        RandomPartition(allocation="custom", shares="0.5,0.3,0.2", structure_seed=4, negatives="norm_sub"),
        RandomPartition(layers=0, rounding="controlled"),
    ],
)
def test_the_run_spends_what_the_plan_says(method, budget):
    curator = door(rows_of(voters(50)), VOTERS, budget)
    plan = method.plan(facts_of(curator), budget)
    method.fit(curator, budget)
    assert plan.fixed
    assert plan.cost == budget - curator.left
    assert curator.left.epsilon == 0
    assert curator.left.rho <= 4
    assert [charge for _, charge in curator.charges] == [step.cost for step in plan.steps]
    assert [answer.distribution.scale for answer in curator.transcript] == [step.noise_scale for step in plan.steps]
    assert [answer.values.size for answer in curator.transcript] == [step.cells for step in plan.steps]


def test_schemes_give_the_printed_shares():
    plan = RandomPartition(allocation="half_leaf", n_policy="estimated").plan(PublicFacts(DOMAIN, (), 1), epsilon(1))
    assert [step.cost for step in plan.steps] == [epsilon(0.25), epsilon(0.25), epsilon(0.5)]
    plan = RandomPartition(n_policy="estimated").plan(PublicFacts(DOMAIN, (), 2), epsilon(0.9))
    assert [step.noise_scale for step in plan.steps] == pytest.approx([2 / 0.3] * 3)


def test_columns_of_the_first_layers_come_out_better():
    """At a budget where the full table drowns, the layers keep their columns; flat noise does not."""
    sizes = {"a": 2, "b": 20, "c": 20, "d": 20}
    rng = np.random.default_rng(2)
    codes = {name: np.minimum(rng.geometric(0.8, 3_000) - 1, size - 1) for name, size in sizes.items()}
    schema = letters(sizes)
    truth = np.bincount(codes["a"], minlength=2) / 3_000
    errors = {}
    for layers in (0, 1):
        method = RandomPartition(layers=layers, structure_seed=_seed_for(Domain.of(sizes), "a"), n_policy="estimated")
        model = method.fit(door(rows_of(codes), schema, epsilon(0.5), SeededRandomizer(1)), epsilon(0.5))
        errors[layers] = np.abs(model.marginal(model.domain.clique(["a"])) - truth).sum() / 2
    assert errors[1] < 0.02
    assert errors[0] > 0.1


def _seed_for(domain, column):
    return next(seed for seed in range(100) if columns_of(random_structure(domain, 1, seed, "layer"))[0] == {column})


def test_wrong_options_are_refused():
    for options in (
        {"layers": -1},
        {"layers": 2.0},
        {"drawn_by": "path"},
        {"structure_seed": -1},
        {"allocation": "most"},
        {"allocation": "custom", "shares": "1"},
        {"allocation": "custom", "shares": 0.5},
        {"n_policy": "public"},
        {"total_share": 0},
        {"negatives": "norm_cut"},
        {"most_cells": 0},
    ):
        with pytest.raises(UsageError):
            RandomPartition(**options)


def test_a_full_table_that_does_not_fit_is_refused():
    facts = PublicFacts(Domain.of({f"c{place}": 10 for place in range(12)}), (), 1)
    with pytest.raises(ResourceError, match="1,000,000,000,000 cells"):
        RandomPartition().plan(facts, epsilon(1))
