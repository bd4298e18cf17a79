"""Counts of many small tables out of fewer wide ones, which stay for the tables that are asked about later.

Whoever chooses again and again among sets of columns asks about new sets each time, but they overlap: a table of four
columns holds four sets of three, and while one of these is wanted now, the others mostly are later. Summing one out of
a wide table takes microseconds; counting it takes a pass over the rows. Sums of exact counts are exact, and which
tables are wide follows from sizes and from what was asked, never from rows.
"""

from collections.abc import Mapping, Sequence

from understudy.arrays import Ints
from understudy.counts.kernels import cover_for, projected
from understudy.counts.source import CountSource
from understudy.domain import Clique

MOST_WIDE_CELLS = 2**22
"""Most cells of the wide tables that are counted at a time, where the wanted ones have fewer."""


class WideTables:
    """Exact counts of cliques by way of wide tables. Private, as their source is."""

    def __init__(self, source: CountSource) -> None:
        self._source = source
        self._tables: dict[Clique, Ints] = {}
        self._holding: dict[str, set[Clique]] = {}
        self.bytes = 0
        """Memory of what is kept."""

    def known(self, clique: Clique) -> Clique | None:
        """The smallest table that is kept and holds these columns."""
        if not clique:
            return None
        holding = set.intersection(*(self._holding.get(name, set()) for name in clique))
        return min(holding, key=lambda table: (self._tables[table].size, table), default=None)

    def counts(self, cliques: Sequence[Clique], room: int) -> dict[Clique, Ints]:
        """Flat counts of each clique; fresh tables are kept as long as no more than `room` bytes are kept in all."""
        found = self.summed(cliques)
        missing = [clique for clique in dict.fromkeys(cliques) if clique not in found]
        if missing:
            fresh = self._source.counts(self._to_count(missing))
            self._keep(fresh, room)
            found |= self._summed(fresh, _places(missing, fresh))
        return found

    def summed(self, cliques: Sequence[Clique]) -> dict[Clique, Ints]:
        """Counts of those cliques that kept tables hold."""
        return self._summed(
            self._tables,
            {clique: table for clique in cliques if (table := self.known(clique)) is not None},
        )

    def _to_count(self, missing: Sequence[Clique]) -> list[Clique]:
        """Wide tables that hold all of these, or these themselves where that would take far more memory."""
        domain = self._source.domain
        wide = list(cover_for(domain, missing).tables)
        cells, fewest = (sum(map(domain.cells, tables)) for tables in (wide, missing))
        # `Clique()`, the number of rows, is in no table.
        return [*wide, *(one for one in missing if not one)] if cells <= max(MOST_WIDE_CELLS, fewest) else [*missing]

    def _keep(self, fresh: Mapping[Clique, Ints], room: int) -> None:
        for table, counts in fresh.items():
            if table and table not in self._tables and self.bytes + counts.nbytes <= room:
                self._tables[table] = counts
                self.bytes += counts.nbytes
                for name in table:
                    self._holding.setdefault(name, set()).add(table)

    def _summed(self, tables: Mapping[Clique, Ints], places: Mapping[Clique, Clique]) -> dict[Clique, Ints]:
        wanted: dict[Clique, list[Clique]] = {}
        for clique, table in places.items():
            wanted.setdefault(table, []).append(clique)
        found: dict[Clique, Ints] = {}
        for table, cliques in wanted.items():
            found.update(projected(self._source.domain, table, tables[table], cliques))
        return found


def _places(cliques: Sequence[Clique], tables: Mapping[Clique, Ints]) -> dict[Clique, Clique]:
    """For each clique the smallest of the tables that holds it."""
    ordered = [(set(table), table) for table in sorted(tables, key=lambda table: (tables[table].size, table))]
    return {
        clique: clique if clique in tables else next(table for names, table in ordered if names.issuperset(clique))
        for clique in cliques
    }
