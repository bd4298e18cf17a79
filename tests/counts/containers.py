"""The same table in every container: text in other dialects, compressed, and files of other programs."""

import gzip
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat

from tests.counts.places import as_database, csv_text
from understudy.counts.files import read_table

Maker = Callable[[pa.Table, Path], object]


def texts(table: pa.Table) -> pa.Table:
    """The table as text files write it: an absent value is an empty field."""
    return pa.table({name: table.column(name).cast(pa.string()) for name in table.column_names})


def _put(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def _csv(table: pa.Table, delimiter: str = ",") -> bytes:
    return csv_text(texts(table), delimiter)


def _latin(table: pa.Table, folder: Path) -> str:
    path = _put(folder / "latin.csv", _csv(table, ";").decode().encode("latin-1"))
    return read_table(path, delimiter=";", encoding="latin-1")


def _nameless(table: pa.Table, folder: Path) -> str:
    path = _put(folder / "nameless.txt", _csv(table, "|").split(b"\r\n", 1)[1])
    return read_table(path, delimiter="pipe", names=table.column_names)


def _zstandard(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


def as_zip(data: bytes, member: str, path: Path) -> str:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__MACOSX/._table", b"by the way")
        archive.writestr(member, data)
    return str(path)


def _parquet_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


def _arrow(table: pa.Table, folder: Path, name: str, compression: str | None) -> str:
    path = folder / name
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(str(path), table.schema, options=options) as sink:
        sink.write_table(table, max_chunksize=3)
    return str(path)


def _json(table: pa.Table, folder: Path) -> str:
    lines = [json.dumps(row, ensure_ascii=False, default=str) for row in table.to_pylist()]
    return _put(folder / "table.jsonl", "\n".join(lines).encode() + b"\n")


def excel(table: pa.Table, folder: Path) -> str:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(table.column_names)
    for row in table.to_pylist():
        sheet.append(list(row.values()))
    book.save(folder / "table.xlsx")
    return str(folder / "table.xlsx")


def shared_excel(table: pa.Table, folder: Path) -> str:
    """The same as Excel writes it: texts in a part of their own, some of them in pieces, with a reading aid."""
    texts: list[bytes] = []

    def shared(found: re.Match[bytes]) -> bytes:
        texts.append(found[2])
        return found[1] + b' t="s"><v>%d</v></c>' % (len(texts) - 1)

    target = folder / "shared.xlsx"
    with zipfile.ZipFile(excel(table, folder)) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            data = old.read(name)
            if name.startswith("xl/worksheets/"):
                data = re.sub(rb'(<c r="\w+") t="inlineStr"><is><t[^>]*>([^<]*)</t></is></c>', shared, data)
            new.writestr(name, data)
        items = b"".join(
            b"<si><r><t>%s</t></r><r><t>%s</t></r><rPh><t>aid</t></rPh></si>" % (text[:1], text[1:]) for text in texts
        )
        new.writestr("xl/sharedStrings.xml", b"<sst>" + items + b"</sst>")
    return str(target)


def _stored(table: pa.Table, folder: Path, name: str, write: Callable[..., None]) -> str:
    frame = pd.DataFrame(
        {key: column.to_pylist() for key, column in zip(table.column_names, table.columns, strict=True)}
    )
    for key in frame:
        if pa.types.is_integer(table.schema.field(key).type):
            frame[key] = frame[key].astype(float)
    write(frame, folder / name)
    return str(folder / name)


CONTAINERS: dict[str, Maker] = {
    "csv": lambda table, folder: _put(folder / "table.csv", _csv(table)),
    "tsv": lambda table, folder: _put(folder / "table.tsv", _csv(table, "\t")),
    "semicolons": lambda table, folder: _put(folder / "semicolons.csv", _csv(table, ";")),
    "latin-1": _latin,
    "utf-16": lambda table, folder: read_table(
        _put(folder / "wide.csv", _csv(table).decode().encode("utf-16")), encoding="utf-16"
    ),
    "without names": _nameless,
    "gz": lambda table, folder: _put(folder / "table.csv.gz", gzip.compress(_csv(table), mtime=0)),
    "zst": lambda table, folder: _put(folder / "table.tsv.zst", _zstandard(_csv(table, "\t"))),
    "zip": lambda table, folder: as_zip(_csv(table), "in/table.csv", folder / "table.zip"),
    "parquet": lambda table, folder: _put(folder / "table.parquet", _parquet_bytes(table)),
    "parquet in a zip": lambda table, folder: as_zip(_parquet_bytes(table), "t.parquet", folder / "parquet.zip"),
    "arrow": lambda table, folder: _arrow(table, folder, "table.arrow", None),
    "feather": lambda table, folder: _arrow(table, folder, "table.feather", "zstd"),
    "json": _json,
    "excel": excel,
    "excel with shared texts": shared_excel,
    "stata": lambda table, folder: _stored(table, folder, "table.dta", pyreadstat.write_dta),
    "spss": lambda table, folder: _stored(table, folder, "table.sav", pyreadstat.write_sav),
    "sas": lambda table, folder: _stored(table, folder, "table.xpt", pyreadstat.write_xport),
    "frame": lambda table, _: table.to_pandas(),
    "database": as_database,
}
"""How to put a table there, and what to open then."""
