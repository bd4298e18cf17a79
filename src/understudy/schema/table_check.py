"""What a check of a table under a schema found: columns left out and, if rows were looked at, how they are read.

Plain values and their words; nothing is read here. A check of the rows is confidential, unless it was made with noise
and paid for. `understudy.synthesizer.checking` makes both.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

OUTCOMES = ("inside", "outside", "missing", "unreadable")
"""What may become of a value: it is a label or a number within the bounds; it is outside the bounds (then it counts in
an end bin) or outside the list (then it counts as `other`); it is absent; it is there and cannot be read."""

CONFIDENTIAL = (
    "CONFIDENTIAL. NOT FOR RELEASE. Computed from the private table; no privacy guarantee covers these numbers."
)
DECISIONS = (
    "CONFIDENTIAL. Decisions taken from these numbers are not covered by the guarantee either: "
    "bounds, labels and formats belong in a schema because a public source says so."
)
SHAPES = "shapes of unreadable values"


@dataclass(frozen=True, slots=True)
class ColumnCheck:
    """How one column is read: shares of its rows, which add up to 1, and the most frequent shapes of odd values.

    In a shape every letter is an a and every digit a 9. With noise the shares are estimates and there are no shapes.
    """

    column: str
    kind: str
    inside: float
    outside: float
    missing: float
    unreadable: float
    shapes: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class TableCheck:
    """The check of a table whose header fits the schema.

    Without a look at the rows `columns` is empty and nothing in it is private. With one, it is `confidential`, unless
    an `epsilon` was paid for it.
    """

    left_out: tuple[str, ...]
    """Columns of the table that the schema does not declare."""
    remarks: tuple[str, ...] = ()
    """What to look at, by names and storage types alone: people may be meant where rows are protected, for example."""
    rows: int | None = None
    """Number of rows; with noise, an estimate of how many were counted."""
    columns: tuple[ColumnCheck, ...] = ()
    epsilon: float | None = None
    delta: float = 0.0
    error: float = 0.0
    """With noise: no share is off by more because of it, in 95 of 100 cases."""

    @property
    def confidential(self) -> bool:
        """Whether it tells of private rows what nobody paid for."""
        return self.rows is not None and self.epsilon is None

    def __getitem__(self, column: str) -> ColumnCheck:
        for one in self.columns:
            if one.column == column:
                return one
        raise KeyError(column)

    @property
    def first_line(self) -> str:
        """What has to be said before any number; empty if rows were not looked at."""
        if self.confidential:
            return CONFIDENTIAL
        if self.rows is None:
            return ""
        delta = f", δ = {self.delta:g}" if self.delta else ""
        off = f"{100 * self.error:.1f} percentage points"
        return f"With noise, paid with ε = {self.epsilon:g}{delta}: a share may be off by {off}."

    @property
    def last_line(self) -> str:
        """What has to be said after the numbers; empty if nothing is confidential."""
        return DECISIONS if self.confidential else ""

    def table(self) -> tuple[tuple[str, ...], list[list[str]]]:
        """Headings and lines of text for people; a heading of numbers begins with ">"."""
        shown = any(one.shapes for one in self.columns)
        headings = ("column", "kind", *(f">{outcome}" for outcome in OUTCOMES), *((SHAPES,) if shown else ()))
        lines = []
        for one in self.columns:
            shares = [percent(getattr(one, outcome)) for outcome in OUTCOMES]
            shapes = ", ".join(f"{shape} ({percent(share)})" for shape, share in one.shapes)
            lines.append([one.column, one.kind, *shares, *([shapes] if shown else [])])
        return headings, lines

    def frame(self) -> "pa.Table":
        """One row for each column of the schema; as confidential as the check is."""
        import pyarrow as pa

        fields = ("column", "kind", *OUTCOMES)
        held = {field: [getattr(one, field) for one in self.columns] for field in fields}
        held["shapes"] = [[shape for shape, _ in one.shapes] for one in self.columns]
        kinds = [pa.string(), pa.string(), *[pa.float64()] * len(OUTCOMES), pa.list_(pa.string())]
        return pa.table(held, schema=pa.schema(list(zip(held, kinds, strict=True))))

    def to_json(self) -> dict[str, object]:
        """Everything as plain values."""
        noise = {} if self.epsilon is None else {"epsilon": self.epsilon, "delta": self.delta, "error": self.error}
        columns = [
            {"column": one.column, "kind": one.kind}
            | {outcome: getattr(one, outcome) for outcome in OUTCOMES}
            | {"shapes": [{"shape": shape, "share": share} for shape, share in one.shapes]}
            for one in self.columns
        ]
        looked = {} if self.rows is None else {"rows": self.rows, **noise, "columns": columns}
        notice = {"notice": f"{self.first_line} {self.last_line}".strip()} if self.rows is not None else {}
        facts = {"left_out": list(self.left_out), "remarks": list(self.remarks)}
        return {"confidential": self.confidential, **notice, **facts, **looked}

    def __repr__(self) -> str:
        if self.rows is None:
            return f"TableCheck(left_out={self.left_out!r}, remarks={self.remarks!r})"
        headings, lines = self.table()
        grid = [[heading.removeprefix(">") for heading in headings], *lines]
        widths = [max(len(line[place]) for line in grid) for place in range(len(headings))]
        text = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in grid]
        return "\n".join(filter(None, [self.first_line, f"rows: {self.rows:,}", *text, self.last_line]))


def percent(share: float) -> str:
    """A share as people read it; only nothing is 0 % and only all is 100 %.

    >>> percent(0.0), percent(0.0001), percent(0.123), percent(0.9999), percent(1.0)
    ('0 %', '<0.1 %', '12.3 %', '>99.9 %', '100 %')
    """
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    if share < 0.001:
        return "<0.1 %"
    return ">99.9 %" if share > 0.999 else f"{100 * share:.1f} %"
