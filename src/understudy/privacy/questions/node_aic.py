"""AIC of one-column models inside a node: which column should split a node, how to group columns, when to stop.

The table of one column inside a node has counts n_1 … n_K, N in all. The log-linear model with that column as its only
factor fits this table as it is, so its multinomial log-likelihood is log N! − Σ log n_k! + Σ n_k log(n_k/N), and

    AIC = −2 logL + 2K = 2 (K + Σ H(n_k) − H(N)),   H(x) = log x! − x log x + x = Σ_{i ≤ x} h(i),
    h(i) = 1 − (i − 1) log(i/(i − 1)),   h(1) = 1.

K is the number of codes the column has by its schema, occupied or not. (With the number of *occupied* codes AIC can
move by 4: the last row of a code takes 2 with it and the likelihood moves by up to 2 more.)

Sensitivity of AIC. h falls from h(1) = 1 towards 0. One row added to a code that held a − 1 of N − 1 rows moves AIC by
2 (h(a) − h(N)), and 1 ≤ a ≤ N, so AIC rises by something from 0 to 2. In whole numbers: H is a `FallingSum` in units of
1/AIC_UNIT, so h(1) = AIC_UNIT, 0 ≤ h(N) ≤ h(a) ≤ AIC_UNIT hold exactly, and AIC moves by 0 to 2 · AIC_UNIT with nothing
lost to rounding. Every column's AIC moves in the same direction.

`NodeAic`      score −AIC of each column. Sensitivity 2; adding a row never raises a score: monotone, so that the draw
               may use the rate ε/2 instead of the published ε/4 (`published=True`: as if it were not monotone).
`GroupedAic`   score of an ordered split of all columns into layers: mean AIC of the last minus mean AIC of the first. A
               mean, rounded down, of numbers that each rise by 0 to 2 rises by 0 to 2 (rounding down keeps whole
               distances); a difference of two such means moves by at most 2, in either direction: not monotone.
`AicRange`     t = max AIC − (1 + τ) min AIC over a node's columns. The maximum and the minimum rise by 0 to 2 each
               when a row is added, so t moves by at most 2 (1 + τ). "go on" scores t/2 and "stop" −t/2: each moves by
               at most 1 + τ, in opposite directions. A draw then stops with odds e^(−ε t/(2 (1 + τ))). τ is a whole
               number of thousandths and scores are 1000-fold, so that (1 + τ) is a whole number as well. AIC is cut
               at about 195,000 first, so that no product can wrap; cutting takes no two numbers further apart.

One unit's k rows add up to k times these bounds.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt

from understudy.counts.source import Ints
from understudy.errors import UsageError
from understudy.marginals.clique import Clique
from understudy.privacy.quality import SCORE_UNIT
from understudy.privacy.questions.falling_sum import FallingSum, Floats

__all__ = [
    "AIC_UNIT",
    "GO_ON",
    "MOST_SPLITS",
    "STOP",
    "AicRange",
    "GroupedAic",
    "NodeAic",
    "Split",
    "node_aic",
    "ordered_splits",
    "split_count",
]

Allowed = npt.NDArray[np.bool_]
Split = tuple[tuple[str, ...], ...]
"""Groups of columns, first layer first."""

AIC_UNIT = SCORE_UNIT * 2**10
"""AIC is kept in units of 2⁻³⁰: the steps of H stay above 0 for tables of up to half a billion rows."""
GO_ON, STOP = "go on", "stop"
MOST_SPLITS = 2**16
_THOUSAND = 1000
_LARGEST_HALF = 2**60 // (11 * _THOUSAND)


def node_aic(counts: Ints) -> Ints:
    """AIC of the one-column model in units of 1/AIC_UNIT; counts run along the last axis.

    >>> (node_aic(np.array([[97, 3], [60, 40], [0, 0]])) / AIC_UNIT).round(3).tolist()
    [6.961, 9.021, 4.0]
    """
    height = _height()
    levels = counts.shape[-1]
    return np.asarray(2 * (levels * AIC_UNIT + height(counts).sum(axis=-1) - height(counts.sum(axis=-1))))


@dataclass(frozen=True, slots=True, eq=False)
class NodeAic:
    """Which column splits each node: −AIC of every column inside it."""

    name: str
    options: Sequence[str]
    allowed: Allowed
    published: bool = False

    @property
    def columns(self) -> Sequence[str]:
        """The columns among which is chosen."""
        return self.options

    @property
    def sensitivity(self) -> Fraction:
        """2, in units of 1/AIC_UNIT; see the module's proof."""
        return Fraction(2 * AIC_UNIT)

    @property
    def monotone(self) -> bool:
        """Yes (a row never lowers an AIC), unless the published rate is wanted."""
        return not self.published

    def scores(self, exact: Mapping[str, Ints]) -> Ints:
        """−AIC of each column (second axis) in each node (first axis)."""
        return -_every_aic(exact, self.options)


@dataclass(frozen=True, slots=True, eq=False)
class AicRange:
    """Whether a node is worth splitting: whether its columns' AIC differ by more than the share τ of the smallest.

    `compared` (nodes × columns) says which columns count in each node; `tolerance` is τ in thousandths.
    """

    name: str
    columns: Sequence[str]
    compared: Allowed
    allowed: Allowed
    tolerance: int = 100

    def __post_init__(self) -> None:
        if type(self.tolerance) is not int or not 0 <= self.tolerance <= 10 * _THOUSAND:
            raise UsageError(f"select {self.name}", "the tolerance must be a whole number of thousandths up to 10,000.")
        if not self.compared.any(axis=1).all():
            raise UsageError(f"select {self.name}", "needs at least one column in every node.")

    @property
    def options(self) -> Sequence[str]:
        """Go on, or stop."""
        return (GO_ON, STOP)

    @property
    def sensitivity(self) -> Fraction:
        """1 + τ, a thousandfold and in units of 1/AIC_UNIT; see the module's proof."""
        return Fraction((_THOUSAND + self.tolerance) * AIC_UNIT)

    @property
    def monotone(self) -> bool:
        """No: one score rises where the other falls."""
        return False

    def scores(self, exact: Mapping[str, Ints]) -> Ints:
        """t/2 and −t/2 of each node. AIC is even in its units, so halves are whole."""
        every = np.minimum(_every_aic(exact, self.columns) // 2, _LARGEST_HALF)
        largest = np.where(self.compared, every, np.iinfo(np.int64).min).max(axis=1)
        smallest = np.where(self.compared, every, np.iinfo(np.int64).max).min(axis=1)
        half = _THOUSAND * largest - (_THOUSAND + self.tolerance) * smallest
        return np.stack([half, -half], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class GroupedAic:
    """Which columns form which layer of the whole table: mean AIC of the last group minus that of the first."""

    name: str
    options: Sequence[Split]
    _columns: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.options:
            raise UsageError(f"select {self.name}", "needs at least one split.")
        object.__setattr__(self, "_columns", tuple(sorted(name for group in self.options[0] for name in group)))

    @property
    def cliques(self) -> Sequence[Clique]:
        """Every column's own table."""
        return [Clique((name,)) for name in self._columns]

    @property
    def sensitivity(self) -> Fraction:
        """2, in units of 1/AIC_UNIT; see the module's proof."""
        return Fraction(2 * AIC_UNIT)

    @property
    def monotone(self) -> bool:
        """No: a row may move the last group's mean more than the first one's, or less."""
        return False

    def scores(self, exact: Mapping[Clique, Ints]) -> Ints:
        """One integer per split."""
        every = np.array([int(node_aic(exact[Clique((name,))])) for name in self._columns], dtype=np.int64)
        last = _floored_means([split[-1] for split in self.options], self._columns, every)
        return last - _floored_means([split[0] for split in self.options], self._columns, every)


def split_count(columns: int, layers: int) -> int:
    """How many ordered splits there are: ways to put each column in a layer so that no layer stays empty.

    >>> split_count(5, 2), split_count(5, 3)
    (30, 150)
    """
    terms = [
        (-1) ** left_out * _choose(layers, left_out) * (layers - left_out) ** columns for left_out in range(layers)
    ]
    return sum(terms)


def ordered_splits(columns: Sequence[str], layers: int) -> list[Split]:
    """Every way to put the columns in that many layers, none empty; the order of the layers counts.

    >>> ordered_splits(["a", "b"], 2)
    [(('a',), ('b',)), (('b',), ('a',))]
    """
    found = []
    for places in itertools.product(range(layers), repeat=len(columns)):
        if len(set(places)) == layers:
            groups: list[list[str]] = [[] for _ in range(layers)]
            for name, place in zip(columns, places, strict=True):
                groups[place].append(name)
            found.append(tuple(tuple(group) for group in groups))
    return found


def _choose(whole: int, part: int) -> int:
    found = 1
    for place in range(part):
        found = found * (whole - place) // (place + 1)
    return found


def _every_aic(exact: Mapping[str, Ints], columns: Sequence[str]) -> Ints:
    return np.stack([node_aic(exact[name]) for name in columns], axis=1)


def _floored_means(groups: Sequence[tuple[str, ...]], columns: Sequence[str], every: Ints) -> Ints:
    place = {name: position for position, name in enumerate(columns)}
    members = np.zeros((len(groups), len(columns)), dtype=np.int64)
    for row, group in enumerate(groups):
        members[row, [place[name] for name in group]] = 1
    return np.asarray((members @ every) // members.sum(axis=1))


@cache
def _height() -> FallingSum:
    """H, built once."""

    def step(places: Floats) -> Floats:
        before = np.maximum(places - 1.0, 1.0)
        return np.where(places < 2.0, 1.0, 1.0 + before * np.log1p(-1.0 / np.maximum(places, 2.0)))

    def total(places: Floats) -> Floats:
        return np.asarray(0.5 * np.log(2.0 * np.pi * places) + 1.0 / (12.0 * places))

    return FallingSum.of(step, total, AIC_UNIT)
