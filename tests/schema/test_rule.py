from understudy.schema import (
    Boolean,
    Category,
    Float,
    Impossible,
    Integer,
    OpenCategory,
    PrivateBins,
    Range,
    UniformBins,
)
from understudy.schema.schema import bins_inside, labels_for_rules

AGE = Integer(name="age", lower=0, upper=99, bins=UniformBins(5))
SHARE = Float(name="share", lower=0.0, upper=1.0, bins=UniformBins(10))


def test_rules_name_codes_by_text() -> None:
    assert labels_for_rules(Category(name="c", labels=("a", "b"), other="z")) == ("a", "b", "z")
    assert labels_for_rules(Boolean(name="c")) == ("false", "true")
    assert labels_for_rules(Float(name="c", lower=0, upper=1, special=(999, 0.5))) == ("999.0", "0.5")
    assert labels_for_rules(OpenCategory(name="c")) == ()


def test_ranges_include_both_ends_on_whole_numbers() -> None:
    assert bins_inside(AGE, Range(20, 39)) == [False, True, False, False, False]
    assert bins_inside(AGE, Range(20, 40)) is None
    assert bins_inside(AGE, Range(19, 39)) is None
    assert bins_inside(AGE, Range(None, 1000)) == [True] * 5
    assert bins_inside(AGE, Range(1000, None)) == [False] * 5


def test_ranges_of_floats_forgive_rounding_only() -> None:
    inside = bins_inside(SHARE, Range(0.3, 0.1 * 7))
    assert inside == [False] * 3 + [True] * 4 + [False] * 3
    assert bins_inside(SHARE, Range(0.3001, None)) is None


def test_private_bins_are_not_known() -> None:
    assert bins_inside(Integer(name="n", lower=0, upper=9, bins=PrivateBins(2)), Range(0, 3)) is None


def test_lists_become_tuples() -> None:
    assert Impossible({"a": ["x", None]}) == Impossible({"a": ("x", None)})
