"""From noisy overlapping tables to synthetic records, and what that takes in memory.

Steps, all post-processing: (1) each column's codes are sent to fewer ones, by public bins or because values are rare by
the noisy one-way tables; (2) tables of two columns or more are drawn towards independence as far as their noise
warrants; (3) all tables are made to agree, without negative counts; (4) records are laid out by the columns alone (and
by rules), (5) and moved towards the tables, by column sweeps or by gradual update; (6) merged codes fall apart.

Everything that is drawn here comes from `structure_seed`, which is an option and so on record.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from understudy.arrays import Floats, Integers, Ints
from understudy.domain import Clique, Domain, Measurement, StructuralZeros
from understudy.methods.rounds import CoarseTable
from understudy.models.consistency import OverlapTable, consistent
from understudy.models.estimation import NoisyTable, estimate_total, towards_independence
from understudy.models.junction_tree import GraphicalSize
from understudy.models.markov_field import Expansion, fit
from understudy.models.model import Codes
from understudy.models.product import BlockModel
from understudy.models.records import RecordModel, Schedule, Target, column_sweeps, gradual_update, joined, separate
from understudy.models.tables import code_dtype, cumulative, norm_sub, sub_indices

_LEAST_VARIANCE = 1e-9
"""Noise that is surely 0 still needs a weight; only ratios of variances matter."""


@dataclass(frozen=True, slots=True)
class Rare:
    """Which values are rare: a noisy count below `threshold` times σ or below `least`, or beyond the `most` largest.

    `most` = 0: as many as there are.
    """

    threshold: float = 3.0
    least: float = 0.0
    most: int = 0

    def kept(self, answer: Measurement) -> Ints:
        """The codes that keep a code of their own, in order."""
        counts = answer.values
        frequent = counts >= max(self.threshold * answer.distribution.scale, self.least)
        order = np.argsort(-counts, kind="stable")[: self.most or counts.size]
        return np.intersect1d(np.flatnonzero(frequent), order)


@dataclass(frozen=True, slots=True, eq=False)
class Coarsening:
    """`places[column][code]` is the coarser code; columns that are not in it keep their codes."""

    full: Domain
    places: Mapping[str, Ints]

    @classmethod
    def of(
        cls,
        full: Domain,
        answers: Mapping[str, Measurement],
        rare: Mapping[str, Rare],
        *,
        starts: Mapping[str, Sequence[int]] | None = None,
    ) -> Self:
        """Public bins where `starts` has some for a column, else rare values merged where `rare` names it."""
        places: dict[str, Ints] = {}
        for name, answer in answers.items():
            codes = np.arange(full.sizes[name], dtype=np.int64)
            if starts and name in starts:
                places[name] = np.searchsorted(list(starts[name]), codes, side="right").astype(np.int64)
            elif name in rare:
                stay = rare[name].kept(answer)
                if stay.size + 1 < codes.size:
                    places[name] = np.full(codes.size, stay.size, dtype=np.int64)
                    places[name][stay] = np.arange(stay.size)
        return cls(full, places)

    @property
    def domain(self) -> Domain:
        """The coarser codes."""
        return Domain.of(
            {
                name: int(self.places[name].max()) + 1 if name in self.places else size
                for name, size in self.full.sizes.items()
            }
        )

    def query(self, clique: Clique) -> Clique | CoarseTable:
        """What to measure for the clique: itself where none of its columns is coarser."""
        if not set(clique) & set(self.places):
            return clique
        sizes = self.domain.sizes
        places = tuple(self.places.get(name, np.arange(sizes[name], dtype=np.int64)) for name in clique)
        return CoarseTable(f"{' × '.join(clique)}, coarse", clique, places, tuple(sizes[name] for name in clique))

    def column(self, name: str, answer: Measurement) -> OverlapTable:
        """The answer about a column in coarser codes; merged cells add up values and variances."""
        variance = max(answer.distribution.variance, _LEAST_VARIANCE)
        values = answer.values.astype(np.float64)
        if name not in self.places:
            return OverlapTable(Clique((name,)), values, variance)
        size = self.domain.sizes[name]
        sums = np.bincount(self.places[name], weights=values, minlength=size).astype(np.float64)
        members = np.bincount(self.places[name], minlength=size).astype(np.float64)
        return OverlapTable(Clique((name,)), sums, variance * members)

    def table(self, clique: Clique, answer: Measurement) -> OverlapTable:
        """The answer to `query(clique)`."""
        return OverlapTable(
            clique, answer.values.astype(np.float64), max(answer.distribution.variance, _LEAST_VARIANCE)
        )

    def expansion(self, name: str, answer: Measurement, total: float) -> Expansion:
        """How each coarser code falls apart: by the noisy counts of its values, cut to 0 or more."""
        counts = norm_sub(answer.values.astype(np.float64), max(total, 1.0))
        places = self.places[name]
        sums = np.bincount(places, weights=counts)
        members = np.bincount(places)
        even = sums[places] <= 0.0
        shares = np.where(even, 1.0 / members[places], counts / np.where(even, 1.0, sums[places]))
        return Expansion(places, shares)


Update = Literal["sweeps", "gradual", "both"]

LEAST_RECORDS = 1000
"""Fewer records would round small shares away; asking for fewer rows takes some of these."""
_ROW_COPIES = 6
"""Times the records lie in memory at once, at most: as laid out, stacked, moved, expanded, and what is drawn."""
_STEP_BYTES = 28
"""Per record beside its codes: its cell, two lists of rows to move, a random order."""
_PASS_STEPS, _SWEEP_STEPS = 0.06, 0.02
"""One row in one pass over one table of two columns, in steps: 12 nanoseconds when the rows are moved gradually. Of a
sweep 6, and six of ten are made."""
_TOLERANCE = 0.001
"""Sweeps end when one has changed no more than this share of all values. On Adult at ε = 1, 10 and 100 errors are then
those of ten sweeps (a distance of 0.00459, not 0.00457, at ε = 100); at twice the share they begin to grow there."""
_CELL_BYTES = 88
"""Per cell of all tables: the answer, its float, a cleaned one, its variance, sums while tables agree, gaps."""


MOST_STEPS = 2**31
"""Limit of the options of `RecordSynthesis`: rounds, sweeps, records and the seed."""


@dataclass(frozen=True, slots=True)
class RecordSynthesis:
    """How records are made: options that several methods share, checked at construction."""

    update: Update = "sweeps"
    rounds: int = 50
    sweeps: int = 10
    most_records: int = 2**20
    structure_seed: int = 0
    shrink: bool = True

    def bytes(self, domain: Domain, cells: int, rows: int) -> int:
        """Most memory of making records for a table of so many rows, the tables having so many cells in all."""
        width = sum(np.dtype(code_dtype(size)).itemsize for size in domain.sizes.values())
        widest = np.dtype(code_dtype(max(domain.sizes.values()))).itemsize * len(domain.columns)
        records = min(self.most_records, max(rows, LEAST_RECORDS))
        return records * (_ROW_COPIES * max(width, widest) + _STEP_BYTES) + _CELL_BYTES * cells

    def cell_steps(self, tables: int, rows: int) -> int:
        """Rough number of steps, in units of the time that one cell of noise takes."""
        swept = (self.update != "gradual") * self.sweeps * _SWEEP_STEPS
        moved = (self.update != "sweeps") * self.rounds * _PASS_STEPS
        return round(min(rows, self.most_records) * (1 + tables * (swept + moved)))

    def made(
        self,
        coarsening: Coarsening,
        ones: Mapping[str, Sequence[Measurement]],
        tables: Sequence[OverlapTable],
        structural_zeros: Sequence[StructuralZeros],
        blocks: Sequence[Sequence[Clique]] = (),
    ) -> RecordModel:
        """The records, from the noisy tables of all columns (`ones`, each maybe several times) and of `tables`."""
        domain = coarsening.domain
        columns = [coarsening.column(name, answer) for name, answers in ones.items() for answer in answers]
        noisy = [_noisy(table) for table in (*columns, *tables)]
        total = estimate_total(domain, noisy, structural_zeros)
        if self.shrink:
            drawn = towards_independence(domain, noisy, structural_zeros, total)[len(columns) :]
            tables = [
                OverlapTable(table.clique, better.values, table.variances)
                for table, better in zip(tables, drawn, strict=True)
            ]
        fitted = consistent(domain, [*columns, *tables], structural_zeros)
        rng = np.random.default_rng(self.structure_seed)
        parts = {table.clique: counts for table, counts in zip(columns, fitted.counts, strict=False)}
        for name in domain.columns:
            parts.setdefault(Clique((name,)), np.ones(domain.sizes[name]))
        rows = min(self.most_records, max(round(total), LEAST_RECORDS))
        start = laid_out(BlockModel.of_marginals(domain, parts, structural_zeros, total), rows, rng)
        covered = {name for table in tables for name in table.clique}
        targets = [
            Target(table.clique, counts)
            for table, counts in zip((*columns, *tables), fitted.counts, strict=True)
            if counts.sum() > 0.0 and (len(table.clique) > 1 or table.clique[0] not in covered)
        ]
        apart = separate(domain, blocks, structural_zeros)
        codes = self._moved(domain, start, targets, rng, blocks=apart, structural_zeros=structural_zeros)
        return RecordModel(coarsening.full, expanded_codes(coarsening, ones, codes, total, rng), total)

    def _moved(
        self,
        domain: Domain,
        start: Codes,
        targets: Sequence[Target],
        rng: np.random.Generator,
        *,
        blocks: Sequence[Clique],
        structural_zeros: Sequence[StructuralZeros],
    ) -> Codes:
        """The records moved towards the targets: all at once, or block by block and then joined."""
        pieces = []
        for names in blocks or [domain.everything()]:
            inside = Domain.of({name: domain.sizes[name] for name in names})
            rules = [rule for rule in structural_zeros if set(rule.clique) <= set(names)]
            wanted = [target for target in targets if set(target.clique) <= set(names)]
            codes: Codes = {name: start[name] for name in names}
            seed = int(rng.integers(2**62))
            if self.update != "sweeps":
                schedule = Schedule(self.rounds)
                codes = gradual_update(
                    inside, codes, wanted, seed=seed, schedule=schedule, structural_zeros=rules
                ).codes
            if self.update != "gradual":
                codes = column_sweeps(
                    inside,
                    codes,
                    wanted,
                    seed=seed,
                    sweeps=self.sweeps,
                    tolerance=_TOLERANCE * len(names),
                    structural_zeros=rules,
                ).codes
            pieces.append(codes)
        return joined(domain, start, pieces, rng)


def _noisy(table: OverlapTable) -> NoisyTable:
    """For estimates that know one variance per table: the mean of its cells'."""
    return NoisyTable(table.clique, table.values, float(np.mean(table.variances)))


def laid_out(model: BlockModel, rows: int, rng: np.random.Generator) -> Codes:
    """Records whose blocks have just the shares of the model, up to rounding, in random order."""
    laid: dict[str, Integers] = {}
    for block in model.blocks:
        spots = (np.arange(rows) + rng.random()) / rows
        places = np.minimum(
            np.searchsorted(cumulative(block.probabilities), spots, side="right"), block.indices.size - 1
        )
        cells = block.indices[rng.permutation(places)]
        for name in block.clique:
            dtype = code_dtype(model.domain.sizes[name])
            laid[name] = sub_indices(model.domain, block.clique, cells, (name,)).astype(dtype)
    return {name: laid[name] for name in model.domain.columns}


_START_CELLS, _START_STEPS = 2**16, 200
"""Size of the model that records start from, and steps of its fit: more of either changes little and takes longer."""
TRIED_PER_COLUMN = 9
"""Pairs that are tried for such a model, the strongest first."""


def laid_out_together(
    domain: Domain,
    targets: Sequence[Target],
    parts: Mapping[str, Floats],
    structural_zeros: Sequence[StructuralZeros],
    *,
    rows: int,
    rng: np.random.Generator,
) -> Codes:
    """Records of the graphical model that has the strongest of these pairs, up to rounding, in random order.

    Column sweeps leave alone what no target speaks of, so records should begin with what pairs tell of three columns
    and more: all that they do not tell is as random as it can be in this model (largest entropy).

    Args:
        domain: The codes.
        targets: Wanted tables of pairs.
        parts: Counts of every column.
        structural_zeros: Cells that rules exclude.
        rows: How many records.
        rng: Where among equal choices a record falls.
    """
    strongest = _strongest(domain, targets, structural_zeros)
    tables = [NoisyTable(target.clique, target.wanted(rows), 1.0) for target in strongest]
    covered = {name for table in tables for name in table.clique}
    for name, counts in parts.items():
        if name not in covered:
            tables.append(NoisyTable(Clique((name,)), Target(Clique((name,)), counts).wanted(rows), 1.0))
    model = fit(domain, tables, structural_zeros, total=float(rows), steps=_START_STEPS)
    codes = model.with_rounding().draw(rows, rng)
    order = rng.permutation(rows)
    return {name: column[order] for name, column in codes.items()}


def _strongest(domain: Domain, targets: Sequence[Target], rules: Sequence[StructuralZeros]) -> list[Target]:
    """Those with most mutual information whose model stays small, whatever the rules alone make it."""
    told = np.array([_information(target.counts.reshape(domain.shape(target.clique))) for target in targets])
    order = np.argsort(-told, kind="stable")[: TRIED_PER_COLUMN * len(domain.columns)]
    tried = {targets[place].clique: targets[place] for place in order if told[place] > 0.0}
    return [tried[pair] for pair in small_enough(domain, tried, rules)]


def small_enough(domain: Domain, pairs: Iterable[Clique], rules: Sequence[StructuralZeros]) -> list[Clique]:
    """Those of the pairs, the first ones first, whose graphical model stays small, whatever the rules alone make it."""
    kept: list[Clique] = []
    cliques = [rule.clique for rule in rules]
    limit = max(_START_CELLS, 2 * GraphicalSize.of(domain, cliques).cells)
    for pair in pairs:
        if GraphicalSize.of(domain, [*cliques, *kept, pair]).cells <= limit:
            kept.append(pair)
    return kept


def _information(table: Floats) -> float:
    """Information that one column has about the other, in nats.

    >>> _information(np.array([[1.0, 0.0], [0.0, 1.0]])).__round__(4)
    0.6931
    """
    shares = table / table.sum()
    apart = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    full = shares > 0.0
    return float((shares[full] * np.log(shares[full] / apart[full])).sum())


def expanded_codes(
    coarsening: Coarsening,
    ones: Mapping[str, Sequence[Measurement]],
    codes: Codes,
    total: float,
    rng: np.random.Generator,
) -> Codes:
    """The records with every coarser code replaced by one of its values."""
    found = {}
    for name in coarsening.full.columns:
        found[name] = codes[name]
        if name in coarsening.places:
            expansion = coarsening.expansion(name, ones[name][0], total)
            found[name] = expansion.expanded(codes[name], rng, rounding=True)
        found[name] = found[name].astype(code_dtype(coarsening.full.sizes[name]), copy=False)
    return found
