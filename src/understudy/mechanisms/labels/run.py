"""LabelRun: one run of `rdt` through the curator, private column by private column.

The order matters for privacy and is fixed: trees of a column are grown from the public table (and from laws of earlier
columns, which are answers already paid for) before the column's leaf tables are counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from understudy.errors import ResourceError
from understudy.marginals.answer import Measurement
from understudy.marginals.clique import Clique
from understudy.marginals.partition import Partition
from understudy.mechanisms.challenge.asking import at_prices
from understudy.mechanisms.labels.growth import Reference, TreeGrowth, grow_by_counts
from understudy.mechanisms.labels.leaves import ChainedPartition, LeafPartition
from understudy.mechanisms.labels.recipe import DENSE_CELLS, Prices, Recipe
from understudy.models.labels.chain import LabelChain
from understudy.models.labels.ensemble import Ensemble
from understudy.models.labels.label_model import LabelModel
from understudy.models.labels.tree import Attributes, DecisionTree
from understudy.models.restrict import allowed, sub_indices
from understudy.privacy.curator import Curator

__all__ = ["LabelRun", "check_dense"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class LabelRun:
    """What a run knows so far: the recipe and its prices, finished ensembles and the answers behind them."""

    curator: Curator
    recipe: Recipe
    prices: Prices
    trees: int
    seed: int
    synthetic: bool
    ensembles: list[Ensemble] = field(default_factory=list)
    answers: list[list[Measurement]] = field(default_factory=list)

    def model(self) -> LabelModel:
        """Asks every question and puts the answers together."""
        curator, recipe = self.curator, self.recipe
        for_total = self.prices.total
        bought = curator.measure([Clique()], for_total) if for_total.epsilon or for_total.rho else []
        cells, weights = self._public_cells()
        groups = self._groups()
        grown = [] if curator.has_public else self._paid_trees(groups)
        reference = Reference(self._codes(cells), weights)
        for place, label in enumerate(recipe.private):
            earlier = recipe.private[:place]
            attributes = Attributes.of(groups | {name: np.arange(recipe.domain.sizes[name]) for name in earlier})
            if curator.has_public:
                trees = [self._public_tree(attributes, reference, (place, number)) for number in range(self.trees)]
            else:
                trees = [self._with_earlier(tree, attributes, earlier) for tree in grown]
            self._measure(label, attributes, trees)
            reference = _expanded(reference, self.ensembles[-1], label)
        chain = LabelChain(curator.domain, tuple(self.ensembles), curator.forbidden)
        if not cells.size:
            cells, weights = self._written_out()
        total = float(bought[0].values[0]) if bought else self._estimated_total()
        return LabelModel.of(chain, cells, weights, max(0.0, total))

    def _public_cells(self) -> tuple[Ints, Floats]:
        """Cells of the public columns that the public table holds and the rules allow, with their numbers of rows."""
        if not self.curator.has_public:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        found = self.curator.public_cells(self.recipe.public)
        possible = allowed(self.recipe.domain, self.recipe.public, found.indices, self.curator.forbidden)
        return found.indices[possible], found.counts[possible].astype(np.float64)

    def _groups(self) -> dict[str, Ints]:
        """The group of every code of the public columns: its own, or one for all codes that are rare in public."""
        public, domain = self.recipe.public, self.recipe.domain
        groups = {name: np.arange(domain.sizes[name]) for name in public}
        wanted = {name: domain.clique([name]) for name in self.recipe.collapse}
        counts = self.curator.public_counts(list(wanted.values())) if wanted else {}
        for name, clique in wanted.items():
            rare = counts[clique] < self.recipe.collapse[name]
            groups[name] = np.where(rare, int((~rare).sum()), np.cumsum(~rare) - 1)
        return groups

    def _public_tree(self, attributes: Attributes, reference: Reference, number: tuple[int, int]) -> DecisionTree:
        start = self._start(f"tree {number[1] + 1} for {self.recipe.private[number[0]]}", attributes, number)
        return grow_by_counts(start, reference)

    def _paid_trees(self, groups: dict[str, Ints]) -> list[DecisionTree]:
        """Trees over the public columns alone, grown by noisy counts; every private column uses the same ones."""
        attributes = Attributes.of(groups)
        if not self.recipe.grows:
            return [DecisionTree.leaf(attributes.fan_outs)] * self.trees
        starts = [self._start(f"tree {number + 1}", attributes, (0, number)) for number in range(self.trees)]
        return [self.curator.grow(start, self.prices.tree).tree for start in starts]

    def _start(self, name: str, attributes: Attributes, number: tuple[int, int]) -> TreeGrowth:
        weights = tuple(self.recipe.weights[column] for column in attributes.names)
        return TreeGrowth.start(
            name,
            attributes,
            weights,
            self.recipe.limits,
            seed=(self.seed, *number),
            order=self.recipe.domain.columns,
        )

    def _with_earlier(self, tree: DecisionTree, attributes: Attributes, earlier: Sequence[str]) -> DecisionTree:
        """The tree with every leaf split by the private columns before this one."""
        tree = DecisionTree(tree.splits, attributes.fan_outs)
        for name in earlier:
            if self.recipe.splits(name):
                tree = tree.with_leaves_split(attributes.names.index(name))
        return tree

    def _measure(self, label: str, attributes: Attributes, trees: Sequence[DecisionTree]) -> None:
        """Leaf tables of all trees of a column, every label counted, and the ensemble made of them."""
        domain = self.recipe.domain
        partitions: list[Partition] = []
        for number, tree in enumerate(trees):
            used = {attributes.names[position] for position in tree.used}
            name = f"leaves of tree {number + 1} for {label}"
            inner = LeafPartition(name, domain.clique({*used, label}), attributes, tree, label, domain.sizes[label])
            chained = self.synthetic and used & set(self.recipe.private)
            partitions.append(
                ChainedPartition(inner, tuple(self.ensembles), domain.everything(), self.seed) if chained else inner
            )
        (part, *_) = self.prices.ensemble.split([1.0] * self.trees)
        answers = at_prices(self.curator, partitions, [part] * len(partitions))
        self.answers.append(answers)
        noisy = [answer.values for answer in answers]
        self.ensembles.append(Ensemble.of_counts(label, attributes, trees, noisy))

    def _codes(self, cells: Ints) -> dict[str, Ints]:
        public = self.recipe.public
        return {name: sub_indices(self.recipe.domain, public, cells, (name,)) for name in public}

    def _written_out(self) -> tuple[Ints, Floats]:
        """Every possible cell of the public columns, with the mean over trees of its share of its leaf.

        A leaf's noisy number of records (negatives are 0) is spread evenly over its possible cells. That is all that
        trees know about public columns where no public table was given, or where it holds no possible row.
        """
        recipe = self.recipe
        check_dense(recipe)
        cells = np.arange(recipe.domain.cells(recipe.public), dtype=np.int64)
        cells = cells[allowed(recipe.domain, recipe.public, cells, self.curator.forbidden)]
        first = self.ensembles[0]
        grouped = first.attributes.grouped(self._codes(cells), cells.size)
        weights = np.zeros(cells.size)
        for tree, answer in zip(first.trees, self.answers[0], strict=True):
            rows = np.maximum(answer.values.reshape(tree.leaves, -1).sum(axis=1), 0)
            leaves = tree.leaf_of(grouped)
            inside = np.bincount(leaves, minlength=tree.leaves)
            shares = (rows / np.maximum(inside, 1))[leaves]
            weights += shares / shares.sum() if shares.sum() > 0.0 else 1.0 / max(cells.size, 1)
        return cells, weights

    def _estimated_total(self) -> float:
        """The number of records from all leaf tables, each weighted by one over its number of cells."""
        answers = [answer for ensemble in self.answers for answer in ensemble]
        weights = [1.0 / answer.values.size for answer in answers]
        sums = [weight * float(answer.values.sum()) for weight, answer in zip(weights, answers, strict=True)]
        return sum(sums) / sum(weights)


def check_dense(recipe: Recipe) -> None:
    """Refuses public columns that cannot be written out cell by cell."""
    cells = recipe.domain.cells(recipe.public)
    if cells > DENSE_CELLS:
        where = f"method rdt without a public table: public columns of {cells:,} cells"
        raise ResourceError(where, 48 * cells, 48 * DENSE_CELLS, "Give a public table, or use coarser bins.")


def _expanded(reference: Reference, ensemble: Ensemble, label: str) -> Reference:
    """The records with each label in turn, weighted by how likely it is: expected numbers of records."""
    rows, labels = reference.weights.size, ensemble.labels
    law = ensemble.law(reference.codes, rows)
    codes = {name: np.repeat(part, labels) for name, part in reference.codes.items()}
    codes[label] = np.tile(np.arange(labels), rows)
    return Reference(codes, (reference.weights[:, None] * law).ravel())
