"""Shares with intervals that account for privacy noise, straight from the noisy answers of a release.

A measured table holds y = x + z with known integer noise z. The share of rows in a set S of its cells is estimated by
p = y(S)/y(all). To first order its error is [(1 − p)·z(S) − p·z(rest)]/n, so privacy noise adds the variance
v·[(1 − p)²·|S| + p²·|rest|]/n² for noise of variance v per cell; inference to a population adds p(1 − p)/n. Quantiles
are those of the noise law itself while the sums are short (Laplace sums have heavier tails than the normal law).

This works for shares of tables that were measured. A share of columns that were never measured together has an error
that no answer bounds, and is refused. Several runs are averaged: their noise is independent, the rows are the same.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.codec.table_codec import TableCodec
from understudy.errors import UsageError
from understudy.marginals.answer import Law, Measurement
from understudy.marginals.transcript import Transcript
from understudy.release.release import Release

__all__ = ["MeasuredShare", "measured_share"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

DRAWS = 40_000
LONGEST_SUM = 64  # longer sums of noise are taken as normal
SEED = 20_180_501
OF_ALL = "A share is of all rows, including those whose value is missing or could not be read."


@dataclass(frozen=True, slots=True)
class MeasuredShare:
    """A share of rows, with an interval for the private table and a wider one for the population behind it."""

    where: Mapping[str, str]
    estimate: float
    privacy_variance: float
    sampling_variance: float
    level: float
    table_low: float
    table_high: float
    population_low: float
    population_high: float
    question: str
    runs: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    """One run's answer: the measurement used and which of its cells are meant."""

    measurement: Measurement
    chosen: Bools

    @property
    def total(self) -> float:
        return float(self.measurement.values.sum())

    @property
    def share(self) -> float:
        return float(self.measurement.values[self.chosen].sum()) / self.total


def measured_share(release: Release, where: Mapping[str, str], *, level: float = 0.95) -> MeasuredShare:
    """The share of rows that satisfy a condition, for example {"sex": "F"}.

    Raises:
        UsageError: if no released table holds the columns of the condition, or the noise exceeds the table.
    """
    if not where:
        raise UsageError("share", "needs a condition.", 'As in {"sex": "F"}.')
    if not 0 < level < 1:
        raise UsageError("share: level", f"must lie between 0 and 1, got {level!r}.")
    answers = [_answer(fitted.codec, fitted.transcript, where) for fitted in release.fits]
    if any(answer.total <= 0 for answer in answers):
        raise UsageError(f"share of {_words(where)}", "cannot be told: the noise exceeds the table.")
    runs = len(answers)
    estimate = math.fsum(answer.share for answer in answers) / runs
    inside = min(max(estimate, 0.0), 1.0)
    rows = math.fsum(answer.total for answer in answers) / runs
    privacy = math.fsum(_privacy_variance(answer, inside) for answer in answers) / runs**2
    sampling = inside * (1 - inside) / rows
    table, population = _reach(answers, inside, sampling, level)
    notes = [_note(release)] if release.schema.unit.column is not None else []
    odd = [odd.text for odd in release.statement.odd if odd.column in where]
    notes += (
        [*odd, "A share is one of all rows, with those whose value is missing or could not be read."] if odd else []
    )
    return MeasuredShare(
        dict(where), inside, privacy, sampling, level, max(0.0, estimate - table), min(1.0, estimate + table),
        max(0.0, estimate - population), min(1.0, estimate + population), answers[0].measurement.name, runs,
        tuple(notes),
    )  # fmt: skip


def _note(release: Release) -> str:
    unit = release.schema.unit
    return f"Up to {unit.rows} rows of one {unit.column} count; the population interval treats rows as independent."


def _answer(codec: TableCodec, transcript: Transcript, where: Mapping[str, str]) -> _Answer:
    codes = {name: codec.codes_matching(name, text) for name, text in where.items()}
    domain = codec.domain
    candidates = []
    for measurement in transcript.of(Measurement):
        columns = measurement.columns
        known = all(name in domain.sizes for name in columns)
        if known and set(where) <= set(columns) and measurement.shape == domain.shape(columns):
            chosen = np.ones(measurement.shape, np.bool_)
            for axis, name in enumerate(columns):
                if name in codes:
                    hit = np.zeros(measurement.shape[axis], np.bool_)
                    hit[codes[name]] = True
                    chosen &= hit.reshape([-1 if place == axis else 1 for place in range(len(columns))])
            candidates.append(_Answer(measurement, chosen.ravel()))
    if not candidates:
        rule = "was not measured: no released table holds these columns together."
        fix = "Use a method that measures it (nist_mst or dpsyn with these columns in marginals; aim if its rounds "
        fix += "choose it), or count it in the rows, without an error bar."
        raise UsageError(f"share of {_words(where)}", rule, fix)
    # Chosen by public facts alone: the noise of the cells that are added up, then of the whole table.
    return min(candidates, key=lambda one: (one.measurement.law.variance * one.chosen.sum(), one.chosen.size))


def _privacy_variance(answer: _Answer, share: float) -> float:
    inside = int(answer.chosen.sum())
    outside = answer.chosen.size - inside
    noise = answer.measurement.law.variance
    return noise * ((1 - share) ** 2 * inside + share**2 * outside) / answer.total**2


def _reach(answers: list[_Answer], share: float, sampling: float, level: float) -> tuple[float, float]:
    """Half-widths about the private table and about the population."""
    rng = np.random.default_rng(SEED)
    error = np.zeros(DRAWS)
    for answer in answers:
        inside = int(answer.chosen.sum())
        law = answer.measurement.law
        mine, rest = _sums(law, inside, rng), _sums(law, answer.chosen.size - inside, rng)
        error += ((1 - share) * mine - share * rest) / answer.total / len(answers)
    whole = error + math.sqrt(sampling) * rng.standard_normal(DRAWS)
    return float(np.quantile(np.abs(error), level)), float(np.quantile(np.abs(whole), level))


def _sums(law: Law, cells: int, rng: np.random.Generator) -> Floats:
    """Draws of the sum of that many noise values."""
    if law.kind == "gaussian" or cells > LONGEST_SUM:
        return math.sqrt(law.variance * cells) * rng.standard_normal(DRAWS)
    total = np.zeros(DRAWS)
    decay = math.exp(-1.0 / law.scale)
    for _ in range(cells):  # a discrete Laplace number is the difference of two geometric ones
        total += rng.geometric(1 - decay, DRAWS) - rng.geometric(1 - decay, DRAWS)
    return total


def _words(where: Mapping[str, str]) -> str:
    return " and ".join(f"{name}={text}" for name, text in where.items())
