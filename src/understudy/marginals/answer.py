"""Answers: what may leave the door. Plain frozen values, integers where the data are integers."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["Answer", "Discovery", "Law", "Measurement", "Selection", "SparseMeasurement"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Law:
    """The integer noise that was added to every cell.

    `laplace`: P(k) ∝ exp(−|k|/scale). `gaussian`: P(k) ∝ exp(−k²/(2·scale²)), where `parameter` holds the exact
    scale² (the scale itself may be irrational); for `laplace` it holds the exact scale.
    """

    kind: Literal["laplace", "gaussian"]
    parameter: Fraction

    @property
    def scale(self) -> float:
        """Scale of the noise: b for `laplace`, σ for `gaussian`."""
        value = float(self.parameter)
        return value if self.kind == "laplace" else value**0.5

    @property
    def variance(self) -> float:
        """Variance of one draw (for `gaussian` the upper bound σ², exact to 6 digits once σ ≥ 1)."""
        if self.kind == "gaussian":
            return float(self.parameter)
        rate = 1.0 / float(self.parameter)  # 2q/(1−q)² with q = e^−rate, written so that it cannot overflow
        return float(2.0 * np.exp(-rate) / np.expm1(-rate) ** 2)


@dataclass(frozen=True, slots=True)
class Measurement:
    """Noisy counts of every cell of a clique or partition, row-major, possibly negative."""

    name: str
    columns: tuple[str, ...]
    shape: tuple[int, ...]
    values: Ints
    law: Law

    @property
    def table(self) -> Ints:
        """The values in the shape of the clique."""
        return self.values.reshape(self.shape)


@dataclass(frozen=True, slots=True)
class SparseMeasurement:
    """As if every one of `cells` cells had been measured and only noisy counts ≥ `threshold` were kept.

    `indices` are flat row-major cell numbers in increasing order, `values` their noisy counts.
    """

    name: str
    columns: tuple[str, ...]
    shape: tuple[int, ...]
    indices: Ints
    values: Ints
    law: Law
    threshold: int


@dataclass(frozen=True, slots=True)
class Selection:
    """One option chosen by the exponential mechanism among `options` public candidates.

    Between neighbours no score moves by more than `sensitivity` (in score units, for a whole unit); `monotone` says
    that all move in the same direction. Price and rate follow from these.
    """

    name: str
    options: int
    chosen: int
    rate: Fraction
    sensitivity: Fraction = Fraction(1)
    monotone: bool = False


@dataclass(frozen=True, slots=True)
class Discovery:
    """Labels of an open column whose noisy count reached the threshold, in code point order."""

    name: str
    column: str
    labels: tuple[str, ...]
    values: Ints
    law: Law
    threshold: int


Answer = Measurement | SparseMeasurement | Selection | Discovery
