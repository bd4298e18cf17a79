import numpy as np
import pyarrow as pa
import pytest

from tests.mechanisms.challenge.generated_rows import SPECIFICATION, challenge_schema
from understudy.codec.table_codec import TableCodec
from understudy.errors import UsageError
from understudy.mechanisms.challenge.match_three import (
    join_incomes,
    match3_marginals,
    match3_schema,
    match3_tables,
    split_incomes,
)
from understudy.privacy.cost import UNIT, Cost

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
    assert len(columns) == 98  # all but INCWAGE_B, which hangs on INCWAGE_A by a further pair
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
    scored = [frozenset(pair) for pair in (("SEX", "CITY"), ("SEX", "INCWAGE_A"), ("CITY", "INCWAGE_A"))]
    expected = {frozenset(["INCWAGE_A"]): 2.0, frozenset(["SEX", "CITY", "INCWAGE_A"]): triple}
    assert heavy == expected | dict.fromkeys(scored, 2.0)
    assert len(listed) == 148
    grouped = {frozenset(entry.clique) for entry in listed if entry.starts}
    assert grouped == {frozenset(["CITY", "INCWAGE_A"]), frozenset(["CITY", "INCWAGE_A", "SEX"])}


@needs_specification
def test_schema_of_the_specification():
    schema = challenge_schema()
    domain = TableCodec.of(schema).domain
    assert len(domain.columns) == 99
    sizes = {"INCWAGE_A": 52, "INCWAGE_B": 8, "VALUEH": 5003, "SEX": 2, "SUPDIST": 63, "MIGSEA5": 505, "COUNTY": 1251}
    assert {name: domain.sizes[name] for name in sizes} == sizes
    named = {name for part in match3_tables().values() for clique in part for name in clique}
    assert named == set(domain.columns)


def test_codes_come_from_the_book_or_the_largest_value():
    facts = {"maxval": 9, "values_in_codebook": [0, 3]}
    schema = match3_schema({"A": facts, "B": {"type": "enum", "maxval": 2}, "INCWAGE": {}, "VALUEH": {}})
    assert [column.name for column in schema.columns] == ["A", "B", "INCWAGE_A", "INCWAGE_B", "VALUEH"]
    assert [column.labels for column in schema.columns[:2]] == [("0", "3", "9"), ("0", "1", "2")]
    with pytest.raises(UsageError, match="maxval"):
        match3_schema({"A": {}})


def test_house_values_in_steps_of_five():
    codec = TableCodec.of(match3_schema({"VALUEH": {"maxval": 9_999_999}}))
    values = pa.array([0, 4, 5, 24_999, 25_000, 80_000, 9_999_998, 9_999_999])
    assert codec.encode("VALUEH", values).tolist() == [0, 0, 1, 4999, 5000, 5000, 5001, 5002]


def test_incomes_are_split_and_joined():
    amounts = [0, 140, 1_250, 75, 30, 15, 4_999, 98, 5_001, 999_998, 4_920]
    table = pa.table({"SEX": [1] * 11, "INCWAGE": amounts, "AGE": range(11)})
    split = split_incomes(table)
    assert split.column_names == ["SEX", "INCWAGE_A", "INCWAGE_B", "AGE"]
    assert split.column("INCWAGE_A").to_pylist() == [0, 1, 12, 0, 0, 0, 49, 0, 50, 51, 49]
    assert split.column("INCWAGE_B").to_pylist() == [0, 1, 2, 3, 4, 5, 7, 6, 7, 6, 1]
    joined = join_incomes(split, np.random.default_rng(0))
    assert joined.column_names == table.column_names
    again = split_incomes(joined)
    assert again.column("INCWAGE_A") == split.column("INCWAGE_A")
    plain = [place for place, amount in enumerate(amounts) if amount < 5_000]
    assert again.column("INCWAGE_B").take(plain) == split.column("INCWAGE_B").take(plain)
    assert joined.column("INCWAGE").to_pylist()[8:10] == [5_000, 999_998]
    assert joined.column("INCWAGE").to_pylist()[2:4] in ([1_250, 75], [1_250, 25])  # the one amount, two amounts
