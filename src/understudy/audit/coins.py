"""Coins of training for tests: a unit takes part if a hash of its rows says so. NOT PRIVATE.

Replay compares what a pipeline does on two tables given the same coins and the same noise. So the coin of a unit must
depend on that unit and the step alone, not on where it stands among the others.
"""

import math

import numpy as np

from understudy.counts.kernels import hash_rows
from understudy.counts.source import Ints, Records
from understudy.privacy.randomizer import Request

__all__ = ["coins_of"]

_KEY = 0x636F696E7320666F  # public; any number would do
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


def coins_of(request: Request, records: Records) -> Ints:
    """Positions of the units that take part in this step, in increasing order."""
    if not records.units:
        return np.zeros(0, dtype=np.int64)
    columns = [np.ascontiguousarray(column) for column in records.codes.T]
    hashes = hash_rows(columns, _KEY + request.layer, len(records.codes))
    sums = np.add.reduceat(hashes, records.starts[:-1])
    mixed = (sums ^ (sums >> np.uint64(31))) * _SPREAD
    share = -math.expm1(-float(request.rate))
    return np.flatnonzero((mixed >> np.uint64(11)) < np.uint64(int(share * 2**53))).astype(np.int64)
