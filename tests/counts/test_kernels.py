import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.counts import kernels
from understudy.counts.kernels import TableCounter, flat_index, hash_rows, hash_texts

SIZES = (1, 2, 7, 255, 256, 257, 1000, 70_000)


def random_columns(rows: int, seed: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    kinds = [np.uint8 if size <= 256 else np.uint16 if size <= 65_536 else np.uint32 for size in SIZES]
    return [rng.integers(0, size, rows).astype(kind) for size, kind in zip(SIZES, kinds, strict=True)]


def expected(columns: list[np.ndarray], table: tuple[int, ...]) -> np.ndarray:
    sizes = [SIZES[column] for column in table]
    index = np.ravel_multi_index([columns[column].astype(np.int64) for column in table], sizes)
    return np.bincount(index, minlength=int(np.prod(sizes)))


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 100),
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=5, unique=True), min_size=1, max_size=6),
)
def test_tables_of_any_mix_of_columns(rows: int, tables: list[list[int]]) -> None:
    columns = random_columns(rows)
    tables = [table for table in tables if np.prod([SIZES[column] for column in table]) < 1 << 22] or [[0]]
    counter = TableCounter(SIZES, tables)
    counter.add(columns)
    for table, counts in zip(tables, counter.totals(), strict=True):
        assert counts.dtype == np.int64
        assert np.array_equal(counts, expected(columns, tuple(table)))


def test_every_pair_over_many_blocks_and_chunks() -> None:
    columns = random_columns(3 * kernels.BLOCK_ROWS + 17)
    tables = [*itertools.combinations(range(7), 2), (7,), (2, 7), (4, 2, 1, 0, 3)]
    counter = TableCounter(SIZES, tables)
    counter.add(columns, 0, 1000)
    counter.add(columns, 1000, None)
    for table, counts in zip(tables, counter.totals(), strict=True):
        assert np.array_equal(counts, expected(columns, table)), table


def test_rows_that_come_in_small_chunks_wait_for_a_long_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large tables are counted in longer blocks; totals may be asked for before one is full, and rows may follow."""
    monkeypatch.setattr(kernels, "LONG_BLOCK_ROWS", 40_000)
    monkeypatch.setattr(kernels, "FLUSH_ROWS", 90_000)
    rng = np.random.default_rng(4)
    sizes, tables = (200, 200, 300), [(0, 1), (0, 2), (2,)]
    columns: list[np.ndarray] = [
        rng.integers(0, size, 130_001).astype(np.uint8 if size < 257 else np.uint16) for size in sizes
    ]
    counter = TableCounter(sizes, tables)
    assert counter._block_rows == 40_000
    for low in range(0, 100_000, 7_777):
        counter.add(columns, low, min(low + 7_777, 100_000))
    for rows in (100_000, 130_001):
        for table, counts in zip(tables, counter.totals(), strict=True):
            index = flat_index([columns[place][:rows] for place in table], [sizes[place] for place in table])
            cells = math.prod(sizes[place] for place in table)
            assert np.array_equal(counts, np.bincount(index, minlength=cells))
        counter.add(columns, 100_000)
    assert counter._flushed is not None


def test_unused_columns_need_not_be_there() -> None:
    counter = TableCounter((2, 9), [(0,)])
    counter.add([np.array([1, 1], np.uint8), None])
    assert next(counter.totals()).tolist() == [0, 2]


def test_counts_survive_the_move_to_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "FLUSH_ROWS", kernels.BLOCK_ROWS)
    columns = random_columns(5 * kernels.BLOCK_ROWS + 3)
    counter = TableCounter(SIZES, [(1, 2), (3, 5)])
    counter.add(columns)
    assert counter._flushed is not None
    assert np.array_equal(next(counter.totals()), expected(columns, (1, 2)))
    assert np.array_equal(list(counter.totals())[1], expected(columns, (3, 5)))


def test_a_cell_beyond_32_bits() -> None:
    counter = TableCounter((2,), [(0,)])
    counter._groups[0].cells[1] = np.uint32(2**32 - 5)  # as if four billion rows had come
    counter._pending = 2**32 - 5
    counter.add([np.ones(10, np.uint8)])
    assert next(counter.totals()).tolist() == [0, 2**32 + 5]


def test_refuses_tables_it_cannot_address() -> None:
    with pytest.raises(ValueError, match="2³²"):
        TableCounter((2**20, 2**20), [(0, 1)])
    with pytest.raises(ValueError, match="2⁶³"):
        flat_index([np.zeros(1, np.uint32)] * 2, [2**32, 2**32])


def test_flat_index_is_exact_near_its_end() -> None:
    sizes = [2**31, 2**31]
    index = flat_index([np.array([2**31 - 1], np.uint32), np.array([2**31 - 1], np.uint32)], sizes)
    assert index.tolist() == [2**62 - 1]


def test_hash_depends_on_key_order_and_every_code() -> None:
    first, second = np.array([1, 2, 1], np.uint8), np.array([5, 5, 6], np.uint16)
    rows = hash_rows([first, second], 7, 3)
    assert len(set(rows.tolist())) == 3
    assert set(rows.tolist()).isdisjoint(hash_rows([first, second], 8, 3).tolist())
    assert set(rows.tolist()).isdisjoint(hash_rows([second, first], 7, 3).tolist())


def test_hash_is_the_same_on_every_platform_and_code_width() -> None:
    for kind in (np.uint8, np.uint16, np.uint32):
        assert hash_rows([np.array([3], kind)], 0, 1).tolist() == [_splitmix(3)]


def _splitmix(word: int) -> int:
    mask = 2**64 - 1
    word = (word + 0x9E3779B97F4A7C15) & mask
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & mask
    word = (word ^ word >> 27) * 0x94D049BB133111EB & mask
    return word ^ word >> 31


@pytest.mark.parametrize(
    ("length", "digest"),
    [
        (0, "a3817f04ba25a8e66df67214c7550293"),
        (1, "da87c1d86b99af44347659119b22fc45"),
        (8, "3b62a9ba6258f5610f83e264f31497b4"),
        (63, "5150d1772f50834a503e069a973fbd7c"),
    ],
)
def test_hashes_of_texts_are_those_of_siphash(length: int, digest: str) -> None:
    """The vectors of the reference implementation: bytes 0, 1, 2, … under the key 0, 1, …, 15."""
    key = tuple(int.from_bytes(bytes(range(low, low + 8)), "little") for low in (0, 8))
    data = np.arange(length + 3, dtype=np.uint8)
    found = hash_texts(data, np.array([0, length, length + 3]), (key[0], key[1]))
    assert found[0].astype("<u8").tobytes().hex() == digest
