"""DPFieldGroups: groups of columns that go together, each with a table of its own; groups are independent.

Source: the entry of that name (team gardn999) in Match 3 of the 2018 challenge, after its public program.

Steps. (1) The number of rows, at `total_share` (`published`: not asked). (2) The groups: given (`groups`), as in the
challenge (`match_three`), or found out for `selection_share`: how far each pair of columns is from independent (InDif),
with noise; then groups are joined, closest first, while their table stays within `group_cells` and the noisy score
exceeds its noise and what independent columns show by chance. (P pairs share the cost, so this is for few columns;
where no score could exceed the noise, nothing is asked.) (3) The table of each of the G groups, at equal cost. (4)
Rows: of each group a cell, independently.

Privacy. Neighbours differ by the rows of one unit, at most k. A pair's score moves by less than 4k (see
`privacy/dependence.py`), so P scores with Laplace noise of scale 4kP/ε_s cost ε_s. Each group's table puts a
row in one cell: Laplace noise of scale kG/ε_t. All parts add up to ε. Thresholds and joining are post-processing.
Pure ε only.

Threshold. Of a wide table most cells are empty, and what noise puts there must go. `published`: counts below
1.9 · (G/ε) · log₁₀(cells) become 0. An empty cell of B passes that with probability ½·B^(−0.825), so about ½·B^0.175
false cells survive, more the wider the table. Default: the smallest threshold at which `kept_empty` empty cells are
expected to pass, and only where the noise of the whole table is expected to be more than 16 times the rows (up to
there, measured on tables of many shapes, the projection on the noisy total alone is closer). Tables above
`dense_cells` are never written out (sparse noise, exactly equal in distribution).

Differs from the source. Domains are public; noise is integer and exact; a group without any surviving cell is uniform
over what rules allow instead of the first code; values outside the domain are handled by the schema.

Groups are written as `sex+age, income+city`: columns of a group joined by `+`, groups separated by commas. A column
whose name holds one of these signs (or quotes, or blanks at an end) stands in double quotes, a quote inside them
doubled. `>= N` behind a group is a least number of rows, for methods that know what to do with it. Columns that a rule
ties together must share a table, so groups that a rule touches are joined, whatever was written.
"""

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from understudy.arrays import Floats, Ints
from understudy.domain import SCORE_UNIT, Clique, Distribution, Domain, StructuralZeros
from understudy.errors import ResourceError, UsageError, nearest
from understudy.methods.laplace import smallest_threshold
from understudy.methods.marginals import COUNTED_CELLS, within
from understudy.methods.match_three import MATCH_THREE
from understudy.methods.method import (
    Method,
    Plan,
    PublicFacts,
    Step,
    expected_absolute,
    noisy_step,
    seconds_for,
)
from understudy.methods.rounds import RemainingBudget, live_columns
from understudy.models.product import Block, BlockModel
from understudy.models.tables import allowed, clip_rescale, linked, norm_sub
from understudy.options import check_share, option
from understudy.privacy.cost import Cost, Currency, check_sparse, distribution_for, score_distribution
from understudy.privacy.curator import Curator
from understudy.privacy.dependence import IndependenceGap

CELL_LIMIT = 2**62
"""Tables beyond this cannot even be sparse."""
_TOKEN = re.compile(r'\s*("(?:[^"]|"")*"|[+,]|>=\s*[0-9]+|[^+,">]+)')


@dataclass(frozen=True, slots=True)
class Group:
    """Columns that share a table; asked about only where there are at least so many rows."""

    columns: Clique
    least_rows: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class NoisyGroup:
    """Noisy counts of a group: of all its cells, or of those at or above `threshold` (None: all)."""

    group: Group
    indices: Ints
    values: Ints
    distribution: Distribution
    cells: int
    threshold: int | None = None


def parse_groups(text: str, domain: Domain, where: str, *, ignore_unknown: bool = False) -> list[Group]:
    """The groups that a text names, in its order.

    >>> [tuple(group.columns) for group in parse_groups("b + a, c", Domain.of({"a": 2, "b": 2, "c": 2}), "groups")]
    [('a', 'b'), ('c',)]

    Raises:
        UsageError: for a text that is not of this form, an unknown column, or one named twice.
    """
    found, seen = list[Group](), set[str]()
    for names, least in _read(text, where):
        known = [name for name in names if name in domain.sizes or not ignore_unknown]
        for name in known:
            if name not in domain.sizes:
                raise UsageError(f"{where}: column {name!r}", "is not in the schema.", nearest(name, domain.columns))
            if name in seen:
                raise UsageError(f"{where}: column {name!r}", "is named twice.", "Groups must not overlap.")
            seen.add(name)
        if known:
            found.append(Group(domain.clique(known), least))
    return found


def check_groups(where: str, text: str) -> None:
    """Raises UsageError unless this is text of the form that `parse_groups` reads."""
    _read(text, where)


def tied(domain: Domain, groups: Iterable[Group], structural_zeros: Sequence[StructuralZeros]) -> list[Group]:
    """The groups with those that rules tie together joined, in the order of the domain."""
    by_clique = {group.columns: group.least_rows for group in groups}
    return [
        Group(domain.clique(name for part in parts for name in part), max(by_clique[part] for part in parts))
        for parts in linked(domain, by_clique, structural_zeros)
    ]


def check_group(domain: Domain, group: Group, method: str) -> None:
    """Refuses a group whose table would be too large even in sparse form."""
    cells = domain.cells(group.columns)
    if cells >= CELL_LIMIT:
        where = f"method {method}: group {' + '.join(group.columns)} of {cells:,} cells"
        raise ResourceError(where, 8 * cells, 8 * CELL_LIMIT, "Split the group or use coarser bins.")


def measured_group(curator: Curator, group: Group, cost: Cost, dense_cells: int, threshold: int) -> NoisyGroup:
    """The group's table with Laplace noise: whole up to `dense_cells` cells, above that what reaches the threshold."""
    cells = curator.domain.cells(group.columns)
    if cells <= dense_cells:
        dense = curator.measure([group.columns], cost)[0]
        return NoisyGroup(group, np.arange(cells, dtype=np.int64), dense.values, dense.distribution, cells)
    sparse = curator.measure_sparse(group.columns, cost, threshold)
    return NoisyGroup(group, sparse.indices, sparse.values, sparse.distribution, cells, threshold)


def block_of(
    domain: Domain, noisy: NoisyGroup, weights: Floats, structural_zeros: Sequence[StructuralZeros]
) -> list[Block]:
    """The group as a block of a model; uniform over what rules allow if nothing has weight."""
    possible = allowed(domain, noisy.group.columns, noisy.indices, structural_zeros)
    kept = np.where(possible, np.maximum(weights, 0.0), 0.0)
    if not kept.sum() > 0.0:
        return uniform_blocks(domain, noisy.group.columns, structural_zeros)
    return [Block.of(noisy.group.columns, noisy.indices, kept)]


def uniform_blocks(domain: Domain, columns: Clique, structural_zeros: Sequence[StructuralZeros]) -> list[Block]:
    """Every code of these columns equally likely, as far as rules allow."""
    part = Domain.of({name: domain.sizes[name] for name in columns})
    rules = [rule for rule in structural_zeros if set(rule.clique) <= set(columns)]
    return list(BlockModel.uniform(part, rules, 1.0).blocks)


def _read(text: str, where: str) -> list[tuple[list[str], int]]:
    found, names, least = list[tuple[list[str], int]](), list[str](), 0
    wanted, place = True, 0
    while place < len(text.rstrip()):
        token = _TOKEN.match(text, place)
        if token is None:
            raise UsageError(where, f"cannot be read from {text[place : place + 20]!r} on.", "Write a+b, c+d.")
        place = token.end()
        part = token.group(1).strip()
        if part in "+,":
            if wanted or (part == "+" and least):
                raise UsageError(where, f"has a {part!r} where a column should be.", "Write a+b, c+d.")
            if part == ",":
                found.append((names, least))
                names, least = [], 0
            wanted = True
        elif part.startswith(">="):
            if wanted:
                raise UsageError(where, "has a number of rows before any column.", "Write a+b >= 1000.")
            least = int(part[2:])
        else:
            if not wanted:
                raise UsageError(where, f"lacks a '+' or ',' before {part!r}.", "Write a+b, c+d.")
            names.append(part[1:-1].replace('""', '"') if part.startswith('"') else part)
            wanted = False
    if names or found:
        if wanted:
            raise UsageError(where, "ends where a column should be.", "Write a+b, c+d.")
        found.append((names, least))
    return found


def written_cells(domain: Domain, groups: Iterable[Group], dense_cells: int) -> int:
    """Cells that are written out, for plans."""
    return sum(min(math.prod(domain.shape(group.columns)), dense_cells) for group in groups)


_CHOSEN, _CHALLENGE = "", "match_three"
_BLOCK_BYTES = 80
_LOUD = 16.0


@dataclass(frozen=True, slots=True)
class FieldGroups(Method):
    """Method: a noisy table for each group of columns, thresholded; rows join independent draws."""

    name: ClassVar[str] = "fieldgroups"
    summary: ClassVar[str] = "Independent groups of columns, each with its own noisy table."
    source: ClassVar[str] = "DPFieldGroups (gardn999), Match 3 of the 2018 NIST challenge; default threshold corrected."
    needs: ClassVar[str] = "A schema; groups of columns that go together, or a share of ε to find them."
    limits: ClassVar[str] = "Pure ε only. Keeps no relation between groups. At most 2⁶² cells per group."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure",)

    groups: str = option(
        _CHOSEN,
        help="groups such as sex+age,income+city (others alone); match_three; empty: found privately, at a cost",
        check=check_groups,
    )
    published: bool = option(False, help="threshold and shares of the original program")
    selection_share: float = option(0.1, help="share of ε for finding groups if none are given", share=True)
    total_share: float = option(0.01, help="share of ε for the number of rows", share=True)
    kept_empty: int = option(
        1, help="expected number of empty cells of a wide table whose noise passes the threshold", least=1, most=10**7
    )
    group_cells: int = option(10_000, help="largest group (in cells) that can be found", least=1, most=2**40)
    dense_cells: int = option(2**20, help="largest table written out (about 80 bytes a cell)", least=1, most=2**28)

    def _check_together(self) -> None:
        check_share("selection_share + total_share", self.selection_share + self.total_share)

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """Total, pairs (if groups are found out), tables; refuses groups beyond 2⁶² cells."""
        if cost.rho or not cost.epsilon:
            raise UsageError(f"method {self.name}", "gives pure ε and is paid in ε alone.", "Drop delta=.")
        domain = facts.domain
        for_total, for_pairs, for_tables = self._split(cost)
        steps = list[Step]()
        if not self.published:
            steps.append(noisy_step("measure total", for_total, 1, facts.unit_rows))
        pairs = _pairs(domain)
        found_out = self._found_out(domain)
        if found_out:
            steps.append(Step(f"score {len(pairs)} pairs", for_pairs, len(pairs), None, None))
        fewest = tied(domain, self._given(domain), facts.structural_zeros)
        distribution = distribution_for(for_tables.share(1 / len(fewest)), facts.unit_rows, "measure groups")
        self._check(domain, fewest, distribution)
        cells = written_cells(domain, fewest, self.dense_cells)
        what = f"measure {'up to ' if found_out else ''}{len(fewest)} groups"
        steps.append(Step(what, for_tables, cells, distribution.scale, expected_absolute(distribution)))
        counted = sum(map(domain.cells, pairs)) if found_out else 0
        most = max(cells, min(len(fewest) * self.group_cells, domain.cells(domain.columns))) if found_out else cells
        taken = _BLOCK_BYTES * most + 24 * counted + 64 * (facts.rows_hint or 0)
        return Plan(
            self,
            cost,
            sum((step.cost for step in steps), Cost()),
            tuple(steps),
            cells,
            taken,
            seconds_for(facts, most + counted // 4),
            self._notes(domain, fewest, distribution),
            schedule=(for_total, for_pairs, fewest),
            after_counting=taken,  # blocks are made when all rows were read once and are kept as codes
            most_bytes=taken,
        )

    def run(self, curator: Curator, plan: Plan) -> BlockModel:
        """Measures the total, finds groups if none were given, measures their tables; the blocks are the model."""
        domain, remaining = curator.domain, RemainingBudget(curator, plan.granted)
        for_total, for_pairs, groups = plan.schedule
        bought = None
        if not self.published:
            bought = max(1.0, float(curator.measure([Clique()], for_total)[0].values[0]))
        if self._found_out(domain):
            groups = self._find(curator, groups, for_pairs, math.inf if bought is None else bought)
        part = remaining.left.share(1 / len(groups))
        distribution = distribution_for(part, curator.unit_rows, "measure groups")
        noisy = []
        for place, group in enumerate(groups):
            paid = part if place + 1 < len(groups) else remaining.left
            threshold = self._threshold(distribution, domain.cells(group.columns))
            noisy.append(measured_group(curator, group, paid, self.dense_cells, threshold))
        total = bought if bought is not None else _sum(noisy)
        blocks = [
            block
            for group in noisy
            for block in block_of(domain, group, self._weights(group, total), curator.structural_zeros)
        ]
        return BlockModel(domain, tuple(blocks), total)

    def _check(self, domain: Domain, groups: Sequence[Group], distribution: Distribution) -> None:
        """Refuses in advance what cannot be held."""
        for group in groups:
            check_group(domain, group, self.name)
            cells = domain.cells(group.columns)
            if cells > self.dense_cells:
                check_sparse(distribution, cells, self._threshold(distribution, cells), f"method {self.name}")

    def _find(self, curator: Curator, groups: list[Group], cost: Cost, total: float) -> list[Group]:
        """The groups that noisy pair scores suggest; as they are where no score could exceed the noise."""
        domain = curator.domain
        gaps = IndependenceGap("pairs", _pairs(domain), domain)
        distribution = score_distribution(cost, len(gaps.options), gaps.sensitivity * curator.unit_rows, "score pairs")
        if _least(distribution, domain) >= 2.0 * total:  # the largest possible score
            return groups
        answer = curator.score(gaps, cost)
        rows = total if math.isfinite(total) else 0.0
        scores = {
            pair: score - chance_gap(rows, domain.shape(pair))
            for pair, score in zip(gaps.options, answer.scores.tolist(), strict=True)
        }
        return joined_groups(domain, groups, scores, _least(distribution, domain), self.group_cells)

    def _weights(self, noisy: NoisyGroup, total: float) -> Floats:
        """Counts of the cells that are kept, 0 elsewhere."""
        values = noisy.values.astype(np.float64)
        cut = self._threshold(noisy.distribution, noisy.cells)
        loud = noisy.cells * expected_absolute(noisy.distribution) > _LOUD * total
        if self.published or noisy.threshold is not None or loud:
            kept = np.where(values >= cut, values, 0.0)
            # Where not a single cell passes, what little the table says is better than nothing.
            if self.published or kept.any():
                return kept if self.published else clip_rescale(kept, total)
        return norm_sub(values, total) if values.size else values

    def _threshold(self, distribution: Distribution, cells: int) -> int:
        if self.published:
            return max(1, math.ceil(published_threshold(cells, distribution.scale)))
        return smallest_threshold(distribution, cells, self.kept_empty)

    def _found_out(self, domain: Domain) -> bool:
        return self.groups.strip() == _CHOSEN and len(live_columns(domain)) > 1

    def _given(self, domain: Domain) -> list[Group]:
        """The groups as written, and every other column on its own."""
        challenge = self.groups.strip() == _CHALLENGE
        text = MATCH_THREE if challenge else self.groups
        found = parse_groups(text, domain, "groups", ignore_unknown=challenge)
        named = {name for group in found for name in group.columns}
        return [*found, *(Group(Clique((name,))) for name in domain.columns if name not in named)]

    def _split(self, cost: Cost) -> tuple[Cost, Cost, Cost]:
        whole = Cost(epsilon=cost.epsilon)
        for_total = Cost() if self.published else whole.share(self.total_share)
        for_pairs = whole.share(self.selection_share) if self.groups.strip() == _CHOSEN else Cost()
        return for_total, for_pairs, whole - for_total - for_pairs

    def _notes(self, domain: Domain, groups: Sequence[Group], distribution: Distribution) -> tuple[str, ...]:
        widest = max(groups, key=lambda group: domain.cells(group.columns))
        cells = domain.cells(widest.columns)
        notes = [
            f"Widest table: {' + '.join(widest.columns)}, {cells:,} cells, "
            f"threshold {self._threshold(distribution, cells):,}."
        ]
        if self._found_out(domain):
            notes.append("Groups are found in the run; fewer groups than columns mean less noise in each.")
        return tuple(notes)


def published_threshold(cells: int, scale: float) -> float:
    """Counts below this become 0 in the original program, for a table of so many cells and noise of that scale.

    >>> round(published_threshold(4, 2.0), 4)
    2.2878
    """
    return 1.9 * scale * math.log10(cells)


def chance_gap(rows: float, shape: tuple[int, ...]) -> float:
    """About the most that InDif of two independent columns is expected to be in a sample of so many rows.

    A cell's deviation has standard deviation √(n p(1 − p) q(1 − q)); the sum over cells of such roots is largest for
    uniform columns, √(n (K − 1)(L − 1)), and a normal deviate is √(2/π) of its standard deviation on average.
    """
    return math.sqrt(2.0 / math.pi * rows * math.prod(size - 1 for size in shape))


def joined_groups(
    domain: Domain, groups: Iterable[Group], scores: Mapping[Clique, float], least: float, most_cells: int
) -> list[Group]:
    """Groups joined by falling score of the pairs between them, while tables stay within `most_cells`.

    Only pairs whose score is above `least` join anything.
    """
    member = {name: group.columns for group in groups for name in group.columns}
    for pair in sorted(scores, key=lambda pair: -scores[pair]):
        if scores[pair] <= least:
            break
        both = domain.clique({*member[pair[0]], *member[pair[1]]})
        if domain.cells(both) <= most_cells:
            for name in both:
                member[name] = both
    return [Group(clique) for clique in dict.fromkeys(member.values())]


def _pairs(domain: Domain) -> list[Clique]:
    """All pairs, without the largest if their tables could not be counted together."""
    pairs = (Clique(pair) for pair in itertools.combinations(live_columns(domain), 2))
    return within(domain, pairs, COUNTED_CELLS)


def _least(distribution: Distribution, domain: Domain) -> float:
    """What a pair's noisy score must exceed: in one run of twenty, noise alone takes some pair there."""
    return distribution.scale / SCORE_UNIT * math.log(10 * max(1, len(_pairs(domain))))


def _sum(groups: Sequence[NoisyGroup]) -> float:
    """Number of rows by the tables that are whole, weighted by inverse variance; by all of them if none is."""
    whole = [group for group in groups if group.threshold is None] or list(groups)
    sums = np.array([float(group.values.sum()) for group in whole])
    precisions = np.array([1.0 / max(1.0, group.values.size * group.distribution.variance) for group in whole])
    return max(1.0, float((sums * precisions).sum() / precisions.sum()))
