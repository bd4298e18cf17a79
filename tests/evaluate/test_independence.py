"""Pearson's test against an independent implementation, with empty rows, and far in the tail."""

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency

from understudy.evaluate.chi2 import converted, pearson


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
