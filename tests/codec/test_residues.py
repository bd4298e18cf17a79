from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.codec.numbers import Grid, Residues, kinds_of

DIVISORS = st.sampled_from([(100, 20, 50, 25, 10, 5, 2), (7,), (6, 4), (9, 10, 3)])


def kind_by_hand(value, divisors):
    return next((place for place, divisor in enumerate(divisors) if value % divisor == 0), len(divisors))


def test_the_first_divisor_counts():
    assert kinds_of(np.array([0, 100, -100, 50, 25, 7, -5]), (100, 50, 5)).tolist() == [0, 0, 0, 1, 2, 3, 2]


@given(
    st.integers(-300, 300) | st.sampled_from([2**62, -(2**62)]),
    st.integers(1, 40),
    DIVISORS,
    st.lists(st.integers(0, 400), min_size=2, max_size=5, unique=True),
    st.lists(st.integers(0, 400), max_size=6, unique=True),
)
@settings(max_examples=60, deadline=None)
def test_counts_are_those_of_listing_all_values(start, step, divisors, places, avoid):
    residues = Residues.of(Grid(start, step), divisors)
    edges = np.array(sorted(places), dtype=np.int64)
    counts = residues.counts(edges[:-1], edges[1:], avoid)
    for stretch, (first, stop) in enumerate(pairwise(edges)):
        values = [start + int(index) * step for index in range(first, stop) if index not in avoid]
        kinds = [kind_by_hand(value, divisors) for value in values]
        assert counts[stretch].tolist() == [kinds.count(kind) for kind in range(len(divisors) + 1)]


def test_every_value_of_a_stretch_and_kind_is_equally_likely():
    residues = Residues.of(Grid(0, 1), (10, 5))
    firsts, stops = np.array([0, 17]), np.array([17, 60])
    wanted = (np.ones(30_000, dtype=np.int64), np.full(30_000, 2))
    drawn = residues.draw(firsts, stops, [18, 33, 47, 90], wanted, np.random.default_rng(5))
    allowed = [value for value in range(17, 60) if value % 5 and value not in (18, 33, 47)]
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == allowed
    expected = 30_000 / len(allowed)
    statistic = float(((counts - expected) ** 2 / expected).sum())
    assert statistic < len(allowed) + 6 * np.sqrt(2 * len(allowed))


@pytest.mark.parametrize("width", [10**3, 10**15])
def test_long_stretches_need_no_listing(width):
    residues = Residues.of(Grid(-width, 3), (100, 7))
    firsts, stops = np.array([0]), np.array([width // 3])
    kinds = np.repeat(np.arange(3), 200)
    drawn = residues.draw(firsts, stops, [], (np.zeros(600, dtype=np.int64), kinds), np.random.default_rng(1))
    assert kinds_of(drawn, (100, 7)).tolist() == kinds.tolist()
    assert ((drawn + width) % 3 == 0).all()
    assert (drawn >= -width).all()
    assert (drawn < 0).all()
    assert residues.counts(firsts, stops, []).sum() == width // 3
