"""One estimate from several synthetic copies: Liu's rule for copies that were each made differentially private.

mean q̄, between-copy variance B = Σ(q − q̄)²/(m − 1), within-copy variance W = mean(w), total T = W + B/m, t with
ν = (m − 1)(1 + mW/B)² degrees of freedom. B holds what privacy noise and synthesis add, so the copies must have been
measured anew each ("resanitize"): copies drawn from one model share their noise, and B would not see it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import norm, t

from understudy.errors import UsageError

__all__ = ["Pooled", "pool_liu"]


@dataclass(frozen=True, slots=True)
class Pooled:
    """A pooled estimate: its variance and where that comes from, degrees of freedom (None: normal), an interval."""

    estimate: float
    variance: float
    within: float
    between: float
    degrees: float | None
    level: float
    low: float
    high: float
    copies: int
    rule: str


def pool_liu(estimates: Sequence[float], variances: Sequence[float], *, level: float = 0.95) -> Pooled:
    """The pooled estimate and its interval.

    Raises:
        UsageError: with fewer than two copies, unequal numbers, or variances below 0.
    """
    check_copies(estimates, variances, level)
    copies = len(estimates)
    mean = math.fsum(estimates) / copies
    between = math.fsum((one - mean) ** 2 for one in estimates) / (copies - 1)
    within = math.fsum(variances) / copies
    total = within + between / copies
    degrees = None if between == 0 else (copies - 1) * (1 + copies * within / between) ** 2
    reach = float(norm.ppf((1 + level) / 2) if degrees is None else t.ppf((1 + level) / 2, degrees))
    half = reach * math.sqrt(total)
    return Pooled(mean, total, within, between, degrees, level, mean - half, mean + half, copies, "liu")


def check_copies(estimates: Sequence[float], variances: Sequence[float], level: float) -> None:
    """Raises unless there are several finite estimates with a variance each."""
    if len(estimates) != len(variances):
        raise UsageError("pool", f"got {len(estimates)} estimates and {len(variances)} variances.", "Give one each.")
    if len(estimates) < 2:
        raise UsageError("pool", f"needs at least two copies, got {len(estimates)}.", "Synthesize with --copies.")
    if not all(math.isfinite(one) for one in (*estimates, *variances)) or min(variances) < 0:
        raise UsageError("pool", "needs finite estimates, and variances of 0 or more.")
    if not 0 < level < 1:
        raise UsageError("pool: level", f"must lie between 0 and 1, got {level!r}.")
