"""Where a table can lie in a lake: partitioned folders, a bucket, a Delta table, an Iceberg table."""

import itertools
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock
from urllib.parse import quote_from_bytes

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as fs
import pyarrow.parquet as pq

SECRET = "sEcReT-k3y-of-the-b0ss"
_numbers = itertools.count()


def new(folder: Path) -> Path:
    """A folder that was never used."""
    path = folder / f"lake {next(_numbers)}"
    path.mkdir()
    return path


def parts(table: pa.Table) -> list[tuple[str, pa.Table]]:
    """Files of a table by their paths: partitioned by its first column of text if folders can bear its values."""
    name = next((name for name in table.column_names[:-1] if _can_part(table.column(name))), None)
    if name is None:
        half = table.num_rows // 2
        return [("a.parquet", table.slice(0, half)), ("sub/b.parquet", table.slice(half))]
    rest = table.drop_columns([name])
    values = [None if value is None else _bytes(value) for value in table.column(name).to_pylist()]
    found = []
    for number, value in enumerate(dict.fromkeys([*values, None])):
        rows = pa.array([one == value for one in values], pa.bool_())
        text = "__HIVE_DEFAULT_PARTITION__" if value is None else quote_from_bytes(value, safe="")
        key = quote_from_bytes(name.encode(), safe="")
        found.append((f"{key}={text}/part-{number}.parquet", rest.filter(rows)))
    return found


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _can_part(column: pa.ChunkedArray) -> bool:
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)) or len(column) > 2000:
        return False
    longest = pc.max(pc.binary_length(column)).as_py() or 0
    return longest < 60 and pc.count_distinct(column).as_py() <= 40


def as_folder(table: pa.Table, folder: Path) -> str:
    root = new(folder)
    for path, part in parts(table):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(part, root / path, row_group_size=7)
    (root / "_SUCCESS").touch()
    return str(root)


def as_bucket(table: pa.Table, store: fs.FileSystem, root: str = "") -> str:
    root = root or f"people/{next(_numbers)}"
    for path, part in parts(table):
        with store.open_output_stream(f"{root}/{path}") as file:
            pq.write_table(part, file, row_group_size=7)
    return f"s3://{root}"


def as_delta(table: pa.Table, folder: Path) -> str:
    from deltalake import write_deltalake

    root = new(folder)
    half = table.num_rows // 2
    write_deltalake(str(root), table.slice(0, half))
    write_deltalake(str(root), table.slice(half), mode="append")
    write_deltalake(str(root), table, mode="append")
    return f"delta:{root}@1"


def as_iceberg(table: pa.Table, _: Path) -> str:
    from pyiceberg.catalog import load_catalog

    name = f"people.t{next(_numbers)}"
    made = load_catalog("lake").create_table(name, schema=table.schema)
    half = table.num_rows // 2
    made.append(table.slice(0, half))
    made.append(table.slice(half))
    pinned = made.current_snapshot()
    made.append(table)
    return f"iceberg:lake.{name}@{pinned.snapshot_id}"


@contextmanager
def catalog(folder: Path) -> Iterator[None]:
    """A catalog in an SQLite file, told to pyiceberg by the environment as a user would."""
    from pyiceberg import catalog as catalogs
    from pyiceberg.utils.config import Config

    settings = {"TYPE": "sql", "URI": f"sqlite:///{folder}/catalog.db", "WAREHOUSE": f"file://{folder}"}
    told = {f"PYICEBERG_CATALOG__LAKE__{name}": value for name, value in settings.items()}
    # The package reads the environment once, when it is loaded.
    with mock.patch.dict(os.environ, told), mock.patch.object(catalogs, "_ENV_CONFIG", Config()):
        catalogs.load_catalog("lake").create_namespace("people")
        yield


@contextmanager
def bucket() -> Iterator[fs.FileSystem]:
    """An S3 server on this machine with the bucket "people", told to every client by the environment."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # its lines would be compared as messages of a run
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    told = {
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "127.0.0.1",
    }
    try:
        with mock.patch.dict(os.environ, told):
            store = fs.S3FileSystem(endpoint_override=told["AWS_ENDPOINT_URL"], allow_bucket_creation=True)
            store.create_dir("people")
            yield store
    finally:
        server.stop()
