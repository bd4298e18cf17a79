"""Ensemble: several trees for one private column, each with a table of label probabilities in every leaf.

A record's label law is the mean of the laws of the leaves that it reaches, one leaf per tree. (Drawing a tree at random
and then a label of its leaf is the same law.)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.models.labels.tree import Attributes, DecisionTree

__all__ = ["Ensemble"]

Floats = npt.NDArray[np.float64]
_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Ensemble:
    """The trees of one private column and their leaf tables (one line per leaf, one entry per label)."""

    label: str
    attributes: Attributes
    trees: tuple[DecisionTree, ...]
    tables: tuple[Floats, ...]

    @classmethod
    def of_counts(
        cls, label: str, attributes: Attributes, trees: Sequence[DecisionTree], noisy: Sequence[npt.ArrayLike]
    ) -> "Ensemble":
        """The ensemble of noisy counts, one flat table (leaf by label) a tree. Negatives are 0, nothing is uniform."""
        tables = []
        for tree, counts in zip(trees, noisy, strict=True):
            clipped = np.maximum(np.asarray(counts, dtype=np.float64).reshape(tree.leaves, -1), 0.0)
            sums = clipped.sum(axis=1, keepdims=True)
            even = np.full_like(clipped, 1.0 / clipped.shape[1])
            tables.append(np.divide(clipped, sums, out=even, where=sums > 0.0))
        return cls(label, attributes, tuple(trees), tuple(tables))

    @property
    def labels(self) -> int:
        """Number of labels."""
        return int(self.tables[0].shape[1])

    @property
    def used(self) -> tuple[str, ...]:
        """Columns that some tree splits on."""
        found = {position for tree in self.trees for position in tree.used}
        return tuple(self.attributes.names[position] for position in sorted(found))

    def law(self, codes: Mapping[str, npt.NDArray[np.integer]], rows: int) -> Floats:
        """Label probabilities of each record, one line per record; looks at the columns in `used`."""
        grouped = self.attributes.grouped({name: codes[name] for name in self.used}, rows)
        total = np.zeros((rows, self.labels))
        for tree, table in zip(self.trees, self.tables, strict=True):
            total += table[tree.leaf_of(grouped)]
        return total / len(self.trees)

    def faults(self, sizes: Mapping[str, int]) -> list[str]:
        """What is wrong with it, in words; empty if nothing is."""
        found = self.attributes.faults(sizes)
        if self.label not in sizes or self.label in self.attributes.names:
            found.append("the label must be a column of the domain, and no tree may split on it.")
        if found or not self.trees or len(self.trees) != len(self.tables):
            return found or ["an ensemble needs at least one tree, and one table per tree."]
        for tree, table in zip(self.trees, self.tables, strict=True):
            found += tree.faults()
            if tree.fan_outs != self.attributes.fan_outs or table.shape != (tree.leaves, sizes[self.label]):
                return [*found, "a table must have one line per leaf and one entry per label."]
            if not np.all(np.isfinite(table)) or table.min() < 0.0:
                found.append("probabilities must be finite and 0 or more.")
            elif np.abs(table.sum(axis=1) - 1.0).max() > _SUM_TOLERANCE:
                found.append("probabilities of a leaf must add up to 1.")
        return found
