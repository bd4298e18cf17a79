"""Records with labels: private columns filled by a release's model, given the public columns of each record.

Post-processing: the model is public, nothing is charged. But records may come from the private table itself, and a
column that the schema derives from a private one, or does not know, could carry true values into the labelled file. So
only the public columns of the schema and the drawn ones are written, and of the others those that are named (`keep`).

Records are taken in chunks of a fixed length, each with a generator made of the seed and its number, so a frame and a
file of the same rows get the same labels. A value outside the schema is read by the schema's rule, as everywhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from understudy.codec.table import TableCodec
from understudy.counts.files import check_whole, container_of, file_batches, in_plain_numbers
from understudy.counts.frames import FrameTable, is_frame
from understudy.errors import InputError, SchemaError, UsageError
from understudy.models.label_trees import LabelModel
from understudy.models.model import CHUNK_ROWS, Model, chunk_generator
from understudy.release.files import file_bytes
from understudy.release.frames import Frame, to_frame
from understudy.release.release import Fitted
from understudy.release.wording import readable_codes
from understudy.schema import Derived, LinearSum, Schema, code_names
from understudy.schema.schema import without_columns

Column: TypeAlias = pa.Array | pa.ChunkedArray
_READ_BYTES = 256 << 20


def private_columns(fitted: Fitted) -> tuple[str, ...]:
    """The columns that the model can fill in, in schema order.

    Raises:
        UsageError: if the model does not label records.
    """
    model = fitted.model
    if not isinstance(model, LabelModel):
        rule = "this release models whole rows and cannot fill in columns of given records."
        raise UsageError("label", rule, "Make a release with method rdt.")
    parts = set(model.chain.private)
    names = [column.name for column in fitted.codec.schema.modelled if parts & set(code_names(column))]
    if any(not set(code_names(fitted.codec.schema.column(name))) <= parts for name in names):
        raise UsageError("label", "a split column is only partly private, so it cannot be written.")
    return tuple(names)


def kept_columns(fitted: Fitted, present: Sequence[str], keep: Sequence[str]) -> list[str]:
    """The columns of a labelled table in order: those of the records that may be written, then the drawn ones.

    Raises:
        UsageError: if a column to keep is not in the records, or is private or derived from a private one.
    """
    private = private_columns(fitted)
    public = {*_public(fitted, private).names}
    tainted = _derived_from(fitted.codec.schema, private)
    for name in keep:
        if name not in present:
            raise UsageError(f"keep {name!r}", "is not a column of the records.", "Name it as their header does.")
        if name in tainted:
            raise UsageError(f"keep {name!r}", "is made from a private column.", "Compute it from the drawn labels.")
    written = [name for name in present if name in public or name in private or name in keep]
    return list(dict.fromkeys([*written, *private]))


def _derived_from(schema: Schema, names: Sequence[str]) -> set[str]:
    """Derived columns that look at one of these columns, directly or through others."""
    found: set[str] = set()
    for _ in schema.columns:
        for column in schema.columns:
            if isinstance(column, Derived) and {*_sources(column)} & {*names, *found}:
                found.add(column.name)
    return found


def _sources(column: Derived) -> tuple[str, ...]:
    formula = column.formula
    return tuple(formula.weights) if isinstance(formula, LinearSum) else (formula.column,)


def label_marks(fitted: Fitted) -> dict[str, str]:
    """What a file of labelled records says about itself, in place of what a file of synthetic rows says."""
    names = ", ".join(private_columns(fitted))
    notice = f"SYNTHETIC LABELS. Drawn from a model: {names}. The other columns are as they were given."
    return {"understudy.synthetic": names, "understudy.notice": notice}


def labelled_frame(fitted: Fitted, records: object, seed: int, keep: Sequence[str] = ()) -> Frame:
    """The public columns with the private ones filled in, of the same kind of frame, and what `keep` names."""
    _check_seed(seed)
    native: Any = records.collect() if type(records).__name__ == "LazyFrame" else records  # type: ignore[attr-defined]
    if not is_frame(native):
        kinds = "a pandas, polars or Arrow frame"
        raise InputError("records", f"must be {kinds}, got {type(records).__name__}.", "For a file, see label_to.")
    table = FrameTable(native, _public(fitted, private_columns(fitted)), memory_bytes=_READ_BYTES)
    public = {name: table.column(name) for name in table.schema.names}
    written = kept_columns(fitted, _names_of(native), keep)
    drawn = [_labels(fitted, chunk, number, seed) for number, chunk in enumerate(_frame_chunks(public, table.rows))]
    kind = _decoder(fitted).arrow_schema
    return _filled(native, pa.concat_tables([kind.empty_table(), *drawn]), table.frame_kind, written)


def labelled_file(
    fitted: Fitted, path: str | Path, seed: int, keep: Sequence[str] = ()
) -> tuple[pa.Schema, Iterator[pa.Table]]:
    """The columns of a file with labels filled in, and its rows as a stream of tables in that form."""
    _check_seed(seed)
    container = container_of(path)
    check_whole(container, _READ_BYTES)
    names = list(container.names)
    private = private_columns(fitted)
    problems = _public(fitted, private).header_problems(names)
    if problems:
        raise SchemaError(problems)
    written = kept_columns(fitted, names, keep)
    names = [name for name in names if name in written]
    kinds = _decoder(fitted).arrow_schema
    batches = file_batches(container, names, memory_bytes=_READ_BYTES, threads=1)
    pieces = _chunks(pa.table({name: _plain(values) for name, values in batch.items()}) for _, batch in batches)
    first = next(pieces, None)
    given = first.schema if first is not None else pa.schema([(name, pa.string()) for name in names])
    whole = pa.schema([_field(name, given, kinds) for name in written])

    def stream() -> Iterator[pa.Table]:
        piece, number = first, 0
        while piece is not None:
            given = {name: piece.column(name) for name in names}
            labels = _labels(fitted, in_plain_numbers(container, fitted.codec.schema, given), number, seed)
            arrays = [(labels if name in labels.column_names else piece).column(name) for name in whole.names]
            yield pa.table(arrays, schema=whole)
            piece, number = next(pieces, None), number + 1

    return whole, stream()


def labelled_bytes(fitted: Fitted, records: str | Path, target: Path) -> int:
    """About how large the labelled file will be: the drawn columns beside the records' own.

    Parquet files state their rows; of other files the size is all that is known without reading them.
    """
    container = container_of(records)
    schema = fitted.codec.schema
    if container.kind == "parquet" and not container.packing:
        rows = sum(int(pq.read_metadata(path).num_rows) for path in container.paths)
        return file_bytes(schema, rows, target.suffix)
    return sum(path.stat().st_size for path in container.paths)


def _labels(fitted: Fitted, columns: Mapping[str, Column], number: int, seed: int) -> pa.Table:
    """The private columns of one chunk of records."""
    codec, model = fitted.codec, _readable(fitted)
    assert isinstance(model, LabelModel)
    rng = chunk_generator(seed, number)
    public = {name: codec.encode(name, columns[codec.origin(name)]) for name in model.chain.public}
    for name, codes in public.items():
        if name in codec.leaving_out and (codes >= codec.domain.sizes[name]).any():
            rule = "holds a value that cannot be read, and this release has no code for that."
            raise UsageError(f"column {codec.origin(name)!r}", rule, "Correct the records, or leave such rows out.")
    rows = len(next(iter(columns.values())))
    return _decoder(fitted).decode(model.label(public, rng, rows=rows), rng)


def _readable(fitted: Fitted) -> Model:
    """The model, given that private columns without a clear count of unreadable values can be read."""
    readable = readable_codes(fitted.codec, fitted.transcript, fitted.model)
    wanted = {name: codes for name, codes in readable.items() if fitted.codec.origin(name) in private_columns(fitted)}
    try:
        return fitted.model.condition(wanted) if wanted else fitted.model
    except UsageError:  # nothing readable is left
        return fitted.model


def _check_seed(seed: int) -> None:
    if type(seed) is not int or seed < 0:
        raise UsageError("seed", f"must be a whole number, 0 or more, got {seed!r}.")


def _decoder(fitted: Fitted) -> TableCodec:
    """The codec of the private columns alone."""
    codec, names = fitted.codec, private_columns(fitted)
    labels = {name: codec.labels[name] for name in names if name in codec.labels}
    edges = {name: codec.edges[name] for name in names if name in codec.edges}
    pools = {name: codec.pools[name] for name in names if name in codec.pools}
    return TableCodec.of(codec.schema, labels, edges, columns=names, pools=pools, unreadable=codec.unreadable)


def _public(fitted: Fitted, private: tuple[str, ...]) -> Schema:
    """What the records must hold."""
    schema = fitted.codec.schema
    if len(private) == len(schema.modelled):
        rule = "every column of this release is private: there is nothing to label by."
        raise UsageError("label", rule, "Draw whole rows with sample.")
    return without_columns(schema, private)


def _frame_chunks(columns: Mapping[str, Column], rows: int) -> Iterator[dict[str, Column]]:
    for low in range(0, rows, CHUNK_ROWS):
        yield {name: values.slice(low, CHUNK_ROWS) for name, values in columns.items()}


def _chunks(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in chunks of the fixed length."""
    waiting: list[pa.Table] = []
    held = 0
    for table in tables:
        waiting.append(table)
        held += table.num_rows
        while held >= CHUNK_ROWS:
            whole = pa.concat_tables(waiting)
            yield whole.slice(0, CHUNK_ROWS)
            waiting, held = [whole.slice(CHUNK_ROWS)], held - CHUNK_ROWS
    if held:
        yield pa.concat_tables(waiting)


def _plain(values: pa.Array) -> pa.Array:
    """Text that a reader kept as a dictionary becomes plain text: dictionaries differ from batch to batch."""
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def _field(name: str, given: pa.Schema, filled: pa.Schema) -> pa.Field:
    return filled.field(name) if name in filled.names else given.field(name)


def _names_of(native: Any) -> list[str]:
    """Column names of a frame of any library."""
    return list(native.schema.names) if isinstance(native, pa.Table | pa.RecordBatch) else list(native.columns)


def _filled(native: Any, labels: pa.Table, kind: str, written: list[str]) -> Frame:
    """The caller's frame with these columns; `Any` because the frame belongs to a library of the caller."""
    if kind == "pandas":
        columns: Any = to_frame(labels, "pandas")
        return native.assign(**{name: columns[name].array for name in labels.column_names})[written]
    if kind == "polars":
        columns = to_frame(labels, "polars")
        return native.with_columns([columns[name] for name in labels.column_names]).select(written)
    table = native if isinstance(native, pa.Table) else pa.table(native)
    for name in labels.column_names:
        place = table.schema.get_field_index(name)
        field, values = labels.schema.field(name), labels.column(name)
        table = table.append_column(field, values) if place < 0 else table.set_column(place, field, values)
    return table.select(written)
