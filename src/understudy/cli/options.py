"""Options that several commands share, and how their text becomes values."""

import re
from collections.abc import Iterable, Iterator, Sequence
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
Method = Annotated[str, typer.Option("--method", help='Method, see "understudy methods".')]
Epsilon = Annotated[float, typer.Option("--epsilon", help="Privacy budget ε, above 0. No default: you decide.")]
Delta = Annotated[
    float, typer.Option("--delta", help="Probability δ that the ε bound fails, well below 1/rows; 0: pure ε.")
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Option of the method; may be repeated.")
]
Memory = Annotated[str | None, typer.Option("--memory", metavar="SIZE", help="Memory limit, e.g. 512MiB or 4GiB.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
RowCount = Annotated[
    int | None, typer.Option("--rows", help="Number of rows of each copy; the noisy total by default.")
]
Copies = Annotated[int, typer.Option("--copies", help="Number of synthetic tables.")]
CopiesMode = Annotated[
    str, typer.Option("--copies-mode", help='"resample": draw all from one model; "remeasure": measure anew for each.')
]
LedgerFile = Annotated[Path | None, typer.Option("--ledger", help="Ledger to charge before any row is read.")]
Dataset = Annotated[
    str | None, typer.Option("--dataset", help="Name of the dataset in the ledger; may be left out if it holds one.")
]
PublicTable = Annotated[
    Path | None, typer.Option("--public", help="Public table with the same columns, for methods that use one.")
]
RowsFile = Annotated[
    Path, typer.Option("--out", "-o", help="File to write; .parquet, .csv, .tsv, .dta or .sav by suffix.")
]
ExcelSafe = Annotated[
    bool, typer.Option("--excel-safe", help="CSV only: put an apostrophe before text a spreadsheet would run.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue the interrupted run of --out: same settings, nothing is charged.")
]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed for sampling rows. Privacy noise is never seeded.")]

_UNITS = {"": 1, "b": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
_BINARY = {"ki": 1024, "mi": 1024**2, "gi": 1024**3, "ti": 1024**4}
_QUOTED = re.compile(r'\s*"((?:[^"]|"")*)"\s*')
_QUOTED_CONDITION = re.compile(rf"[^=,]*={_QUOTED.pattern}(?=,|$)")
_UP_TO_COMMA = re.compile(r"[^,]*")
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


def pairs(option: str, texts: Sequence[str] | None, form: str = "KEY=VALUE") -> dict[str, str]:
    """The key=value texts as a mapping; `form` says in messages what they look like.

    >>> pairs("--set", ["bins=8", "rule=a=b"])
    {'bins': '8', 'rule': 'a=b'}
    """
    found: dict[str, str] = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise UsageError(option, f"must be {form}, got {text!r}.")
        if key in found:
            raise UsageError(option, f"names {key!r} twice.", "Keep one of them.")
        found[key] = value
    return found


def conditions(option: str, texts: Sequence[str] | None) -> dict[str, str]:
    """Conditions on columns, one in each text or several joined by commas.

    A comma joins two conditions only if another COLUMN= follows it, so a label may hold commas. A value in double
    quotes is taken as it is, without the quotes; two of them stand for one.

    >>> conditions("--where", ["sex=F,age=20..29", "city=Paris, France"])
    {'sex': 'F', 'age': '20..29', 'city': 'Paris, France'}
    >>> conditions("--where", ['note="a,b=c",sex=M'])
    {'note': 'a,b=c', 'sex': 'M'}
    """
    found: list[str] = []
    for text in texts or ():
        own: list[str] = []
        for piece in _pieces(text):
            if own and ("=" not in own[-1] or "=" not in piece):
                own[-1] += f",{piece}"
            else:
                own.append(piece)
        found += own
    return {name: _unquoted(value) for name, value in pairs(option, found, "COLUMN=VALUE").items()}


def _pieces(text: str) -> Iterator[str]:
    """What lies between commas that are not in the quotes of a value."""
    start = 0
    while start <= len(text):
        piece = _QUOTED_CONDITION.match(text, start) or _UP_TO_COMMA.match(text, start)
        assert piece is not None  # the second pattern matches anything
        yield piece[0]
        start = piece.end() + 1


def _unquoted(value: str) -> str:
    quoted = _QUOTED.fullmatch(value)
    return value if quoted is None else quoted[1].replace('""', '"')


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
