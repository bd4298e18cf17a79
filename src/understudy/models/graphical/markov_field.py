"""MarkovField: a distribution given by conditional tables along a junction tree.

Everything asked of it is exact: marginals inside and outside the bags, records, conditioning on codes. Rules were
applied when it was fitted; a combination without mass cannot be drawn, and conditioning keeps it so.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from understudy.errors import Problem, ReleaseError, UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.models.arrays import ModelFiles, read_model_files, write_model_files
from understudy.models.asked import asked_clique, asked_codes
from understudy.models.graphical.answers import Answers
from understudy.models.graphical.conditionals import calibrate, joints, spread, table_faults
from understudy.models.graphical.junction_tree import JunctionTree
from understudy.models.graphical.mirror_descent import Fit
from understudy.models.graphical.sampler import Sampler
from understudy.models.model import Codes
from understudy.models.store import register

__all__ = ["MarkovField"]

Floats = npt.NDArray[np.float64]

_BAG_CELLS = 2**31


@dataclass(frozen=True, eq=False)
class MarkovField:
    """A distribution over coded records: per bag of `tree` the chances of its fresh columns given its separator.

    With `rounding`, `draw` gives every cell its expected number of records up to rounding (in random order) instead
    of independent records: far less sampling noise, and the rows of one draw are no longer independent.
    """

    kind: ClassVar[str] = "markov_field"

    tree: JunctionTree
    tables: tuple[Floats, ...]
    total: float
    rounding: bool = False
    fit: Fit | None = None

    def __post_init__(self) -> None:
        for fault in _faults(self.tree, self.tables, self.total):
            raise UsageError("graphical model", fault)

    @classmethod
    def of_factors(
        cls,
        tree: JunctionTree,
        factors: Sequence[Floats],
        total: float,
        *,
        rounding: bool = False,
        fit: Fit | None = None,
    ) -> Self:
        """The distribution proportional to a product of one factor per bag (rows: separator, columns: fresh).

        Raises:
            UsageError: if the factors leave no combination possible.
        """
        tables, logarithm = calibrate(tree, factors)
        if logarithm == -math.inf:
            raise UsageError("graphical model", "no combination is possible.", "Drop or narrow a rule.")
        return cls(tree, tables, total, rounding, fit)

    @property
    def domain(self) -> Domain:
        """The codes it speaks about."""
        return self.tree.domain

    @cached_property
    def answers(self) -> Answers:
        """Marginals of many cliques at once; see `Answers`."""
        return Answers(self.tree, joints(self.tree, self.tables))

    @cached_property
    def _sampler(self) -> Sampler:
        return Sampler(self.tree, self.tables)

    def marginal(self, clique: Clique) -> Floats:
        """Probabilities of the clique's cells, flat row-major.

        Raises:
            ResourceError: if the table, or one needed on the way, would be too large to hold.
        """
        wanted = asked_clique(self.domain, clique)
        return self.answers.one(wanted)

    def marginals(self, cliques: Iterable[Clique]) -> dict[Clique, Floats]:
        """Probabilities of many cliques' cells, flat row-major; all pairs and triples in one pass along the tree."""
        return dict(self.answers.many([self.domain.clique(clique) for clique in cliques]))

    def draw(self, rows: int, rng: np.random.Generator) -> Codes:
        """`rows` records as the smallest unsigned integers that hold the codes; see `rounding`."""
        if rows < 0:
            raise UsageError("rows", f"must be 0 or more, got {rows}.")
        return self._sampler.rounded(rows, rng) if self.rounding else self._sampler.independent(rows, rng)

    def with_rounding(self) -> Self:
        """The same distribution, drawn by controlled rounding."""
        return replace(self, rounding=True)

    def condition(self, where: Mapping[str, npt.NDArray[np.integer]]) -> Self:
        """The distribution given that each named column holds one of the codes; `total` shrinks with its chance.

        Raises:
            UsageError: if a code is outside its column or the condition has probability 0.
        """
        return self.reweighted(
            {name: asked_codes(self.domain, name, codes).astype(np.float64) for name, codes in where.items()}
        )

    def reweighted(self, where: Mapping[str, Floats]) -> Self:
        """The distribution given an event that happens, for each named column, with these chances given its code.

        Raises:
            UsageError: if the event has probability 0.
        """
        factors = list(self.tables)
        total = self.total
        for name, chances in where.items():
            if not chances.any():
                raise UsageError(f"where {name}", "cannot happen under this model.", "Allow more values.")
            if chances.size == 1:
                total *= float(chances[0])
                continue
            bag = self.tree.home[name]
            fresh = self.tree.fresh[bag]
            kept = np.broadcast_to(spread(self.domain, fresh, Clique((name,)), chances), self.domain.shape(fresh))
            factors[bag] = factors[bag] * kept.reshape(1, -1)
        tables, logarithm = calibrate(self.tree, factors)
        if logarithm == -math.inf:
            raise UsageError(f"where {', '.join(where)}", "cannot happen under this model.", "Allow more values.")
        return type(self)(self.tree, tables, total * min(1.0, math.exp(logarithm)), self.rounding)

    def save(self, folder: Path) -> None:
        """Writes `model.json` and one raw array into an existing empty folder."""
        write_model_files(folder, self.to_files())

    def to_files(self) -> ModelFiles:
        """What `save` writes: the document and the array `probabilities`."""
        document = {
            "kind": self.kind,
            "total": self.total,
            "rounding": self.rounding,
            "domain": [[name, size] for name, size in self.domain.sizes.items()],
            "bags": [
                {"columns": list(bag), "parent": parent}
                for bag, parent in zip(self.tree.bags, self.tree.parents, strict=True)
            ],
        }
        flat = np.concatenate([table.ravel() for table in self.tables])
        return ModelFiles(document, {"probabilities": flat})

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads what `save` wrote.

        Raises:
            ReleaseError: if a file is missing, altered, too large or of the wrong type.
        """
        return cls.of_files(read_model_files(folder, cls.kind, {"probabilities": np.dtype("<f8")}))

    @classmethod
    def of_files(cls, files: ModelFiles) -> Self:
        """The model that `to_files` gave.

        Raises:
            ReleaseError: if the document and the array do not make a model.
        """
        domain = files.domain()
        rounding = files.document.get("rounding")
        if not isinstance(rounding, bool):
            raise ReleaseError([Problem("model.json: rounding", "must be true or false.")])
        try:
            tree = JunctionTree(domain, *_layout(files.document, domain))
        except UsageError as error:
            raise ReleaseError([Problem("model.json: bags", error.problem.rule)]) from error
        probabilities = files.arrays["probabilities"].astype(np.float64, copy=False)
        sizes = [domain.cells(bag) for bag in tree.bags]
        ends = [0, *itertools.accumulate(sizes)]
        if probabilities.size != ends[-1]:
            raise ReleaseError([Problem("model.json: bags", "the cells do not match the length of the array.")])
        tables = tuple(
            probabilities[low:high].reshape(domain.cells(separator), domain.cells(fresh))
            for low, high, separator, fresh in zip(ends[:-1], ends[1:], tree.separators, tree.fresh, strict=True)
        )
        total = files.number("total")
        found = [Problem("model", fault) for fault in _faults(tree, tables, total)]
        if found:
            raise ReleaseError(found)
        return cls(tree, tables, total, rounding)


def _faults(tree: JunctionTree, tables: Sequence[Floats], total: float) -> list[str]:
    found = [] if math.isfinite(total) and total >= 0.0 else ["the total must be finite and 0 or more."]
    if any(tree.domain.cells(bag) >= _BAG_CELLS for bag in tree.bags):
        return [*found, "a bag has too many cells."]
    return found + table_faults(tree, tables)


def _layout(document: Mapping[str, object], domain: Domain) -> tuple[tuple[Clique, ...], tuple[int, ...]]:
    """Columns and parent of each bag, as the document states them."""
    entries = document.get("bags")
    if not isinstance(entries, list) or not 0 < len(entries) <= len(domain.columns):
        raise ReleaseError([Problem("model.json: bags", "must be a list, no longer than the list of columns.")])
    bags, parents = [], []
    for entry in entries:
        names = entry.get("columns") if isinstance(entry, dict) else None
        parent = entry.get("parent") if isinstance(entry, dict) else None
        if not isinstance(names, list) or not all(isinstance(name, str) and name in domain.sizes for name in names):
            raise ReleaseError([Problem("model.json: bags", "each needs `columns`, a list of columns of the domain.")])
        if type(parent) is not int:
            raise ReleaseError([Problem("model.json: bags", "each needs `parent`, a whole number.")])
        bags.append(Clique(names))
        parents.append(parent)
    return tuple(bags), tuple(parents)


register(MarkovField)
