"""Groups: how they are written, refused, tied by rules, and kept."""

from fractions import Fraction

import numpy as np
import pytest

from understudy.answers import Distribution
from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.methods.fieldgroups import (
    FieldGroups,
    Group,
    NoisyGroup,
    block_of,
    check_group,
    parse_groups,
    tied,
    uniform_blocks,
    written_cells,
)

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2, "odd, +name": 2, 'q"uote': 2})


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("", []),
        ("b+a", [(("a", "b"), 0)]),
        (" a , c + b ", [(("a",), 0), (("b", "c"), 0)]),
        ('"odd, +name"+a', [(("a", "odd, +name"), 0)]),
        ('"q""uote"', [(('q"uote',), 0)]),
        ("a+b >= 100, c", [(("a", "b"), 100), (("c",), 0)]),
    ],
)
def test_groups_are_read(text, groups) -> None:
    assert [(tuple(group.columns), group.least_rows) for group in parse_groups(text, DOMAIN, "groups")] == groups


@pytest.mark.parametrize(
    "text", ["a+", ",a", "a++b", "a,,b", "a b+", ">= 5", "a >= 5 + b", 'a"b', "a+b >= x", "nope", "a,a"]
)
def test_what_is_no_list_of_groups_is_refused(text) -> None:
    with pytest.raises(UsageError, match="groups"):
        parse_groups(text, DOMAIN, "groups")


def test_only_text_is_read() -> None:
    with pytest.raises(UsageError, match="must be text"):
        FieldGroups(groups=3)
    assert parse_groups("a+zzz", DOMAIN, "groups", ignore_unknown=True) == [Group(Clique(("a",)))]


def test_groups_that_a_rule_touches_are_joined() -> None:
    rule = StructuralZeros(Clique(("a", "c")), np.zeros(4, dtype=bool))
    found = tied(DOMAIN, parse_groups("a+b, c >= 7", DOMAIN, "groups"), [rule])
    assert found == [Group(Clique(("a", "b", "c")), 7)]


def test_impossible_cells_and_empty_groups() -> None:
    rule = StructuralZeros(Clique(("a", "c")), np.array([False, True, False, False]))
    group = Group(Clique(("a", "c")))
    noisy = NoisyGroup(group, np.arange(4), np.array([3, 9, 1, -2]), Distribution("laplace", Fraction(1)), 4)
    (block,) = block_of(DOMAIN, noisy, noisy.values.astype(float), [rule])
    assert dict(zip(block.indices.tolist(), block.probabilities.tolist(), strict=True)) == {0: 0.75, 2: 0.25}
    (flat,) = block_of(DOMAIN, noisy, np.zeros(4), [rule])
    assert flat.indices.tolist() == [0, 2, 3]
    assert [tuple(block.clique) for block in uniform_blocks(DOMAIN, Clique(("a", "c")), [])] == [("a",), ("c",)]


def test_sizes() -> None:
    huge = Domain.of({"x": 2**31, "y": 2**31})
    with pytest.raises(ResourceError, match="x \\+ y"):
        check_group(huge, Group(Clique(("x", "y"))), "pfr")
    assert written_cells(DOMAIN, [Group(Clique(("a", "b"))), Group(Clique(("c",)))], 4) == 6
