import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.domain import Clique, Domain
from understudy.errors import UsageError
from understudy.methods.aim import Aim
from understudy.methods.marginals import Workload, check_workload, parse_tables, within

DOMAIN = Domain.of({"sex": 2, "age": 10, "income": 20, "constant": 1, "a, b": 3})


def test_pairs_are_all_pairs_of_columns_that_can_vary():
    found = Workload.of("pairs", DOMAIN).weights
    assert len(found) == 6
    assert set(found.values()) == {1.0}
    assert all("constant" not in clique for clique in found)


def test_triples_shrink_to_what_there_is():
    assert len(Workload.of("triples", DOMAIN).weights) == 4
    assert list(Workload.of("triples", Domain.of({"a": 2, "b": 2})).weights) == [("a", "b")]
    assert list(Workload.of("pairs", Domain.of({"a": 2, "b": 1})).weights) == [("a",)]
    assert Workload.of("pairs", Domain.of({"a": 1})).weights == {}


def test_named_tables_have_weights_and_the_order_of_the_schema():
    found = Workload.of('age×sex:2, income * age, "a, b"×sex:0.5, sex×age', DOMAIN).weights
    assert found == {("sex", "age"): 3.0, ("age", "income"): 1.0, ("sex", "a, b"): 0.5}
    assert all(isinstance(clique, Clique) for clique in found)


def test_a_named_table_loses_columns_with_one_code():
    assert Workload.of("sex×constant:2", DOMAIN).weights == {("sex",): 2.0}


def test_candidates_are_all_parts_with_the_weights_of_the_paper():
    candidates = Workload.of("sex×age:2, age×income", DOMAIN).candidates(DOMAIN, 10**6)
    assert candidates == {
        ("sex",): 2.0, ("age",): 3.0, ("income",): 1.0, ("sex", "age"): 2 * 2 + 1, ("age", "income"): 2 * 1 + 2
    }  # fmt: skip
    domain = Domain.of(dict.fromkeys("abcde", 2))
    pairs = Workload.of("pairs", domain).candidates(domain, 10**6)
    assert {len(part): weight for part, weight in pairs.items()} == {1: 4.0, 2: 8.0}  # Σ_s |r ∩ s|, d = 5


def test_large_tables_are_no_candidates_but_columns_always_are():
    candidates = Workload.of("pairs", DOMAIN).candidates(DOMAIN, 30)
    assert ("sex", "age") in candidates
    assert ("age", "income") not in candidates
    assert ("income",) in Workload.of("pairs", DOMAIN).candidates(DOMAIN, 1)


def test_the_largest_tables_are_left_out_until_the_rest_fits():
    tables = [Clique(names) for names in (("age", "income"), ("sex",), ("sex", "age"), ("sex", "income"), ("income",))]
    kept = within(DOMAIN, tables, 2 + 20 + 20 + 40)
    assert kept == [("sex",), ("sex", "age"), ("sex", "income"), ("income",)]
    assert within(DOMAIN, tables, 0) == [("sex",), ("income",)]


def test_syntax_is_checked_before_the_columns_are_known():
    check_workload("workload", "triples")
    check_workload("workload", "anything×else:2")
    with pytest.raises(UsageError, match="workload"):
        check_workload("workload", "a×")
    with pytest.raises(UsageError, match="workload: must be text, got 3"):
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
        Workload.of("sex×incom", DOMAIN)


def test_too_many_tables_are_refused():
    wide = Domain.of({f"c{place}": 2 for place in range(120)})
    with pytest.raises(UsageError, match="Name the tables"):
        Workload.of("triples", wide)


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4, unique=True), st.floats(0.001, 1000))
def test_any_name_can_be_quoted(names, weight):
    text = "×".join('"' + name.replace('"', '""') + '"' for name in names)
    assert parse_tables(f"{text}:{weight!r}, {text}") == [(tuple(names), weight), (tuple(names), 1.0)]
