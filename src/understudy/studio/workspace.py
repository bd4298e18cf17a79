"""The folder that the studio was started for: tables, drafts, releases and the ledger in it, and nothing outside.

Whoever uses the studio names files only by choosing from what the folder shows, and every name that comes back is held
against that list with all links resolved. What the studio itself keeps lies in one folder of its own, for its owner
alone: drafts, the settings and the standing of runs, confidential reports. It is no part of any release.
"""

import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import understudy as us

KEPT = ".understudy-studio"
LEDGER = "ledger.db"
_DRAFT, _THROWN = "draft.json", "thrown.json"
DEMO_FILE = "demo-voters.duckdb"
DEMO_TABLE = f"{DEMO_FILE}::voters"
RELEASE_FILE, CARD_FILE = "statement.json", "card.html"
_TABLES = (
    ".csv", ".tsv", ".txt", ".jsonl", ".parquet", ".arrow", ".feather", ".xlsx", ".dta", ".sav", ".sas7bdat", ".duckdb",
    ".sqlite", ".sqlite3", ".db",
)  # fmt: skip
_PACKED = (".gz", ".zst", ".zip")
_INNER = (".duckdb", ".xlsx", ".sqlite", ".sqlite3", ".db")
_BOOKS = (".csv", ".tsv", ".json", ".yaml", ".yml", ".sql", ".do", ".dct", ".sps")
_MOST_FILES, _MOST_DEPTH = 500, 3
_MOST_UNDO, _MOST_UNDO_LETTERS = 200, 1 << 21
_MOST_JSON_BYTES = 1 << 26
_SPECIAL = set("*?[]{}\\")
DATABASES = ("postgresql://", "postgres://")


def short_id(text: str) -> str:
    """What stands for a name in addresses, which others may come to see; names do not."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def write_json(path: Path, document: Mapping[str, object]) -> None:
    """Replaces a file in one step; for its owner alone."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as stream:
        json.dump(document, stream, ensure_ascii=True)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(draft, path)


def read_json(path: Path) -> dict[str, Any]:
    """What the file holds; empty if it is a link, too large, or cannot be read, as in a stranger's release."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
            content = stream.read(_MOST_JSON_BYTES + 1)
        found = {} if len(content) > _MOST_JSON_BYTES else json.loads(content.decode("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class Choices:
    """What was chosen for the run of a draft."""

    epsilon: float = 1.0
    delta: float = 1e-9
    method: str = "auto"
    rows_hint: int | None = None
    matter: tuple[str, ...] = ()
    """Columns whose errors are looked at first."""

    def with_method(self, method: str) -> "Choices":
        """The same with another method."""
        return replace(self, method=method)


@dataclass(eq=False)
class DraftTable:
    """A table on its way to a release: where it lies, its schema's text with a way back, and what was chosen."""

    key: str
    table: str
    place: Path

    @property
    def text(self) -> str:
        """The text of the schema."""
        return (self.place / "schema.yaml").read_text(encoding="utf-8")

    @property
    def version(self) -> str:
        """Stands for the text, so that a form knows whether another one was quicker."""
        return short_id(self.text)

    @property
    def schema_path(self) -> Path:
        """The schema file."""
        return self.place / "schema.yaml"

    @property
    def name(self) -> str:
        """The table's name for people and for the ledger: its file without folder and suffixes, or its last part."""
        last = (
            self.table.rpartition("::")[2] if self.table.startswith(DATABASES) else Path(self.table.split("::")[0]).name
        )
        return (last if self.table.startswith(DATABASES) else last.partition(".")[0]) or "table"

    @property
    def choices(self) -> Choices:
        """What was chosen for a run, so far."""
        kept = read_json(self.place / "choices.json")
        return Choices(**{**kept, "matter": tuple(kept.get("matter", ()))})

    def choose(self, choices: Choices) -> None:
        """Keeps what was chosen."""
        write_json(self.place / "choices.json", asdict(choices))

    def write(self, text: str) -> None:
        """Keeps another text of the schema, with a way back that outlives the studio."""
        changes = [*self._changes, {"before": self.text, "after": short_id(text)}][-_MOST_UNDO:]
        while len(changes) > 1 and sum(len(one["before"]) for one in changes) > _MOST_UNDO_LETTERS:
            del changes[0]
        write_json(self.place / "past.json", {"changes": changes})
        _write_text(self.schema_path, text)

    def undo(self) -> bool:
        """Takes the last change back; false if there is none, or if the file was changed by other means since."""
        if not self.can_undo:
            return False
        *earlier, last = self._changes
        _write_text(self.schema_path, last["before"])
        write_json(self.place / "past.json", {"changes": earlier})
        return True

    @property
    def can_undo(self) -> bool:
        """Whether there is a change to take back."""
        changes = self._changes
        return bool(changes) and changes[-1]["after"] == self.version

    @property
    def _changes(self) -> list[dict[str, str]]:
        """The text before each change, and what stands for the one after it."""
        found = read_json(self.place / "past.json").get("changes")
        return found if isinstance(found, list) else []


def _write_text(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.part")
    with os.fdopen(
        os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8", newline=""
    ) as file:
        file.write(text)
    os.replace(draft, path)


class FolderLock:
    """Held by whoever changes the folder: one thread of one studio, however many are open on it.

    A thread that holds it may take it again. It goes with its process, so a killed studio locks nobody out.
    """

    def __init__(self, workspace: "Workspace") -> None:
        self._workspace = workspace
        self._threads = threading.RLock()
        self._taken = 0
        self._file: BinaryIO | None = None

    def __enter__(self) -> None:
        self._threads.acquire()
        try:
            if not self._taken:
                self._file = (self._workspace.kept / "lock").open("wb")
                fcntl.flock(self._file, fcntl.LOCK_EX)
        except BaseException:
            self._threads.release()
            raise
        self._taken += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._taken -= 1
        if not self._taken and self._file is not None:
            self._file.close()
        self._threads.release()


class Workspace:
    """The folder, with a lock under which it is changed."""

    def __init__(self, root: Path, ledger: Path | None = None) -> None:
        """Takes over a folder that exists.

        Raises:
            UsageError: if there is no such folder.
        """
        if not root.is_dir():
            raise us.errors.UsageError("folder", f"{str(root)!r} does not exist.", "Name a folder that exists.")
        self.root = root.resolve()
        if "::" in str(self.root) or set(str(self.root)) & _SPECIAL:
            rule = f"{str(self.root)!r} contains characters that have a special meaning in names of tables."
            raise us.errors.UsageError(
                "folder", rule, "Name a folder without ::, *, ?, brackets, braces and backslashes."
            )
        self.ledger_path = self.root / LEDGER if ledger is None else ledger.absolute()
        self.lock = FolderLock(self)

    @property
    def kept(self) -> Path:
        """The studio's own folder, made when it is first needed."""
        place = self.root / KEPT
        try:
            place.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            rule = f"nothing can be written into {str(self.root)!r}, where drafts and runs are kept."
            fix = "Give the folder to the user that the studio runs as, or start a read-only one."
            raise us.errors.UsageError("folder", rule, fix) from error
        if place.is_symlink():
            raise us.errors.UsageError(KEPT, "is a link.", "Remove it: the studio keeps confidential files there.")
        facts = place.stat()
        if facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
            fix = "Confidential files are kept there. If it is yours: chmod 700. If it is not: remove it."
            raise us.errors.UsageError(KEPT, "is open to other users.", fix)
        return place

    def tables(self) -> list[str]:
        """The files that may hold a table, as paths inside the folder; a ledger holds none."""
        ledger = self.ledger_path.resolve()
        return [name for name in self._files() if _is_table(name) and (self.root / name).resolve() != ledger]

    def codebooks(self) -> list[str]:
        """The files that may describe columns."""
        return [name for name in self._files() if Path(name).suffix.lower() in _BOOKS]

    def inside(self, name: str, among: list[str]) -> str:
        """The path of a file of the list, checked once more with its links resolved.

        Raises:
            UsageError: for anything that the list does not hold or that lies outside the folder.
        """
        path = (self.root / name).resolve() if name in among else self.root
        if not path.is_relative_to(self.root) or not path.is_file():
            raise us.errors.UsageError("file", "is not in the studio's folder.", "Choose one from the list.")
        return name

    def location(self, name: str, inner: str = "") -> str:
        """Where a table lies, as the library names it: a file of the folder, or a sheet or table inside of it."""
        if name.startswith(DATABASES):
            if not name.isprintable() or any(letter.isspace() for letter in name):
                raise us.errors.UsageError("table", "is not a place in a database.", "postgresql://HOST/DB::TABLE")
            return name
        path = self.inside(name, self.tables())
        inner = inner.strip()
        if not inner:
            return path
        if not path.lower().endswith(_INNER) or not inner.isprintable() or "::" in inner or len(inner) > 200:
            raise us.errors.UsageError("part", "is not the name of a sheet or table in this file.", "Leave it empty.")
        return f"{path}::{inner}"

    def absolute(self, location: str) -> str:
        """The same place for a process that may run anywhere.

        Raises:
            UsageError: if it lies outside the folder, by a link that was put there since, or a draft of a stranger.
        """
        if location.startswith(DATABASES):
            return location
        if not (self.root / location.partition("::")[0]).resolve().is_relative_to(self.root):
            raise us.errors.UsageError("file", "is not in the studio's folder.", "Choose one from the list.")
        return str(self.root / location)

    def same_file(self, one: str, other: str) -> bool:
        """Whether two locations are about the same file, under whatever names."""
        if one.startswith(DATABASES) or other.startswith(DATABASES):
            return one.partition("://")[2] == other.partition("://")[2]  # both ways to begin mean the same
        here, there = (self.root / name.partition("::")[0] for name in (one, other))
        try:
            return here.samefile(there)
        except OSError:  # one of them is gone
            return here == there

    def _files(self) -> list[str]:
        found: list[str] = []
        for folder, folders, files in os.walk(self.root):
            here = Path(folder)
            deep = len(here.relative_to(self.root).parts) >= _MOST_DEPTH
            released = here != self.root and RELEASE_FILE in files
            folders[:] = [] if deep or released else sorted(one for one in folders if not one.startswith("."))
            for name in sorted(files) if not released else ():
                path = here / name
                if self._may_be_shown(name, path):
                    found.append(path.relative_to(self.root).as_posix())
                if len(found) >= _MOST_FILES:
                    return found
        return found

    def _may_be_shown(self, name: str, path: Path) -> bool:
        """Whether a file lies in the folder for good, under a name that the library reads as it is."""
        whole = path.relative_to(self.root).as_posix()
        plain = whole.isprintable() and "::" not in whole and not set(whole) & _SPECIAL
        return plain and not name.startswith(".") and path.is_file() and path.resolve().is_relative_to(self.root)

    def drafts(self, *, thrown_away: bool = False) -> list[DraftTable]:
        """The tables that were begun with, oldest first; or those that were thrown away and can be taken back."""
        folder = self.kept / "drafts"
        found = [self.draft(path.name, thrown_away=thrown_away) for path in _sorted(folder)]
        return [one for one in found if one is not None]

    def draft(self, key: str, *, thrown_away: bool = False) -> DraftTable | None:
        """The draft of that key, if there is one."""
        place = self.kept / "drafts" / key
        name = _THROWN if thrown_away else _DRAFT
        table = read_json(place / name).get("table") if key.isalnum() else None
        if not isinstance(table, str) or not (place / "schema.yaml").is_file():
            return None
        return DraftTable(key, table, place)

    def begin(self, location: str, text: str) -> DraftTable:
        """The draft of a table: a new one with that schema, or the one that it has already."""
        key = short_id(location)
        with self.lock:
            known = self.draft(key)
            if known is not None:
                return known
            place = self.kept / "drafts" / key
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name in (_THROWN, "past.json", "choices.json"):
                (place / name).unlink(missing_ok=True)
            _write_text(place / "schema.yaml", text)
            write_json(place / _DRAFT, {"table": location})
            return DraftTable(key, location, place)

    def throw_away(self, draft: DraftTable) -> None:
        """Takes a draft off the list; it can be taken back until its table is begun with anew."""
        with self.lock, suppress(FileNotFoundError):
            (draft.place / _DRAFT).replace(draft.place / _THROWN)

    def take_back(self, draft: DraftTable) -> None:
        """Puts a draft that was thrown away on the list again, as it was."""
        with self.lock, suppress(FileNotFoundError):
            (draft.place / _THROWN).replace(draft.place / _DRAFT)

    def begin_demo(self) -> DraftTable:
        """The draft of the simulated table, which is written where it is not there yet."""
        with self.lock:
            place = self.root / DEMO_FILE
            if place.is_symlink():
                raise us.errors.UsageError(DEMO_FILE, "is a link.", "Remove it.")
            if not place.exists():
                us.demo.write_database(place)
            return self.begin(DEMO_TABLE, us.demo.schema_text())

    def releases(self) -> dict[str, Path]:
        """The release folders that lie in the folder, by the key of their name."""
        found = {}
        with suppress(OSError):
            for path in sorted(self.root.iterdir()):
                if not path.name.startswith(".") and not path.is_symlink() and (path / RELEASE_FILE).is_file():
                    found[short_id(path.name)] = path
        return found

    def ledger(self) -> "us.Ledger | None":
        """The ledger, if there is one yet.

        Raises:
            LedgerError: if what is there cannot be used.
        """
        return us.Ledger.open(self.ledger_path) if self.ledger_path.exists() else None

    def without_root(self, text: str) -> str:
        """The text with paths as one sees them in the folder."""
        return text.replace(f"{self.kept}{os.sep}", "").replace(f"{self.root}{os.sep}", "")


def _is_table(name: str) -> bool:
    path = Path(name.lower())
    suffix = Path(path.stem).suffix if path.suffix in _PACKED else path.suffix
    return suffix in _TABLES


def _sorted(folder: Path) -> Iterator[Path]:
    """What lies in a folder that may not be there, oldest first."""
    with suppress(OSError):
        yield from sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)
