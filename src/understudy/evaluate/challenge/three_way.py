"""Score 1 of the challenge ("clustering"): densities of 100 random triples of columns."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from understudy.evaluate.challenge.cells import Rule, densities, paired_cells
from understudy.evaluate.data.rows import Rows

__all__ = ["MOST", "TRIPLES", "draw_triples", "triple_agreement", "triples_agreement"]

Floats = npt.NDArray[np.float64]
Triple = tuple[str, str, str]

TRIPLES = 100
MOST = 1_000_000


def draw_triples(
    columns: Sequence[str], rng: np.random.Generator, *, number: int = TRIPLES, include_last: bool = False
) -> tuple[Triple, ...]:
    """Triples of different columns, drawn with replacement; triples may repeat.

    The official script never draws the last column (an off-by-one); `include_last` mends that.
    """
    drawn = len(columns) if include_last else len(columns) - 1
    found: list[Triple] = []
    while len(found) < number and drawn >= 3:
        first, second, third = rng.integers(0, drawn, 3).tolist()
        if len({first, second, third}) == 3:
            found.append((columns[first], columns[second], columns[third]))
    return tuple(found)


def triple_agreement(original: Floats, submission: Floats) -> float:
    """1 − ½ Σ|f − g| of two tables of shares over the same cells.

    >>> round(triple_agreement(np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.6, 0.1, 0.0, 0.3])), 12)
    0.6
    """
    return 1.0 - float(np.abs(original - submission).sum()) / 2


def triples_agreement(original: Rows, submission: Rows, triples: Sequence[Triple], rule: Rule = "buckets") -> Floats:
    """The agreement of every triple; the score is a million times their mean."""
    used = dict.fromkeys(name for triple in triples for name in triple)
    cells = {name: paired_cells(original, submission, name, rule) for name in used}
    return np.asarray([triple_agreement(*densities(triple, cells)) for triple in triples], np.float64)
