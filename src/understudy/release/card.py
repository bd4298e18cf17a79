"""The public card of a release: what was promised, what was measured, how noisy it is, how to use it.

Built from what is already in the release folder; nothing on it was computed from private rows. Its error bars follow
from the noise that was added, which is public.
"""

import math
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from understudy.domain import (
    GROWTH_UNIT,
    SCORE_UNIT,
    Answer,
    Discovery,
    Distribution,
    Grown,
    Measurement,
    NoisyScores,
    Selection,
    Selections,
    SparseMeasurement,
    Trained,
)
from understudy.errors import ResourceError
from understudy.models.model import misplaced_share
from understudy.release import wording
from understudy.release.release import (
    Fitted,
    Release,
)
from understudy.release.statement import Statement, charge_rows
from understudy.report import Bars, Block, BulletList, Page, Paragraph, Section, TextTable
from understudy.schema import Category, Column

SAMPLE_ROWS = 10
MOST_PAIRS_NAMED = 12
MOST_LABELS_NAMED = 50
COVERAGE = 0.95
MOST_CODES = 10_000
DRAWN_ROWS = 20_000
MOST_CELLS = 2_000_000


MOST_BARS = 24
MOST_SECTION_TABLES = 200


MISPLACED = "Misplaced at most"


@dataclass(frozen=True, slots=True)
class MeasuredTable:
    """One answer: what was asked, over how many cells, with which noise (scale and 95 % half-width in rows).

    `misplaced` bounds the share of records that the model puts in a wrong cell of this table, with 95 % confidence.
    """

    name: str
    kind: str
    cells: int
    noise: str
    half_width: float | None
    misplaced: float | None = None


@dataclass(frozen=True, slots=True)
class ColumnNote:
    """What the schema tells people about one column."""

    column: str
    title: str
    description: str
    measured_in: str
    labels: str

    @property
    def says_something(self) -> bool:
        """Whether there is more than a name."""
        return bool(self.title or self.description or self.measured_in or self.labels)


@dataclass(frozen=True, slots=True)
class OneWay:
    """The released counts of one column's codes and the 95 % half-width that the noise alone implies."""

    column: str
    labels: tuple[str, ...]
    values: tuple[float, ...]
    half_width: float | None
    origin: str


@dataclass(frozen=True, slots=True)
class SampleRows:
    """The first synthetic rows as text, and how many there are in all."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int
    remark: str = ""
    """Why there are none, if the noise decided so."""


@dataclass(frozen=True, slots=True)
class CardFacts:
    """Everything the card shows."""

    title: str
    banner: str
    statement: Statement
    measured: tuple[MeasuredTable, ...]
    together: tuple[str, ...]
    one_ways: tuple[OneWay, ...]
    sample: SampleRows
    copies: str
    footer: str
    columns: tuple[ColumnNote, ...] = ()
    """What the columns hold, for people."""


def build_card(facts: CardFacts) -> Page:
    """The card as a page, ready to be rendered."""
    return Page(
        title=facts.title,
        banner=facts.banner,
        sections=(
            _promise(facts.statement),
            *_codebook(facts.columns),
            _measured(facts),
            _columns(facts.one_ways, tuple(one.text for one in facts.statement.odd)),
            _relative(facts.measured),
            _rows(facts.sample),
            _use(facts.copies),
            _conclusions(),
            _spending(facts.statement),
        ),
        footer=facts.footer,
    )


def _promise(statement: Statement) -> Section:
    blocks: list[Block] = [
        Paragraph(statement.promise, strong=True),
        Paragraph(statement.odds),
        TextTable(("Fact", "Value"), statement.facts()),
        Paragraph("Not protected, or outside the promise:"),
        BulletList(statement.not_protected),
    ]
    if statement.left_out:
        blocks.append(Paragraph("Columns of the table that the schema does not declare, and that were left out:"))
        blocks.append(BulletList(statement.left_out))
    return Section("Privacy", "What is promised, to whom, and what is not?", tuple(blocks))


def _codebook(columns: tuple[ColumnNote, ...]) -> tuple[Section, ...]:
    """A section that says what the columns hold; none where the schema tells names only."""
    if not any(one.says_something for one in columns):
        return ()
    header = ("Column", "Title", "Description", "Measured in", "Labels")
    rows = tuple((one.column, one.title, one.description, one.measured_in, one.labels) for one in columns)
    blocks: list[Block] = [TextTable(header, rows[:MOST_SECTION_TABLES])]
    if len(rows) > MOST_SECTION_TABLES:
        blocks.append(Paragraph(f"{len(rows) - MOST_SECTION_TABLES:,} more are described in schema.yaml."))
    return (Section("The columns", "What does each column hold?", tuple(blocks)),)


def _measured(facts: CardFacts) -> Section:
    shown = facts.measured[:MOST_SECTION_TABLES]
    rows = tuple(
        (
            one.name,
            one.kind,
            f"{one.cells:,}",
            one.noise,
            "—" if one.half_width is None else f"± {one.half_width:,.0f}",
            "—" if one.misplaced is None else f"{100 * one.misplaced:.1f} %",
        )
        for one in shown
    )
    blocks: list[Block] = [
        TextTable(
            ("Question", "Kind", "Cells", "Noise", "95 % of cells within", MISPLACED),
            rows,
            caption="Every question put to the private table. What is not listed was never looked at.",
            numeric=frozenset({"Cells", "95 % of cells within", MISPLACED}),
        )
    ]
    if len(facts.measured) > len(shown):
        blocks.append(Paragraph(f"{len(facts.measured) - len(shown):,} more are listed in measurements.parquet."))
    blocks.append(
        Paragraph(
            f"“{MISPLACED}”: at most this share of the records lies in another cell of that table in the fitted model "
            "than in the private table, with 95 % confidence for each table by itself. It follows from the noisy "
            "answer alone."
        )
    )
    blocks.append(BulletList(facts.together))
    return Section("What was measured", "Which relationships can this data show at all?", tuple(blocks))


def _columns(one_ways: tuple[OneWay, ...], odd: tuple[str, ...]) -> Section:
    blocks: list[Block] = []
    if odd:
        blocks += [
            Paragraph("Look at this, estimated from the noisy answers:", strong=True),
            BulletList(odd),
        ]
    for one in one_ways:
        caption = f"{one.column} ({one.origin})"
        shown = slice(0, MOST_BARS)
        half = () if one.half_width is None else (one.half_width,) * len(one.values[shown])
        blocks.append(Bars(caption, one.labels[shown], one.values[shown], half))
        if len(one.values) > MOST_BARS:
            blocks.append(Paragraph(f"{len(one.values) - MOST_BARS:,} further codes of {one.column} are not drawn."))
    if not blocks:
        blocks.append(Paragraph("No column was measured on its own."))
    return Section("Columns one by one", "How many rows of each kind, and how far off may that be?", tuple(blocks))


def _relative(measured: tuple[MeasuredTable, ...]) -> Section:
    sizes = (10, 100, 1_000, 10_000, 100_000)
    rows = tuple(
        (one.name, *(f"{100 * one.half_width / size:,.1f} %" for size in sizes))
        for one in measured[:MOST_SECTION_TABLES]
        if one.half_width is not None
    )
    header = ("Table", *(f"count {size:,}" for size in sizes))
    return Section(
        "Noise against the size of a count",
        "From which size on is a count worth reading?",
        (
            Paragraph("Half-width of the 95 % band as a share of a true count of that size, from the noise alone."),
            TextTable(header, rows, numeric=frozenset(header[1:])),
        ),
    )


def _rows(sample: SampleRows) -> Section:
    return Section(
        "Synthetic rows",
        "What do the rows look like?",
        (
            Paragraph(f"The first {len(sample.rows):,} of {sample.total:,} synthetic rows, drawn from a model."),
            *([Paragraph(sample.remark)] if sample.remark else []),
            TextTable(sample.header, sample.rows),
        ),
    )


def _use(copies: str) -> Section:
    return Section(
        "How to use it",
        "How do I read this data?",
        (
            BulletList(
                (
                    "data.parquet holds the synthetic rows (data-1.parquet and so on where there are several copies).",
                    "measurements.parquet holds every noisy answer with its noise scale; prefer it for plain counts.",
                    "schema.yaml says what each column may hold; model/ draws more rows or rows of one group.",
                    "statement.md is the privacy label; manifest.json lists a checksum for every file.",
                )
            ),
            Paragraph(copies),
        ),
    )


def _conclusions() -> Section:
    return Section(
        "What not to conclude",
        "Where would this data mislead me?",
        (
            BulletList(
                (
                    "A row is not a person, and a row that looks like somebody says nothing about them.",
                    "A relationship that was not measured is the method's assumption, not a finding.",
                    "Counts smaller than the noise, and the absence of a rare combination, carry no information.",
                    "Standard errors computed as if the rows were real are too small: noise comes on top.",
                    "A value at the edge of a declared range may stand for values beyond it.",
                )
            ),
        ),
    )


def _spending(statement: Statement) -> Section:
    return Section(
        "Spending",
        "What did each question cost?",
        (TextTable(("Run", "Step", "Cost", "Noise", "Scale"), tuple(charge_rows(statement))[:MOST_SECTION_TABLES]),),
    )


def card_facts(release: Release, data: Path) -> CardFacts:
    """The card's content for a release whose first table of rows is stored in `data`."""
    statement = release.statement
    first = release.fits[0]
    return CardFacts(
        title=f"Synthetic stand-in: {statement.title or 'untitled table'}",
        banner=_banner(release),
        statement=statement,
        measured=tuple(_measured_table(answer, first) for answer in first.transcript),
        together=_together(first),
        one_ways=tuple(_one_way(name, first) for name in first.codec.domain.columns),
        sample=replace(_sample(data, release.config.rows[0]), remark=release.config.remark),
        copies=wording.copies_text(statement.copies, statement.copies_mode),
        footer=f"understudy {statement.versions.get('understudy', '')}, {statement.date}, run {statement.run}.",
        columns=tuple(map(_column_note, release.schema.columns)),
    )


def _column_note(column: Column) -> ColumnNote:
    labels = ""
    if isinstance(column, Category) and (column.meanings or column.ordered):
        shown = [_with_meaning(column, label) for label in column.labels[:MOST_LABELS_NAMED]]
        more = len(column.labels) - len(shown)
        order = "from lowest to highest: " if column.ordered else ""
        labels = f"{order}{'; '.join(shown)}{f'; and {more:,} more' if more else ''}"
    return ColumnNote(column.name, column.title, column.description, getattr(column, "measured_in", ""), labels)


def _with_meaning(column: Column, label: str) -> str:
    """The label and what it means, where the schema says so."""
    meaning = column.meanings.get(label, "") if isinstance(column, Category) else ""
    return f"{label} = {meaning}" if meaning else label


def half_width(distribution: Distribution, cells: int = 1) -> float:
    """Rows within which the noise of a sum of `cells` cells stays with 95 % probability.

    >>> from fractions import Fraction
    >>> half_width(Distribution("laplace", Fraction(10)))
    30.0
    """
    if cells == 1 and distribution.kind == "laplace":
        decay = math.exp(-1.0 / float(distribution.parameter))
        if decay == 0.0:
            return 0.0
        # P(|noise| > k) = 2·decay^(k+1) / (1 + decay) for the discrete Laplace distribution
        return float(max(math.ceil(math.log((1 - COVERAGE) * (1 + decay) / 2) / math.log(decay)) - 1, 0))
    return 1.959964 * math.sqrt(cells * distribution.variance)


def _banner(release: Release) -> str:
    if release.statement.claim is None:
        return f"{release.statement.refused}. Not for release."
    return "PUBLIC. Synthetic data under a differential-privacy guarantee; rows are drawn from a model."


def _measured_table(answer: Answer, fitted: Fitted) -> MeasuredTable:
    if isinstance(answer, Selection | Selections):
        text = wording.choice_text(answer.rate, answer.sensitivity, monotone=answer.monotone, options=answer.options)
        rate = f"exponential mechanism: {text}"
        if isinstance(answer, Selection):
            return MeasuredTable(answer.name, "choice", answer.options, rate, None)
        kind = f"choice among {answer.options:,} in every cell"
        return MeasuredTable(answer.name, kind, int(answer.chosen.size), rate, None)
    if isinstance(answer, Trained):
        scale = answer.distribution.scale / answer.course.clip
        noise = f"discrete Gaussian, σ = {scale:.4g} of the most a unit may add to a step"
        return MeasuredTable(answer.name, f"training of {answer.course.steps:,} steps", answer.values.size, noise, None)
    if isinstance(answer, NoisyScores | Grown):
        return _scores_or_tree(answer)
    letter = "b" if answer.distribution.kind == "laplace" else "σ"
    noise = f"discrete {answer.distribution.kind.capitalize()}, {letter} = {answer.distribution.scale:.4g}"
    if isinstance(answer, Discovery):
        kept = f"{noise}, labels with at least {answer.threshold:,}"
        return MeasuredTable(
            answer.name, "discovery of labels", len(answer.labels), kept, half_width(answer.distribution)
        )
    cells = math.prod(answer.shape)
    if isinstance(answer, SparseMeasurement):
        kept = f"{noise}, cells with at least {answer.threshold:,} kept"
        return MeasuredTable(answer.name, "sparse table", cells, kept, half_width(answer.distribution))
    return MeasuredTable(
        answer.name, "table", cells, noise, half_width(answer.distribution), _misplaced(answer, fitted)
    )


def _scores_or_tree(answer: NoisyScores | Grown) -> MeasuredTable:
    """Scores are not counts, and a tree's noise is in no released number: neither has an error bar in rows."""
    letter = "b" if answer.distribution.kind == "laplace" else "σ"
    if isinstance(answer, NoisyScores):
        kind, scale = answer.distribution.kind.capitalize(), answer.distribution.scale / SCORE_UNIT
        noise = f"discrete {kind}, {letter} = {scale:.4g} of a score"
        return MeasuredTable(answer.name, "scores of options", int(answer.values.size), noise, None)
    scale, bias = answer.distribution.scale / GROWTH_UNIT, answer.bias / GROWTH_UNIT
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
    return misplaced_share(answer.values, model, answer.distribution, COVERAGE)


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
    column = fitted.codec.schema.column(fitted.codec.origin(name))
    labels = tuple(_with_meaning(column, fitted.codec.describe(name, code)) for code in range(shown))
    for answer in fitted.transcript.of(Measurement):
        if answer.columns == (name,) and answer.shape == (size,):
            values = tuple(float(value) for value in answer.values[:shown])
            return OneWay(
                name, labels, values, half_width(answer.distribution), "noisy counts as measured, 95 % error bars"
            )
    sums = [
        half_width(answer.distribution, math.prod(answer.shape) // size)
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
