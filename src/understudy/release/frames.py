"""Synthetic rows as the kind of frame the caller works with. Types stay: whole numbers with gaps stay whole."""

from typing import TYPE_CHECKING, Union

import pyarrow as pa

from understudy.errors import UsageError, nearest

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = ["KINDS", "Frame", "to_frame"]

Frame = Union[pa.Table, "pandas.DataFrame", "polars.DataFrame"]
KINDS = ("arrow", "pandas", "polars")


def to_frame(table: pa.Table, kind: str) -> Frame:
    """The table as "arrow", "pandas" or "polars"."""
    if kind == "arrow":
        return table
    if kind == "pandas":
        return table.to_pandas(types_mapper=_nullable_types(table).get)
    if kind == "polars":
        import polars  # only a caller who has polars asks for it

        return polars.from_arrow(table)
    raise UsageError("frame kind", f"{kind!r} is not known.", nearest(kind, KINDS))


def _nullable_types(table: pa.Table) -> dict[pa.DataType, object]:
    """Whole numbers and booleans that may be missing: pandas' own types would turn them into floats and objects."""
    import pandas  # only a caller who has pandas asks for it

    known = {
        pa.int8(): pandas.Int8Dtype(),
        pa.int16(): pandas.Int16Dtype(),
        pa.int32(): pandas.Int32Dtype(),
        pa.int64(): pandas.Int64Dtype(),
        pa.uint8(): pandas.UInt8Dtype(),
        pa.uint16(): pandas.UInt16Dtype(),
        pa.uint32(): pandas.UInt32Dtype(),
        pa.uint64(): pandas.UInt64Dtype(),
        pa.bool_(): pandas.BooleanDtype(),
    }
    with_gaps = {field.type for field in table.schema if table[field.name].null_count}
    return {kind: dtype for kind, dtype in known.items() if kind in with_gaps}
