"""How much room synthetic rows will take, from public facts alone, so that what cannot fit is refused beforehand.

A column of labels or of few numbers is written as bit-packed indices, so a row takes about the sum of log₂(values) bits
in Parquet; in text it takes as many bytes as its values have characters, and in memory the width of their types. That
is a forecast and no bound: skewed columns compress better, headers and footers come on top.
"""

import math
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from understudy.codec.axis import axis_of
from understudy.codec.support import Continuum
from understudy.errors import ResourceError
from understudy.schema import Boolean, Category, Column, Cut, Derived, OpenCategory, Schema

__all__ = ["check_bytes", "check_frame", "check_room", "file_bytes", "machine_bytes", "row_bytes", "rows_that_fit"]

MEMORY_SHARE = 0.8
SPARE_BYTES = 2**24
TEXT = (".csv", ".tsv")
_WIDE_BITS = 64
_FLOAT_TEXT = 18
_OPEN_LABEL = 16
"""Characters of a label that is not known yet."""


def row_bytes(schema: Schema, suffix: str = ".parquet") -> float:
    """Bytes of one synthetic row in a file of that kind.

    >>> row_bytes(Schema(columns=(Category(name="sex", labels=("F", "M"), missing=False),)))
    0.125
    """
    if suffix.lower() in TEXT:
        return sum(_characters(column) + 1 for column in schema.columns)
    return sum(_bits(column) for column in schema.columns) / 8


def file_bytes(schema: Schema, rows: int, suffix: str = ".parquet") -> int:
    """Bytes of so many synthetic rows in files of that kind."""
    return rows * math.ceil(8 * row_bytes(schema, suffix)) // 8  # in whole numbers: somebody may ask for 10⁴⁰⁰


def rows_that_fit(schema: Schema, place: Path, copies: int = 1) -> int:
    """How many rows each of that many files can have on the disk that holds `place`."""
    free = max(0, shutil.disk_usage(place).free - SPARE_BYTES)
    return int(free / (copies * row_bytes(schema)))


def check_room(schema: Schema, rows: Iterable[int], place: Path, suffix: str = ".parquet") -> None:
    """Raises ResourceError unless files of so many rows fit on the disk that holds `place`."""
    check_bytes("synthetic rows on disk", file_bytes(schema, sum(rows), suffix), place)


def check_bytes(what: str, needed: int, place: Path) -> None:
    """Raises ResourceError unless so many bytes, and some to spare, are free on the disk that holds `place`."""
    free = shutil.disk_usage(place).free
    if needed + SPARE_BYTES > free:
        fix = "Ask for fewer rows, free some space or choose another disk."
        raise ResourceError(what, needed + SPARE_BYTES, free, fix)


def check_frame(schema: Schema, rows: int) -> None:
    """Raises ResourceError unless a frame of so many rows fits in most of the machine's memory."""
    needed = rows * math.ceil(sum(_frame_bytes(column) for column in schema.columns))
    limit = machine_bytes()
    if needed > limit:
        fix = "Ask for fewer rows, or write them to a file with sample_to, which holds few of them in memory."
        raise ResourceError("synthetic rows in memory", needed, limit, fix)


def machine_bytes() -> int:
    """Most of the machine's memory."""
    return int(MEMORY_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _labels(column: Column) -> Sequence[str] | None:
    """The labels of a column that has some, as far as they are known."""
    if isinstance(column, Derived):
        formula = column.formula
        return formula.labels if isinstance(formula, Cut) else tuple(getattr(formula, "entries", {}).values()) or None
    if isinstance(column, Boolean):
        return ("false", "true")
    return column.labels if isinstance(column, Category) else None


def _bits(column: Column) -> float:
    """log₂ of how many values the column has, and at least one bit."""
    labels = _labels(column)
    if labels is not None:
        values = len(labels) + (getattr(column, "other", None) is not None)
    elif isinstance(column, OpenCategory):
        values = column.most_labels + 1
    elif isinstance(column, Derived):
        return _WIDE_BITS
    else:
        axis = axis_of(column)
        if isinstance(axis.support, Continuum):
            return _WIDE_BITS
        values = axis.support.points(axis.lower, axis.upper) + 1 + len(getattr(column, "special", ()))
    return min(_WIDE_BITS, max(1.0, math.log2(max(values + column.missing, 1))))


def _characters(column: Column) -> float:
    """Characters of a value, on average over the labels that are known."""
    labels = _labels(column)
    if labels is not None:
        return sum(len(label.encode("utf-8", "replace")) for label in labels) / max(len(labels), 1)
    if isinstance(column, OpenCategory | Derived):
        return _OPEN_LABEL
    axis = axis_of(column)
    wide = _FLOAT_TEXT if isinstance(axis.support, Continuum) and axis.support.decimals is None else 0
    return max(len(axis.text(axis.lower)), len(axis.text(axis.upper)), wide)


def _frame_bytes(column: Column) -> float:
    if _labels(column) is not None or isinstance(column, OpenCategory):
        return 1 if isinstance(column, Boolean) else 4 + _characters(column)
    return 8
