"""Every registered method against the contract of mechanisms. A new method is one line here."""

import pytest

from understudy.mechanisms import registry
from understudy.privacy.cost import Budget
from understudy.testing.mechanism_contract import MechanismChecks

PURE, CONCENTRATED = Budget(1.0), Budget(1.0, 1e-6)
ONE_WAY = (["registered"], ["voted"], ["age"])

METHODS = {
    "independent": MechanismChecks("independent", [PURE, CONCENTRATED], ONE_WAY),
    "laplace": MechanismChecks("laplace", [PURE], [["registered", "voted", "age"]]),
    # The graphical methods ask and fit much more per run than the baselines: fewer replays keep the suite short.
    "mst": MechanismChecks("mst", [CONCENTRATED], [["registered", "voted"], ["age"]], pairs=120),
    "mwem": MechanismChecks("mwem", [PURE, CONCENTRATED], [["registered", "voted"], ["voted", "age"]], pairs=120),
    "aim": MechanismChecks("aim", [CONCENTRATED], [["registered", "voted"], ["voted", "age"]], pairs=120),
    "nist_mst": MechanismChecks(
        "nist_mst", [CONCENTRATED], [["registered", "voted"], ["age"]], {"marginals": "pairs"}, pairs=120
    ),
    "random_partition": MechanismChecks(
        "random_partition", [PURE, CONCENTRATED], [["registered", "voted", "age"]], pairs=120
    ),
    "universal_histogram": MechanismChecks(
        "universal_histogram", [PURE, CONCENTRATED], [["registered", "voted", "age"]], {"branching": 2}, pairs=120
    ),
    "steps": MechanismChecks("steps", [PURE, CONCENTRATED], [["registered", "voted", "age"]], pairs=120),
    "steps by a sequence": MechanismChecks(
        "steps", [PURE], [["registered", "voted", "age"]], {"sequence": "*", "allocation": "equal"}, pairs=60
    ),
    "steps with stopping": MechanismChecks(
        "steps", [PURE], [["registered", "voted", "age"]], {"stopping": "range", "layers": 3}, pairs=60
    ),
    "auto": MechanismChecks("auto", [PURE, CONCENTRATED], ONE_WAY),
}


def test_every_method_is_held_against_the_contract() -> None:
    assert {checks.method for checks in METHODS.values()} == set(registry.names())


@pytest.mark.parametrize(
    "check",
    [
        "budget_is_kept",
        "replays_on_neighbours",
        "recovers_at_a_huge_budget",
        "improves_with_the_budget",
        "survives_edge_shapes",
        "honours_rules_and_schema",
        "agrees_through_every_source",
        "model_survives_its_files",
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_method(method: str, check: str) -> None:
    getattr(METHODS[method], check)()
