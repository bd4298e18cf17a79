"""The team's tables of Match 3: its noise by formula, how many tables, and a plan for the challenge's schema."""

import json

import pytest

from tests.real.shared_tables import FOLDER
from understudy.codec.table import TableCodec
from understudy.methods.dpsyn import DpSyn
from understudy.methods.match_three import match3_blocks, match3_schema, programmed_noise
from understudy.methods.method import PublicFacts
from understudy.privacy.cost import UNIT, Budget, Cost

DELTA = 1 / 662_000**2


@pytest.mark.parametrize(
    ("epsilon", "sigma", "digits"),
    [(0.06, 2504, 0), (0.2, 752, 0), (0.3, 509.6, 1), (1.0, 157.5, 1), (1.6, 98.8, 1), (8.0, 20.5, 1)],
)
def test_noise_of_the_program(epsilon: float, sigma: float, digits: int) -> None:
    assert round(programmed_noise(epsilon), digits) == sigma


def blocks_at(epsilon: float):
    return match3_blocks(Budget(epsilon, DELTA).cost("zcdp"))


def test_tables_by_budget() -> None:
    numbers = {epsilon: sum(map(len, blocks_at(epsilon).blocks)) for epsilon in (0.2, 0.3, 1.0, 8.0)}
    assert numbers[0.2] < numbers[0.3] < numbers[1.0] == numbers[8.0]
    assert numbers[0.3] - numbers[0.2] == 5, "WARD with five others"
    assert numbers[1.0] - numbers[0.3] == 10, "all pairs of five sample-line columns"
    assert [len(block) for block in blocks_at(0.2).blocks][:2] == [4, 4]


def test_sample_line_tables_carry_the_flag() -> None:
    assert all("SLREC" in table for table in blocks_at(1.0).blocks[3])


def test_rules_for_rare_values_and_incomes_follow_the_budget() -> None:
    assert [blocks_at(epsilon).most_values for epsilon in (0.06, 1.0, 8.0)] == [14, 19, 54]
    assert [len(blocks_at(epsilon).starts["INCWAGE.size"]) for epsilon in (0.2, 0.3, 1.0)] == [4, 6, 16]
    assert sum(blocks_at(1.0).reserved.values()) == pytest.approx(1 / 3)
    assert match3_blocks(Cost(epsilon=UNIT)).most_values == 19


@pytest.mark.skipif(not (FOLDER / "nist2018_match3_specs").is_dir(), reason="the specification is not there")
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_plan_on_the_schema_of_the_challenge(epsilon: float) -> None:
    text = (FOLDER / "nist2018_match3_specs" / "domain.json").read_text(encoding="utf-8")
    codec = TableCodec.of(match3_schema(json.loads(text)["columns"]))
    cost = Budget(epsilon, DELTA).cost("zcdp")
    plan = DpSyn(preset="match3").plan(PublicFacts(codec.domain, codec.structural_zeros, 1, 662_000), cost)
    assert plan.cost.fits(cost)
    assert plan.cost.rho > 0.999 * cost.rho
    costs = {step.name: step.cost.rho / cost.rho for step in plan.steps}
    assert costs["measure ENUMDIST"] == pytest.approx(1 / 24, rel=1e-4)
    triple = next(name for name in costs if {"SEX", "CITY", "INCWAGE.size"} == set(name[8:].split(" × ")))
    assert costs[triple] == pytest.approx(1 / 4, rel=1e-4)
