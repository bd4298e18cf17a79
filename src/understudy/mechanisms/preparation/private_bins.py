"""Private bins: where the bins of a number column begin, chosen among the places of a fine public grid, and paid for.

`mass`       the grid is counted with noise, and edges of similar noisy mass are chosen. One row falls in one cell of
             the grid, so this is a histogram like any other: ε or ρ.
`quantiles`  the range is cut where the rows fall apart in the wanted ratio, then each part again, ⌈log₂ bins⌉ layers.
             A layer is one draw of the exponential mechanism in each of its disjoint parts (`EvenSplit` proves the
             sensitivity of one row per row); the layers share the price equally and add up.
`privtree`   the range is halved again and again where more rows lie than twice the average bin would hold
             (`Halving`, `Curator.grow`: one price for the whole tree). A tenth of the price buys the noisy number of
             rows that this average needs.

Everything after the noisy answers is post-processing.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from understudy.codec.bins import fine_grid, settled_edges
from understudy.codec.table_codec import TableCodec
from understudy.marginals.answer import SCORE_UNIT
from understudy.marginals.clique import Clique
from understudy.mechanisms.forecast import noisy_step
from understudy.mechanisms.mechanism import Step
from understudy.models.nonnegative import norm_sub
from understudy.privacy.calibrate import growth_rule, selection_rate
from understudy.privacy.cost import Cost
from understudy.privacy.curator import Curator
from understudy.privacy.questions.even_split import EvenSplit
from understudy.privacy.questions.halving import Halving, Range
from understudy.schema import PrivateBins, Schema, code_names
from understudy.schema.column import NumberColumn

__all__ = ["FINE_CELLS", "bin_count", "bin_steps", "binned_columns", "chosen_edges", "equal_mass_edges", "starts_of"]

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
    """The questions `chosen_edges` will ask; raises where a share is too small."""
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
    """Where the bins of each such column begin; settles the curator on the fine grids on the way."""
    columns = binned_columns(schema)
    if not columns:
        return {}
    grids = {column.name: settled_edges(column, starts_of(fine_grid(column, FINE_CELLS))) for column in columns}
    codec = TableCodec.of(schema, edges={name: starts_of(grid) for name, grid in grids.items()}, columns=grids)
    curator.settle(codec)
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
    """The price of each layer of cuts."""
    layers = (bins - 1).bit_length()
    return cost.split([1.0] * layers) if layers else []


def _cuts(code: str, layer: int) -> str:
    return f"cuts of {code}, layer {layer + 1}"
