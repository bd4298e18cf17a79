"""LeafInterval: how far a label's share among synthetic records can be from its true share in a leaf.

Source: Duke University Synthetic Data Project, "Differentially private synthetic attribute generation using variable
depth random decision trees" (2018), section 5 and Figures 1 and 2.

A leaf of n records holds a label with share p₀. Its noisy share is p = clip(p₀ + Laplace(1/(nλ)), 0, 1), where 1/λ is
the scale of the noise on one count, and of n records drawn with it X ~ Binomial(n, p) get the label. So
P(X = k) = ∫ Binomial(k; n, p) dLaplace(p), with mass of its own at p = 0 and p = 1. The interval starts at
x = round(n·p₀) and takes in x − 1 and x + 1, x − 2 and x + 2, … (inside 0 … n) until the wanted probability is reached;
the last step is interpolated, and both ends are divided by n. The source's other approximation is kept: the share is
not renormalised by the noisy size of the leaf.

Numbers, not draws: the integral is taken by Gauss's rule on panels no wider than the noise and half the spread of the
binomial, out to where e⁻⁴⁰ of the noise is left. All of it is public: no record is involved.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.mechanisms.options.checks import check_number, check_share, check_whole

__all__ = ["MOST_RECORDS", "LeafInterval", "check_leaf", "leaf_interval", "simulated_interval"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

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
        confidence: probability of the interval.

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
    for side, room in ((-1.0, share), (1.0, 1.0 - share)):
        edges = _edges(share, side, min(room, _REACH * scale), scale=scale, records=records)
        if len(edges) > 1:
            away, width = _gauss(np.array(edges))
            points.append(share + side * away)
            weights.append(width * np.exp(-away / scale) / (2.0 * scale))
    # A share of 0 or 1 leaves no room on one side: then that half of the noise is the atom.
    atoms = (0.5 * math.exp(-share / scale), 0.5 * math.exp(-(1.0 - share) / scale))
    inside = np.clip(np.concatenate(points), 1e-300, 1.0 - 2.0**-53)  # rounding may put a point on an end
    return inside, np.concatenate(weights), atoms


def _edges(share: float, side: float, room: float, *, scale: float, records: int) -> list[float]:
    """Distances from the share between which the integrand is smooth: no wider than the noise or the binomial."""
    edges = [0.0]
    while edges[-1] < room:
        point = min(max(share + side * edges[-1], 0.0), 1.0)
        spread = math.sqrt(point * (1.0 - point) / records) / 2.0
        edges.append(min(room, edges[-1] + min(scale, max(spread, 1.0 / records))))
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
