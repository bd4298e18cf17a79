"""Presets of PrivBayes against the parts of the contract that do not depend on how good they are."""

import pytest

from understudy.privacy.cost import Budget
from understudy.testing.method_contract import MethodChecks

PURE, CONCENTRATED = Budget(1.0), Budget(1.0, 1e-6)
OPTIONS = [
    {"preset": "published"},
    {"preset": "published", "coarsen": 2, "score": "R"},
    {"preset": "steps_paper"},
    {"preset": "nist"},
    {"score": "I"},
    {"degree": 1},
]


@pytest.mark.parametrize("check", ["budget_is_kept", "honours_rules_and_schema"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_preset(options: dict[str, object], check: str) -> None:
    getattr(MethodChecks("privbayes", [PURE, CONCENTRATED], [["age"]], options), check)()


@pytest.mark.slow
@pytest.mark.parametrize("check", ["replays_on_neighbours", "survives_edge_shapes"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_preset_at_length(options: dict[str, object], check: str) -> None:
    getattr(MethodChecks("privbayes", [PURE, CONCENTRATED], [["age"]], options, pairs=60), check)()
