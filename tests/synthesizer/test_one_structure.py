"""One structure for all copies: paid for once, used by all, and nothing more is learned from the rows."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from understudy.methods.method import method_named
from understudy.methods.preparation import public_facts
from understudy.models.histogram_tree import TreeModel
from understudy.privacy.cost import UNIT, Budget, Cost
from understudy.privacy.randomizer import SecureRandomizer
from understudy.release.verify import verify_release
from understudy.synthesizer.design import Design, one_structure
from understudy.testing import cases as tables
from understudy.testing.cases import Case
from understudy.testing.doubles import NoNoise, SeededRandomizer
from understudy.testing.replay import Recorder, check_pair, cost_of, designed_pairs, random_pairs

PURE = Budget(1.0)


def released(copies: int = 3, *, schema=None, budget=PURE, randomizer=None, out=None, **options):
    schema = schema or tables.small()
    case = Case(schema, "steps", budget, options, copies=copies, copies_mode="remeasure")
    return case.release(tables.some_rows(schema, 200, seed=2), randomizer or SecureRandomizer(), out=out)


def tree_of(fitted) -> list[list[tuple[int, str | None, int, int]]]:
    model = fitted.model
    assert isinstance(model, TreeModel)
    return [list(map(tuple, model.structure.nodes(layer))) for layer in range(model.structure.layers + 1)]


def test_copies_share_the_tree_and_have_counts_of_their_own() -> None:
    release = released(4, shared_structure=True)
    trees = [tree_of(fitted) for fitted in release.fits]
    assert all(tree == trees[0] for tree in trees)
    assert len({fitted.model.signed.tobytes() for fitted in release.fits}) == 4
    chosen = [charge for charge in release.statement.charges if charge.step.startswith("select")]
    assert {charge.run for charge in chosen} == {1}
    assert [charge.cost for charge in chosen] == [Cost(epsilon=UNIT // 20)] * 2


def test_without_sharing_every_copy_chooses_with_its_part() -> None:
    release = released(4, shared_structure=False)
    chosen = [charge for charge in release.statement.charges if charge.step.startswith("select")]
    assert [charge.run for charge in chosen] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert {charge.cost for charge in chosen} == {Cost(epsilon=UNIT // 80)}


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("budget", [PURE, Budget(1.0, 1e-6)])
def test_the_account_adds_up_to_the_claim(budget: Budget, *, shared: bool) -> None:
    recorder = Recorder(NoNoise())
    release = released(3, budget=budget, randomizer=recorder, shared_structure=shared, stopping="privtree")
    spent, granted = release.statement.spent, release.statement.granted
    queries = cost_of([exchange.request for exchange in recorder.log], zcdp=granted.rho > 0)
    assert queries.fits(spent)
    assert spent.fits(granted)
    assert spent.epsilon >= granted.epsilon - 20
    assert spent.rho >= granted.rho - 20
    assert not release.statement.as_planned
    assert replace(release.statement, refused="").claim == budget.claim(granted)


def test_stopping_early_does_not_lower_the_claim() -> None:
    """What was not spent depends on noisy answers; an ε named after the fact would be no promise."""
    claims, left = set(), []
    for seed in range(12):
        options = {"stopping": "range", "tolerance": 0.9, "layers": 2, "shared_structure": True}
        statement = released(2, budget=Budget(1.0), randomizer=SeededRandomizer(seed), **options).statement
        claims.add(replace(statement, refused="").claim)
        left.append(statement.granted.epsilon - statement.spent.epsilon)
    assert max(left) > UNIT // 100, "no run stopped early, so nothing was tested"
    assert claims == {(1.0, 0.0)}


def test_the_folder_of_such_a_release_verifies(tmp_path: Path) -> None:
    release = released(3, out=tmp_path / "out")
    assert release.statement.claim == (pytest.approx(1.0), 0.0)
    assert release.statement.epsilon <= 1.0
    assert verify_release(tmp_path / "out") == []
    assert "an equal part of the budget" in release.statement.markdown()


def test_neighbours_get_the_same_everything_from_the_same_answers() -> None:
    for budget, schema in ((PURE, tables.several_rows()), (Budget(1.0, 1e-6), tables.small())):
        case = Case(schema, "steps", budget, {"stopping": "range"}, copies=2, copies_mode="remeasure")
        fixed = [pair for pair in designed_pairs(schema) if not pair.name.startswith("hostile")]
        for number, pair in enumerate([*fixed[::3], *random_pairs(schema, 4, np.random.default_rng(3))]):
            check_pair(case.pipeline(), pair.table, pair.neighbour, SeededRandomizer(number))


def test_open_labels_are_fixed_once_for_all_copies() -> None:
    budget = Budget(5.0, 1e-4)
    release = released(3, schema=tables.open_labels(), budget=budget, layers=1)
    steps = [charge.step for charge in release.statement.charges]
    assert steps.count("discover job") == 1
    assert len({json.dumps(fitted.codec.to_json()) for fitted in release.fits}) == 1
    assert release.statement.spent.fits(release.statement.granted)


def test_costs_follow_the_share_of_choosing() -> None:
    design = Design.of(tables.small(), "steps", PURE, runs=4)
    assert design.structure is not None
    assert design.structure.epsilon == UNIT // 10
    assert design.share.epsilon == (UNIT - UNIT // 10) // 4
    assert design.granted_in(1) == design.share + design.structure
    assert design.granted_in(2) == design.share
    assert len(design.planned) == 2 + 4 * 4
    alone = Design.of(tables.small(), "steps", PURE)
    assert alone.structure is None
    assert alone.granted_in(1) == alone.share
    assert alone.planned == [step.cost for step in alone.plan.steps]


def test_methods_without_a_structure_are_left_alone() -> None:
    facts = public_facts(tables.small())
    for name in ("independent", "laplace"):
        method = method_named(name)
        assert method.structured is None
        assert one_structure(method, tables.small(), facts, Cost(epsilon=UNIT), 3) is None
    for options in ({"sequence": "*"}, {"shared_structure": False}, {"as_published": "2020"}):
        assert one_structure(method_named("steps", options), tables.small(), facts, Cost(epsilon=UNIT), 3) is None
    assert one_structure(method_named("steps"), tables.small(), facts, Cost(epsilon=UNIT), 1) is None
