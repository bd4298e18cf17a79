import numpy as np
import pytest

from tests.methods.door import MEMORY, letters, rows_of
from understudy.codec.table import TableCodec
from understudy.counts.frames import FrameTable
from understudy.errors import UsageError
from understudy.methods import marginals as from_public
from understudy.methods.marginals import counting_bytes, marginals_from_public

SIZES = {"a": 3, "b": 3, "c": 3, "d": 2, "x": 2}


def table(rows=4_000, seed=1):
    """b and c follow a; d is whether b and c agree more than a explains; x is on its own."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, rows)
    b = np.where(rng.random(rows) < 0.7, a, rng.integers(0, 3, rows))
    c = np.where(rng.random(rows) < 0.7, a, rng.integers(0, 3, rows))
    d = np.where(rng.random(rows) < 0.9, b == 0, rng.integers(0, 2, rows)).astype(int)
    return rows_of({"a": a, "b": b, "c": c, "d": d, "x": rng.integers(0, 2, rows)})


def listed(rows, sizes=None, together=()):
    schema = letters(SIZES if sizes is None else sizes)
    codec = TableCodec.of(schema)
    counts = FrameTable(rows, schema, memory_bytes=MEMORY).bind(codec).counts
    return marginals_from_public(counts, codec.domain, together).split(", ")


def test_the_tree_follows_the_dependence():
    found = [set(entry.split("×")) for entry in listed(table())]
    assert len(found) == 4
    assert all(pair in found for pair in ({"a", "b"}, {"a", "c"}, {"b", "d"}))
    assert sum("x" in pair for pair in found) == 1


def test_triples_where_neighbours_are_not_independent_given_the_column():
    rng = np.random.default_rng(2)
    a = rng.integers(0, 2, 4_000)
    b = np.where(rng.random(4_000) < 0.8, a, 1 - a)
    c = np.where(rng.random(4_000) < 0.6, b, rng.integers(0, 2, 4_000))
    rows = rows_of({"a": a, "b": b, "c": c})
    assert set(listed(rows, {"a": 2, "b": 2, "c": 2})) == {"a×b", "b×c"}  # b explains all
    e = (b + c + (rng.random(4_000) < 0.1)) % 2
    b_c = rows_of({"b": b, "c": c, "e": e})
    found = listed(b_c, {"b": 2, "c": 2, "e": 2})
    assert len(found) == 4  # two pairs of the tree, the third pair, all three
    assert "b×c×e" in found


def test_columns_named_together_are_always_listed():
    found = listed(table(), together=["x", "d", "c"])
    assert {"c×d", "c×x", "d×x", "c×d×x"} <= set(found)


def test_wide_tables_are_left_out(monkeypatch):
    monkeypatch.setattr(from_public, "MOST_CELLS", 6)
    assert all(entry.count("×") == 1 and set(entry) & set("dx") for entry in listed(table()))
    monkeypatch.setattr(from_public, "MOST_CELLS", 3)
    with pytest.raises(UsageError, match="no table"):
        listed(table())


def test_a_public_table_without_rows_suggests_nothing():
    with pytest.raises(UsageError, match="no rows"):
        listed(table(0))


def test_one_column_that_varies_leaves_nothing_to_list():
    assert listed(rows_of({"a": [0, 1, 1], "b": [0, 0, 0]}), {"a": 2, "b": 1}) == ["a"]


def test_batches_change_nothing_and_bound_the_memory(monkeypatch):
    whole = listed(table())
    domain = TableCodec.of(letters(SIZES)).domain
    monkeypatch.setattr(from_public, "PUBLIC_BATCH_CELLS", 10)
    assert listed(table()) == whole
    assert counting_bytes(domain) == 10 * 32


def test_few_rows_do_not_make_wide_columns_look_dependent():
    rng = np.random.default_rng(4)
    a = rng.integers(0, 2, 1_000)
    codes = {"a": a, "b": np.where(rng.random(1_000) < 0.7, a, 1 - a), "wide": rng.integers(0, 200, 1_000)}
    found = listed(rows_of(codes), {"a": 2, "b": 2, "wide": 200})
    assert found[0] == "a×b"  # uncorrected, both other pairs would come first
