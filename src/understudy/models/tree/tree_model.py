"""TreeModel: a full table of probabilities with the tree it was counted by, and the signed estimates beside it.

The leaf layer of a tree is the full table, so the distribution is one probability per cell of the domain, row-major;
cells that a rule excludes have none. `signed` holds the least squares estimates before negatives were removed, in the
same order: unbiased, and what sums over many cells should be taken from. Sums over a node's cells give its estimates.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self, cast, get_args

import numpy as np
import numpy.typing as npt

from understudy.errors import Problem, ReleaseError, UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.models.arrays import ModelFiles, read_model_files, write_model_files
from understudy.models.asked import asked_clique, asked_codes
from understudy.models.draw import Rounding, code_dtype, draw_places
from understudy.models.model import Codes
from understudy.models.restrict import sub_indices
from understudy.models.store import register
from understudy.models.tree.structure import Structure

__all__ = ["LEAF_LIMIT", "TreeModel"]

Floats = npt.NDArray[np.float64]

LEAF_LIMIT = 2**28
"""Most cells of a full table that is written out."""

_SUM_TOLERANCE = 1e-6
_DTYPES: dict[str, np.dtype[np.generic]] = {
    "probabilities": np.dtype("<f8"),
    "signed": np.dtype("<f8"),
    "parents": np.dtype("<i8"),
    "columns": np.dtype("<i4"),
    "lows": np.dtype("<i4"),
    "highs": np.dtype("<i4"),
}


@dataclass(frozen=True, slots=True, eq=False)
class TreeModel:
    """A distribution over the cells of the full table. `rounding` says how many whole rows are made of it."""

    kind: ClassVar[str] = "tree"

    structure: Structure
    probabilities: Floats
    signed: Floats
    total: float
    rounding: Rounding = "multinomial"

    def __post_init__(self) -> None:
        for fault in _faults(self):
            raise UsageError("tree model", fault)

    @classmethod
    def of(
        cls, structure: Structure, signed: Floats, counts: Floats, total: float, rounding: Rounding = "multinomial"
    ) -> Self:
        """The model of leaf counts of 0 or more (not all 0), in the row-major order of the domain."""
        return cls(structure, counts / counts.sum(), signed, total, rounding)

    @property
    def domain(self) -> Domain:
        """The codes it speaks about."""
        return self.structure.domain

    def marginal(self, clique: Clique) -> Floats:
        """Probabilities of the clique's cells, flat row-major.

        Raises:
            ResourceError: if the table would be too large to hold.
        """
        return _summed(self.domain, asked_clique(self.domain, clique), self.probabilities)

    def signed_marginal(self, clique: Clique) -> Floats:
        """Unbiased estimates of the counts of the clique's cells, some perhaps below 0."""
        return _summed(self.domain, asked_clique(self.domain, clique), self.signed)

    def draw(self, rows: int, rng: np.random.Generator) -> Codes:
        """`rows` records: independent ones, or in random order after controlled rounding if the model asks for it."""
        cells = draw_places(self.probabilities, rows, rng, self.rounding)
        drawn: dict[str, npt.NDArray[np.integer]] = {}
        for name in reversed(self.domain.columns):
            size = self.domain.sizes[name]
            cells, codes = np.divmod(cells, size)
            drawn[name] = codes.astype(code_dtype(size))
        return {name: drawn[name] for name in self.domain.columns}

    def condition(self, where: Mapping[str, npt.NDArray[np.integer]]) -> Self:
        """The distribution given that each named column holds one of the codes; `total` shrinks with its chance.

        Raises:
            UsageError: if a code is outside its column or the condition has probability 0.
        """
        kept = np.ones(self.probabilities.size, dtype=bool)
        cells = np.arange(kept.size, dtype=np.int64)
        for name, codes in where.items():
            mask = asked_codes(self.domain, name, codes)
            if not mask.all():
                kept &= mask[sub_indices(self.domain, self.domain.columns, cells, (name,))]
        chance = float(self.probabilities[kept].sum())
        if chance <= 0.0:
            raise UsageError(f"where {', '.join(where)}", "cannot happen under this model.", "Allow more values.")
        if kept.all():
            return self
        return type(self)(
            self.structure,
            np.where(kept, self.probabilities / chance, 0.0),
            np.where(kept, self.signed, 0.0),
            self.total * min(chance, 1.0),
            self.rounding,
        )

    def save(self, folder: Path) -> None:
        """Writes `model.json`, the two tables and the nodes of the tree into an existing empty folder."""
        document = {
            "kind": self.kind,
            "total": self.total,
            "rounding": self.rounding,
            "domain": [[name, size] for name, size in self.domain.sizes.items()],
            "layers": list(self.structure.starts),
        }
        tree = self.structure
        arrays: dict[str, npt.NDArray[np.generic]] = {
            "probabilities": self.probabilities,
            "signed": self.signed,
            "parents": tree.parents,
            "columns": tree.columns,
            "lows": tree.lows,
            "highs": tree.highs,
        }
        write_model_files(folder, ModelFiles(document, arrays))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads what `save` wrote.

        Raises:
            ReleaseError: if a file is missing, altered, too large or of the wrong type.
        """
        files = read_model_files(folder, cls.kind, _DTYPES)
        domain, starts = files.domain(), files.document.get("layers")
        if not isinstance(starts, list) or not all(type(start) is int for start in starts) or len(starts) < 2:
            raise ReleaseError([Problem("model.json: layers", "must be a list of whole numbers.")])
        rounding = cast(Rounding, files.document.get("rounding"))  # checked by the model
        arrays = files.arrays
        structure = Structure(
            domain,
            arrays["parents"].astype(np.int64, copy=False),
            arrays["columns"].astype(np.int32, copy=False),
            arrays["lows"].astype(np.int32, copy=False),
            arrays["highs"].astype(np.int32, copy=False),
            tuple(starts),
        )
        found = [Problem("model", fault) for fault in structure.faults()]
        if found:
            raise ReleaseError(found)
        probabilities = arrays["probabilities"].astype(np.float64, copy=False)
        signed = arrays["signed"].astype(np.float64, copy=False)
        try:
            return cls(structure, probabilities, signed, files.number("total"), rounding)
        except UsageError as error:
            raise ReleaseError([error.problem]) from error


def _summed(domain: Domain, clique: Clique, table: Floats) -> Floats:
    """The table summed over all columns that are not in the clique."""
    # Columns with one code add nothing but a dimension, and numpy allows only 64 of those.
    live = [name for name in domain.columns if domain.sizes[name] > 1]
    others = tuple(axis for axis, name in enumerate(live) if name not in clique)
    return np.ascontiguousarray(table.reshape(domain.shape(live)).sum(axis=others)).reshape(-1)


def _faults(model: TreeModel) -> list[str]:
    cells = model.domain.cells(model.domain.columns)
    if cells > LEAF_LIMIT:
        return [f"a table of {cells:,} cells is too large."]
    if model.probabilities.shape != (cells,) or model.signed.shape != (cells,):
        return ["needs one probability and one signed estimate per cell of the domain."]
    found = [] if math.isfinite(model.total) and model.total >= 0.0 else ["the total must be finite and 0 or more."]
    if model.rounding not in get_args(Rounding):
        found.append("rounding must be multinomial or controlled.")
    if not np.all(np.isfinite(model.probabilities)) or model.probabilities.min() < 0.0:
        found.append("probabilities must be finite and 0 or more.")
    elif abs(model.probabilities.sum() - 1.0) > _SUM_TOLERANCE:
        found.append("probabilities must add up to 1.")
    if not np.all(np.isfinite(model.signed)):
        found.append("signed estimates must be finite.")
    return found


register(TreeModel)
