"""DPFieldGroups: groups of columns that go together, each with its own table; groups are independent.

Source: the entry of that name (team gardn999) in Match 3 of the 2018 challenge, after its public program.

Steps. (1) The number of rows, at `total_share` (`published`: not asked). (2) The groups: given (`groups`), as in the
challenge (`match_three`), or found out for `selection_share`: how far each pair of columns is from independent (InDif),
with noise; then groups are joined, closest first, while their table stays within `group_cells` and the noisy score
exceeds its noise and what independent columns show by chance. (P pairs share the cost, so this is for few columns;
where no score could exceed the noise, nothing is asked.) (3) The table of each of the G groups, at equal cost. (4)
Rows: of each group a cell, independently.

Privacy. Neighbours differ by the rows of one unit, at most k. A pair's score moves by less than 4k (see
`privacy/questions/association.py`), so P scores with Laplace noise of scale 4kP/ε_s cost ε_s. Each group's table puts a
row in one cell: Laplace noise of scale kG/ε_t. All parts add up to ε. Thresholds and joining are post-processing.
Pure ε only.

Threshold. Of a wide table most cells are empty, and what noise puts there must go. `published`: counts below
1.9 · (G/ε) · log₁₀(cells) become 0. An empty cell of B passes that with probability ½·B^(−0.825), so about ½·B^0.175
false cells survive, more the wider the table. Default: the smallest threshold at which `kept_empty` empty cells are
expected to pass, and only where the noise of the whole table is expected to be more than 16 times the rows (up to
there, measured on tables of many shapes, the projection on the noisy total alone is closer). Tables above
`dense_cells` are never written out (sparse noise, exactly equal in law).

Differs from the source. Domains are public; noise is integer and exact; a group without any surviving cell is uniform
over what rules allow instead of the first code; values outside the domain are handled by the schema.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from understudy.errors import UsageError
from understudy.marginals.answer import Law
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.mechanisms.field.groups import (
    Group,
    NoisyGroup,
    block_of,
    check_group,
    check_groups,
    measured_group,
    parse_groups,
    tied,
    written_cells,
)
from understudy.mechanisms.field.match_three_groups import MATCH_THREE
from understudy.mechanisms.forecast import expected_absolute, facts_of, noisy_step, seconds_for
from understudy.mechanisms.laplace import smallest_threshold
from understudy.mechanisms.measured import Purse, live_columns
from understudy.mechanisms.mechanism import Plan, PublicFacts, Step
from understudy.mechanisms.options.checks import check_flag, check_share, check_whole
from understudy.mechanisms.workload import COUNTED_CELLS, within
from understudy.models.blocks import BlockModel
from understudy.models.nonnegative import clip_rescale, norm_sub
from understudy.privacy.calibrate import check_sparse, law_for, score_law
from understudy.privacy.cost import Cost, Currency
from understudy.privacy.curator import Curator
from understudy.privacy.quality import SCORE_UNIT
from understudy.privacy.questions.association import IndependenceGap

__all__ = ["FieldGroups", "chance_gap", "joined_groups", "published_threshold"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_CHOSEN, _CHALLENGE = "", "match_three"
_BLOCK_BYTES = 80
_LOUD = 16.0


@dataclass(frozen=True, slots=True)
class FieldGroups:
    """Recipe: a noisy table for each group of columns, thresholded; rows join independent draws."""

    name: ClassVar[str] = "fieldgroups"
    summary: ClassVar[str] = "Independent groups of columns, each with its own noisy table."
    source: ClassVar[str] = "DPFieldGroups (gardn999), Match 3 of the 2018 NIST challenge; default threshold corrected."
    needs: ClassVar[str] = "A schema; groups of columns that go together, or a share of ε to find them."
    limits: ClassVar[str] = "Pure ε only. Nothing between groups. At most 2⁶² cells a group."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure",)

    groups: str = field(
        default=_CHOSEN,
        metadata={
            "help": "groups such as sex+age,income+city (others single); match_three; empty: found out, paid for"
        },
    )
    published: bool = field(default=False, metadata={"help": "threshold and shares of the original program"})
    selection_share: float = field(default=0.1, metadata={"help": "share of ε for finding groups, if none are given"})
    total_share: float = field(default=0.01, metadata={"help": "share of ε for the number of rows"})
    kept_empty: int = field(default=1, metadata={"help": "empty cells of a wide table expected to pass as noise"})
    group_cells: int = field(default=10_000, metadata={"help": "most cells of a group that is found out"})
    dense_cells: int = field(default=2**20, metadata={"help": "largest table written out (about 80 bytes a cell)"})

    def __post_init__(self) -> None:
        check_groups(self.groups, "groups")
        check_share("selection_share", self.selection_share)
        check_share("total_share", self.total_share)
        check_share("selection_share + total_share", self.selection_share + self.total_share)
        check_flag("published", self.published)
        for name, value, most in (
            ("kept_empty", self.kept_empty, 10**7),
            ("group_cells", self.group_cells, 2**40),
            ("dense_cells", self.dense_cells, 2**28),
        ):
            check_whole(name, value, 1, most)

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """Total, pairs (if groups are found out), tables; refuses groups beyond 2⁶² cells."""
        if cost.rho or not cost.epsilon:
            raise UsageError(f"method {self.name}", "gives pure ε and is paid in ε alone.", "Drop --delta.")
        domain = facts.domain
        for_total, for_pairs, for_tables = self._split(cost)
        steps = list[Step]()
        if not self.published:
            steps.append(noisy_step("measure total", for_total, 1, facts.unit_rows))
        pairs = _pairs(domain)
        found_out = self._found_out(domain)
        if found_out:
            steps.append(Step(f"score {len(pairs)} pairs", for_pairs, len(pairs), None, None))
        fewest = tied(domain, self._given(domain), facts.forbidden)
        law = law_for(for_tables.share(1 / len(fewest)), facts.unit_rows, "measure groups")
        self._check(domain, fewest, law)
        cells = written_cells(domain, fewest, self.dense_cells)
        what = f"measure {'up to ' if found_out else ''}{len(fewest)} groups"
        steps.append(Step(what, for_tables, cells, law.scale, expected_absolute(law)))
        counted = sum(map(domain.cells, pairs)) if found_out else 0
        most = max(cells, min(len(fewest) * self.group_cells, domain.cells(domain.columns))) if found_out else cells
        return Plan(
            self.name,
            sum((step.cost for step in steps), Cost()),
            tuple(steps),
            cells,
            _BLOCK_BYTES * most + 24 * counted + 64 * (facts.rows_hint or 0),
            seconds_for(facts, most + counted // 4),
            self._notes(domain, fewest, law),
            asdict(self),
        )

    def run(self, curator: Curator, cost: Cost) -> BlockModel:
        """Measures the total, finds groups if none were given, measures their tables; the blocks are the model."""
        self.plan(facts_of(curator), cost)
        domain, purse = curator.domain, Purse(curator, cost)
        for_total, for_pairs, _ = self._split(cost)
        bought = None
        if not self.published:
            bought = max(1.0, float(curator.measure([Clique()], for_total)[0].values[0]))
        groups = tied(domain, self._given(domain), curator.forbidden)
        if self._found_out(domain):
            groups = self._find(curator, groups, for_pairs, math.inf if bought is None else bought)
        part = purse.left.share(1 / len(groups))
        law = law_for(part, curator.unit_rows, "measure groups")
        noisy = []
        for place, group in enumerate(groups):
            price = part if place + 1 < len(groups) else purse.left
            threshold = self._threshold(law, domain.cells(group.columns))
            noisy.append(measured_group(curator, group, price, self.dense_cells, threshold))
        total = bought if bought is not None else _sum(noisy)
        blocks = [
            block
            for group in noisy
            for block in block_of(domain, group, self._weights(group, total), curator.forbidden)
        ]
        return BlockModel(domain, tuple(blocks), total)

    def _check(self, domain: Domain, groups: Sequence[Group], law: Law) -> None:
        """Refuses in advance what cannot be held."""
        for group in groups:
            check_group(domain, group, self.name)
            cells = domain.cells(group.columns)
            if cells > self.dense_cells:
                check_sparse(law, cells, self._threshold(law, cells), f"method {self.name}")

    def _find(self, curator: Curator, groups: list[Group], cost: Cost, total: float) -> list[Group]:
        """The groups that noisy pair scores suggest; as they are where no score could exceed the noise."""
        domain = curator.domain
        gaps = IndependenceGap("pairs", _pairs(domain), domain)
        law = score_law(cost, len(gaps.options), gaps.sensitivity * curator.unit_rows, "score pairs")
        if _least(law, domain) >= 2.0 * total:  # the largest possible score
            return groups
        answer = curator.score(gaps, cost)
        rows = total if math.isfinite(total) else 0.0
        scores = {
            pair: score - chance_gap(rows, domain.shape(pair))
            for pair, score in zip(gaps.options, answer.scores.tolist(), strict=True)
        }
        return joined_groups(domain, groups, scores, _least(law, domain), self.group_cells)

    def _weights(self, noisy: NoisyGroup, total: float) -> Floats:
        """Counts of the cells that are kept, 0 elsewhere."""
        values = noisy.values.astype(np.float64)
        cut = self._threshold(noisy.law, noisy.cells)
        loud = noisy.cells * expected_absolute(noisy.law) > _LOUD * total
        if self.published or noisy.threshold is not None or loud:
            kept = np.where(values >= cut, values, 0.0)
            # Where not a single cell passes, what little the table says is better than nothing.
            if self.published or kept.any():
                return kept if self.published else clip_rescale(kept, total)
        return norm_sub(values, total) if values.size else values

    def _threshold(self, law: Law, cells: int) -> int:
        if self.published:
            return max(1, math.ceil(published_threshold(cells, law.scale)))
        return smallest_threshold(law, cells, self.kept_empty)

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

    def _notes(self, domain: Domain, groups: Sequence[Group], law: Law) -> tuple[str, ...]:
        widest = max(groups, key=lambda group: domain.cells(group.columns))
        cells = domain.cells(widest.columns)
        notes = [
            f"Widest table: {' + '.join(widest.columns)}, {cells:,} cells, threshold {self._threshold(law, cells):,}."
        ]
        if self._found_out(domain):
            notes.append("Groups are found out in the run; fewer groups than columns means less noise for each.")
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


def _least(law: Law, domain: Domain) -> float:
    """What a pair's noisy score must exceed: in one run of twenty, noise alone takes some pair there."""
    return law.scale / SCORE_UNIT * math.log(10 * max(1, len(_pairs(domain))))


def _sum(groups: Sequence[NoisyGroup]) -> float:
    """Number of rows by the tables that are whole, weighted by inverse variance; by all of them if none is."""
    whole = [group for group in groups if group.threshold is None] or list(groups)
    sums = np.array([float(group.values.sum()) for group in whole])
    precisions = np.array([1.0 / max(1.0, group.values.size * group.law.variance) for group in whole])
    return max(1.0, float((sums * precisions).sum() / precisions.sum()))
