"""What follows from options and domain alone: how many layers, draws and decisions there are, and what is refused."""

import pytest

from tests.methods.door import epsilon
from understudy.domain import Domain
from understudy.errors import ResourceError, UsageError
from understudy.methods.steps_tree import ChoiceCosts, Shape, Wanted, named_columns, trimmed_shares
from understudy.privacy.cost import Cost

FIVE = Domain.of({"a": 2, "b": 3, "one": 1, "c": 4, "d": 5, "e": 14})


@pytest.mark.parametrize(("layers", "upper"), [(1, 1), (2, 2), (3, 3), (4, 4), (5, 4), (64, 4)])
def test_draws_and_counted_layers_of_a_path(layers, upper):
    # q = L and Λ = L + 1 below p = 5; q = p − 1 and Λ = p at L = p.
    shape = Shape.of(Wanted(layers=layers, stopping="range"), FIVE)
    assert (shape.upper, shape.draws, shape.stops) == (upper, upper, upper)
    assert shape.columns == ("a", "b", "c", "d", "e")
    assert shape.layer_sizes == [14, 70, 280, 840][:upper]


def test_a_sequence_needs_no_draws():
    shape = Shape.of(Wanted(sequence="d, a,one"), FIVE)
    assert (shape.wanted.depth, shape.upper, shape.draws, shape.stops) == (3, 2, 0, 0)
    assert shape.sequence == ("d", "a")
    assert shape.layer_sizes == [5, 10]
    assert Shape.of(Wanted(sequence="*", layers=3), FIVE).sequence == ("a", "b", "c", "d", "e")
    assert Shape.of(Wanted(sequence="d,a", layers=1), FIVE).layer_sizes == [5]


def test_groups_are_one_draw():
    shape = Shape.of(Wanted(choice="grouped"), FIVE)
    assert (shape.upper, shape.draws, shape.splits) == (1, 1, 30)
    assert Shape.of(Wanted(choice="grouped", layers=3), FIVE).splits == 150
    assert Shape.of(Wanted(choice="grouped", layers=1), FIVE).draws == 0


@pytest.mark.parametrize("domain", [Domain.of({"a": 7}), Domain.of({"a": 1, "b": 1})])
def test_one_column_leaves_nothing_to_choose(domain):
    for wanted in (Wanted(), Wanted(choice="grouped"), Wanted(sequence="*"), Wanted(stopping="privtree")):
        shape = Shape.of(wanted, domain)
        assert (shape.upper, shape.draws, shape.stops, shape.layer_sizes, shape.codes_at_nodes) == (0, 0, 0, [], 0)


def test_what_does_not_go_together_is_refused():
    for wrong in ("a,a", "a,,b", ","):
        with pytest.raises(UsageError, match="sequence"):
            Wanted(sequence=wrong)
    with pytest.raises(UsageError, match="fewer columns"):
        Wanted(sequence="a,b", layers=3)
    with pytest.raises(UsageError, match="sequence"):
        Wanted(choice="grouped", sequence="a")
    with pytest.raises(UsageError, match="stopping"):
        Wanted(choice="grouped", stopping="range")
    with pytest.raises(UsageError, match="incme"):
        Shape.of(Wanted(sequence="incme"), FIVE)


def test_choices_too_large_to_score_are_refused_in_advance():
    wide = Domain.of({f"c{place}": 2 for place in range(20)})
    with pytest.raises(ResourceError, match="group 20 columns"):
        Shape.of(Wanted(choice="grouped"), wide).choice_bytes("method steps")
    tall = Domain.of({"a": 4096, "b": 4096, "c": 4096})
    with pytest.raises(ResourceError, match="every node"):
        Shape.of(Wanted(layers=3), Domain.of({**tall.sizes, "d": 2})).choice_bytes("method steps")
    assert Shape.of(Wanted(layers=2), FIVE).choice_bytes("method steps") == 24 * 14 * 28


def test_shares_follow_the_layers_that_are_left():
    assert trimmed_shares("0.2,0.3,0.5", 2) == "1/5,3/10,1/2"
    assert trimmed_shares("0.2,0.3,0.5", 0) == "1"
    assert named_columns("*") == named_columns("") == []


def test_costs_of_choosing_are_equal_parts():
    from fractions import Fraction

    third = Fraction(1, 3)
    range_costs = ChoiceCosts.of(epsilon(0.3), 2, 2, draw_share=third, stopping="range")
    assert range_costs == ChoiceCosts(epsilon(0.05), epsilon(0.1), Cost())
    grown = ChoiceCosts.of(epsilon(0.3), 2, 2, draw_share=third, stopping="privtree")
    assert grown == ChoiceCosts(epsilon(0.05), Cost(), epsilon(0.2))
    assert ChoiceCosts.of(epsilon(0.3), 3, 0, draw_share=third, stopping="none").draw == epsilon(0.1)
    assert ChoiceCosts.of(epsilon(0.3), 0, 3, draw_share=third, stopping="range").stop == epsilon(0.1)
