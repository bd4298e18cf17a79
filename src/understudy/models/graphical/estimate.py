"""The one entry of this engine: noisy tables and rules in, a fitted model out.

The size of the model is known before it is built (`GraphicalSize.of`, `Growth`); a fit that would be larger than
allowed is refused. Nothing here draws randomness or sees an exact count.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from understudy.errors import ResourceError, UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.marginals.forbidden import Forbidden
from understudy.models.graphical.conditionals import from_bag_order
from understudy.models.graphical.elimination import GraphicalSize, Growth
from understudy.models.graphical.junction_tree import JunctionTree
from understudy.models.graphical.loss import NoisyTable, estimate_total, fold, known_cells, maximal
from understudy.models.graphical.markov_field import MarkovField
from understudy.models.graphical.mirror_descent import Fit, Stopping, descend
from understudy.models.graphical.program import Program
from understudy.models.graphical.tree_form import forest_factors, head_start, is_forest, shrink, towards_independence
from understudy.models.nonnegative import norm_sub

__all__ = [
    "MODEL_BYTES",
    "GraphicalSize",
    "Growth",
    "NoisyTable",
    "estimate_total",
    "fit",
    "fit_forest",
    "is_forest",
    "model_cliques",
    "shrink",
    "towards_independence",
]

MODEL_BYTES = 2**30
"""Most bytes of a model's tables, unless the caller sets another limit."""


def model_cliques(tables: Sequence[NoisyTable], forbidden: Sequence[Forbidden]) -> list[Clique]:
    """The cliques a model of these tables and rules is built on; their `GraphicalSize` is the model's."""
    return [*(table.clique for table in tables), *(rule.clique for rule in forbidden)]


def fit_forest(
    domain: Domain,
    tables: Sequence[NoisyTable],
    forbidden: Sequence[Forbidden] = (),
    *,
    total: float | None = None,
    shrunk: bool = True,
) -> MarkovField:
    """The closed form for tables of one or two columns whose pairs form no circle; see `tree_form`.

    Args:
        domain: The codes.
        tables: What was measured, without groups.
        forbidden: Cells that rules exclude, each rule inside a measured pair.
        total: Number of records, estimated from the tables if not given.
        shrunk: Draw noisy pairs towards independence as far as the noise warrants.

    Raises:
        UsageError: if the tables are malformed, not a forest (`is_forest`), or the rules leave nothing possible.
    """
    for table in tables:
        table.check(domain)
    if not is_forest(domain, tables, forbidden):
        raise UsageError("closed form", "needs pairs without a circle and rules inside them.", "Use `fit`.")
    records = estimate_total(domain, tables, forbidden) if total is None else total
    tree = JunctionTree.of(domain, model_cliques(tables, forbidden))
    factors = forest_factors(tree, tables, forbidden, records, shrunk=shrunk)
    return MarkovField.of_factors(tree, factors, records)


def fit(
    domain: Domain,
    tables: Sequence[NoisyTable],
    forbidden: Sequence[Forbidden] = (),
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
        forbidden: Cells that rules exclude; they get exactly no mass.
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
    cliques = model_cliques(tables, forbidden)
    size = GraphicalSize.of(domain, cliques)
    if size.bytes > model_bytes:
        raise ResourceError("graphical model", size.bytes, model_bytes, "Measure smaller or fewer overlapping tables.")
    records = estimate_total(domain, tables, forbidden) if total is None else total
    tree = JunctionTree.of(domain, cliques)
    program = Program(tree, maximal(table.clique for table in tables))
    program.reset(forbidden)
    measured = sum(int(known_cells(domain, table, forbidden).sum()) for table in tables)
    enough = -1.0 if explained is None else explained * 0.5 * measured
    before = _beginning(domain, tables, forbidden, records, start)
    ended = descend(program, fold(program, tables, forbidden), records, Stopping(steps=steps, enough=enough), before)
    factors = [from_bag_order(tree, bag, program.state(bag)) for bag in range(len(tree.bags))]
    return MarkovField.of_factors(tree, factors, records, fit=ended)


def _beginning(
    domain: Domain,
    tables: Sequence[NoisyTable],
    forbidden: Sequence[Forbidden],
    total: float,
    start: MarkovField | None,
) -> Fit:
    """Where the descent begins: the earlier fit, moved towards what was measured since, or the strongest forest."""
    if start is None or start.fit is None:
        return Fit(math.inf, 0, 0.0, head_start(domain, tables, forbidden, total))
    return replace(start.fit, potentials=dict(start.fit.potentials) | _moves(domain, tables, forbidden, total, start))


def _moves(
    domain: Domain,
    tables: Sequence[NoisyTable],
    forbidden: Sequence[Forbidden],
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
        possible = known_cells(domain, fresh[clique], forbidden) & (counts > 0.0)
        drawn = norm_sub(shrink(fresh[clique], counts, possible).values[possible], total)
        change = np.zeros(counts.size)
        change[possible] = np.log(np.maximum(drawn / counts[possible], 1e-3))
        moves[clique] = change
    return moves
