"""What a question will cost in noise, memory and time, told before any private row is read.

Everything is computed from public numbers. Times are rough: constants measured once on one core of a small machine.
"""

import math

from understudy.marginals.answer import Law
from understudy.mechanisms.mechanism import PublicFacts, Step
from understudy.privacy.calibrate import law_for
from understudy.privacy.cost import Cost
from understudy.privacy.curator import Curator

__all__ = ["expected_absolute", "facts_of", "noisy_step", "pass_probability", "seconds_for"]

_CELLS_PER_SECOND = 5e6  # noise, clipping and normalising
_CODES_PER_SECOND = 2e7  # encoding and counting one column of one row
_START_SECONDS = 0.2
_ROWS_UNKNOWN = 1_000_000


def facts_of(curator: Curator) -> PublicFacts:
    """The public facts of a curator whose codes are settled."""
    public = curator.public_counts if curator.has_public else None
    return PublicFacts(curator.domain, curator.forbidden, curator.unit_rows, public=public)


def expected_absolute(law: Law) -> float:
    """Expected absolute value of one draw.

    Discrete Laplace: Σ|k|P(k) = 2q/(1 − q²) with q = e^(−1/scale). Gaussian: σ√(2/π), an upper bound for small σ.
    """
    if law.kind == "gaussian":
        return law.scale * math.sqrt(2.0 / math.pi)
    rate = 1.0 / law.scale
    return 2.0 * math.exp(-rate) / -math.expm1(-2.0 * rate)


def pass_probability(law: Law, threshold: int) -> float:
    """P(noise ≥ threshold) of discrete Laplace noise, threshold ≥ 1: q^threshold/(1 + q).

    >>> from fractions import Fraction
    >>> round(pass_probability(Law("laplace", Fraction(2)), 1), 6)
    0.377541
    """
    rate = 1.0 / law.scale
    return math.exp(-threshold * rate) / (1.0 + math.exp(-rate))


def noisy_step(name: str, cost: Cost, cells: int, unit_rows: int) -> Step:
    """The step of a plan that measures a table of `cells` cells at that cost."""
    law = law_for(cost, unit_rows, name)
    return Step(name, cost, cells, law.scale, expected_absolute(law))


def seconds_for(facts: PublicFacts, cells: int) -> float:
    """Rough time of counting all columns once and handling that many cells."""
    rows = facts.rows_hint if facts.rows_hint is not None else _ROWS_UNKNOWN
    return _START_SECONDS + cells / _CELLS_PER_SECOND + rows * len(facts.domain.columns) / _CODES_PER_SECOND
