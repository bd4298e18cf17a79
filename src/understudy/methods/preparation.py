"""Before any method runs: what the schema leaves open is fixed through the curator, and paid for.

Open categories
---------------
Their labels are discovered: a label appears if its noisy count reaches a threshold that one unit's labels pass with
probability δ at most. (ε, δ)-DP, or (δ, ρ)-approximate zCDP; the curator proves it. Of the labels found, the
`most_labels` with the highest noisy count stay (post-processing); all others are "other".

Private bins
------------
Where the bins of a number column begin is chosen among the places of a fine public grid. ε or ρ, no δ.

`mass`       the grid is counted with noise, and edges of similar noisy mass are chosen. One row falls in one cell of
             the grid, so this is a histogram like any other: ε or ρ.
`quantiles`  the range is cut where the rows fall apart in the wanted ratio, then each part again, ⌈log₂ bins⌉ layers.
             A layer is one draw of the exponential mechanism in each of its disjoint parts (`EvenSplit` proves the
             sensitivity of one row per row); the layers share the cost equally and add up.
`privtree`   the range is halved again and again where more rows lie than twice the average bin would hold
             (`Halving`, `Curator.grow`: one cost for the whole tree). A tenth of the cost buys the noisy number of
             rows that this average needs.

Rare labels
-----------
Those of low noisy count share one code, so that no method spends noise and cells on each of them. Every column whose
schema says `rare: private` is counted with noise once, over all its labels: a histogram, ε or ρ, and no δ (the labels
are public). Labels whose noisy count is below three standard deviations of that noise are pooled, unless there are
fewer than two. A row of the common code is written as one of them, drawn in proportion to their noisy counts, which are
first brought to 0 or more with the sum kept. Nothing after the noisy answer looks at a row again.

Budget
------
Each such column gets 5 % of ρ, or of ε in a pure run, all of them together at most 30 %; the parts add up with
what the method spends on the rest. δ goes to open categories alone, in equal parts: all of it under pure ε, half under
zCDP (where the other half pays for the conversion of ρ into ε) and where the method spends δ itself. A schema that
leaves nothing open spends nothing here.

Public tables
-------------
Methods never hold a table that protects nobody. They see its counts alone: through `PublicFacts.public` in a plan and
through `Curator.public_counts` in a run.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt

from understudy.arrays import Ints
from understudy.codec.axes import fine_grid, fixed_edges
from understudy.codec.column import Pool
from understudy.codec.table import TableCodec
from understudy.domain import SCORE_UNIT, Clique, Discovery, Measurement
from understudy.errors import UsageError
from understudy.methods.method import PublicFacts, Step, expected_absolute, noisy_step
from understudy.models.tables import norm_sub
from understudy.privacy.cost import (
    Budget,
    Cost,
    Currency,
    discovery_threshold,
    distribution_for,
    growth_rule,
    selection_rate,
)
from understudy.privacy.curator import Curator
from understudy.privacy.trees import EvenSplit, Halving, Range
from understudy.schema import Category, OpenCategory, PrivateBins, Schema, code_names
from understudy.schema.columns import NumberColumn


class PublicLabels(Protocol):
    """Labels of an open column with their numbers of rows."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Every distinct label."""
        ...

    @property
    def counts(self) -> Ints:
        """Rows that hold it."""
        ...


class PublicSource(Protocol):
    """Public rows seen through fixed codes."""

    def counts(self, cliques: Sequence[Clique]) -> Mapping[Clique, Ints]:
        """Exact counts of cliques."""
        ...


class PublicTable(Protocol):
    """Public rows of the schema's columns."""

    def label_counts(self, column: str) -> PublicLabels:
        """Labels of an open column."""
        ...

    def bind(self, codec: TableCodec) -> PublicSource:
        """The same rows seen through fixed codes."""
        ...


Number = int | float

FINE_CELLS = 1024
"""Places on the public grid from which private bins take their edges."""

_TOTAL_SHARE = (1, 9)
_PER_BIN = 2
"""A range is halved where more rows lie than this many times the average bin would hold."""


def binned_columns(schema: Schema) -> list[NumberColumn]:
    """The columns whose bins are to be chosen: those counted on a grid first, then cuts, then trees."""
    columns = [
        column
        for column in schema.modelled
        if isinstance(column, NumberColumn) and isinstance(column.bins, PrivateBins)
    ]
    return sorted(columns, key=lambda column: ("mass", "quantiles", "privtree").index(_rule(column)))


def bin_steps(schema: Schema, costs: Mapping[str, Cost]) -> list[Step]:
    """The queries `chosen_edges` will ask; raises where a share is too small."""
    rows, steps = schema.unit.sensitivity, []
    for column in binned_columns(schema):
        name, cost, code = column.name, costs[column.name], code_names(column)[0]
        grid = {name: starts_of(fine_grid(column, FINE_CELLS))}
        if _rule(column) == "mass":
            size = TableCodec.of(schema, edges=grid, columns=grid).domain.sizes[code]
            steps.append(noisy_step(f"measure {name}", cost, size, rows))
        elif _rule(column) == "quantiles":
            for layer, part in enumerate(_layers(cost, min(bin_count(column), len(grid[name])))):
                step = f"select {_cuts(code, layer)}"
                selection_rate(part, Fraction(SCORE_UNIT * rows), step, monotone=False)
                steps.append(Step(step, part, len(grid[name]), None, None))
        else:
            for_total, for_tree = cost.split(_TOTAL_SHARE)
            growth_rule(for_tree, rows, Fraction(2), f"grow halves of {code}")
            steps.append(noisy_step("measure total", for_total, 1, rows))
            steps.append(Step(f"grow halves of {code}", for_tree, len(grid[name]), None, None))
    return steps


def chosen_edges(curator: Curator, schema: Schema, costs: Mapping[str, Cost]) -> dict[str, list[Number]]:
    """Where the bins of each such column begin; fixes the curator on the fine grids on the way."""
    columns = binned_columns(schema)
    if not columns:
        return {}
    grids = {column.name: fixed_edges(column, starts_of(fine_grid(column, FINE_CELLS))) for column in columns}
    codec = TableCodec.of(schema, edges={name: starts_of(grid) for name, grid in grids.items()}, columns=grids)
    curator.fix_codec(codec)
    chosen = _by_mass(curator, [column for column in columns if _rule(column) == "mass"], grids, costs)
    for column in columns:
        grid, code, bins = grids[column.name], code_names(column)[0], bin_count(column)
        if _rule(column) == "quantiles":
            ranges = _cut_ranges(curator, code, len(grid) - 1, bins, costs[column.name])
            chosen[column.name] = [grid[start] for start, _ in ranges]
        elif _rule(column) == "privtree":
            ranges = _halved_ranges(curator, code, len(grid) - 1, bins, costs[column.name])
            chosen[column.name] = [grid[start] for start, _ in ranges]
    return chosen


def _by_mass(
    curator: Curator, columns: Sequence[NumberColumn], grids: Mapping[str, list[Number]], costs: Mapping[str, Cost]
) -> dict[str, list[Number]]:
    cliques = [curator.domain.clique([code_names(column)[0]]) for column in columns]
    cost = sum((costs[column.name] for column in columns), Cost())
    chosen = {}
    for column, answer in zip(columns, curator.measure(cliques, cost), strict=True):
        grid = grids[column.name]
        # Codes of bins come first; special values and missing follow and do not lie on the axis.
        edges = equal_mass_edges(grid, answer.values[: len(grid) - 1], bin_count(column))
        chosen[column.name] = starts_of(edges)
    return chosen


def _cut_ranges(curator: Curator, code: str, codes: int, bins: int, cost: Cost) -> list[Range]:
    """Ranges of grid cells that hold similar numbers of rows; a range of one cell stays whole."""
    parts: list[tuple[Range, int]] = [((0, codes), min(bins, codes))]
    for layer, share in enumerate(_layers(cost, min(bins, codes))):
        wide = [(held, wanted) for held, wanted in parts if wanted > 1 and held[1] - held[0] > 1]
        if not wide:
            break
        ranges, wants = tuple(held for held, _ in wide), tuple(wanted for _, wanted in wide)
        quality = EvenSplit(code, codes, ranges, wants, _cuts(code, layer))
        places = curator.select_within(quality.partition, quality, share)
        parts = [part for part in parts if part not in wide]
        for (held, wanted), place in zip(wide, places, strict=False):
            parts += [((held[0], place), wanted // 2), ((place, held[1]), wanted - wanted // 2)]
    return sorted(held for held, _ in parts)


def _halved_ranges(curator: Curator, code: str, codes: int, bins: int, cost: Cost) -> list[Range]:
    """Ranges of grid cells, halved where more rows lie than twice the average bin would hold."""
    for_total, for_tree = cost.split(_TOTAL_SHARE)
    (total,) = curator.measure([Clique()], for_total)
    rows = max(0, min(int(total.values[0]), 2**48))
    tree = Halving.of(code, codes, theta=_PER_BIN * rows // bins, most_leaves=bins)
    return sorted(curator.grow(tree, for_tree).ranges)


def equal_mass_edges(edges: Sequence[Number], noisy: npt.ArrayLike, count: int) -> list[Number]:
    """At most `count` bins made of neighbouring grid cells, of as equal noisy mass as the grid allows.

    >>> equal_mass_edges([0, 1, 2, 3, 4], [1, 1, 1, 5], 2)
    [0, 3, 4]
    """
    values = np.asarray(noisy, dtype=np.float64)
    mass = norm_sub(values, max(float(values.sum()), 1.0))
    below = np.concatenate(([0.0], np.cumsum(mass)))
    wanted = below[-1] * np.arange(1, count) / count
    after = np.clip(np.searchsorted(below, wanted), 1, values.size)
    nearer = wanted - below[after - 1] < below[after] - wanted
    places = np.unique(np.where(nearer, after - 1, after)).tolist()
    inner = [edges[place] for place in places if 0 < place < values.size]
    return [edges[0], *inner, edges[-1]]


def starts_of(edges: Sequence[Number]) -> list[Number]:
    """Where bins begin. The codec knows where the last one ends; naming that place would begin another bin there."""
    return list(edges[:-1])


def bin_count(column: NumberColumn) -> int:
    """Most bins of a privately binned column."""
    assert isinstance(column.bins, PrivateBins)
    return column.bins.count


def _rule(column: NumberColumn) -> str:
    assert isinstance(column.bins, PrivateBins)
    return column.bins.by


def _layers(cost: Cost, bins: int) -> list[Cost]:
    """The cost of each layer of cuts."""
    layers = (bins - 1).bit_length()
    return cost.split([1.0] * layers) if layers else []


def _cuts(code: str, layer: int) -> str:
    return f"cuts of {code}, layer {layer + 1}"


THRESHOLD = 3.0
"""A label stays if its noisy count is at least this many standard deviations of the noise."""


def rare_columns(schema: Schema) -> list[Category]:
    """The columns whose rare labels are to be pooled."""
    return [column for column in schema.modelled if isinstance(column, Category) and column.rare == "private"]


def rare_steps(schema: Schema, costs: Mapping[str, Cost]) -> list[Step]:
    """The queries `chosen_pools` will ask; raises where a share is too small."""
    names = [column.name for column in rare_columns(schema)]
    domain = TableCodec.of(schema, columns=names).domain if names else None
    return [
        noisy_step(f"measure {name}", costs[name], domain.sizes[name], schema.unit.sensitivity)
        for name in names
        if domain is not None
    ]


def chosen_pools(curator: Curator, schema: Schema, costs: Mapping[str, Cost]) -> dict[str, Pool]:
    """The rare labels of each such column, where there are at least two; fixes the curator on all labels."""
    columns = rare_columns(schema)
    if not columns:
        return {}
    curator.fix_codec(TableCodec.of(schema, columns=[column.name for column in columns]))
    pools = {}
    for column in columns:
        (answer,) = curator.measure([curator.domain.clique([column.name])], costs[column.name])
        pool = pool_of(column.labels, answer)
        if len(pool) > 1:
            pools[column.name] = pool
    return pools


def pool_of(labels: tuple[str, ...], answer: Measurement) -> Pool:
    """The labels whose noisy count is low, with the share of each. Codes of labels come first in the answer."""
    noisy = answer.values[: len(labels)].astype(np.float64)
    rare = np.flatnonzero(noisy < THRESHOLD * math.sqrt(answer.distribution.variance))
    if not rare.size:
        return ()
    shares = norm_sub(noisy[rare], max(float(noisy[rare].sum()), 1.0))
    return tuple((labels[place], float(share)) for place, share in zip(rare.tolist(), shares, strict=True))


SHARE = Fraction(5, 100)
MOST_SHARE = Fraction(30, 100)


def failure_delta(schema: Schema, budget: Budget, currency: Currency, *, shared: bool = False) -> int:
    """Units of δ set aside for discovering open categories; 0 if there are none.

    Raises:
        UsageError: if there are some and the budget has no δ.
    """
    columns = _open(schema)
    if not columns:
        return 0
    units = budget.delta_units if currency == "pure" and not shared else budget.delta_units // 2
    if units < len(columns):
        names = ", ".join(column.name for column in columns)
        raise UsageError(
            f"column {names}",
            f"is an open category, whose labels can only be discovered under δ above 0, got {budget.delta!r}.",
            "Give delta=, for example 1e-9, or list the labels in the schema.",
        )
    return units


def granted_cost(
    schema: Schema,
    budget: Budget,
    currency: Currency,
    *,
    spends_delta: bool = False,
    pure_share: Fraction = Fraction(0),
) -> Cost:
    """All that a run may spend: the budget in that currency, with the δ that discovery needs set aside.

    For a method that spends δ itself it is all of ε and δ. `pure_share` is the share of ε that a zCDP run keeps
    for steps paid in pure ε.
    """
    delta = failure_delta(schema, budget, currency, shared=spends_delta)
    if spends_delta:
        delta = budget.delta_units
    return budget.cost(currency, delta, pure=math.floor(budget.epsilon_units * pure_share))


def preparation_cost(schema: Schema, cost: Cost, *, spends_delta: bool = False) -> tuple[dict[str, Cost], Cost]:
    """The cost of fixing each column that the schema leaves open, and what is left for the method."""
    opened, others = _open(schema), [*binned_columns(schema), *rare_columns(schema)]
    count = len(opened) + len(others)
    if not count:
        return {}, Cost(cost.epsilon, cost.rho, cost.delta if spends_delta else 0)
    # A step is paid in one currency: what a zCDP run keeps in pure ε stays with the method.
    part = (Cost(rho=cost.rho) if cost.rho else cost).share(min(SHARE, MOST_SHARE / count))
    delta = (cost.delta // 2 if spends_delta else cost.delta) // len(opened) if opened else 0
    left = cost.delta - delta * len(opened) if spends_delta else 0
    costs = {column.name: Cost(part.epsilon, part.rho, delta) for column in opened}
    costs |= {column.name: part for column in others}
    return costs, Cost(cost.epsilon - count * part.epsilon, cost.rho - count * part.rho, left)


def preparation_steps(schema: Schema, costs: Mapping[str, Cost]) -> tuple[Step, ...]:
    """The queries `prepare` will ask, for a plan; raises where a share is too small."""
    steps = []
    for column in _open(schema):
        name, cost = f"discover {column.name}", costs[column.name]
        distribution = distribution_for(cost, schema.unit.sensitivity, name, laplace=True)
        discovery_threshold(distribution, schema.unit.sensitivity, cost.delta, name)
        steps.append(Step(name, cost, column.most_labels, distribution.scale, expected_absolute(distribution)))
    return (*steps, *bin_steps(schema, costs), *rare_steps(schema, costs))


def prepare(curator: Curator, schema: Schema, costs: Mapping[str, Cost]) -> TableCodec:
    """Discovers labels, chooses bins, pools rare labels, fixes the curator on the resulting codes and returns them.

    Spends `costs` as `preparation_cost` gave them. Everything after the noisy answers is post-processing.
    """
    labels = {
        column.name: most_frequent(curator.discover(column.name, costs[column.name]), column.most_labels)
        for column in _open(schema)
    }
    edges = chosen_edges(curator, schema, costs)
    codec = TableCodec.of(schema, labels, edges, pools=chosen_pools(curator, schema, costs))
    curator.fix_codec(codec)
    return codec


def public_facts(schema: Schema, rows_hint: int | None = None, public: PublicTable | None = None) -> PublicFacts:
    """What a plan may know. Open categories count with as many labels as they may get, private bins as even ones,
    categories with all their labels, rare or not.

    The most frequent labels of a public table stand for those that are to be discovered.
    """
    labels = {column.name: _planned_labels(column, public) for column in _open(schema)}
    edges = {column.name: starts_of(fine_grid(column, bin_count(column))) for column in binned_columns(schema)}
    codec = TableCodec.of(schema, labels, edges)
    counts = None if public is None else public.bind(codec).counts
    prepared = (*labels, *edges, *(column.name for column in rare_columns(schema)))
    return PublicFacts(codec.domain, codec.structural_zeros, schema.unit.sensitivity, rows_hint, prepared, counts)


def _planned_labels(column: OpenCategory, public: PublicTable | None) -> list[str]:
    known: list[str] = []
    if public is not None:
        held = public.label_counts(column.name)
        falling = sorted(zip((-held.counts).tolist(), held.labels, strict=True))
        known = [label for _, label in falling if label != column.other]
    unknown = (f"label {place}" for place in range(column.most_labels))
    return list(dict.fromkeys([*known, *unknown]))[: column.most_labels]


def most_frequent(discovery: Discovery, most: int) -> list[str]:
    """At most `most` labels, those with the highest noisy count (ties in code point order), in code point order."""
    falling = sorted(zip((-discovery.values).tolist(), discovery.labels, strict=True))
    return sorted(label for _, label in falling[:most])


def _open(schema: Schema) -> list[OpenCategory]:
    return [column for column in schema.modelled if isinstance(column, OpenCategory)]
