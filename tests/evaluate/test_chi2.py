"""Tests of `understudy.evaluate.marginals`."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, chi2_contingency

from tests.evaluate.examples import codes_schema, context, mixed_frame, pair_of, shuffled
from understudy.evaluate.marginals import ChiSquare, converted, pearson
from understudy.evaluate.pooling_rules import pool_chi_squares

# Pearson's test against an independent implementation, with empty rows, and far in the tail.


@pytest.mark.parametrize("seed", range(5))
def test_equals_scipy(seed: int) -> None:
    table = np.random.default_rng(seed).integers(1, 40, (3, 4))
    found = pearson(table.ravel(), (3, 4))
    reference = chi2_contingency(table, correction=False)
    assert found is not None
    assert (found.statistic, found.degrees, found.p_value) == pytest.approx(
        (reference.statistic, reference.dof, reference.pvalue)
    )
    assert found.common == found.statistic


def test_empty_rows_reduce_the_degrees_and_keep_the_p_value() -> None:
    table = np.array([[10, 20, 0], [30, 5, 0], [0, 0, 0], [8, 9, 0]])
    found = pearson(table.ravel(), (4, 3))
    reference = chi2_contingency(table[[0, 1, 3], :2], correction=False)
    assert found is not None
    assert (found.statistic, found.degrees) == pytest.approx((reference.statistic, 2))
    assert chi2.sf(found.common, 6) == pytest.approx(found.p_value)


def test_cells_may_be_listed() -> None:
    table = np.array([[10, 0, 4], [3, 7, 0]])
    cells = np.flatnonzero(table.ravel())
    assert pearson(table.ravel()[cells], (2, 3), cells) == pearson(table.ravel(), (2, 3))


def test_tables_that_cannot_be_tested() -> None:
    assert pearson(np.array([5, 0, 3, 0]), (2, 2)) is None
    assert pearson(np.zeros(4, np.int64), (2, 2)) is None


def test_conversion_far_in_the_tail() -> None:
    near = converted(1200.0, 2, 6)
    assert chi2.sf(near, 6) == pytest.approx(chi2.sf(1200.0, 2), rel=1e-6)
    # Beyond 1,400 the p-value underflows. On 2 degrees it is exp(−x/2), on 6 exp(−y)(1 + y + y²/2) with y = x/2.
    for statistic in (1400.0, 50_000.0):
        half = converted(statistic, 2, 6) / 2
        assert half - np.log1p(half + half**2 / 2) == pytest.approx(statistic / 2, rel=1e-6)
    assert converted(50_000.0, 6, 2) / 2 == pytest.approx(25_000 - np.log1p(25_000 + 25_000**2 / 2), rel=1e-6)


# Verdicts of tests of independence: agreement, pooling, structural zeros, pairs that cannot be tested.


FRAME = mixed_frame(400)


def test_lost_associations_are_other_verdicts() -> None:
    found = ChiSquare().compare(pair_of(FRAME, shuffled(FRAME)), context())
    assert found.value < 0.7  # type: ignore[operator]
    first = found.detail("pairs").records(1)[0]
    assert first["real_p_value"] < 0.01 < first["synthetic_p_value"]  # type: ignore[operator]
    assert found.detail("pairs").table.num_rows == 15


def test_pairs_tied_by_a_rule_are_flagged() -> None:
    found = ChiSquare().compare(pair_of(FRAME, FRAME), context())
    flagged = [row for row in found.detail("pairs").records() if row["structural_zero"]]
    assert [(row["column_1"], row["column_2"]) for row in flagged] == [("region", "sex")]
    assert "1 pairs have cells" in found.notes[-1]


def test_copies_are_pooled() -> None:
    schema = codes_schema({"a": 3, "b": 3})
    rng = np.random.default_rng(1)
    frames = []
    for _ in range(4):
        a = rng.integers(0, 3, 200)
        frames.append(
            pd.DataFrame({"a": a, "b": np.where(rng.random(200) < 0.15, a, rng.integers(0, 3, 200))}).astype(str)
        )
    pair = pair_of(*frames, schema=schema)
    found = ChiSquare().compare(pair, context()).detail("pairs").records()[0]
    tables = [np.bincount(copy.codes["a"].astype(int) * 3 + copy.codes["b"], minlength=9) for copy in pair.copies]
    statistics = [pearson(table, (3, 3)).common for table in tables]  # type: ignore[union-attr]
    assert found["synthetic_p_value"] == pytest.approx(pool_chi_squares(statistics, 4).p_value)


def test_constant_columns() -> None:
    schema = codes_schema({"a": 2, "b": 2, "c": 2})
    frame = pd.DataFrame({"a": ["0", "1"] * 30, "b": ["0", "1"] * 30, "c": ["0"] * 60})
    found = ChiSquare().compare(pair_of(frame, frame, schema=schema), context())
    assert "2 pairs were left out" in found.notes[0]
    lost = ChiSquare().compare(pair_of(frame, frame.assign(a="0"), schema=schema), context())
    assert lost.value == 0  # the real association cannot be found any more
    alone = ChiSquare().compare(pair_of(frame.assign(b="0"), frame, schema=schema), context())
    assert "no pair of columns can be tested" in alone.why_not


def test_fifteen_columns_have_a_hundred_and_five_tables() -> None:
    names = [f"c{place}" for place in range(15)]
    rng = np.random.default_rng(4)
    frames = [pd.DataFrame(rng.integers(0, 2, (60, 15)), columns=names).astype(str) for _ in range(2)]
    found = ChiSquare().compare(pair_of(*frames, schema=codes_schema(dict.fromkeys(names, 2))), context())
    pairs = found.detail("pairs").records()
    assert len({(row["column_1"], row["column_2"]) for row in pairs}) == len(pairs) == 105
