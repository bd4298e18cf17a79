import dataclasses

import pytest
from hypothesis import HealthCheck, given, settings

from tests.schema.strategies import schemas
from understudy.errors import SchemaError
from understudy.schema import Boolean, Category, Cut, Derived, Impossible, Integer, OpenCategory, Range, Schema, Unit
from understudy.schema.checks import problems_of

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
        (problems(), "columns: must list at least one column"),
        (problems(AGE, AGE), "columns.age: is declared 2 times"),
        (problems(WAGE, Boolean(name="wage.kind")), "columns.wage.split: makes a part called 'wage.kind'"),
        (problems(WAGE, unit=Unit("wage.size", 2)), "columns.wage.split: makes a part called 'wage.size'"),
        (problems(Boolean(name="")), "a name is empty"),
        (problems(Boolean(name="a\0")), "NUL"),
        (problems(Boolean(name=3)), "3 must be text"),
        (problems(Boolean(name="\ud800")), "surrogate"),
        (problems("age"), "'age' is not a column"),
        (problems(AGE, unit=Unit("age", 2)), "so ids would be released"),
        (problems(AGE, unit=Unit("id", 0)), "unit.rows: 0 must be between 1 and"),
        (problems(AGE, unit=Unit("id", True)), "unit.rows: True must be a whole number"),
        (problems(AGE, unit=Unit("", 1)), "unit.column: is empty"),
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
    assert "columns: are all derived" in problems(Derived(name="d", formula=Cut("x", (0, 1), ("a",))))[0]


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
