"""PostgreSQL for tests: a server of our own, made by initdb in a temporary folder, run as an ordinary user.

It listens on 127.0.0.1 (with passwords) and on a socket in its folder (without), so that both a wrong password and a
missing server can be tried. Nothing is synced to disk.
"""

import contextlib
import itertools
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from understudy.counts.files import quoted

PLACES = ("/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql*/bin")
SETTINGS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=32MB", "max_connections=40")
KINDS = {
    pa.int16(): "int2",
    pa.int32(): "int4",
    pa.int64(): "int8",
    pa.float32(): "float4",
    pa.float64(): "float8",
    pa.bool_(): "bool",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", "UTC"): "timestamptz",
    pa.time64("us"): "time",
    pa.decimal128(12, 2): "numeric(12, 2)",
}


@dataclass(frozen=True, slots=True)
class Server:
    """A running server with one database."""

    folder: Path
    port: int
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def location(self, table: str, *, user: str = "postgres", database: str = "postgres") -> str:
        """Where a table lies, through the socket."""
        return f"postgresql://{user}@/{database}?host={self.folder}&port={self.port}::{table}"

    def tcp(self, table: str, *, user: str, database: str = "postgres") -> str:
        """Where it lies through the network, where a password is asked for."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}::{table}"

    def connected(self, **more: object) -> "psycopg.Connection[Any]":
        """A connection of the owner, for preparing tables."""
        said: dict[str, Any] = {"host": str(self.folder), "port": self.port, "user": "postgres", "dbname": "postgres"}
        return psycopg.connect(autocommit=True, **said | more)

    def run(self, *commands: str) -> None:
        """Runs commands as the owner."""
        with self.connected() as connection:
            for command in commands:
                connection.execute(command)  # type: ignore[call-overload]

    def hold(self, table: pa.Table) -> str:
        """A new table with these rows; its name. Text that PostgreSQL cannot hold as such is held as bytes."""
        name = f"t{next(self.numbers)}"
        kinds = [_kind(column) for column in table.columns]
        declared = ", ".join(f"{quoted(one)} {kind}" for one, kind in zip(table.column_names, kinds, strict=True))
        with self.connected() as connection:
            connection.execute(f"CREATE UNLOGGED TABLE {name} ({declared})")  # type: ignore[call-overload]
            with connection.cursor().copy(f"COPY {name} FROM STDIN (FORMAT binary)") as copy:  # type: ignore[call-overload]
                copy.set_types([kind.partition("(")[0] for kind in kinds])
                for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                    copy.write_row([_held(value, kind) for value, kind in zip(row, kinds, strict=True)])
        return name


def _kind(column: pa.ChunkedArray) -> str:
    if column.type in KINDS:
        return KINDS[column.type]
    if pa.types.is_binary(column.type) or any("\0" in value for value in column.to_pylist() if value is not None):
        return "bytea"
    return "text"


def _held(value: object, kind: str) -> object:
    return value.encode() if kind == "bytea" and isinstance(value, str) else value


def programs() -> Path | None:
    """The folder of initdb and pg_ctl, the newest there is."""
    found = shutil.which("initdb")
    folders = [path for place in PLACES for path in Path("/").glob(place.lstrip("/")) if (path / "initdb").exists()]
    return Path(found).parent if found else max(folders, default=None)


@contextlib.contextmanager
def started() -> Iterator[Server]:
    """A server for the length of a block. Skips the test where there is none to start; CI must have one."""
    place = programs()
    if place is None:
        reason = "PostgreSQL is not installed (initdb was not found)"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    # A path to a socket must be short, so it is not in pytest's own folder.
    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as name:
        folder, user = Path(name), _ordinary()
        if user:
            shutil.chown(folder, user)
        data, port = folder / "data", _free_port()
        as_user = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []} if user else {}
        _run([place / "initdb", "-D", data, "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync"], as_user)
        local = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
        (data / "pg_hba.conf").write_text(local)
        said = ["listen_addresses=127.0.0.1", f"port={port}", f"unix_socket_directories={folder}", *SETTINGS]
        options = " ".join(f"-c {setting}" for setting in said)
        _run([place / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start"], as_user)
        try:
            yield Server(folder, port)
        finally:
            _run([place / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"], as_user)


def _ordinary() -> str:
    """Who runs the server: PostgreSQL refuses root."""
    return "" if os.getuid() else next(one.pw_name for one in pwd.getpwall() if one.pw_name in ("postgres", "nobody"))


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _run(command: list[object], as_user: dict[str, Any]) -> None:
    # pg_ctl hands its streams to the server, so that pipes would never end.
    words = [str(word) for word in command]
    subprocess.run(words, check=True, timeout=120, stdout=subprocess.DEVNULL, cwd="/", **as_user)
