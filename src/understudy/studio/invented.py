"""Invented rows under a schema: something to try methods on that tells nothing of anybody.

They are made from the schema alone, which is public, and from a fixed seed: every row belongs to one of a few invented
kinds of people, and each kind has its own invented shares of labels and its own usual numbers. So columns depend on
each other, as they do in tables about people, but no dependence is a real one. What the rules of the schema call
impossible is not made, as far as a few tries go. No private table is opened here.
"""

import csv
import datetime as dt
import random
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import understudy as us

SEED = 20_260_101
ROWS, MOST_ROWS = 5_000, 50_000
_KINDS, _TRIES = 6, 40
_OPEN_LABELS, _NARROW = 25, 8.0
_WRITING = {
    "decimal": "", "thousands": "", "prefix": "", "suffix": "", "parentheses": False, "format": None, "storage": "",
}  # fmt: skip
"""What a schema says of how values are written in a file; invented ones are written plainly."""
_MIDNIGHT = dt.datetime(2000, 1, 1)

Value = str | int | float | dt.date | dt.datetime | dt.time
Draw = Callable[[], Value]


def plainly_written(schema: "us.Schema") -> "us.Schema":
    """The same schema for a file in the usual form."""
    columns = tuple(_plain(one) for one in schema.columns)
    return replace(schema, columns=columns, file=None)


def _plain(column: Any) -> Any:
    return replace(column, **{field.name: _WRITING[field.name] for field in fields(column) if field.name in _WRITING})


def write_invented(schema: "us.Schema", rows: int, target: Path) -> None:
    """Writes that many invented rows as CSV; always the same ones."""
    unit = schema.unit.column
    names = [one.name for one in schema.modelled]
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, *([] if unit is None else [unit])])
        for number, row in enumerate(invented_rows(schema, rows)):
            writer.writerow([*(_written(row[name]) for name in names), *([] if unit is None else [f"id {number}"])])


def invented_rows(schema: "us.Schema", rows: int) -> Iterator[dict[str, Value]]:
    """Invented rows, column by column, always the same ones for a schema and a number.

    >>> schema = us.Schema((us.schema.Category(name="sex", labels=("f", "m")),), us.Unit())
    >>> [row["sex"] for row in invented_rows(schema, 3)] == [row["sex"] for row in invented_rows(schema, 3)]
    True
    """
    chance = random.Random(SEED)
    kinds = [{one.name: _draw(one, chance) for one in schema.modelled} for _ in range(_KINDS)]
    for _ in range(rows):
        drawn = chance.choice(kinds)
        row = {name: draw() for name, draw in drawn.items()}
        for _ in range(_TRIES):
            if not any(_is_broken(rule, row) for rule in schema.rules):
                break
            row = {name: draw() for name, draw in drawn.items()}
        yield row


def _draw(column: Any, chance: random.Random) -> Draw:
    """How one kind of people answers for a column."""
    if column.kind in ("category", "open_category", "boolean"):
        labels = _labels(column)
        weights = [chance.expovariate(1.0) ** 2 + 1e-6 for _ in labels]
        return lambda: chance.choices(labels, weights)[0]
    lower, upper = _as_number(column.lower), _as_number(column.upper)
    usual = chance.uniform(0.1, 0.9)
    shape = (_NARROW * usual, _NARROW * (1.0 - usual))
    return lambda: _as_value(column, lower + (upper - lower) * chance.betavariate(*shape))


def _labels(column: Any) -> tuple[str, ...]:
    if column.kind == "category":
        return tuple(column.labels)
    invented = (f"value {number}" for number in range(1, _OPEN_LABELS + 1))
    return ("false", "true") if column.kind == "boolean" else tuple(invented)


def _as_number(value: Any) -> float:
    if isinstance(value, dt.time):
        value = dt.datetime.combine(_MIDNIGHT, value)
    if isinstance(value, dt.datetime):
        return (value.replace(tzinfo=None) - _MIDNIGHT).total_seconds()
    return float(value.toordinal() if isinstance(value, dt.date) else value)


def _as_value(column: Any, number: float) -> Value:
    if column.kind == "integer":
        steps = round((number - float(column.lower)) / float(column.step))
        return min(int(column.lower) + steps * int(column.step), int(column.upper))
    if column.kind == "float":
        rounded = round(number, 6 if column.decimals is None else int(column.decimals))
        return min(max(rounded, float(column.lower)), float(column.upper))
    if column.kind == "date":
        return dt.date.fromordinal(round(number))
    step = int(column.resolution)
    moment = _MIDNIGHT + dt.timedelta(seconds=number // step * step)
    return moment.time() if column.kind == "time" else moment


def _is_broken(rule: Any, row: dict[str, Value]) -> bool:
    return all(_meets(row.get(name), said) for name, said in rule.when.items())


def _meets(value: Any, said: Any) -> bool:
    if isinstance(said, us.schema.Range):
        number = _as_number(value)
        above = said.lower is None or number >= _as_number(said.lower)
        return above and (said.upper is None or number <= _as_number(said.upper))
    return str(value) in said


def _written(value: Value) -> str:
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)
