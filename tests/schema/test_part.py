"""A schema without some columns: rules and hierarchies go with them."""

import pytest

from understudy.errors import SchemaError
from understudy.schema import Category, Derived, Impossible, Integer, Schema, Unit
from understudy.schema.schema import without_columns
from understudy.testing import cases as tables

SCHEMA = Schema(
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
    part = without_columns(SCHEMA, ["state"])
    assert part.names == ("city", "age")
    assert part.unit == Unit()
    assert [dict(rule.when) for rule in part.rules] == [{"city": ("x",)}]
    city = part.column("city")
    assert isinstance(city, Category)
    assert city.within is None
    assert without_columns(SCHEMA, ["age"]).column("city") == SCHEMA.column("city")


def test_derived_columns_and_split_columns_are_left_out_as_wholes():
    part = without_columns(tables.every_kind(), ["member"])
    assert not any(isinstance(column, Derived) for column in part.columns)
    split = tables.split_amounts()
    assert without_columns(split, ["wage.kind"]).names == ("registered",)
    assert without_columns(split, ["registered"]).names == ("wage",)


def test_no_column_left_is_no_schema():
    with pytest.raises(SchemaError):
        without_columns(SCHEMA, SCHEMA.names)
