"""Pairs of tables one unit apart: designed to hurt, or drawn at random.

Random pairs alone miss bugs that need a special record (the sole holder of a category, the first missing value), so
the designed list is mandatory. Tables are Arrow tables of text, as a CSV file would give them: every hostile value
fits, and the pipeline under test has to parse them itself.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from understudy.schema import Boolean, Category, Column, OpenCategory, Schema

__all__ = ["HOSTILE", "Pair", "Record", "designed_pairs", "random_pairs", "record_pool", "to_table"]

Record = dict[str, str | None]

HOSTILE: tuple[str | None, ...] = (
    None, "", " ", "nan", "NaN", "null", "None", "inf", "-inf", "-0.0", "1e308", "-1e308", "9" * 40, "0x10", "1,5",
    "outside-the-schema", "\x00", "\ufeff", "é", "e\u0301", "\u202egnp", "🙂", "'; drop table t; --", "=1+1",
    "x" * 5000, "9999-12-31", "0001-01-01", "2020-02-30", "24:00:00", "true", "false",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbouring tables: `neighbour` holds one more unit."""

    name: str
    table: pa.Table
    neighbour: pa.Table


def to_table(schema: Schema, records: Sequence[Record]) -> pa.Table:
    """Text columns in schema order (with the unit column, if there is one)."""
    names = [column.name for column in schema.modelled]
    if schema.unit.column is not None:
        names.append(schema.unit.column)
    return pa.table({name: pa.array([record.get(name) for record in records], pa.string()) for name in names})


def valid_texts(column: Column) -> tuple[str, ...]:
    """A few values the column declares, as text: its labels, or its ends and middle."""
    if isinstance(column, Category):
        return column.labels[:12]
    if isinstance(column, OpenCategory):
        return ("first", "second", "third")
    if isinstance(column, Boolean):
        return ("false", "true")
    lower, upper = getattr(column, "lower", 0), getattr(column, "upper", 0)
    ends = [lower, upper, *getattr(column, "special", ())]
    if isinstance(lower, int | float) and isinstance(upper, int | float):
        ends.append(type(lower)((lower + upper) // 2 if isinstance(lower, int) else (lower + upper) / 2))
        ends += [lower + divisor for divisor in getattr(column, "split", ()) if lower + divisor <= upper]
        return tuple(str(value) for value in ends)
    style = getattr(column, "format", None)
    return tuple(value.strftime(style) if style else value.isoformat() for value in ends)


def record_pool(schema: Schema) -> list[Record]:
    """Valid records that together hold every listed value of every column at least once."""
    pools = {column.name: valid_texts(column) for column in schema.modelled}
    length = max(map(len, pools.values()))
    return [{name: pool[index % len(pool)] for name, pool in pools.items()} for index in range(length)]


def designed_pairs(schema: Schema) -> Iterator[Pair]:
    """The mandatory list: sole holders, empty and tiny tables, ends, hostile and missing values, borders of n."""
    pool = record_pool(schema)
    for index, record in enumerate(pool):
        yield _pair(schema, f"sole holder {index}", [other for other in pool if other is not record], record)
    yield _pair(schema, "empty table", [], pool[0])
    yield _pair(schema, "one row", pool[:1], pool[-1])
    yield _pair(schema, "two equal rows", pool[:1] * 2, pool[0])
    yield _pair(schema, "constant table", pool[:1] * 30, pool[-1])
    nothing: Record = {column.name: None for column in schema.modelled}
    yield _pair(schema, "first missing record", pool * 2, nothing)
    yield _pair(schema, "all missing", [nothing] * 9, nothing)
    for size in (9, 10, 99, 100, 255, 256, 999):
        yield _pair(schema, f"{size} rows and one more", _cycle(pool, size), pool[0])
    for position, value in enumerate(HOSTILE):
        for column in schema.modelled:
            record = {**pool[position % len(pool)], column.name: value}
            yield _pair(schema, f"hostile value {position} in {column.name}", pool, record)


def random_pairs(schema: Schema, count: int, rng: np.random.Generator, *, most_rows: int = 30) -> Iterator[Pair]:
    """`count` pairs of random records, every fourth value hostile. The generator is for tables, never for noise."""
    pools = {column.name: valid_texts(column) for column in schema.modelled}

    def draw() -> Record:
        record: Record = {}
        for name, pool in pools.items():
            choices: Sequence[str | None] = HOSTILE if rng.integers(4) == 0 else pool
            record[name] = choices[int(rng.integers(len(choices)))]
        return record

    for number in range(count):
        rows = [draw() for _ in range(int(rng.integers(most_rows + 1)))]
        yield _pair(schema, f"random {number}", rows, draw())


def _cycle(pool: Sequence[Record], size: int) -> list[Record]:
    return list(itertools.islice(itertools.cycle(pool), size))


def _pair(schema: Schema, name: str, rows: Sequence[Record], extra: Record) -> Pair:
    """The unit added is one row, or (with an id column) somebody who holds more rows than the bound allows."""
    unit = schema.unit.column
    if unit is None:
        return Pair(name, to_table(schema, rows), to_table(schema, [*rows, extra]))
    bound = schema.unit.rows
    named = [{**row, unit: f"unit-{index // bound}"} for index, row in enumerate(rows)]
    others = record_pool(schema)
    added = [{**extra, unit: "the-extra-unit"}, *({**row, unit: "the-extra-unit"} for row in _cycle(others, bound + 2))]
    return Pair(name, to_table(schema, named), to_table(schema, [*named, *added]))
