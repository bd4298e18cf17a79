"""MarginalList: which tables a method measures and with which weights. Public: it never comes from private rows.

Written as a workload (`pairs`, `triples`, or tables such as `sex×age:2, age×income`), with two additions:

    income:2                          one column alone: its weight among the one-way tables (1 if it is not listed)
    sex×city×income[1 10 20 51]:6     in this table the codes of `income` are counted in groups, each beginning at one
                                      of the codes in brackets; the first one begins at 0

Brackets stand inside the quotes of a column that needs them.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt

from understudy.errors import UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.mechanisms.workload import Workload, parse_tables

__all__ = ["ListedTable", "MarginalList", "written"]

_GROUPED = re.compile(r"(.*\S)\s*\[([0-9 ]+)\]", re.DOTALL)
_SIGNS = re.compile(r'[×*,:"\[\]]|^\s|\s$|^(pairs|triples)$')


@dataclass(frozen=True, slots=True)
class ListedTable:
    """One table of the second round; `starts` holds, for columns counted in groups, the codes at which groups begin."""

    clique: Clique
    weight: float
    starts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def groups(self, name: str, codes: int) -> npt.NDArray[np.int64]:
        """The group of each code of a column; every code its own if the column is not grouped."""
        places = np.arange(codes, dtype=np.int64)
        return np.searchsorted(self.starts[name], places, side="right") if name in self.starts else places


@dataclass(frozen=True, slots=True)
class MarginalList:
    """Weights of columns other than 1, and the tables of two columns or more."""

    columns: Mapping[str, float]
    tables: tuple[ListedTable, ...]

    @classmethod
    def of(cls, text: str, domain: Domain) -> Self:
        """The list a text stands for; columns with one code are left out of tables, they hold no information.

        Raises:
            UsageError: for text that cannot be read, unknown columns (with the nearest one), or a table listed twice.
        """
        if text.strip() in ("pairs", "triples"):
            tables = Workload.of(text, domain).weights.items()
            return cls({}, tuple(ListedTable(clique, weight) for clique, weight in tables if len(clique) > 1))
        return cls.listed((_read(names, weight, domain) for names, weight in parse_tables(text)), domain)

    @classmethod
    def listed(cls, entries: Iterable[ListedTable], domain: Domain) -> Self:
        """The list of these tables, checked; columns alone become weights."""
        columns: dict[str, float] = {}
        tables: dict[Clique, ListedTable] = {}
        for entry in entries:
            full = domain.clique(entry.clique)
            live = Clique(name for name in full if domain.sizes[name] > 1)
            if (len(full) == 1 and full[0] in columns) or live in tables:
                raise UsageError(f"marginal {' × '.join(full)}", "is listed twice.", "List every table once.")
            if len(full) == 1:
                columns[full[0]] = entry.weight
            elif len(live) > 1:
                tables[live] = ListedTable(live, entry.weight, _checked(entry, live, domain))
        return cls(columns, tuple(tables.values()))


def written(tables: Iterable[Iterable[str]]) -> str:
    """The text that lists these tables with weight 1.

    >>> written([["sex", "age"], ["a, b", "sex"]])
    'sex×age, "a, b"×sex'
    """
    return ", ".join("×".join(_quoted(name) for name in names) for names in tables)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if _SIGNS.search(name) else name


def _read(names: tuple[str, ...], weight: float, domain: Domain) -> ListedTable:
    starts: dict[str, tuple[int, ...]] = {}
    plain = []
    for name in names:
        match = _GROUPED.fullmatch(name)
        if match and name not in domain.sizes:
            name = match[1]
            starts[name] = tuple(int(code) for code in match[2].split())
        plain.append(name)
    if len(set(plain)) < len(plain):
        raise UsageError(f"marginal {' × '.join(plain)}", "names a column twice.", "Name every column once.")
    return ListedTable(domain.clique(plain), weight, starts)


def _checked(entry: ListedTable, live: Clique, domain: Domain) -> dict[str, tuple[int, ...]]:
    for name, starts in entry.starts.items():
        codes = domain.sizes[domain.clique([name])[0]]
        if list(starts) != sorted(set(starts)) or not starts or starts[0] < 1 or starts[-1] >= codes:
            rule = f"must begin at increasing codes from 1 to {codes - 1}, got {' '.join(map(str, starts))}."
            raise UsageError(f"groups of column {name!r}", rule)
    return {name: starts for name, starts in entry.starts.items() if name in live}
