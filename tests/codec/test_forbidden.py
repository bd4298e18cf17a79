import itertools

import pytest

from tests.codec.examples import codec_of
from understudy.errors import SchemaError
from understudy.schema import Boolean, Category, Float, GivenBins, Impossible, Integer, Range

AGE = Integer(name="age", lower=0, upper=30, bins=GivenBins((0, 10, 18, 30)), special=(99,))
VOTED = Boolean(name="voted")
STATE = Category(name="state", labels=("NC", "VA"), other="elsewhere")


def cells(codec, rule=0):
    """The structural zeros of a rule, in words."""
    structural_zeros = codec.structural_zeros[rule]
    shape = codec.domain.shape(structural_zeros.clique)
    every = itertools.product(*(range(size) for size in shape))
    return {
        tuple(codec.describe(name, code) for name, code in zip(structural_zeros.clique, cell, strict=True))
        for cell, hit in zip(every, structural_zeros.mask, strict=True)
        if hit
    }


def test_a_rule_becomes_cells_in_schema_order():
    rule = Impossible(when={"voted": ("true",), "age": Range(upper=17)})
    codec = codec_of(AGE, VOTED, STATE, rules=(rule,))
    assert codec.structural_zeros[0].clique == ("age", "voted")
    assert cells(codec) == {("[0, 10)", "true"), ("[10, 18)", "true")}


def test_missing_other_and_special_are_named_as_labels():
    rule = Impossible(when={"age": ("99", None), "state": ("elsewhere", "NC")})
    assert cells(codec_of(AGE, STATE, rules=(rule,))) == {
        (age, state) for age in ("99", "missing") for state in ("elsewhere", "NC")
    }


def test_open_ranges_stop_at_missing_and_special():
    rule = Impossible(when={"age": Range(lower=18), "voted": (None,)})
    assert cells(codec_of(AGE, VOTED, rules=(rule,))) == {("[18, 30]", "missing")}


def test_float_ranges_forgive_rounding():
    column = Float(name="rate", lower=0.0, upper=0.3, bins=GivenBins((0.0, 0.1 + 0.1, 0.3)))
    rule = Impossible(when={"rate": Range(upper=0.2), "voted": ("true",)})
    assert cells(codec_of(column, VOTED, rules=(rule,))) == {("[0, 0.2)", "true")}


@pytest.mark.parametrize("order", [0, 1])
def test_a_label_goes_only_with_its_group(order):
    city = Category(
        name="city",
        labels=("Durham", "Raleigh", "Richmond", "Nowhere"),
        groups={"Durham": "NC", "Raleigh": "NC", "Richmond": "VA"},
        within="state",
    )
    codec = codec_of(*((city, STATE) if order == 0 else (STATE, city)))
    wrong = {("Durham", "VA"), ("Raleigh", "VA"), ("Richmond", "NC")}
    wrong |= {(name, "elsewhere") for name in ("Durham", "Raleigh", "Richmond")}
    assert {pair if order == 0 else pair[::-1] for pair in cells(codec)} == wrong


def test_rules_over_too_many_cells_are_refused():
    wide = tuple(Category(name=f"c{i}", labels=tuple(map(str, range(400)))) for i in range(3))
    rule = Impossible(when={column.name: ("1",) for column in wide})
    with pytest.raises(SchemaError, match=r"rules\[0\]"):
        codec_of(*wide, rules=(rule,)).structural_zeros  # noqa: B018 - the rule is settled when it is asked for


def test_no_rules_no_cells():
    assert codec_of(VOTED).structural_zeros == ()
