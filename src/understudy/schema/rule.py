"""Rules across columns: combinations that cannot occur, known without looking at the data."""

from collections.abc import Mapping
from dataclasses import dataclass

from understudy.schema.column import Point

__all__ = ["Impossible", "Range"]


@dataclass(frozen=True, slots=True)
class Range:
    """Values from `lower` to `upper`, both included; None leaves a side open."""

    lower: Point | None = None
    upper: Point | None = None


@dataclass(frozen=True, slots=True)
class Impossible:
    """No record satisfies all conditions at once. A condition is a set of labels (None for missing) or a range.

    Such cells are removed before noise and never emitted; rows that claim one are left out of the counts.
    """

    when: Mapping[str, tuple[str | None, ...] | Range]
    note: str = ""
