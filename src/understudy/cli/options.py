"""Options that several commands share, and how their text becomes values."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.console import Shell
from understudy.errors import UsageError

if TYPE_CHECKING:
    from understudy.options import Option

Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV or Parquet (also a glob), FILE.duckdb::TABLE, or FILE.csv::multiline if fields hold line ends.",
    ),
]
ReleaseFolder = Annotated[Path, typer.Argument(metavar="RELEASE", help="The release folder.")]
NewFolder = Annotated[Path, typer.Option("--out", "-o", help="Release folder to write; must not exist.")]
SchemaFile = Annotated[Path, typer.Option("--schema", help="The schema: what the table may contain.")]
Method = Annotated[str, typer.Option("--method", help='Synthesizer, see "understudy methods".')]
Epsilon = Annotated[float, typer.Option("--epsilon", help="Privacy budget ε, above 0. No default: you decide.")]
Delta = Annotated[float, typer.Option("--delta", help="Chance δ that the ε bound does not hold; 0: pure ε.")]
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Option of the method.")]
Memory = Annotated[str | None, typer.Option("--memory", metavar="SIZE", help="Most memory to use, as 512MiB or 4GiB.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
RowCount = Annotated[int | None, typer.Option("--rows", help="Rows of each copy; the noisy total by default.")]
Copies = Annotated[int, typer.Option("--copies", help="Number of synthetic tables.")]
CopiesMode = Annotated[
    str, typer.Option("--copies-mode", help='"resample": all from one model; "remeasure": measure anew for each.')
]
LedgerFile = Annotated[Path | None, typer.Option("--ledger", help="Ledger to charge before anything is read.")]
Dataset = Annotated[
    str | None, typer.Option("--dataset", help="Name of the dataset in the ledger; may be left out if it holds one.")
]
PublicTable = Annotated[Path | None, typer.Option("--public", help="A public table of the same form.")]
RowsFile = Annotated[Path, typer.Option("--out", "-o", help="File to write; .parquet, .csv or .tsv by suffix.")]
ExcelSafe = Annotated[
    bool, typer.Option("--excel-safe", help="CSV only: put an apostrophe before text a spreadsheet would run.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue the interrupted run of --out: same settings, nothing is charged.")
]
Seed = Annotated[int | None, typer.Option("--seed", help="Same seed, same rows from the model. Noise has no seed.")]

_UNITS = {"": 1, "b": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
_BINARY = {"ki": 1024, "mi": 1024**2, "gi": 1024**3, "ti": 1024**4}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]i?)?b?", re.IGNORECASE)


def default_text(default: object) -> str:
    """The default of an option, as the tables of methods and metrics show it.

    >>> default_text(None), default_text(()), default_text(("a", "b")), default_text(0.5)
    ('none', 'none', 'a, b', '0.5')
    """
    if isinstance(default, tuple):
        default = ", ".join(map(str, default))
    return "none" if default is None or default == "" else str(default)


OPTION_COLUMNS = ("--set", "value", "default", "meaning")


def option_rows(options: "Iterable[Option]", prefix: str = "") -> list[list[str]]:
    """The options of a method or metric as lines of a table: name, value, default, meaning."""
    return [[prefix + one.name, one.kind, default_text(one.default), one.help] for one in options]


def option_documents(options: "Iterable[Option]") -> list[dict[str, object]]:
    """The same for JSON."""
    return [{"name": one.name, "value": one.kind, "default": one.default, "help": one.help} for one in options]


def memory_bytes(text: str | None) -> int | None:
    """The number of bytes a size stands for; None stays None.

    >>> memory_bytes("1.5GiB"), memory_bytes("512MB"), memory_bytes("100")
    (1610612736, 512000000, 100)
    """
    if text is None:
        return None
    match = _SIZE.fullmatch(text.strip())
    size = 0 if match is None else int(float(match[1]) * (_UNITS | _BINARY)[(match[2] or "").lower()])
    if size < 1:
        raise UsageError("--memory", f"must be a size such as 512MiB or 4GiB, got {text!r}.")
    return size


def pairs(option: str, texts: Sequence[str] | None) -> dict[str, str]:
    """The key=value texts as a mapping.

    >>> pairs("--set", ["bins=8", "rule=a=b"])
    {'bins': '8', 'rule': 'a=b'}
    """
    found: dict[str, str] = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise UsageError(option, f"must be KEY=VALUE, got {text!r}.")
        if key in found:
            raise UsageError(option, f"names {key!r} twice.", "Keep one of them.")
        found[key] = value
    return found


def require_absent(option: str, path: Path) -> Path:
    """The path, unless something is there already or it lies in a release: nothing is overwritten or slipped in."""
    from understudy.release.files import refuse_release_folder

    refuse_release_folder(path)
    if path.exists() or path.is_symlink():
        raise UsageError(option, f"{str(path)!r} exists and is never overwritten.", "Choose another name.")
    if not path.absolute().parent.is_dir():
        raise UsageError(option, f"the folder of {str(path)!r} does not exist.", "Create it first.")
    return path


def note_lines(place: Shell, table: str | Path) -> None:
    """How lines of a text file become rows: always said, since nobody may look whether it matters for this file."""
    if str(table).lower().endswith((".csv", ".tsv")):
        place.note(f"Every line of {table} is one row; if quoted fields hold line ends, name it {table}::multiline.")
