"""The file under the ledger: sealed entries in an append-only SQLite database, synced before a write returns.

Entries
-------
Five kinds. `dataset` opens a dataset: its budget columns hold the cap, its cost columns the limit that charges add up
to. `charge` is one run: the (ε, δ) it claims, what it spends, and the totals of its dataset after it. `checkpoint`,
`continue` and `finish` tell how far a charged run has come, who goes on with it, and how it ended (`ledger.py`); they
never change a total.

Two chains run through the entries. `previous` is the hash of the line before, whatever its dataset; `earlier` is the
hash of the opening or charge before in the same dataset. So the lines of one dataset can be handed out and checked
alone, and all they say was fixed before private rows were read. In a `checkpoint` or `continue` line `earlier` is the
hash of the line by which its run was held until then.

All amounts are whole units (see `cost.py`) below 2⁶³, the most a column of SQLite holds.

The database
------------
Rollback journal and `synchronous=EXTRA`: a commit returns after the pages, the journal's removal and its folder are on
disk, so it survives kill -9 and loss of power, and between writes the ledger is one single file (write-ahead mode would
keep recent entries in a second file that a careless copy leaves behind). Every call opens its own connection: nothing
is shared between threads or forked processes, and a writer holds the file only while it writes.

Refused: a file that is missing, not a ledger, of a newer format, with altered tables or guards, damaged, switched to
write-ahead mode by another program, or known under two names (two names mean two journals, which can destroy a
database). A journal that a killed process left is rolled back by whoever opens the ledger next. All failures become
`LedgerError`.
"""

import dataclasses
import hashlib
import json
import os
import sqlite3
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from understudy.errors import DamagedLedgerError, LedgerError
from understudy.privacy.cost import Cost

Kind = Literal["dataset", "charge", "finish", "checkpoint", "continue"]
MOST_UNITS = 2**63 - 1
NOTHING_BEFORE = "0" * 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line, exactly as it is stored and handed out."""

    sequence: int
    kind: Kind
    dataset: str
    made: str
    run: str = ""
    composition: str = ""
    unit: str = ""
    method: str = ""
    note: str = ""
    outcome: str = ""
    budget_epsilon: int = 0
    budget_delta: int = 0
    cost_epsilon: int = 0
    cost_rho: int = 0
    cost_delta: int = 0
    total_epsilon: int = 0
    total_rho: int = 0
    total_delta: int = 0
    releases: int = 0
    earlier: str = NOTHING_BEFORE
    previous: str = NOTHING_BEFORE
    hash: str = ""

    @property
    def cost(self) -> Cost:
        """What a charge spends; for a dataset, the limit of its totals."""
        return Cost(self.cost_epsilon, self.cost_rho, self.cost_delta)

    @property
    def total(self) -> Cost:
        """What the dataset's charges add up to after this line."""
        return Cost(self.total_epsilon, self.total_rho, self.total_delta)

    def digest(self) -> str:
        """SHA-256 of everything but the hash itself, as canonical JSON."""
        # In one spelling, whatever order or version of a library wrote it, or the same line would have two hashes.
        content = self.to_json()
        del content["hash"]
        return hashlib.sha256(canonical(content).encode("ascii")).hexdigest()

    def sealed(self) -> "Entry":
        """The same line with its hash filled in."""
        return dataclasses.replace(self, hash=self.digest())

    def is_intact(self) -> bool:
        """Whether the stored hash is the hash of the content."""
        return self.hash == self.digest()

    def to_json(self) -> dict[str, str | int]:
        """Names and contents, in stored order."""
        return {name: getattr(self, name) for name in FIELDS}

    @classmethod
    def from_json(cls, fields: Mapping[str, object]) -> "Entry":
        """The line with these contents; a ValueError names the first field that is missing, unknown or ill-typed."""
        unknown = sorted(set(map(str, fields)) ^ set(FIELDS))
        if unknown:
            raise ValueError(f"has a missing or unknown field {unknown[0]!r}")
        for name, wanted in FIELDS.items():
            given = fields[name]
            # Not isinstance: True would pass as the number 1 and be written as another line.
            if type(given) is not wanted:
                raise ValueError(f"field {name!r} has the wrong type")
            if isinstance(given, int) and not 0 <= given <= MOST_UNITS:
                raise ValueError(f"field {name!r} is out of range")
        if fields["kind"] not in get_args(Kind):
            raise ValueError(f"field 'kind' is not one of {', '.join(get_args(Kind))}")
        return cls(**cast(dict[str, Any], dict(fields)))


FIELDS: dict[str, type] = {
    field.name: int if field.type in (int, "int") else str for field in dataclasses.fields(Entry)
}


def canonical(content: Mapping[str, str | int]) -> str:
    """The one spelling of this content as JSON: keys in order, no blanks, ASCII only.

    >>> canonical({"b": 1, "a": "é"})
    '{"a":"\\\\u00e9","b":1}'
    """
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


# SQLite's own field for this: it tells a ledger from any other database, also one with a table of the same name.
APPLICATION = 0x75E57D01
FORMAT = 2
POLL_SECONDS = 0.001
OLDEST_ENGINE = (3, 37, 0)  # the first with STRICT tables
COLUMNS = ", ".join(FIELDS)
_TYPES = {int: "INTEGER", str: "TEXT"}
_DEFINED = ",\n  ".join(
    f"{name} {_TYPES[kind]} NOT NULL" + (" CHECK (sequence > 0) PRIMARY KEY" if name == "sequence" else "")
    for name, kind in FIELDS.items()
)
ONCE = "('charge', 'finish')"
"""Kinds of which a run has one line at most."""
WITH_COST = "('dataset', 'charge')"
"""Kinds that carry the totals of a dataset."""


def _tables(kinds: str, once: str, paid_for: str) -> dict[str, str]:
    # REPLACE deletes rows without firing delete triggers, so the insert trigger looks for whatever it could displace.
    return {
        "entry": f"CREATE TABLE entry (\n  {_DEFINED},\n  CHECK (kind IN ({kinds}))\n) STRICT",
        "entry_opening": "CREATE UNIQUE INDEX entry_opening ON entry (dataset) WHERE kind = 'dataset'",
        "entry_run": f"CREATE UNIQUE INDEX entry_run ON entry (run, kind) WHERE {once}",
        "entry_dataset": f"CREATE INDEX entry_dataset ON entry (dataset, sequence) WHERE {paid_for}",
        "entry_never_changes": "CREATE TRIGGER entry_never_changes BEFORE UPDATE ON entry\n"
        "BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END",
        "entry_never_leaves": "CREATE TRIGGER entry_never_leaves BEFORE DELETE ON entry\n"
        "BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END",
        "entry_comes_last": "CREATE TRIGGER entry_comes_last BEFORE INSERT ON entry\n"
        "WHEN new.sequence <> coalesce((SELECT max(sequence) FROM entry), 0) + 1\n"
        f"OR EXISTS (SELECT 1 FROM entry WHERE kind = new.kind AND {once} AND run = new.run)\n"
        "OR EXISTS (SELECT 1 FROM entry WHERE kind = new.kind AND kind = 'dataset' AND dataset = new.dataset)\n"
        "BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END",
    }


TABLES = {
    **_tables("'dataset', 'charge', 'finish', 'checkpoint', 'continue'", f"kind IN {ONCE}", f"kind IN {WITH_COST}"),
    "entry_held": "CREATE INDEX entry_held ON entry (run, sequence) WHERE kind IN ('checkpoint', 'continue')",
}
LAYOUTS = {1: _tables("'dataset', 'charge', 'finish'", "kind <> 'dataset'", "kind <> 'finish'"), FORMAT: TABLES}
"""Tables and guards of every format; the first knew no checkpoints, and is brought up to date at the first one."""
# These say nothing of what was charged or read: a ledger is also opened after a run. Whoever ends a command says it.
_REFUSALS = {
    "SQLITE_BUSY": ("is in use by another process.", "Try again when that run has charged."),
    "SQLITE_LOCKED": ("is in use by another part of this process.", "Try again."),
    "SQLITE_READONLY": ("cannot be written.", "Give this user write access to the file and its folder."),
    "SQLITE_FULL": ("cannot grow: the disk is full.", "Free some space and run again."),
    "SQLITE_IOERR": ("cannot be read or written: the disk fails or is full.", "Check the disk."),
    "SQLITE_CANTOPEN": ("cannot be opened for writing.", "Check access to the file and its folder."),
    "SQLITE_NOTADB": ("is not a ledger.", "Name a file made by `understudy ledger init`."),
    "SQLITE_CORRUPT": ("is damaged.", "Restore it from a trusted copy."),
}
_WRITE_AHEAD = (
    "is in write-ahead mode, in which recent charges may lie in a second file that a copy leaves behind.",
    "Run `sqlite3 LEDGER 'PRAGMA journal_mode=DELETE'` where both files lie, then check the ledger with "
    "known= and the hashes of your releases (`understudy ledger verify`).",
)


class Store:
    """Reads and appends entries within one open transaction."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path

    def head(self) -> Entry:
        """The last line."""
        return self._first("1 ORDER BY sequence DESC LIMIT 1")

    def opening(self, dataset: str) -> Entry | None:
        """The line that opened the dataset."""
        return next(iter(self._found("kind = 'dataset' AND dataset = ?", dataset)), None)

    def latest(self, dataset: str) -> Entry:
        """The last opening or charge of an opened dataset."""
        return self._first(f"kind IN {WITH_COST} AND dataset = ? ORDER BY sequence DESC LIMIT 1", dataset)

    def of_run(self, kind: Kind, run: str) -> Entry | None:
        """The charge or finish line of a run."""
        return next(iter(self._found(f"kind = ? AND kind IN {ONCE} AND run = ?", kind, run)), None)

    def held(self, run: str) -> list[Entry]:
        """The checkpoints and continuations of a run, in order."""
        return self._found("kind IN ('checkpoint', 'continue') AND run = ? ORDER BY sequence", run)

    def of_dataset(self, dataset: str, up_to: int) -> list[Entry]:
        """Opening and charges of a dataset up to a sequence number."""
        return self._found(f"kind IN {WITH_COST} AND dataset = ? AND sequence <= ? ORDER BY sequence", dataset, up_to)

    def all(self) -> list[Entry]:
        """Every line in order."""
        return self._found("1 ORDER BY sequence")

    def append(self, entry: Entry) -> None:
        """Adds a line behind the last one."""
        if entry.kind in ("checkpoint", "continue") and self._form() < FORMAT:
            self._bring_up_to_date()
        self._insert(tuple(entry.to_json().values()))

    def _insert(self, contents: Sequence[object]) -> None:
        marks = ", ".join("?" * len(FIELDS))
        self._connection.execute(f"INSERT INTO entry ({COLUMNS}) VALUES ({marks})", contents)

    def lines(self) -> Iterator[dict[str, object]]:
        """Every stored line as it stands, believed or not."""
        for line in self._connection.execute(f"SELECT {COLUMNS} FROM entry ORDER BY sequence"):
            yield dict(zip(FIELDS, line, strict=True))

    def structure_faults(self) -> list[str]:
        """What is wrong with the tables, the append-only guards and the pages of the file."""
        stored = dict(self._connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
        tables = LAYOUTS.get(self._form(), TABLES)
        faults = [f"{name!r} was changed or removed." for name in sorted(tables) if stored.get(name) != tables[name]]
        faults += [f"{name!r} does not belong in a ledger." for name in sorted(set(stored) - set(tables))]
        return faults + [f"the file is damaged: {fault}." for fault in self._page_faults()]

    def check_format(self, *, guards: bool) -> None:
        """Refuses a file that is no ledger or of a newer format, and one with altered guards where asked."""
        (application,) = self._connection.execute("PRAGMA application_id").fetchone()
        (journal,) = self._connection.execute("PRAGMA journal_mode").fetchone()
        form = self._form()
        if not os.path.getsize(self._path):
            fix = "Create it again with `understudy ledger init`; nothing was ever charged to it."
            raise LedgerError(str(self._path), "is empty: its creation was interrupted.", fix)
        if application != APPLICATION:
            raise LedgerError(str(self._path), "is not a ledger.", "Name a file made by `understudy ledger init`.")
        if journal == "wal":  # it was switched just now; `_connect` looks before SQLite makes a second file
            raise LedgerError(str(self._path), *_WRITE_AHEAD)
        if form > FORMAT:
            rule = f"has format {form}, this version reads up to {FORMAT}."
            raise LedgerError(str(self._path), rule, "Upgrade understudy.")
        if guards:
            stored = dict(self._connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
            if stored != LAYOUTS.get(form):
                fix = "Run `understudy ledger verify` and restore the file from a trusted copy."
                raise LedgerError(str(self._path), "has altered tables or append-only guards.", fix)

    def check_pages(self) -> None:
        """Refuses a damaged file: a broken index could hide charges. Takes 1 ms per 1,000 entries."""
        if self._page_faults():
            raise DamagedLedgerError(str(self._path), *_REFUSALS["SQLITE_CORRUPT"])

    def define(self) -> None:
        """Lays out the tables of an empty file."""
        for statement in TABLES.values():
            self._connection.execute(statement)
        self._connection.execute(f"PRAGMA application_id = {APPLICATION}")
        self._connection.execute(f"PRAGMA user_version = {FORMAT}")

    def _form(self) -> int:
        (form,) = self._connection.execute("PRAGMA user_version").fetchone()
        return int(form)

    def _bring_up_to_date(self) -> None:
        """Lays the same lines out anew, within the transaction that is open: not a byte of an entry changes."""
        lines = self._connection.execute(f"SELECT {COLUMNS} FROM entry ORDER BY sequence").fetchall()
        self._connection.execute("DROP TABLE entry")
        self.define()
        for line in lines:
            self._insert(line)

    def _page_faults(self) -> list[str]:
        pages = [str(fault) for (fault,) in self._connection.execute("PRAGMA integrity_check(5)")]
        return [fault for fault in pages if fault != "ok"]

    def _found(self, condition: str, *parameters: str | int) -> list[Entry]:
        lines = self._connection.execute(f"SELECT {COLUMNS} FROM entry WHERE {condition}", parameters).fetchall()
        return [self._believed(dict(zip(FIELDS, line, strict=True))) for line in lines]

    def _first(self, condition: str, *parameters: str | int) -> Entry:
        """A line that every whole ledger has; where it is missing, an index or a page is damaged."""
        found = self._found(condition, *parameters)
        if not found:
            raise DamagedLedgerError(str(self._path), *_REFUSALS["SQLITE_CORRUPT"])
        return found[0]

    def _believed(self, line: dict[str, object]) -> Entry:
        """The entry, unless it was altered: no charge may rest on totals that someone changed."""
        with suppress(ValueError):
            entry = Entry.from_json(line)
            if entry.is_intact():
                return entry
        fix = "Run `understudy ledger verify` and restore the file from a trusted copy."
        raise LedgerError(f"{self._path}: entry {line['sequence']}", "does not match its hash.", fix)


def create_file(path: Path, first: Entry) -> None:
    """Makes the ledger with its first line, on disk and readable by its owner only; refuses to replace a file.

    An empty file is one whose making was cut short before its first line: it is made now.
    """
    with _translated(path):
        made = _new_file(path)
        try:
            with closing(_connect(path, 5.0)) as connection, _transaction(connection):
                if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
                    raise LedgerError(str(path), *_EXISTS)  # another process was first
                store = Store(connection, path)
                store.define()
                store.append(first)
        except BaseException:
            if not os.path.getsize(path):  # nothing was committed, so nobody else can have charged here
                os.unlink(path)
            raise
        if not os.path.samestat(made, os.stat(path)):  # another process, whose making failed, removed it
            raise LedgerError(str(path), "was replaced while it was being created.", "Create it again.")
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


_EXISTS = ("exists already.", "Choose another name, or add a dataset to the ledger that is there.")


def _new_file(path: Path) -> os.stat_result:
    """An empty file for its owner alone; one that is there must be empty and their own."""
    # No links: somebody else could point one at a file of ours.
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size or status.st_uid != os.geteuid():
            raise LedgerError(str(path), *_EXISTS) from error
        handle = os.open(path, flags)
        os.fchmod(handle, 0o600)
    try:
        return os.fstat(handle)
    finally:
        os.close(handle)


@contextmanager
def reading(path: Path, wait_seconds: float, *, guards: bool = True) -> Iterator[Store]:
    """A consistent view of the ledger; with `guards=False` also of one that was altered or is damaged."""
    with _translated(path), closing(_connect(path, wait_seconds)) as connection:
        store = Store(connection, path)
        # Even a mistake here cannot write while somebody only looks.
        connection.execute("PRAGMA query_only = ON")
        with _transaction(connection, "DEFERRED"):
            store.check_format(guards=guards)
            if guards:
                store.check_pages()
            yield store


@contextmanager
def writing(path: Path, wait_seconds: float) -> Iterator[Store]:
    """The only writer, from the first check to the synced commit on leaving; an exception leaves no trace."""
    with _translated(path), closing(_connect(path, wait_seconds)) as connection, _transaction(connection):
        store = Store(connection, path)
        store.check_format(guards=True)
        store.check_pages()
        yield store


def _connect(path: Path, wait_seconds: float) -> sqlite3.Connection:
    if sqlite3.sqlite_version_info < OLDEST_ENGINE:
        fix = "Use a Python that comes with a newer SQLite."
        raise LedgerError(str(path), f"needs SQLite 3.37 or newer, found {sqlite3.sqlite_version}.", fix)
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise LedgerError(str(path), "is not a file.", "Name a file made by `understudy ledger init`.")
    if status.st_nlink > 1:
        fix = "Remove the other name, or copy the file and agree which copy counts."
        raise LedgerError(str(path), "is one file under two names, which can destroy it.", fix)
    if _is_write_ahead(path):
        raise LedgerError(str(path), *_WRITE_AHEAD)
    # mode=rw never creates; where writing is not allowed SQLite falls back to reading, and a write fails.
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=wait_seconds, isolation_level=None
    )
    # Altered text must reach the check of its hash instead of failing on the way there.
    connection.text_factory = lambda stored: stored.decode("utf-8", "surrogateescape")
    try:
        for setting in ("synchronous = EXTRA", "fullfsync = ON", "trusted_schema = OFF", "cell_size_check = ON"):
            connection.execute(f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    return connection


def _is_write_ahead(path: Path) -> bool:
    """Whether the file's header (bytes 18 and 19 of a SQLite database) says that changes are kept in a second file."""
    with path.open("rb") as file:
        header = file.read(20)
    return header.startswith(b"SQLite format 3\x00") and 2 in header[18:20]


@contextmanager
def _transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    # IMMEDIATE takes the writer's lock before the balance is read, so nobody can charge between check and entry.
    _begin(connection, kind)
    try:
        yield
        connection.execute("COMMIT")
    # Also a signal: half a transaction must not stay.
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _begin(connection: sqlite3.Connection, kind: str) -> None:
    """Waits for the lock in short even steps: SQLite's own steps grow, and a busy neighbour would always be first."""
    (wait_milliseconds,) = connection.execute("PRAGMA busy_timeout").fetchone()
    until = time.monotonic() + wait_milliseconds / 1000
    connection.execute("PRAGMA busy_timeout = 0")
    while True:
        try:
            connection.execute(f"BEGIN {kind}")
            break
        except sqlite3.OperationalError as error:
            if (error.sqlite_errorcode & 0xFF) != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
        time.sleep(POLL_SECONDS)
    connection.execute(f"PRAGMA busy_timeout = {wait_milliseconds}")


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "") or ""
        family = "_".join(name.split("_")[:2])
        rule, fix = _REFUSALS.get(family, (f"cannot be used ({name or 'no code'}).", "Check the file and its disk."))
        kind = DamagedLedgerError if family == "SQLITE_CORRUPT" else LedgerError
        raise kind(str(path), rule, fix) from error
    except UnicodeDecodeError as error:  # SQLite quotes the damaged text in its own message
        raise DamagedLedgerError(str(path), *_REFUSALS["SQLITE_CORRUPT"]) from error
    except FileNotFoundError as error:
        raise LedgerError(str(path), "does not exist.", "Create it with `understudy ledger init`.") from error
    except OSError as error:
        raise LedgerError(str(path), f"cannot be used: {error.strerror}.", "Check the file and its folder.") from error
