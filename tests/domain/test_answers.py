from fractions import Fraction

import numpy as np
import pytest

from understudy.domain import Distribution, Measurement


@pytest.mark.parametrize(("scale", "variance"), [(1, 1.84135), (2, 7.83540), (5, 49.83367)])
def test_laplace_variance(scale: int, variance: float) -> None:
    assert Distribution("laplace", Fraction(scale)).variance == pytest.approx(variance, abs=5e-6)


def test_gaussian_scale_is_the_root_of_its_parameter() -> None:
    distribution = Distribution("gaussian", Fraction(9, 4))
    assert distribution.scale == 1.5
    assert distribution.variance == 2.25


@pytest.mark.parametrize("scale", [Fraction(1, 10**6), Fraction(10**12)])
def test_variance_is_finite_at_the_extremes(scale: Fraction) -> None:
    assert np.isfinite(Distribution("laplace", scale).variance)


def test_table_has_the_shape_of_the_clique() -> None:
    measurement = Measurement("a × b", ("a", "b"), (2, 3), np.arange(6), Distribution("laplace", Fraction(1)))
    assert measurement.table[1, 0] == 3
