"""Tests of `understudy.schema.checks`."""

import dataclasses
import datetime as dt

import pytest
from hypothesis import HealthCheck, given, settings

from tests.schema.strategies import schemas
from understudy.errors import SchemaError
from understudy.schema import (
    Boolean,
    Category,
    Column,
    Cut,
    Date,
    Datetime,
    Derived,
    Float,
    GivenBins,
    Impossible,
    Integer,
    OpenCategory,
    PrivateBins,
    Range,
    Schema,
    Time,
    UniformBins,
    Unit,
)
from understudy.schema.checks import problems_of, rule_problems
from understudy.schema.columns import (
    count_problems,
    is_whole,
    label_problems,
    number_problem,
    point_problem,
    text_problems,
    written,
)

AGE = Integer(name="age", lower=0, upper=99)
WAGE = Integer(name="wage", lower=0, upper=99, split=(10,))
SEX = Category(name="sex", labels=("F", "M"))


def problems(*columns: object, unit: object = Unit(), rules: object = (), **more: object) -> list[str]:
    try:
        Schema(columns, unit, rules, **more)
    except SchemaError as error:
        return [str(problem) for problem in error.problems]
    return []


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(schemas())
def test_valid_schemas_have_no_problems(schema: Schema) -> None:
    assert problems_of(schema) == []


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (problems(), "columns must list at least one column"),
        (problems(AGE, AGE), "columns.age is declared 2 times"),
        (problems(WAGE, Boolean(name="wage.kind")), "columns.wage.split makes a part called 'wage.kind'"),
        (problems(WAGE, unit=Unit("wage.size", 2)), "columns.wage.split makes a part called 'wage.size'"),
        (problems(Boolean(name="")), "a name is empty"),
        (problems(Boolean(name="a\0")), "NUL"),
        (problems(Boolean(name=3)), "3 must be text"),
        (problems(Boolean(name="\ud800")), "surrogate"),
        (problems("age"), "'age' is not a column"),
        (problems(AGE, unit=Unit("age", 2)), "so ids would be released"),
        (problems(AGE, unit=Unit("id", 0)), "unit.rows: 0 must be between 1 and"),
        (problems(AGE, unit=Unit("id", True)), "unit.rows: True must be a whole number"),
        (problems(AGE, unit=Unit("", 1)), "unit.column is empty"),
        (problems(AGE, unit=Unit(7, 1)), "unit.column: 7 must be text"),
        (problems(AGE, unit=Unit(None, 3)), "need an id column"),
        (problems(AGE, unit="row"), "must be a Unit"),
        (problems(AGE, rules="none"), "rules: 'none' must be a list"),
        (problems(AGE, title=3), "title: 3 must be text"),
        (problems(AGE, note=None), "note: None must be text"),
        (problems(Category(name="c", labels=("x",), groups={"x": "F"}, within="sx"), SEX), 'Did you mean "sex"?'),
        (problems(Category(name="c", labels=("x",), groups={"x": "F"}, within="c")), "names the column itself"),
        (problems(Category(name="c", labels=("x",), groups={"x": "F"}, within="age"), AGE), "must be a category"),
        (
            problems(Category(name="c", labels=("x",), groups={"x": "F"}, within="o"), OpenCategory(name="o")),
            "must be a category, not open_category",
        ),
        (
            problems(Category(name="c", labels=("x",), groups={"x": "D"}, within="sex"), SEX),
            "'D' is not a label of column 'sex'",
        ),
        (
            problems(
                Category(name="c", labels=("x",), groups={"x": "F"}, within="sex"),
                dataclasses.replace(SEX, rare="private"),
            ),
            "rare labels of column 'sex' may share one code",
        ),
    ],
)
def test_each_rule_is_checked(found: list[str], reason: str) -> None:
    assert len(found) == 1, found
    assert reason in found[0]


def test_derived_columns_alone_are_no_table() -> None:
    assert "columns are all derived" in problems(Derived(name="d", formula=Cut("x", (0, 1), ("a",))))[0]


def test_a_category_may_lie_within_another() -> None:
    assert problems(Category(name="c", labels=("x", "y"), groups={"x": "F", "y": "M"}, within="sex"), SEX) == []


def test_all_problems_are_listed_at_once() -> None:
    found = problems(
        Integer(name="age", lower=17, upper=0),
        Category(name="sex", labels=("F", "F"), other="F"),
        Boolean(name="ok"),
        unit=Unit("ok", 0),
        rules=(Impossible({"okay": ("true",)}),),
    )
    assert len(found) == 6, found


def test_rules_on_broken_columns_wait_but_others_are_judged() -> None:
    broken = Integer(name="age", lower=9, upper=0)
    rules = (Impossible({"age": Range(0, 3)}), Impossible({"sex": ("X",)}))
    found = problems(broken, SEX, rules=rules)
    assert len(found) == 2
    assert found[1].startswith("rules[1].sex: 'X' is not a label")


def test_lists_are_taken_for_tuples() -> None:
    schema = Schema([AGE, Category(name="c", labels=["a"])], Unit(), [Impossible({"c": ["a"], "age": Range(0, 3)})])
    assert schema.columns == (AGE, Category(name="c", labels=("a",)))
    assert schema.rules[0].when["c"] == ("a",)
    assert dataclasses.replace(schema) == schema


COLUMNS: dict[str, Column] = {
    column.name: column
    for column in (
        Integer(name="age", lower=0, upper=99, bins=UniformBins(10), special=(999,)),
        Integer(name="year", lower=2000, upper=2009, missing=False),
        Integer(name="secret", lower=0, upper=99, bins=PrivateBins(4)),
        Float(name="share", lower=0.0, upper=1.0, bins=UniformBins(10), missing=False),
        Date(name="day", lower=dt.date(2020, 1, 1), upper=dt.date(2020, 12, 31), bins=UniformBins(2)),
        Time(name="hour", bins=GivenBins((dt.time(0), dt.time(12), dt.time(23, 59, 59)))),
        Category(name="sex", labels=("F", "M"), other="X", missing=False),
        Category(name="town", labels=("Rome", "Oslo"), rare="private"),
        Boolean(name="voted"),
        OpenCategory(name="job"),
        Derived(name="band", formula=Cut("age", (0, 99), ("a",))),
    )
}


def messages(rule: object) -> list[str]:
    return [str(problem) for problem in rule_problems(rule, 0, COLUMNS)]


@pytest.mark.parametrize(
    ("when", "reason"),
    [
        ({}, "at least one condition"),
        ({"sx": ("F",)}, "column 'sx' is not in the schema"),
        ({"band": ("a",)}, "is a derived column"),
        ({"job": (None,)}, "is an open category"),
        ({"town": ("Rome",)}, "its rare labels may share one code"),
        ({"sex": ("D",)}, "'D' is not a label of this column. Known: F, M, X"),
        ({"sex": (None,)}, "the column says missing: false"),
        ({"sex": ("F", "F")}, "'F' appears twice"),
        ({"voted": (None, None)}, "names missing twice"),
        ({"sex": (3,)}, "3 must be text"),
        ({"sex": ()}, "must be a list of labels or a range"),
        ({"sex": "F"}, "must be a list of labels or a range"),
        ({"sex": Range(0, 1)}, "a range needs a number"),
        ({"voted": ("yes",)}, "Known: false, true"),
        ({"age": ("17",)}, "'17' is not a label of this column. For values use a range"),
        ({"age": Range()}, "neither from nor to"),
        ({"age": Range("0", 9)}, "rules[0].age.from: '0' must be a whole number"),
        ({"age": Range(0, 9.0)}, "rules[0].age.to: 9.0 must be a whole number"),
        ({"age": Range(20, 9)}, "contains no value"),
        ({"age": Range(100, 120)}, "contains no value"),
        ({"age": Range(0, 17)}, "cuts a bin in two. The nearest ranges that fit: from: 0, to: 9, to: 19."),
        ({"share": Range(0.0, 0.25)}, "to: 0.2, to: 0.3"),
        ({"day": Range(None, dt.date(2020, 3, 1))}, "to: 2020-07-01"),
        ({"hour": Range(dt.time(9), None)}, "from: 00:00:00, from: 12:00:00"),
        ({"secret": Range(0, 9)}, "chooses them privately"),
        ({"share": Range(0.1, 0.1)}, "contains no bin"),
        ({"sex": ("F", "M", "X")}, "excludes every possible record"),
        ({"year": Range(2000, None)}, "excludes every possible record"),
        ({"year": Range(1990, 2020), "sex": ("X", "F", "M")}, "excludes every possible record"),
    ],
)
def test_checks_rule_each_rule_is_checked(when: dict[str, object], reason: str) -> None:
    found = messages(Impossible(when))
    assert len(found) == 1, found
    assert reason in found[0]


@pytest.mark.parametrize(
    "when",
    [
        {"sex": ("F", "M")},
        {"sex": ("X",), "voted": ("true", None)},
        {"age": ("999", None), "sex": ("F",)},
        {"age": Range(-5, 19), "voted": ("false",)},
        {"year": Range(2003, 2003)},
        {"share": Range(0.3, 0.7)},
        {"day": Range(dt.date(2020, 7, 2), None)},
        {"hour": Range(None, dt.time(11, 59, 59))},
        {"age": Range(0, 99)},
    ],
)
def test_sound_rules_pass(when: dict[str, object]) -> None:
    assert messages(Impossible(when)) == []


def test_other_things_are_not_rules() -> None:
    assert "is not a rule" in messages("never")[0]
    assert "note: 3 must be text" in messages(Impossible({"sex": ("F",)}, 3))[0]


def test_text_must_be_text_that_can_be_written() -> None:
    assert list(text_problems("any\n🎭\0", "x")) == []
    assert len(list(text_problems(b"bytes", "x"))) == 1
    assert len(list(text_problems("\udc80", "x"))) == 1


@pytest.mark.parametrize(("value", "count"), [(1, 0), (10, 0), (0, 1), (11, 1), (True, 1), ("1", 1), (10**4000, 1)])
def test_counts_have_limits(value: object, count: int) -> None:
    assert len(list(count_problems(value, "x", 10))) == count


def test_labels_must_differ_and_may_be_of_any_wrong_type() -> None:
    assert list(label_problems(("a", "A", ""), "x")) == []
    assert len(list(label_problems(("a", "a", [], {}), "x"))) == 3


def test_numbers_are_finite_and_exact() -> None:
    assert [bool(number_problem(value)) for value in (0, -0.0, 2**60, 1e308)] == [False] * 4
    assert [bool(number_problem(value)) for value in (True, None, float("nan"), 2**60 + 1, 10**400)] == [True] * 5


def test_points_fit_their_axis() -> None:
    assert point_problem(Integer(name="n", lower=0, upper=1), 3) == ""
    zoned = Datetime(name="t", lower=dt.datetime.min, upper=dt.datetime.max, zone="UTC")
    assert point_problem(zoned, dt.datetime(2020, 1, 1)) != ""
    assert point_problem(zoned, dt.datetime(2020, 1, 1, tzinfo=dt.UTC)) == ""


def test_values_are_shown_as_files_show_them() -> None:
    assert written(dt.date(2020, 1, 2)) == "2020-01-02"
    assert written(3) == "3"
    assert not is_whole(False)


def number(**said: object) -> Integer:
    return Integer(name="n", lower=0, upper=9, special=(99,), **said)  # type: ignore[arg-type]


def labelled(*labels: str, **said: object) -> Category:
    return Category(name="c", labels=labels or ("F", "M", "1"), **said)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (number(decimal=";"), 'columns.n.decimal: \';\' must be "." or ",".'),
        (number(thousands="x"), "columns.n.thousands: 'x' must be one of"),
        (number(thousands="."), "columns.n.thousands: '.' is also the decimal mark."),
        (number(decimal=",", thousands=","), "columns.n.thousands: ',' is also the decimal mark."),
        (number(prefix="A1"), "columns.n.prefix: 'A1' holds a digit."),
        (number(suffix=" %"), "columns.n.suffix: ' %' begins or ends with white space."),
        (number(suffix=3), "columns.n.suffix: 3 must be text."),
        (number(parentheses="yes"), "columns.n.parentheses: 'yes' must be true or false."),
        (number(measured_in=5), "columns.n.measured_in: 5 must be text."),
        (number(missing_values=["NA", "99.0"]), "columns.n.missing_values: '99.0' is also a special value."),
        (number(missing_values="NA"), "columns.n.missing_values: 'NA' must be a list of texts."),
        (number(missing_values=["NA", "NA"]), "columns.n.missing_values: 'NA' appears twice."),
        (number(title=1), "columns.n.title: 1 must be text."),
        (number(description=1), "columns.n.description: 1 must be text."),
        (labelled(missing_values=[" F"]), "columns.c.missing_values: ' F' is also a label."),
        (labelled(missing_values=["1.0"]), "columns.c.missing_values: '1.0' is also a label."),
        (labelled(missing_values=["f"], ignore_case=True), "columns.c.missing_values: 'f' is also a label."),
        (
            labelled("STRASSE", "straße", ignore_case=True),
            "columns.c.ignore_case: labels 'STRASSE' and 'straße'",
        ),
        (labelled(ignore_case="no"), "columns.c.ignore_case: 'no' must be true or false."),
        (labelled(ordered=2), "columns.c.ordered: 2 must be true or false."),
        (labelled(meanings={"f": "female"}), "columns.c.meanings: 'f' is not a label."),
        (labelled(meanings={"F": 1}), "columns.c.meanings: 1 must be text."),
        (labelled(meanings=["F"]), "columns.c.meanings must map labels to what they mean."),
    ],
)
def test_how_values_are_written_is_checked(column: Column, reason: str) -> None:
    (found,) = problems(column)
    assert found.startswith(reason)


@pytest.mark.parametrize(
    "column",
    [
        number(decimal=",", thousands=".", prefix="€", suffix="m²", parentheses=True, missing_values=["-99", "9"]),
        number(thousands=" "),
        labelled("F", "f"),
        labelled("F", "M", ignore_case=True, missing_values=["fm", ""], meanings={"F": "female"}, ordered=True),
        labelled("", "F", missing_values=[""]),
    ],
)
def test_what_can_be_written_so_has_no_problems(column: Column) -> None:
    assert problems(column) == []


def test_missing_values_of_the_table_give_way_to_labels_but_must_be_texts() -> None:
    assert problems(labelled(), number(), missing_values=["F", "99"]) == []
    assert problems(labelled(), missing_values=["F", 3]) == ["missing_values: 3 must be text."]
    total = Derived(name="t", formula=Cut("age", (0, 9), ("a",)), missing_values=("NA",))
    assert problems(AGE, total)[0].startswith("columns.t.missing_values applies to columns that are read")
