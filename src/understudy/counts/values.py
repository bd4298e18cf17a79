"""Rows of Python values, as database modules hand them over, as Arrow columns.

A database may type each value and not the column, and its module makes a Python object of each. Each value is read on
its own terms: only where all values of a batch have one plain type does the column get that type, else each one becomes
its text, by the rule for columns of mixed objects in frames. The codec reads a typed value and its text alike, so what
stands beside a value never decides how it is read.
"""

import contextlib
import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal

import pyarrow as pa

from understudy.counts.source import CONTENT_ERRORS, Batch, object_bytes
from understudy.schema import Float, Integer, Schema

MOST_CELLS = 1 << 19  # of Python objects alive at a time
PLAIN: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.large_string(),
    bytes: pa.large_binary(),
    dt.date: pa.date32(),
}


def decimal_signs(schema: Schema | None) -> dict[str, str]:
    """By which sign numbers as text are read, of the columns that declare one: theirs must be spelled so, too."""
    columns = () if schema is None else schema.modelled
    return {one.name: one.decimal for one in columns if isinstance(one, Integer | Float) and one.decimal}


def batches_of_rows(
    fetch: Callable[[int], Sequence[Sequence[object]]], columns: Sequence[str], decimals: Mapping[str, str]
) -> Iterator[Batch]:
    """Rows as batches of columns, fetched so many at a time until none are left."""
    size = max(256, MOST_CELLS // max(1, len(columns)))
    while rows := fetch(size):
        values = zip(*rows, strict=True)
        yield (
            len(rows),
            {name: values_array(one, decimals.get(name, "")) for name, one in zip(columns, values, strict=True)},
        )


def values_array(values: Sequence[object], decimal: str = "") -> pa.Array:
    """The values as one array: of their type if they share a plain one, else of each one's text.

    >>> values_array([1, None, 2]).type, values_array([1, 2.5, "x", b"y"]).to_pylist()
    (DataType(int64), [b'1', b'2.5', b'x', b'y'])
    """
    kinds = set(map(type, values)) - {type(None)}
    try:
        if len(kinds) < 2:
            (kind,) = kinds or {str}
            if kind in PLAIN:
                return pa.array(values, PLAIN[kind])
            if kind is dt.datetime:
                return _moments(values)
    except CONTENT_ERRORS:  # a whole number of more than 64 bits, half of a surrogate pair
        pass
    return pa.array([_spelled(value, decimal) for value in values], pa.large_binary())


def _moments(values: Sequence[object]) -> pa.Array:
    """Instants; with a zone they are taken to UTC, and some with and some without have no type in common."""
    zoned = {isinstance(value, dt.datetime) and value.utcoffset() is not None for value in values if value is not None}
    if len(zoned) > 1:
        raise ValueError("mixed")
    if zoned == {False}:
        return pa.array(values, pa.timestamp("us"))
    # One whose moment in UTC lies beyond the years of Python raises, and then each value has its own text, in UTC too.
    moments = [value.astimezone(dt.UTC) if isinstance(value, dt.datetime) else None for value in values]
    return pa.array(moments, pa.timestamp("us", "UTC"))


def _in_utc(value: object) -> object:
    """An instant with a zone as its moment in UTC, as batches of them are typed; one at the ends of time as it is."""
    if isinstance(value, dt.datetime) and value.utcoffset() is not None:
        with contextlib.suppress(OverflowError):
            return value.astimezone(dt.UTC)
    return value


def _spelled(value: object, decimal: str) -> bytes | None:
    text = object_bytes(_in_utc(value))
    if decimal and text is not None and isinstance(value, float | Decimal):
        return text.replace(b".", decimal.encode())
    return text
