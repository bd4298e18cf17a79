"""Which marginals a method measures, and with which weights. Public: from the user, the schema or a public table.

Workloads
---------
`pairs` and `triples` mean all of them. Anything else is a list of tables:

    sex×age:2, age×income, "odd, name"*sex

Columns of a table are joined by × or *, tables are separated by commas, a number after a colon is the weight (1 if
there is none). A column whose name holds one of these signs, quotes, or spaces at its ends is written in double
quotes, with a quote in it doubled.

Lists of marginals
------------------
Written as a workload (`pairs`, `triples`, or tables such as `sex×age:2, age×income`), with two additions:

    income:2                          one column alone: its weight among the one-way tables (1 if it is not listed)
    sex×city×income[1 10 20 51]:6     in this table the codes of `income` are counted in groups, each beginning at one
                                      of the codes in brackets; the first one begins at 0

Brackets stand inside the quotes of a column that needs them.

A list from a public table
--------------------------
By the rule of the challenge's winner. THE TABLE MUST BE PUBLIC: the list is computed from its exact counts, and whoever
sees the list learns about them. An earlier year, another region, a published sample; never the table to be protected.

Pairs: the maximum spanning tree of mutual information. Triples: for each column with two neighbours or more in the
tree, neighbours b and c are linked if ‖P(a, b, c) − P(a, b)·P(a, c)/P(a)‖₁ is at least `LEAST_GAP`; the links of a
maximum spanning tree among them give the pair (b, c) and the triple (a, b, c). Mutual information is corrected for the
number of occupied cells (Miller and Madow): a small table makes wide columns look dependent. Tables beyond `MOST_CELLS`
are not listed.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, TypeVar

import numpy as np
import numpy.typing as npt

from understudy.arrays import Ints
from understudy.domain import Clique, Domain, Measurement, Partition, ResidualTable
from understudy.errors import UsageError
from understudy.methods.method import PublicCounts
from understudy.privacy.cost import Cost
from understudy.privacy.curator import Curator

Query = TypeVar("Query", bound=Clique | Partition)
Reply = TypeVar("Reply")

_DEGREES = {"pairs": 2, "triples": 3}
_TOKEN = re.compile(r'\s*("(?:[^"]|"")*"|[×*,:]|[^×*,:"]+)')
COUNTED_CELLS = 2**24
"""Most cells of tables counted, predicted and compared once; at about 24 bytes each."""
SCORED_CELLS = 2**28
"""Most cells of pairs that are counted and scored part by part: they take time, and the memory of one part."""
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
        return {part: math.fsum(share[name] for name in part) for part in within(domain, ordered, ROUND_CELLS)}


def within(domain: Domain, cliques: Iterable[Clique], most_cells: int) -> list[Clique]:
    """The cliques whose tables together stay within `most_cells`, largest left out first; columns always stay."""
    listed = list(cliques)
    cells = [domain.cells(clique) for clique in listed]
    if sum(cells) <= most_cells:
        return listed
    kept, used = set(), 0
    for place in sorted(range(len(listed)), key=lambda place: (len(listed[place]) > 1, cells[place])):
        used += cells[place]
        if len(listed[place]) > 1 and used > most_cells:
            break
        kept.add(place)
    return [clique for place, clique in enumerate(listed) if place in kept]


def check_workload(_option: str, text: str) -> None:
    """Raises UsageError unless the text can be read; columns are checked once the domain is known."""
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


BATCH_CELLS = 2**23
"""Most cells counted in one pass over the rows (64 MiB)."""


def alone(columns: Sequence[str]) -> list[Clique]:
    """Every column as a clique of its own."""
    return [Clique((name,)) for name in columns]


def at_costs(curator: Curator, queries: Sequence[Clique | Partition], costs: Sequence[Cost]) -> list[Measurement]:
    """Noisy answers to all queries, each at exactly its cost, in ε or in ρ."""
    return _at_costs(curator.measure, curator.domain, queries, costs)


def residuals_at_costs(curator: Curator, cliques: Sequence[Clique], costs: Sequence[Cost]) -> list[ResidualTable]:
    """Noisy residuals of all cliques, each at exactly its cost, in ρ."""
    return _at_costs(curator.measure_residuals, curator.domain, cliques, costs)


def _at_costs(
    ask: Callable[[Sequence[Query], Cost, Sequence[float]], list[Reply]],
    domain: Domain,
    queries: Sequence[Query],
    costs: Sequence[Cost],
) -> list[Reply]:
    answers: list[Reply] = []
    for low, high in _batches([_cells(query, domain) for query in queries], costs):
        part = costs[low:high]
        # Whole numbers as weights: their shares of the sum are whole again, so each query costs its cost exactly.
        weights = [cost.rho or cost.epsilon for cost in part]
        answers += ask(queries[low:high], sum(part, Cost()), weights)
    return answers


def _batches(cells: Sequence[int], costs: Sequence[Cost]) -> Iterator[tuple[int, int]]:
    """Queries that follow each other, fit together and are paid in the same currency."""
    start, cells_left = 0, BATCH_CELLS
    for place, size in enumerate(cells):
        if place > start and (size > cells_left or bool(costs[place].rho) != bool(costs[start].rho)):
            yield start, place
            start, cells_left = place, BATCH_CELLS
        cells_left -= size
    if start < len(cells):
        yield start, len(cells)


def _cells(query: Clique | Partition, domain: Domain) -> int:
    return domain.cells(query) if isinstance(query, Clique) else query.cells


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


LEAST_GAP = 0.1
MOST_CELLS = 10**6
PUBLIC_BATCH_CELLS = 2**22
"""Cells of public tables counted and held at a time."""
_CELL_BYTES = 32
"""Per such cell: its count, the table it is summed from, and the shares compared."""
_FAVOUR = 100.0


def marginals_from_public(counts: PublicCounts, domain: Domain, together: Sequence[str] = ()) -> str:
    """The list of marginals, as `nist_mst` takes it, that a PUBLIC table suggests.

    Args:
        counts: gives exact counts of public rows.
        domain: the codes that are counted.
        together: columns whose pairs come first, and whose pairs (and triple, if they are three) are always listed.

    Raises:
        UsageError: if the public table has no rows, or no table of two columns is small enough.
    """
    names = [name for name in domain.columns if domain.sizes[name] > 1]
    favoured = domain.clique(together)
    if not int(counts([Clique()])[Clique()][0]):
        raise UsageError("public table", "has no rows.", "Give one with rows, or write the list of marginals.")
    if len(names) < 2:
        return written([domain.columns[:1]])
    pairs = [Clique(pair) for pair in itertools.combinations(names, 2) if domain.cells(pair) <= MOST_CELLS]
    strength = {
        pair: _information(table.reshape(domain.shape(pair))) + _FAVOUR * (set(pair) <= set(favoured))
        for pair, table in _tables(counts, domain, pairs)
    }
    tree = _spanning(strength)
    found = dict.fromkeys([*tree, *(Clique(pair) for pair in itertools.combinations(favoured, 2))])
    if len(favoured) == 3:
        found[favoured] = None
    for pair, triple in _triples(counts, domain, tree):
        found |= dict.fromkeys((pair, triple))
    if not found:
        rule = f"suggests no table of two columns: all have more than {MOST_CELLS:,} cells."
        raise UsageError("public table", rule, "Use coarser bins, or write the list of marginals.")
    return written(found)


def counting_bytes(domain: Domain) -> int:
    """Most memory that making the list takes, for a plan."""
    live = [size for size in domain.sizes.values() if size > 1]
    pairs = (sum(live) ** 2 - sum(size**2 for size in live)) // 2
    # A triple may come alone into a batch, but never with more cells than a pair may have.
    return _CELL_BYTES * min(PUBLIC_BATCH_CELLS, max(pairs, MOST_CELLS if len(live) > 2 else 0))


def _triples(counts: PublicCounts, domain: Domain, tree: Sequence[Clique]) -> Iterator[tuple[Clique, Clique]]:
    """Pairs of neighbours in the tree that the column between them does not explain, with that column."""
    centres = {
        Clique(pair): centre
        for centre in domain.columns
        for pair in itertools.combinations(_neighbours(domain, tree, centre), 2)
        if domain.cells((centre, *pair)) <= MOST_CELLS
    }
    wanted = {domain.clique((centre, *pair)): (centre, pair) for pair, centre in centres.items()}
    gaps: dict[str, dict[Clique, float]] = {centre: {} for centre in domain.columns}
    for clique, table in _tables(counts, domain, list(wanted)):
        centre, pair = wanted[clique]
        gap = _gap(np.moveaxis(table.reshape(domain.shape(clique)), clique.index(centre), 0))
        if gap >= LEAST_GAP:
            gaps[centre][pair] = gap
    for centre, links in gaps.items():
        for pair in _spanning(links):
            yield pair, domain.clique((centre, *pair))


def _neighbours(domain: Domain, tree: Sequence[Clique], centre: str) -> list[str]:
    near = {name for pair in tree if centre in pair for name in pair if name != centre}
    return [name for name in domain.columns if name in near]


def _tables(counts: PublicCounts, domain: Domain, cliques: Sequence[Clique]) -> Iterator[tuple[Clique, Ints]]:
    """Each clique with its counts, no more of them in memory at a time than a batch holds."""
    start, cells_left = 0, PUBLIC_BATCH_CELLS
    for place, clique in enumerate(cliques):
        cells = domain.cells(clique)
        if cells > cells_left and place > start:
            yield from counts(cliques[start:place]).items()
            start, cells_left = place, PUBLIC_BATCH_CELLS
        cells_left -= cells
    if start < len(cliques):
        yield from counts(cliques[start:]).items()


def _spanning(strength: Mapping[Clique, float]) -> list[Clique]:
    """Kruskal's maximum spanning forest; ties go to the earlier pair."""
    part: dict[str, str] = {name: name for pair in strength for name in pair}
    chosen = []
    for pair in sorted(strength, key=lambda pair: -strength[pair]):
        first, second = part[pair[0]], part[pair[1]]
        if first != second:
            chosen.append(pair)
            part = {name: first if other == second else other for name, other in part.items()}
    return chosen


def _information(table: Ints) -> float:
    """Mutual information of a table of two columns, corrected for the number of occupied cells."""
    return _entropy(table.sum(axis=1)) + _entropy(table.sum(axis=0)) - _entropy(table.ravel())


def _entropy(counts: Ints) -> float:
    held = counts[counts > 0]
    rows = int(held.sum())
    shares = held / rows
    return float(-(shares * np.log(shares)).sum()) + (held.size - 1) / (2.0 * rows)


def _gap(table: Ints) -> float:
    """‖P(a, b, c) − P(a, b)·P(a, c)/P(a)‖₁ of a table over a, b and c."""
    shares = table / table.sum()
    one = shares.sum(axis=(1, 2), keepdims=True)
    product = shares.sum(axis=2, keepdims=True) * shares.sum(axis=1, keepdims=True)
    return float(np.abs(shares - product / np.where(one > 0.0, one, 1.0)).sum())
