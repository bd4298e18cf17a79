"""Tests of `understudy.schema.schema`."""

import datetime as dt
from pathlib import Path

import pytest

from understudy.errors import SchemaError, UsageError
from understudy.schema import (
    Boolean,
    Category,
    Cut,
    Date,
    Derived,
    Float,
    Impossible,
    Integer,
    OpenCategory,
    PrivateBins,
    Range,
    Schema,
    UniformBins,
    Unit,
)
from understudy.schema.schema import (
    bins_inside,
    labels_for_rules,
    looks_like_a_value,
    looks_like_an_id,
    same_but_for_spelling,
    unlike_names,
    without_columns,
)
from understudy.testing import cases as tables

SCHEMA = Schema(
    (
        Integer(name="age", lower=0, upper=99),
        Derived(name="band", formula=Cut("age", (0.0, 99.0), ("all",))),
        Boolean(name="voted"),
    ),
    Unit("person", 2),
)


def test_names_keep_order_and_derived_columns_are_not_modelled() -> None:
    assert SCHEMA.names == ("age", "band", "voted")
    assert [column.name for column in SCHEMA.modelled] == ["age", "voted"]


def test_unknown_column_raises_with_the_closest_name() -> None:
    assert SCHEMA.column("voted") == Boolean(name="voted")
    with pytest.raises(UsageError, match='Did you mean "voted"'):
        SCHEMA.column("votes")


def test_header_must_hold_the_modelled_columns_and_the_unit() -> None:
    assert SCHEMA.header_problems(["person", "voted", "age", "extra"]) == []
    found = [str(problem) for problem in SCHEMA.header_problems(["Age", "voted", "voted"])]
    assert len(found) == 3
    assert any("'age' " in message or "'age':" in message for message in found)
    assert any("'person'" in message for message in found)
    assert any("appears twice" in message for message in found)


def test_names_that_only_the_table_has_are_not_quoted() -> None:
    good = ["person", "voted", "age"]
    assert SCHEMA.header_problems([*good, "extra", "", "B19001_001E"]) == []
    for strange, problems in (
        (["Zaphod", "31"], 1),
        (["2001-02-03"], 1),
        (["Zaphod", "Zaphod"], 1),
        (["Zaphod", "31", "31"], 2),
        (["x" * 300], 1),
    ):
        found = SCHEMA.header_problems([*good, *strange])
        assert len(found) == problems, strange
        assert not any(name in str(problem) for name in strange for problem in found)
    merged = SCHEMA.header_problems(["person", "voted", "ageZaphod", "Rome", "nurse"])
    assert [str(problem).count("'age'") for problem in merged] == [1]
    assert not any(word in str(merged) for word in ("Zaphod", "Rome", "nurse"))


def test_a_name_spelled_otherwise_is_shown() -> None:
    (found,) = SCHEMA.header_problems(["person", "voted", " Age"])
    assert "Names must be equal: schema 'age', file ' Age'." in str(found)
    shouted = [str(one) for one in SCHEMA.header_problems(["PERSON", "VOTED", "Rome", "AGE"])]
    pairs = ("age", "AGE"), ("voted", "VOTED"), ("person", "PERSON")
    assert [said.partition("equal: ")[2] for said in shouted] == [f"schema {a!r}, file {b!r}." for a, b in pairs]


def test_an_invalid_schema_cannot_exist() -> None:
    with pytest.raises(SchemaError) as caught:
        Schema((), Unit("id", 0))
    assert len(caught.value.problems) == 2


def test_files_round_trip_through_the_class(tmp_path: Path) -> None:
    SCHEMA.to_yaml(tmp_path / "s.yaml")
    assert Schema.from_yaml(str(tmp_path / "s.yaml")) == SCHEMA


VALUES = """31|-4|+1.5|1,234.50|1'000|12 %|6'2"|.5|1e5|-1.5E-3|2020-05-05|5.5.2020|05/05/20|2020-05-05T10:00:00Z
2020-05-05 10:00|10:30|10:30 pm|5 May 2020|05-Jan-99|May 5, 2020|€ 12.00|$5|12 EUR|+49 30 1234567|(555) 123-4567
a.b@example.org|https://example.org/x|NA|n/a|NaN|null|TRUE|false|-inf|123e4567-e89b-12d3-a456-426614174000| 31 |٣١"""
NAMES = """age|sex|Q1|q1_2|V162|2nd dose|1st_visit|B19001_001E|May|April 2|€|income (EUR)|e5|x@y|nanny|truely|DMDEDUC2
a|ф 🙂|line\nbreak|per%cent {x}|How old are you (in years)?|TIMESTAMP|date of birth|p-value|k=10|§"""


@pytest.mark.parametrize("name", VALUES.replace("\n", "|").split("|"))
def test_values(name: str) -> None:
    assert looks_like_a_value(name)


@pytest.mark.parametrize("name", NAMES.replace("\n", "|").split("|"))
def test_names(name: str) -> None:
    assert not looks_like_a_value(name)


def test_a_name_is_short() -> None:
    assert looks_like_a_value("x" * 257)
    assert not looks_like_a_value("x" * 256)


def test_absent_names_are_usual_at_the_ends_alone() -> None:
    assert unlike_names(["", "a", "b", ""]) == 0
    assert unlike_names(["a", "", "b"]) == 1
    assert unlike_names([]) == 0


def test_spelling_is_case_spaces_and_punctuation() -> None:
    assert same_but_for_spelling("first name", ["First_Name", "name"]) == "First_Name"
    assert same_but_for_spelling("age", ["age1", "ages", "31"]) == ""
    assert same_but_for_spelling("age", ["Age", "AGE"]) == ""


# A schema without some columns: rules and hierarchies go with them.


PART_SCHEMA = Schema(
    columns=(
        Category(name="state", labels=("A", "B")),
        Category(name="city", labels=("x", "y"), groups={"x": "A", "y": "B"}, within="state"),
        Integer(name="age", lower=0, upper=9),
    ),
    unit=Unit(column="person", rows=2),
    rules=(
        Impossible(when={"state": ("A",), "city": ("y",)}),
        Impossible(when={"city": ("x",)}),
    ),
)


def test_what_is_left_is_a_schema_that_protects_nobody():
    part = without_columns(PART_SCHEMA, ["state"])
    assert part.names == ("city", "age")
    assert part.unit == Unit()
    assert [dict(rule.when) for rule in part.rules] == [{"city": ("x",)}]
    city = part.column("city")
    assert isinstance(city, Category)
    assert city.within is None
    assert without_columns(PART_SCHEMA, ["age"]).column("city") == PART_SCHEMA.column("city")


def test_derived_columns_and_split_columns_are_left_out_as_wholes():
    part = without_columns(tables.every_kind(), ["member"])
    assert not any(isinstance(column, Derived) for column in part.columns)
    split = tables.split_amounts()
    assert without_columns(split, ["wage.kind"]).names == ("registered",)
    assert without_columns(split, ["registered"]).names == ("wage",)


def test_no_column_left_is_no_schema():
    with pytest.raises(SchemaError):
        without_columns(PART_SCHEMA, PART_SCHEMA.names)


def test_one_row_is_the_plain_unit() -> None:
    assert Unit() == Unit(None, 1, "")
    assert Unit().sensitivity == 1


def test_sensitivity_is_the_bound_on_rows() -> None:
    assert Unit("person_id", 7).sensitivity == 7


AGE = Integer(name="age", lower=0, upper=99, bins=UniformBins(5))
SHARE = Float(name="share", lower=0.0, upper=1.0, bins=UniformBins(10))


def test_rules_name_codes_by_text() -> None:
    assert labels_for_rules(Category(name="c", labels=("a", "b"), other="z")) == ("a", "b", "z")
    assert labels_for_rules(Boolean(name="c")) == ("false", "true")
    assert labels_for_rules(Float(name="c", lower=0, upper=1, special=(999, 0.5))) == ("999.0", "0.5")
    assert labels_for_rules(OpenCategory(name="c")) == ()


def test_ranges_include_both_ends_on_whole_numbers() -> None:
    assert bins_inside(AGE, Range(20, 39)) == [False, True, False, False, False]
    assert bins_inside(AGE, Range(20, 40)) is None
    assert bins_inside(AGE, Range(19, 39)) is None
    assert bins_inside(AGE, Range(None, 1000)) == [True] * 5
    assert bins_inside(AGE, Range(1000, None)) == [False] * 5


def test_ranges_of_floats_forgive_rounding_only() -> None:
    inside = bins_inside(SHARE, Range(0.3, 0.1 * 7))
    assert inside == [False] * 3 + [True] * 4 + [False] * 3
    assert bins_inside(SHARE, Range(0.3001, None)) is None


def test_private_bins_are_not_known() -> None:
    assert bins_inside(Integer(name="n", lower=0, upper=9, bins=PrivateBins(2)), Range(0, 3)) is None


def test_lists_become_tuples() -> None:
    assert Impossible({"a": ["x", None]}) == Impossible({"a": ("x", None)})


IDS = """id|ID|person_id|person id|PatientID|customerId|uuid|user_key|ssn|email|E-Mail|email_address|Person|patient
employee number|Customer-No|passport_no|full name|student_nr|social security number"""
NO_IDS = """age|covid|paid|grid|valid|member|student|idea|ids_seen|email_sent|persons|number_of_persons|phone|keyword
name|monkey|user_type|voter"""


@pytest.mark.parametrize("name", IDS.replace("\n", "|").split("|"))
def test_names_of_ids(name: str) -> None:
    assert looks_like_an_id(name)


@pytest.mark.parametrize("name", NO_IDS.replace("\n", "|").split("|"))
def test_names_of_other_columns(name: str) -> None:
    assert not looks_like_an_id(name)


def test_dates_as_text_without_a_format_are_told() -> None:
    days = {"lower": dt.date(2020, 1, 1), "upper": dt.date(2020, 12, 31)}
    schema = Schema((Date(name="a", **days), Date(name="b", **days), Date(name="c", format="%d.%m.%Y", **days)), Unit())
    assert schema.format_remark([("a", "date32[day]"), ("c", "string")]) == ""
    assert schema.format_remark([("a", "string"), ("b", "date32[day]")]).startswith("column 'a' is text in the table.")
    assert schema.format_remark([("a", "VARCHAR"), ("b", "large_string")]).startswith("columns 'a', 'b' are text")
