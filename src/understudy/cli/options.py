"""Options that several commands share, and how their text becomes values."""

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from understudy.cli.console import Shell
from understudy.errors import UsageError

if TYPE_CHECKING:
    from understudy.options import Option
    from understudy.schema import Schema

Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="Text (.csv, .tsv, .txt, .jsonl; also .gz, .zst, .zip), Parquet, Arrow, FILE.xlsx::SHEET, Stata, SPSS or"
        " SAS (globs too), FILE.duckdb::TABLE, or FILE.csv::multiline if fields contain line breaks; also a folder of"
        " Parquet files, or a location in a database, lake or cluster, such as postgresql://HOST/DB::TABLE.",
    ),
]
OptionalTable = Annotated[
    str | None,
    typer.Argument(metavar="[TABLE]", help="The private table; only its container and header are read, no row."),
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
    str | None,
    typer.Option("--dataset", help="Name of the dataset in the ledger; optional if the ledger has only one."),
]
PublicTable = Annotated[
    str | None, typer.Option("--public", help="Public table with the same columns, for methods that use one.")
]
RowsFile = Annotated[
    Path,
    typer.Option("--out", "-o", help="File to write; .parquet, .csv, .tsv, .arrow, .feather, .dta, .sav or .xlsx."),
]
SecondFile = Annotated[
    Path | None,
    typer.Option(
        "--rows-file", metavar="FILE", help="Also write the rows of the first copy to a file; format by suffix."
    ),
]
ExcelSafe = Annotated[
    bool, typer.Option("--excel-safe", help="CSV only: put an apostrophe before text that a spreadsheet would run.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue the interrupted run of --out: same settings, nothing is charged.")
]
CheckShare = Annotated[
    float | None,
    typer.Option(
        "--check-share",
        metavar="SHARE",
        help="Share of the budget held back to measure how far off the rows are, e.g. 0.05.",
    ),
]
CriteriaFile = Annotated[
    Path | None,
    typer.Option(
        "--criteria",
        metavar="FILE",
        help="YAML file of acceptance criteria: limits that the check compares the rows with.",
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed for sampling rows. Privacy noise is never seeded.")]

Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter", help="Delimiter of text files: one character, or comma, semicolon, tab, pipe or space."
    ),
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Encoding of text files, such as latin-1 or utf-16; UTF-8 by default.")
]
Decimal = Annotated[str | None, typer.Option("--decimal", help='Decimal mark in text files: "." (the default) or ",".')]
NoHeader = Annotated[bool, typer.Option("--no-header", help="The file has no header; --names gives the column names.")]
Names = Annotated[
    str | None,
    typer.Option(
        "--names", metavar="A,B,C", help="Column names, instead of those in the file; or @FILE, one name a line."
    ),
]
MostBytes = Annotated[
    str | None, typer.Option("--most-bytes", metavar="SIZE", help="Largest size to which a compressed file may expand.")
]
_DIALECT = {
    "delimiter": (Delimiter, None),
    "encoding": (Encoding, None),
    "decimal": (Decimal, None),
    "no_header": (NoHeader, False),
    "names": (Names, None),
    "most_bytes": (MostBytes, None),
}
_Command = TypeVar("_Command", bound=Callable[..., None])

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


def memory_bytes(text: str | None, option: str = "--memory") -> int | None:
    """The number of bytes a size stands for; None stays None.

    >>> memory_bytes("1.5GiB"), memory_bytes("512MB"), memory_bytes("100")
    (1610612736, 512000000, 100)
    """
    if text is None:
        return None
    match = _SIZE.fullmatch(text.strip())
    size = 0 if match is None else int(float(match[1]) * (_UNITS | _BINARY)[(match[2] or "").lower()])
    if size < 1:
        raise UsageError(option, f"must be a size such as 512MiB or 4GiB, got {text!r}.")
    return size


def reads_table(argument: str) -> Callable[[_Command], _Command]:
    """Gives a command the options that say how the text file in that argument is written.

    What they say becomes part of the location, which is all that the command sees of it.
    """

    def with_options(command: _Command) -> _Command:
        own = inspect.signature(command)
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for name, (kind, default) in _DIALECT.items()
        ]
        kept = list(own.parameters.values())
        last = [one for one in kept if one.name in ("quiet", "debug")]
        whole = own.replace(parameters=[*(one for one in kept if one not in last), *more, *last])

        @functools.wraps(command)
        def called(**given: Any) -> None:
            said = {name: given.pop(name) for name in _DIALECT}
            if any(said.values()) and given[argument] is not None:
                given[argument] = _declared(given[argument], **said)
            command(**given)

        called.__signature__ = whole  # type: ignore[attr-defined]
        called.__annotations__ = {one.name: one.annotation for one in whole.parameters.values()} | {"return": None}
        return called  # type: ignore[return-value]

    return with_options


def _declared(
    location: str,
    *,
    delimiter: str | None,
    encoding: str | None,
    decimal: str | None,
    no_header: bool,
    names: str | None,
    most_bytes: str | None,
) -> str:
    """The location with what the options say about it."""
    from understudy.schema.schema import Dialect, located, require_dialect

    if no_header and names is None:
        raise UsageError("--no-header", "leaves the columns without names.", "Give --names too.")
    listed = None if names is None else _listed(names)
    header = None if no_header or listed is None else True
    said = require_dialect(Dialect(delimiter, encoding, decimal, listed, header=header))
    return located(location, said, memory_bytes(most_bytes, "--most-bytes"))


def _listed(names: str) -> tuple[str, ...]:
    """Names with commas between them, or those in a file, one in each line."""
    if not names.startswith("@"):
        return tuple(name.strip() for name in names.split(","))
    try:
        lines = Path(names[1:]).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as cause:
        rule = f"the file {names[1:]!r} cannot be read as UTF-8 text."
        raise UsageError("--names", rule, "Check the path, or save the file as UTF-8.") from cause
    return tuple(line.strip() for line in lines if line.strip())


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


def note_lines(place: Shell, table: str | Path, schema: "Schema | None" = None) -> None:
    """How lines of a text file become rows: always said, since nobody may look whether it matters for this file.

    And what separates its fields, if only its header line says so.
    """
    from understudy.counts.files import opened
    from understudy.counts.opening import is_of_files
    from understudy.schema.schema import WORDS, parted

    if not is_of_files(table):
        return
    container, name = opened(table, schema), parted(str(table))[0]
    if container.kind != "delimited":
        return
    if container.found:
        words = {sign: word for word, sign in WORDS.items()}
        word = words.get(container.delimiter, container.delimiter)
        place.note(
            f"By its header line, a {word} separates the fields of {name}; to declare it, give --delimiter {word}."
        )
    if container.foreign:
        rest = "otherwise values that are not UTF-8 cannot be read."
        place.note(f"The header of {name} is not UTF-8. If the file is in Latin-1, give --encoding latin-1; {rest}")
    if not container.multiline:
        rest = f"If quoted fields contain line breaks, write {name}::multiline."
        place.note(f"Each line of {name} is read as one row. {rest}")
