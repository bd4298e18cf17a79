"""A contract that nothing can break is worth nothing: each is shown to fail on something wrong."""

from dataclasses import dataclass, replace
from unittest import mock

import numpy as np
import pytest

from understudy.counts.chunked_source import ChunkedSource
from understudy.counts.open import open_table
from understudy.marginals.domain import Domain
from understudy.mechanisms import registry
from understudy.mechanisms.independent import Independent
from understudy.models.blocks import BlockModel
from understudy.privacy.cost import Budget, Cost
from understudy.privacy.curator import Curator
from understudy.testing import check_model, check_source
from understudy.testing.chooser import Chooser
from understudy.testing.grower import Grower
from understudy.testing.mechanism_contract import MechanismChecks, check_mechanism
from understudy.testing.planted.leaks import LEAKS

DOMAIN = Domain.of({"a": 2, "b": 3})


def _model(weights: list[float]) -> BlockModel:
    parts = {DOMAIN.clique("a"): np.array(weights), DOMAIN.clique("b"): np.array([0.2, 0.3, 0.5])}
    return BlockModel.of_marginals(DOMAIN, parts, (), 5.0)


def test_model_contract_rejects_another_distribution() -> None:
    joint = np.outer([0.4, 0.6], [0.2, 0.3, 0.5]).reshape(-1)
    check_model(_model([0.4, 0.6]), joint)
    with pytest.raises(AssertionError):
        check_model(_model([0.45, 0.55]), joint)


def test_model_contract_rejects_a_sampler_whose_columns_rise_together() -> None:
    joint = np.outer([0.4, 0.6], [0.2, 0.3, 0.5]).reshape(-1)

    class Sorted(BlockModel):
        def draw(self, rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
            return {name: np.sort(codes) for name, codes in super().draw(rows, rng).items()}

    with pytest.raises(AssertionError):
        check_model(Sorted(DOMAIN, _model([0.4, 0.6]).blocks, 5.0), joint)


def test_source_contract_rejects_lost_rows_and_double_counting() -> None:
    with pytest.raises(AssertionError):
        check_source(lambda table, schema: open_table(table.slice(1), schema))
    counting = ChunkedSource.counts
    doubled = lambda self, cliques: {key: 2 * part for key, part in counting(self, cliques).items()}  # noqa: E731
    with mock.patch.object(ChunkedSource, "counts", doubled), pytest.raises(AssertionError):
        check_source(open_table)


def test_source_contract_rejects_a_bound_that_is_ignored() -> None:
    everybody = lambda ids, *_: np.flatnonzero(ids.is_valid())  # noqa: E731
    with mock.patch("understudy.counts.frame_source.kept_rows", everybody), pytest.raises(AssertionError):
        check_source(open_table)


CHECKS = MechanismChecks("chooser", [Budget(1.0), Budget(1.0, 1e-6)], (["voted"], ["age"]), pairs=60)


def test_a_method_with_every_verb_passes_the_contract() -> None:
    with mock.patch.dict(registry._BUILT_IN, {"chooser": Chooser}):
        check_mechanism(CHECKS)


def test_a_method_with_trees_choices_in_cells_and_scores_passes_the_contract() -> None:
    checks = MechanismChecks("grower", [Budget(1.0, 1e-6)], (["voted"], ["age"]), pairs=30)
    with mock.patch.dict(registry._BUILT_IN, {"grower": Grower}):
        check_mechanism(checks)


@dataclass(frozen=True, slots=True)
class Thrifty(Independent):
    """Leaves half of the budget unused."""

    def run(self, curator: Curator, cost: Cost) -> BlockModel:
        return Independent.run(self, curator, cost.share(0.5))


@dataclass(frozen=True, slots=True)
class Uniform(Independent):
    """Spends, and ignores what it learned."""

    def run(self, curator: Curator, cost: Cost) -> BlockModel:
        model = Independent.run(self, curator, cost)
        return BlockModel.uniform(model.domain, curator.forbidden, model.total)


@dataclass(frozen=True, slots=True)
class Lawless(Independent):
    """Forgets the rules."""

    def run(self, curator: Curator, cost: Cost) -> BlockModel:
        model = Independent.run(self, curator, cost)
        parts = {
            model.domain.clique([name]): model.marginal(model.domain.clique([name])) for name in model.domain.columns
        }
        return BlockModel.of_marginals(model.domain, parts, (), model.total)


@pytest.mark.parametrize(
    ("wrong", "check"),
    [
        (Thrifty, "budget_is_kept"),
        (Uniform, "recovers_at_a_huge_budget"),
        (Uniform, "improves_with_the_budget"),
        (Lawless, "honours_rules_and_schema"),
    ],
)
def test_mechanism_contract_rejects(wrong: type[Independent], check: str) -> None:
    checks = replace(CHECKS, method="independent")
    with mock.patch.dict(registry._BUILT_IN, {"independent": wrong}), pytest.raises(AssertionError):
        getattr(checks, check)()


def test_mechanism_contract_rejects_a_leak() -> None:
    leak = next(bug for bug in LEAKS if bug.name == "counts in the model")
    with leak.plant(), pytest.raises(AssertionError, match="released bytes differ"):
        replace(CHECKS, method="independent").replays_on_neighbours()


def test_mechanism_contract_rejects_a_source_that_changes_the_answer() -> None:
    checks = replace(CHECKS, method="independent")
    path = "understudy.counts.duckdb_source.DuckDBTable.bind"
    with mock.patch(path, side_effect=AssertionError("files are read")), pytest.raises(AssertionError):
        checks.agrees_through_every_source()
