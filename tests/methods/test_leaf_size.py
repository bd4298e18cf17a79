"""Leaf sizes: the smallest that is narrow enough, and λ out of a budget."""

import pytest

import understudy as us
from understudy.errors import UsageError
from understudy.methods.leaf_size import leaf_interval, leaf_rate, leaf_size


@pytest.mark.parametrize(("width", "share", "rate"), [(0.2, 0.5, 0.4), (0.15, 0.25, 0.4), (0.1, 0.05, 1.0)])
def test_no_smaller_size_is_narrow_enough(width, share, rate):
    found = leaf_size(width, share=share, rate=rate)
    assert found.interval.width <= width
    for records in range(1, found.records):
        assert leaf_interval(share, rate, records).width > width


def test_the_source_needs_a_thousand_where_its_interval_is_truncated():
    assert leaf_size(0.05, share=0.25, rate=0.4).records == 836
    assert 800 < leaf_size(0.2728 - 0.2272, share=0.25, rate=0.4).records <= 1001


def test_a_budget_is_shared_by_trees_and_columns():
    assert leaf_rate(1.0, trees=5, columns=2) == pytest.approx(0.1)
    assert leaf_rate(2.0, trees=5, columns=2, relation="label_change") == pytest.approx(0.1)
    by_budget = leaf_size(0.2, epsilon=1.0, trees=5, columns=2)
    assert by_budget == leaf_size(0.2, rate=0.1)


def test_it_is_part_of_the_package():
    assert us.leaf_size is leaf_size


@pytest.mark.parametrize(
    "given",
    [
        {"width": 0.0, "rate": 1.0},
        {"width": 1.0, "rate": 1.0},
        {"width": 0.1},
        {"width": 0.1, "rate": 1.0, "epsilon": 1.0},
        {"width": 0.1, "epsilon": 0.0},
        {"width": 0.1, "epsilon": 1.0, "trees": 0},
        {"width": 0.1, "epsilon": 1.0, "columns": 1.5},
        {"width": 0.1, "epsilon": 1.0, "relation": "replace"},
        {"width": 0.1, "rate": 1.0, "share": 2.0},
    ],
)
def test_bad_numbers_are_refused(given):
    width = given.pop("width")
    with pytest.raises(UsageError):
        leaf_size(width, **given)


def test_a_width_out_of_reach_is_refused(monkeypatch):
    monkeypatch.setattr("understudy.methods.leaf_size.MOST_RECORDS", 64)
    with pytest.raises(UsageError, match="not reached"):
        leaf_size(0.01, rate=1.0)
