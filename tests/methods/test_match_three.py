"""Tests of `understudy.methods.match_three`."""

import json

import numpy as np
import pyarrow as pa
import pytest

from tests.methods.generated_rows import SPECIFICATION, challenge_schema
from tests.real.shared_tables import FOLDER
from understudy.codec.table import TableCodec
from understudy.domain import Domain
from understudy.errors import UsageError
from understudy.methods.dpsyn import DpSyn
from understudy.methods.fieldgroups import parse_groups
from understudy.methods.match_three import (
    MATCH_THREE,
    match3_blocks,
    match3_marginals,
    match3_schema,
    match3_tables,
    programmed_noise,
)
from understudy.methods.method import PublicFacts
from understudy.privacy.cost import UNIT, Budget, Cost

needs_specification = pytest.mark.skipif(not SPECIFICATION.exists(), reason="the specification is not at hand")


def test_tables_of_the_second_round():
    tables = match3_tables()
    assert {part: len(cliques) for part, cliques in tables.items()} == {"tree": 97, "further_pairs": 27, "triples": 23}
    everything = [frozenset(clique) for part in tables.values() for clique in part]
    assert len(set(everything)) == 147
    columns = {name for clique in tables["tree"] for name in clique}
    part = {name: name for name in columns}
    for first, second in tables["tree"]:
        assert part[first] != part[second]
        part = {name: part[first] if part[name] == part[second] else part[name] for name in part}
    assert len(columns) == 98  # all but INCWAGE.kind, which hangs on INCWAGE.size by a further pair
    assert len(set(part.values())) == 1
    pairs = set(everything) - {frozenset(triple) for triple in tables["triples"]}
    for a, b, c in tables["triples"]:  # every triple's pairs are measured, too
        assert {frozenset((a, b)), frozenset((b, c)), frozenset((a, c))} <= pairs


@pytest.mark.parametrize(
    ("rho", "triple"), [(0.00107, 8), (0.0011, 8), (0.0111, 6), (0.0124, 6), (0.159, 4), (0.58, 4)]
)
def test_weights(rho, triple):
    listed = list(match3_marginals(Cost(rho=int(rho * UNIT))))
    heavy = {frozenset(entry.clique): entry.weight for entry in listed if entry.weight != 1.0}
    scored = [frozenset(pair) for pair in (("SEX", "CITY"), ("SEX", "INCWAGE.size"), ("CITY", "INCWAGE.size"))]
    expected = {frozenset(["INCWAGE.size"]): 2.0, frozenset(["SEX", "CITY", "INCWAGE.size"]): triple}
    assert heavy == expected | dict.fromkeys(scored, 2.0)
    assert len(listed) == 148
    grouped = {frozenset(entry.clique) for entry in listed if entry.starts}
    assert grouped == {frozenset(["CITY", "INCWAGE.size"]), frozenset(["CITY", "INCWAGE.size", "SEX"])}


@needs_specification
def test_schema_of_the_specification():
    schema = challenge_schema()
    domain = TableCodec.of(schema).domain
    assert len(domain.columns) == 99
    sizes = {
        "INCWAGE.size": 52,
        "INCWAGE.kind": 9,
        "VALUEH": 5003,
        "SEX": 2,
        "SUPDIST": 63,
        "MIGSEA5": 505,
        "COUNTY": 1251,
    }
    assert {name: domain.sizes[name] for name in sizes} == sizes
    named = {name for part in match3_tables().values() for clique in part for name in clique}
    assert named == set(domain.columns)


def test_codes_come_from_the_book_or_the_largest_value():
    facts = {"maxval": 9, "values_in_codebook": [0, 3]}
    schema = match3_schema({"A": facts, "B": {"type": "enum", "maxval": 2}, "INCWAGE": {}, "VALUEH": {}})
    assert [column.name for column in schema.columns] == ["A", "B", "INCWAGE", "VALUEH"]
    assert [column.labels for column in schema.columns[:2]] == [("0", "3", "9"), ("0", "1", "2")]
    with pytest.raises(UsageError, match="maxval"):
        match3_schema({"A": {}})


def test_house_values_in_steps_of_five():
    codec = TableCodec.of(match3_schema({"VALUEH": {"maxval": 9_999_999}}))
    values = pa.array([0, 4, 5, 24_999, 25_000, 80_000, 9_999_998, 9_999_999])
    assert codec.encode("VALUEH", values).tolist() == [0, 0, 1, 4999, 5000, 5000, 5001, 5002]


def test_incomes_are_split_into_hundreds_and_roundness():
    codec = TableCodec.of(match3_schema({"INCWAGE": {"maxval": 999_998}}))
    amounts = [0, 140, 1_250, 75, 30, 15, 4_999, 98, 5_001, 999_998, 4_920, 80_000]
    sizes, kinds = (codec.encode(f"INCWAGE.{part}", pa.array(amounts)) for part in ("size", "kind"))
    assert sizes.tolist() == [0, 1, 12, 0, 0, 0, 49, 0, 50, 51, 49, 50]
    assert kinds.tolist() == [0, 1, 2, 3, 4, 5, 7, 6, 7, 8, 1, 7]
    codes = {"INCWAGE.size": np.tile(sizes, 50), "INCWAGE.kind": np.tile(kinds, 50)}
    drawn = codec.decode(codes, np.random.default_rng(0)).column("INCWAGE")
    assert codec.encode("INCWAGE.size", drawn).tolist() == codes["INCWAGE.size"].tolist()
    assert codec.encode("INCWAGE.kind", drawn).tolist() == codes["INCWAGE.kind"].tolist()
    found = [set(drawn.to_pylist()[place::12]) for place in range(12)]
    assert found[:4] == [{0}, {120, 140, 160, 180}, {1_250}, {25, 75}]
    assert found[8:10] == [{5_001}, {999_998}]


# The team's tables of Match 3: its noise by formula, how many tables, and a plan for the challenge's schema.


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


# The challenge's groups: with the single columns, 39 groups of its 98 columns.


COLUMNS_OF_THE_CHALLENGE = 98


def test_26_groups_and_13_single_columns_make_39() -> None:
    names = [name for group in MATCH_THREE.split(", ") for name in group.split("+")]
    groups = parse_groups(MATCH_THREE, Domain.of(dict.fromkeys(names, 2)), "groups")
    single = COLUMNS_OF_THE_CHALLENGE - sum(len(group.columns) for group in groups)
    assert (len(groups), single, len(groups) + single) == (26, 13, 39)
