"""Overlapping tables: the vector by hand, agreement on every common part, least squares, no negatives, rules."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import UsageError
from understudy.models.consistency import OverlapTable, agreed, common_parts, consistent

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4, "d": 2})
CLIQUES = [Clique("abc"), Clique("bcd"), Clique("ab"), Clique("ad"), Clique("c"), Clique("c")]


def sums(clique: Clique, counts: np.ndarray, part: Clique) -> np.ndarray:
    others = tuple(axis for axis, name in enumerate(clique) if name not in part)
    return counts.reshape(DOMAIN.shape(clique)).sum(axis=others)


def noisy(seed: int, *, uneven: bool = False, level: float = 20.0) -> list[OverlapTable]:
    rng = np.random.default_rng(seed)
    found = []
    for clique in CLIQUES:
        cells = DOMAIN.cells(clique)
        variances = rng.uniform(1.0, 9.0, cells) if uneven else float(rng.uniform(1.0, 9.0))
        found.append(OverlapTable(clique, rng.normal(level, 5.0, cells), variances))
    return found


def assert_agree(tables: list[OverlapTable], counts: tuple[np.ndarray, ...], tolerance: float) -> None:
    for first, second in itertools.combinations(range(len(tables)), 2):
        one, other = tables[first].clique, tables[second].clique
        part = DOMAIN.clique(set(one) & set(other))
        np.testing.assert_allclose(
            sums(one, counts[first], part), sums(other, counts[second], part), atol=tolerance, rtol=0.0
        )


def test_the_vector_by_hand() -> None:
    first = OverlapTable(Clique("ab"), np.repeat([10.0, 20.0], 3) / 3.0, 1.0)
    second = OverlapTable(Clique("ac"), np.repeat([14.0, 18.0], 4) / 4.0, 1.0)
    one, other = agreed(DOMAIN, [first, second]).counts
    np.testing.assert_allclose(sums(first.clique, one, Clique("a")), [11.7143, 19.1429], atol=5e-5)
    np.testing.assert_allclose(sums(second.clique, other, Clique("a")), [11.7143, 19.1429], atol=5e-5)
    np.testing.assert_allclose(one - first.values, np.repeat([0.5714, -0.2857], 3), atol=5e-5)
    np.testing.assert_allclose(other - second.values, np.repeat([-0.5714, 0.2857], 4), atol=5e-5)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_tables_agree_on_every_common_part_and_total(seed: int, uneven: bool) -> None:
    tables = noisy(seed, uneven=uneven)
    found = agreed(DOMAIN, tables)
    assert_agree(tables, found.counts, 1e-6)
    assert np.ptp([counts.sum() for counts in found.counts]) < 1e-6


@pytest.mark.parametrize("uneven", [False, True])
def test_it_is_the_weighted_least_squares_solution(uneven: bool) -> None:
    tables = noisy(3, uneven=uneven)
    joint = DOMAIN.everything()
    cells = np.arange(DOMAIN.cells(joint))
    codes = np.unravel_index(cells, DOMAIN.shape(joint))
    rows, weights, values = [], [], []
    for table in tables:
        place = np.ravel_multi_index([codes[joint.index(n)] for n in table.clique], DOMAIN.shape(table.clique))
        rows.append(np.equal.outer(np.arange(table.values.size), place).astype(float))
        weights.append(1.0 / np.sqrt(np.broadcast_to(table.variances, table.values.shape)))
        values.append(table.values)
    design, weight, seen = np.vstack(rows), np.concatenate(weights), np.concatenate(values)
    best, *_ = np.linalg.lstsq(design * weight[:, None], seen * weight, rcond=None)
    np.testing.assert_allclose(np.concatenate(agreed(DOMAIN, tables).counts), design @ best, atol=1e-5)


@pytest.mark.parametrize("way", ["norm_sub", "norm_cut"])
def test_no_negative_is_left_and_tables_still_agree(way) -> None:
    tables = noisy(5, level=3.0)
    assert min(table.values.min() for table in tables) < 0.0
    found = consistent(DOMAIN, tables, way=way, rounds=500)
    assert min(counts.min() for counts in found.counts) >= 0.0
    assert found.gap < 0.05
    assert_agree(tables, found.counts, 0.1)


def test_round_limit_leaves_no_negative_either() -> None:
    found = consistent(DOMAIN, noisy(5, level=1.0), rounds=1)
    assert found.rounds == 1
    assert min(counts.min() for counts in found.counts) >= 0.0


def test_excluded_cells_stay_empty_also_where_another_table_excludes_them() -> None:
    mask = np.zeros(6, dtype=bool)
    mask[3:] = True  # a = 1 cannot be, whatever b
    mask[1] = True
    found = consistent(DOMAIN, noisy(7), [StructuralZeros(Clique("ab"), mask)])
    abc, bcd, ab, ad = (
        counts.reshape(DOMAIN.shape(clique)) for counts, clique in zip(found.counts, CLIQUES[:4], strict=False)
    )
    assert not ab.ravel()[mask].any()
    assert not abc[1].any()
    assert not abc[0, 1].any()
    assert not ad[1].any()
    assert not bcd[1].any(), "b = 1 needs a = 1, which cannot be"
    assert_agree(noisy(7), found.counts, 0.1)


def test_nothing_but_negative_noise_still_gives_a_table() -> None:
    (found,) = consistent(DOMAIN, [OverlapTable(Clique("a"), np.array([-50.0, -3.0]), 1.0)]).counts
    assert found.min() >= 0.0
    assert found.sum() > 0.0


def test_common_parts_are_closed_and_in_order() -> None:
    parts = common_parts(DOMAIN, CLIQUES)
    assert parts[0] == ()
    for first, second in itertools.combinations(parts, 2):
        assert DOMAIN.clique(set(first) & set(second)) in parts
        assert not set(second) < set(first)
    assert Clique("c") in parts


@pytest.mark.parametrize(
    "table",
    [
        OverlapTable(Clique("ba"), np.ones(6), 1.0),
        OverlapTable(Clique("ab"), np.ones(5), 1.0),
        OverlapTable(Clique("ab"), np.ones(6), 0.0),
        OverlapTable(Clique("ab"), np.full(6, np.nan), 1.0),
        OverlapTable(Clique("ab"), np.ones(6), np.ones(5)),
    ],
)
def test_malformed_tables_are_refused(table: OverlapTable) -> None:
    with pytest.raises(UsageError):
        agreed(DOMAIN, [table])


def test_no_tables_are_refused() -> None:
    with pytest.raises(UsageError):
        agreed(DOMAIN, [])
