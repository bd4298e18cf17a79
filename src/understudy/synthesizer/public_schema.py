"""The schema of a public table: that of the private one, without a unit and without columns it need not have.

A method that labels public records names its private columns (`not_public`), and what cannot do without a public table
says so (`check_without_public`); both are optional parts of a mechanism.
"""

from dataclasses import replace

from understudy.mechanisms.prepare import public_facts
from understudy.schema import Category, Column, Schema, Unit, code_names
from understudy.synthesizer.design import Design

__all__ = ["check_without_public", "public_schema"]


def public_schema(design: Design) -> Schema:
    """What a public table may contain; rules about columns it need not have are left out."""
    schema = design.schema
    named = getattr(design.method, "not_public", None)
    if named is None:
        return replace(schema, unit=Unit())
    private = set(named(public_facts(schema)))
    kept = [column for column in schema.modelled if not private & set(code_names(column))]
    names = {column.name for column in kept}
    rules = tuple(rule for rule in schema.rules if set(rule.when) <= names)
    return replace(schema, unit=Unit(), rules=rules, columns=tuple(_alone(column, names) for column in kept))


def check_without_public(design: Design) -> None:
    """Raises if the method cannot do without a public table under these options and on this domain."""
    check = getattr(design.method, "check_without_public", None)
    if check is not None:
        check(public_facts(design.schema))


def _alone(column: Column, names: set[str]) -> Column:
    """The column without its hierarchy, if the coarser column is left out."""
    if isinstance(column, Category) and column.within is not None and column.within not in names:
        return replace(column, within=None)
    return column
