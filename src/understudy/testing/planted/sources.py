"""Planted faults of reading: a bound that is forgotten or biased, and values that are not what text should be."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from understudy.counts import contribution, labels, streamed_source
from understudy.counts.kernels import hash_rows
from understudy.counts.labels import Texts
from understudy.testing.planted.bug import PlantedBug, patched

__all__ = ["MISREAD"]


def _everybody(unit: Any, *_: object) -> Any:
    return np.flatnonzero(unit >= 0)


def _by_codes(ids: Texts, columns: Any) -> Any:
    return hash_rows(columns, contribution.HASH_KEY, len(ids.places))


def _replaced(self: Texts) -> Texts:
    """Every value a label, with a mark where its bytes say nothing."""
    texts = [None if raw is None else raw.decode("utf-8", errors="replace") for raw in self.values.to_pylist()]
    return Texts(pa.array(texts, pa.large_string()).cast(pa.large_binary()), self.places)


@contextmanager
def _short_ids() -> Iterator[None]:
    """Ids told apart by their first bytes only."""
    whole = Texts.hashes

    def cut(self: Texts, key: Any) -> Any:
        return whole(Texts(pc.binary_slice(self.values, 0, 64), self.places), key)

    with mock.patch.object(Texts, "hashes", cut):
        yield


@contextmanager
def _only_text_ids() -> Iterator[None]:
    """Rows left out whose id is not UTF-8."""
    read = labels.texts_of
    with mock.patch.object(streamed_source, "texts_of", lambda values: read(values).only_labels()):
        yield


MISREAD: tuple[PlantedBug, ...] = (
    PlantedBug("rows of a person not cut anywhere", "sources", patched(contribution, "_first_rows", _everybody)),
    PlantedBug("the same rows kept in every unit", "sources", patched(contribution, "row_priority", _by_codes)),
    PlantedBug("text that is not UTF-8 as a label", "sources", patched(Texts, "only_labels", _replaced)),
    PlantedBug("a label of any length", "sources", patched(labels, "MOST_LABEL_BYTES", 1 << 40)),
    PlantedBug("long ids confused", "sources", _short_ids),
    PlantedBug("ids that are not UTF-8 left out", "sources", _only_text_ids),
)
