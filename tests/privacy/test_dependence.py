"""Tests of `understudy.privacy.dependence`."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.codec.table import TableCodec
from understudy.counts.frames import FrameTable
from understudy.domain import SCORE_UNIT, Clique, Domain
from understudy.errors import UsageError
from understudy.privacy import cost as costs
from understudy.privacy import dependence as mutual_information
from understudy.privacy.curator import Curator
from understudy.privacy.dependence import (
    LARGEST_TOTAL,
    BinaryFit,
    Dependence,
    FallingSum,
    Family,
    FamilyTables,
    IndependenceGap,
    Information,
)
from understudy.privacy.scores import Quality
from understudy.testing import cases as tables
from understudy.testing.doubles import NoNoise
from understudy.testing.replay import Recorder

# R and InDif: equal to fractions, exact in sensitivity whatever the counts, and the published numbers.


DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2})
ABC, AB = Clique(("a", "b", "c")), Clique(("a", "b"))
FAMILY = Family("b", ("a", "c"))
HARD = [0, 1, 2, 2**29, 2**30, 2**31, 2**42 - 1, 2**42, 2**53, 2**57]
counts = st.lists(st.one_of(st.integers(0, 12), st.sampled_from(HARD)), min_size=12, max_size=12)


def gap(table: np.ndarray) -> Fraction:
    """InDif by definition, in fractions."""
    total = int(table.sum())
    if not total:
        return Fraction(0)
    rows, columns = [int(x) for x in table.sum(axis=1)], [int(x) for x in table.sum(axis=0)]
    return sum(
        (abs(int(table[i, j]) - Fraction(rows[i] * columns[j], total)) for i, j in np.ndindex(table.shape)), Fraction(0)
    )


def both(cells: np.ndarray) -> tuple[int, int]:
    """The integer scores R of b given a and c, and InDif of a and b."""
    exact = {ABC: cells.ravel(), AB: cells.sum(axis=2).ravel()}
    (dependence,) = Dependence("parents", [FAMILY], DOMAIN).scores(exact)
    (apart,) = IndependenceGap("pair", [AB], DOMAIN).scores(exact)
    return int(dependence), int(apart)


@settings(max_examples=200, deadline=None)
@given(counts)
def test_scores_are_the_floor_of_exact_fractions(cells) -> None:
    table = np.array(cells, dtype=np.int64).reshape(2, 3, 2)
    dependence, apart = both(table)
    assert dependence == min(2**62, SCORE_UNIT * gap(table.transpose(0, 2, 1).reshape(4, 3)) // 2)
    assert apart == min(2**62, SCORE_UNIT * gap(table.sum(axis=2)) // 1)


@settings(max_examples=400, deadline=None)
@given(counts, st.integers(0, 11), st.integers(1, 3))
def test_no_score_moves_by_more_than_claimed(cells, place, rows) -> None:
    before = np.array(cells, dtype=np.int64).reshape(2, 3, 2)
    after = before.copy()
    after.ravel()[place] += rows
    one, other = both(before), both(after)
    assert abs(one[0] - other[0]) <= rows * Dependence("parents", [FAMILY], DOMAIN).sensitivity
    assert abs(one[1] - other[1]) <= rows * IndependenceGap("pair", [AB], DOMAIN).sensitivity


def test_every_small_table_stays_within_the_bound_and_one_comes_close() -> None:
    """All 2 × 3 tables of up to 5 rows with every row added; 63 rows in one cell show that 4 cannot be lowered."""
    worst = Fraction(0)
    for cells in product(range(6), repeat=6):
        if sum(cells) > 5:
            continue
        table = np.array(cells, dtype=np.int64).reshape(2, 3)
        for place in range(6):
            after = table.copy()
            after.ravel()[place] += 1
            worst = max(worst, abs(gap(after) - gap(table)))
    assert worst == Fraction(4 * 5, 6)
    table = np.array([[63, 0], [0, 0]])
    after = np.array([[63, 0], [0, 1]])
    assert gap(after) - gap(table) == Fraction(4 * 63, 64)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=9, max_size=9), st.integers(0, 8), st.integers(0, 8))
def test_replacing_a_row_moves_the_share_by_less_than_published(cells, gone, come) -> None:
    table = np.array(cells, dtype=np.int64).reshape(3, 3)
    if not table.ravel()[gone]:
        return
    after = table.copy()
    after.ravel()[gone] -= 1
    after.ravel()[come] += 1
    rows = int(table.sum())
    assert abs(gap(table) - gap(after)) / (2 * rows) <= Fraction(3, rows) + Fraction(2, rows**2)


def test_published_numbers() -> None:
    """n = 8, table (3, 1; 1, 3): R = 0.25."""
    domain = Domain.of({"x": 2, "y": 2})
    pair = Clique(("x", "y"))
    quality: Quality[Family] = Dependence("parents", [Family("y", ("x",))], domain)
    assert quality.scores({pair: np.array([3, 1, 1, 3])}) / SCORE_UNIT / 8 == 0.25


def test_a_row_can_raise_and_lower_both() -> None:
    exact = [np.array([4, 0, 0, 4]), np.array([5, 0, 0, 4]), np.array([4, 1, 0, 4])]
    domain = Domain.of({"x": 2, "y": 2})
    pair = Clique(("x", "y"))
    quality = IndependenceGap("pair", [pair], domain)
    apart, more, less = (int(quality.scores({pair: table})[0]) for table in exact)
    assert less < apart < more
    assert not quality.monotone
    assert not Dependence("parents", [Family("y", ("x",))], domain).monotone
    assert quality.scores({pair: np.zeros(4, dtype=np.int64)}).tolist() == [0]


def test_only_pairs_have_an_independence_gap() -> None:
    with pytest.raises(UsageError, match="needs pairs"):
        IndependenceGap("pair", [ABC], DOMAIN)


# Mutual information in rows: equal to the formula, exact in sensitivity for any counts, and the published numbers.


MUTUAL_INFORMATION_DOMAIN = Domain.of({"a": 2, "b": 3})
MUTUAL_INFORMATION_AB = Clique(("a", "b"))
MUTUAL_INFORMATION_FAMILY = Family("b", ("a",))
MUTUAL_INFORMATION_HARD = [0, 1, 2, 2**16 - 1, 2**16, 2**16 + 1, 2**17 - 1, 2**31, 2**40, 2**42, 2**57]
mutual_information_counts = st.lists(
    st.one_of(st.integers(0, 12), st.sampled_from(MUTUAL_INFORMATION_HARD)), min_size=6, max_size=6
)


def entropy(table: np.ndarray) -> float:
    """Σ c log₂ c."""
    positive = table[table > 0].astype(float)
    return float((positive * np.log2(positive)).sum())


def information(table: np.ndarray) -> float:
    """n·I by definition."""
    return entropy(table) - entropy(table.sum(axis=0)) - entropy(table.sum(axis=1)) + entropy(np.array([table.sum()]))


def score(table: np.ndarray, rows: int) -> int:
    """The integer score of b given a."""
    (found,) = Information("parents", [MUTUAL_INFORMATION_FAMILY], MUTUAL_INFORMATION_DOMAIN, rows).scores(
        {MUTUAL_INFORMATION_AB: table.ravel()}
    )
    return int(found)


@settings(max_examples=400, deadline=None)
@given(
    mutual_information_counts,
    st.integers(0, 5),
    st.integers(1, 3),
    st.sampled_from([1, 2, 10, 2**16, 3 * 2**16 + 5, 2**24]),
)
def test_mutual_information_no_score_moves_by_more_than_claimed(cells, place, added, rows) -> None:
    quality = Information("parents", [MUTUAL_INFORMATION_FAMILY], MUTUAL_INFORMATION_DOMAIN, rows)
    before = np.array(cells, dtype=np.int64).reshape(2, 3)
    after = before.copy()
    after.ravel()[place] += added
    assert abs(score(before, rows) - score(after, rows)) <= added * quality.sensitivity


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 40), st.integers(0, 10**6)), min_size=6, max_size=6))
def test_up_to_the_stated_rows_it_is_mutual_information(cells) -> None:
    table = np.array(cells, dtype=np.int64).reshape(2, 3)
    rows = max(1, int(table.sum()))
    assert score(table, rows) / SCORE_UNIT == pytest.approx(information(table), abs=1e-5 * rows + 1e-3)


@pytest.mark.parametrize("rows", [5, 70_000, 2**20, 2**34])
def test_both_ways_of_summing_agree(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.array([[2**33, 5, 70_000], [12, 2**34, 2**20 + 77]], dtype=np.int64)
    narrow = score(table, rows)
    monkeypatch.setattr(mutual_information, "_SAFE", 0)
    assert score(table, rows) == narrow


def test_the_bound_is_reached_and_is_the_formula() -> None:
    for rows in (1, 7, 50, 44_821):
        quality = Information("parents", [MUTUAL_INFORMATION_FAMILY], MUTUAL_INFORMATION_DOMAIN, rows)
        exact = math.log2(rows + 1) + rows * math.log2(1 + 1 / rows)
        assert float(quality.sensitivity) / SCORE_UNIT == pytest.approx(exact, abs=1e-6)
        before, after = np.array([[rows, 0, 0], [0, 0, 0]]), np.array([[rows, 0, 0], [0, 0, 1]])
        assert score(after, rows) - score(before, rows) == quality.sensitivity


def test_every_small_table_stays_within_the_bound() -> None:
    for cells in product(range(4), repeat=4):
        table = np.array(cells, dtype=np.int64).reshape(2, 2)
        for place in range(4):
            after = table.copy()
            after.ravel()[place] += 1
            rows = int(after.sum())
            bound = math.log2(rows) + (rows - 1) * math.log2(1 + 1 / max(1, rows - 1))
            assert abs(information(after) - information(table)) <= bound + 1e-9


def test_mutual_information_published_numbers() -> None:
    """n = 8, table (3, 1; 1, 3): I = 0.18872 bits."""
    pair = Domain.of({"x": 2, "y": 2})
    quality: Quality[Family] = Information("parents", [Family("y", ("x",))], pair, 8)
    (found,) = quality.scores({Clique(("x", "y")): np.array([3, 1, 1, 3])})
    assert found / SCORE_UNIT / 8 == pytest.approx(0.18872, abs=5e-6)
    assert not quality.monotone


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=9, max_size=9), st.integers(0, 8), st.integers(0, 8))
def test_replacing_a_row_moves_the_share_by_no_more_than_published(cells, gone, come) -> None:
    table = np.array(cells, dtype=np.int64).reshape(3, 3)
    rows = int(table.sum())
    if rows < 2 or not table.ravel()[gone]:
        return
    after = table.copy()
    after.ravel()[gone] -= 1
    after.ravel()[come] += 1
    published = 2 / rows * math.log2((rows + 1) / 2) + (rows - 1) / rows * math.log2((rows + 1) / (rows - 1))
    assert abs(information(table) - information(after)) / rows <= published + 1e-9


def test_penalties_are_subtracted_and_checked() -> None:
    exact = {MUTUAL_INFORMATION_AB: np.array([3, 0, 0, 0, 3, 0])}
    plain = Information(
        "parents", [MUTUAL_INFORMATION_FAMILY, MUTUAL_INFORMATION_FAMILY], MUTUAL_INFORMATION_DOMAIN, 8
    ).scores(exact)
    less = Information(
        "parents",
        [MUTUAL_INFORMATION_FAMILY, MUTUAL_INFORMATION_FAMILY],
        MUTUAL_INFORMATION_DOMAIN,
        8,
        penalties=(0.0, 2.5),
    ).scores(exact)
    assert (plain - less).tolist() == [0, 5 * SCORE_UNIT // 2]
    with pytest.raises(UsageError, match="one finite penalty"):
        Information("parents", [MUTUAL_INFORMATION_FAMILY], MUTUAL_INFORMATION_DOMAIN, 8, penalties=(0.0, 1.0)).scores(
            exact
        )
    with pytest.raises(UsageError, match="whole number"):
        Information("parents", [MUTUAL_INFORMATION_FAMILY], MUTUAL_INFORMATION_DOMAIN, 0)


# F: equal to trying every split, exact in sensitivity, and the published numbers.


BINARY_FIT_DOMAIN = Domain.of({"p": 4, "x": 2})
PX = Clique(("p", "x"))
QUALITY = BinaryFit("parents", [Family("x", ("p",))], BINARY_FIT_DOMAIN)
binary_fit_counts = st.lists(st.one_of(st.integers(0, 6), st.integers(0, 60)), min_size=8, max_size=8)


def fit(table: np.ndarray) -> Fraction:
    """F_c = n·F by trying every split."""
    total, best = Fraction(int(table.sum())), None
    for split in product((0, 1), repeat=len(table)):
        captured = [sum(int(table[place, side]) for place, side in enumerate(split) if side == code) for code in (0, 1)]
        loss = sum((max(total / 2 - count, Fraction(0)) for count in captured), Fraction(0))
        best = loss if best is None else min(best, loss)
    assert best is not None
    return -best


def binary_fit_score(table: np.ndarray) -> int:
    """The integer score of x given p."""
    return int(QUALITY.scores({PX: table.ravel()})[0])


@settings(max_examples=300, deadline=None)
@given(binary_fit_counts)
def test_scores_equal_the_best_of_all_splits(cells) -> None:
    table = np.array(cells, dtype=np.int64).reshape(4, 2)
    assert binary_fit_score(table) == (fit(table) + Fraction(int(table.sum()), 4)) * SCORE_UNIT


@settings(max_examples=300, deadline=None)
@given(binary_fit_counts, st.integers(0, 7), st.integers(1, 3))
def test_binary_fit_no_score_moves_by_more_than_claimed(cells, place, rows) -> None:
    before = np.array(cells, dtype=np.int64).reshape(4, 2)
    after = before.copy()
    after.ravel()[place] += rows
    assert abs(binary_fit_score(before) - binary_fit_score(after)) <= rows * QUALITY.sensitivity


def test_both_ends_of_the_bound_are_reached() -> None:
    """A row against the grain costs one row, one with it gains a half: centred, three quarters either way."""
    moves = set()
    for cells in product(range(4), repeat=4):
        table = np.array([*cells, 0, 0, 0, 0], dtype=np.int64).reshape(4, 2)
        for place in range(4):
            after = table.copy()
            after.ravel()[place] += 1
            moves.add(binary_fit_score(after) - binary_fit_score(table))
    assert (min(moves), max(moves)) == (-QUALITY.sensitivity, QUALITY.sensitivity)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=8, max_size=8), st.integers(0, 7), st.integers(0, 7))
def test_binary_fit_replacing_a_row_moves_the_share_by_no_more_than_published(cells, gone, come) -> None:
    table = np.array(cells, dtype=np.int64).reshape(4, 2)
    if not table.ravel()[gone]:
        return
    after = table.copy()
    after.ravel()[gone] -= 1
    after.ravel()[come] += 1
    rows = int(table.sum())
    assert abs(fit(table) - fit(after)) / rows <= Fraction(1, rows)


def test_binary_fit_published_numbers() -> None:
    """n = 8, table (3, 1; 1, 3): F = −0.25."""
    quality: Quality[Family] = BinaryFit("parents", [Family("y", ("x",))], Domain.of({"x": 2, "y": 2}))
    (found,) = quality.scores({Clique(("x", "y")): np.array([3, 1, 1, 3])})
    assert found / SCORE_UNIT / 8 - 0.25 == -0.25
    assert not quality.monotone


def test_children_of_other_sizes_are_refused() -> None:
    with pytest.raises(UsageError, match="two codes"):
        BinaryFit("parents", [Family("p", ("x",))], BINARY_FIT_DOMAIN)


# Sums with falling steps: the two facts every proof rests on, whatever function they approximate.


UNIT = 2**20


def halving() -> FallingSum:
    """Steps 1/i, whose sums are harmonic numbers."""
    return FallingSum.of(lambda places: 1.0 / places, lambda places: np.log(places) + np.euler_gamma, UNIT)


def test_steps_lie_between_zero_and_the_first_and_never_rise() -> None:
    summed = halving()
    assert summed.first == UNIT
    assert summed.steps[-1] == 0
    assert np.all(np.diff(summed.steps) <= 0)
    assert summed.steps.min() >= 0


def test_a_step_that_rises_by_rounding_or_by_mistake_is_cut_down() -> None:
    wild = FallingSum.of(lambda places: 1.0 + np.sin(places), lambda places: places**2, UNIT)
    assert np.all(np.diff(wild.steps) <= 0)
    assert 0 <= wild.steps.min() <= wild.first


def test_values_are_the_sums_of_the_steps() -> None:
    summed = halving()
    values = summed(np.arange(0, 3 * 2**16, dtype=np.int64))
    assert values[0] == 0
    assert np.all(np.diff(np.diff(values)) <= 0)
    assert values[1000] / UNIT == pytest.approx(sum(1 / i for i in range(1, 1001)), abs=1e-3)
    assert values[150_000] / UNIT == pytest.approx(np.log(150_000) + np.euler_gamma, abs=0.1)
    assert values[2**16] / UNIT == pytest.approx(np.log(2**16) + np.euler_gamma, abs=5e-3), "steps are rounded, not cut"


def test_places_rise_and_nothing_is_added_behind_the_last() -> None:
    summed = halving()
    assert np.all(np.diff(summed.places) > 0)
    last = int(summed.places[-1])
    assert last == 2**40
    beyond = summed(np.array([last, last + 1, 2 * last, 2**52], dtype=np.int64))
    assert np.all(beyond == beyond[0])


@given(st.integers(0, 2**53), st.integers(0, 2**53))
def test_later_steps_are_never_larger(one: int, other: int) -> None:
    summed = halving_once()
    low, high = sorted((one, other))
    steps = summed(np.array([low, low + 1, high, high + 1], dtype=np.int64))
    assert 0 <= steps[3] - steps[2] <= steps[1] - steps[0] <= summed.first


_KEPT: list[FallingSum] = []


def halving_once() -> FallingSum:
    """The same sum for every example."""
    if not _KEPT:
        _KEPT.append(halving())
    return _KEPT[0]


# Families: counts of parents × child, at any level, equal to counting row by row.


FAMILY_DOMAIN = Domain.of({"a": 2, "b": 4, "c": 3})
COARSER = {"b": [np.array([0, 0, 1, 1]), np.zeros(4, dtype=np.int64)], "c": [np.array([0, 1, 0])]}
FAMILIES = [
    Family("a"),
    Family("b", ("c",)),
    Family("a", ("c", "b")),
    Family("c", ("a", "b"), (0, 1)),
    Family("a", ("b", "c"), (2, 1)),
]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(FAMILIES), st.lists(st.tuples(*(st.integers(0, s - 1) for s in (2, 4, 3))), max_size=30))
def test_the_table_is_what_counting_row_by_row_gives(family, rows) -> None:
    tables = FamilyTables(FAMILY_DOMAIN, COARSER)
    clique = tables.clique(family)
    counted = np.zeros(FAMILY_DOMAIN.shape(clique), dtype=np.int64)
    wanted = np.zeros(tables.shape(family), dtype=np.int64)
    for row in rows:
        codes = dict(zip(FAMILY_DOMAIN.columns, row, strict=True))
        counted[tuple(codes[name] for name in clique)] += 1
        place = 0
        for number, name in enumerate(family.parents):
            level = family.level(number)
            group = COARSER[name][level - 1] if level else np.arange(FAMILY_DOMAIN.sizes[name])
            place = place * (int(group.max()) + 1) + int(group[codes[name]])
        wanted[place, codes[family.child]] += 1
    assert np.array_equal(tables.table(family, counted.ravel()), wanted)


def test_counts_are_cut_so_that_no_sum_wraps() -> None:
    table = FamilyTables(FAMILY_DOMAIN).table(Family("a", ("b",)), np.full(8, 2**63 - 1))
    assert int(table.sum()) == LARGEST_TOTAL


def test_counts_of_another_size_and_odd_families_are_refused() -> None:
    with pytest.raises(UsageError, match="cells of its table"):
        FamilyTables(FAMILY_DOMAIN).table(Family("a", ("b",)), np.zeros(7, dtype=np.int64))
    with pytest.raises(UsageError, match="its own parent"):
        Family("a", ("a",))
    with pytest.raises(UsageError, match="a parent twice"):
        Family("a", ("b", "b"))
    with pytest.raises(UsageError, match="one level per parent"):
        Family("a", ("b", "c"), (1,))


def test_a_family_is_scored_once_and_scored_right() -> None:
    """Choices among families that partly come back, under changing rules, against scores from counts made anew."""
    schema = tables.small()
    table = tables.some_rows(schema, 60, seed=2)
    codec = TableCodec.of(schema)
    recorder = Recorder(NoNoise())
    curator = Curator(FrameTable(table, schema, memory_bytes=2**28), costs.Cost(epsilon=9 * costs.UNIT), recorder)
    curator.fix_codec(codec)
    first, second, third = codec.domain.columns[:3]
    families = [Family(second, (first,)), Family(third, (first,)), Family(third, (first, second))]
    coarse = {first: [np.zeros(codec.domain.sizes[first], np.int64)]}
    chosen: list[Quality[Family]] = [
        Dependence("parents", families[:2], codec.domain),
        Dependence("parents", families, codec.domain, penalties=(1.0, 2.0, 3.0)),
        Dependence("parents", [Family(third, (first,), (1,)), *families], codec.domain, coarse),
        Information("parents", families, codec.domain, 100),
        Information("parents", families[1:], codec.domain, 50),
    ]
    source = FrameTable(table, schema, memory_bytes=2**28).bind(codec)
    for quality in chosen:
        curator.select(quality, costs.Cost(epsilon=costs.UNIT))
        expected = quality.scores(source.counts(quality.cliques))
        assert recorder.log[-1].exact.tolist() == expected.tolist()


def test_rules_with_equal_numbers_are_one_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each choice of a run states its public number of rows anew; an equal number must not undo what was kept."""
    schema = tables.small()
    codec = TableCodec.of(schema)
    curator = Curator(
        FrameTable(tables.some_rows(schema, 60, seed=2), schema, memory_bytes=2**28),
        costs.Cost(epsilon=9 * costs.UNIT),
        Recorder(NoNoise()),
    )
    curator.fix_codec(codec)
    first, second, third = codec.domain.columns[:3]
    scored: list[Family] = []
    whole = Information.unpenalised

    def watched(
        quality: Information, families: Sequence[Family], exact: Mapping[Clique, npt.NDArray[np.int64]]
    ) -> list[int]:
        scored.extend(families)
        return whole(quality, families, exact)

    monkeypatch.setattr(Information, "unpenalised", watched)
    offers = [Family(second, (first,)), Family(third, (first,))]
    for rows in (2000, 2000, 4000):
        curator.select(Information("parents", offers, codec.domain, int(str(rows))), costs.Cost(epsilon=costs.UNIT))
    assert scored == 2 * offers  # once for 2,000 rows, once for 4,000
    monkeypatch.setattr(Information, "sensitivity", Fraction(1))
    curator.select(Information("parents", offers, codec.domain, 4000), costs.Cost(epsilon=costs.UNIT))
    assert scored == 3 * offers, "kept under another bound"
