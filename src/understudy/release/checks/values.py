"""The synthetic rows against the schema: types, every value inside its domain, rules and derived columns honoured."""

from collections.abc import Sequence, Set
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from understudy.codec.axis import axis_of
from understudy.codec.derived import derived_column
from understudy.codec.label_codec import labels_as
from understudy.codec.table_codec import TableCodec
from understudy.errors import Problem
from understudy.schema import Boolean, Category, Column, Derived, OpenCategory, code_names

__all__ = ["check_rows"]

BATCH_ROWS = 2**17
FIX = "The file was not written by this release; draw the rows again from model/."


def check_rows(
    path: Path, codec: TableCodec, rows: int, run: str, never_empty: Set[str] = frozenset()
) -> list[Problem]:
    """Findings about a file of synthetic rows, read in bounded pieces.

    `never_empty` names the columns whose unreadable values, which become empty, are not drawn.
    """
    try:
        with pq.ParquetFile(path) as stored:
            found = _form(path.name, stored, codec, rows, run)
            if any(problem.where == f"{path.name}: columns" for problem in found):
                return found
            wrong: set[tuple[str, str]] = set()
            for batch in stored.iter_batches(batch_size=BATCH_ROWS):
                wrong |= _content(pa.Table.from_batches([batch]), codec, never_empty)
    except (pa.ArrowException, OSError, ValueError) as error:
        return [Problem(path.name, f"cannot be read as Parquet ({type(error).__name__}).", FIX)]
    return found + [Problem(f"{path.name}: {where}", rule, FIX) for where, rule in sorted(wrong)]


def _form(name: str, stored: pq.ParquetFile, codec: TableCodec, rows: int, run: str) -> list[Problem]:
    found = []
    metadata = stored.schema_arrow.metadata or {}
    if metadata.get(b"understudy.synthetic") != b"true":
        found.append(Problem(name, "is not marked as synthetic.", FIX))
    if metadata.get(b"understudy.run") != run.encode():
        found.append(Problem(name, "belongs to another run.", FIX))
    if not stored.schema_arrow.equals(codec.arrow_schema, check_metadata=False):
        found.append(Problem(f"{name}: columns", "names, order or types are not those of the schema.", FIX))
    if stored.metadata.num_rows != rows:
        found.append(Problem(name, "does not have the number of rows that config.yaml says.", FIX))
    return found


def _content(table: pa.Table, codec: TableCodec, never_empty: Set[str]) -> set[tuple[str, str]]:
    wrong = set()
    for column in codec.schema.columns:
        values = table[column.name].combine_chunks()
        if isinstance(column, Derived):
            continue
        name = code_names(column)[0]
        empty = column.missing or (codec.unreadable_code(name) is not None and name not in never_empty)
        if values.null_count and not empty:
            wrong.add((f"column {column.name!r}", "holds missing values, which the schema does not allow."))
        if not _inside(column, values.drop_null(), codec):
            wrong.add((f"column {column.name!r}", "holds a value outside its domain."))
    return wrong | _rules(table, codec) | _derived(table, codec)


def _inside(column: Column, values: pa.Array, codec: TableCodec) -> bool:
    """Whether every value is one that the column's declaration allows."""
    if isinstance(column, Boolean | Derived) or not len(values):
        return True
    if isinstance(column, Category | OpenCategory):
        labels: Sequence[str] = column.labels if isinstance(column, Category) else codec.labels[column.name]
        allowed = [*labels, column.other] if column.other is not None else labels
        return bool(pc.all(pc.is_in(values, value_set=labels_as(allowed, values.type))).as_py())
    axis = axis_of(column)
    reading = axis.read(values)
    inside = reading.valid & (reading.values >= axis.lower) & (reading.values <= axis.upper)
    special = getattr(column, "special", ())
    if special:
        inside |= np.isin(reading.values, np.asarray(special)) & reading.exact
    return bool(inside.all())


def _rules(table: pa.Table, codec: TableCodec) -> set[tuple[str, str]]:
    wrong = set()
    for rule in codec.forbidden:
        cells = np.zeros(table.num_rows, dtype=np.int64)
        for name in rule.clique:
            size = codec.domain.sizes[name]
            cells = cells * size + np.minimum(codec.encode(name, table[codec.origin(name)]), size - 1)
        if rule.mask[cells].any():
            wrong.add((f"columns {', '.join(rule.clique)}", "hold a combination that a rule excludes."))
    return wrong


def _derived(table: pa.Table, codec: TableCodec) -> set[tuple[str, str]]:
    arrays = {name: table[name].combine_chunks() for name in table.column_names}
    wrong = set()
    for column in codec.schema.columns:
        if isinstance(column, Derived):
            expected = derived_column(column, codec.schema, arrays)
            if not expected.equals(arrays[column.name]):
                wrong.add((f"column {column.name!r}", "is not what its formula gives."))
    return wrong
