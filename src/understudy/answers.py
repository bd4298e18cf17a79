"""Answers and transcript: what may leave the curator, as plain frozen values.

Answers: what may leave the door. Plain frozen values, integers where the data are integers.

Transcript: the answers of one run, in order. It is all that leaves the curator.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeVar

import numpy as np

from understudy.arrays import Bools, Floats, Ints

SCORE_UNIT = 2**20
"""Scores are integers in units of 2⁻²⁰, so that their sensitivity holds exactly and not up to rounding."""

GROWTH_UNIT = 2**10
"""Counts that decide how a tree grows are compared on a grid of 2⁻¹⁰ rows, so that its biases can be integers."""


@dataclass(frozen=True, slots=True)
class Distribution:
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
    distribution: Distribution

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
    distribution: Distribution
    threshold: int


@dataclass(frozen=True, slots=True)
class Selection:
    """One option chosen by the exponential mechanism among `options` public candidates.

    Between neighbours no score moves by more than `sensitivity` (in score units, for a whole unit); `monotone` says
    that all move in the same direction. Cost and rate follow from these.
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
    distribution: Distribution
    threshold: int


@dataclass(frozen=True, slots=True)
class Selections:
    """One option per cell of a partition, each chosen by the exponential mechanism among `options` candidates.

    Between neighbours the scores of a cell move by at most `sensitivity` times the share of the unit's rows that lie
    in that cell; cost and rate follow as for a single choice.
    """

    name: str
    options: int
    chosen: Ints
    rate: Fraction
    sensitivity: Fraction
    monotone: bool = False


@dataclass(frozen=True, slots=True)
class NoisyScores:
    """Every score of a quality with integer noise, in units of 1/`SCORE_UNIT`.

    Between neighbours no score moves by more than `sensitivity` (in the same units, for a whole unit).
    """

    name: str
    values: Ints
    distribution: Distribution
    sensitivity: Fraction

    @property
    def scores(self) -> Floats:
        """The noisy scores as plain numbers."""
        return self.values / SCORE_UNIT


@dataclass(frozen=True, slots=True)
class Grown:
    """Which nodes of a tree were split, layer by layer: 1 for a split, 0 for a leaf, in the order of the open nodes.

    `distribution` and `bias` are in units of 1/`GROWTH_UNIT` rows; they follow from the cost and from `decay`.
    """

    name: str
    layers: tuple[int, ...]
    """How many nodes were open in each layer; their sum is the number of values."""
    values: Ints
    distribution: Distribution
    bias: int
    theta: int
    decay: Fraction

    @property
    def splits(self) -> list[Bools]:
        """The decisions of each layer."""
        ends = np.cumsum(self.layers, dtype=np.int64)
        return [part.astype(np.bool_) for part in np.split(self.values, ends[:-1])] if self.layers else []


@dataclass(frozen=True, slots=True)
class Course:
    """The public numbers of a training, fixed by the plan.

    Every unit's contribution is an integer vector of L2 norm at most `clip`. In each of `steps` steps every unit takes
    part on its own with probability 1 − e^(−1/gap). A first look at all units (none if `first_share` is 0) has the
    noise that would cost that share of ε by itself.
    """

    clip: int
    steps: int
    gap: Fraction
    first_share: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class Trained:
    """A model was trained on noisy sums over sampled units, `distribution` on every coordinate of each.

    `values` is the noisy sum of the first look, under `first_law`. The sums of the steps are not kept: whatever they
    told is in the model.
    """

    name: str
    course: Course
    values: Ints
    first_distribution: Distribution | None
    distribution: Distribution


Answer = Measurement | SparseMeasurement | Selection | Discovery | Selections | NoisyScores | Grown | Trained

Kind = TypeVar("Kind", Measurement, SparseMeasurement, Selection, Discovery, Selections, NoisyScores, Grown, Trained)


@dataclass(slots=True)
class Transcript:
    """Answers in the order they were given. Only the curator appends; everyone else reads."""

    answers: list[Answer] = field(default_factory=list)

    def append(self, answer: Answer) -> None:
        """Adds an answer at the end."""
        self.answers.append(answer)

    def of(self, kind: type[Kind]) -> list[Kind]:
        """The answers of one kind, in order."""
        return [answer for answer in self.answers if isinstance(answer, kind)]

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)
