"""Workload: which marginals matter, and how much. Public: it comes from the user or the schema, never from rows.

`pairs` and `triples` mean all of them. Anything else is a list of tables:

    sex×age:2, age×income, "odd, name"*sex

Columns of a table are joined by × or *, tables are separated by commas, a number after a colon is the weight (1 if
there is none). A column whose name holds one of these signs, quotes, or spaces at its ends is written in double
quotes, with a quote in it doubled.
"""

import itertools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from understudy.errors import UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain

__all__ = ["COUNTED_CELLS", "ROUND_CELLS", "Workload", "check_workload", "parse_tables", "within"]

_DEGREES = {"pairs": 2, "triples": 3}
_TOKEN = re.compile(r'\s*("(?:[^"]|"")*"|[×*,:]|[^×*,:"]+)')
COUNTED_CELLS = 2**24
"""Most cells of tables counted, predicted and compared once; at about 24 bytes each."""
ROUND_CELLS = 2**22
"""Most cells of tables predicted and compared round after round: time and memory of every round grow with them."""
_MOST_TABLES = 200_000
_MOST_COLUMNS = 12


@dataclass(frozen=True, slots=True)
class Workload:
    """Weighted tables over the columns with two codes or more; the others hold no information."""

    weights: Mapping[Clique, float]

    @classmethod
    def of(cls, text: str, domain: Domain) -> Self:
        """The workload a text stands for; see the module for its syntax.

        Raises:
            UsageError: for text that cannot be read, an unknown column (with the nearest one), or too many tables.
        """
        live = [name for name in domain.columns if domain.sizes[name] > 1]
        degree = _DEGREES.get(text.strip())
        if degree is None:
            named = [(domain.clique(names), weight) for names, weight in parse_tables(text)]
            return cls(_merged((Clique(n for n in clique if n in live), weight) for clique, weight in named))
        if math.comb(len(live), degree) > _MOST_TABLES:
            raise UsageError(
                f"workload {text}",
                f"would be {math.comb(len(live), degree):,} tables, more than {_MOST_TABLES:,}.",
                "Name the tables that matter.",
            )
        degree = min(degree, len(live))
        return cls({Clique(names): 1.0 for names in itertools.combinations(live, degree) if names})

    def candidates(self, domain: Domain, table_cells: int) -> dict[Clique, float]:
        """Every part of a table of the workload, with its weight w_r = Σ_s c_s |r ∩ s|.

        Tables beyond `table_cells` are left out, then the largest until all fit in memory; columns always stay.
        """
        parts = {
            Clique(part)
            for clique in self.weights
            for size in range(1, len(clique) + 1)
            for part in itertools.combinations(clique, size)
            if size == 1 or domain.cells(part) <= table_cells
        }
        place = {name: position for position, name in enumerate(domain.columns)}
        ordered = sorted(parts, key=lambda part: (len(part), [place[name] for name in part]))
        # Σ_s c_s |r ∩ s| is the sum, over the columns of r, of the weights of all tables that hold the column.
        share: dict[str, float] = {}
        for clique, weight in self.weights.items():
            for name in clique:
                share[name] = share.get(name, 0.0) + weight
        return {part: sum(share[name] for name in part) for part in within(domain, ordered, ROUND_CELLS)}


def within(domain: Domain, cliques: Iterable[Clique], most_cells: int) -> list[Clique]:
    """The cliques whose tables together stay within `most_cells`, largest left out first; columns always stay."""
    listed = list(cliques)
    kept, used = set(), 0
    for clique in sorted(listed, key=lambda clique: (len(clique) > 1, domain.cells(clique))):
        used += domain.cells(clique)
        if len(clique) > 1 and used > most_cells:
            break
        kept.add(clique)
    return [clique for clique in listed if clique in kept]


def check_workload(text: object) -> None:
    """Raises UsageError unless the text can be read; columns are checked once the domain is known."""
    if not isinstance(text, str):
        raise _unreadable(str(text), "it must be text")
    if text.strip() not in _DEGREES:
        parse_tables(text)


def parse_tables(text: str) -> list[tuple[tuple[str, ...], float]]:
    """The named tables of a workload text with their weights.

    >>> parse_tables('sex×age:2, "a, b" * c')
    [(('sex', 'age'), 2.0), (('a, b', 'c'), 1.0)]
    """
    matches = list(_TOKEN.finditer(text.strip()))
    tokens = [match.group(1).strip() for match in matches]
    if sum(len(match.group(0)) for match in matches) != len(text.strip()):
        raise _unreadable(text, "a quote is not closed")
    found = []
    for separator, group in itertools.groupby(tokens, key=lambda token: token == ","):
        if not separator:
            found.append(_table(text, list(group)))
    if not found:
        raise _unreadable(text, "it names no table")
    return found


def _table(text: str, tokens: list[str]) -> tuple[tuple[str, ...], float]:
    weight = 1.0
    if ":" in tokens:
        place = tokens.index(":")
        try:
            (number,) = tokens[place + 1 :]
            weight = float(number)
        except ValueError:
            raise _unreadable(text, "a colon must be followed by one number") from None
        if not math.isfinite(weight) or weight <= 0.0:
            raise _unreadable(text, f"a weight must be above 0, got {number}")
        tokens = tokens[:place]
    names, joints = tokens[::2], tokens[1::2]
    if len(tokens) % 2 == 0 or any(joint not in ("×", "*") for joint in joints) or {*names} & {"×", "*", ""}:
        raise _unreadable(text, "columns must be joined by × or *")
    if len(names) > _MOST_COLUMNS:
        raise _unreadable(text, f"a table has at most {_MOST_COLUMNS} columns, got {len(names)}")
    return tuple(name[1:-1].replace('""', '"') if name.startswith('"') else name for name in names), weight


def _unreadable(text: str, why: str) -> UsageError:
    return UsageError(
        f"workload {text!r}", f"cannot be read: {why}.", "Use pairs, triples, or tables such as: sex×age:2, age×income"
    )


def _merged(tables: Iterable[tuple[Clique, float]]) -> dict[Clique, float]:
    found: dict[Clique, float] = {}
    for clique, weight in tables:
        if clique:
            found[clique] = found.get(clique, 0.0) + weight
    return found
