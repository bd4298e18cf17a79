"""Encoding: how codes become blocks of a network, from sizes and noisy counts alone.

Every column is one-hot over at most `most` groups of neighbouring codes. A column with no more codes than that is taken
as it is; otherwise the noisy counts of the column (already paid for) are cut into groups of about equal mass, so that a
frequent code has a group of its own and rare neighbours share one. Bins of numbers are ordered, so neighbours belong
together there; the missing code and special values come last. What is drawn is a group; which code of the group follows
from the noisy counts. All of this is post-processing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled
from understudy.models.nonnegative import norm_sub

__all__ = ["Encoding", "cut_evenly", "one_hot_blocks"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Blocks = npt.NDArray[np.int32]
Codes = npt.NDArray[np.unsignedinteger]

_LEAST_SHARE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """Groups of codes per column, and the estimated share of every code."""

    groups: tuple[Ints, ...]
    """For every column the group of each code, counted from 0 without gaps."""
    shares: tuple[Floats, ...]
    """For every column the estimated share of each code, above 0, adding up to 1."""

    @classmethod
    def of(cls, counts: Sequence[Floats], most: int) -> "Encoding":
        """Groups and shares from noisy counts of the columns."""
        shares = tuple(_positive_shares(part) for part in counts)
        return cls(tuple(cut_evenly(part, most) for part in shares), shares)

    @property
    def bounds(self) -> list[int]:
        """Where the blocks of each column begin; the last entry is their number."""
        return [0, *np.cumsum([int(part.max()) + 1 for part in self.groups]).tolist()]

    @property
    def column_of_block(self) -> Blocks:
        """Which column each block belongs to."""
        bounds = self.bounds
        return np.repeat(np.arange(len(self.groups)), np.diff(bounds)).astype(np.int32)

    def group_shares(self) -> list[Floats]:
        """The share of every group, column by column."""
        pairs = zip(self.groups, self.shares, strict=True)
        return [np.asarray(np.bincount(groups, weights=shares), dtype=np.float64) for groups, shares in pairs]

    def blocks(self, codes: Codes) -> Blocks:
        """One line of blocks per line of codes, ending with the block that every record has."""
        bounds = self.bounds
        table = np.concatenate([part + low for part, low in zip(self.groups, bounds[:-1], strict=True)])
        starts = np.array([0, *np.cumsum([part.size for part in self.groups])[:-1]], dtype=np.int64)
        found = np.empty((len(codes), len(self.groups) + 1), dtype=np.int32)
        _look_up(codes, table.astype(np.int32), starts, bounds[-1], found)
        return found

    def code_chances(self, chances: Floats) -> list[Floats]:
        """Distributions over groups turned into distributions over codes, column by column."""
        found = []
        bounds = self.bounds
        for place, (groups, shares) in enumerate(zip(self.groups, self.shares, strict=True)):
            part = chances[:, bounds[place] : bounds[place + 1]]
            within = shares / np.bincount(groups, weights=shares)[groups]
            expanded = part[:, groups] * within
            found.append(expanded / expanded.sum(axis=1, keepdims=True))
        return found


def one_hot_blocks(codes: Codes, sizes: Sequence[int]) -> Blocks:
    """One block per code of every column: the plain one-hot form."""
    starts = np.array([0, *np.cumsum(sizes)[:-1]], dtype=np.int64)
    return np.asarray(codes.astype(np.int64) + starts, dtype=np.int32)


def cut_evenly(shares: Floats, most: int) -> Ints:
    """At most `most` groups of neighbouring codes with about equal shares.

    >>> cut_evenly(np.array([0.4, 0.05, 0.05, 0.1, 0.4]), 3).tolist()
    [0, 1, 1, 1, 2]
    """
    if shares.size <= most:
        return np.arange(shares.size, dtype=np.int64)
    middle = np.cumsum(shares) - shares / 2
    places = np.minimum(np.floor(middle * most / shares.sum()), most - 1)
    return np.unique(places, return_inverse=True)[1].astype(np.int64)


def _positive_shares(counts: Floats) -> Floats:
    """Shares of 0 or more nearest to the noisy counts, none quite 0: what noise hid may still occur."""
    total = max(1.0, float(counts.sum()))
    shares = np.maximum(norm_sub(counts, total) / total, _LEAST_SHARE / counts.size)
    return np.asarray(shares / shares.sum())


@compiled()  # pragma: no cover
def _look_up(codes, table, starts, last, out):  # type: ignore[no-untyped-def]
    for row in range(codes.shape[0]):
        for place in range(codes.shape[1]):
            out[row, place] = table[starts[place] + np.int64(codes[row, place])]
        out[row, codes.shape[1]] = last
