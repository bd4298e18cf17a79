"""MarkovField: a distribution given by conditional tables along a junction tree, its fit and its sampler.

Everything asked of it is exact: marginals inside and outside the bags, records, conditioning on codes. Rules were
applied when it was fitted; a combination without mass cannot be drawn, and conditioning keeps it so.

The size of a model is known before it is built (`GraphicalSize.of`, `ModelGrowth`); a fit that would be larger than
allowed is refused. Fitting draws no randomness, and nothing here sees an exact count.

Drawing records
---------------
Bag by bag, with compiled kernels, from one of two distributions. Independent records: every record takes its fresh
codes from an alias table, one random word per bag. Controlled rounding: of the records that share a separator cell,
each continuation gets its expected number up to one, with exact expectations. There the records of a group are shuffled
first: handing out rounded counts in row order would make children of one parent rise together. Either way a cell of
probability 0 is never drawn, and the records depend on the generator's next words only.

Merged codes
------------
`ExpandedField` serves tables whose columns have many rare values: the relations between columns are kept for merged
codes, and which of its values a merged code stands for is drawn column by column. Marginals, records and conditions
are exact.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, Ints, Words
from understudy.compiled import compiled
from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.models.estimation import (
    Fit,
    NoisyTable,
    Stopping,
    descend,
    estimate_total,
    fold,
    forest_factors,
    head_start,
    is_forest,
    known_cells,
    maximal,
    shrink,
)
from understudy.models.junction_tree import GraphicalSize, JunctionTree, table_faults
from understudy.models.model import (
    Codes,
    Contents,
    ModelFiles,
    StoredModel,
    query_clique,
    query_codes,
    size_list,
    total_faults,
)
from understudy.models.propagation import Answers, Program, calibrate, from_bag_order, joints, spread
from understudy.models.tables import code_dtype, cumulative, norm_sub

_BLOCK = 1 << 14
_SHORT = 1 << 16


class DrawingOrder(Protocol):
    """An order of drawing: at each step fresh columns, given columns drawn before."""

    @property
    def domain(self) -> Domain:
        """The codes."""
        ...

    @property
    def separators(self) -> tuple[Clique, ...]:
        """Per step the columns it depends on, in the order of its table's rows."""
        ...

    @property
    def fresh(self) -> tuple[Clique, ...]:
        """Per step the columns it draws."""
        ...


class Sampler:
    """Draws coded records of one model; made once, used for any number of draws."""

    def __init__(self, tree: DrawingOrder, tables: Sequence[Floats]) -> None:
        self._domain = tree.domain
        self._tables = [np.ascontiguousarray(table) for table in tables]
        place = {name: position for position, name in enumerate(tree.domain.columns)}
        self._plans: list[tuple[Ints, Ints, Ints, Ints]] = []
        for separator, fresh in zip(tree.separators, tree.fresh, strict=True):
            factors = [tree.domain.cells(separator[position + 1 :]) for position in range(len(separator))]
            self._plans.append(
                (
                    np.array([place[name] for name in separator], dtype=np.int64),
                    np.array(factors, dtype=np.int64),
                    np.array([place[name] for name in fresh], dtype=np.int64),
                    np.array(tree.domain.shape(fresh), dtype=np.int64),
                )
            )
        # Made on first use, since models that are drawn by rounding never need them.
        self._aliases: list[Words] | None = None

    def independent(self, rows: int, rng: np.random.Generator) -> dict[str, npt.NDArray[np.integer]]:
        """`rows` independent records."""
        if self._aliases is None:
            self._aliases = [_alias(table) for table in self._tables]
        words = rng.integers(0, 2**64, size=4, dtype=np.uint64)
        drawn = self._empty(rows)
        block = np.zeros((len(drawn), min(rows, _BLOCK)), dtype=np.uint32)
        cells = np.zeros(block.shape[1], dtype=np.uint32)
        for start in range(0, rows, _BLOCK):
            count = min(_BLOCK, rows - start)
            for (separator, factors, fresh, sizes), table, aliases in zip(
                self._plans, self._tables, self._aliases, strict=True
            ):
                _locate(block, count, separator, factors, cells)
                _draw(cells, count, aliases, table.shape[1], words)
                _unpack(cells, count, fresh, sizes, block)
            for position, codes in enumerate(drawn.values()):
                codes[start : start + count] = block[position, :count]
        return drawn

    def rounded(self, rows: int, rng: np.random.Generator) -> dict[str, npt.NDArray[np.integer]]:
        """`rows` records whose counts are the expected ones up to rounding, in random order."""
        words = rng.integers(0, 2**64, size=4, dtype=np.uint64)
        drawn = self._empty(rows)
        block = np.zeros((len(drawn), rows), dtype=np.uint32)
        cells, order = np.zeros(rows, dtype=np.uint32), np.zeros(rows, dtype=np.int64)
        for (separator, factors, fresh, sizes), table in zip(self._plans, self._tables, strict=True):
            _locate(block, rows, separator, factors, cells)
            _round(cells, rows, table, order, words)
            _unpack(cells, rows, fresh, sizes, block)
        for position, codes in enumerate(drawn.values()):
            codes[:] = block[position]
        return drawn

    def _empty(self, rows: int) -> dict[str, npt.NDArray[np.integer]]:
        return {name: np.zeros(rows, dtype=code_dtype(size)) for name, size in self._domain.sizes.items()}


@compiled()  # pragma: no cover
def _next(words):  # type: ignore[no-untyped-def]
    """The next 64 random bits (xoshiro256++, Blackman and Vigna 2019)."""
    total = words[0] + words[3]
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + words[0]
    shifted = words[1] << np.uint64(17)
    words[2] ^= words[0]
    words[3] ^= words[1]
    words[1] ^= words[2]
    words[0] ^= words[3]
    words[2] ^= shifted
    words[3] = (words[3] << np.uint64(45)) | (words[3] >> np.uint64(19))
    return result


@compiled()  # pragma: no cover
def _alias_row(weights, share, small, large, packed):  # type: ignore[no-untyped-def]
    """Alias table of one distribution (Vose 1991): each entry is threshold · 2³² + other cell."""
    size = weights.size
    total, best = 0.0, 0
    for cell in range(size):
        total += weights[cell]
        if weights[cell] > weights[best]:
            best = cell
    few = many = 0
    for cell in range(size):
        share[cell] = weights[cell] * size / total if total > 0.0 else 1.0
        # Whatever rounding leaves over: a possible cell keeps its own slot, an impossible one sends to the likeliest.
        packed[cell] = np.uint64(cell) if weights[cell] > 0.0 else np.uint64(best)
        if share[cell] < 1.0:
            small[few] = cell
            few += 1
        else:
            large[many] = cell
            many += 1
    while few > 0 and many > 0:
        few -= 1
        low, high = small[few], large[many - 1]
        # Threshold and other cell in one word, so that a draw is one look-up. 32 bits move a probability by 2⁻³² at
        # most.
        packed[low] = (np.uint64(share[low] * 4294967296.0) << np.uint64(32)) | np.uint64(high)
        share[high] -= 1.0 - share[low]
        if share[high] < 1.0:
            many -= 1
            small[few] = high
            few += 1


@compiled()  # pragma: no cover
def _alias(table: Floats) -> Words:
    rows, size = table.shape
    packed = np.zeros(rows * size, np.uint64)
    share = np.empty(size)
    small, large = np.empty(size, np.int64), np.empty(size, np.int64)
    for row in range(rows):
        _alias_row(table[row], share, small, large, packed[row * size : (row + 1) * size])
    return packed


@compiled()  # pragma: no cover
def _locate(block, rows, columns, factors, cells):  # type: ignore[no-untyped-def]
    for row in range(rows):
        cells[row] = 0
    for position in range(columns.size):
        codes = block[columns[position]]
        factor = np.uint32(factors[position])
        for row in range(rows):
            cells[row] += codes[row] * factor


@compiled()  # pragma: no cover
def _draw(cells, rows, packed, size, words):  # type: ignore[no-untyped-def]
    """Replaces each separator cell by a drawn cell of the fresh columns."""
    low = np.uint64(0xFFFFFFFF)
    for row in range(rows):
        word = _next(words)
        # Half a word picks among so many slots evenly to 2⁻¹⁶ of each; beyond, a word of its own does.
        if size <= _SHORT:
            slot = ((word >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32)
        else:
            slot = np.uint64((_next(words) >> np.uint64(11)) * (size / 9007199254740992.0))
        entry = packed[np.int64(cells[row]) * size + np.int64(slot)]
        cells[row] = np.uint32(slot if (word & low) < (entry >> np.uint64(32)) else entry & low)


@compiled()  # pragma: no cover
def _unpack(cells, rows, columns, sizes, block):  # type: ignore[no-untyped-def]
    """Writes the codes of the fresh columns; `cells` is used up."""
    for position in range(columns.size - 1, 0, -1):
        codes = block[columns[position]]
        size = np.uint32(sizes[position])
        for row in range(rows):
            rest = cells[row] // size
            codes[row] = cells[row] - rest * size
            cells[row] = rest
    if columns.size:
        codes = block[columns[0]]
        for row in range(rows):
            codes[row] = cells[row]


@compiled()  # pragma: no cover
def _group(cells, rows, groups, order, words):  # type: ignore[no-untyped-def]
    """Rows sorted by cell (`order`), shuffled within each; returns where each cell's rows start."""
    start = np.zeros(groups + 1, np.int64)
    for row in range(rows):
        start[np.int64(cells[row]) + 1] += 1
    for group in range(groups):
        start[group + 1] += start[group]
    filled = start[:-1].copy()
    for row in range(rows):
        at = np.int64(cells[row])
        order[filled[at]] = row
        filled[at] += 1
    for group in range(groups):
        low, count = start[group], start[group + 1] - start[group]
        # Shuffled, or children of one parent would rise together: in row order, counts of two of them are handed out
        # side by side (mbi 1.1.0 does so: its error with MST was 0.137 where 0.059 is right).
        for position in range(count - 1, 0, -1):
            other = np.int64((_next(words) >> np.uint64(11)) * ((position + 1) / 9007199254740992.0))
            order[low + position], order[low + other] = order[low + other], order[low + position]
    return start


@compiled()  # pragma: no cover
def _round(cells, rows, table, order, words):  # type: ignore[no-untyped-def]
    """Replaces separator cells by fresh cells: group of n gets ⌊c + u⌋ − ⌊c' + u⌋ of each (c, c': running sums · n)."""
    groups, size = table.shape
    start = _group(cells, rows, groups, order, words)
    for group in range(groups):
        low, high = start[group], start[group + 1]
        if low == high:
            continue
        total = 0.0
        for cell in range(size):
            total += table[group, cell]
        # One for all cells of the group: each keeps its expected number, and together they fill the group.
        offset = (_next(words) >> np.uint64(11)) / 9007199254740992.0
        reached, done, last = 0.0, low, 0
        for cell in range(size):
            if table[group, cell] <= 0.0:
                continue
            last = cell
            reached += table[group, cell] / total * (high - low)
            end = min(low + np.int64(np.floor(reached + offset)), high)
            while done < end:
                cells[order[done]] = cell
                done += 1
        # A row that rounding of the sums left over goes to the last cell that is possible, never to one of probability
        # 0.
        while done < high:
            cells[order[done]] = last
            done += 1


_BAG_CELLS = 2**31


@dataclass(frozen=True, eq=False)
class MarkovField(StoredModel):
    """A distribution over coded records: per bag of `tree` the probabilities of its fresh columns given its separator.

    With `rounding`, `draw` gives every cell its expected number of records up to rounding (in random order) instead
    of independent records: far less sampling noise, and the rows of one draw are no longer independent.
    """

    kind: ClassVar[str] = "markov_field"
    stored: ClassVar[Mapping[str, str]] = {"probabilities": "<f8"}

    tree: JunctionTree
    tables: tuple[Floats, ...]
    total: float
    rounding: bool = False
    fit: Fit | None = None

    def __post_init__(self) -> None:
        for fault in _faults(self.tree, self.tables, self.total):
            raise UsageError("graphical model", fault)

    @classmethod
    def of_factors(
        cls,
        tree: JunctionTree,
        factors: Sequence[Floats],
        total: float,
        *,
        rounding: bool = False,
        fit: Fit | None = None,
    ) -> Self:
        """The distribution proportional to a product of one factor per bag (rows: separator, columns: fresh).

        Raises:
            UsageError: if the factors leave no combination possible.
        """
        tables, logarithm = calibrate(tree, factors)
        if logarithm == -math.inf:
            raise UsageError("graphical model", "no combination is possible.", "Drop or narrow a rule.")
        return cls(tree, tables, total, rounding, fit)

    @property
    def domain(self) -> Domain:
        """The codes it speaks about."""
        return self.tree.domain

    @cached_property
    def answers(self) -> Answers:
        """Marginals of many cliques at once; see `Answers`."""
        return Answers(self.tree, joints(self.tree, self.tables))

    @cached_property
    def _sampler(self) -> Sampler:
        return Sampler(self.tree, self.tables)

    def marginal(self, clique: Clique) -> Floats:
        """Probabilities of the clique's cells, flat row-major.

        Raises:
            ResourceError: if the table, or one needed on the way, would be too large to hold.
        """
        wanted = query_clique(self.domain, clique)
        return self.answers.one(wanted)

    def marginals(self, cliques: Iterable[Clique]) -> dict[Clique, Floats]:
        """Probabilities of many cliques' cells, flat row-major; all pairs and triples in one pass along the tree."""
        place = {name: position for position, name in enumerate(self.domain.columns)}
        return dict(self.answers.many([self._spelled(clique, place) for clique in cliques]))

    def _spelled(self, clique: Clique, place: Mapping[str, int]) -> Clique:
        """The clique in the order of the domain; most are, and looking through all columns takes long for many."""
        places = [place.get(name, -1) for name in clique]
        ordered = all(first < second for first, second in itertools.pairwise([-1, *places]))
        return clique if ordered else self.domain.clique(clique)

    def draw(self, rows: int, rng: np.random.Generator) -> Codes:
        """`rows` records as the smallest unsigned integers that hold the codes; see `rounding`."""
        if rows < 0:
            raise UsageError("rows", f"must be 0 or more, got {rows}.")
        return self._sampler.rounded(rows, rng) if self.rounding else self._sampler.independent(rows, rng)

    def with_rounding(self) -> Self:
        """The same distribution, drawn by controlled rounding."""
        return replace(self, rounding=True)

    def condition(self, where: Mapping[str, npt.NDArray[np.integer]]) -> Self:
        """The distribution given that each named column holds one of the codes; `total` shrinks with its probability.

        Raises:
            UsageError: if a code is outside its column or the condition has probability 0.
        """
        return self.reweighted(
            {name: query_codes(self.domain, name, codes).astype(np.float64) for name, codes in where.items()}
        )

    def reweighted(self, where: Mapping[str, Floats]) -> Self:
        """The distribution given an event that happens, for each named column, with these probabilities given its code.

        Raises:
            UsageError: if the event has probability 0.
        """
        # The tables are conditionals already; a condition is one factor more in the bag that draws its column.
        factors = list(self.tables)
        total = self.total
        for name, probabilities in where.items():
            if not probabilities.any():
                raise UsageError(f"where {name}", "cannot happen under this model.", "Allow more values.")
            if probabilities.size == 1:
                total *= float(probabilities[0])
                continue
            bag = self.tree.home[name]
            fresh = self.tree.fresh[bag]
            kept = np.broadcast_to(spread(self.domain, fresh, Clique((name,)), probabilities), self.domain.shape(fresh))
            factors[bag] = factors[bag] * kept.reshape(1, -1)
        tables, logarithm = calibrate(self.tree, factors)
        if logarithm == -math.inf:
            raise UsageError(f"where {', '.join(where)}", "cannot happen under this model.", "Allow more values.")
        return type(self)(self.tree, tables, total * min(1.0, math.exp(logarithm)), self.rounding)

    def contents(self) -> Contents:
        """Document and arrays of its file form."""
        bags = zip(self.tree.bags, self.tree.parents, strict=True)
        document = {
            "total": self.total,
            "rounding": self.rounding,
            "domain": size_list(self.domain),
            "bags": [{"columns": list(bag), "parent": parent} for bag, parent in bags],
        }
        return document, {"probabilities": self.tables}

    @classmethod
    def of_contents(cls, files: ModelFiles) -> Self:
        """The model of its file form."""
        domain = files.domain()
        bags: tuple[_StoredBag, ...] = files.value("bags", tuple[_StoredBag, ...])
        if len(bags) > len(domain.columns):
            raise UsageError("bags", "there must be no more of them than columns.")
        tree = JunctionTree(domain, tuple(Clique(bag.columns) for bag in bags), tuple(bag.parent for bag in bags))
        shapes = [
            (domain.cells(separator), domain.cells(fresh))
            for separator, fresh in zip(tree.separators, tree.fresh, strict=True)
        ]
        pieces = files.pieces("probabilities", [math.prod(shape) for shape in shapes])
        tables = tuple(piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True))
        return cls(tree, tables, files.number("total"), files.value("rounding", bool))


@dataclass(frozen=True, slots=True)
class _StoredBag:
    columns: tuple[str, ...]
    parent: int


def _faults(tree: JunctionTree, tables: Sequence[Floats], total: float) -> list[str]:
    found = total_faults(total)
    if any(tree.domain.cells(bag) >= _BAG_CELLS for bag in tree.bags):
        return [*found, "a bag has too many cells."]
    return found + table_faults(tree, tables)


MODEL_BYTES = 2**30
"""Most bytes of a model's tables, unless the caller sets another limit."""


def model_cliques(tables: Sequence[NoisyTable], structural_zeros: Sequence[StructuralZeros]) -> list[Clique]:
    """The cliques a model of these tables and rules is built on; their `GraphicalSize` is the model's."""
    return [*(table.clique for table in tables), *(rule.clique for rule in structural_zeros)]


def fit_forest(
    domain: Domain,
    tables: Sequence[NoisyTable],
    structural_zeros: Sequence[StructuralZeros] = (),
    *,
    total: float | None = None,
    shrunk: bool = True,
) -> MarkovField:
    """The closed form for tables of one or two columns whose pairs form no circle.

    Args:
        domain: The codes.
        tables: What was measured, without groups.
        structural_zeros: Cells that rules exclude, each rule inside a measured pair.
        total: Number of records, estimated from the tables if not given.
        shrunk: Draw noisy pairs towards independence as far as the noise warrants.

    Raises:
        UsageError: if the tables are malformed, not a forest (`is_forest`), or the rules leave nothing possible.
    """
    for table in tables:
        table.check(domain)
    if not is_forest(domain, tables, structural_zeros):
        raise UsageError("closed form", "needs pairs without a circle and rules inside them.", "Use `fit`.")
    records = estimate_total(domain, tables, structural_zeros) if total is None else total
    tree = JunctionTree.of(domain, model_cliques(tables, structural_zeros))
    factors = forest_factors(tree, tables, structural_zeros, records, shrunk=shrunk)
    return MarkovField.of_factors(tree, factors, records)


def fit(
    domain: Domain,
    tables: Sequence[NoisyTable],
    structural_zeros: Sequence[StructuralZeros] = (),
    *,
    start: MarkovField | None = None,
    total: float | None = None,
    steps: int = 1000,
    explained: float | None = None,
    model_bytes: int = MODEL_BYTES,
) -> MarkovField:
    """The maximum-entropy distribution that comes closest to the noisy tables.

    Args:
        domain: The codes.
        tables: What was measured; cliques may overlap, nest and repeat.
        structural_zeros: Cells that rules exclude; they get exactly no mass.
        start: An earlier fit to start from; what it was fitted to must be among the tables. Without it the descent
            starts from a closed-form fit to the strongest forest among what was measured.
        total: Number of records, estimated from the tables if not given.
        steps: Most steps of mirror descent.
        explained: Stop once the loss is this many times what noise alone explains (half the measured cells).
        model_bytes: Most bytes of the model's tables.

    Raises:
        ResourceError: if the model would be larger.
        UsageError: if a table is malformed or the rules leave nothing possible.
    """
    for table in tables:
        table.check(domain)
    cliques = model_cliques(tables, structural_zeros)
    size = GraphicalSize.of(domain, cliques)
    # Before anything is allocated: sizes are public, so a plan can refuse the same.
    if size.bytes > model_bytes:
        raise ResourceError("graphical model", size.bytes, model_bytes, "Measure smaller or fewer overlapping tables.")
    records = estimate_total(domain, tables, structural_zeros) if total is None else total
    tree = JunctionTree.of(domain, cliques)
    program = Program(tree, maximal(table.clique for table in tables))
    program.reset(structural_zeros)
    measured = sum(int(known_cells(domain, table, structural_zeros).sum()) for table in tables)
    enough = -1.0 if explained is None else explained * 0.5 * measured
    before = _beginning(domain, tables, structural_zeros, records, start)
    ended = descend(
        program, fold(program, tables, structural_zeros), records, Stopping(steps=steps, enough=enough), before
    )
    factors = [from_bag_order(tree, bag, program.state(bag)) for bag in range(len(tree.bags))]
    return MarkovField.of_factors(tree, factors, records, fit=ended)


def _beginning(
    domain: Domain,
    tables: Sequence[NoisyTable],
    structural_zeros: Sequence[StructuralZeros],
    total: float,
    start: MarkovField | None,
) -> Fit:
    """Where the descent begins: the earlier fit, moved towards what was measured since, or the strongest forest."""
    if start is None or start.fit is None:
        return Fit(math.inf, 0, 0.0, head_start(domain, tables, structural_zeros, total))
    return replace(
        start.fit, potentials=dict(start.fit.potentials) | _moves(domain, tables, structural_zeros, total, start)
    )


def _moves(
    domain: Domain,
    tables: Sequence[NoisyTable],
    structural_zeros: Sequence[StructuralZeros],
    total: float,
    start: MarkovField,
) -> dict[Clique, npt.NDArray[np.float64]]:
    """For each newly measured clique the log-potential that takes the earlier model to its (shrunk) noisy table."""
    known = start.fit.potentials if start.fit is not None else {}
    fresh = {
        table.clique: table
        for table in tables
        if table.groups is None and not any(set(table.clique) <= set(clique) for clique in known)
    }
    moves = {}
    for clique, expected in start.marginals(fresh).items():
        counts = expected * total
        possible = known_cells(domain, fresh[clique], structural_zeros) & (counts > 0.0)
        drawn = norm_sub(shrink(fresh[clique], counts, possible).values[possible], total)
        change = np.zeros(counts.size)
        # Never to 0: a cell that the descent should have kept could not come back.
        change[possible] = np.log(np.maximum(drawn / counts[possible], 1e-3))
        moves[clique] = change
    return moves


_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Expansion:
    """One column: the merged code of each of its codes, and the probability of the code given the merged one."""

    places: Ints
    shares: Floats

    def sums(self, weights: Floats, merged: int) -> Floats:
        """The weights of codes, added up per merged code."""
        return np.bincount(self.places, weights=weights, minlength=merged).astype(np.float64, copy=False)

    def faults(self, size: int, merged: int) -> list[str]:
        """What is wrong with it, in words; empty if nothing is."""
        if self.places.shape != (size,) or self.shares.shape != (size,):
            return [f"needs one merged code and one probability for each of its {size:,} codes."]
        if self.places.min() < 0 or self.places.max() >= merged:
            return ["merged codes must lie inside the merged column."]
        if not np.all(np.isfinite(self.shares)) or self.shares.min() < 0.0:
            return ["probabilities must be finite and 0 or more."]
        if np.abs(self.sums(self.shares, merged) - 1.0).max() > _SUM_TOLERANCE:
            return ["the probabilities of each merged code must add up to 1."]
        return []

    def restricted(self, mask: npt.NDArray[np.bool_], merged: int) -> tuple["Expansion", Floats]:
        """Given that the code is in the mask: the expansion, and the probability of that for each merged code."""
        probabilities = self.sums(self.shares * mask, merged)
        inside = probabilities[self.places]
        # A merged code without an allowed value cannot occur any more; its old probabilities keep the expansion whole.
        shares = np.where(inside > 0.0, self.shares * mask / np.where(inside > 0.0, inside, 1.0), self.shares)
        return Expansion(self.places, shares), probabilities

    def expanded(
        self, codes: npt.NDArray[np.integer], rng: np.random.Generator, *, rounding: bool
    ) -> npt.NDArray[np.integer]:
        """A code for each merged code; with `rounding` their numbers are as expected, up to rounding."""
        members: list[Ints] = np.split(np.argsort(self.places, kind="stable"), np.cumsum(np.bincount(self.places))[:-1])
        drawn: npt.NDArray[np.integer] = np.array([group[0] for group in members], dtype=code_dtype(self.places.size))[
            codes
        ]
        for merged, group in enumerate(members):
            if group.size > 1:
                rows = np.flatnonzero(codes == merged)
                spots = rng.random(rows.size)
                if rounding:
                    # One spot in each of as many even parts: numbers of codes are as expected up to one, and their
                    # order is random.
                    spots = (rng.permutation(rows.size) + spots) / max(rows.size, 1)
                steps = cumulative(self.shares[group])
                picks = np.searchsorted(steps, np.minimum(spots, np.nextafter(1.0, 0.0)), side="right")
                drawn[rows] = group[picks]
        return drawn


@dataclass(frozen=True, eq=False)
class ExpandedField(StoredModel):
    """A distribution over `domain`: `merged` gives merged codes, `expansions` the values behind them.

    Columns without an expansion have the same codes in both.
    """

    kind: ClassVar[str] = "expanded_field"
    stored: ClassVar[Mapping[str, str]] = {"probabilities": "<f8", "places": "<i8", "shares": "<f8"}

    domain: Domain
    merged: MarkovField
    expansions: Mapping[str, Expansion]

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise UsageError("expanded model", fault)

    @property
    def total(self) -> float:
        """Estimated number of records."""
        return self.merged.total

    def marginal(self, clique: Clique) -> Floats:
        """Probabilities of the clique's cells, flat row-major.

        Raises:
            ResourceError: if the table, or one needed on the way, would be too large to hold.
        """
        wanted = query_clique(self.domain, clique)
        # Columns with one code add nothing but a dimension, and numpy allows only 64 of those.
        axes = [name for name in wanted if self.domain.sizes[name] > 1]
        table = self.merged.marginal(Clique(wanted)).reshape(self.merged.domain.shape(axes))
        for axis, name in enumerate(axes):
            expansion = self.expansions.get(name)
            if expansion is not None:
                shares = expansion.shares.reshape([-1 if other == axis else 1 for other in range(len(axes))])
                table = np.take(table, expansion.places, axis=axis) * shares
        return np.ascontiguousarray(table).ravel()

    def draw(self, rows: int, rng: np.random.Generator) -> Codes:
        """`rows` records as the smallest unsigned integers that hold the codes; see `MarkovField.rounding`."""
        codes = dict(self.merged.draw(rows, rng))
        for name in self.domain.columns:
            if name in self.expansions:
                codes[name] = self.expansions[name].expanded(codes[name], rng, rounding=self.merged.rounding)
        return {name: codes[name] for name in self.domain.columns}

    def condition(self, where: Mapping[str, npt.NDArray[np.integer]]) -> Self:
        """The distribution given that each named column holds one of the codes; `total` shrinks with its probability.

        Raises:
            UsageError: if a code is outside its column or the condition has probability 0.
        """
        expansions, probabilities = dict(self.expansions), dict[str, Floats]()
        for name, codes in where.items():
            mask = query_codes(self.domain, name, codes)
            if name in expansions:
                expansions[name], probabilities[name] = expansions[name].restricted(
                    mask, self.merged.domain.sizes[name]
                )
            else:
                probabilities[name] = mask.astype(np.float64)
        return type(self)(self.domain, self.merged.reweighted(probabilities), expansions)

    def contents(self) -> Contents:
        """Document and arrays of its file form: those of the merged model, and the expansions."""
        document, arrays = self.merged.contents()
        expanded = [[name, self.domain.sizes[name]] for name in self.expansions]
        parts = list(self.expansions.values())
        places, shares = [one.places for one in parts], [one.shares for one in parts]
        return {**document, "expanded": expanded}, {**arrays, "places": places, "shares": shares}

    @classmethod
    def of_contents(cls, files: ModelFiles) -> Self:
        """The model of its file form."""
        merged, sizes = MarkovField.of_contents(files), files.sizes("expanded")
        pieces = zip(files.pieces("places", sizes.values()), files.pieces("shares", sizes.values()), strict=True)
        expansions = {name: Expansion(*parts) for name, parts in zip(sizes, pieces, strict=True)}
        return cls(Domain.of({**merged.domain.sizes, **sizes}), merged, expansions)

    def _faults(self) -> list[str]:
        if self.domain.columns != self.merged.domain.columns:
            return ["both domains must have the same columns."]
        found = []
        for name, size in self.domain.sizes.items():
            inner = self.merged.domain.sizes[name]
            if name in self.expansions:
                found += [f"column {name}: {fault}" for fault in self.expansions[name].faults(size, inner)]
            elif size != inner:
                found.append(f"column {name}: needs an expansion of its merged codes.")
        return found
