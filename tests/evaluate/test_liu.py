"""Liu's rule: the vectors, and refusals."""

import pytest

from understudy.errors import UsageError
from understudy.evaluate.pooling_rules import pool_liu


def test_first_vector() -> None:
    found = pool_liu([0.42, 0.51, 0.37, 0.46, 0.40], [0.0100, 0.0110, 0.0090, 0.0105, 0.0095])
    assert (found.estimate, found.between, found.within, found.variance) == pytest.approx(
        (0.432, 0.00297, 0.01, 0.010594)
    )
    assert found.degrees == pytest.approx(1272.35, abs=0.01)
    assert (found.low, found.high) == pytest.approx((0.230074, 0.633926), abs=1e-6)


def test_second_vector() -> None:
    found = pool_liu([0.10, 0.90, 0.35, 0.75, 0.40], [0.01] * 5)
    assert found.variance == pytest.approx(0.03075)
    assert found.degrees == pytest.approx(8.78444, abs=1e-5)
    assert (found.low, found.high) == pytest.approx((0.101827, 0.898173), abs=1e-6)


def test_equal_copies_are_normal() -> None:
    found = pool_liu([1.0, 1.0], [4.0, 4.0], level=0.9)
    assert found.degrees is None
    assert found.high == pytest.approx(1 + 1.6448536 * 2)


@pytest.mark.parametrize(
    ("estimates", "variances", "level"),
    [([1.0], [1.0], 0.95), ([1.0, 2.0], [1.0], 0.95), ([1.0, float("nan")], [1.0, 1.0], 0.95),
     ([1.0, 2.0], [1.0, -1.0], 0.95), ([1.0, 2.0], [1.0, 1.0], 1.0), ([], [], 0.95)],
)  # fmt: skip
def test_refusals(estimates: list[float], variances: list[float], level: float) -> None:
    with pytest.raises(UsageError, match="pool"):
        pool_liu(estimates, variances, level=level)
