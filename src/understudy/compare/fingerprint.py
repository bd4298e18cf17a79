"""Fingerprint: what tells one table from another when a study is taken up again.

Files are told apart by their bytes; frames and opened tables by a sum over their rows, so that neither the order of
rows nor the kind of frame matters. A fingerprint depends on every private value: it stays in the study's folder, which
is as confidential as the table.
"""

import hashlib
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.counts.header import Container, container_of
from understudy.counts.kernels import hash_rows
from understudy.counts.labels import label_keys, texts_of
from understudy.counts.open import open_table
from understudy.counts.source import PrivateTable
from understudy.release.folder import file_digest
from understudy.schema import Schema

__all__ = ["columns_read", "fingerprint"]

_KEYS = (0x5EED, 0xC0DE)
_ABSENT = 0x0DDBA11


def fingerprint(table: object, schema: Schema) -> str:
    """A text that differs for different tables: contents of files, or the values of all columns a run reads.

    Raises:
        InputError, SchemaError: the table cannot be opened under the schema.
    """
    if isinstance(table, str | os.PathLike):
        return _of_files(container_of(os.fspath(table)))
    return _of_rows(open_table(table, schema), columns_read(schema))


def columns_read(schema: Schema) -> list[str]:
    """The columns a run reads: those that are modelled, and who the rows belong to."""
    names = [column.name for column in schema.modelled]
    if schema.unit.column is not None and schema.unit.column not in names:
        names.append(schema.unit.column)
    return names


def _of_files(container: Container) -> str:
    digests = [file_digest(path) for path in container.paths]
    if container.kind == "database":
        (path,) = container.paths
        journal = Path(f"{path}.wal")  # changes that DuckDB has not moved into the file yet
        digests += [file_digest(journal)] if journal.is_file() else []
    if len(digests) == 1:
        whole = digests[0]
    else:
        whole = f"{hashlib.sha256(' '.join(digests).encode()).hexdigest()} of {len(digests)} files"
    dialect = ", multiline" if container.multiline else ""
    return f"sha256 {whole}{dialect}" + (f", table {container.table!r}" if container.table else "")


def _of_rows(table: PrivateTable, names: list[str]) -> str:
    """Number of rows, and the sums of two 64-bit hashes of every row."""
    count, sums = 0, np.zeros(len(_KEYS), np.uint64)
    for rows, batch in table.batches(names):
        columns = [_keys(batch[name]) for name in names]
        count += rows
        sums += np.array([hash_rows(columns, key, rows).sum(dtype=np.uint64) for key in _KEYS])
    header = hashlib.sha256("\0".join(names).encode()).hexdigest()[:16]
    return f"rows {count} {header} " + "".join(f"{part:016x}" for part in sums.tolist())


def _keys(values: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.uint64]:
    """A hash of each value's text; absent values share one of their own."""
    texts = texts_of(values)
    coded = texts.values.dictionary_encode()
    of_values = label_keys(coded.dictionary)[coded.indices.fill_null(0)] if len(coded.dictionary) else []
    return np.append(np.asarray(of_values, np.uint64), np.uint64(_ABSENT))[texts.places]
