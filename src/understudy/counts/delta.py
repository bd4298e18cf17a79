"""Delta: a table of Parquet files with a log that says which of them belong to which version.

One version is read: the one in the location (`delta:folder@12`), or the newest one at opening, which is told as the
snapshot. Its list of files, the values of partitions and the types of all columns come from the log; the rows are read
from those files as those of any Parquet dataset are. What is written later is not seen, and files of the version that
were vacuumed are missed before anything is charged, because the footer of each is read first.

Rows that a deletion vector marks as removed do not count. A column that was added after a file was written is missing
in the rows of that file. What we do not know how to read (column mapping, types that were widened, features of the
future) is refused before the charge by the protocol that the log states.
"""

import contextlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from understudy.arrays import Bools
from understudy.counts.datasets import PinnedFile, PinnedFilesReader, footers_of, form_of
from understudy.counts.files import columns_read
from understudy.counts.readers import Header
from understudy.counts.stores import Place, is_stored, place_of
from understudy.errors import InputError, UnderstudyError, UsageError
from understudy.schema import Schema

Found = TypeVar("Found")

KNOWN_FEATURES = {"timestampNtz", "vacuumProtocolCheck", "v2Checkpoint", "deletionVectors", "columnMapping"}
NEWEST_READER = 3
MAPPING = "delta.columnMapping.mode"
_LOCATION = re.compile(r"delta:(.+?)(?:@([^@/]*))?", re.IGNORECASE | re.DOTALL)
_ELSEWHERE = re.compile(r"/|[a-z][a-z0-9+.-]*:", re.IGNORECASE)


class DeltaReader(PinnedFilesReader):
    """Rows of one version of a Delta table."""

    def __init__(self, location: str | Path, schema: Schema | None = None) -> None:
        written = _LOCATION.fullmatch(str(location))
        if written is None:
            raise InputError("delta:", "needs the folder of a table.", "Write delta:folder, or delta:folder@12.")
        place = place_of(written[1])
        if place.pattern:
            rule = "is a pattern (*, ? or [ in its name), and a Delta table is one folder."
            raise InputError(f"delta:{place.where}", rule, "Name the folder of the table.")
        table = _opened(place, written[1], _version(place, written[2]))
        self.version = int(table.version())
        pieces, header = _unworded(place, lambda: _looked_into(place, table, schema))
        super().__init__(place, pieces, header)
        self.engine = "Delta"
        self.snapshot = f"version {self.version}"
        self.pinned = f"delta:{written[1]}@{self.version}"


def _looked_into(place: Place, table: Any, schema: Schema | None) -> tuple[list[PinnedFile], Header]:
    _check_protocol(place, table)
    kinds = pa.schema(table.schema().to_arrow())
    return _pieces(place, table, kinds, schema), tuple((one.name, str(one.type)) for one in kinds)


def _unworded(place: Place, ask: Callable[[], Found]) -> Found:
    """What the log answers, or a refusal without the package's words."""
    try:
        return ask()
    except UnderstudyError:
        raise
    except BaseException as error:
        # What is written in Rust panics by an exception that is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
    raise InputError(f"delta:{place.where}", "its log cannot be read.", "Check that this version is complete.")


def _version(place: Place, text: str | None) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise UsageError(
            f"delta:{place.where}",
            "the version after @ must be a whole number.",
            "Leave it out for the newest version.",
        )
    return int(text)


def _opened(place: Place, written: str, version: int | None) -> Any:
    try:
        import deltalake
    except ImportError:
        fix = 'Install it: pip install "understudy[delta]".'
        raise InputError(f"delta:{place.where}", "needs the package deltalake.", fix) from None
    plain = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    options = {"allow_http": "true"} if place.remote and plain.startswith("http://") else None
    where = re.sub(r"^\w+:/+", f"{written.partition(':')[0]}://", written) if is_stored(written) else place.root
    with contextlib.suppress(Exception):  # whatever its log or its store makes the package say
        return deltalake.DeltaTable(where.replace("s3a://", "s3://", 1), version=version, storage_options=options)
    rule = "cannot be opened as a Delta table" + ("." if version is None else f" of version {version}.")
    raise InputError(f"delta:{place.where}", rule, "Check that it is there, and that the version was not cleaned up.")


def _check_protocol(place: Place, table: Any) -> None:
    """Raises if the log asks more of a reader than we do."""
    asked = table.protocol()
    features = set(asked.reader_features or ())
    mapping = (table.metadata().configuration or {}).get(MAPPING) or "none"
    unknown = sorted(features - KNOWN_FEATURES)
    if mapping != "none":
        unknown.append("columnMapping")
    if asked.min_reader_version > NEWEST_READER:
        unknown.append(f"reader version {asked.min_reader_version}")
    if unknown:
        fix = "Write the table again without it, or read it with Spark."
        raise InputError(f"delta:{place.where}", f"uses features that cannot be read here: {', '.join(unknown)}.", fix)


def _pieces(place: Place, table: Any, kinds: pa.Schema, schema: Schema | None) -> list[PinnedFile]:
    """The files of the version with what their rows hold besides."""
    actions = pa.table(table.get_add_actions())
    inside = [unquote(path) for path in actions.column("path").to_pylist()]
    if any(_ELSEWHERE.match(path) for path in inside):
        fix = "Copy it whole (a deep clone)."
        raise InputError(f"delta:{place.where}", "has files in other folders, which are not read.", fix)
    parted = _partition_values(table, actions, kinds)
    footers = footers_of(place, [f"{place.root}/{path}" for path in inside])
    _check_types(place, [stored for _, stored in footers], kinds, set(parted), schema)
    masks = _masks(table, inside) if "deletionVectors" in (table.protocol().reader_features or ()) else {}
    found = []
    for row, (path, (mark, stored)) in enumerate(zip(inside, footers, strict=True)):
        values = {name: column[row] for name, column in parted.items()}
        absent = {one.name: pa.scalar(None, one.type) for one in kinds if one.name not in stored.names}
        found.append(PinnedFile(f"{place.root}/{path}", mark, {**absent, **values}, masks.get(path)))
    return found


def _partition_values(table: Any, actions: pa.Table, kinds: pa.Schema) -> Mapping[str, pa.ChunkedArray]:
    """Values of partition columns, a row for each file, in the types that the log declares."""
    names = list(table.metadata().partition_columns)
    if not names:
        return {}
    column = actions.column("partition").combine_chunks()
    return {name: column.field(name).cast(kinds.field(name).type) for name in names}


def _check_types(
    place: Place, stored: Sequence[pa.Schema], kinds: pa.Schema, parted: set[str], schema: Schema | None
) -> None:
    """Raises unless every file stores its columns as the log says; a column may be missing in it."""
    known = set() if schema is None else set(columns_read(schema))
    declared = {one.name: one.type for one in kinds if one.name not in parted}
    odd = {
        column.name
        for one in stored
        for column in one
        if column.name in declared and not _fits(column.type, declared[column.name])
    }
    if odd:
        shown = ", ".join(repr(name) for name in sorted(odd & known))
        rule = "its files store columns in other types than its log says" + (f": {shown}." if shown else ".")
        raise InputError(f"delta:{place.where}", rule, "Write the table again.")


def _fits(stored: pa.DataType, declared: pa.DataType) -> bool:
    """Whether values of the one type mean the same in the other; moments without a zone are in UTC, as Spark's are."""
    if pa.types.is_timestamp(stored) and pa.types.is_timestamp(declared):
        return stored.tz in (None, "UTC", declared.tz)
    return bool(pa.types.is_null(stored) or form_of(stored) == form_of(declared))


def _masks(table: Any, inside: Sequence[str]) -> dict[str, Bools]:
    """Which rows of a file still count, for files from which some were removed."""
    base = str(table.table_uri).rstrip("/") + "/"
    found: dict[str, Bools] = {}
    removed = pa.table(table.deletion_vectors())
    for uri, kept in zip(removed.column("filepath"), removed.column("selection_vector"), strict=True):
        path = uri.as_py().removeprefix(base)
        name = path if path in inside else unquote(path)
        found[name] = np.asarray(kept.values.to_numpy(zero_copy_only=False), np.bool_)
    return found
