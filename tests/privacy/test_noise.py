"""Noise vectors: shapes, limits, how numbers are put together from digits, and refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest

from understudy.errors import UsageError
from understudy.privacy import noise
from understudy.privacy.noise import LARGEST, discrete_gaussian, discrete_laplace, geometric, rare_positions


@pytest.mark.parametrize("size", [0, 1, 17, 70_000])
@pytest.mark.parametrize("parameter", [Fraction(1, 10**6), Fraction(3), Fraction(5000)])
def test_vectors_are_integers_of_the_asked_size(size: int, parameter: Fraction) -> None:
    for draw in (discrete_gaussian, discrete_laplace, geometric):
        values = draw(size, parameter)
        assert values.dtype == np.int64
        assert values.shape == (size,)
        assert values.flags.writeable


def test_tiny_scales_give_zeros() -> None:
    assert not discrete_laplace(1000, Fraction(1, 10**6)).any()
    assert not discrete_gaussian(1000, Fraction(1, 10**6)).any()
    assert not discrete_gaussian(1000, Fraction(1, 10**40)).any()


@pytest.mark.parametrize("bad", [Fraction(0), Fraction(-1), Fraction(2**101)])
def test_scales_out_of_range_are_refused(bad: Fraction) -> None:
    for draw in (discrete_gaussian, discrete_laplace, geometric):
        with pytest.raises(UsageError, match="above 0 and at most"):
            draw(3, bad)
    with pytest.raises(UsageError):
        rare_positions(10, bad, 1)


@pytest.mark.parametrize(("limit", "threshold"), [(-1, 1), (2**62, 1), (10, 0)])
def test_rare_positions_refuse_what_they_cannot_count(limit: int, threshold: int) -> None:
    with pytest.raises(UsageError, match="sparse noise"):
        rare_positions(limit, Fraction(1), threshold)


@pytest.mark.parametrize("power", [8, 20, 40, 60])
def test_moments_at_any_scale(power: int) -> None:
    """Means of |X| and of the sign, and the share below the median, against the exponential distribution; 6
    deviations."""
    size, scale = 100_000, 2**power
    values = discrete_laplace(size, Fraction(scale)).astype(np.float64)
    assert abs(np.sign(values).mean()) < 6 / math.sqrt(size)
    assert abs((np.abs(values) < scale * math.log(2)).mean() - 0.5) < 6 * 0.5 / math.sqrt(size) + 2 / scale
    cut = np.minimum(np.abs(values), 3 * scale)
    mean, deviation = scale * (1 - math.exp(-3)), scale
    assert abs(cut.mean() - mean) < 6 * deviation / math.sqrt(size) + 2


def test_the_largest_scale_is_cut_and_never_wraps() -> None:
    values = discrete_laplace(20_000, Fraction(2**60))
    assert values.max() == LARGEST
    assert values.min() == -LARGEST
    assert abs((np.abs(values) == LARGEST).mean() - math.exp(-4)) < 6 * math.sqrt(math.exp(-4) / 20_000)


def test_low_digits_of_large_noise_are_uniform_and_independent() -> None:
    """At scale 2⁴⁰ the lowest and the second digit are as good as uniform; so is their combination."""
    values = np.abs(discrete_laplace(200_000, Fraction(2**40)))
    for shift in (0, 6, 12, 18):
        counts = np.bincount((values >> shift) & 63, minlength=64)
        assert np.all(np.abs(counts - 3125) < 6 * math.sqrt(3125))
    mixed = np.bincount(((values >> 9) & 7) * 8 + ((values >> 12) & 7), minlength=64)
    assert np.all(np.abs(mixed - 3125) < 6 * math.sqrt(3125))


def test_minus_zero_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """With sign and magnitude drawn apart, zero would come up twice as often if minus zero were kept."""
    monkeypatch.setattr(noise, "_SINGLE_TABLE_SCALE", Fraction(1, 2))
    values = discrete_laplace(400_000, Fraction(1))
    ratio = math.exp(-1)
    expected = (1 - ratio) / (1 + ratio)
    assert abs((values == 0).mean() - expected) < 6 * math.sqrt(expected / 400_000)
    assert abs((values == -1).mean() - expected * ratio) < 6 * math.sqrt(expected / 400_000)


def test_rare_positions_increase_and_lie_inside() -> None:
    for limit, scale, threshold in ((0, 1, 1), (1, 1, 1), (1000, 3, 2), (10**6, 2, 12), (10**15, 2, 52)):
        positions = rare_positions(limit, Fraction(scale), threshold)
        assert positions.dtype == np.int64
        assert np.all(np.diff(positions) > 0)
        assert positions.size == 0 or (positions[0] >= 0 and positions[-1] < limit)


def test_thresholds_out_of_reach_are_cheap() -> None:
    """p = e^−50,000: the tables of the lower digits would need a hundred thousand bits and are never built."""
    assert rare_positions(2**61, Fraction(1, 1000), 50).size == 0
