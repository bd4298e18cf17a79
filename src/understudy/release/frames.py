"""Synthetic rows as the kind of frame that the private rows came in, with the types that it had.

Types come back by public facts alone: how the frame stored a column (its type, never its values) and the schema. A
type that the schema's values do not fit in is left out, and a `storage` that the schema states comes first. Labels that
a frame keeps by number come back with the labels of the schema, in its order. Whole numbers with gaps stay whole.

Workbooks are written row by row. Files of Stata and SPSS are written from such a frame. What the schema tells people
comes along: titles as the labels of variables, meanings as value labels of whole numbers.
"""

import contextlib
import datetime as dt
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from understudy.codec.axes import axis_of, special_of
from understudy.codec.column import labels_as
from understudy.codec.table import TableCodec
from understudy.errors import UsageError, nearest
from understudy.schema import Boolean, Category, Column, Date, Datetime, Derived, Float, Integer, OpenCategory, Time

if TYPE_CHECKING:
    import pandas
    import polars

    from understudy.counts.source import ColumnType

Frame = Union[pa.Table, "pandas.DataFrame", "polars.DataFrame"]
KINDS = ("arrow", "pandas", "polars")
_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_WHOLE = (pa.types.is_integer,)
_REAL = (pa.types.is_floating,)
_STAMP = (pa.types.is_timestamp,)
_FITTING: Mapping[type, tuple[Any, ...]] = {
    Category: (*_TEXT, *_WHOLE, pa.types.is_boolean),
    OpenCategory: _TEXT,
    Boolean: (pa.types.is_boolean, *_WHOLE),
    Integer: (*_WHOLE, *_REAL),
    Float: _REAL,
    Date: (pa.types.is_date, *_STAMP),
    Datetime: _STAMP,
    Time: (pa.types.is_time,),
}


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


def as_it_came(table: pa.Table, codec: TableCodec, kind: str, types: Mapping[str, "ColumnType"]) -> Frame:
    """The table as a frame whose columns are stored as those of the private frame were."""
    known = {column.name: column for column in codec.schema.columns if column.name in types and not column.storage}
    for name, column in known.items():
        place, said = table.schema.get_field_index(name), types[name]
        target = _target(column, codec, said)
        if kind == "pandas" and said.native is None and isinstance(column, Integer) and not _is_whole(target):
            target = None  # a gap may have made floats of whole numbers, and whether there is one is private
        values = table.column(place) if target is None else table.column(place).cast(target)
        if kind == "arrow" and said.labels:
            values = _by_number(
                values, _labels(column, codec, values.type), said.native, ordered=_ordered(column, said)
            )
        table = table.set_column(place, table.schema.field(place).with_type(values.type), values)
    frame: Any = to_frame(table, kind)
    if kind != "arrow":
        finish = _finished_pandas if kind == "pandas" else _finished_polars
        for name, column in known.items():
            frame = finish(frame, column, types[name], _labels(column, codec, table.schema.field(name).type))
    return frame


def _target(column: Column, codec: TableCodec, said: "ColumnType") -> pa.DataType | None:
    """The Arrow type that the column comes back in; None for the one that the schema gives it."""
    wanted = said.values
    if wanted is None or isinstance(column, Derived) or not any(fits(wanted) for fits in _FITTING[type(column)]):
        return None
    if isinstance(column, Datetime) and (wanted.tz is None) != (column.zone is None):
        wanted = pa.timestamp(wanted.unit, column.zone)  # whether there is a zone is for the schema to say
    if isinstance(column, Date) and pa.types.is_timestamp(wanted):
        wanted = pa.timestamp(wanted.unit)
    try:
        _extremes(column, codec).cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return wanted


def _is_whole(kind: pa.DataType | None) -> bool:
    return kind is None or bool(pa.types.is_integer(kind))


def _extremes(column: Column, codec: TableCodec) -> pa.Array:
    """Values of the column of which every other one is as easily stored, in the type of its schema."""
    if isinstance(column, Boolean):
        return pa.array([False, True])
    if isinstance(column, Category | OpenCategory):
        return _labels(column, codec, pa.string())
    assert not isinstance(column, Derived)
    axis = axis_of(column)
    numbers = np.asarray([axis.lower, axis.upper, *special_of(column)])
    return axis.write(numbers, np.ones(len(numbers), dtype=bool))


def _labels(column: Column, codec: TableCodec, kind: pa.DataType) -> pa.Array | None:
    """The labels of a column and the name of other, in order and in that type; None for columns without labels."""
    if isinstance(column, Category):
        return labels_as([*column.labels, *([] if column.other is None else [column.other])], kind)
    if isinstance(column, OpenCategory):
        texts = [*codec.labels.get(column.name, ()), column.other]
        return labels_as([text for text in dict.fromkeys(texts) if text], kind)
    return None


def _ordered(column: Column, said: "ColumnType") -> bool:
    """Whether labels come back in order. They come in the schema's, so only the schema can say that it means something.

    Numbers and dates have an order of their own.
    """
    return column.ordered if isinstance(column, Category) else said.ordered and not isinstance(column, OpenCategory)


def _by_number(values: pa.ChunkedArray, labels: pa.Array | None, kind: Any, *, ordered: bool) -> pa.ChunkedArray:
    """The values as an Arrow dictionary, with the width of numbers that it had, if that is wide enough."""
    if labels is None:
        return values.dictionary_encode()
    width = getattr(kind, "index_type", pa.int32())
    try:
        pa.array([len(labels)]).cast(width)
    except pa.ArrowInvalid:
        width = pa.int32()
    places = pc.index_in(values, value_set=labels).combine_chunks().cast(width)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(places, labels, ordered=ordered)])


def _finished_pandas(frame: Any, column: Column, said: "ColumnType", labels: pa.Array | None) -> Any:
    """The frame with one column in a type that only pandas has."""
    import pandas as pd

    values = frame[column.name]
    if said.labels and labels is not None:
        places = pd.Index(labels.to_pandas())
        dtype = pd.CategoricalDtype(places, ordered=_ordered(column, said))
        return frame.assign(**{column.name: values.astype(dtype)})
    if said.labels:
        return frame.assign(**{column.name: values.astype(pd.CategoricalDtype(ordered=said.ordered))})
    if said.native is None or isinstance(column, Derived):
        return frame
    try:
        return frame.assign(**{column.name: values.astype(said.native)})
    except (ValueError, TypeError, OverflowError, pa.ArrowException):
        return frame


def _finished_polars(frame: Any, column: Column, said: "ColumnType", labels: pa.Array | None) -> Any:
    """The frame with one column in a type that only polars has."""
    import polars as pl

    if not said.labels or labels is None or not pa.types.is_string(labels.type):
        return frame
    kind = pl.Enum(labels.to_pylist()) if said.labels == "enum" else pl.Categorical
    return frame.with_columns(pl.col(column.name).cast(kind))


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


WORKBOOK_ROWS, WORKBOOK_COLUMNS = 2**20, 2**14
_LONGEST_CELL = 32_767
_FIRST_DAY = dt.date(1900, 3, 1)
"""Workbooks count days from 1900 and take that for a leap year; earlier dates are written as text."""
_EXACT = 2**53


def require_writer(suffix: str, names: Sequence[str], rows: int | None) -> None:
    """Raises unless a file of that suffix can hold these columns and so many rows (None: nobody knows yet).

    Everything that can be known before rows are drawn is refused here, so that nothing is paid for a file that
    cannot be written.
    """
    form = suffix.lower()
    if form in (".dta", ".sav"):
        _statistics_writer()
        longest = _LONGEST_NAME["stata" if form == ".dta" else "spss"]
        odd = [name for name in names if not _is_variable(name, longest)]
        if odd:
            rule = (
                f"cannot hold columns called {', '.join(map(repr, odd[:10]))}: names are letters, digits and _ there."
            )
            raise UsageError("output", rule, "Write Parquet or CSV, or rename the columns in the schema.")
    if form == ".xlsx":
        _workbook_writer()
        if len(names) > WORKBOOK_COLUMNS or (rows is not None and rows >= WORKBOOK_ROWS):
            most = f"{WORKBOOK_ROWS - 1:,} rows below the names and {WORKBOOK_COLUMNS:,} columns"
            raise UsageError("output", f"a sheet of a workbook holds at most {most}.", "Write Parquet or CSV.")


def _statistics_writer() -> Any:
    try:
        import pandas  # noqa: F401 - the writer takes its frames
        import pyreadstat
    except ImportError as cause:
        rule, fix = "needs pandas and pyreadstat.", 'Install them: pip install "understudy[stats]".'
        raise UsageError("output", f"a file of Stata or SPSS {rule}", fix) from cause
    return pyreadstat


def _workbook_writer() -> Any:
    try:
        import openpyxl
    except ImportError as cause:
        fix = 'Install it: pip install "understudy[excel]".'
        raise UsageError("output", "a workbook needs openpyxl.", fix) from cause
    return openpyxl


def write_workbook(path: Path, schema: pa.Schema, pieces: Iterable[pa.Table], marks: Mapping[str, str]) -> None:
    """Writes a workbook of one sheet, row by row; texts are text, also those that begin like a formula.

    Whole numbers that a workbook would round, and dates before it counts days, are written as text.

    Raises:
        UsageError: if the writing library is not installed, or a value has no place in a sheet.
    """
    openpyxl = _workbook_writer()
    require_writer(".xlsx", schema.names, None)
    book = openpyxl.Workbook(write_only=True)
    book.properties.title, book.properties.description = FILE_LABEL, json.dumps(dict(marks))
    sheet = book.create_sheet("synthetic rows")
    cell_of = openpyxl.cell.WriteOnlyCell
    try:
        sheet.append([_text_cell(cell_of(sheet, name)) for name in schema.names])
        written = 1
        for piece in pieces:
            written += piece.num_rows
            if written > WORKBOOK_ROWS:
                require_writer(".xlsx", schema.names, written - 1)
            columns = [_for_sheet(values) for values in piece.columns]
            for row in zip(*columns, strict=True):
                sheet.append([_text_cell(cell_of(sheet, one)) if isinstance(one, str) else one for one in row])
        book.save(path)
    except Exception as cause:
        with contextlib.suppress(Exception):  # it ends its temporary file with the marks that are still open
            sheet.close()
        if not isinstance(cause, openpyxl.utils.exceptions.IllegalCharacterError):
            raise
        rule = "holds a label with control characters, which a workbook cannot hold."
        raise UsageError("output", rule, "Write Parquet or CSV.") from cause
    finally:
        book.close()


def _text_cell(cell: Any) -> Any:
    cell.data_type = "s"
    return cell


def _for_sheet(values: pa.ChunkedArray) -> list[Any]:
    """The values as a sheet holds them."""
    if pa.types.is_timestamp(values.type):
        values = (pc.local_timestamp(values) if values.type.tz is not None else values).cast(
            pa.timestamp("us"), safe=False
        )
    if pa.types.is_time(values.type):
        values = values.cast(pa.time64("us"), safe=False)
    return [_sheet_value(one) for one in values.to_pylist()]


def _sheet_value(one: Any) -> Any:
    if isinstance(one, str) and len(one) > _LONGEST_CELL:
        rule = f"holds a label of more than {_LONGEST_CELL:,} characters, which a sheet would truncate."
        raise UsageError("output", rule, "Write Parquet or CSV.")
    if isinstance(one, dt.date):  # and a moment, which is one too
        day = one.date() if isinstance(one, dt.datetime) else one
        return one.isoformat() if day < _FIRST_DAY else one
    return str(one) if isinstance(one, int) and abs(one) > _EXACT else one


FILE_LABEL = "Synthetic data: rows are drawn from a model."
_LONGEST_NAME = {"stata": 32, "spss": 64}
_LONGEST_TITLE = 80


def write_statistics(path: Path, schema: pa.Schema, pieces: Iterable[pa.Table], form: str) -> None:
    """Writes a file of Stata ("stata") or SPSS ("spss").

    Raises:
        UsageError: if the writing library is not installed, or the format has no room for a name or a value.
    """
    require_writer(path.suffix, schema.names, None)
    pyreadstat = _statistics_writer()
    import pandas as pd  # the writer takes its frames

    table = pa.concat_tables([schema.empty_table(), *pieces])
    said = {field.name: _said(field) for field in schema}
    columns: dict[str, Any] = {}
    meanings: dict[str, dict[int, str]] = {}
    for name in schema.names:
        values, found = _with_meanings(table.column(name), said[name].get("meanings", {}))
        columns[name] = _as_variable(values)
        meanings |= {name: found} if found else {}
    titles = {name: str(one["title"])[:_LONGEST_TITLE] for name, one in said.items() if "title" in one}
    known: dict[str, Any] = {"column_labels": titles, "variable_value_labels": meanings, "file_label": FILE_LABEL}
    if form == "spss":
        known["variable_measure"] = {name: "ordinal" for name, one in said.items() if "ordered" in one}
    try:
        (pyreadstat.write_dta if form == "stata" else pyreadstat.write_sav)(pd.DataFrame(columns), path, **known)
    except pyreadstat.PyreadstatError as cause:
        raise UsageError("output", f"cannot be written as a file of {form}.", "Write Parquet or CSV.") from cause


def _is_variable(name: str, longest: int) -> bool:
    return bool(re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name, re.ASCII)) and len(name) <= longest


def _said(field: pa.Field) -> dict[str, Any]:
    """What the field tells people; lists and mappings out of their JSON."""
    known = {key.decode(): text.decode() for key, text in (field.metadata or {}).items()}
    return {key: json.loads(text) if key in ("meanings", "ordered") else text for key, text in known.items()}


def _with_meanings(values: pa.ChunkedArray, meanings: Mapping[str, str]) -> tuple[pa.ChunkedArray, dict[int, str]]:
    """Whole numbers with their meanings; the values as they are where meanings are of other labels."""
    if not meanings:
        return values, {}
    try:
        numbers = pa.array(list(meanings)).cast(pa.int32()).to_pylist()
        return values.cast(pa.int32()), dict(zip(numbers, meanings.values(), strict=True))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return values, {}


def _as_variable(values: pa.ChunkedArray) -> Any:
    """A column in one of the few types of statistics programs: whole and real numbers, text, dates and times."""
    kind = values.type
    if pa.types.is_temporal(kind) and values.null_count == len(values):
        return pa.nulls(len(values), pa.timestamp("us")).to_pandas()  # objects that are all absent would pass for text
    if pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    elif pa.types.is_timestamp(kind) and kind.tz is not None:
        values = pc.local_timestamp(values)
    if pa.types.is_integer(values.type) and values.null_count:
        values = values.cast(pa.float64(), safe=False)
    return values.to_pandas()
