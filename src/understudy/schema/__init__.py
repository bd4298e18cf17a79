"""What the table may contain: public knowledge only. Nothing in this room ever reads a private value."""

from understudy.schema.column import (
    Boolean,
    Category,
    Column,
    Cut,
    Date,
    Datetime,
    Derived,
    Float,
    GivenBins,
    Integer,
    LinearSum,
    Lookup,
    OpenCategory,
    PrivateBins,
    Time,
    UniformBins,
    code_names,
)
from understudy.schema.rule import Impossible, Range
from understudy.schema.table import Schema
from understudy.schema.unit import Unit

__all__ = [
    "Boolean",
    "Category",
    "Column",
    "Cut",
    "Date",
    "Datetime",
    "Derived",
    "Float",
    "GivenBins",
    "Impossible",
    "Integer",
    "LinearSum",
    "Lookup",
    "OpenCategory",
    "PrivateBins",
    "Range",
    "Schema",
    "Time",
    "UniformBins",
    "Unit",
    "code_names",
]
