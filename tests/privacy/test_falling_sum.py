"""Sums with falling steps: the two facts every proof rests on, whatever function they approximate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.privacy.dependence import FallingSum

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
