"""Where the same table can lie: every place the room can read from, and counting by hand."""

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from understudy.codec.table import TableCodec
from understudy.counts.files import quoted
from understudy.counts.source import CountSource
from understudy.domain import Clique
from understudy.schema import Category, Integer, Schema, Unit

Place = Callable[[pa.Table, Path], object]


def csv_text(table: pa.Table, delimiter: str = ",") -> bytes:
    """A text file of the table, every field quoted, so that any label survives."""
    lines = [table.column_names, *zip(*(column.to_pylist() for column in table.columns), strict=True)]
    return b"".join(delimiter.encode().join(_field(value) for value in line) + b"\r\n" for line in lines)


def _field(value: object) -> bytes:
    text = b"" if value is None else value if isinstance(value, bytes) else str(value).encode()
    return b'"' + text.replace(b'"', b'""') + b'"'


def as_csv(table: pa.Table, folder: Path) -> str:
    return _written(folder / "table.csv", csv_text(table))


def as_tsv(table: pa.Table, folder: Path) -> str:
    return _written(folder / "table.tsv", csv_text(table, "\t"))


def _written(path: Path, text: bytes) -> str:
    """Where the text lies now; the dialect with line ends in fields is declared only if it is needed."""
    path.write_bytes(text)
    body = text.replace(b"\r\n", b"")
    return f"{path}::multiline" if b"\n" in body or b"\r" in body else str(path)


def as_parquet(table: pa.Table, folder: Path) -> Path:
    path = folder / "table.parquet"
    pq.write_table(table, path, row_group_size=7)
    return path


def as_glob(table: pa.Table, folder: Path) -> str:
    half = table.num_rows // 2
    parts = folder / "parts"
    parts.mkdir(exist_ok=True)
    pq.write_table(table.slice(0, half), parts / "a.parquet")
    pq.write_table(table.slice(half), parts / "b.parquet")
    return f"{parts}/*.parquet"


def as_database(table: pa.Table, folder: Path) -> str:
    path = folder / "table.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        renamed = table.rename_columns([f"x{position}" for position in range(table.num_columns)])
        connection.register("incoming", renamed)
        shown = ", ".join(f"x{position} AS {quoted(name)}" for position, name in enumerate(table.column_names))
        connection.execute(f"CREATE TABLE {quoted(TABLE)} AS SELECT {shown} FROM incoming")
        connection.execute("CREATE TABLE decoy (nothing INTEGER)")
    return f"{path}::{TABLE}"


TABLE = 'rows "of" people; --'

PLACES: dict[str, Place] = {
    "arrow": lambda table, _: table,
    "pandas": lambda table, _: table.to_pandas(),
    "polars": lambda table, _: pl.from_arrow(table),
    "lazy polars": lambda table, _: pl.from_arrow(table).lazy(),  # type: ignore[union-attr]
    "csv": as_csv,
    "tsv": as_tsv,
    "parquet": as_parquet,
    "glob": as_glob,
    "database": as_database,
}


def people(*, unit: Unit | None = None) -> Schema:
    """Three columns with a missing code each."""
    return Schema(
        columns=(
            Category(name="sex", labels=("F", "M")),
            Integer(name="age", lower=0, upper=9),
            Category(name="city", labels=("Rome", "Oslo", "Bonn"), other="elsewhere"),
        ),
        unit=unit or Unit(),
    )


def by_hand(codec: TableCodec, table: pa.Table, clique: Clique) -> list[int]:
    """Counts of a clique, row by row in Python."""
    codes = [codec.encode(name, table.column(name)).tolist() for name in clique]
    counted: Counter[tuple[int, ...]] = Counter(zip(*codes, strict=True)) if clique else Counter({(): table.num_rows})
    return [counted[cell] for cell in itertools.product(*(range(size) for size in codec.domain.shape(clique)))]


def every_clique(codec: TableCodec) -> list[Clique]:
    """All subsets of the columns."""
    names = codec.domain.columns
    return [
        codec.domain.clique(part) for width in range(len(names) + 1) for part in itertools.combinations(names, width)
    ]


def full_counts(source: CountSource) -> list[int]:
    """Counts of the table over all columns."""
    everything = source.domain.everything()
    return source.counts([everything])[everything].tolist()
