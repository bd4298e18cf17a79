"""Tests of `understudy.methods.marginals`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.methods.door import MEMORY, door, letters, rho, rows_of
from understudy.codec.table import TableCodec
from understudy.counts.frames import FrameTable
from understudy.domain import Clique, Domain, Measurement
from understudy.errors import UsageError
from understudy.methods import marginals as asking
from understudy.methods import marginals as from_public
from understudy.methods.aim import Aim
from understudy.methods.marginals import (
    ListedTable,
    MarginalList,
    Workload,
    check_workload,
    counting_bytes,
    marginals_from_public,
    parse_tables,
    within,
    written,
)
from understudy.privacy.cost import Cost

DOMAIN = Domain.of({"a": 3, "b": 4, "c": 60, "one": 1, "x, y": 2, "z[1]": 5})


def test_weights_of_columns_and_tables():
    listed = MarginalList.of("c:2, b×a:3, a*c, one", DOMAIN)
    assert dict(listed.columns) == {"c": 2.0, "one": 1.0}
    assert [(table.clique, table.weight) for table in listed.tables] == [(("a", "b"), 3.0), (("a", "c"), 1.0)]


def test_pairs_and_triples_mean_all_of_them():
    assert len(MarginalList.of("pairs", DOMAIN).tables) == 10
    assert len(MarginalList.of(" triples ", DOMAIN).tables) == 10
    assert MarginalList.of("pairs", Domain.of({"a": 3})).tables == ()


def test_groups_of_codes():
    (table,) = MarginalList.of("a×c[1 10 20 51]:6", DOMAIN).tables
    assert table == ListedTable(DOMAIN.clique("ac"), 6.0, {"c": (1, 10, 20, 51)})
    groups = table.groups("c", 60)
    assert [int(groups[code]) for code in (0, 1, 9, 10, 19, 20, 50, 51, 59)] == [0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert table.groups("a", 3).tolist() == [0, 1, 2]


def test_names_with_signs():
    listed = MarginalList.of('"x, y"×a, "x, y[1]"×b, z[1]×a, z[1][2 3]×b', DOMAIN)
    assert [dict(table.starts) for table in listed.tables] == [{}, {"x, y": (1,)}, {}, {"z[1]": (2, 3)}]


def test_columns_with_one_code_are_left_out():
    listed = MarginalList.of("a×b×one, one×c", DOMAIN)
    assert [table.clique for table in listed.tables] == [("a", "b")]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a×b, b×a", "listed twice"),
        ("a×b, a×b×one", "listed twice"),
        ("a:2, a", "listed twice"),
        ("a×a", "twice"),
        ("a×q", "not a modelled column"),
        ("a×q[1]", "not a modelled column"),
        ("a×c[0 3]", "from 1 to 59"),
        ("a×c[3 3]", "increasing"),
        ("a×c[60]", "from 1 to 59"),
        ("a×c[ ]", "increasing"),
        ("a×", "joined"),
    ],
)
def test_bad_lists_are_refused(text, fault):
    with pytest.raises(UsageError, match=fault):
        MarginalList.of(text, DOMAIN)


@pytest.mark.parametrize("name", ["plain", "a, b", 'quo"te', " lead", "x[1]", "m×n", "k:2"])
def test_written_lists_are_read_back(name):
    ((names, weight),) = parse_tables(written([[name, "other"]]))
    assert (names, weight) == ((name, "other"), 1.0)


WORKLOAD_DOMAIN = Domain.of({"sex": 2, "age": 10, "income": 20, "constant": 1, "a, b": 3})


def test_pairs_are_all_pairs_of_columns_that_can_vary():
    found = Workload.of("pairs", WORKLOAD_DOMAIN).weights
    assert len(found) == 6
    assert set(found.values()) == {1.0}
    assert all("constant" not in clique for clique in found)


def test_triples_shrink_to_what_there_is():
    assert len(Workload.of("triples", WORKLOAD_DOMAIN).weights) == 4
    assert list(Workload.of("triples", Domain.of({"a": 2, "b": 2})).weights) == [("a", "b")]
    assert list(Workload.of("pairs", Domain.of({"a": 2, "b": 1})).weights) == [("a",)]
    assert Workload.of("pairs", Domain.of({"a": 1})).weights == {}


def test_named_tables_have_weights_and_the_order_of_the_schema():
    found = Workload.of('age×sex:2, income * age, "a, b"×sex:0.5, sex×age', WORKLOAD_DOMAIN).weights
    assert found == {("sex", "age"): 3.0, ("age", "income"): 1.0, ("sex", "a, b"): 0.5}
    assert all(isinstance(clique, Clique) for clique in found)


def test_a_named_table_loses_columns_with_one_code():
    assert Workload.of("sex×constant:2", WORKLOAD_DOMAIN).weights == {("sex",): 2.0}


def test_candidates_are_all_parts_with_the_weights_of_the_paper():
    candidates = Workload.of("sex×age:2, age×income", WORKLOAD_DOMAIN).candidates(WORKLOAD_DOMAIN, 10**6)
    assert candidates == {
        ("sex",): 2.0, ("age",): 3.0, ("income",): 1.0, ("sex", "age"): 2 * 2 + 1, ("age", "income"): 2 * 1 + 2
    }  # fmt: skip
    domain = Domain.of(dict.fromkeys("abcde", 2))
    pairs = Workload.of("pairs", domain).candidates(domain, 10**6)
    assert {len(part): weight for part, weight in pairs.items()} == {1: 4.0, 2: 8.0}  # Σ_s |r ∩ s|, d = 5


def test_large_tables_are_no_candidates_but_columns_always_are():
    candidates = Workload.of("pairs", WORKLOAD_DOMAIN).candidates(WORKLOAD_DOMAIN, 30)
    assert ("sex", "age") in candidates
    assert ("age", "income") not in candidates
    assert ("income",) in Workload.of("pairs", WORKLOAD_DOMAIN).candidates(WORKLOAD_DOMAIN, 1)


def test_the_largest_tables_are_left_out_until_the_rest_fits():
    tables = [Clique(names) for names in (("age", "income"), ("sex",), ("sex", "age"), ("sex", "income"), ("income",))]
    kept = within(WORKLOAD_DOMAIN, tables, 2 + 20 + 20 + 40)
    assert kept == [("sex",), ("sex", "age"), ("sex", "income"), ("income",)]
    assert within(WORKLOAD_DOMAIN, tables, 0) == [("sex",), ("income",)]


def test_syntax_is_checked_before_the_columns_are_known():
    check_workload("workload", "triples")
    check_workload("workload", "anything×else:2")
    with pytest.raises(UsageError, match="workload"):
        check_workload("workload", "a×")
    with pytest.raises(UsageError, match="workload must be text, got 3"):
        Aim(workload=3)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "names no table"),
        ("sex×", "joined by"),
        ("×sex", "joined by"),
        ("sex age×", "joined by"),
        ("sex×age:", "one number"),
        ("sex×age:two", "one number"),
        ("sex:1:2", "one number"),
        ("sex×age:0", "above 0"),
        ("sex×age:-1", "above 0"),
        ("sex×age:inf", "above 0"),
        ('"sex', "quote"),
        ('sex"age"', "joined by"),
        ("×".join("abcdefghijklm"), "at most 12"),
    ],
)
def test_unreadable_text_is_explained(text, why):
    with pytest.raises(UsageError, match=why):
        parse_tables(text)


def test_an_unknown_column_is_told_with_the_nearest():
    with pytest.raises(UsageError, match='Did you mean "income"'):
        Workload.of("sex×incom", WORKLOAD_DOMAIN)


def test_too_many_tables_are_refused():
    wide = Domain.of({f"c{place}": 2 for place in range(120)})
    with pytest.raises(UsageError, match="Name the tables"):
        Workload.of("triples", wide)


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4, unique=True), st.floats(0.001, 1000))
def test_any_name_can_be_quoted(names, weight):
    text = "×".join('"' + name.replace('"', '""') + '"' for name in names)
    assert parse_tables(f"{text}:{weight!r}, {text}") == [(tuple(names), weight), (tuple(names), 1.0)]


# Questions at fixed costs: each pays just its own, also when they come in several batches.


@pytest.mark.parametrize("batch", [1, 7, 2**23])
def test_every_query_costs_its_share(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "BATCH_CELLS", batch)
    curator = door(rows_of({"a": [0, 1], "b": [1, 2], "c": [0, 0]}), letters({"a": 2, "b": 3, "c": 2}), rho(1.0))
    queries = [*asking.alone(["a", "b", "c"]), Clique("ab")]
    costs = [Cost(rho=part) for part in (10**6 + 1, 2 * 10**6 + 7, 4 * 10**6, 10**9 + 1)]
    answers = asking.at_costs(curator, queries, costs)
    assert [answer.columns for answer in answers] == [("a",), ("b",), ("c",), ("a", "b")]
    assert [cost.rho for _, cost in curator.charges] == [paid.rho for paid in costs]
    assert len(curator.transcript.of(Measurement)) == 4


def test_no_queries_cost_nothing() -> None:
    curator = door(rows_of({"a": [0]}), letters({"a": 2}), rho(1.0))
    assert asking.at_costs(curator, [], []) == []
    assert not curator.charges


SIZES = {"a": 3, "b": 3, "c": 3, "d": 2, "x": 2}


def table(rows=4_000, seed=1):
    """b and c follow a; d is whether b and c agree more than a explains; x is on its own."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, rows)
    b = np.where(rng.random(rows) < 0.7, a, rng.integers(0, 3, rows))
    c = np.where(rng.random(rows) < 0.7, a, rng.integers(0, 3, rows))
    d = np.where(rng.random(rows) < 0.9, b == 0, rng.integers(0, 2, rows)).astype(int)
    return rows_of({"a": a, "b": b, "c": c, "d": d, "x": rng.integers(0, 2, rows)})


def listed(rows, sizes=None, together=()):
    schema = letters(SIZES if sizes is None else sizes)
    codec = TableCodec.of(schema)
    counts = FrameTable(rows, schema, memory_bytes=MEMORY).bind(codec).counts
    return marginals_from_public(counts, codec.domain, together).split(", ")


def test_the_tree_follows_the_dependence():
    found = [set(entry.split("×")) for entry in listed(table())]
    assert len(found) == 4
    assert all(pair in found for pair in ({"a", "b"}, {"a", "c"}, {"b", "d"}))
    assert sum("x" in pair for pair in found) == 1


def test_triples_where_neighbours_are_not_independent_given_the_column():
    rng = np.random.default_rng(2)
    a = rng.integers(0, 2, 4_000)
    b = np.where(rng.random(4_000) < 0.8, a, 1 - a)
    c = np.where(rng.random(4_000) < 0.6, b, rng.integers(0, 2, 4_000))
    rows = rows_of({"a": a, "b": b, "c": c})
    assert set(listed(rows, {"a": 2, "b": 2, "c": 2})) == {"a×b", "b×c"}  # b explains all
    e = (b + c + (rng.random(4_000) < 0.1)) % 2
    b_c = rows_of({"b": b, "c": c, "e": e})
    found = listed(b_c, {"b": 2, "c": 2, "e": 2})
    assert len(found) == 4  # two pairs of the tree, the third pair, all three
    assert "b×c×e" in found


def test_columns_named_together_are_always_listed():
    found = listed(table(), together=["x", "d", "c"])
    assert {"c×d", "c×x", "d×x", "c×d×x"} <= set(found)


def test_wide_tables_are_left_out(monkeypatch):
    monkeypatch.setattr(from_public, "MOST_CELLS", 6)
    assert all(entry.count("×") == 1 and set(entry) & set("dx") for entry in listed(table()))
    monkeypatch.setattr(from_public, "MOST_CELLS", 3)
    with pytest.raises(UsageError, match="no table"):
        listed(table())


def test_a_public_table_without_rows_suggests_nothing():
    with pytest.raises(UsageError, match="no rows"):
        listed(table(0))


def test_one_column_that_varies_leaves_nothing_to_list():
    assert listed(rows_of({"a": [0, 1, 1], "b": [0, 0, 0]}), {"a": 2, "b": 1}) == ["a"]


def test_batches_change_nothing_and_bound_the_memory(monkeypatch):
    whole = listed(table())
    domain = TableCodec.of(letters(SIZES)).domain
    monkeypatch.setattr(from_public, "PUBLIC_BATCH_CELLS", 10)
    assert listed(table()) == whole
    assert counting_bytes(domain) == 10 * 32


def test_few_rows_do_not_make_wide_columns_look_dependent():
    rng = np.random.default_rng(4)
    a = rng.integers(0, 2, 1_000)
    codes = {"a": a, "b": np.where(rng.random(1_000) < 0.7, a, 1 - a), "wide": rng.integers(0, 200, 1_000)}
    found = listed(rows_of(codes), {"a": 2, "b": 2, "wide": 200})
    assert found[0] == "a×b"  # uncorrected, both other pairs would come first
