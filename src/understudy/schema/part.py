"""A schema without some of its columns, for tables that do not hold them."""

from collections.abc import Collection
from dataclasses import replace

from understudy.schema.column import Category, Column, code_names
from understudy.schema.table import Schema
from understudy.schema.unit import Unit

__all__ = ["without_columns"]


def without_columns(schema: Schema, names: Collection[str]) -> Schema:
    """The modelled columns that are not named (as columns, or as parts of a split one), protecting nobody.

    Derived columns are left out, and so are rules and hierarchies about columns that are.

    Raises:
        SchemaError: if no column is left.
    """
    named = set(names)
    kept = [column for column in schema.modelled if column.name not in named and not named & set(code_names(column))]
    left = {column.name for column in kept}
    rules = tuple(rule for rule in schema.rules if set(rule.when) <= left)
    return replace(schema, unit=Unit(), rules=rules, columns=tuple(_alone(column, left) for column in kept))


def _alone(column: Column, left: set[str]) -> Column:
    """The column without its hierarchy, if the coarser column is left out."""
    if isinstance(column, Category) and column.within is not None and column.within not in left:
        return replace(column, within=None)
    return column
