"""The graphical model that counts as one more member of the ensemble: what a few measured pairs alone make of all.

Mixtures follow every pair a little; what noise does to a hundred weak pairs comes with it. A model of largest entropy
follows a few strong pairs closely and takes everything else to be as random as these allow. Where noise is large the
two are about equally far off, but not in the same places, so their mean is nearer than either.

Steps. (1) Pairs that were measured, by how many rows they put elsewhere than expected (noisy scores), the strongest
first; those for which that is less than half of what noise puts into wrong cells of their answer are left out. (2) Of
these, as many as leave the model small. (3) The model of largest entropy nearest to the noisy columns and the noisy
tables of these pairs, each in units of its noise. (4) Its tables of all pairs.

Post-processing of noisy answers.
"""

import math
from collections.abc import Mapping, Sequence

from understudy.arrays import Floats
from understudy.domain import Clique, ResidualTable, StructuralZeros
from understudy.methods.known_columns import KnownColumns
from understudy.methods.record_synthesis import TRIED_PER_COLUMN, small_enough
from understudy.models.estimation import NoisyTable
from understudy.models.markov_field import fit

_STEPS = 300
_CLEAR = 0.5
"""Least rows that a pair puts elsewhere, as a share of those that noise does."""
_CELL_NOISE = 0.4
"""Half of E|X| of a normal number."""


def graphical_pairs(
    known: KnownColumns,
    tables: Mapping[Clique, ResidualTable],
    rows: Mapping[Clique, float],
    structural_zeros: Sequence[StructuralZeros],
) -> dict[Clique, Floats]:
    """Counts of all pairs by the model, one line per code of the first column; nothing where no pair is clear.

    Args:
        known: What is known of columns.
        tables: Measured residuals.
        rows: By pair, how many rows are elsewhere than expected.
        structural_zeros: Cells that rules exclude.
    """
    domain = known.grid.domain
    clear = [pair for pair in known.pairs if pair in tables and rows[pair] >= _CLEAR * _noise(tables[pair])]
    clear.sort(key=lambda pair: -rows[pair])
    kept = small_enough(domain, clear[: TRIED_PER_COLUMN * len(domain.columns)], structural_zeros)
    if not kept:
        return {}
    noisy = [known.column(name) for name in domain.columns]
    noisy += [NoisyTable(pair, known.noisy(tables[pair]).ravel(), max(tables[pair].variance, 1e-9)) for pair in kept]
    model = fit(domain, noisy, structural_zeros, total=known.total, steps=_STEPS)
    found = model.marginals(known.pairs)
    return {pair: found[pair].reshape(domain.shape(pair)) * known.total for pair in known.pairs}


def _noise(table: ResidualTable) -> float:
    """Rows that noise puts into wrong cells."""
    return _CELL_NOISE * math.sqrt(max(table.variance, 0.0)) * table.residuals.size
