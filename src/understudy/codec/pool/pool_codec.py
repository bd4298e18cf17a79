"""PoolCodec: a category whose rare labels share one code.

Which labels are rare was found out from noisy counts that were paid for (`mechanisms/preparation/rare.py`); with each
goes a share, and a row of the common code is written as one of them, drawn by the shares. Kept labels come first, in
their order, then the common code, then other, missing and unreadable as ever.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.codec.column_codec import CodeArray
from understudy.codec.label_codec import LabelCodec
from understudy.errors import UsageError

__all__ = ["Pool", "PoolCodec", "checked_pool"]

Pool = tuple[tuple[str, float], ...]
"""The rare labels of a column and the share of each, in the order of its labels."""


class PoolCodec:
    """Labels ⇄ codes by way of the codes of all labels."""

    def __init__(self, full: LabelCodec, pool: Pool) -> None:
        self.full = full
        self.arrow_type = full.arrow_type
        rare = dict(pool)
        kept = [code for code, label in enumerate(full.labels) if label not in rare]
        self._members = np.array([code for code, label in enumerate(full.labels) if label in rare], dtype=np.int64)
        shares = np.array([rare[full.labels[code]] for code in self._members], dtype=np.float64)
        self._steps = np.cumsum(shares / shares.sum())
        self.layout = replace(full.layout, regular=len(kept) + 1)
        self.pooled_code = len(kept)
        beyond = range(full.layout.regular, full.layout.size)
        # From a code of this column to one of all labels (any member for the common code), and back.
        self._wide = np.array([*kept, self._members[0], *beyond], dtype=np.int64)
        self._places = np.full(full.layout.size + 1, self.pooled_code, dtype=self.layout.dtype)
        self._places[self._wide] = np.arange(self.layout.size)
        self._places[self._members] = self.pooled_code
        if full.layout.leaves_out:
            self._places[full.layout.size] = self.layout.size  # no code is no code here either

    def encode(self, array: pa.Array) -> CodeArray:
        """The code of each value."""
        codes: CodeArray = np.take(self._places, self.full.encode(array))
        return codes

    def decode(self, codes: CodeArray, rng: np.random.Generator) -> pa.Array:
        """The label of each code; for the common code one of the rare labels, drawn by their shares."""
        wide = self._wide[codes]
        pooled = np.flatnonzero(codes == self.pooled_code)
        drawn = np.searchsorted(self._steps, rng.random(pooled.size), side="right")
        wide[pooled] = self._members[np.minimum(drawn, self._members.size - 1)]
        return self.full.decode(wide.astype(self.full.layout.dtype), rng)

    def describe(self, code: int) -> str:
        """The label, the name of other, "missing", or what stands for the rare labels."""
        if code == self.pooled_code:
            return f"one of {self._members.size:,} rare labels"
        return self.full.describe(int(self._wide[code]))

    def codes_matching(self, text: str) -> npt.NDArray[np.int64]:
        """The code of that label or description; none for a rare label, which no count can tell from the others."""
        if text == self.describe(self.pooled_code):
            return np.asarray([self.pooled_code], dtype=np.int64)
        codes = self._places[self.full.codes_matching(text)]
        return np.asarray(codes[codes != self.pooled_code], dtype=np.int64)

    def nearest_conditions(self, text: str) -> str:
        """For a rare label, the condition that holds all of them; else nothing."""
        known = self._places[self.full.codes_matching(text)]
        if not (known == self.pooled_code).any():
            return ""
        return f'It is rare and shares a code; ask for all of these labels with "{self.describe(self.pooled_code)}".'


def checked_pool(column: str, labels: Sequence[str], pool: Pool) -> Pool:
    """The pool, if it names two or more labels of the column once each, with shares that can be drawn by."""
    names = [label for label, _ in pool]
    shares = [share for _, share in pool]
    if len(names) < 2 or len(set(names)) < len(names) or not set(names) <= set(labels):
        raise UsageError(f"column {column!r}", "needs at least two of its labels, each once, as its rare labels.")
    if not all(np.isfinite(share) and share >= 0 for share in shares) or not sum(shares) > 0:
        raise UsageError(f"column {column!r}", "needs shares of its rare labels that are 0 or more, not all 0.")
    return pool
