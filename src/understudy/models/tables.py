"""Tables of probabilities: structural zeros as zero cells, counts made non-negative, rows drawn from a table.

Structural zeros
----------------
One implementation serves fitting and drawing alike, so a rule cannot hold in one and be forgotten in the other. All
of it depends on the domain and the rules only, so a plan can refuse a table that is too large before anything is
charged.

The joint table of columns that rules tie together starts as the product of the parts, with the impossible cells at 0.
That alone would distort the parts (a city's share would be multiplied by its state's share), so the table is then
scaled towards each part in turn (iterative proportional fitting, Deming and Stephan 1940): of all tables on the
possible cells that have the wanted parts, the limit is the one closest to the product. Noisy parts may contradict the
rules; then no such table exists, and the last round is returned, which is a distribution on the possible cells all the
same.

Counts of 0 or more
-------------------
Three ways to get them, with a given total, from signed noisy counts. Post-processing: free of charge, and biased (noise
that would cancel is cut off on one side). The signed answers stay in the transcript for whoever needs unbiased sums.

Rows
----
`multinomial`: records are independent draws, one uniform number each, found in the cumulative probabilities.
`controlled`: every cell gets the whole part of its expectation, and the rows still missing go to different cells, each
with a probability equal to its fractional part (systematic sampling in a random order). So every count has the right
expectation and differs from it by less than 1: fewer surprises in every table than independent draws have, at the
cost that formulas for independent rows overstate the sampling error. Rows come in random order: expected counts
handed out in the order of cells would make tables drawn for the same rows rise together.
The generator is seeded on purpose: drawing rows from a fitted model is post-processing, and nothing private depends
on it.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from understudy.arrays import Bools, Floats, Ints
from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import ResourceError, UsageError, nearest

Rounding = Literal["multinomial", "controlled"]
"""How whole rows are made of probabilities."""


def code_dtype(size: int) -> type[np.uint8] | type[np.uint16] | type[np.uint32]:
    """The smallest unsigned type that holds the codes 0 … size − 1.

    >>> code_dtype(256).__name__, code_dtype(257).__name__
    ('uint8', 'uint16')
    """
    if size <= 2**8:
        return np.uint8
    return np.uint16 if size <= 2**16 else np.uint32


def cumulative(probabilities: Floats) -> Floats:
    """Running sums that end at exactly 1."""
    sums = np.cumsum(probabilities)
    return np.asarray(sums / sums[-1])


def draw_cells(steps: Floats, rows: int, rng: np.random.Generator) -> Ints:
    """`rows` independent cell positions, given the running sums of their probabilities.

    A cell of probability 0 is never drawn: its running sum does not rise, and a uniform number in [0, 1) falls
    strictly below the sum of the cell it is given to.
    """
    if rows < 0:
        raise UsageError("rows", f"must be 0 or more, got {rows}.")
    return np.searchsorted(steps, rng.random(rows), side="right").astype(np.int64, copy=False)


def controlled_rounding(probabilities: Floats, rows: int, rng: np.random.Generator) -> Ints:
    """Counts of 0 or more that add up to `rows`, each the expectation rounded down or up, with the right mean."""
    if rows < 0:
        raise UsageError("rows", f"must be 0 or more, got {rows}.")
    expected = probabilities * (rows / probabilities.sum())
    counts: Ints = np.floor(expected).astype(np.int64)
    missing = rows - int(counts.sum())
    fractions = expected - counts
    open_cells = np.flatnonzero(fractions > 0.0)
    if missing > 0:
        shuffled = rng.permutation(open_cells)
        steps = np.cumsum(fractions[shuffled])
        marks = (np.arange(missing) + rng.random()) * (steps[-1] / missing)
        places = np.minimum(np.searchsorted(steps, marks, side="right"), shuffled.size - 1)
        np.add.at(counts, shuffled[places], 1)
    return counts


def draw_places(probabilities: Floats, rows: int, rng: np.random.Generator, rounding: Rounding) -> Ints:
    """`rows` cell positions in random order, made in the way of `rounding`."""
    if rounding == "controlled":
        counts = controlled_rounding(probabilities, rows, rng)
        return rng.permutation(np.repeat(np.arange(counts.size), counts))
    return draw_cells(cumulative(probabilities), rows, rng)


Negatives = Literal["clip_rescale", "norm_sub", "norm_cut"]


def clip_rescale(values: npt.ArrayLike, total: float) -> Floats:
    """Negatives set to 0, the rest scaled to the total; equal shares if nothing is positive.

    >>> clip_rescale([2, 2, 1, -1], 1.0).tolist()
    [0.4, 0.4, 0.2, 0.0]
    """
    clipped = np.maximum(_checked(values, total), 0.0)
    positive = clipped.sum()
    if positive <= 0.0:
        return np.full(clipped.size, total / clipped.size)
    return np.asarray(clipped * (total / positive))


def norm_sub(values: npt.ArrayLike, total: float) -> Floats:
    """The nearest vector (in Euclidean distance) of numbers of 0 or more with that total: (y − τ)+ for one τ.

    >>> norm_sub([5, -2, 1, 0.5, 3], 7.5).tolist()
    [4.5, 0.0, 0.5, 0.0, 2.5]
    """
    signed = _checked(values, total)
    if total == 0.0:
        return np.zeros(signed.size)
    # Duchi et al. 2008, Figure 1: with k values kept, τ_k = (sum of the k largest − total) / k; keep the largest k
    # whose smallest member still exceeds τ_k. Shifting all values changes τ only, so the largest is put at 0: then the
    # first comparison is 0 > −total and cannot be lost to rounding.
    signed -= signed.max()
    falling = np.sort(signed)[::-1]
    levels = (np.cumsum(falling) - total) / np.arange(1, signed.size + 1)
    kept = int(np.flatnonzero(falling > levels)[-1])
    projected = np.maximum(signed - levels[kept], 0.0)
    return np.asarray(projected * (total / projected.sum()))


def norm_cut(values: npt.ArrayLike, total: float) -> Floats:
    """Negatives set to 0, then the surplus taken away from the smallest positive values upward.

    Where the positive values fall short of the total they are scaled up to it.

    >>> norm_cut([5, -2, 1, 0.5, 3], 7.5).tolist()
    [5.0, 0.0, 0.0, 0.0, 2.5]
    """
    clipped = np.maximum(_checked(values, total), 0.0)
    surplus = clipped.sum() - total
    if surplus <= 0.0:
        return clip_rescale(clipped, total)
    order = np.argsort(clipped, kind="stable")
    rising = clipped[order]
    before = np.concatenate(([0.0], np.cumsum(rising)[:-1]))
    clipped[order] = rising - np.clip(surplus - before, 0.0, rising)
    return clipped


_WAYS: dict[str, Callable[[npt.ArrayLike, float], Floats]] = {
    "clip_rescale": clip_rescale,
    "norm_sub": norm_sub,
    "norm_cut": norm_cut,
}
assert set(_WAYS) == set(get_args(Negatives))


def nonnegative(way: str, values: npt.ArrayLike, total: float) -> Floats:
    """The values made non-negative in the named way; an unknown name raises with the closest one."""
    if way not in _WAYS:
        raise UsageError(f"negatives {way!r}", "is not a way to remove negative counts.", nearest(way, _WAYS))
    return _WAYS[way](values, total)


def _checked(values: npt.ArrayLike, total: float) -> Floats:
    if not math.isfinite(total) or total < 0.0:
        raise UsageError("total", f"must be a number of 0 or more, got {total!r}.")
    signed = np.array(values, dtype=np.float64).ravel()
    if not signed.size:
        raise UsageError("values", "must hold at least one cell.")
    return signed


BLOCK_CELLS = 10**7
"""Most cells of a table that rules force to be held jointly (about 400 MB while it is built)."""


def sub_indices(domain: Domain, clique: Sequence[str], indices: Ints, part: Iterable[str]) -> Ints:
    """For cells of `clique` (flat, row-major) the cell of `part` each of them lies in; `part` ⊆ `clique`.

    >>> domain = Domain.of({"a": 2, "b": 3})
    >>> sub_indices(domain, ("a", "b"), np.arange(6), ("b",)).tolist()
    [0, 1, 2, 0, 1, 2]
    """
    strides, stride = {}, 1
    for name in reversed(clique):
        strides[name] = stride
        stride *= domain.sizes[name]
    cells = np.zeros(indices.size, dtype=np.int64)
    for name in part:
        size = domain.sizes[name]
        if size > 1:
            cells *= size
            cells += (indices // strides[name]) % size
    return cells


def allowed(domain: Domain, clique: Sequence[str], indices: Ints, structural_zeros: Iterable[StructuralZeros]) -> Bools:
    """Whether each cell of `clique` is possible under the rules whose columns it covers."""
    possible = np.ones(indices.size, dtype=bool)
    for rule in structural_zeros:
        if set(rule.clique) <= set(clique):
            possible &= ~rule.mask[sub_indices(domain, clique, indices, rule.clique)]
    return possible


def check_possible(domain: Domain, structural_zeros: Sequence[StructuralZeros]) -> None:
    """Raises UsageError if the rules leave no combination of all columns possible. Looks at every cell there is."""
    everything = domain.everything()
    cells = np.arange(domain.cells(everything) if structural_zeros else 0, dtype=np.int64)
    if structural_zeros and not allowed(domain, everything, cells, structural_zeros).any():
        raise UsageError("rules", "leave no combination possible.", "Drop or narrow a rule.")


def linked(
    domain: Domain, cliques: Iterable[Clique], structural_zeros: Iterable[StructuralZeros]
) -> list[list[Clique]]:
    """Disjoint cliques grouped so that every rule lies within one group, in the order of the domain."""
    groups = [[clique] for clique in cliques]
    for rule in structural_zeros:
        touched = [group for group in groups if any(set(rule.clique) & set(clique) for clique in group)]
        if len(touched) > 1:
            groups = [group for group in groups if group not in touched]
            groups.append([clique for group in touched for clique in group])
    place = {name: position for position, name in enumerate(domain.columns)}
    for group in groups:
        group.sort(key=lambda clique: place[clique[0]])
    return sorted(groups, key=lambda group: place[group[0][0]])


def check_linked(
    domain: Domain, cliques: Iterable[Clique], structural_zeros: Sequence[StructuralZeros], where: str
) -> int:
    """Cells of the largest table the rules tie together.

    Raises:
        ResourceError: if that table is too large to hold.
        UsageError: if the rules leave no combination of some columns possible.
    """
    largest = 1
    for group in linked(domain, cliques, structural_zeros):
        clique = domain.clique(name for part in group for name in part)
        cells = domain.cells(clique)
        largest = max(largest, cells)
        if not any(set(rule.clique) <= set(clique) for rule in structural_zeros):
            continue
        names = ", ".join(clique)
        if cells > BLOCK_CELLS:
            raise ResourceError(
                f"{where}: the one table of {cells:,} cells into which rules tie {names}",
                cells * 40,
                BLOCK_CELLS * 40,
                "Use coarser bins for these columns or drop a rule.",
            )
        if not allowed(domain, clique, np.arange(cells, dtype=np.int64), structural_zeros).any():
            raise UsageError(f"{where}: rules over {names}", "leave no combination possible.", "Drop or narrow a rule.")
    return largest


_ROUNDS = 200
_WORK = 400_000_000
_TOLERANCE = 1e-10


def joint_table(
    domain: Domain, parts: Mapping[Clique, Floats], structural_zeros: Sequence[StructuralZeros]
) -> tuple[Clique, Ints, Floats]:
    """The joint table (clique, possible cells, probabilities) of disjoint parts under the rules within them.

    The rules must leave a cell possible (`check_linked` sees to that).
    """
    clique = domain.clique(name for part in parts for name in part)
    cells = np.arange(domain.cells(clique), dtype=np.int64)
    cells = cells[allowed(domain, clique, cells, structural_zeros)]
    places = [sub_indices(domain, clique, cells, part) for part in parts]
    targets = list(parts.values())
    table = _product(places, targets)
    if table.sum() <= 0.0:
        # Noise can leave positive mass on impossible combinations only. A run that was paid for must still end with
        # legal rows, so every code gets a little mass; this looks at noisy answers and is free.
        targets = [(target + 1.0 / target.size) / 2.0 for target in targets]
        table = _product(places, targets)
    table = _fit(table / table.sum(), places, targets)
    return clique, cells, table


def _product(places: Sequence[Ints], targets: Sequence[Floats]) -> Floats:
    table = np.ones(places[0].size)
    for place, target in zip(places, targets, strict=True):
        table *= target[place]
    return table


def _fit(table: Floats, places: Sequence[Ints], targets: Sequence[Floats]) -> Floats:
    if len(places) == 1:
        return table
    # A cell with mass has mass in every part, so no factor is 0 and the sum stays above 0.
    rounds = min(_ROUNDS, max(1, _WORK // (table.size * len(places))))
    for _ in range(rounds):
        gap = 0.0
        for place, target in zip(places, targets, strict=True):
            current = np.bincount(place, weights=table, minlength=target.size)
            gap = max(gap, float(np.abs(current - target).max()))
            ratio = np.divide(target, current, out=np.ones_like(current), where=current > 0.0)
            table = table * ratio[place]
        table = table / table.sum()
        if gap < _TOLERANCE:
            break
    return table
