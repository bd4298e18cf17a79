"""What the public card shows about a release, gathered from the release alone.

Error bars follow from the noise that was added, which is public; no private number is needed to state them.
"""

import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from understudy.errors import ResourceError
from understudy.marginals.answer import (
    GROWTH_UNIT,
    SCORE_UNIT,
    Answer,
    Discovery,
    Grown,
    Law,
    Measurement,
    NoisyScores,
    Selection,
    Selections,
    SparseMeasurement,
    Trained,
)
from understudy.models.confidence import misplaced_share
from understudy.release import wording
from understudy.release.label import charge_rows
from understudy.release.release import Release
from understudy.release.rows import Fitted
from understudy.report.card import CardFacts, MeasuredTable, OneWay, PrivacyFacts, SampleRows

__all__ = ["card_facts", "half_width"]

SAMPLE_ROWS = 10
MOST_PAIRS_NAMED = 12
COVERAGE = 0.95
MOST_CODES = 10_000
DRAWN_ROWS = 20_000
MOST_CELLS = 2_000_000


def card_facts(release: Release, data: Path) -> CardFacts:
    """The card's content for a release whose first table of rows is stored in `data`."""
    statement = release.statement
    first = release.fits[0]
    return CardFacts(
        title=f"Synthetic stand-in: {statement.title or 'untitled table'}",
        banner=_banner(release),
        privacy=PrivacyFacts(
            promise=statement.promise,
            facts=statement.facts(),
            odds=statement.odds,
            charges=tuple(charge_rows(statement)),
            not_protected=statement.not_protected,
            left_out=statement.left_out,
            odd=tuple(one.text for one in statement.odd),
        ),
        measured=tuple(_measured(answer, first) for answer in first.transcript),
        together=_together(first),
        one_ways=tuple(_one_way(name, first) for name in first.codec.domain.columns),
        sample=_sample(data, release.config.rows[0]),
        copies=wording.copies_text(statement.copies, statement.copies_mode),
        footer=f"understudy {statement.versions.get('understudy', '')}, {statement.date}, run {statement.run}.",
    )


def half_width(law: Law, cells: int = 1) -> float:
    """Rows within which the noise of a sum of `cells` cells stays with 95 % probability.

    >>> from fractions import Fraction
    >>> half_width(Law("laplace", Fraction(10)))
    30.0
    """
    if cells == 1 and law.kind == "laplace":
        decay = math.exp(-1.0 / float(law.parameter))
        if decay == 0.0:
            return 0.0
        # P(|noise| > k) = 2·decay^(k+1) / (1 + decay) for the discrete Laplace law
        return float(max(math.ceil(math.log((1 - COVERAGE) * (1 + decay) / 2) / math.log(decay)) - 1, 0))
    return 1.959964 * math.sqrt(cells * law.variance)


def _banner(release: Release) -> str:
    if release.statement.claim is None:
        return f"{release.statement.refused}. Not for release."
    return "PUBLIC. Synthetic data under a differential-privacy guarantee; rows are drawn from a model."


def _measured(answer: Answer, fitted: Fitted) -> MeasuredTable:
    if isinstance(answer, Selection | Selections):
        told = wording.choice_text(answer.rate, answer.sensitivity, monotone=answer.monotone)
        rate = f"exponential mechanism, {told}"
        if isinstance(answer, Selection):
            return MeasuredTable(answer.name, "choice", answer.options, rate, None)
        kind = f"choice among {answer.options:,} in every cell"
        return MeasuredTable(answer.name, kind, int(answer.chosen.size), rate, None)
    if isinstance(answer, Trained):
        noise = (
            f"discrete Gaussian, σ = {answer.law.scale / answer.course.clip:.4g} of the most a unit may add to a step"
        )
        return MeasuredTable(answer.name, f"training of {answer.course.steps:,} steps", answer.values.size, noise, None)
    if isinstance(answer, NoisyScores | Grown):
        return _scores_or_tree(answer)
    letter = "b" if answer.law.kind == "laplace" else "σ"
    noise = f"discrete {answer.law.kind.capitalize()}, {letter} = {answer.law.scale:.4g}"
    if isinstance(answer, Discovery):
        kept = f"{noise}, labels with at least {answer.threshold:,}"
        return MeasuredTable(answer.name, "discovery of labels", len(answer.labels), kept, half_width(answer.law))
    cells = math.prod(answer.shape)
    if isinstance(answer, SparseMeasurement):
        kept = f"{noise}, cells with at least {answer.threshold:,} kept"
        return MeasuredTable(answer.name, "sparse table", cells, kept, half_width(answer.law))
    return MeasuredTable(answer.name, "table", cells, noise, half_width(answer.law), _misplaced(answer, fitted))


def _scores_or_tree(answer: NoisyScores | Grown) -> MeasuredTable:
    """Scores are not counts, and a tree's noise is in no released number: neither has an error bar in rows."""
    letter = "b" if answer.law.kind == "laplace" else "σ"
    if isinstance(answer, NoisyScores):
        noise = f"discrete {answer.law.kind.capitalize()}, {letter} = {answer.law.scale / SCORE_UNIT:.4g} of a score"
        return MeasuredTable(answer.name, "scores of options", int(answer.values.size), noise, None)
    scale, bias = answer.law.scale / GROWTH_UNIT, answer.bias / GROWTH_UNIT
    noise = f"discrete Laplace, b = {scale:.4g} rows, bias {bias:.4g} rows per level, split above {answer.theta:,}"
    return MeasuredTable(answer.name, f"tree of {len(answer.layers)} layers", int(answer.values.size), noise, None)


def _misplaced(answer: Measurement, fitted: Fitted) -> float | None:
    """How far the model can be off on a measured clique; None for coarse or very large tables, or a tangled model."""
    domain = fitted.codec.domain
    if not set(answer.columns) <= set(domain.columns) or answer.shape != domain.shape(answer.columns):
        return None
    if answer.values.size > MOST_CELLS:
        return None
    try:
        model = fitted.model.marginal(domain.clique(answer.columns)) * fitted.model.total
    except ResourceError:
        return None
    return misplaced_share(answer.values, model, answer.law, COVERAGE)


def _together(fitted: Fitted) -> tuple[str, ...]:
    """Which pairs of columns some question looked at together."""
    names = fitted.codec.domain.columns
    if fitted.transcript.of(Trained):
        return (
            "All columns were looked at together, in training; what was learned of a relationship has no error bar.",
        )
    tables = [
        set(answer.columns) for answer in fitted.transcript if isinstance(answer, Measurement | SparseMeasurement)
    ]
    seen = {pair for table in tables for pair in combinations(sorted(table), 2)}
    pairs = math.comb(len(names), 2)
    lines = [f"{len(seen):,} of {pairs:,} pairs of columns were measured together."]
    if 0 < len(seen) < pairs:
        shown = [f"{first} with {second}" for first, second in sorted(seen)[:MOST_PAIRS_NAMED]]
        more = len(seen) - len(shown)
        lines.append("Measured together: " + "; ".join(shown) + (f"; and {more:,} more." if more else "."))
    if len(seen) < pairs:
        lines.append("Any other relationship between columns follows from the method's assumptions, not from data.")
    unmeasured = sorted(set(names) - set().union(*tables)) if tables else sorted(names)
    if unmeasured:
        lines.append("In no question at all: " + ", ".join(unmeasured) + ".")
    return tuple(lines)


def _one_way(name: str, fitted: Fitted) -> OneWay:
    """A column's counts: the noisy answer where it was asked on its own, else what the model makes of it."""
    clique = fitted.codec.domain.clique([name])
    size = fitted.codec.domain.sizes[name]
    shown = min(size, MOST_CODES)
    labels = tuple(fitted.codec.describe(name, code) for code in range(shown))
    for answer in fitted.transcript.of(Measurement):
        if answer.columns == (name,) and answer.shape == (size,):
            values = tuple(float(value) for value in answer.values[:shown])
            return OneWay(name, labels, values, half_width(answer.law), "noisy counts as measured, 95 % error bars")
    sums = [
        half_width(answer.law, math.prod(answer.shape) // size)
        for answer in fitted.transcript.of(Measurement)
        if name in answer.columns and answer.shape == fitted.codec.domain.shape(answer.columns)
    ]
    try:
        values = tuple(float(value) for value in (fitted.model.marginal(clique) * fitted.model.total)[:shown])
    except ResourceError:  # a network too tangled for exact sums can still be drawn from
        drawn = fitted.model.draw(DRAWN_ROWS, np.random.default_rng(0))[name]
        counts = np.bincount(drawn, minlength=size)[:shown] * (fitted.model.total / DRAWN_ROWS)
        return OneWay(name, labels, tuple(map(float, counts)), None, f"counts of {DRAWN_ROWS:,} rows drawn, scaled")
    if not sums:
        return OneWay(name, labels, values, None, "counts of the fitted model; no error bar is known in closed form")
    return OneWay(name, labels, values, min(sums), "counts of the fitted model; error bars of sums of noisy cells")


def _sample(data: Path, total: int) -> SampleRows:
    with pq.ParquetFile(data) as stored:
        names = tuple(stored.schema_arrow.names)
        batch = next(stored.iter_batches(batch_size=SAMPLE_ROWS), None)
    rows = [] if batch is None else batch.to_pylist()
    texts = tuple(tuple("" if row[name] is None else str(row[name]) for name in names) for row in rows)
    return SampleRows(names, texts, total)
