"""Schema: the ordered columns of a table, who is protected, and the rules known beforehand."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from understudy.errors import Problem, SchemaError, UsageError, nearest
from understudy.schema.column import Column, Derived
from understudy.schema.names import same_but_for_spelling, undeclared_problems
from understudy.schema.rule import Impossible
from understudy.schema.unit import Unit

__all__ = ["Schema"]


@dataclass(frozen=True, slots=True)
class Schema:
    """Public knowledge about a table. Checked at construction: a `Schema` that exists is a valid one.

    Raises:
        SchemaError: with every problem found, not only the first.
    """

    columns: tuple[Column, ...]
    unit: Unit
    rules: tuple[Impossible, ...] = ()
    title: str = ""
    note: str = ""
    unreadable: str = "keep"
    """What becomes of values that cannot be read in columns with neither missing nor other: `keep` gives them a code of
    their own, `drop` leaves out the rows that hold one."""

    def __post_init__(self) -> None:
        from understudy.schema.check import problems_of  # `check` needs the types above

        for field in ("columns", "rules"):
            given = getattr(self, field)
            if isinstance(given, list):
                object.__setattr__(self, field, tuple(given))
        found = problems_of(self)
        if found:
            raise SchemaError(found)

    @property
    def names(self) -> tuple[str, ...]:
        """All column names in output order, derived ones included."""
        return tuple(column.name for column in self.columns)

    @property
    def modelled(self) -> tuple[Column, ...]:
        """The columns that are counted and modelled: all but the derived ones."""
        return tuple(column for column in self.columns if not isinstance(column, Derived))

    def column(self, name: str) -> Column:
        """The column of that name; an unknown name raises with the closest one."""
        for column in self.columns:
            if column.name == name:
                return column
        raise UsageError(f"column {name!r}", "is not in the schema.", nearest(name, self.names))

    def header_problems(self, names: Iterable[str]) -> list[Problem]:
        """What keeps a table with these column names from being read under this schema."""
        present = list(names)
        wanted = [column.name for column in self.modelled]
        if self.unit.column is not None:
            wanted.append(self.unit.column)
        if not set(wanted) & set(present):
            # Most likely the first line is a row, not a header: then none of its values may be quoted.
            fix = f"Its first line must name them as the schema does: {', '.join(wanted)}."
            return [Problem("table", "holds none of the columns that the schema declares.", fix)]
        others = [name for name in present if name not in self.names and name != self.unit.column]
        found = [_absent(name, others) for name in wanted if name not in present]
        repeated = [name for name in dict.fromkeys([*self.names, *wanted]) if present.count(name) > 1]
        found += [Problem(f"column {name!r}", "appears twice in the table.", "Rename one.") for name in repeated]
        return found + undeclared_problems(others)

    @classmethod
    def from_yaml(cls, source: str | Path) -> "Schema":
        """Reads a schema file; raises SchemaError with all problems at once."""
        from understudy.schema.document import read_schema  # keeps YAML out of programs that build schemas in Python

        return read_schema(Path(source))

    def to_yaml(self, target: str | Path) -> None:
        """Writes the schema so that `from_yaml` returns an equal one."""
        from understudy.schema.document import write_schema

        write_schema(self, Path(target))


def _absent(name: str, others: Sequence[str]) -> Problem:
    """A declared column that the table lacks. Other names in the table are not listed: they may be a row's values."""
    spelled = same_but_for_spelling(name, others)
    fix = f'The table has "{spelled}": names must be equal.' if spelled else "Names must be as in its header."
    return Problem(f"column {name!r}", "is declared in the schema but not in the table.", fix)
