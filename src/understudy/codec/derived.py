"""Derived columns, recomputed from the columns just decoded, so that they always agree with them."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from understudy.codec.axis import written
from understudy.codec.text import canonical_text
from understudy.schema import Cut, Derived, Float, Integer, LinearSum, Lookup, Schema

__all__ = ["derived_column", "derived_type"]

# Sums beyond this are not exact as 64-bit integers and become missing.
_LARGEST_SUM = 2.0**62


def derived_type(column: Derived, schema: Schema) -> pa.DataType:
    """The Arrow type of a derived column: its storage, else text for labels and int64 or double for sums."""
    if column.storage:
        return pa.type_for_alias(column.storage)
    if not isinstance(column.formula, LinearSum):
        return pa.string()
    return pa.int64() if _is_whole(column.formula, schema) else pa.float64()


def _is_whole(formula: LinearSum, schema: Schema) -> bool:
    numbers = (*formula.weights.values(), formula.constant)
    sources = (schema.column(name) for name in formula.weights)
    return all(float(number).is_integer() for number in numbers) and all(
        isinstance(source, Integer) for source in sources
    )


def derived_column(column: Derived, schema: Schema, decoded: Mapping[str, pa.Array]) -> pa.Array:
    """The values of a derived column, given those of the columns it is made from."""
    match column.formula:
        case LinearSum():
            values = _sum(column.formula, schema, decoded)
        case Lookup():
            values = _lookup(column.formula, decoded[column.formula.column])
        case Cut():
            values = _cut(column.formula, _numbers(column.formula.column, schema, decoded))
    return written(values, derived_type(column, schema))


def _numbers(name: str, schema: Schema, decoded: Mapping[str, pa.Array]) -> pa.Array:
    """A number column without its special values, which are not amounts."""
    column, array = schema.column(name), decoded[name]
    special = column.special if isinstance(column, Integer | Float) else ()
    if special:
        is_special = pc.is_in(array, value_set=written(pa.array(special), array.type))
        array = pc.if_else(is_special, pa.scalar(None, array.type), array)
    return array


def _sum(formula: LinearSum, schema: Schema, decoded: Mapping[str, pa.Array]) -> pa.Array:
    whole = _is_whole(formula, schema)
    kind = np.int64 if whole else np.float64
    rows = len(next(iter(decoded.values()), []))
    total = np.full(rows, formula.constant, dtype=kind)
    size = np.full(rows, abs(float(formula.constant)))
    valid = np.ones(rows, dtype=bool)
    for name, weight in formula.weights.items():
        array = _numbers(name, schema, decoded)
        numbers = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
        valid &= array.is_valid().to_numpy(zero_copy_only=False)
        with np.errstate(all="ignore"):
            total += kind(weight) * numbers.astype(kind)
            size += np.abs(float(weight) * numbers.astype(np.float64))
    valid &= np.isfinite(size) & ((size < _LARGEST_SUM) if whole else True)
    return pa.array(total, mask=~valid)


def _lookup(formula: Lookup, source: pa.Array) -> pa.Array:
    distinct = source.dictionary_encode()
    texts = canonical_text(distinct.dictionary).to_pylist()
    found = pa.array([formula.entries.get(text, formula.otherwise) for text in texts], pa.string())
    values = found.take(distinct.indices)
    return values if formula.otherwise is None else pc.fill_null(values, formula.otherwise)


def _cut(formula: Cut, source: pa.Array) -> pa.Array:
    numbers = pc.fill_null(source, 0).to_numpy(zero_copy_only=False).astype(np.float64)
    edges = np.asarray(formula.edges, dtype=np.float64)
    bands = np.searchsorted(edges, numbers, side="right") - 1
    bands[numbers == edges[-1]] = len(formula.labels) - 1
    valid = source.is_valid().to_numpy(zero_copy_only=False) & (bands >= 0) & (bands < len(formula.labels))
    return pa.array(formula.labels, pa.string()).take(pa.array(np.where(valid, bands, 0), mask=~valid))
