"""RecordModel: synthetic records themselves as the model, for methods that make rows and no tables.

The distribution is the one of the records: each equally likely. Drawing takes every record the same number of times
and the rest without repeats, in random order; as many rows as there are records give back just these. So rows drawn in
one piece hold the tables they were made for and nothing is lost to sampling. Records that rules exclude were never
made, so none is drawn.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from understudy.errors import Problem, ReleaseError, UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.models.arrays import ModelFiles, read_model_files, write_model_files
from understudy.models.asked import asked_clique, asked_codes
from understudy.models.draw import code_dtype
from understudy.models.model import Codes
from understudy.models.store import register

__all__ = ["RecordModel"]

Floats = npt.NDArray[np.float64]

_WIDTHS: Mapping[str, np.dtype[np.unsignedinteger]] = {
    "bytes": np.dtype("<u1"),
    "words": np.dtype("<u2"),
    "long_words": np.dtype("<u4"),
}
"""Arrays of the file form: the columns of one width, one after the other."""


@dataclass(frozen=True, eq=False)
class RecordModel:
    """A distribution over `domain` given by synthetic records, each column in the smallest type that holds it."""

    kind: ClassVar[str] = "records"

    domain: Domain
    codes: Codes
    total: float

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise UsageError("records", fault)

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self.codes[self.domain.columns[0]])

    def marginal(self, clique: Clique) -> Floats:
        """Shares of records in the clique's cells, flat row-major.

        Raises:
            ResourceError: if the table would be too large to hold.
        """
        wanted = asked_clique(self.domain, clique)
        cells: npt.NDArray[np.int64] = np.zeros(self.records, dtype=np.int64)
        for name in wanted:
            cells *= self.domain.sizes[name]
            cells += self.codes[name]
        return np.bincount(cells, minlength=self.domain.cells(wanted)) / self.records

    def draw(self, rows: int, rng: np.random.Generator) -> Codes:
        """`rows` records: each equally often, the rest picked without repeats, in random order."""
        if rows < 0:
            raise UsageError("rows", f"must be 0 or more, got {rows}.")
        places = np.tile(np.arange(self.records), -(-rows // self.records)) if rows else np.zeros(0, dtype=np.int64)
        full = rows - rows % self.records
        places[full:] = rng.permutation(self.records)[: places.size - full]
        places = rng.permutation(places[:rows])
        return {name: self.codes[name][places] for name in self.domain.columns}

    def condition(self, where: Mapping[str, npt.NDArray[np.integer]]) -> Self:
        """The records whose named columns hold one of the codes; `total` shrinks with their share.

        Raises:
            UsageError: if a code is outside its column or no record is like that.
        """
        kept = np.ones(self.records, dtype=bool)
        for name, wanted in where.items():
            kept &= asked_codes(self.domain, name, wanted)[self.codes[name]]
        if not kept.any():
            names = ", ".join(where)
            raise UsageError(
                f"where {names}", "no synthetic record of this release is like that.", "Allow more values."
            )
        codes = {name: self.codes[name][kept] for name in self.domain.columns}
        return type(self)(self.domain, codes, self.total * float(kept.mean()))

    def save(self, folder: Path) -> None:
        """Writes `model.json` and one raw array per width of codes into an existing empty folder."""
        document = {
            "kind": self.kind,
            "total": self.total,
            "records": self.records,
            "domain": [[name, size] for name, size in self.domain.sizes.items()],
        }
        arrays = {
            key: np.concatenate([np.zeros(0, width), *(self.codes[name] for name in _columns(self.domain, width))])
            for key, width in _WIDTHS.items()
        }
        write_model_files(
            folder, ModelFiles(document, {key: array.astype(_WIDTHS[key]) for key, array in arrays.items()})
        )

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads what `save` wrote.

        Raises:
            ReleaseError: if a file is missing, altered, too large or of the wrong type.
        """
        files = read_model_files(folder, cls.kind, _WIDTHS)
        domain, records = files.domain(), files.document.get("records")
        if type(records) is not int or not 0 < records < 2**40:
            raise ReleaseError([Problem("model.json: records", "must be a whole number above 0.")])
        codes: dict[str, npt.NDArray[np.integer]] = {}
        for key, width in _WIDTHS.items():
            names = _columns(domain, width)
            array = files.arrays[key]
            if array.size != records * len(names):
                raise ReleaseError([Problem(f"{key}.npy", "does not hold one code per record and column.")])
            codes |= dict(zip(names, array.astype(width).reshape(len(names), records), strict=True))
        try:
            return cls(domain, {name: codes[name] for name in domain.columns}, files.number("total"))
        except UsageError as error:
            raise ReleaseError([Problem("model", error.problem.rule)]) from error

    def _faults(self) -> list[str]:
        if set(self.codes) != set(self.domain.columns) or len({len(codes) for codes in self.codes.values()}) != 1:
            return ["every column of the domain must have one code per record."]
        if not self.records:
            return ["there must be at least one."]
        if not math.isfinite(self.total) or self.total < 0.0:
            return ["the total must be finite and 0 or more."]
        for name, size in self.domain.sizes.items():
            if self.codes[name].dtype != code_dtype(size):
                return [f"column {name}: codes must have the smallest type that holds them."]
            if int(self.codes[name].max()) >= size:
                return [f"column {name}: codes must lie between 0 and {size - 1}."]
        return []


def _columns(domain: Domain, width: np.dtype[np.unsignedinteger]) -> list[str]:
    """The columns whose codes have that width, in order."""
    return [name for name, size in domain.sizes.items() if np.dtype(code_dtype(size)).itemsize == width.itemsize]


register(RecordModel)
