"""What a public table must hold: every column of the private one, or all but those that a method calls private.

A method that labels public records names its private columns (`not_public`), and what cannot do without a public table
says so (`check_without_public`); both are optional parts of a mechanism.
"""

from dataclasses import replace

from understudy.errors import UsageError
from understudy.mechanisms.prepare import public_facts
from understudy.schema import Schema, Unit, code_names
from understudy.schema.part import without_columns
from understudy.synthesizer.design import Design

__all__ = ["check_without_public", "public_schema"]


def public_schema(design: Design) -> Schema:
    """The schema under which a public table is read; its rows are nobody's units."""
    schema = design.schema
    named = getattr(design.method, "not_public", None)
    if named is None:
        return replace(schema, unit=Unit())
    private = set(named(public_facts(schema)))
    if all(private & set(code_names(column)) for column in schema.modelled):
        raise UsageError("public", "every column is private, so a public table has nothing to tell.", "Drop it.")
    return without_columns(schema, private)


def check_without_public(design: Design) -> None:
    """Raises if the method cannot do without a public table under these options and on this domain."""
    check = getattr(design.method, "check_without_public", None)
    if check is not None:
        check(public_facts(design.schema))
