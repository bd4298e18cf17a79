"""Text that a spreadsheet will not take for a formula (`--excel-safe`).

Spreadsheets run cells that start with =, +, -, @, a tab or a line break. Labels and column names come from people, so
a released CSV could carry such a cell; an apostrophe in front makes it text. Numbers and dates are left as they are.
"""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from understudy.errors import UsageError

__all__ = ["check_safe", "safe_rows", "safe_schema", "safe_table"]

_STARTS = r"^([=+\-@\t\r\n＝＋－＠])"


def check_safe(path: Path, *, excel_safe: bool) -> None:
    """Raises UsageError where `--excel-safe` is given for a file that no spreadsheet takes for text."""
    if excel_safe and path.suffix.lower() not in (".csv", ".tsv"):
        raise UsageError("--excel-safe", "is for .csv and .tsv files.", "Drop it or change the suffix.")


def safe_rows(
    schema: pa.Schema, pieces: Iterable[pa.Table], *, excel_safe: bool
) -> tuple[pa.Schema, Iterable[pa.Table]]:
    """Schema and tables to write: as they are, or with safe names and text if `--excel-safe` is given."""
    return (safe_schema(schema), map(safe_table, pieces)) if excel_safe else (schema, pieces)


def safe_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with safe column names."""
    return pa.schema([field.with_name(_safe_name(field.name)) for field in schema])


def safe_table(table: pa.Table) -> pa.Table:
    """The table with safe column names and text."""
    columns = [_safe_column(table.column(place)) for place in range(table.num_columns)]
    return pa.table(columns, schema=safe_schema(table.schema))


def _safe_column(values: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = values.type
    if pa.types.is_dictionary(kind):
        if not pa.types.is_string(kind.value_type) and not pa.types.is_large_string(kind.value_type):
            return values
        return _safe_text(values.cast(kind.value_type)).cast(kind)
    return _safe_text(values) if pa.types.is_string(kind) or pa.types.is_large_string(kind) else values


def _safe_text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.replace_substring_regex(values, pattern=_STARTS, replacement=r"'\1")


def _safe_name(name: str) -> str:
    return _safe_text(pa.chunked_array([[name]]))[0].as_py()  # type: ignore[no-any-return]
