from fractions import Fraction

import numpy as np
import pytest

from understudy.answers import Distribution, Measurement
from understudy.domain import Domain, Partition
from understudy.methods.marginals import ListedTable
from understudy.methods.rounds import CoarseTable, Compression, MergingLimits, smallest

FULL = Domain.of({"a": 6, "b": 3, "c": 4})
DISTRIBUTION = Distribution("gaussian", Fraction(25))  # σ = 5, so values below 15 rows are merged


def answer(name, values):
    return Measurement(name, (name,), (len(values),), np.array(values), DISTRIBUTION)


ANSWERS = {"a": answer("a", [40, 14, 15, -3, 7, 90]), "b": answer("b", [50, 2, 60])}
COMPRESSION = Compression.of(FULL, ANSWERS, 3.0)


def test_values_below_the_threshold_share_a_code():
    assert dict(COMPRESSION.domain.sizes) == {"a": 4, "b": 3, "c": 4}
    assert COMPRESSION.places("a").tolist() == [0, 3, 1, 3, 3, 2]
    assert COMPRESSION.places("b").tolist() == [0, 1, 2]  # a single rare value keeps its own code
    assert COMPRESSION.places("c").tolist() == [0, 1, 2, 3]  # not asked about, never merged
    assert COMPRESSION.merged == ["a"]


@pytest.mark.parametrize(("values", "size"), [([0, 1, 2], 1), ([99, 99, 99], 3), ([99, 0, -8], 2)])
def test_nothing_or_everything_may_be_rare(values, size):
    assert Compression.of(FULL, {"b": answer("b", values)}, 3.0).domain.sizes["b"] == size


def test_no_kept_value_is_below_three_sigma():
    rng = np.random.default_rng(3)
    full = Domain.of({"a": 500})
    values = rng.normal(10.0, 15.0, 500).astype(np.int64)
    compression = Compression.of(full, {"a": answer("a", values)}, 3.0)
    places = compression.places("a")
    merged = places == places.max()
    assert values[~merged].min() >= 15 > values[merged].max()
    assert len(set(places[~merged])) == int((~merged).sum())


def test_more_is_merged_until_tables_and_model_fit():
    full = Domain.of({"a": 100, "b": 100, "c": 100})
    falling = {name: answer(name, np.arange(1_000, 900, -1)) for name in "abc"}
    start = Compression.of(full, falling, 3.0)
    cliques = (full.clique("ab"), full.clique("bc"), full.clique("ac"))
    assert start.within(MergingLimits(10_000, 2**30, cliques)).domain == full
    tables = start.within(MergingLimits(2_000, 2**30, cliques))
    assert max(tables.domain.cells(clique) for clique in cliques) <= 2_000
    kept = tables.kept["a"]
    assert tables.places("a").tolist() == [*range(kept), *([kept] * (100 - kept))]  # higher counts stay
    model = start.within(MergingLimits(10_000, 8 * 50_000, cliques))
    assert 30_000 < np.prod(list(model.domain.sizes.values())) <= 50_000
    nothing = Compression.of(full, {"a": falling["a"]}, 3.0).within(MergingLimits(100, 2**30, cliques))
    assert dict(nothing.domain.sizes) == {"a": 1, "b": 100, "c": 100}  # all that may be merged is


def test_questions_put_each_record_in_one_cell():
    plain = ListedTable(FULL.clique("bc"), 1.0)
    assert COMPRESSION.question(plain) == FULL.clique("bc")
    coarse = COMPRESSION.question(ListedTable(FULL.clique("ac"), 1.0, {"c": (1, 3)}))
    assert isinstance(coarse, CoarseTable)
    assert isinstance(coarse, Partition)
    assert coarse.cells == 4 * 3
    codes = {"a": np.array([0, 1, 3, 5], np.uint8), "c": np.array([0, 3, 2, 1], np.uint8)}
    assert coarse.assign(codes).tolist() == [0, 3 * 3 + 2, 3 * 3 + 1, 2 * 3 + 1]


def test_grouped_answers_say_which_cells_they_count():
    listed = ListedTable(FULL.clique("ac"), 1.0, {"c": (1, 3)})
    measured = Measurement("a × c", ("a", "c"), (12,), np.arange(12), DISTRIBUTION)
    table = COMPRESSION.table(listed, measured, 25.0)
    table.check(COMPRESSION.domain)
    assert table.groups.reshape(4, 4).tolist() == [[0, 1, 1, 2], [3, 4, 4, 5], [6, 7, 7, 8], [9, 10, 10, 11]]
    assert COMPRESSION.table(ListedTable(FULL.clique("bc"), 1.0), measured, 25.0).groups is None


def test_the_merged_code_takes_its_part_of_what_is_missing_to_the_total():
    table = COMPRESSION.column("a", ANSWERS["a"], 25.0, 175.0)
    # Kept: 40, 15, 90; merged: 14 − 3 + 7 = 18; 12 rows are missing, 2 for each of the six values.
    assert table.values.tolist() == [42.0, 17.0, 92.0, 24.0]
    assert COMPRESSION.column("b", ANSWERS["b"], 25.0, 175.0).values.tolist() == [50.0, 2.0, 60.0]


def test_expansions():
    even = COMPRESSION.expansion("a", ANSWERS["a"], 12.0, even=True)
    assert even.shares.tolist() == pytest.approx([1, 1 / 3, 1, 1 / 3, 1 / 3, 1])
    counted = COMPRESSION.expansion("a", ANSWERS["a"], 12.0, even=False)
    # Nearest counts of 0 or more that add up to 12: 14 − 4.5 and 7 − 4.5.
    assert counted.shares.tolist() == pytest.approx([1, 9.5 / 12, 1, 0, 2.5 / 12, 1])
    for mass in (0.0, 1e9):
        assert COMPRESSION.expansion("a", ANSWERS["a"], mass, even=False).faults(6, 4) == []


def test_smallest_domain():
    assert dict(smallest(FULL, ["a", "c"]).sizes) == {"a": 1, "b": 3, "c": 1}
