"""Rules that combine estimates and tests from several synthetic copies.

Liu's rule, for estimates from copies that were each made differentially private: mean q̄, between-copy variance
B = Σ(q − q̄)²/(m − 1), within-copy variance W = mean(w), total T = W + B/m, t with ν = (m − 1)(1 + mW/B)² degrees of
freedom. B holds what privacy noise and synthesis add, so the copies must have been measured anew each ("remeasure"):
copies drawn from one model share their noise, and B would not see it.

Raghunathan's rule (Raghunathan, Reiter and Rubin 2003), for copies that are samples from whole populations drawn from a
posterior distribution ("fully synthetic", by synthesizers that draw the parameters of their model anew for each copy):
T = (1 + 1/m)·B − W, t with ν = (m − 1)(1 − W/((1 + 1/m)·B))². B then holds the sampling error of the original sample
and that of the copy, and W is taken off because the second counts twice. T can come out at 0 or below; then it is W,
with normal quantiles (Reiter 2002, for copies as large as the original). For copies that each have privacy noise of
their own, as ours do, the rule is far too wide: averaging over m copies takes the noise down to B/m, as Liu's rule has
it.

The rule of Li, Meng, Raghunathan and Rubin (1991), for χ² tests: with d the m statistics on k degrees of freedom,
r = (1 + 1/m)·Var(√d) and D = [d̄/k − r(m + 1)/(m − 1)]/(1 + r), compared with F on k and ν = k^(−3/m)(m − 1)(1 + 1/r)²
degrees of freedom. The rule was made for multiple imputation; its 1 + 1/m is cautious for synthetic copies.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.stats import chi2, f, norm, t

from understudy.errors import UsageError


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
    spread = _Spread.of(estimates, variances, level)
    copies, within, between = spread.copies, spread.within, spread.between
    degrees = None if between == 0 else (copies - 1) * (1 + copies * within / between) ** 2
    return spread.pooled(within + between / copies, degrees, level, "liu")


def pool_raghunathan(estimates: Sequence[float], variances: Sequence[float], *, level: float = 0.95) -> Pooled:
    """The pooled estimate and its interval, for fully synthetic copies drawn from a posterior distribution.

    Raises:
        UsageError: with fewer than two copies, unequal numbers, or variances below 0.
    """
    spread = _Spread.of(estimates, variances, level)
    whole = (1 + 1 / spread.copies) * spread.between
    if whole <= spread.within:
        return spread.pooled(spread.within, None, level, "raghunathan")
    degrees = (spread.copies - 1) * (1 - spread.within / whole) ** 2
    return spread.pooled(whole - spread.within, degrees, level, "raghunathan")


@dataclass(frozen=True, slots=True)
class _Spread:
    """Mean of the estimates, their variance between copies, and the mean of the variances within."""

    copies: int
    mean: float
    between: float
    within: float

    @classmethod
    def of(cls, estimates: Sequence[float], variances: Sequence[float], level: float) -> Self:
        """The estimates of several copies, once they are checked."""
        check_copies(estimates, variances, level)
        copies = len(estimates)
        mean = math.fsum(estimates) / copies
        between = math.fsum((one - mean) ** 2 for one in estimates) / (copies - 1)
        return cls(copies, mean, between, math.fsum(variances) / copies)

    def pooled(self, total: float, degrees: float | None, level: float, rule: str) -> Pooled:
        """With its interval, from a total variance."""
        reach = float(norm.ppf((1 + level) / 2) if degrees is None else t.ppf((1 + level) / 2, degrees))
        low, high = self.mean - reach * math.sqrt(total), self.mean + reach * math.sqrt(total)
        return Pooled(self.mean, total, self.within, self.between, degrees, level, low, high, self.copies, rule)


def check_copies(estimates: Sequence[float], variances: Sequence[float], level: float) -> None:
    """Raises unless there are several finite estimates with a variance each."""
    if len(estimates) != len(variances):
        raise UsageError("pool", f"got {len(estimates)} estimates and {len(variances)} variances.", "Give one each.")
    if len(estimates) < 2:
        raise UsageError("pool", f"needs at least two copies, got {len(estimates)}.", "Synthesize with copies=5.")
    if not all(math.isfinite(one) for one in (*estimates, *variances)) or min(variances) < 0:
        raise UsageError("pool", "needs finite estimates, and variances of 0 or more.")
    if not 0 < level < 1:
        raise UsageError("pool: level", f"must lie between 0 and 1, got {level!r}.")


@dataclass(frozen=True, slots=True)
class PooledTest:
    """The pooled statistic, its degrees of freedom (`denominator` None: χ² instead of F), and its p-value."""

    statistic: float
    degrees: float
    denominator: float | None
    spread: float
    p_value: float
    copies: int


def pool_chi_squares(statistics: Sequence[float], degrees: float) -> PooledTest:
    """The pooled test of χ² statistics that share their degrees of freedom."""
    _check(statistics, degrees)
    copies = len(statistics)
    values = np.asarray(statistics, np.float64)
    spread = (1 + 1 / copies) * float(np.var(np.sqrt(values), ddof=1))
    mean = float(values.mean()) / degrees
    if spread == 0:
        return PooledTest(mean, degrees, None, 0.0, float(chi2.sf(mean * degrees, degrees)), copies)
    pooled = (mean - spread * (copies + 1) / (copies - 1)) / (1 + spread)
    denominator = degrees ** (-3 / copies) * (copies - 1) * (1 + 1 / spread) ** 2
    p_value = 1.0 if pooled <= 0 else float(f.sf(pooled, degrees, denominator))
    return PooledTest(pooled, degrees, denominator, spread, p_value, copies)


def pool_p_values(p_values: Sequence[float], degrees: float) -> PooledTest:
    """The same, from the p-values of the single tests."""
    if any(not 0 < value <= 1 for value in p_values):
        raise UsageError("pool", "needs p-values above 0 and at most 1.", "Pool the χ² statistics instead.")
    return pool_chi_squares([float(chi2.isf(value, degrees)) for value in p_values], degrees)


def _check(statistics: Sequence[float], degrees: float) -> None:
    if len(statistics) < 2:
        raise UsageError("pool", f"needs at least two copies, got {len(statistics)}.", "Synthesize with copies=5.")
    if not math.isfinite(degrees) or degrees <= 0:
        raise UsageError("pool: degrees", f"must be above 0, got {degrees!r}.")
    if any(not math.isfinite(value) or value < 0 for value in statistics):
        raise UsageError("pool", "needs χ² statistics that are finite and not below 0.")
