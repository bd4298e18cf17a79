"""LeafSize: how many records a branch should have before it is split, so that its noisy shares are good enough.

The smallest n whose interval (see `leaf_interval`) is no wider than asked for. λ follows from a budget: an ensemble of
T trees for each of c private columns shares ε equally, and one record moves a leaf table by Δ = 1 when it is added or
removed, by Δ = 2 when its label changes, so λ = ε/(Δ·T·c). Public: no record is involved, nothing is charged.

Widths fall with n up to ripples, because n·p₀ is rounded. The search doubles and halves n, then walks down as long as
one of the 32 sizes below is narrow enough too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from understudy.errors import UsageError
from understudy.mechanisms.labels.leaf_interval import (
    MOST_RECORDS,
    LeafInterval,
    check_leaf,
    leaf_interval,
)
from understudy.mechanisms.options.checks import check_choice, check_share, check_whole

__all__ = ["LeafSize", "Relation", "leaf_rate", "leaf_size"]

Relation = Literal["add_remove", "label_change"]
_RIPPLE = 32


@dataclass(frozen=True, slots=True)
class LeafSize:
    """The answer: records a branch needs, the λ it was computed for, and the interval at that size."""

    records: int
    rate: float
    interval: LeafInterval


def leaf_rate(epsilon: float, *, trees: int = 5, columns: int = 1, relation: Relation = "add_remove") -> float:
    """λ of every leaf table when ε is shared by `trees` trees for each of `columns` private columns.

    >>> leaf_rate(1.0, trees=5, columns=2)
    0.1
    >>> leaf_rate(2.0, trees=5, columns=2, relation="label_change")
    0.1
    """
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0.0 < epsilon <= 1e6:
        raise UsageError("epsilon", f"must be a number above 0 and at most 1,000,000, got {epsilon!r}.")
    for name, value in (("trees", trees), ("columns", columns)):
        check_whole(name, value, 1, 1000)
    check_choice("relation", relation, get_args(Relation))
    distance = 2 if relation == "label_change" else 1
    return epsilon / (distance * trees * columns)


def leaf_size(
    width: float,
    *,
    share: float = 0.5,
    rate: float | None = None,
    epsilon: float | None = None,
    trees: int = 5,
    columns: int = 1,
    relation: Relation = "add_remove",
    confidence: float = 0.9,
) -> LeafSize:
    """The smallest number of records at which a label's share is known within `width`.

    Args:
        width: most that the ends of the interval may differ.
        share: the label's true share in the leaf; one half is the worst case.
        rate: λ, one over the scale of the noise on a count; or give `epsilon`.
        epsilon, trees, columns, relation: the budget of all trees together, from which λ follows.
        confidence: probability of the interval.

    Raises:
        UsageError: for numbers out of range, or if ten million records would not do.
    """
    if (rate is None) == (epsilon is None):
        raise UsageError("rate or epsilon", "is needed, and only one of them.", "Give epsilon, for example 1.")
    if epsilon is not None:
        rate = leaf_rate(epsilon, trees=trees, columns=columns, relation=relation)
    assert rate is not None
    check_leaf(share, rate)
    check_share("width", width)
    records = _smallest(lambda count: leaf_interval(share, rate, count, confidence=confidence).width <= width)
    if records is None:
        rule = f"is not reached with {MOST_RECORDS:,} records at λ = {rate:.6g}."
        raise UsageError(f"width {width!r}", rule, "Allow a wider interval or a larger ε.")
    return LeafSize(records, rate, leaf_interval(share, rate, records, confidence=confidence))


def _smallest(narrow: Callable[[int], bool]) -> int | None:
    """The smallest number of records that is enough, up to longer ripples; None if none is."""
    high = 1
    while not narrow(high):
        if high >= MOST_RECORDS:
            return None
        high = min(2 * high, MOST_RECORDS)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if narrow(middle) else (middle, high)
    smaller: int | None = high
    while smaller is not None:
        high = smaller
        smaller = next((records for records in range(max(1, high - _RIPPLE), high) if narrow(records)), None)
    return high
