"""Neighbouring tables that are hard to keep apart, made from a schema alone: no private table has any part in them.

An empirical bound is about one pair of neighbours; how much a method really leaks is about the worst. Which pair that
is differs between methods, so a few of different kinds are tried in short trials and the most telling one is used. The
extra unit has as many rows as the schema allows a unit, all alike, because then every count it is in moves by the most.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from understudy.schema import Schema
from understudy.testing.replay import Record, record_pool, to_table, valid_texts

OTHERS = 4
"""Rows of one kind that both tables hold: few, so that what the extra unit adds is a large part of everything."""
CROWD = 400
"""Rows of one kind in a pair for answers that show only what many hold."""


@dataclass(frozen=True, slots=True)
class WorstPair:
    """Two tables, of which the second holds one unit more; `words` say what they are, by values of the schema."""

    words: str
    table: pa.Table
    neighbour: pa.Table
    record: Record

    def sides(self) -> tuple[pa.Table, pa.Table]:
        """The table without the extra unit, and with it."""
        return self.table, self.neighbour


def worst_pairs(schema: Schema) -> list[WorstPair]:
    """Pairs of different kinds, the one that most often tells most first."""
    first, last = _record(schema, 0), _record(schema, -1)
    mixed: Record = {name: (first, last)[place % 2][name] for place, name in enumerate(first)}
    constant = [first] * OTHERS
    return [
        _pair(schema, f"{OTHERS} equal rows, and a unit that differs from them in every column", constant, last),
        _pair(schema, "no rows at all, and a unit", [], last),
        _pair(schema, f"{OTHERS} equal rows, and a unit like them", constant, first),
        _pair(
            schema,
            f"{OTHERS} equal rows, {OTHERS} others that differ in every column, and a unit that mixes both",
            [*constant, *[last] * OTHERS],
            mixed,
        ),
        _pair(schema, f"{CROWD} equal rows, and a unit like them", [first] * CROWD, first),
    ]


def invented_public(schema: Schema) -> pa.Table:
    """A public table of valid records, for methods that cannot do without one."""
    return to_table(schema, [record for record in record_pool(schema) for _ in range(OTHERS)])


def in_words(record: Record) -> str:
    """A record as it is shown."""
    return ", ".join(f"{name} = {value}" for name, value in record.items())


def _record(schema: Schema, place: int) -> Record:
    return {column.name: valid_texts(column)[place] for column in schema.modelled}


def _pair(schema: Schema, words: str, rows: Sequence[Record], extra: Record) -> WorstPair:
    unit, bound = schema.unit.column, schema.unit.sensitivity
    own: list[Record] = [extra] * bound
    others = list(rows)
    if unit is not None:
        own = [{**row, unit: "the-extra-unit"} for row in own]
        others = [{**row, unit: f"unit-{place}"} for place, row in enumerate(others)]
    words = f"{words} ({'' if bound == 1 else f'{bound} rows of '}{in_words(extra)})"
    return WorstPair(words, to_table(schema, others), to_table(schema, [*others, *own]), extra)
