import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.arrays import Ints
from understudy.counts import partials
from understudy.counts.partials import CellMerge, VectorMerge, merge_in_groups, pieces_of, pieces_of_cells
from understudy.counts.source import OccupiedCells

COUNTS = st.lists(st.sampled_from([0, 0, 0, 1, 255, 256, 65_535, 65_536, 2**32, 2**62]), min_size=7, max_size=7)


@settings(max_examples=60, deadline=None)
@given(st.lists(COUNTS, max_size=9), st.integers(1, 4))
def test_partial_counts_add_up_whatever_the_groups(lists: list[list[int]], fan_in: int) -> None:
    vectors = [np.array(values, np.int64) // max(1, len(lists)) for values in lists]
    merged = merge_in_groups((pieces_of([vector, vector[:2]]) for vector in vectors), fan_in)
    expected = sum(vectors, np.zeros(7, np.int64))
    assert merged.vector(0, 7).tolist() == expected.tolist()
    assert merged.vector(1, 2).tolist() == expected[:2].tolist()


def test_long_vectors_travel_in_pieces_and_empty_pieces_do_not_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partials, "PIECE_CELLS", 4)
    vector = np.array([0, 0, 0, 0, 0, 7, 0, 0, 0, 300], np.int64)
    pieces = list(pieces_of([vector]))
    assert [(piece.start, piece.width, len(piece.values)) for piece in pieces] == [(4, 1, 4), (8, 2, 4)]
    merge = VectorMerge()
    for piece in pieces:
        merge.add(piece)
    assert merge.vector(0, 10).tolist() == vector.tolist()


def test_a_merge_keeps_one_total_per_piece_and_none_of_the_parts() -> None:
    merge = VectorMerge()
    for _ in range(500):
        for piece in pieces_of([np.arange(100)]):
            merge.add(piece)
    assert [len(piece.values) // piece.width for piece in merge.pieces()] == [100]
    assert merge.vector(0, 100).tolist() == (500 * np.arange(100)).tolist()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(st.integers(0, 2**62), st.integers(1, 2**40), max_size=20), max_size=6))
def test_occupied_cells_add_up(parts: list[dict[int, int]]) -> None:
    merge, again = CellMerge(), CellMerge()
    for part in parts:
        for piece in pieces_of_cells(_cells(part)):
            merge.add(piece)
    for piece in merge.pieces():
        again.add(piece)
    found = again.cells()
    expected: dict[int, int] = {}
    for part in parts:
        for cell, count in part.items():
            expected[cell] = expected.get(cell, 0) + count
    assert found.indices.tolist() == sorted(expected)
    assert found.counts.tolist() == [expected[cell] for cell in sorted(expected)]


def _cells(part: dict[int, int]) -> OccupiedCells:
    indices: Ints = np.array(sorted(part), np.int64)
    return OccupiedCells(indices, np.array([part[cell] for cell in sorted(part)], np.int64))
