"""MergedCodec: a table codec in which several codes of a column share one, for counting and for nothing else.

Methods merge codes that noisy counts have shown to be rare: relations are then counted and measured on merged codes,
and the model of the method draws a code for each merged one afterwards. So there is no way back to values here: those
are decoded by the codec with all codes.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.codec.column_codec import CodeArray, code_type
from understudy.codec.table_codec import TableCodec
from understudy.errors import UsageError
from understudy.marginals.domain import Domain

__all__ = ["MergedCodec"]


class MergedCodec(TableCodec):
    """`full` with code c of a column replaced by `places[column][c]`, for the columns that `places` names.

    Raises:
        UsageError: if places are not one merged code for each code, 0, 1, 2, … without a gap, or if a rule names the
            column: which combinations it excludes cannot be said of merged codes.
    """

    def __init__(self, full: TableCodec, places: Mapping[str, npt.NDArray[np.integer]]) -> None:
        self.__dict__.update(full.__dict__)
        self._full = full
        tied = {name for rule in full.forbidden for name in rule.clique}
        for name, merged in places.items():
            _check(full.domain, name, merged)
            if name in tied:
                raise UsageError(f"column {name!r}", "is named by a rule, so its codes cannot be merged.")
        sizes = {name: int(merged.max()) + 1 for name, merged in places.items()}
        self.domain = Domain.of({**full.domain.sizes, **sizes})
        self._places = {name: merged.astype(code_type(sizes[name])) for name, merged in places.items()}
        self.forbidden = full.forbidden
        self.taxonomies = {name: groups for name, groups in full.taxonomies.items() if name not in places}

    @property
    def merged(self) -> frozenset[str]:
        """The columns whose codes are merged."""
        return frozenset(self._places) | (self._full.merged if isinstance(self._full, MergedCodec) else frozenset())

    def dtype(self, name: str) -> np.dtype[np.unsignedinteger]:
        """The smallest unsigned type that holds the column's codes."""
        return self._places[name].dtype if name in self._places else self._full.dtype(name)

    def encode(self, name: str, values: pa.Array | pa.ChunkedArray) -> CodeArray:
        """The merged code of each value; each depends on its own value alone."""
        codes = self._full.encode(name, values)
        return np.take(self._places[name], codes) if name in self._places else codes

    def decode(self, codes: Mapping[str, npt.NDArray[np.integer]], rng: np.random.Generator) -> pa.Table:
        """Refused: a merged code stands for several values, and only the model that was fitted knows which."""
        raise UsageError("merged codes", "cannot be decoded.", "Decode the model's codes with the codec of all codes.")


def _check(domain: Domain, name: str, merged: npt.NDArray[np.integer]) -> None:
    if name not in domain.sizes:
        raise UsageError(f"column {name!r}", "is not a column of the codes that are to be merged.")
    if merged.shape != (domain.sizes[name],) or not np.array_equal(np.unique(merged), np.arange(merged.max() + 1)):
        rule = f"needs a merged code, 0, 1, 2, … without a gap, for each of its {domain.sizes[name]:,} codes."
        raise UsageError(f"column {name!r}", rule)
