"""Scores against their definitions, and their sensitivities against every table of a few rows."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference import scores
from tests.reference.noise import decimal
from understudy.domain import SCORE_UNIT, Clique, Domain
from understudy.privacy.dependence import BinaryFit, Dependence, Family, IndependenceGap, Information
from understudy.privacy.scores import WEIGHT_UNIT, MarginalError, PublicOrPrivate, StandInError
from understudy.privacy.trees import (
    AIC_UNIT,
    BIC_ROWS,
    AicRange,
    EvenSplit,
    GroupedCriterion,
    NodeCriterion,
    NodeInformation,
)

PAIR = Clique(("a", "b"))


def tables(rows: int, columns: int, most: int = 12) -> st.SearchStrategy[list[list[int]]]:
    line = st.lists(st.integers(0, most), min_size=columns, max_size=columns)
    return st.lists(line, min_size=rows, max_size=rows)


def flat(table: Sequence[Sequence[int]]) -> np.ndarray:
    return np.array([count for row in table for count in row], dtype=np.int64)


def domain_of(table: Sequence[Sequence[int]]) -> Domain:
    return Domain({"a": len(table), "b": len(table[0])})


AIMS = st.lists(st.integers(-64, 640).map(lambda step: step / 64), min_size=6, max_size=6)


@settings(max_examples=40)
@given(tables(2, 3), AIMS, st.sampled_from([0.0, 0.5, 2.25]), st.sampled_from([0.0, 1.5, -3.25]), st.integers(1, 4))
def test_distances_from_estimates(
    table: list[list[int]], aims: list[float], floor: float, penalty: float, weight: int
) -> None:
    """An estimate below 0 counts as 0: no table has such a count."""
    quality = MarginalError(
        "t",
        [PAIR, PAIR],
        {PAIR: np.array(aims)},
        weights=(float(weight), 4.0),
        penalties=(penalty, 0.0),
        floors=(floor,) * 2,
    )
    wanted = [Fraction(max(aim, 0.0)) for aim in aims]
    found = quality.scores({PAIR: flat(table)}).tolist()
    apart = scores.distance(flat(table).tolist(), wanted, Fraction(floor))
    multiplier = round(Fraction(weight, 4) * WEIGHT_UNIT)
    assert found[0] == multiplier * SCORE_UNIT * (apart - Fraction(penalty))
    assert found[1] == WEIGHT_UNIT * SCORE_UNIT * apart
    assert quality.sensitivity == WEIGHT_UNIT * SCORE_UNIT
    assert not quality.monotone


def test_a_tiny_weight_still_counts_by_one_unit() -> None:
    quality = MarginalError("t", [PAIR, PAIR], {PAIR: np.zeros(4)}, weights=(1e-9, 1.0))
    assert quality.scores({PAIR: np.array([3, 0, 0, 1])}).tolist() == [4 * SCORE_UNIT, 4 * SCORE_UNIT * WEIGHT_UNIT]


@settings(max_examples=40)
@given(tables(2, 3), AIMS, AIMS, st.sampled_from([0.0, 1.5]))
def test_distances_from_estimates_and_public_tables(
    table: list[list[int]], aims: list[float], public: list[float], penalty: float
) -> None:
    """Private scores move by one row, public ones by two: halved, that is doubled private ones in whole numbers."""
    quality = PublicOrPrivate(
        "t",
        [(PAIR, "private"), (PAIR, "public")],
        {PAIR: np.array(aims)},
        {PAIR: np.array(public)},
        penalties=(penalty,) * 2,
    )
    counts = flat(table).tolist()
    apart = scores.distance(counts, [Fraction(max(aim, 0.0)) for aim in aims])
    besides = scores.distance(counts, [Fraction(max(aim, 0.0)) for aim in public])
    unit = WEIGHT_UNIT * SCORE_UNIT
    assert quality.scores({PAIR: flat(table)}).tolist() == [
        2 * unit * (apart - Fraction(penalty)),
        unit * (apart - besides - Fraction(penalty)),
    ]
    assert quality.sensitivity == 2 * unit


@settings(max_examples=30)
@given(tables(2, 3), AIMS, AIMS)
def test_distances_of_stand_ins(table: list[list[int]], one: list[float], other: list[float]) -> None:
    quality = StandInError("t", ["x", "y"], [PAIR], {"x": {PAIR: np.array(one)}, "y": {PAIR: np.array(other)}})
    wanted = [
        -SCORE_UNIT * scores.distance(flat(table).tolist(), [Fraction(max(aim, 0.0)) for aim in aims])
        for aims in (one, other)
    ]
    assert quality.scores({PAIR: flat(table)}).tolist() == wanted
    assert quality.sensitivity == SCORE_UNIT


@settings(max_examples=40)
@given(tables(3, 3))
def test_dependence_of_families_and_pairs(table: list[list[int]]) -> None:
    exact, domain = {PAIR: flat(table)}, domain_of(table)
    half = Dependence("t", [Family("b", ("a",))], domain).scores(exact)[0]
    whole = IndependenceGap("t", [PAIR], domain).scores(exact)[0]
    assert half == SCORE_UNIT * scores.gap(table) / 2 // 1
    assert whole == SCORE_UNIT * scores.gap(table) // 1


@settings(max_examples=40)
@given(tables(4, 2))
def test_how_well_parents_split_a_column(table: list[list[int]]) -> None:
    """The package adds a quarter of the rows, the same for all options, which centres the sensitivity."""
    quality = BinaryFit("t", [Family("b", ("a",))], domain_of(table))
    total = sum(map(sum, table))
    assert quality.scores({PAIR: flat(table)})[0] == SCORE_UNIT * (scores.fit(table) + Fraction(total, 4))


@settings(max_examples=30)
@given(tables(3, 2, most=30))
def test_mutual_information_of_families(table: list[list[int]]) -> None:
    quality = Information("t", [Family("b", ("a",))], domain_of(table), rows=200)
    found = Decimal(int(quality.scores({PAIR: flat(table)})[0])) / SCORE_UNIT
    assert abs(found - scores.information(table)) < Decimal(400) / SCORE_UNIT  # a half unit for each row and term


COUNTS = st.lists(st.integers(0, 40), min_size=3, max_size=3)


@settings(max_examples=30)
@given(COUNTS, COUNTS)
def test_criteria_of_nodes(one: list[int], other: list[int]) -> None:
    exact = {"a": np.array([one, other], np.int64)}
    everything = np.ones((2, 1), np.bool_)
    near = Decimal(10) ** -6
    for kind, wanted in (
        ("aic", scores.aic),
        ("bic", lambda counts: scores.bic(counts, BIC_ROWS)),
        ("deviance", lambda counts: scores.aic(counts) - 6),
    ):
        found = NodeCriterion("t", ["a"], everything, kind).scores(exact)[:, 0].tolist()
        for counts, value in zip((one, other), found, strict=True):
            assert abs(Decimal(value) / AIC_UNIT + wanted(counts)) < near
    half, against = AicRange("t", ["a"], everything, np.ones((2, 2), np.bool_), 100).scores(exact)[0].tolist()
    assert half == -against
    spread = Decimal(half) / (AIC_UNIT * 1000)
    assert abs(spread - (scores.aic(one) - Decimal("1.1") * scores.aic(one)) / 2) < near


@settings(max_examples=30)
@given(
    COUNTS, st.lists(st.integers(0, 40), min_size=2, max_size=2), st.lists(st.integers(0, 40), min_size=4, max_size=4)
)
def test_criteria_of_groups(one: list[int], two: list[int], three: list[int]) -> None:
    counts = {"a": one, "b": two, "c": three}
    exact = {Clique((name,)): np.array(found, np.int64) for name, found in counts.items()}
    quality = GroupedCriterion("t", [(("a",), ("b", "c")), (("a", "c"), ("b",))])
    aics = {name: scores.aic(found) for name, found in counts.items()}
    wanted = [(aics["b"] + aics["c"]) / 2 - aics["a"], aics["b"] - (aics["a"] + aics["c"]) / 2]
    for found, value in zip(quality.scores(exact).tolist(), wanted, strict=True):
        assert abs(Decimal(found) / AIC_UNIT - value) < Decimal(10) ** -6


@settings(max_examples=30)
@given(COUNTS)
def test_information_gain_of_nodes(counts: list[int]) -> None:
    quality = NodeInformation("t", ["a"], np.ones((1, 1), np.bool_), [3], rows_bound=500)
    found = Decimal(int(quality.scores({"a": np.array([counts], np.int64)})[0, 0])) / SCORE_UNIT
    assert abs(found - scores.gain(counts)) < Decimal(600) / SCORE_UNIT


@settings(max_examples=40)
@given(st.lists(st.integers(0, 30), min_size=6, max_size=6), st.integers(2, 7))
def test_even_splits(counts: list[int], bins: int) -> None:
    quality = EvenSplit("a", 6, ((1, 5),), (bins,))
    exact = np.array([[0, *counts[1:5], 0], [counts[0], 0, 0, 0, 0, counts[5]]], np.int64)
    found = quality.scores({"a": exact})
    low, high = bins // 2, bins - bins // 2
    for cut in range(2, 5):
        left, right = sum(counts[1:cut]), sum(counts[cut:5])
        assert found[0, cut] == -(SCORE_UNIT * Fraction(abs(high * left - low * right), high) // 1)


def one_table(score: Callable[[np.ndarray], int]) -> Callable[[Sequence[int]], Fraction]:
    return lambda counts: Fraction(score(np.array(counts, np.int64)))


def _of_pair(choice: Any, counts: np.ndarray) -> int:
    return int(choice.scores({PAIR: counts})[0])


def _of_node(choice: Any, counts: np.ndarray) -> int:
    return int(choice.scores({"a": counts[None]})[0, 0])


def qualities() -> list[tuple[str, Callable[[Sequence[int]], Fraction], Fraction, int]]:
    """Name, integer score of a flat table, the bound that is claimed for a row, cells."""
    domain, family = Domain({"a": 2, "b": 2}), Family("b", ("a",))
    every = np.ones((1, 1), np.bool_)
    estimates = {PAIR: np.array([0.5, 1.25, 0.0, 2.0])}
    choices: list[Any] = [
        Dependence("R", [family], domain),
        IndependenceGap("InDif", [PAIR], domain),
        BinaryFit("F", [family], domain),
        Information("I", [family], domain, rows=3),
        MarginalError("error", [PAIR], estimates, floors=(0.25,)),
        PublicOrPrivate("public", [(PAIR, "public")], estimates, {PAIR: np.array([2.0, 0.0, 1.0, 1.0])}),
        StandInError("stand-in", ["x"], [PAIR], {"x": estimates}),
    ]
    found = [
        (
            choice.name,
            one_table(partial(_of_pair, choice)),
            choice.sensitivity,
            4,
        )
        for choice in choices
    ]
    within: list[Any] = [NodeCriterion(kind, ["a"], every, kind) for kind in ("aic", "bic", "deviance")]
    within += [NodeInformation("gain", ["a"], every, [3], rows_bound=3)]
    within += [AicRange("range", ["a"], every, np.ones((1, 2), np.bool_), 250)]
    found += [
        (
            choice.name,
            one_table(partial(_of_node, choice)),
            choice.sensitivity,
            3,
        )
        for choice in within
    ]
    split = EvenSplit("a", 4, ((0, 4),), (3,))
    return [
        *found,
        (
            "split",
            one_table(lambda counts: int(split.scores({"a": np.stack([counts, counts])})[0, 2])),
            split.sensitivity,
            4,
        ),
    ]


REACHED = {"R": 0.7, "InDif": 0.7, "F": 1.0, "I": 1.0, "error": 1.0, "public": 1.0, "stand-in": 1.0, "split": 1.0}
REACHED |= {"aic": 0.85, "bic": 0.5, "deviance": 0.85, "gain": 0.7, "range": 0.1}
"""How much of the bound tables of five rows show: a bound that were needlessly wide would be noticed here."""


@pytest.mark.parametrize(
    ("name", "score", "bound", "cells"), qualities(), ids=lambda part: part if isinstance(part, str) else ""
)
def test_no_table_of_five_rows_moves_further_than_the_bound(
    name: str, score: Callable[[Sequence[int]], Fraction], bound: Fraction, cells: int
) -> None:
    most = scores.largest_move(score, cells, 5)
    assert most <= decimal(bound)
    assert most >= decimal(bound) * Decimal(str(REACHED[name]))


def test_definitions_move_no_further_than_what_is_claimed_for_them() -> None:
    """The real scores themselves, not their integer forms."""
    assert scores.largest_move(lambda counts: scores.gap([counts[:2], counts[2:]]), 4, 6) < 4
    assert scores.largest_move(scores.aic, 3, 6) < 2
    assert scores.largest_move(lambda counts: scores.aic(counts) - 6, 3, 6) < 2


def test_criteria_are_monotone_as_claimed() -> None:
    every = np.ones((1, 1), np.bool_)
    for kind in ("aic", "bic", "deviance"):
        quality = NodeCriterion(kind, ["a"], every, kind)
        assert quality.monotone
        assert not NodeCriterion(kind, ["a"], every, kind, published=True).monotone
        for counts in ((0, 0, 0), (1, 0, 0), (5, 3, 0), (120, 4, 1), (99, 1, 0)):
            table = np.array([counts], np.int64)
            before = quality.scores({"a": table})[0, 0]
            for place in range(3):
                more = table.copy()
                more[0, place] += 1
                assert quality.scores({"a": more})[0, 0] <= before
