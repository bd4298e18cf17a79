"""Counting in batches gives what counting by hand gives, for small and for huge tables."""

import itertools

import numpy as np
import pandas as pd
import pytest

from tests.evaluate.examples import codes_schema, rows_of
from understudy.domain import Clique
from understudy.evaluate import data as counting
from understudy.evaluate.data import counted, total_variation

SIZES = {"a": 3, "b": 4, "c": 2, "d": 5}
SCHEMA = codes_schema(SIZES)


def _frame(seed: int, rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.integers(0, size, rows).astype(str) for name, size in SIZES.items()})


@pytest.mark.parametrize("dense", [1 << 22, 10])
@pytest.mark.parametrize("batch", [1, 400])
def test_counts_equal_those_by_hand(monkeypatch: pytest.MonkeyPatch, dense: int, batch: int) -> None:
    monkeypatch.setattr(counting, "DENSE_CELLS", dense)
    monkeypatch.setattr(counting, "LEAST_DENSE_CELLS", dense)
    monkeypatch.setattr(counting, "BATCH_CLIQUES", batch)
    frames = [_frame(1), _frame(2, 200)]
    parts = [rows_of(frame, SCHEMA) for frame in frames]
    cliques = [Clique(names) for ways in (1, 2, 3) for names in itertools.combinations(SIZES, ways)]
    found = list(counted(parts, cliques))
    assert [one.clique for one in found] == cliques
    for one in found:
        shape = parts[0].domain.shape(one.clique)
        for frame, counts in zip(frames, one.counts, strict=True):
            whole = np.zeros(np.prod(shape), np.int64)
            whole[np.arange(len(whole)) if one.cells is None else one.cells] = counts
            by_hand = np.zeros(shape, np.int64)
            np.add.at(by_hand, tuple(frame[name].astype(int).to_numpy() for name in one.clique), 1)
            np.testing.assert_array_equal(whole.reshape(shape), by_hand)


def test_total_variation() -> None:
    assert total_variation(np.array([5, 3, 2, 0]), np.array([6, 1, 0, 3])) == pytest.approx(0.4)
    assert total_variation(np.array([1, 1]), np.array([50, 50])) == 0
    assert total_variation(np.array([1, 0]), np.array([0, 9])) == 1
