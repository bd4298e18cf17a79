"""Unit: who is protected, and how many rows one of them may contribute."""

from dataclasses import dataclass

__all__ = ["Unit"]


@dataclass(frozen=True, slots=True)
class Unit:
    """The privacy unit: one row (no `column`), or everybody named in an id column with at most `rows` rows each.

    Neighbouring tables differ by all rows of one unit (added or removed). Rows beyond the bound are left out before
    counting, so one unit moves any partition of the rows by at most `rows`.
    """

    column: str | None = None
    rows: int = 1
    note: str = ""

    @property
    def sensitivity(self) -> int:
        """Most rows one unit may contribute, so the L1 (and L2) distance of neighbouring counts."""
        return self.rows
