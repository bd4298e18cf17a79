"""A planted fault: the secure randomizer draws noise of half the scale that was asked for and charged."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from unittest import mock

from understudy.arrays import Ints
from understudy.domain import Distribution
from understudy.privacy import randomizer

_NOISY: Callable[[Distribution, Ints], Ints] = randomizer._noisy


def smaller_noise(factor: int = 2) -> AbstractContextManager[object]:
    """Noise of 1/`factor` of its scale, wherever integer noise is added; requests, costs and claims stay."""

    def drawn(distribution: Distribution, exact: Ints) -> Ints:
        divisor = factor if distribution.kind == "laplace" else factor**2
        return _NOISY(replace(distribution, parameter=distribution.parameter / divisor), exact)

    return mock.patch.object(randomizer, "_noisy", drawn)
