"""Cliques, domains, structural zeros, partitions and answers: the small language every package speaks.

Clique: a set of columns with one spelling.

Domain: how many codes each column has. Exact Python integers, so products never overflow.

StructuralZeros: cells that a public rule excludes.

Partition: a public rule that puts each record in exactly one cell.

Answers: what may leave the curator, as frozen values, integers where the data are integers. The transcript holds the
answers of one run, in order: it is all that leaves the curator.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Literal, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from understudy.arrays import Bools, Floats, Integers, Ints
from understudy.errors import UsageError, nearest


class Clique(tuple[str, ...]):
    """A set of columns in schema order, so that a pair has one spelling.

    Build it with `Clique.of(columns, order)` or through `Domain.clique`; the empty clique is the total.
    """

    __slots__ = ()

    @classmethod
    def of(cls, columns: Iterable[str], order: Sequence[str]) -> Self:
        """The clique of these columns, sorted as in `order`; unknown columns raise.

        >>> Clique.of(["b", "a"], ["a", "b", "c"])
        Clique('a', 'b')
        """
        wanted = set(columns)
        for name in sorted(wanted - set(order)):
            raise UsageError(f"column {name!r}", "is not a modelled column of the schema.", nearest(name, order))
        return cls(name for name in order if name in wanted)

    def contains(self, other: Iterable[str]) -> bool:
        """Whether every column of `other` is in this clique."""
        return set(other) <= set(self)

    def __repr__(self) -> str:
        return f"Clique({', '.join(map(repr, self))})"


@dataclass(frozen=True, slots=True)
class Domain:
    """Column name → number of codes, in schema order.

    >>> domain = Domain.of({"sex": 2, "age": 5})
    >>> domain.cells(domain.clique(["age", "sex"]))
    10
    """

    sizes: Mapping[str, int]

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> "Domain":
        """A domain from any mapping; every size must be a positive integer."""
        for name, size in sizes.items():
            if not isinstance(size, int) or size < 1:
                raise UsageError(f"domain: column {name!r}", f"needs at least one code, got {size!r}.")
        return cls(MappingProxyType(dict(sizes)))

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names in schema order."""
        return tuple(self.sizes)

    def clique(self, columns: Iterable[str]) -> Clique:
        """The clique of these columns, spelled in schema order."""
        return Clique.of(columns, self.columns)

    def everything(self) -> Clique:
        """The clique of all columns."""
        return Clique(self.columns)

    def shape(self, clique: Iterable[str]) -> tuple[int, ...]:
        """Codes per column of the clique."""
        return tuple(self.sizes[name] for name in clique)

    def cells(self, clique: Iterable[str]) -> int:
        """Number of cells of the clique's table, exact (1 for the empty clique)."""
        return math.prod(self.shape(clique))


@dataclass(frozen=True, slots=True)
class StructuralZeros:
    """Cells of a small table in which no record can be: `mask[cell]` is True there (flat row-major)."""

    clique: Clique
    mask: Bools


@runtime_checkable
class Partition(Protocol):
    """A public rule over codes: the leaves of a tree, a coarsening, a group of columns.

    The rule must be fixed before the counts are read (or depend on earlier answers only) and must look at one record
    at a time. Then one record moves one cell by one, so a partition costs what a clique costs.
    """

    @property
    def name(self) -> str:
        """What the transcript calls it; unique within a run."""
        ...

    @property
    def columns(self) -> Clique:
        """The columns the rule looks at."""
        ...

    @property
    def cells(self) -> int:
        """Number of cells."""
        ...

    def assign(self, codes: Mapping[str, Integers]) -> Ints:
        """The cell of each record, in [0, cells), given the codes of `columns` (arrays of equal length)."""
        ...


SCORE_UNIT = 2**20
"""Scores are integers in units of 2⁻²⁰, so that their sensitivity holds exactly and not up to rounding."""

GROWTH_UNIT = 2**10
"""Counts that decide how a tree grows are compared on a grid of 2⁻¹⁰ rows, so that its biases can be integers."""

ROUNDED_GRID = 63
"""Counts of a run accounted as Gaussian have noise on a grid of 1/63 rows and are then rounded; odd: without ties."""

RESIDUAL_UNIT = 2**6
"""Residual tables have noise on a grid of 2⁻⁶ rows, so that row and column means can be taken off in integers."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """The integer noise that was added to every cell.

    `laplace`: P(k) ∝ exp(−|k|/scale). `gaussian`: P(k) ∝ exp(−k²/(2·scale²)), where `parameter` holds the exact
    scale² (the scale itself may be irrational); for `laplace` it holds the exact scale. With a `grid` above 1 the k of
    Gaussian noise are multiples of 1/grid, and the sum of count and noise is rounded to the next whole number.
    """

    kind: Literal["laplace", "gaussian"]
    parameter: Fraction
    grid: int = 1

    def __post_init__(self) -> None:
        if self.grid < 1 or self.grid % 2 == 0 or (self.grid > 1 and self.kind != "gaussian"):
            raise UsageError("noise", "is rounded from an odd number of steps a whole, and only if it is Gaussian.")

    @property
    def scale(self) -> float:
        """Scale of the noise: b for `laplace`, σ for `gaussian`."""
        value = float(self.parameter)
        return value if self.kind == "laplace" else value**0.5

    @property
    def variance(self) -> float:
        """Variance of one draw with its rounding (for `gaussian` the upper bound, exact to 6 digits once σ ≥ 1)."""
        if self.kind == "gaussian":
            return float(self.parameter) + (1.0 - 1.0 / self.grid**2) / 12.0
        rate = 1.0 / float(self.parameter)  # 2q/(1−q)² with q = e^−rate, written so that it cannot overflow
        return float(2.0 * np.exp(-rate) / np.expm1(-rate) ** 2)

    @property
    def excess_kurtosis(self) -> float:
        """How much heavier the tails of one draw are than those of the normal distribution; 0 for `gaussian`."""
        if self.kind == "gaussian":
            return 0.0
        decay = float(np.exp(-1.0 / float(self.parameter)))  # the difference of two geometric numbers
        return 0.0 if decay == 0.0 else (1 + 4 * decay + decay**2) / (2 * decay)


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
class HeldBack:
    """Noisy counts of every cell of a clique that no method ever saw: the check of the finished rows is made of them.

    A type of its own, so that nothing that fits, draws or averages measurements takes it for one of them.
    """

    name: str
    columns: tuple[str, ...]
    shape: tuple[int, ...]
    values: Ints
    distribution: Distribution


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
class ResidualTable:
    """What a table of one or two columns says beyond the means of its rows and columns.

    `values` are the contrasts T_ij = Y_ij − Y_i0 − Y_0j + Y_00 of noisy counts Y for i, j ≥ 1, row-major, in units of
    1/`RESIDUAL_UNIT` rows (T_i = Y_i − Y_0 for one column). They fix the residuals of Y and nothing else of it.
    """

    name: str
    columns: tuple[str, ...]
    shape: tuple[int, ...]
    """Codes of the columns as they were counted, which may be merged ones."""
    values: Ints
    distribution: Distribution
    """Distribution of the noise in Y, not in the contrasts."""

    @classmethod
    def of_counts(cls, answer: "Measurement", columns: tuple[str, ...], shape: tuple[int, ...]) -> "ResidualTable":
        """The residuals of the table of two columns, of these numbers of codes, that was measured as it is."""
        table = answer.values.reshape(shape)
        contrasts = table[1:, 1:] - table[1:, :1] - table[:1, 1:] + table[0, 0]
        noise = Distribution(answer.distribution.kind, answer.distribution.parameter * RESIDUAL_UNIT)
        return cls(answer.name, columns, shape, contrasts.ravel() * RESIDUAL_UNIT, noise)

    @property
    def residuals(self) -> Floats:
        """The noisy counts in rows, less the means of rows and columns; they add up to 0 along every axis.

        Their noise is that of `variance` on every cell, with the same means taken off.
        """
        found = np.zeros(self.shape)
        found[(slice(1, None),) * len(self.shape)] = self.values.reshape([size - 1 for size in self.shape])
        return centred(found) / RESIDUAL_UNIT

    @property
    def variance(self) -> float:
        """Variance of the noise of a cell, in rows, before means are taken off."""
        return self.distribution.variance / RESIDUAL_UNIT**2


def centred(table: Floats) -> Floats:
    """A table less its means along every axis.

    >>> centred(np.array([[4.0, 2.0], [0.0, 2.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


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


Answer = (
    Measurement
    | HeldBack
    | SparseMeasurement
    | ResidualTable
    | Selection
    | Discovery
    | Selections
    | NoisyScores
    | Grown
    | Trained
)

Kind = TypeVar(
    "Kind",
    Measurement,
    HeldBack,
    SparseMeasurement,
    ResidualTable,
    Selection,
    Discovery,
    Selections,
    NoisyScores,
    Grown,
    Trained,
)


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
