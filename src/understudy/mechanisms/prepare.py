"""Before any method runs: what the schema leaves open is settled through the door, and paid for.

Open categories. Their labels are discovered: a label appears if its noisy count reaches a threshold that one unit's
labels pass with probability δ at most. (ε, δ)-DP, or (δ, ρ)-approximate zCDP; the curator proves it. Of the labels
found, the `most_labels` with the highest noisy count stay (post-processing); all others are "other".

Private bins. The column is counted on a fine public grid, with noise, and edges of similar noisy mass are chosen among
the grid's places. One row falls in one cell of the grid, so this is a histogram like any other: ε or ρ, no δ.

Budget. Each such column gets 5 % of ε or ρ, all of them together at most 30 %; the parts add up with what the method
spends on the rest. δ goes to open categories alone, in equal parts: all of it under pure ε, half of it under zCDP,
where the other half pays for the conversion of ρ into ε. A schema that leaves nothing open spends nothing here.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from understudy.codec.bins import fine_grid, settled_edges
from understudy.codec.table_codec import TableCodec
from understudy.errors import UsageError
from understudy.marginals.answer import Discovery
from understudy.mechanisms.assisted.public_table import PublicTable
from understudy.mechanisms.forecast import expected_absolute, noisy_step
from understudy.mechanisms.mechanism import PublicFacts, Step
from understudy.models.nonnegative import norm_sub
from understudy.privacy.calibrate import discovery_threshold, law_for
from understudy.privacy.cost import Budget, Cost, Currency
from understudy.privacy.curator import Curator
from understudy.schema import OpenCategory, PrivateBins, Schema, code_names
from understudy.schema.column import NumberColumn

__all__ = [
    "equal_mass_edges",
    "failure_delta",
    "granted_cost",
    "most_frequent",
    "preparation_cost",
    "preparation_steps",
    "prepare",
    "public_facts",
]

Number = int | float

SHARE = Fraction(5, 100)
MOST_SHARE = Fraction(30, 100)
FINE_CELLS = 1024
"""Places on the public grid from which private bins take their edges."""


def failure_delta(schema: Schema, budget: Budget, currency: Currency) -> int:
    """Units of δ set aside for discovering open categories; 0 if there are none.

    Raises:
        UsageError: if there are some and the budget has no δ.
    """
    columns = _open(schema)
    if not columns:
        return 0
    units = budget.delta_units if currency == "pure" else budget.delta_units // 2
    if units < len(columns):
        names = ", ".join(column.name for column in columns)
        raise UsageError(
            f"column {names}",
            f"is an open category, whose labels can only be discovered under δ above 0, got {budget.delta!r}.",
            "Give --delta, for example 1e-9, or list the labels in the schema.",
        )
    return units


def granted_cost(schema: Schema, budget: Budget, currency: Currency) -> Cost:
    """All that a run may spend: the budget in that currency, with the δ that discovery needs set aside."""
    return budget.cost(currency, failure_delta(schema, budget, currency))


def preparation_cost(schema: Schema, cost: Cost) -> tuple[dict[str, Cost], Cost]:
    """The cost of settling each column that the schema leaves open, and what is left for the method."""
    opened, binned = _open(schema), _binned(schema)
    count = len(opened) + len(binned)
    if not count:
        return {}, Cost(cost.epsilon, cost.rho)
    part = cost.share(min(SHARE, MOST_SHARE / count))
    delta = cost.delta // len(opened) if opened else 0
    costs = {column.name: Cost(part.epsilon, part.rho, delta) for column in opened}
    costs |= {column.name: part for column in binned}
    return costs, Cost(cost.epsilon - count * part.epsilon, cost.rho - count * part.rho)


def preparation_steps(schema: Schema, costs: Mapping[str, Cost]) -> tuple[Step, ...]:
    """The questions `prepare` will ask, for a plan; raises where a share is too small."""
    steps = []
    for column in _open(schema):
        name, cost = f"discover {column.name}", costs[column.name]
        law = law_for(cost, schema.unit.sensitivity, name, laplace=True)
        discovery_threshold(law, schema.unit.sensitivity, cost.delta, name)
        steps.append(Step(name, cost, column.most_labels, law.scale, expected_absolute(law)))
    for binned in _binned(schema):
        grid = {binned.name: _starts(fine_grid(binned, FINE_CELLS))}
        size = TableCodec.of(schema, edges=grid, columns=grid).domain.sizes[code_names(binned)[0]]
        steps.append(noisy_step(f"measure {binned.name}", costs[binned.name], size, schema.unit.sensitivity))
    return tuple(steps)


def prepare(curator: Curator, schema: Schema, costs: Mapping[str, Cost]) -> TableCodec:
    """Discovers labels, chooses bins, settles the curator on the resulting codes and returns them.

    Spends `costs` as `preparation_cost` gave them. Everything after the noisy answers is post-processing.
    """
    labels = {
        column.name: most_frequent(curator.discover(column.name, costs[column.name]), column.most_labels)
        for column in _open(schema)
    }
    codec = TableCodec.of(schema, labels, _chosen_edges(curator, schema, costs))
    curator.settle(codec)
    return codec


def public_facts(schema: Schema, rows_hint: int | None = None, public: PublicTable | None = None) -> PublicFacts:
    """What a plan may know. Open categories count with as many labels as they may get, private bins as even ones.

    The most frequent labels of a public table stand for those that are to be discovered.
    """
    labels = {column.name: _planned_labels(column, public) for column in _open(schema)}
    edges = {column.name: _starts(fine_grid(column, _bin_count(column))) for column in _binned(schema)}
    codec = TableCodec.of(schema, labels, edges)
    counts = None if public is None else public.bind(codec).counts
    return PublicFacts(codec.domain, codec.forbidden, schema.unit.sensitivity, rows_hint, (*labels, *edges), counts)


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


def _chosen_edges(curator: Curator, schema: Schema, costs: Mapping[str, Cost]) -> dict[str, list[Number]]:
    columns = _binned(schema)
    if not columns:
        return {}
    grids = {column.name: settled_edges(column, _starts(fine_grid(column, FINE_CELLS))) for column in columns}
    codec = TableCodec.of(schema, edges={name: _starts(grid) for name, grid in grids.items()}, columns=grids)
    curator.settle(codec)
    cliques = [codec.domain.clique([code_names(column)[0]]) for column in columns]
    cost = sum((costs[column.name] for column in columns), Cost())
    chosen = {}
    for column, answer in zip(columns, curator.measure(cliques, cost), strict=True):
        grid = grids[column.name]
        # Codes of bins come first; special values and missing follow and do not lie on the axis.
        edges = equal_mass_edges(grid, answer.values[: len(grid) - 1], _bin_count(column))
        chosen[column.name] = _starts(edges)
    return chosen


def _starts(edges: Sequence[Number]) -> list[Number]:
    """Where bins begin. The codec knows where the last one ends; naming that place would begin another bin there."""
    return list(edges[:-1])


def _open(schema: Schema) -> list[OpenCategory]:
    return [column for column in schema.modelled if isinstance(column, OpenCategory)]


def _binned(schema: Schema) -> list[NumberColumn]:
    return [
        column
        for column in schema.modelled
        if isinstance(column, NumberColumn) and isinstance(column.bins, PrivateBins)
    ]


def _bin_count(column: NumberColumn) -> int:
    assert isinstance(column.bins, PrivateBins)
    return column.bins.count
