"""DPFieldGroups: thresholds as published and corrected, groups given and found, independence between groups."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from understudy import Schema, Unit, synthesize
from understudy.domain import Clique, Distribution, Domain, NoisyScores, SparseMeasurement, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.methods.fieldgroups import (
    FieldGroups,
    Group,
    NoisyGroup,
    block_of,
    chance_gap,
    check_group,
    joined_groups,
    parse_groups,
    published_threshold,
    tied,
    uniform_blocks,
    written_cells,
)
from understudy.methods.method import PublicFacts, pass_probability
from understudy.privacy.cost import Cost
from understudy.schema import Category
from understudy.synthesizer import Environment
from understudy.testing.doubles import SeededRandomizer


def schema(sizes: dict[str, int]) -> Schema:
    """Categories with so many labels, and as many codes."""
    return Schema(
        columns=tuple(Category(name=n, labels=tuple(map(str, range(s))), missing=False) for n, s in sizes.items()),
        unit=Unit(),
        unreadable="drop",
    )


@pytest.mark.parametrize(
    ("epsilon", "scale", "thousand", "million"),
    [(0.3, 130.0, 741.0, 1482.0), (1.0, 39.0, 222.3, 444.6), (8.0, 4.875, 27.79, 55.6)],
)
def test_published_thresholds(epsilon: float, scale: float, thousand: float, million: float) -> None:
    """G = 39: scale 130 / 39 / 4.875; 741 / 222.3 / 27.79 for 1,000 cells and 1482 / 444.6 / 55.6 for 10⁶."""
    assert 39 / epsilon == pytest.approx(scale)
    assert published_threshold(1000, scale) == pytest.approx(thousand, abs=0.005)
    assert published_threshold(10**6, scale) == pytest.approx(million, abs=0.05)


def test_the_published_rule_by_hand() -> None:
    """G = 2, ε = 1, 4 cells: scale 2, threshold 2.2878; (8.8, 2.4, 2.1, 1.2) keeps the first two, 9/11 and 2/11."""
    assert published_threshold(4, 2.0) == pytest.approx(2.2878, abs=5e-5)
    # Integer noise rounds before the threshold: counts of 3 or more stay.
    noisy = NoisyGroup(
        Group(Clique(("a",))), np.arange(4), np.array([9, 3, 2, 1]), Distribution("laplace", Fraction(2)), 4
    )
    assert FieldGroups(published=True)._weights(noisy, 14.0).tolist() == [9.0, 3.0, 0.0, 0.0]


@pytest.mark.parametrize("cells", [10**3, 10**6, 10**9])
def test_false_cells_of_the_published_threshold(cells: int) -> None:
    """About ½ · B^0.175 empty cells of B survive."""
    distribution = Distribution("laplace", Fraction(39))
    expected = cells * pass_probability(distribution, round(published_threshold(cells, 39.0)))
    assert expected == pytest.approx(0.5 * cells**0.175, rel=0.05)


def test_the_corrected_threshold_keeps_as_few_false_cells_as_stated() -> None:
    distribution = Distribution("laplace", Fraction(39))
    for cells in (10**4, 10**9):
        cut = FieldGroups(kept_empty=3)._threshold(distribution, cells)
        assert cells * pass_probability(distribution, cut) <= 3 < cells * pass_probability(distribution, cut - 2)


def pairs(rows: int) -> pa.Table:
    """Two pairs of columns: equal within, independent between."""
    rng = np.random.default_rng(1)
    first, second = rng.integers(0, 4, rows), rng.integers(0, 3, rows)
    return pa.table(
        {n: pa.array(codes.astype(str)) for n, codes in zip("abcd", (first, first, second, second), strict=True)}
    )


FOUR = schema({"a": 4, "b": 4, "c": 3, "d": 3})


def test_groups_are_found_where_columns_go_together() -> None:
    release = synthesize(pairs(5000), FOUR, method="fieldgroups", epsilon=2.0, options={"group_cells": 16})
    blocks = release.model.blocks  # type: ignore[attr-defined]
    assert {tuple(block.clique) for block in blocks} == {("a", "b"), ("c", "d")}
    assert any(isinstance(answer, NoisyScores) for answer in release.transcript)
    # A noisy total above the cells' sum spreads over all cells: it takes 2,500 rows too many, 50 times its noise.
    assert np.trace(release.model.marginal(Clique(("a", "b"))).reshape(4, 4)) > 0.75


def test_independent_columns_show_no_more_than_chance_explains() -> None:
    """Mean InDif of 200 samples of two independent uniform columns, against the bound it should just reach."""
    rng = np.random.default_rng(8)
    gaps = []
    for _ in range(200):
        table = rng.multinomial(5000, np.full(12, 1 / 12)).reshape(4, 3)
        gaps.append(np.abs(table - np.multiply.outer(table.sum(axis=1), table.sum(axis=0)) / 5000).sum())
    assert np.mean(gaps) == pytest.approx(chance_gap(5000, (4, 3)), rel=0.05)


def test_no_pair_is_asked_where_none_could_stand_out() -> None:
    # The noisy total has a scale of 1,000 rows: about once in 300 runs it is so large that a pair could stand out.
    environment = replace(Environment.real(), randomizer=SeededRandomizer(1))
    release = synthesize(pairs(30), FOUR, method="fieldgroups", epsilon=0.1, _environment=environment)
    assert not any(isinstance(answer, NoisyScores) for answer in release.transcript)
    assert len(release.model.blocks) == 4  # type: ignore[attr-defined]


def test_groups_given_are_kept_and_independent_of_each_other() -> None:
    release = synthesize(pairs(5000), FOUR, method="fieldgroups", epsilon=50.0, options={"groups": "a+c"})
    blocks = release.model.blocks  # type: ignore[attr-defined]
    assert [tuple(block.clique) for block in blocks] == [("a", "c"), ("b",), ("d",)]
    product = np.multiply.outer(release.model.marginal(Clique(("a",))), release.model.marginal(Clique(("b",))))
    assert release.model.marginal(Clique(("a", "b"))) == pytest.approx(product.ravel())
    assert release.transcript.answers[1].distribution.scale == pytest.approx(3 / (50 * 0.99))


def test_large_groups_are_measured_sparsely() -> None:
    release = synthesize(
        pairs(5000), FOUR, method="fieldgroups", epsilon=5.0, options={"groups": "a+b+c", "dense_cells": 4}
    )
    assert any(isinstance(answer, SparseMeasurement) for answer in release.transcript)
    assert np.trace(release.model.marginal(Clique(("a", "b"))).reshape(4, 4)) > 0.75


def test_joining_stops_at_the_noise_and_at_the_size() -> None:
    domain = Domain.of({"a": 10, "b": 10, "c": 10})
    single = [Group(Clique((name,))) for name in "abc"]
    scores = {Clique(("a", "b")): 50.0, Clique(("b", "c")): 40.0, Clique(("a", "c")): 1.0}
    assert [tuple(g.columns) for g in joined_groups(domain, single, scores, 5.0, 1000)] == [("a", "b", "c")]
    assert [tuple(g.columns) for g in joined_groups(domain, single, scores, 5.0, 100)] == [("a", "b"), ("c",)]
    assert [tuple(g.columns) for g in joined_groups(domain, single, scores, 60.0, 1000)] == [("a",), ("b",), ("c",)]


def test_what_does_not_fit_or_cannot_be_paid_is_refused() -> None:
    huge = PublicFacts(Domain.of({"x": 2**31, "y": 2**31, "z": 2}), (), 1)
    with pytest.raises(ResourceError, match="x \\+ y"):
        FieldGroups(groups="x+y").plan(huge, Cost(epsilon=10**12))
    with pytest.raises(UsageError, match="pure"):
        FieldGroups().plan(huge, Cost(rho=10**9))
    with pytest.raises(UsageError, match="published"):
        FieldGroups(published=1)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="kept_empty"):
        FieldGroups(kept_empty=0)


# Groups: how they are written, refused, tied by rules, and kept.


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
