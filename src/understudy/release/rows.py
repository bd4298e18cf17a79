"""Rows drawn from a fitted model, piece by piece, so that a seed gives the same rows whatever the output.

This is post-processing: nothing here can see a private row, and drawing again costs nothing.
"""

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from understudy.codec.table_codec import TableCodec
from understudy.errors import Problem, ReleaseError, UsageError, nearest
from understudy.marginals.transcript import Transcript
from understudy.models.model import Model
from understudy.models.streaming import Chunk, draw_chunks
from understudy.release.folder import check_free
from understudy.release.forecast import check_frame
from understudy.release.parquet import batch_rows, open_parquet
from understudy.release.unread import given_readable, readable_codes
from understudy.schema import code_names

__all__ = ["Condition", "Fitted", "Where", "draw_tables", "one_table", "stored_rows", "write_rows"]

FORMATS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "tsv"}

Condition = str | int | float | bool | None
Where = Mapping[str, Condition | Sequence[Condition]]


@dataclass(frozen=True, slots=True)
class Fitted:
    """One run through the door: its settled codes, its answers, and the model fitted to them."""

    codec: TableCodec
    transcript: Transcript
    model: Model


def draw_tables(
    fitted: Fitted, rows: int, *, seed: int, copy: int = 1, where: Where | None = None
) -> Iterator[pa.Table]:
    """`rows` synthetic rows as a stream of tables; `where` conditions the model exactly, without rejection.

    Values that cannot be read are drawn only for columns that clearly hold some (see `release/unread.py`).
    """
    _check(rows, seed)
    readable = readable_codes(fitted.codec, fitted.transcript, fitted.model)
    wanted = _codes(fitted.codec, where or {})
    _check_shown(fitted.codec, wanted, readable)
    model = given_readable(fitted.model, readable, wanted)
    return _decoded(fitted.codec, draw_chunks(model, rows, _copy_seed(seed, copy)))


def _decoded(codec: TableCodec, chunks: Iterator[Chunk]) -> Iterator[pa.Table]:
    """Tables of the chunks; of codes and tables only those of one chunk are held at a time."""
    while (chunk := next(chunks, None)) is not None:
        table = codec.decode(chunk.codes, chunk.rng)
        del chunk
        yield table
        del table


def _copy_seed(seed: int, copy: int) -> int:
    """The seed itself for the first copy, an unrelated one for each further copy."""
    if copy == 1:
        return seed
    state = np.random.SeedSequence(seed, spawn_key=(copy,)).generate_state(4)
    return sum(int(word) << (32 * place) for place, word in enumerate(state))


def one_table(codec: TableCodec, pieces: Iterable[pa.Table]) -> pa.Table:
    """The pieces as one table, with the schema's types also when there are none."""
    return pa.concat_tables([codec.arrow_schema.empty_table(), *pieces])


def stored_rows(path: Path, codec: TableCodec, rows: int) -> pa.Table:
    """The rows in a file of a release, which must be as many as its settings say and fit in memory.

    Raises:
        ReleaseError: if the file holds other columns or another number of rows.
    """
    check_frame(codec.schema, rows)
    with open_parquet(path) as stored:
        if stored.metadata.num_rows != rows or stored.schema_arrow.names != codec.arrow_schema.names:
            rule = "does not have the columns or the number of rows that the settings say."
            raise ReleaseError([Problem(path.name, rule, "Run `understudy verify` on the folder.")])
        pieces = [pa.Table.from_batches([batch]) for batch in stored.iter_batches(batch_rows(len(codec.arrow_schema)))]
        return one_table(codec, (piece.cast(codec.arrow_schema) for piece in pieces))


def write_rows(path: Path, schema: pa.Schema, pieces: Iterable[pa.Table], marks: Mapping[str, str]) -> None:
    """Writes the pieces as they come, Parquet or CSV by suffix; the file appears when it is complete.

    Args:
        path: the file to make; it must not exist.
        schema: the types of every piece.
        pieces: tables, consumed one at a time.
        marks: file metadata that says what the rows are (Parquet only; CSV has no place for it).
    """
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        raise UsageError(
            f"output {path.name!r}", "needs a suffix that names its format.", nearest(path.suffix, FORMATS)
        )
    check_free(path)
    partial = path.absolute().parent / f".{path.name}.{secrets.token_hex(6)}.partial"
    try:
        if form == "parquet":
            _write_parquet(partial, schema.with_metadata(dict(marks)), pieces)
        else:
            _write_text(partial, schema, pieces, "," if form == "csv" else "\t")
        os.rename(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _write_parquet(path: Path, schema: pa.Schema, pieces: Iterable[pa.Table]) -> None:
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for piece in pieces:
            writer.write_table(piece.replace_schema_metadata(schema.metadata))
            del piece  # or it would lie in memory beside the next one


def _write_text(path: Path, schema: pa.Schema, pieces: Iterable[pa.Table], delimiter: str) -> None:
    plain = pa.schema([_plain(field) for field in schema])
    options = pacsv.WriteOptions(delimiter=delimiter)
    with pacsv.CSVWriter(path, plain, write_options=options) as writer:
        for piece in pieces:
            for batch in piece.cast(plain).replace_schema_metadata(None).to_batches():
                if batch.num_rows:  # an empty one first makes Arrow before version 23 write the header again
                    writer.write_batch(batch)
            del piece


def _plain(field: pa.Field) -> pa.Field:
    """CSV writes neither dictionaries nor large text; both become plain text."""
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    return pa.field(field.name, pa.string() if pa.types.is_large_string(kind) else kind)


def _check(rows: int, seed: int) -> None:
    if type(rows) is not int or rows < 0:
        raise UsageError("rows", f"must be a whole number, 0 or more, got {rows!r}.")
    if type(seed) is not int or seed < 0:
        raise UsageError("seed", f"must be a whole number, 0 or more, got {seed!r}.")


def _codes(codec: TableCodec, where: Where) -> dict[str, npt.NDArray[np.integer]]:
    found: dict[str, npt.NDArray[np.integer]] = {}
    for given, wanted in where.items():
        name = _coded(codec, given)
        options = list(wanted) if isinstance(wanted, Sequence) and not isinstance(wanted, str) else [wanted]
        codes = [codec.codes_matching(name, _condition_text(option)) for option in options]
        chosen = np.unique(np.concatenate(codes)) if codes else np.zeros(0, np.int64)
        found[name] = np.intersect1d(found[name], chosen) if name in found else chosen
        if not found[name].size:
            raise UsageError(f"where {given!r}", f"no code of the column matches {wanted!r}.", "See schema.yaml.")
    return found


def _check_shown(
    codec: TableCodec, wanted: Mapping[str, npt.NDArray[np.integer]], readable: Mapping[str, npt.NDArray[np.integer]]
) -> None:
    """Raises where a condition asks for unreadable values of a column that shows none beyond the noise."""
    for name, codes in wanted.items():
        if name in readable and not np.isin(codes, readable[name]).all():
            rule = "asks for values that could not be read, and the noisy answers show none beyond their noise."
            raise UsageError(f"where {codec.origin(name)!r}", rule, "Leave that condition out.")


def _coded(codec: TableCodec, name: str) -> str:
    """The column of codes that a condition is about; for a split column named as a whole, its size."""
    if name in codec.domain.sizes:
        return name
    for column in codec.schema.modelled:
        if column.name == name:
            return code_names(column)[0]
    known = nearest(name, codec.domain.columns)
    raise UsageError(f"where {name!r}", "is not a modelled column of this release.", known)


def _condition_text(option: Condition) -> str:
    if option is None:
        return "missing"
    return str(option).lower() if isinstance(option, bool) else str(option)
