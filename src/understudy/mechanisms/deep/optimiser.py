"""Adam: steps whose size adapts to the gradients seen so far (Kingma and Ba 2015); RMSProp where momentum is 0."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from understudy.mechanisms.deep.state import Arrays, array_of, filed, floats_of, listed
from understudy.privacy.training.checkpoint import State

__all__ = ["Adam"]

Floats = npt.NDArray[np.float64]


class Adam:
    """Running means of gradients and of their squares; remembers as many arrays as it is given."""

    def __init__(self, rate: float, momentum: float = 0.5, memory: float = 0.99) -> None:
        self._rate, self._momentum, self._memory = rate, momentum, memory
        self._first: list[Floats] = []
        self._second: list[Floats] = []
        self._count = 0

    def steps(self, gradients: Sequence[Floats]) -> list[Floats]:
        """What to add to each array to go uphill."""
        if not self._first:
            self._first = [np.zeros_like(part) for part in gradients]
            self._second = [np.zeros_like(part) for part in gradients]
        self._count += 1
        out = []
        for first, second, gradient in zip(self._first, self._second, gradients, strict=True):
            first += (1 - self._momentum) * (gradient - first)
            second += (1 - self._memory) * (gradient**2 - second)
            mean = first / (1 - self._momentum**self._count)
            spread = np.sqrt(second / (1 - self._memory**self._count))
            out.append(self._rate * mean / (spread + 1e-12))
        return out

    def state(self) -> Arrays:
        """The running means and the number of steps so far."""
        means = filed("first", listed(self._first)) | filed("second", listed(self._second))
        return {**means, "count": np.array(self._count)}

    def restore(self, state: State) -> None:
        """Goes on from a state."""
        self._first, self._second = floats_of(state, "first"), floats_of(state, "second")
        self._count = int(array_of(state, "count"))
