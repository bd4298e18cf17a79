"""Drafts of schemas for tables and files, and what a public table shows of its columns.

Of the private table only names and storage types are looked at. A public table may be read, since anybody may read it:
which kind of values its columns hold, labels, bounds, decimals, the form of dates, whether values are absent. Bounds
are rounded outwards to plain numbers, because the private table may hold a little more.
"""

import datetime as dt
import itertools
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import narwhals as nw
import narwhals.dependencies as known
import pyarrow.compute as pc

from understudy.counts.files import Container, container_of
from understudy.counts.frames import is_frame
from understudy.counts.opening import header_of, is_of_files, open_table
from understudy.counts.source import texts_of
from understudy.errors import InputError, UsageError
from understudy.schema import OpenCategory, Schema, Unit
from understudy.schema.codebooks import ColumnFacts, read_codebook
from understudy.schema.columns import MISSING_VALUES, MOST_LABEL_BYTES, read_moment
from understudy.schema.draft import Draft, draft_schema
from understudy.schema.guesses import CODED, guess_of
from understudy.schema.schema import Dialect, located, parted, unlike_names
from understudy.schema.yaml_text import with_file

MOST_LABELS = 1000
"""A text column of a public table with more different values than this becomes an open category."""
_WHOLE = re.compile(r"[-+]?\d{1,18}", re.ASCII)
_REAL = re.compile(r"[-+]?(\d{1,300}(\.(\d*))?|\.(\d+))([eE][-+]?\d{1,2})?", re.ASCII)
_ISO = {
    "date": re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
    "datetime": re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.0+)?)?(Z|[+-]\d\d:?\d\d)?", re.ASCII),
    "time": re.compile(r"\d\d:\d\d(:\d\d)?", re.ASCII),
}
_FORMATS = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%d-%b-%Y", "%d %b %Y", "%d %B %Y", "%B %d, %Y")
_TRUTHS = frozenset({"true", "false", "True", "False", "TRUE", "FALSE"})
_MOST_DECIMALS = 6


def draft(
    table: object,
    *,
    like: object = None,
    codebook: str | Path | Iterable[str | Path] = (),
    unit: Unit | str | None = None,
    names_are_right: bool = False,
) -> Draft:
    """A first schema for a table, of which only names and storage types are read.

    Args:
        table: a frame, or a file in any form that can be read.
        like: a public table with columns of the same names, which may be read.
        codebook: files that describe the columns; the first that states something is believed.
        unit: who is protected, if that is decided; "row" is `Unit()`.
        names_are_right: take names that look like values as names.

    Raises:
        InputError: the table, or the public one, cannot be used.
        SchemaError: a codebook cannot be understood, or what was said contradicts itself.
        UsageError: unit is a text other than "row".
    """
    protected = _unit(unit)
    of_files = isinstance(table, str | Path) and is_of_files(table)
    container = _container(str(table), number_repeated=names_are_right) if of_files else None
    header = header_of_table(table) if container is None else list(container.header)
    books = [codebook] if isinstance(codebook, str | Path) else list(codebook)
    facts = [fact for book in books for fact in read_codebook(book, [name for name, _ in header])]
    facts += _facts_of_types(table, public=False)
    facts += (
        []
        if like is None
        else [
            *_facts_of_types(like, public=True),
            *facts_of_table(like, names_are_right=names_are_right),
        ]
    )
    text = draft_schema(header, facts=facts, unit=protected, names_are_right=names_are_right)
    return Draft(text if container is None else with_file(text, container.unusual))


def _unit(given: Unit | str | None) -> Unit | None:
    if given == "row":
        return Unit()
    if given is not None and not isinstance(given, Unit):
        fix = "For an id column give unit=us.Unit(column=…, rows=…), with the most rows that one id may have."
        raise UsageError("unit", f"must be a Unit or the text 'row', got {type(given).__name__}.", fix)
    return given


def _container(location: str | Path, *, number_repeated: bool) -> Container:
    """The files; where several columns of text have one name, the later ones are numbered, and a draft declares it."""
    found = container_of(location)
    times = Counter(found.names)
    if not number_repeated or max(times.values()) == 1 or found.kind not in ("delimited", "excel"):
        return found
    names: list[str] = []
    for position, name in enumerate(found.names):
        again = itertools.count(2)
        own = name = name or f"column {position + 1}"
        while own in names or (own != name and own in times):
            own = f"{name} {next(again)}"
        names.append(own)
    return container_of(located(str(location), Dialect(names=tuple(names), header=True)))


def header_of_table(table: object) -> list[tuple[str, str]]:
    """Names and Arrow types of the columns of a frame or of anything else that can be opened; reads no row."""
    if is_frame(table):
        return [(name, arrow_name(kind)) for name, kind in _types(table)]
    return header_of(table)


def _types(table: Any) -> list[tuple[str, str]]:
    if known.is_pandas_dataframe(table):
        # Not asked of narwhals, which looks at objects to tell text from others.
        return [(str(name), str(kind)) for name, kind in zip(table.columns, table.dtypes, strict=True)]
    if known.is_pyarrow_table(table):
        return [(column.name, str(column.type)) for column in table.schema]
    if known.is_polars_dataframe(table) or known.is_polars_lazyframe(table):
        return [(name, str(kind)) for name, kind in table.collect_schema().items()]
    return [(name, str(kind)) for name, kind in nw.from_native(table, eager_only=True).schema.items()]


def arrow_name(kind: str) -> str:
    """The name of the Arrow type that a type of pandas or polars comes to.

    >>> arrow_name("Int64"), arrow_name("datetime64[ns, UTC]"), arrow_name("object"), arrow_name("Float64")
    ('int64', 'timestamp[ns, tz=UTC]', 'string', 'double')
    """
    plain = kind.removesuffix("[pyarrow]")
    moment = re.fullmatch(
        r"(?:datetime64\[(\w+)(?:, (.+))?\]|Datetime\(time_unit='(\w+)', time_zone='?([^')]*)'?\))", plain
    )
    if moment:
        unit, zone = moment[1] or moment[3], moment[2] or moment[4]
        return f"timestamp[{unit}]" if not zone or zone == "None" else f"timestamp[{unit}, tz={zone}]"
    if re.fullmatch(r"[Uu]?[Ii]nt\d+", plain):
        return plain.lower()
    simple = {"date": "date32[day]", "time": "time64[us]", "boolean": "bool", "float32": "float", "float64": "double"}
    if plain.lower() in simple:
        return simple[plain.lower()]
    if re.match(r"category|Categorical|Enum", plain):
        return "dictionary<values=string, indices=int32, ordered=0>"
    return "string" if re.match(r"object|str|String|Utf8|string", plain) else plain


def _facts_of_types(table: Any, *, public: bool) -> list[ColumnFacts]:
    """The labels that types of a frame list in order: enums of polars, and ordered categories of a public pandas frame.

    Categories of pandas are mostly the values that its rows hold, so those of a private frame are never looked at. An
    enum is declared, though its labels may have been taken from rows as well: a person must confirm.
    """
    listed: dict[str, list[object]] = {}
    if public and known.is_pandas_dataframe(table):
        kinds = zip(table.columns, table.dtypes, strict=True)
        listed = {str(name): list(kind.categories) for name, kind in kinds if getattr(kind, "ordered", False)}
    elif known.is_polars_dataframe(table) or known.is_polars_lazyframe(table):
        enums = [(name, kind) for name, kind in table.collect_schema().items() if str(kind).startswith("Enum")]
        listed = {name: list(getattr(kind, "categories", ())) for name, kind in enums}
    doubt = "" if public else "labels of the column's type; confirm them if they were declared, not taken from the rows"
    origin = "the public table's type" if public else "the column's type"
    return [
        ColumnFacts(name, {"kind": "category", "labels": labels, "ordered": True}, origin, doubt=doubt)
        for name, values in listed.items()
        if (labels := tuple(str(value) for value in values))
        and all(isinstance(value, str | int) for value in values)
        and not _left_out(name)
    ]


def facts_of_table(table: object, *, names_are_right: bool = False) -> list[ColumnFacts]:
    """What a public table shows of its columns, ids and free text apart. Reads its rows.

    Raises:
        InputError: the table cannot be used.
    """
    name = Path(parted(str(table))[0]).name if isinstance(table, str | Path) else ""
    origin = f"the public table {name}".rstrip()
    header = header_of_table(table)
    odd = 0 if names_are_right else unlike_names([column for column, _ in header])
    if odd:
        rule = f"the first line of the public table looks like values, not names: {odd} of {len(header)} columns."
        raise InputError("like", rule, "Put a line of names above it. If these are names, give names_are_right=True.")
    usable = [column for column, _ in header if column and "\0" not in column]
    names = [column for column in usable if not _left_out(column, usable)]
    if not names:
        raise InputError("like", "has no column that could be described.", "Give a table with a header as like=.")
    schema = Schema(tuple(OpenCategory(name=column) for column in names), Unit())
    seen = {column: _Seen() for column in names}
    for _, columns in open_table(table, schema).batches(names):
        for column in names:
            texts = texts_of(columns[column])
            seen[column].absent |= bool((texts.places < 0).any())
            used = pc.unique(texts.values).to_pylist()
            seen[column].add(value for value in used if value)
    return [
        ColumnFacts(column, said, origin, shown=seen[column].few)
        for column in names
        if (said := seen[column].said(coded=_coded(column)))
    ]


def _left_out(name: str, beside: Collection[str] = ()) -> bool:
    guess = guess_of(name, beside=beside)
    return guess is not None and not guess.said


def _coded(name: str) -> bool:
    """Whether the name is that of codes or labels, so that numbers under it are labels, too."""
    guess = guess_of(name)
    return guess is not None and guess is not CODED and guess.kind in ("category", "open_category")


@dataclass(slots=True)
class _Seen:
    """What the values of one public column had in common so far."""

    labels: set[str] = field(default_factory=set)
    kinds: set[str] = field(default_factory=lambda: {"integer", "float", *_ISO, *_FORMATS})
    low: str | float | None = None
    high: str | float | None = None
    decimals: int = 0
    absent: bool = False
    unreadable: bool = False
    zoned: bool = False

    @property
    def few(self) -> tuple[str, ...]:
        """The different values as labels; none if they are too many or too long."""
        long = any(len(label.encode()) > MOST_LABEL_BYTES for label in self.labels)
        return () if long or len(self.labels) > MOST_LABELS else tuple(sorted(self.labels, key=_by_size))

    def add(self, values: Iterable[bytes]) -> None:
        """Takes different values into account."""
        for raw in values:
            try:
                text = raw.decode().strip()
            except UnicodeDecodeError:
                self.unreadable = True
                continue
            if text in MISSING_VALUES:
                self.absent = True
                continue
            if len(self.labels) <= MOST_LABELS:
                self.labels.add(text)
            self._narrow(text)

    def _narrow(self, text: str) -> None:
        """Gives up every kind that the value is not of, and widens the bounds."""
        real = _REAL.fullmatch(text)
        if "integer" in self.kinds and (not _WHOLE.fullmatch(text) or re.match(r"[-+]?0\d", text)):
            self.kinds.discard("integer")
        if real is None or re.match(r"[-+]?0\d", text):
            self.kinds.discard("float")
        for kind, form in _ISO.items():
            if kind in self.kinds and not form.fullmatch(text):
                self.kinds.discard(kind)
        self.kinds -= {form for form in self.kinds & set(_FORMATS) if not _reads(text, form)}
        if real is not None and "float" in self.kinds:
            self.decimals = max(self.decimals, len(real[3] or real[4] or ""), 9 if real[5] else 0)
            number = float(text)
            self.low = number if not isinstance(self.low, float) else min(self.low, number)
            self.high = number if not isinstance(self.high, float) else max(self.high, number)
        elif self.kinds & {*_ISO, *_FORMATS}:
            moment = self._sortable(text)
            self.zoned |= bool(re.search(r"(Z|[+-]\d\d:?\d\d)$", text[16:]))
            self.low = moment if not isinstance(self.low, str) else min(self.low, moment)
            self.high = moment if not isinstance(self.high, str) else max(self.high, moment)

    def _sortable(self, text: str) -> str:
        form = next((form for form in _FORMATS if form in self.kinds), None)
        return text if form is None else read_moment(text, form).date().isoformat()

    def said(self, *, coded: bool) -> dict[str, object]:
        """Keys of a column that could hold all of them; nothing if the column showed nothing certain."""
        if not self.labels:
            return {}
        return {**self._kind(coded=coded), "missing": self.absent or self.unreadable}

    def _kind(self, *, coded: bool) -> dict[str, object]:
        if self.labels <= _TRUTHS:
            return {"kind": "boolean"}
        if "integer" in self.kinds and not coded:
            low, high = outward(float(self.low or 0), float(self.high or 0), whole=True)
            return {"kind": "integer", "lower": int(low), "upper": int(high)}
        if "float" in self.kinds and not coded:
            low, high = outward(float(self.low or 0), float(self.high or 0))
            digits = {"decimals": self.decimals} if 0 < self.decimals <= _MOST_DECIMALS else {}
            return {"kind": "float", "lower": low, "upper": high, **digits}
        moments = self.kinds & {*_ISO, *_FORMATS}
        if moments and not coded:
            return self._moment(moments)
        return {"kind": "category", "labels": self.few} if self.few else {"kind": "open_category"}

    def _moment(self, kinds: set[str]) -> dict[str, object]:
        """Whole years around the dates. Where day and month could be either, only the kind is certain."""
        forms = kinds & set(_FORMATS)
        kind = next((kind for kind in _ISO if kind in kinds), "date")
        if kind == "time":
            return {"kind": "time"}
        if len(forms) > 1:
            return {"kind": "date"}
        first, last = int(str(self.low)[:4]), int(str(self.high)[:4])
        said: dict[str, object] = {"kind": kind, "format": next(iter(forms))} if forms else {"kind": kind}
        if kind == "datetime":
            zone = dt.UTC if self.zoned else None
            start, end = dt.datetime(first, 1, 1, tzinfo=zone), dt.datetime(last, 12, 31, 23, 59, 59, tzinfo=zone)
            return said | {"lower": start, "upper": end} | ({"zone": "UTC"} if self.zoned else {})
        return said | {"lower": dt.date(first, 1, 1), "upper": dt.date(last, 12, 31)}


def _by_size(label: str) -> tuple[float, str]:
    return (float(label) if _REAL.fullmatch(label) else math.inf, label)


def _reads(text: str, form: str) -> bool:
    try:
        read_moment(text, form)
    except ValueError:
        return False
    return True


def outward(low: float, high: float, *, whole: bool = False) -> tuple[float, float]:
    """Plain numbers around a range: multiples of the power of ten that halves it at least.

    >>> outward(17, 98, whole=True), outward(1, 12, whole=True), outward(0.634, 5.045), outward(1994, 2024, whole=True)
    ((10.0, 100.0), (1.0, 12.0), (0.0, 6.0), (1990.0, 2030.0))
    """
    span = high - low
    power = math.floor(math.log10(span / 2)) if 0 < span < math.inf else 0
    power = max(power, 0) if whole else max(power, -300)
    if power >= 0:
        step = 10**power
        lower, upper = float(math.floor(low / step) * step), float(math.ceil(high / step) * step)
    else:
        scale = 10**-power
        lower, upper = math.floor(low * scale) / scale, math.ceil(high * scale) / scale
    lower, upper = min(lower, low), max(upper, high)
    return (lower, upper) if lower < upper else (lower, lower + 1)
