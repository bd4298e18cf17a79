from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.counts import contribution
from understudy.counts.contribution import kept_rows

Row = tuple[str | None, int, int]
ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "é", None]), st.integers(0, 3), st.integers(0, 300)), max_size=40
)


def kept(rows: list[Row], bound: int) -> Counter[Row]:
    ids = pa.array([row[0] for row in rows], pa.large_string())
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
        patch.setattr(contribution, "row_priority", lambda _, count: np.zeros(count, np.uint64))
        shuffled = list(rows)
        random.shuffle(shuffled)  # type: ignore[attr-defined]
        assert kept(shuffled, 2) == kept(rows, 2)


def test_the_choice_favours_no_code() -> None:
    units = 2000
    ids = pa.array([str(row // 4) for row in range(4 * units)], pa.large_string())
    codes = np.tile(np.arange(4, dtype=np.uint8), units)
    extra = np.repeat(np.arange(units, dtype=np.uint16), 4)
    chosen = Counter(codes[kept_rows(ids, [codes, extra], 1)].tolist())
    # Each code is first with probability 1/4; six standard deviations of a binomial count.
    assert all(abs(chosen[code] - units / 4) < 6 * (units * 3 / 16) ** 0.5 for code in range(4))


def test_chunked_and_empty_ids() -> None:
    chunked = pa.chunked_array([["a", "b"], ["a", None]], pa.large_string())
    assert kept_rows(chunked, [np.arange(4, dtype=np.uint8)], 1).tolist() in ([0, 1], [1, 2])
    assert kept_rows(pa.array([], pa.large_string()), [np.zeros(0, np.uint8)], 1).tolist() == []
    assert kept_rows(pa.array([None], pa.large_string()), [np.zeros(1, np.uint8)], 1).tolist() == []
