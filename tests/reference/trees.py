"""What growing a tree by noisy counts reveals: the worst log-ratio over paths of counts, enumerated."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from tests.reference.noise import exponential, laplace_tail


def split_chance(scale: Fraction, biased: int, threshold: int) -> Decimal:
    """P(biased + noise > threshold) for discrete Laplace noise."""
    needed = threshold - biased + 1
    if needed >= 1:
        return laplace_tail(scale, needed)
    return 1 - laplace_tail(scale, 1 - needed)


def worst_loss(scale: Fraction, bias: int, theta: int, unit: int, paths: Sequence[Sequence[int]]) -> Decimal:
    """The largest |log ratio| of any outcome on any path of counts, each of its counts one row higher in one table.

    An outcome is how deep the path's nodes are split: every node above is split, the next one is not, or, at the end of
    the path, was not asked.
    """
    worst, logs = Decimal(0), _Logs(scale, bias, theta, unit)
    for path in paths:
        total = Decimal(0)
        for depth, count in enumerate(path):
            stopped = total + logs.refused(count + 1, depth) - logs.refused(count, depth)
            worst = max(worst, abs(stopped))
            total += logs.split(count + 1, depth) - logs.split(count, depth)
            worst = max(worst, abs(total))
    return worst


class _Logs:
    def __init__(self, scale: Fraction, bias: int, theta: int, unit: int) -> None:
        self._scale, self._bias, self._theta, self._unit = scale, bias, theta, unit
        self._known: dict[int, tuple[Decimal, Decimal]] = {}

    def split(self, count: int, depth: int) -> Decimal:
        return self._of(count, depth)[0]

    def refused(self, count: int, depth: int) -> Decimal:
        return self._of(count, depth)[1]

    def _of(self, count: int, depth: int) -> tuple[Decimal, Decimal]:
        biased = max(self._unit * self._theta - self._bias, self._unit * count - depth * self._bias)
        if biased not in self._known:
            chance = split_chance(self._scale, biased, self._unit * self._theta)
            self._known[biased] = (chance.ln(), (1 - chance).ln())
        return self._known[biased]


def private_scale(epsilon: Fraction, decay: Fraction) -> Fraction:
    """λ = (2β − 1)/((β − 1)·ε) of PrivTree."""
    return (2 * decay - 1) / ((decay - 1) * epsilon)


def least_bias(scale: Fraction, decay: Fraction, unit: int) -> int:
    """The smallest whole number D ≥ unit with e^(−D/scale) ≤ 1/β."""
    low, high = 0, unit
    while exponential(-Fraction(high) / scale) * decay.numerator > decay.denominator:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        holds = exponential(-Fraction(middle) / scale) * decay.numerator <= decay.denominator
        low, high = (low, middle) if holds else (middle, high)
    return max(high, unit)
