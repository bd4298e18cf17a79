"""What the schema cannot read of a table, column by column: said before any score, because no score can mend it.

Tables are judged as their files have them. A value that is there and that the schema cannot read (a label that is not
in the list, text where a number is due) has a code of its own here, which a release never writes: it counts as a
difference in every metric. A number beyond the bounds is judged as part of the end bin, as the schema reads it, so its
share is all that shows. Shares are of the values that are there, missing ones apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.codec.axis import axis_of
from understudy.codec.table_codec import TableCodec
from understudy.evaluate.data.rows import Rows
from understudy.schema import Boolean, Category, OpenCategory, code_names
from understudy.schema.column import NumberColumn

__all__ = ["Unread", "declared_size", "unread_columns", "wholly_unread"]


@dataclass(frozen=True, slots=True)
class Unread:
    """Shares of one column's values, in the real or the synthetic table, that the schema cannot read as they are."""

    column: str
    table: str
    unreadable: float
    beyond: float
    why: str

    def sentences(self) -> tuple[str, ...]:
        """What to tell about the column; examples are never shown.

        >>> Unread("sex", "real", 0.512, 0.0, "are not among its labels").sentences()
        ('sex: 51 % of the real values are not among its labels (examples are not shown).',)
        """
        found = []
        if self.unreadable:
            values = f"{_percent(self.unreadable)} of the {self.table} values"
            found.append(f"{self.column}: {values} {self.why} (examples are not shown).")
        if self.beyond:
            values = f"{_percent(self.beyond)} of the {self.table} values"
            found.append(f"{self.column}: {values} lie beyond its bounds and are judged as part of its end bins.")
        return tuple(found)


def _percent(share: float) -> str:
    if share < 0.0005:
        return "less than 0.1 %"
    return f"{100 * share:.0f} %" if 0.1 <= share < 0.995 or share == 1 else f"{100 * share:.1f} %"


def unread_columns(real: Rows, copies: Sequence[Rows]) -> tuple[Unread, ...]:
    """Every column of which something cannot be read as it is, the real table first, the largest share first."""
    found = [_unread(real, name, "real") for name in _columns(real.codec)]
    for copy in copies:
        found += [_unread(copy, name, "synthetic") for name in _columns(copy.codec)]
    worst: dict[tuple[str, str], Unread] = {}
    for one in found:
        before = worst.get((one.table, one.column))
        if (one.unreadable or one.beyond) and (before is None or before.unreadable < one.unreadable):
            worst[one.table, one.column] = one
    return tuple(sorted(worst.values(), key=lambda one: (one.table, -one.unreadable, -one.beyond)))


def _columns(codec: TableCodec) -> tuple[str, ...]:
    return tuple(dict.fromkeys(codec.origin(part) for part in codec.domain.columns))


def _unread(rows: Rows, name: str, table: str) -> Unread:
    column = rows.codec.schema.column(name)
    part = code_names(column)[0]
    layout = rows.codec.layout(part)
    present = rows.count if layout.missing_code is None else int((rows.codes[part] != layout.missing_code).sum())
    odd = 0 if layout.unreadable_code is None else int((rows.codes[part] == layout.unreadable_code).sum())
    beyond = 0
    if isinstance(column, NumberColumn):
        why = f"cannot be read as its kind, {column.kind}"
        raw, axis = rows.raw(name), axis_of(column)
        outside = (raw < float(axis.lower)) | (raw > float(axis.upper))
        beyond = int((outside & ~np.isnan(rows.numbers[name])).sum())
    else:
        assert isinstance(column, Category | OpenCategory | Boolean)
        why = "are neither true nor false" if isinstance(column, Boolean) else "are not among its labels"
    return Unread(name, table, odd / max(present, 1), beyond / max(present, 1), why)


def wholly_unread(rows: Rows, part: str) -> bool:
    """Whether no value that is there can be read, and some are there."""
    layout = rows.codec.layout(part)
    unread = rows.codes[part] == layout.unreadable_code
    return bool(unread.any() and (unread | (rows.codes[part] == layout.missing_code)).all())


def declared_size(codec: TableCodec, part: str) -> int:
    """How many codes of a column the schema declares; the others, for what it does not expect, come after them."""
    layout, column = codec.layout(part), codec.schema.column(codec.origin(part))
    own = layout.regular + layout.special + layout.other
    # The kind of a split number has one code for whatever is no number, special values included.
    kind = part != code_names(column)[0] and bool(getattr(column, "special", ()))
    return own + (layout.missing and (column.missing or kind))
