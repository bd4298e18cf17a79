"""The synthetic rows against the schema: types, every value inside its domain, rules and derived columns honoured."""

from collections.abc import Callable, Sequence, Set
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from understudy.codec.axis import axis_of
from understudy.codec.derived import derived_column
from understudy.codec.label_codec import labels_as
from understudy.codec.table_codec import TableCodec
from understudy.errors import Problem, ReleaseError
from understudy.release.checks.effort import Effort
from understudy.release.parquet import batch_rows, open_parquet
from understudy.schema import Boolean, Category, Column, Derived, OpenCategory, code_names

__all__ = ["check_rows"]

BATCH_TEXT_BYTES = 2**26
LONGEST_NUMBER = 64
ROWS = "does not have the number of rows that config.yaml says."
FIX = "The file was not written by this release; draw the rows again from model/."


def check_rows(
    path: Path,
    codec: TableCodec,
    rows: int,
    run: str,
    effort: Effort | None = None,
    *,
    never_empty: Set[str] = frozenset(),
) -> list[Problem]:
    """Findings about a file of synthetic rows, read in bounded pieces; of too many rows some, drawn at random.

    `never_empty` names the columns whose unreadable values, which become empty, are not drawn.
    """
    try:
        with open_parquet(path) as stored:
            found = _form(path.name, stored, codec, rows, run)
        if any(problem.where == f"{path.name}: columns" or problem.rule == ROWS for problem in found):
            return found
        texts = [field.name for field in codec.arrow_schema if _is_text(field.type)]
        content = partial(_content, codec=codec, never_empty=never_empty)
        with open_parquet(path, texts, known=True) as stored:
            wrong = _all_content(stored, codec, path.name, effort or Effort(), content)
    except ReleaseError as error:
        return [Problem(problem.where, problem.rule, FIX) for problem in error.problems]
    return found + [Problem(f"{path.name}: {where}", rule, FIX) for where, rule in sorted(wrong)]


def _all_content(
    stored: pq.ParquetFile,
    codec: TableCodec,
    name: str,
    effort: Effort,
    content: Callable[[pa.Table], set[tuple[str, str]]],
) -> set[tuple[str, str]]:
    """What is wrong with the rows of as many row groups as the effort allows."""
    columns, longest = len(codec.arrow_schema), _longest_label(codec)
    at_once = max(1, min(batch_rows(columns), BATCH_TEXT_BYTES // longest))
    wrong: set[tuple[str, str]] = set()
    checked = 0
    groups = list(range(stored.num_row_groups))
    if stored.metadata.num_rows * columns > effort.cells:
        np.random.default_rng().shuffle(groups)
    for group in groups:
        for batch in stored.iter_batches(at_once, row_groups=[group]):
            if effort.cells < batch.num_rows * columns:
                left = stored.metadata.num_rows - checked
                effort.unchecked.append(f"{left:,} of {stored.metadata.num_rows:,} rows of {name}")
                return wrong
            effort.cells -= batch.num_rows * columns
            checked += batch.num_rows
            table = _plain(batch, codec, longest)
            if table is None:
                return wrong | {("labels", "a text is longer than any label.")}
            wrong |= content(table)
    return wrong


def _plain(batch: pa.RecordBatch, codec: TableCodec, longest: int) -> pa.Table | None:
    """The rows in the types of the schema; None if a text is longer than any label, and so may be without bound."""
    for column in batch.columns:
        texts = column.dictionary if pa.types.is_dictionary(column.type) else column.slice(0, 0)
        if len(texts) and (pc.max(pc.binary_length(texts)).as_py() or 0) > longest:
            return None
    return pa.Table.from_batches([batch]).cast(codec.arrow_schema)


def _is_text(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary))


def _longest_label(codec: TableCodec) -> int:
    """Bytes of the longest text that a column may hold."""
    texts = [text for labels in codec.labels.values() for text in labels]
    for column in codec.schema.columns:
        texts += [*getattr(column, "labels", ()), getattr(column, "other", None) or ""]
        if isinstance(column, Derived):
            texts += [*getattr(column.formula, "labels", ()), *getattr(column.formula, "entries", {}).values()]
    return max([LONGEST_NUMBER, *(len(text.encode("utf-8", "replace")) for text in texts)])


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
        found.append(Problem(name, ROWS, FIX))
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
