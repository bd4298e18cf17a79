"""What a question will cost in noise, memory and time, told before any private row is read.

Everything is computed from public numbers. Times are CPU seconds of a run whose kernels are compiled already, rough:
constants measured on one core of a small machine (`benchmarks/forecasts.py` holds them against runs). Bytes are the most
that a run takes beyond the program with its libraries.
"""

import math
from dataclasses import dataclass

from understudy.marginals.answer import Law
from understudy.mechanisms.mechanism import PublicFacts, Step
from understudy.privacy.calibrate import law_for
from understudy.privacy.cost import Cost
from understudy.privacy.curator import Curator

__all__ = [
    "ROWS_UNKNOWN",
    "Rounds",
    "Span",
    "expected_absolute",
    "facts_of",
    "noisy_step",
    "pass_probability",
    "raked_cells",
    "rows_of",
    "seconds_for",
    "seconds_of_rounds",
]

_CELLS_PER_SECOND = 5e6  # noise, clipping and normalising
_CODES_PER_SECOND = 2e7  # encoding and counting one column of one row
_START_SECONDS = 0.05
_TABLE_SECONDS = 5e-5  # one candidate in a round: whether it fits, what the model expects there, its score
_CANDIDATE_CELLS_PER_SECOND = 2e7
_COLUMN_STEP_SECONDS = 5e-6  # one step of a fit, for each column
_MODEL_CELLS_PER_SECOND = 1.2e8  # one step of a fit
_EXPECTING_STEPS = 10  # what the model expects of all candidates takes as long as that many steps
_MEASURED_TABLES = 4  # a model holds at most that many times the cells of its measured tables
ROWS_UNKNOWN = 1_000_000
"""The number of rows that estimates are for when no hint is given."""


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


def rows_of(facts: PublicFacts) -> int:
    """The number of rows that estimates are for."""
    return facts.rows_hint if facts.rows_hint is not None else ROWS_UNKNOWN


def seconds_for(facts: PublicFacts, cells: int) -> float:
    """Rough time of counting all columns once and handling that many cells."""
    rows = rows_of(facts)
    return _START_SECONDS + cells / _CELLS_PER_SECOND + rows * len(facts.domain.columns) / _CODES_PER_SECOND


def raked_cells(facts: PublicFacts, cells: int, margins: str) -> int:
    """Cells to handle when a full table's columns are raked, as many as stand for the time; else the table's own."""
    return cells * (1 + len(facts.domain.columns) // 2) if margins == "raked" else cells


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds of a run that depends on noisy answers: from `least` to `most`."""

    least: float
    most: float

    @property
    def middle(self) -> float:
        """The geometric mean: as far from one end as from the other.

        >>> Span(1.0, 9.0).middle
        3.0
        """
        return math.sqrt(self.least * self.most)

    @property
    def note(self) -> str:
        """What a reader of a plan is told."""
        return (
            f"The time depends on noisy answers: about {self.least:,.1f} s if the model stays small, up to about "
            f"{self.most:,.1f} s if it grows to what its limit and the noise allow."
        )


@dataclass(frozen=True, slots=True)
class Rounds:
    """What the time of a method depends on that chooses, measures and fits, round after round."""

    fewest: int
    most: int
    candidates: int
    candidate_cells: int
    first_cells: int
    """Of the model before the first round."""
    most_cells: int
    """Of the model, by its limit of bytes."""
    noise: float
    """Expected absolute error of one cell of a table that a round measures."""
    steps: tuple[int, int, int]
    """Steps of the first fit, of one in a round and of the last."""


def seconds_of_rounds(facts: PublicFacts, rounds: Rounds) -> Span:
    """From few rounds with the first model to all of them with a model that grows evenly to its largest.

    A table is worth measuring only if its noise does not exceed twice the number of rows, so noise bounds its cells.
    """
    useful = 2.0 * rows_of(facts) / max(rounds.noise, 1e-9)
    largest = min(rounds.most_cells, rounds.first_cells + _MEASURED_TABLES * rounds.most * useful)
    columns = len(facts.domain.columns) * _COLUMN_STEP_SECONDS
    first_step = columns + rounds.first_cells / _MODEL_CELLS_PER_SECOND
    last_step = columns + largest / _MODEL_CELLS_PER_SECOND
    score = rounds.candidates * _TABLE_SECONDS + rounds.candidate_cells / _CANDIDATE_CELLS_PER_SECOND
    first, each, last = rounds.steps
    start = seconds_for(facts, rounds.candidate_cells) + first * first_step
    least = start + rounds.fewest * (score + each * first_step) + last * first_step
    growing = (first_step + last_step) / 2.0
    most = start + rounds.most * (score + (each + _EXPECTING_STEPS) * growing) + last * last_step
    return Span(least, most)
