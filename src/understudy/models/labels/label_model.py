"""LabelModel: records whose public columns come from a table of cells and whose private ones are drawn given them.

The public part is a list of cells with probabilities: a public table, or what noisy trees say about the public
columns. The private part is a `LabelChain`. Marginals, draws and conditions are exact: the law of the private columns
is written out for every cell of the list.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from understudy.errors import Problem, ReleaseError, UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.models.asked import asked_clique, asked_codes
from understudy.models.draw import code_dtype, cumulative, draw_cells
from understudy.models.labels.chain import LabelChain, pick
from understudy.models.model import Codes
from understudy.models.restrict import allowed, sub_indices
from understudy.models.store import register

__all__ = ["LabelModel"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_CELL_LIMIT = 2**62
_KEPT_ENTRIES = 2**23
_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class LabelModel:
    """Cells of the public columns (flat row-major, increasing), their probabilities, and the chain of labels.

    `kept` says which combinations of private codes a condition left (all of them at first).
    """

    kind: ClassVar[str] = "labels"

    chain: LabelChain
    cells: Ints
    probabilities: Floats
    total: float
    kept: Bools

    def __post_init__(self) -> None:
        for fault in self.faults():
            raise UsageError("label model", fault)

    @classmethod
    def of(cls, chain: LabelChain, cells: Ints, weights: Floats, total: float) -> Self:
        """The model of weighted public cells (increasing); cells that the rules exclude are left out.

        If noise left no weight on possible cells, they all weigh the same: a run that was paid for must end with rows.

        Raises:
            UsageError: if none of the cells is possible.
        """
        possible = allowed(chain.domain, chain.public, cells, chain.forbidden)
        cells, weights = cells[possible], np.maximum(weights[possible], 0.0)
        step = max(1, _KEPT_ENTRIES // chain.combinations)
        some = np.ones(cells.size, dtype=bool)
        for low in range(0, cells.size, step):
            part = slice(low, low + step)
            mask = chain.possible(_codes(chain, cells[part]), cells[part].size)
            if mask is not None:
                some[part] = mask.any(axis=1)
        if not some.any():
            raise UsageError("rules", "leave no combination possible.", "Drop or narrow a rule.")
        mass = weights[some] if weights[some].any() else np.ones(int(some.sum()))
        held = cells[some][mass > 0.0]
        kept = np.ones(chain.combinations, dtype=bool)
        return cls(chain, held, mass[mass > 0.0] / mass.sum(), total, kept)

    @property
    def domain(self) -> Domain:
        """The codes it speaks about."""
        return self.chain.domain

    def marginal(self, clique: Clique) -> Floats:
        """Probabilities of the clique's cells, flat row-major.

        Raises:
            ResourceError: if the table would be too large to hold.
        """
        wanted = asked_clique(self.domain, clique)
        strides, stride = {}, 1
        for name in reversed(wanted):
            strides[name] = stride
            stride *= self.domain.sizes[name]
        found = np.zeros(stride)
        drawn = self.chain.drawn
        within = sum((drawn[name] * strides[name] for name in wanted if name in drawn), np.zeros(1, dtype=np.int64))
        for part, law in self._laws():
            codes = _codes(self.chain, self.cells[part])
            outer = sum((codes[name] * strides[name] for name in wanted if name in codes), np.zeros(1, np.int64))
            if len(within) == 1:
                places = np.broadcast_to(outer, self.probabilities[part].shape)
                found += np.bincount(places, weights=self.probabilities[part], minlength=stride)
            else:
                places = np.broadcast_to(outer[:, None] + within, law.shape).ravel()
                weights = (law * self.probabilities[part][:, None]).ravel()
                found += np.bincount(places, weights=weights, minlength=stride)
        return found

    def draw(self, rows: int, rng: np.random.Generator) -> Codes:
        """`rows` independent records, as the smallest unsigned integers that hold the codes."""
        places = draw_cells(cumulative(self.probabilities), rows, rng)
        uniform = rng.random(rows)
        chosen = np.zeros(rows, dtype=np.int64)
        # Records sorted by cell meet each block of laws once.
        order = np.argsort(places, kind="stable")
        for part, law in self._laws():
            low, high = np.searchsorted(places[order], [part.start, part.stop])
            mine = order[low:high]
            chosen[mine] = _picked(law, places[mine] - part.start, uniform[mine])
        codes = _codes(self.chain, self.cells[places])
        return self._named(codes, chosen)

    def label(self, codes: Mapping[str, npt.NDArray[np.integer]], rng: np.random.Generator, *, rows: int) -> Codes:
        """Private codes for `rows` given records, each drawn from its own law; only public columns are looked at."""
        cells = np.zeros(rows, dtype=np.int64)
        for name in self.chain.public:
            cells = cells * self.domain.sizes[name] + np.asarray(codes[name], dtype=np.int64)
        uniform = rng.random(rows)
        different, which = np.unique(cells, return_inverse=True)
        chosen = np.zeros(rows, dtype=np.int64)
        order = np.argsort(which, kind="stable")
        for part, law in self.chain.blocks(_codes(self.chain, different), different.size):
            low, high = np.searchsorted(which[order], [part.start, part.stop])
            mine = order[low:high]
            chosen[mine] = _picked(self._kept_part(law), which[mine] - part.start, uniform[mine])
        return {name: self._typed(name, drawn[chosen]) for name, drawn in self.chain.drawn.items()}

    def condition(self, where: Mapping[str, npt.NDArray[np.integer]]) -> Self:
        """The distribution given that each named column holds one of the codes; `total` shrinks with its chance.

        Raises:
            UsageError: if a code is outside its column or the condition has probability 0.
        """
        masks = {name: asked_codes(self.domain, name, codes) for name, codes in where.items()}
        drawn = self.chain.drawn
        kept = self.kept.copy()
        for name in masks.keys() & drawn.keys():
            kept &= masks[name][drawn[name]]
        chances = self.probabilities.copy()
        for name in masks.keys() - drawn.keys():
            chances *= masks[name][sub_indices(self.domain, self.chain.public, self.cells, (name,))]
        for part, law in self._laws():
            chances[part] *= np.minimum(law @ kept.astype(np.float64), 1.0)
        chance = float(chances.sum())
        if chance <= 0.0:
            raise UsageError(f"where {', '.join(masks)}", "cannot happen under this model.", "Allow more values.")
        some = chances > 0.0
        total = self.total * min(chance, 1.0)
        return type(self)(self.chain, self.cells[some], chances[some] / chance, total, kept)

    def save(self, folder: Path) -> None:
        """Writes `model.json` and raw arrays into an existing empty folder."""
        from understudy.models.labels.files import save_label_model  # the files need this type

        save_label_model(self, folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads what `save` wrote.

        Raises:
            ReleaseError: if a file is missing, altered, too large or of the wrong type.
        """
        from understudy.models.labels.files import read_label_model

        parts = read_label_model(folder, cls.kind)
        try:
            return cls(*parts)
        except UsageError as error:
            raise ReleaseError([Problem("model", "its parts do not fit together.", "Restore the folder.")]) from error

    def faults(self) -> list[str]:
        """What is wrong with it, in words; empty if nothing is."""
        found = self.chain.faults()
        if found:
            return found
        cells, probabilities = self.cells, self.probabilities
        if not math.isfinite(self.total) or self.total < 0.0:
            found.append("the total must be finite and 0 or more.")
        most = self.domain.cells(self.chain.public)
        if most >= _CELL_LIMIT or self.kept.shape != (self.chain.combinations,) or not self.kept.any():
            return [*found, "public columns must have fewer than 2⁶² cells, and some combination must be left."]
        if not cells.size or cells.shape != probabilities.shape:
            return [*found, "needs at least one cell, and one probability per cell."]
        if cells[0] < 0 or cells[-1] >= most or not np.all(cells[1:] > cells[:-1]):
            found.append("cell numbers must increase and lie inside the table.")
        if not np.all(np.isfinite(probabilities)) or probabilities.min() < 0.0:
            found.append("probabilities must be finite and 0 or more.")
        elif abs(probabilities.sum() - 1.0) > _SUM_TOLERANCE:
            found.append("probabilities must add up to 1.")
        return found

    def _laws(self) -> Iterator[tuple[slice, Floats]]:
        """The law of the private columns in every cell, block by block; written out once if it is small."""
        if self.cells.size * self.chain.combinations <= _KEPT_ENTRIES:
            yield slice(0, self.cells.size), self._whole_law
        else:
            for part, law in self.chain.blocks(_codes(self.chain, self.cells), self.cells.size):
                yield part, self._kept_part(law)

    @cached_property
    def _whole_law(self) -> Floats:
        blocks = self.chain.blocks(_codes(self.chain, self.cells), self.cells.size)
        return np.concatenate([self._kept_part(law) for _, law in blocks])

    def _kept_part(self, law: Floats) -> Floats:
        if self.kept.all():
            return law
        part = np.where(self.kept, law, 0.0)
        part[part.sum(axis=1) <= 0.0] = self.kept  # a record for which the condition has no chance: all that is left
        return np.asarray(part / part.sum(axis=1, keepdims=True))

    def _named(self, public: Mapping[str, Ints], chosen: Ints) -> Codes:
        drawn = self.chain.drawn
        return {
            name: self._typed(name, drawn[name][chosen] if name in drawn else public[name])
            for name in self.domain.columns
        }

    def _typed(self, name: str, codes: Ints) -> npt.NDArray[np.integer]:
        return codes.astype(code_dtype(self.domain.sizes[name]))


def _codes(chain: LabelChain, cells: Ints) -> dict[str, Ints]:
    """The codes of every public column in these cells."""
    return {name: sub_indices(chain.domain, chain.public, cells, (name,)) for name in chain.public}


def _picked(law: Floats, places: Ints, uniform: Floats) -> Ints:
    """A combination for each record, given its line of the law; a few records at a time."""
    step = max(1, 2**22 // law.shape[1])
    parts = [pick(law[places[low : low + step]], uniform[low : low + step]) for low in range(0, places.size, step)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


register(LabelModel)
