"""How exact the nodes of a STEPS tree are, layer by layer: by arithmetic, for noise of the same size in every layer."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from studies.verdicts import Comparison, above, count_of, verdict
from studies.voters.measures import Truth
from studies.writing import StudyPage
from understudy.models.histogram_tree import HistogramTree, TreeStructure, least_squares

__all__ = ["LayerErrors", "averaging_helps", "layer_errors", "nearer_is_smaller", "node_rows"]

Floats = npt.NDArray[np.float64]
GAIN = 0.01
"""What averaging must take off a node's own variance to count as a reason."""


@dataclass(frozen=True)
class LayerErrors:
    """Mean variances in each layer below the root, as multiples of the noise in a node's own count.

    `averaged`: of the node's own count and all nodes below it, weighted in the best way. `final`: of the released
    counts, before negative ones are cut at 0; the total is known.
    """

    averaged: tuple[float, ...]
    final: tuple[float, ...]


def layer_errors(tree: HistogramTree) -> LayerErrors:
    """The variances by least squares: V going up, and V − V²/T + (V/T)² of the parent's going down."""
    levels = len(tree.sizes)
    upward = least_squares(tree, [0.0] * levels, [0.0, *[1.0] * (levels - 1)]).upward
    final: list[Floats] = [np.zeros(1)]
    for parents, own in zip(tree.parents, upward[1:], strict=True):
        total = np.bincount(parents, weights=own, minlength=final[-1].size)
        share = own / total[parents]
        final.append(own - own * share + share**2 * final[-1][parents])
    return LayerErrors(tuple(float(one.mean()) for one in upward[1:]), tuple(float(one.mean()) for one in final[1:]))


def nearer_is_smaller(errors: LayerErrors) -> list[Comparison]:
    """Whether each layer has smaller errors than the next one."""
    return [_exact(far, near) for near, far in zip(errors.final, errors.final[1:], strict=False)]


def averaging_helps(errors: LayerErrors) -> list[Comparison]:
    """Whether averaging takes something off in every layer above the cells."""
    return [_exact(1 - own, GAIN) for own in errors.averaged[:-1]]


def _exact(first: float, second: float) -> Comparison:
    """Numbers without chance: an interval of no width."""
    return above([first] * 2, [second] * 2)


def node_rows(page: StudyPage, truth: Truth) -> None:
    """Rows on the errors of nodes, and on the reason that is given for them."""
    trees = {f"STEPS-{layers}": layer_errors(_tree(truth, layers)) for layers in (2, 3)}
    said = "equal shares, least squares, no phantom codes, before cutting at 0; in units of the noise of one count"
    finals = "; ".join(f"{name} {_numbers(one.final)}" for name, one in trees.items())
    smaller = [answer for one in trees.values() for answer in nearer_is_smaller(one)]
    page.find(
        "[2020] conclusions: counts of nodes closer to the root have smaller mean squared errors than those further "
        "away",
        f"{truth.table.title}, exact variances from the first layer to the cells ({said}): {finals}; "
        f"{count_of(smaller)} pairs of layers",
        verdict(smaller),
    )
    gains = "; ".join(f"{name} {_numbers([1 - own for own in one.averaged[:-1]])}" for name, one in trees.items())
    helped = [answer for one in trees.values() for answer in averaging_helps(one)]
    page.find(
        "[2020] … because they are weighted averages of more nodes (we say: averaging a node's own count with all "
        f"below it takes off more than {GAIN:.0%} of its variance)",
        f"part taken off, layer by layer: {gains}; {count_of(helped)} layers. On sums of many cells see item 15 of "
        "[errors](errors.md)",
        verdict(helped),
    )


def _tree(truth: Truth, layers: int) -> HistogramTree:
    structure = TreeStructure.root(truth.codec.domain)
    for name in truth.table.expert[:layers]:
        structure = structure.split([name] * structure.size())
    return HistogramTree.of(structure)


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)
