import numpy as np
import pytest

from tests.mechanisms.door import letters, rows_of
from understudy.errors import UsageError
from understudy.mechanisms.challenge.from_public import marginals_from_public

SIZES = {"a": 3, "b": 3, "c": 3, "d": 2, "x": 2}


def table(rows=4_000, seed=1):
    """b and c follow a; d is whether b and c agree more than a explains; x is on its own."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, rows)
    b = np.where(rng.random(rows) < 0.7, a, rng.integers(0, 3, rows))
    c = np.where(rng.random(rows) < 0.7, a, rng.integers(0, 3, rows))
    d = np.where(rng.random(rows) < 0.9, b == 0, rng.integers(0, 2, rows)).astype(int)
    return rows_of({"a": a, "b": b, "c": c, "d": d, "x": rng.integers(0, 2, rows)})


def test_the_tree_follows_the_dependence():
    listed = [set(entry.split("×")) for entry in marginals_from_public(table(), letters(SIZES)).split(", ")]
    assert len(listed) == 4
    assert all(pair in listed for pair in ({"a", "b"}, {"a", "c"}, {"b", "d"}))
    assert sum("x" in pair for pair in listed) == 1


def test_triples_where_neighbours_are_not_independent_given_the_column():
    rng = np.random.default_rng(2)
    a = rng.integers(0, 2, 4_000)
    b = np.where(rng.random(4_000) < 0.8, a, 1 - a)
    c = np.where(rng.random(4_000) < 0.6, b, rng.integers(0, 2, 4_000))
    rows, schema = rows_of({"a": a, "b": b, "c": c}), letters({"a": 2, "b": 2, "c": 2})
    assert set(marginals_from_public(rows, schema).split(", ")) == {"a×b", "b×c"}  # b explains all
    e = (b + c + (rng.random(4_000) < 0.1)) % 2
    b_c = rows_of({"b": b, "c": c, "e": e})
    found = marginals_from_public(b_c, letters({"b": 2, "c": 2, "e": 2})).split(", ")
    assert len(found) == 4  # two pairs of the tree, the third pair, all three
    assert "b×c×e" in found


def test_columns_named_together_are_always_listed():
    found = marginals_from_public(table(), letters(SIZES), together=["x", "d", "c"]).split(", ")
    assert {"c×d", "c×x", "d×x", "c×d×x"} <= set(found)


def test_wide_tables_are_left_out():
    listed = marginals_from_public(table(), letters(SIZES), most_cells=6)
    assert all(entry.count("×") == 1 and set(entry) & set("dx") for entry in listed.split(", "))
    with pytest.raises(UsageError, match="no table"):
        marginals_from_public(table(), letters(SIZES), most_cells=3)
    with pytest.raises(UsageError, match="no rows"):
        marginals_from_public(table(0), letters(SIZES))


def test_few_rows_do_not_make_wide_columns_look_dependent():
    rng = np.random.default_rng(4)
    a = rng.integers(0, 2, 1_000)
    codes = {"a": a, "b": np.where(rng.random(1_000) < 0.7, a, 1 - a), "wide": rng.integers(0, 200, 1_000)}
    listed = marginals_from_public(rows_of(codes), letters({"a": 2, "b": 2, "wide": 200}))
    assert listed.startswith("a×b")  # uncorrected, both other pairs would come first
