"""The criteria file: what it may say, and that everything else is refused with its line, before a run."""

import datetime as dt
from pathlib import Path

import numpy as np
import pytest

from understudy.codec.table import TableCodec
from understudy.domain import Domain
from understudy.errors import SchemaError, UsageError
from understudy.release.criteria import Criterion, criteria_of, read_criteria, require_criteria
from understudy.schema import (
    Category,
    Cut,
    Date,
    Derived,
    GivenBins,
    Integer,
    OpenCategory,
    PrivateBins,
    Schema,
    UniformBins,
    Unit,
)

SCHEMA = Schema(
    columns=(
        Category(name="sex", labels=("F", "M"), missing=False),
        Integer(name="age", lower=0, upper=49, bins=UniformBins(5), missing=False),
        OpenCategory(name="job", most_labels=5),
        Category(name="town", labels=("A", "B", "C"), rare="private"),
        Integer(name="rent", lower=0, upper=999, bins=PrivateBins(4)),
        Integer(name="wage", lower=0, upper=400, bins=GivenBins((0, 3, 200, 400)), special=(998,), split=(100, 20)),
        Date(name="born", lower=dt.date(1990, 1, 1), upper=dt.date(1999, 12, 31), bins=UniformBins(2)),
        Derived(name="old", formula=Cut("age", (0, 25, 50), ("no", "yes"))),
    ),
    unit=Unit(),
)
CLOSED = Schema(tuple(column for column in SCHEMA.columns if column.name in ("sex", "age", "wage", "old")), Unit())
DOMAIN = Domain.of({"sex": 3, "age": 6, "job": 6, "town": 4, "rent": 5, "wage (size)": 4, "wage (kind)": 4, "born": 3})


def test_every_kind_is_read() -> None:
    found = criteria_of(
        """
        criteria:
          - columns: all
            within: 0.05
          - {columns: [sex, age], within: 5 %, name: two}
          - {pairs_with: age, within: 0.1}
          - {pairs: [[sex, age]], within: 1e-2}
          - {share_of: {sex: F, age: ["0..9", "10..19"]}, within: 2 points}
        """
    )
    assert found == (
        Criterion("columns", (), 0.05),
        Criterion("columns", (("sex",), ("age",)), 0.05, (), "two"),
        Criterion("pairs_with", (("age",),), 0.1),
        Criterion("pairs", (("sex", "age"),), 0.01),
        Criterion("share_of", (("sex", "age"),), 0.02, (("F",), ("0..9", "10..19"))),
    )
    assert [one.text for one in found] == [
        "every column within 0.05",
        "columns sex, age within 0.05",
        "pairs with age within 0.1",
        "pair sex × age within 0.01",
        "share of sex = F and age = 0..9 or 10..19 within 2 points",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must hold a list under the key criteria, and nothing else"),
        ("criteria: []", "must hold a list"),
        ("limits: [{columns: all, within: 0.1}]", "must hold a list"),
        ("criteria: [5]", "must be a mapping"),
        ("criteria: [{columns: all}]", "needs within and one of"),
        ("criteria: [{within: 0.1}]", "needs within and one of"),
        ("criteria: [{columns: all, pairs_with: age, within: 0.1}]", "needs within and one of"),
        ("criteria: [{colums: all, within: 0.1}]", 'Did you mean "columns"'),
        ("criteria: [{columns: all, within: 0}]", "between 0 and 1"),
        ("criteria: [{columns: all, within: 1.5}]", "between 0 and 1"),
        ("criteria: [{columns: all, within: nan}]", "between 0 and 1"),
        ("criteria: [{columns: all, within: 200 points}]", "between 0 and 1"),
        ("criteria: [{columns: all, within: a lot}]", "between 0 and 1"),
        ("criteria: [{columns: [sex, sex], within: 0.1}]", "none twice"),
        ("criteria: [{columns: [], within: 0.1}]", "at least one"),
        ("criteria: [{pairs: [[sex]], within: 0.1}]", "list of pairs"),
        ("criteria: [{pairs: sex, within: 0.1}]", "list of pairs"),
        ("criteria: [{pairs: [[sex, age], [age, sex]], within: 0.1}]", "no pair twice"),
        (f"criteria: [{{share_of: {{sex: {list(range(5000))}}}, within: 0.1}}]", "at most 4,096 values"),
        ("criteria: [{share_of: sex, within: 0.1}]", "one column or two"),
        ("criteria: [{share_of: {a: b, c: d, e: f}, within: 0.1}]", "one column or two"),
    ],
)
def test_what_is_no_criterion_is_refused(text: str, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        criteria_of(text)


def test_all_problems_come_at_once_with_their_lines() -> None:
    with pytest.raises(SchemaError) as caught:
        criteria_of("criteria:\n  - {columns: all, within: 2}\n  - {pairs: 3, within: 0.1}\n", "limits.yaml")
    assert [problem.where.split(":")[0] for problem in caught.value.problems] == [
        "limits.yaml, line 2",
        "limits.yaml, line 3",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{columns: [sx], within: 0.1}", 'Did you mean "sex"'),
        ("{columns: [old], within: 0.1}", "is derived"),
        ("{pairs: [[sex, weight]], within: 0.1}", "is not a column"),
        ("{share_of: {sex: X}, within: 0.1}", "matches no code"),
        ('{share_of: {age: "3..7"}, within: 0.1}', "matches no codes of this column exactly"),
        ("{share_of: {job: nurse}, within: 0.1}", "only fixed from rows"),
        ("{share_of: {town: A}, within: 0.1}", "only fixed from rows"),
        ('{share_of: {rent: "0..10"}, within: 0.1}', "only fixed from rows"),
    ],
)
def test_what_the_schema_cannot_answer_is_refused(text: str, said: str) -> None:
    criteria = criteria_of(f"criteria: [{text}]")
    with pytest.raises(SchemaError, match=said):
        require_criteria(criteria, SCHEMA, DOMAIN)


def test_a_table_that_noise_would_drown_is_refused() -> None:
    wide = Domain.of({**DOMAIN.sizes, "age": 500, "born": 500})
    with pytest.raises(SchemaError, match="250,000 cells"):
        require_criteria(criteria_of("criteria: [{pairs: [[age, born]], within: 0.1}]"), SCHEMA, wide)


def test_a_column_without_a_partner_is_refused() -> None:
    alone = Schema(SCHEMA.columns[:1], Unit())
    with pytest.raises(SchemaError, match="no other column to pair with"):
        require_criteria(criteria_of("criteria: [{pairs_with: sex, within: 0.1}]"), alone, Domain.of({"sex": 3}))


def test_tables_do_not_depend_on_how_many_codes_turn_up() -> None:
    """Labels may turn out to be none: then a column has one code, and its tables were asked all the same."""
    few = Domain.of(dict.fromkeys(DOMAIN.sizes, 1))
    for text in ("{columns: all, within: 0.1}", "{pairs_with: sex, within: 0.1}"):
        (criterion,) = criteria_of(f"criteria: [{text}]")
        assert criterion.cliques(SCHEMA, few) == criterion.cliques(SCHEMA, DOMAIN)


def test_tables_of_criteria_are_in_schema_order() -> None:
    codec = TableCodec.of(CLOSED)
    cliques = criteria_of("criteria: [{pairs_with: [age, sex], within: 0.1}]")[0].cliques(CLOSED, codec.domain)
    assert len(set(cliques)) == len(cliques)
    assert ("sex", "age") in cliques
    assert {len(clique) for clique in cliques} == {2}
    every = criteria_of("criteria: [{columns: all, within: 0.1}]")[0].cliques(CLOSED, codec.domain)
    assert [name for (name,) in every] == list(codec.domain.columns)


def test_cells_of_a_share_of_two_columns_follow_the_table() -> None:
    codec = TableCodec.of(CLOSED)
    share = Criterion("share_of", (("age", "sex"),), 0.1, (("0..9", "40..49"), ("M",)))
    mask = share.cells(codec).reshape(codec.domain.shape(("sex", "age")))
    assert np.argwhere(mask).tolist() == [[1, 0], [1, 4]]


def test_a_file_is_read_once_it_is_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a file"):
        read_criteria(tmp_path / "none.yaml")
    path = tmp_path / "some.yaml"
    path.write_bytes(b"criteria: [\xff]")
    with pytest.raises(SchemaError, match="UTF-8"):
        read_criteria(path)
    path.write_text("criteria: [{columns: all, within: 0.1}]")
    assert read_criteria(path) == (Criterion("columns", (), 0.1),)


def test_a_strangers_criterion_has_the_form_of_one() -> None:
    for wrong in (
        ("colums", (), 0.1),
        ("columns", (), 0.0),
        ("columns", (("a", "b"),), 0.1),
        ("pairs", (("a",),), 0.1),
        ("pairs_with", (), 0.1),
        ("share_of", (("a",),), 0.1),
        ("columns", (("a",),), 0.1, (("x",),)),
        ("columns", (("a",), ("a",)), 0.1),
        ("pairs_with", (("a",), ("a",)), 0.1),
        ("pairs", (("a", "b"), ("a", "b")), 0.1),
        ("share_of", (("a",),), 0.1, (("x",) * 5000,)),
    ):
        with pytest.raises(UsageError):
            Criterion(*wrong)
