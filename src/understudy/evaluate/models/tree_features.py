"""What classification trees look at: every column as small whole numbers, ordered or not.

Labels keep their codes. Numbers are cut at quantiles of all rows at hand (exactly, if they take few values), finer
than the bins of the schema, so that a tree also sees what the stand-in does inside a bin; special and missing
numbers get codes above all numbers.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.evaluate.data.rows import Rows
from understudy.schema.column import NumberColumn

__all__ = ["MOST_CUTS", "Features", "tree_features"]

MOST_CUTS = 256
MOST_CODES = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """One row per column of the table, one entry per record; `ordered` tells numbers from labels."""

    names: tuple[str, ...]
    codes: npt.NDArray[np.uint16]
    sizes: npt.NDArray[np.int64]
    ordered: npt.NDArray[np.bool_]

    def take(self, index: npt.NDArray[np.int64]) -> "Features":
        """The same columns for these records."""
        return Features(self.names, np.ascontiguousarray(self.codes[:, index]), self.sizes, self.ordered)


def tree_features(rows: Rows, leave_out: Collection[str] = ()) -> Features:
    """The columns of the table but those left out."""
    codec = rows.codec
    names: list[str] = []
    columns: list[npt.NDArray[np.uint16]] = []
    sizes: list[int] = []
    ordered: list[bool] = []
    for part in rows.domain.columns:
        origin = codec.origin(part)
        number = isinstance(codec.schema.column(origin), NumberColumn)
        if origin in leave_out or (number and origin in names):
            continue
        codes, size = _number_codes(rows, origin, part) if number else _label_codes(rows, part)
        names.append(origin if number else part)
        columns.append(codes)
        sizes.append(size)
        ordered.append(number)
    matrix = np.stack(columns) if columns else np.empty((0, rows.count), np.uint16)
    return Features(tuple(names), matrix, np.asarray(sizes, np.int64), np.asarray(ordered, np.bool_))


def _label_codes(rows: Rows, part: str) -> tuple[npt.NDArray[np.uint16], int]:
    codes, size = rows.codes[part], rows.domain.sizes[part]
    if size > MOST_CODES:  # rare labels beyond the most frequent share one code
        often = np.argsort(-np.bincount(codes, minlength=size), kind="stable")[: MOST_CODES - 1]
        table = np.full(size, MOST_CODES - 1, np.int64)
        table[often] = np.arange(len(often))
        return table[codes].astype(np.uint16), MOST_CODES
    return codes.astype(np.uint16), size


def _number_codes(rows: Rows, name: str, part: str) -> tuple[npt.NDArray[np.uint16], int]:
    numbers = rows.numbers[name]
    odd = np.isnan(numbers)
    known = np.unique(numbers[~odd])
    if len(known) > MOST_CUTS:
        shares = np.arange(1, MOST_CUTS) / MOST_CUTS
        known = np.unique(np.quantile(numbers[~odd], shares, method="inverted_cdf"))
    found = np.searchsorted(known, numbers, side="left")
    states, place = np.unique(rows.codes[part][odd], return_inverse=True)
    codes = np.where(odd, 0, found).astype(np.int64)
    codes[odd] = len(known) + 1 + place.ravel()
    return codes.astype(np.uint16), len(known) + 1 + len(states)
