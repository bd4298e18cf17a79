import os
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from understudy.counts import source as contribution
from understudy.counts.source import UnitRows, kept_rows, texts_of
from understudy.counts.streaming import ColumnBlocks

Row = tuple[str | None, int, int]
ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "é", None]), st.integers(0, 3), st.integers(0, 300)), max_size=40
)


def kept(rows: list[Row], bound: int) -> Counter[Row]:
    ids = texts_of(pa.array([row[0] for row in rows], pa.large_string()))
    codes = [np.array([row[1] for row in rows], np.uint8), np.array([row[2] for row in rows], np.uint16)]
    return Counter(rows[position] for position in kept_rows(ids, codes, bound))


@settings(max_examples=80, deadline=None)
@given(ROWS, st.integers(1, 4))
def test_each_unit_keeps_as_many_rows_as_it_may(rows: list[Row], bound: int) -> None:
    held = Counter(row[0] for row in rows if row[0] is not None)
    found = Counter(row[0] for row in kept(rows, bound).elements())
    assert found == Counter({unit: min(bound, count) for unit, count in held.items()})


@settings(max_examples=80, deadline=None)
@given(ROWS, st.integers(1, 4), st.sampled_from(["a", "b", "c", "é"]))
def test_removing_one_unit_changes_only_its_own_rows(rows: list[Row], bound: int, unit: str) -> None:
    full, without = kept(rows, bound), kept([row for row in rows if row[0] != unit], bound)
    assert not without - full
    lost = full - without
    assert {row[0] for row in lost} <= {unit}
    assert lost.total() <= bound


@settings(max_examples=80, deadline=None)
@given(ROWS, st.integers(1, 4), st.randoms())
def test_the_order_of_rows_does_not_matter(rows: list[Row], bound: int, random: object) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert kept(shuffled, bound) == kept(rows, bound)


@settings(max_examples=40, deadline=None)
@given(ROWS, st.randoms())
def test_colliding_hashes_fall_back_on_the_codes(rows: list[Row], random: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contribution, "row_priority", lambda ids, _: np.zeros(len(ids.places), np.uint64))
        shuffled = list(rows)
        random.shuffle(shuffled)  # type: ignore[attr-defined]
        assert kept(shuffled, 2) == kept(rows, 2)


def test_the_choice_favours_no_code() -> None:
    """People who all hold the same four rows: which of them is kept must differ from one to the next."""
    units = 2000
    ids = texts_of(pa.array([f"person {row // 4}" for row in range(4 * units)], pa.large_string()))
    codes = np.tile(np.arange(4, dtype=np.uint8), units)
    chosen = np.bincount(codes[kept_rows(ids, [codes], 1)], minlength=4)
    assert stats.chisquare(chosen).pvalue > 1e-6
    pairs = np.zeros((4, 4), np.int64)
    kept = codes[kept_rows(ids, [codes], 2)].reshape(units, 2)
    np.add.at(pairs, (kept[:, 0], kept[:, 1]), 1)
    assert stats.chisquare(pairs[np.triu_indices(4, 1)]).pvalue > 1e-6


def test_chunked_and_empty_ids() -> None:
    chunked = texts_of(pa.chunked_array([["a", "b"], ["a", None]], pa.large_string()))
    assert kept_rows(chunked, [np.arange(4, dtype=np.uint8)], 1).tolist() in ([0, 1], [1, 2])
    nobody = texts_of(pa.array([], pa.large_string()))
    assert kept_rows(nobody, [np.zeros(0, np.uint8)], 1).tolist() == []
    nameless = texts_of(pa.array([None], pa.large_string()))
    assert kept_rows(nameless, [np.zeros(1, np.uint8)], 1).tolist() == []


def streamed(rows: list[Row], bound: int, memory_bytes: int, step: int) -> tuple[Counter[Row], UnitRows]:
    """What the streamed cut keeps, with the id as a third column; checks that numbers of units name units."""
    names = sorted({row[0] for row in rows if row[0] is not None})
    stream = UnitRows([np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.uint8)], bound, memory_bytes)
    for low in range(0, len(rows), step):
        part = rows[low : low + step]
        ids = texts_of(pa.array([row[0] for row in part], pa.large_string()))
        who = np.array([names.index(row[0]) if row[0] is not None else 0 for row in part], np.uint8)
        codes = [np.array([row[1] for row in part], np.uint8), np.array([row[2] for row in part], np.uint16)]
        stream.add(ids, [*codes, who])
    kept: Counter[Row] = Counter()
    unit_of: dict[int, int] = {}
    for units, (first, second, who) in stream.blocks():
        kept.update((names[w], int(a), int(b)) for w, a, b in zip(who, first, second, strict=True))
        assert all(unit_of.setdefault(int(unit), int(w)) == w for unit, w in zip(units, who, strict=True))
    assert len(set(unit_of.values())) == len(unit_of), "one unit has two numbers"
    return kept, stream


def whole(rows: list[Row], bound: int) -> Counter[Row]:
    names = sorted({row[0] for row in rows if row[0] is not None})
    ids = texts_of(pa.array([row[0] for row in rows], pa.large_string()))
    codes = [np.array([row[1] for row in rows], np.uint8), np.array([row[2] for row in rows], np.uint16)]
    who = np.array([names.index(row[0]) if row[0] is not None else 0 for row in rows], np.uint8)
    return Counter(rows[position] for position in kept_rows(ids, [*codes, who], bound))


@settings(max_examples=60, deadline=None)
@given(ROWS, st.integers(1, 4), st.integers(1, 9), st.sampled_from([0, 500, 1 << 20]))
def test_a_stream_keeps_the_same_rows(rows: list[Row], bound: int, step: int, memory_bytes: int) -> None:
    assert streamed(rows, bound, memory_bytes, step)[0] == whole(rows, bound)


def test_a_long_stream_goes_through_a_file_and_keeps_the_same_rows() -> None:
    rng = np.random.default_rng(3)
    people = [f"person {number}" for number in range(200)]
    rows: list[Row] = [
        (people[int(who)] if who < 200 else None, int(first), int(second))
        for who, first, second in zip(*(rng.integers(0, most, 20_000) for most in (210, 4, 300)), strict=True)
    ]
    kept, stream = streamed(rows, 50, 30_000, 700)
    assert stream._file is not None
    assert kept == whole(rows, 50)


def test_one_crowded_unit_is_cut_as_it_passes() -> None:
    stream = UnitRows([np.dtype(np.uint16)], 3, 1 << 20)
    for _ in range(100):
        ids = texts_of(pa.array(["the same"] * 1000))
        stream.add(ids, [np.arange(1000, dtype=np.uint16)])
    assert stream._file is None
    assert sum(len(units) for units, _ in stream.blocks()) == 3


def test_units_whose_hashes_share_a_word_stay_apart() -> None:
    first = np.array([5, 5, 7, 5], np.uint64)
    second = np.array([1, 2, 1, 1], np.uint64)
    numbers = contribution._numbered_pairs(first, second).tolist()
    assert numbers[0] == numbers[3]
    assert len(set(numbers)) == 3


def test_blocks_are_read_back_from_memory_and_from_a_file() -> None:
    blocks = ColumnBlocks(100)
    parts = [(np.arange(size, dtype=np.int64), np.arange(size, dtype=np.uint8)) for size in (3, 40, 0, 5)]
    for part in parts:
        blocks.append(part)
    for _ in range(2):
        read = list(blocks.read([1, 0]))
        assert [rows for rows, _ in read] == [3, 40, 0, 5]
        for (_, (codes, units)), (one, other) in zip(read, parts, strict=True):
            assert (units.tolist(), codes.tolist()) == (one.tolist(), other.tolist())
            assert codes.dtype == np.uint8


def test_what_is_written_has_no_name_and_no_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stream = UnitRows([np.dtype(np.uint8)], 2, 0)
    for number in range(50):
        stream.add(texts_of(pa.array([f"Ada Lovelace {number}"])), [np.zeros(1, np.uint8)])
    assert stream._file is not None
    assert list(tmp_path.iterdir()) == []
    written = bytes(stream._file.read(0, stream._file._end))
    assert len(written) == 50 * stream._record.itemsize
    assert b"Lovelace" not in written
    assert os.fstat(stream._file._stream.fileno()).st_mode & 0o077 == 0
