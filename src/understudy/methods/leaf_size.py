"""LeafSize: how many records a branch should have before it is split, so that its noisy shares are good enough.

Source: Duke University Synthetic Data Project, "Differentially private synthetic attribute generation using variable
depth random decision trees" (2018), section 5 and Figures 1 and 2.

All of it is public: no record is involved, nothing is charged. The figure of the intervals is one SVG file that loads
nothing; its texts are numbers.

How far a synthetic share can be from the true one
--------------------------------------------------
A leaf of n records holds a label with share p₀. Its noisy share is p = clip(p₀ + Laplace(1/(nλ)), 0, 1), where 1/λ is
the scale of the noise on one count, and of n records drawn with it X ~ Binomial(n, p) get the label. So
P(X = k) = ∫ Binomial(k; n, p) dLaplace(p), with mass of its own at p = 0 and p = 1. The interval starts at
x = round(n·p₀) and takes in x − 1 and x + 1, x − 2 and x + 2, … (inside 0 … n) until the wanted probability is reached;
the last step is interpolated, and both ends are divided by n. The source's other approximation is kept: the share is
not renormalised by the noisy size of the leaf.

Numbers, not draws: the integral is taken by Gauss's rule on panels no wider than the noise and half the spread of the
binomial, out to where e⁻⁴⁰ of the noise is left.

The size of a leaf
------------------
The smallest n whose interval (see `leaf_interval`) is no wider than asked for. λ follows from a budget: an ensemble of
T trees for each of c private columns shares ε equally, and one record moves a leaf table by Δ = 1 when it is added or
removed, by Δ = 2 when its label changes, so λ = ε/(Δ·T·c).

Widths fall with n up to ripples, because n·p₀ is rounded. The search doubles and halves n, then walks down as long as
one of the 32 sizes below is narrow enough too.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from understudy.arrays import Floats, Ints
from understudy.charts import IntervalGroup, IntervalPanel
from understudy.errors import UsageError
from understudy.options import check_choice, check_number, check_share, check_whole

_POINTS = 16  # of Gauss's rule on one panel
_REACH = 40.0  # scales of the noise that are integrated over
_BLOCK = 32  # values of k on either side at a time
MOST_RECORDS = 10_000_000


@dataclass(frozen=True, slots=True)
class LeafInterval:
    """Ends of the interval of a label's share among synthetic records."""

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """Upper end less lower end."""
        return self.upper - self.lower


def leaf_interval(share: float, rate: float, records: int, *, confidence: float = 0.9) -> LeafInterval:
    """The interval that holds the label's synthetic share with that probability, its last step interpolated.

    Args:
        share: the true share p₀ of the label in the leaf.
        rate: λ, one over the scale of the noise on a count.
        records: n, the records in the leaf.
        confidence: confidence level of the interval.

    >>> interval = leaf_interval(0.25, 0.4, 1000)
    >>> round(interval.lower, 4), round(interval.upper, 4)
    (0.2272, 0.2728)
    """
    check_leaf(share, rate)
    check_whole("records", records, 1, MOST_RECORDS)
    check_share("confidence", confidence)
    start = math.floor(records * share + 0.5)
    points, weights, atoms = _mixture(share, rate, records)
    nodes = (points, weights)
    mass = float(_probabilities(np.array([start]), records, nodes, atoms)[0])
    if mass >= confidence:  # reached without a step: the share of the start's own cell
        return LeafInterval(start / records, start / records)
    step = 0
    while step < records:
        steps = np.arange(step + 1, step + 1 + _BLOCK)
        below = _probabilities(start - steps, records, nodes, atoms)
        above = _probabilities(start + steps, records, nodes, atoms)
        sums = mass + np.cumsum(below + above)
        if sums[-1] >= confidence:
            last = int(np.argmax(sums >= confidence))
            before = mass if last == 0 else float(sums[last - 1])
            reach = step + last + (confidence - before) / (float(sums[last]) - before)
            return LeafInterval(max(0.0, start - reach) / records, min(float(records), start + reach) / records)
        mass, step = float(sums[-1]), step + _BLOCK
    return LeafInterval(0.0, 1.0)


def simulated_interval(
    share: float, rate: float, records: int, rng: np.random.Generator, *, draws: int = 10_000, confidence: float = 0.9
) -> LeafInterval:
    """The same interval from draws of X instead of their probabilities, as in the source's Figure 2."""
    check_leaf(share, rate)
    check_whole("records", records, 1, MOST_RECORDS)
    check_share("confidence", confidence)
    noisy = np.clip(share + rng.laplace(0.0, 1.0 / (records * rate), draws), 0.0, 1.0)
    drawn = rng.binomial(records, noisy)
    start = math.floor(records * share + 0.5)
    away = np.abs(drawn - start)
    sums = (np.cumsum(np.bincount(away)) / draws).tolist()
    last = next(step for step, mass in enumerate(sums) if mass >= confidence)
    if last == 0:
        return LeafInterval(start / records, start / records)
    reach = last - 1 + (confidence - sums[last - 1]) / (sums[last] - sums[last - 1])
    return LeafInterval(max(0.0, start - reach) / records, min(float(records), start + reach) / records)


def _mixture(share: float, rate: float, records: int) -> tuple[Floats, Floats, tuple[float, float]]:
    """Shares inside (0, 1) with their weights, and the noise's mass at 0 and at 1."""
    scale = 1.0 / (records * rate)
    points, weights = [np.zeros(0)], [np.zeros(0)]
    for side, reach in ((-1.0, share), (1.0, 1.0 - share)):
        edges = _edges(share, side, min(reach, _REACH * scale), scale=scale, records=records)
        if len(edges) > 1:
            away, width = _gauss(np.array(edges))
            points.append(share + side * away)
            weights.append(width * np.exp(-away / scale) / (2.0 * scale))
    # A share of 0 or 1 leaves no room on one side: then that half of the noise is the atom.
    atoms = (0.5 * math.exp(-share / scale), 0.5 * math.exp(-(1.0 - share) / scale))
    inside = np.clip(np.concatenate(points), 1e-300, 1.0 - 2.0**-53)  # rounding may put a point on an end
    return inside, np.concatenate(weights), atoms


def _edges(share: float, side: float, reach: float, *, scale: float, records: int) -> list[float]:
    """Distances from the share between which the integrand is smooth: no wider than the noise or the binomial."""
    edges = [0.0]
    while edges[-1] < reach:
        point = min(max(share + side * edges[-1], 0.0), 1.0)
        spread = math.sqrt(point * (1.0 - point) / records) / 2.0
        edges.append(min(reach, edges[-1] + min(scale, max(spread, 1.0 / records))))
    return edges


def _gauss(edges: Floats) -> tuple[Floats, Floats]:
    places, weights = np.polynomial.legendre.leggauss(_POINTS)
    half = np.diff(edges)[:, None] / 2.0
    middle = (edges[1:] + edges[:-1])[:, None] / 2.0
    return np.asarray(middle + half * places).ravel(), np.asarray(half * weights).ravel()


def _probabilities(counts: Ints, records: int, nodes: tuple[Floats, Floats], atoms: tuple[float, float]) -> Floats:
    """P(X = k) for these k; 0 outside 0 … records."""
    points, weights = nodes
    found = np.zeros(counts.size)
    inside = (counts >= 0) & (counts <= records)
    wanted = counts[inside].astype(np.float64)
    if points.size:
        choices = np.array([_log_choose(records, int(count)) for count in wanted])
        logs = wanted[:, None] * np.log(points) + (records - wanted)[:, None] * np.log1p(-points)
        found[inside] = np.exp(choices[:, None] + logs) @ weights
    found[counts == 0] += atoms[0]
    found[counts == records] += atoms[1]
    return found


def _log_choose(records: int, count: int) -> float:
    return math.lgamma(records + 1) - math.lgamma(count + 1) - math.lgamma(records - count + 1)


def check_leaf(share: float, rate: float) -> None:
    """Raises UsageError unless the share lies in [0, 1] and λ is a usable number above 0."""
    check_number("share", share, 0.0, 1.0)
    check_number("rate", rate, 1e-6, 1e6)


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
        width: maximum width of the interval.
        share: the label's true share in the leaf; one half is the worst case.
        rate: λ, one over the scale of the noise on a count; or give `epsilon`.
        epsilon: the budget of all trees together, from which λ follows.
        trees: number of trees for each private column.
        columns: number of private columns.
        relation: neighbour relation that ε refers to, "add_remove" or "label_change".
        confidence: confidence level of the interval.

    Raises:
        UsageError: for numbers out of range, or if ten million records are not enough.
    """
    if (rate is None) == (epsilon is None):
        raise UsageError("epsilon", "is needed, or rate= instead.", "For example epsilon=1.")
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


SHARES = (0.0, 0.01, 0.05, 0.10, 0.25, 0.50)
RATES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
RECORDS = (50, 100, 250, 500, 1000, 2000)

_MOST_BARS = 2000


def intervals_svg(
    shares: Sequence[float] = SHARES,
    rates: Sequence[float] = RATES,
    records: Sequence[int] = RECORDS,
    *,
    confidence: float = 0.9,
) -> str:
    """The figure as the text of an SVG file: a panel for each share, two in a row."""
    from understudy.report import render_panels  # the size of a leaf alone needs no templates

    panels = interval_panels(shares, rates, records, confidence=confidence)
    title = (
        f"{confidence:.0%} intervals of a label's share, by records in the leaf; "
        f"λ from {min(rates):g} (dark) to {max(rates):g} (light)"
    )
    return render_panels(title, [panels[place : place + 2] for place in range(0, len(panels), 2)])


def interval_panels(
    shares: Sequence[float] = SHARES,
    rates: Sequence[float] = RATES,
    records: Sequence[int] = RECORDS,
    *,
    confidence: float = 0.9,
) -> tuple[IntervalPanel, ...]:
    """The figure as plain data; the bars of a group go from the smallest λ to the largest."""
    if not shares or not rates or not records or len(shares) * len(rates) * len(records) > _MOST_BARS:
        raise UsageError("figure", f"needs 1 to {_MOST_BARS:,} intervals.", "Give fewer shares, rates or sizes.")
    return tuple(
        IntervalPanel(
            f"share {share:g}",
            share,
            tuple(_group(share, sorted(rates), count, confidence) for count in sorted(records)),
        )
        for share in shares
    )


def _group(share: float, rates: Sequence[float], records: int, confidence: float) -> IntervalGroup:
    found = [leaf_interval(share, rate, records, confidence=confidence) for rate in rates]
    hints = tuple(
        f"{records:,} records, λ = {rate:g}: {one.lower:.4f} to {one.upper:.4f}"
        for rate, one in zip(rates, found, strict=True)
    )
    return IntervalGroup(f"{records:,}", tuple((one.lower, one.upper) for one in found), hints)
