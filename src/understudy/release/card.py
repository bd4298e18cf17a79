"""The public card of a release: what it is, who may use it for what, what it promises, what it holds and how exactly.

Built from what is already in the release folder; nothing on it was computed from private rows. Its error bars follow
from the noise that was added, which is public. Pictures come first; facts for auditors are folded at the end.
"""

import base64
import csv
import io
import math
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from understudy.charts import Amounts, Matrix, MatrixCell, SharesChart, percent
from understudy.domain import (
    GROWTH_UNIT,
    SCORE_UNIT,
    Answer,
    Discovery,
    Distribution,
    Grown,
    HeldBack,
    Measurement,
    NoisyScores,
    ResidualTable,
    Selection,
    Selections,
    SparseMeasurement,
    Trained,
)
from understudy.errors import ResourceError
from understudy.models.model import misplaced_share
from understudy.notebook import counted
from understudy.release import wording
from understudy.release.check import Distance, Judged
from understudy.release.release import (
    Fitted,
    Release,
)
from understudy.release.statement import COMPARED, Statement, charge_rows, charges_of_a_kind
from understudy.release.statistics import PairTable, tables_of
from understudy.report import (
    Beside,
    Block,
    BulletList,
    Code,
    Figure,
    FoldedBlocks,
    Gallery,
    KeyFacts,
    Light,
    Link,
    Page,
    Paragraph,
    Pictures,
    Section,
    TextTable,
    Verdict,
    Verdicts,
    long_gallery,
    section_pictures,
)
from understudy.schema import Category, Column
from understudy.schema.columns import NumberColumn

SAMPLE_ROWS = 10
MOST_PAIRS_NAMED = 12
MOST_LABELS_NAMED = 50
COVERAGE = 0.95
MOST_CODES = 10_000
DRAWN_ROWS = 20_000
MOST_CELLS = 2_000_000


MOST_SECTION_TABLES = 200
MOST_FIGURES = 30
MOST_NUMBERS = 60
"""Labels of a column whose numbers the page itself holds; measurements.parquet has all."""


MISPLACED = "Misplaced at most"
MEASURED_TOGETHER = "Measured together: "


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
class MeasuredPair:
    """Two columns that some question looked at together, and how far off the model can be on them, if that is known."""

    first: str
    second: str
    misplaced: float | None


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
    bins: int = 0
    """How many of the codes, the first ones, are bins of numbers."""
    unreadable: int | None = None
    """The code of values that could not be read, if it is among them."""

    @property
    def hidden(self) -> int | None:
        """The code of values that could not be read, where the noise shows no sign of any."""
        if self.unreadable is None or self.values[self.unreadable] > max(self.half_width or 0.0, 0.5):
            return None
        return self.unreadable


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
    pairs: tuple[MeasuredPair, ...] = ()
    several: bool = False
    """Whether there are several copies, and so several files of rows."""


def build_card(facts: CardFacts) -> Page:
    """The card as a page, ready to be rendered."""
    return Page(
        title=facts.title,
        banner=facts.banner,
        sections=(
            _what(facts),
            _promise(facts.statement),
            *_quality(facts),
            _columns(facts),
            *_pairs(facts),
            _use(facts),
            _rows(facts.sample),
            _technical(facts),
        ),
        footer=facts.footer,
    )


GOOD_FOR = (
    "Learning what the table is like: its columns, their values, the relations that were measured.",
    "Writing and testing programs, teaching, planning an analysis before applying for the real table.",
    "Answers about the columns and pairs that are shown as measured below, within their error bars.",
)
NOT_FOR = (
    "A row is not a person; one that looks like somebody says nothing about them.",
    "A relation that was not measured is the method's assumption, not a finding.",
    "Counts smaller than the noise, and rare combinations that do not occur, say nothing.",
    "Standard errors computed as if the rows were real are too small: noise comes on top.",
    "A value at the edge of a declared range may stand for values beyond it.",
)


def _what(facts: CardFacts) -> Section:
    statement = facts.statement
    claim = statement.claim
    amount = "no bound" if claim is None else f"ε = {claim[0]:.6g}" + (f", δ = {claim[1]:.6g}" if claim[1] else "")
    known = (
        ("Synthetic rows", f"{facts.sample.total:,}{' in each copy' if facts.several else ''}"),
        ("Columns", f"{len(facts.one_ways):,}"),
        ("Method", statement.method),
        ("Privacy loss at most", amount),
    )
    bounded = "" if claim else f" {statement.odds}"
    blocks: tuple[Block, ...] = (
        KeyFacts(known),
        Paragraph(
            f"A model was fitted to noisy answers; no row of the private table was copied.{bounded}", strong=True
        ),
        Beside(
            (
                (Paragraph("Good for", strong=True), BulletList(GOOD_FOR)),
                (Paragraph("Not to be concluded", strong=True), BulletList(NOT_FOR)),
            )
        ),
    )
    return Section("What this is", "Who may use it, for what, and for what not?", blocks, "what")


def _promise(statement: Statement) -> Section:
    who = Paragraph(f"Who is protected: {wording.unit_text(statement.unit)}")
    blocks: list[Block] = [
        Beside(((Paragraph(statement.odds, strong=True),), (Paragraph(statement.promise), who))),
        FoldedBlocks("Not protected, or outside the promise", (BulletList(statement.not_protected),)),
    ]
    if statement.left_out:
        shown = statement.left_out[:MOST_SECTION_TABLES]
        more = len(statement.left_out) - len(shown)
        names = (*shown, *((f"and {more:,} more, in statement.json",) if more else ()))
        title = (
            f"Columns of the table that were left out: {len(statement.left_out):,}, which the schema does not declare"
        )
        blocks.append(FoldedBlocks(title, (BulletList(names),)))
    return Section("Privacy", "What is promised, to whom, and what is not?", tuple(blocks), "privacy")


_LIGHTS: dict[str, Light] = {"pass": "good", "fail": "poor", "undecided": "unknown"}


def _quality(facts: CardFacts) -> tuple[Section, ...]:
    """How far the rows are from the table, if a part of the budget was held back to say so: verdicts first."""
    check = facts.statement.check
    if check is None:
        return ()
    verdicts = tuple(
        Verdict(
            one.criterion.name or _capital(one.criterion.in_percent), _LIGHTS[one.outcome], one.outcome, _found(one)
        )
        for one in check.verdicts
    )
    blocks: list[Block] = [Verdicts(verdicts[:MOST_SECTION_TABLES])] if verdicts else []
    if "undecided" in {one.outcome for one in check.verdicts}:
        blocks.append(Paragraph("Undecided: the interval lies on both sides of the limit, so the noise hides it."))
    blocks.append(Paragraph(COMPARED))
    ordered = sorted(check.distances, key=lambda one: -one.lower)
    ones = [one for one in ordered if len(one.columns) == 1]
    more = [one for one in ordered if len(one.columns) > 1]
    for title, listed in (("Columns by themselves", ones), ("Pairs of columns", more)):
        if listed:
            furthest = max(listed, key=lambda one: one.upper)
            summary = f"{title}: largest upper bound {100 * furthest.upper:.1f} % ({' × '.join(furthest.columns)})."
            table = _distances(title, listed, several=facts.several)
            blocks += [Paragraph(summary, strong=True), FoldedBlocks(counted(len(listed), "distance"), (table,))]
    said = f"{100 * check.share:.4g} % of the budget was held back for this. The tables to compare were fixed before."
    blocks.append(Paragraph(said))
    return (Section("Quality", "How far are these rows from the private table?", tuple(blocks), "quality"),)


def _found(one: Judged) -> str:
    where = f" Furthest away: {one.decided_by}." if one.decided_by and one.criterion.kind != "share_of" else ""
    asked = f"Asked: {one.criterion.in_percent}. " if one.criterion.name else ""
    return f"{asked}{_capital(one.found)}.{where}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _distances(title: str, listed: list[Distance], *, several: bool) -> TextTable:
    shown = listed[:MOST_SECTION_TABLES]
    rows = tuple(
        (
            " × ".join(one.columns),
            *([str(one.copy)] if several else []),
            f"{one.cells:,}",
            f"{100 * one.lower:.1f} %",
            f"{100 * one.upper:.1f} %",
        )
        for one in shown
    )
    header = ("Table", *(["Copy"] if several else []), "Cells", "At least", "At most")
    more = "" if len(shown) == len(listed) else f" {len(listed) - len(shown):,} more are in statement.json."
    return TextTable(
        header, rows, caption=f"{title}: distance from the private table.{more}", numeric=frozenset(header[1:])
    )


def _columns(facts: CardFacts) -> Section:
    """Every column with what it holds and its counts."""
    notes = {note.column: note for note in facts.columns}
    blocks: list[Block] = []
    usual = max([one.origin for one in facts.one_ways], key=[one.origin for one in facts.one_ways].count, default="")
    figures = tuple(_column(one, notes.get(one.column), usual) for one in facts.one_ways)
    if figures:
        numbers = _as_data(facts.one_ways)
        told = f"{_capital(usual)}, unless said otherwise. Each thin line covers 95 % of the noise of its bar."
        told += " Values that could not be read are shown where the noise does not hide them."
        link = Link("Numbers of these pictures (CSV)", numbers)
        blocks += [Paragraph(told), *long_gallery(figures[:MOST_FIGURES]), link]
    if len(figures) > MOST_FIGURES:
        blocks.append(FoldedBlocks(f"{len(figures) - MOST_FIGURES:,} more columns", (Gallery(figures[MOST_FIGURES:]),)))
    odd = tuple(one.text for one in facts.statement.odd)
    if odd:
        blocks.append(Paragraph("Please check the following, estimated from the noisy answers:", strong=True))
        blocks.append(BulletList(odd[:MOST_SECTION_TABLES]))
    if not blocks:
        blocks.append(Paragraph("There are no columns."))
    return Section(
        "Columns", "What does each column hold, and how far off may the counts be?", tuple(blocks), "columns"
    )


def _column(one: OneWay, note: ColumnNote | None, usual: str) -> Figure:
    """A column with what the schema says of it, and where its counts come from if that is not the usual."""
    half = () if one.half_width is None else (one.half_width,) * len(one.values)
    kept = [place for place in range(len(one.labels)) if place != one.hidden]
    labels, values = tuple(one.labels[place] for place in kept), tuple(one.values[place] for place in kept)
    half = half[: len(values)]
    chart = SharesChart(one.column, labels, (Amounts("made", "rows", values, half),), one.bins, "count")
    words = [] if note is None else [note.title, note.description, note.measured_in and f"In {note.measured_in}"]
    words += [] if note is None or not note.labels else [f"Labels {note.labels}"]
    words += [] if one.origin == usual else [_capital(one.origin)]
    return Figure(chart, remark=" ".join(f"{word.rstrip('.')}." for word in words if word))


def _as_data(one_ways: tuple[OneWay, ...]) -> str:
    """The numbers of the pictures as a file within the page."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(("column", "label", "count", "half_width_95"))
    for one in one_ways:
        half = "" if one.half_width is None else f"{one.half_width:.10g}"
        for label, value in zip(one.labels[:MOST_NUMBERS], one.values[:MOST_NUMBERS], strict=True):
            writer.writerow((one.column, label, f"{value:.10g}", half))
    return "data:text/csv;base64," + base64.b64encode(file.getvalue().encode("utf-8", "backslashreplace")).decode(
        "ascii"
    )


def _pairs(facts: CardFacts) -> tuple[Section, ...]:
    """Which pairs were measured, and how well the model follows them."""
    names = tuple(one.column for one in facts.one_ways)
    place = {name: number for number, name in enumerate(names)}
    cells = []
    for pair in facts.pairs:
        first, second = sorted((pair.first, pair.second), key=place.__getitem__)
        known = "no bound is known" if pair.misplaced is None else f"at most {percent(pair.misplaced)} misplaced"
        cells.append(MatrixCell(place[second], place[first], pair.misplaced, f"{pair.first} × {pair.second}: {known}"))
    if not cells:
        blocks: list[Block] = [BulletList(facts.together)]
    else:
        top = max([pair.misplaced or 0.0 for pair in facts.pairs], default=0.0) or 1.0
        summary = f"{len(cells):,} of {math.comb(len(names), 2):,} pairs of columns were measured together."
        chart = Matrix("Pairs measured together", names, names, tuple(cells), top, summary=summary, unit="share")
        remark = (
            "Blank cells were never measured together; framed cells were, but no bound is known. Shades show the "
            "largest share of records that the model may put into a wrong cell of the pair, with 95 % confidence."
        )
        others = [line for line in facts.together if not line.startswith(MEASURED_TOGETHER)]
        blocks = [Paragraph(" ".join(others)), Figure(chart, remark=remark), _bounds(facts.pairs)]
    return (
        Section("Relations", "Which relations can this data show at all, and how well?", tuple(blocks), "relations"),
    )


def _bounds(pairs: tuple[MeasuredPair, ...]) -> FoldedBlocks:
    """The same as a table, the worst first."""
    order = sorted(pairs, key=lambda pair: -2.0 if pair.misplaced is None else -pair.misplaced)
    rows = tuple(
        (f"{pair.first} × {pair.second}", "not known" if pair.misplaced is None else percent(pair.misplaced))
        for pair in order[:MOST_SECTION_TABLES]
    )
    more = "" if len(rows) == len(order) else f" Only the first {len(rows)} of {len(order):,} are listed."
    table = TextTable(("Pair", MISPLACED), rows, f"The least certain pairs come first.{more}", frozenset({MISPLACED}))
    return FoldedBlocks("The same as a table", (table,))


def _technical(facts: CardFacts) -> Section:
    """Everything an auditor asks for, folded."""
    statement = facts.statement
    kinds = charges_of_a_kind(statement)
    header = ("Queries", "Number", "Cost together", "Noise", "Scale")
    rows = tuple(charge_rows(statement))
    spent: list[Block] = [TextTable(header, tuple(kinds), numeric=frozenset({"Number"}))]
    spent.append(TextTable(("Run", "Step", "Cost", "Noise", "Scale"), rows[:MOST_SECTION_TABLES]))
    if len(rows) > MOST_SECTION_TABLES:
        spent.append(Paragraph(f"{len(rows) - MOST_SECTION_TABLES:,} more are listed in statement.json."))
    blocks = (
        FoldedBlocks("Facts of the statement", (TextTable(("Fact", "Value"), statement.facts()),)),
        FoldedBlocks(f"All {len(facts.measured):,} queries put to the private table", _measured(facts)),
        FoldedBlocks("How large must a count be to be worth reading?", _relative(facts.measured)),
        FoldedBlocks(f"What the {len(rows):,} queries cost", tuple(spent)),
    )
    return Section("For auditors", "What exactly was asked, with what noise and at what cost?", blocks, "technical")


def _measured(facts: CardFacts) -> tuple[Block, ...]:
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
            caption="These are all the queries put to the private table; nothing else in it was looked at.",
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
    return tuple(blocks)


def _relative(measured: tuple[MeasuredTable, ...]) -> tuple[Block, ...]:
    sizes = (10, 100, 1_000, 10_000, 100_000)
    rows = tuple(
        (one.name, *(f"{100 * one.half_width / size:,.1f} %" for size in sizes))
        for one in measured[:MOST_SECTION_TABLES]
        if one.half_width is not None
    )
    header = ("Table", *(f"count {size:,}" for size in sizes))
    return (
        Paragraph("Half-width of the 95 % band as a share of a true count of that size, from the noise alone."),
        TextTable(header, rows, numeric=frozenset(header[1:])),
    )


def _rows(sample: SampleRows) -> Section:
    return Section(
        "Synthetic rows",
        "What do the rows look like?",
        (
            Paragraph(f"The first {len(sample.rows):,} of {sample.total:,} synthetic rows, drawn from a model."),
            *([Paragraph(sample.remark)] if sample.remark else []),
            TextTable(sample.header, sample.rows, whole=_short(sample)),
        ),
    )


INTERVALS_IN = "Python (understudy)"
INTERVALS = (
    "# numbers with honest intervals, from the noisy answers instead of the rows\n"
    "import understudy as us\n\n"
    'release = us.Release.load("FOLDER")\nprint(us.pool(release, where={{"{column}": "{label}"}}))'
)
MOST_LETTERS = 40
"""Letters of the longest text up to which synthetic rows stand on one line each."""
PANDAS, R, STATA = (
    'import pandas as pd\n\nrows = pd.read_parquet("{file}")\nrows.describe(include="all")',
    'library(arrow)\n\nrows <- read_parquet("{file}")\nsummary(rows)',
    "* in a terminal: understudy sample\n*     FOLDER -o rows.dta\nuse rows.dta, clear\ndescribe",
)


def _short(sample: SampleRows) -> bool:
    return max((len(text) for row in (sample.header, *sample.rows) for text in row), default=0) <= MOST_LETTERS


def _use(facts: CardFacts) -> Section:
    file = "data-1.parquet" if facts.several else "data.parquet"
    snippets = [("Python (pandas)", PANDAS), ("R", R), ("Stata", STATA)]
    files = (
        f"{file} holds the synthetic rows{', data-2.parquet and so on further copies' if facts.several else ''}.",
        "measurements.parquet holds every noisy answer with its noise scale; prefer it for plain counts.",
        "schema.yaml says what each column may hold; model/ draws more rows or rows of one group.",
        "statement.md is the privacy label; manifest.json lists a checksum for every file.",
    )
    blocks: tuple[Block, ...] = (
        Beside(tuple((Code(language, text.format(file=file)),) for language, text in snippets)),
        _intervals(facts),
        BulletList(files),
        Paragraph(facts.copies),
    )
    return Section("How to use it", "How do I read this data?", blocks, "use")


def _intervals(facts: CardFacts) -> Code:
    """How to ask the noisy answers, by the example of the first column with labels that can be typed."""
    for one in facts.one_ways:
        typed = f"{one.column}{one.labels[0] if one.labels else ''}"
        if one.half_width is not None and one.labels and not one.bins and typed.replace("_", "").isalnum():
            return Code(INTERVALS_IN, INTERVALS.format(column=one.column, label=one.labels[0]))
    return Code(INTERVALS_IN, INTERVALS.format(column="COLUMN", label="LABEL"))


def card_pictures(release: Release, what: str) -> Pictures:
    """The charts of the card of a release: "columns", or "relations" (pairs measured together); no rows are drawn."""
    statement, first = release.statement, release.fits[0]
    facts = CardFacts(
        title="",
        banner="",
        statement=statement,
        measured=(),
        together=_together(first),
        one_ways=_one_ways(first),
        sample=SampleRows((), (), 0),
        copies="",
        footer="",
        columns=tuple(map(_column_note, release.schema.columns)),
        pairs=_measured_pairs(first),
    )
    return section_pictures(Page("", "", (_columns(facts), *_pairs(facts))), "relations" if what == "pairs" else what)


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
        one_ways=_one_ways(first),
        sample=replace(_sample(data, release.config.rows[0]), remark=release.config.remark),
        copies=wording.copies_text(statement.copies, statement.copies_mode),
        footer=f"understudy {statement.versions.get('understudy', '')}, {statement.date}, run {statement.run}.",
        columns=tuple(map(_column_note, release.schema.columns)),
        pairs=_measured_pairs(first),
        several=statement.copies > 1,
    )


def _measured_pairs(fitted: Fitted) -> tuple[MeasuredPair, ...]:
    """Every pair of columns in some measured table, with the best bound that such a table gives."""
    found: dict[tuple[str, str], list[float]] = {}
    together = [one for _, one in tables_of(fitted) if isinstance(one, PairTable)]
    for answer in (*fitted.transcript, *together):
        if isinstance(answer, Measurement | SparseMeasurement | ResidualTable | PairTable):
            bound = _misplaced(answer, fitted) if isinstance(answer, Measurement | PairTable) else None
            known = [name for name in fitted.codec.domain.columns if name in answer.columns]
            for pair in combinations(known, 2):
                found.setdefault(pair, []).extend([] if bound is None else [bound])
    return tuple(MeasuredPair(*pair, min(bounds, default=None)) for pair, bounds in found.items())


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
        rate = f"chose 1 of {answer.options:,}, better ones more likely; rate and sensitivity are in statement.json"
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
    if isinstance(answer, ResidualTable):
        noise = f"discrete Gaussian, σ = {math.sqrt(answer.variance):.4g}, without row and column sums"
        return MeasuredTable(answer.name, "residuals of a table", math.prod(answer.shape), noise, None)
    letter = "b" if answer.distribution.kind == "laplace" else "σ"
    noise = f"discrete {answer.distribution.kind.capitalize()}, {letter} = {answer.distribution.scale:.4g}"
    if isinstance(answer, Discovery):
        kept = f"{noise}, labels with at least {answer.threshold:,}"
        return MeasuredTable(
            answer.name, "discovery of labels", len(answer.labels), kept, half_width(answer.distribution)
        )
    cells = math.prod(answer.shape)
    if isinstance(answer, HeldBack):
        return MeasuredTable(answer.name, "held back for the check", cells, noise, half_width(answer.distribution))
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


def _misplaced(answer: Measurement | PairTable, fitted: Fitted) -> float | None:
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
    if isinstance(answer, PairTable):
        return answer.misplaced(model, COVERAGE)
    return misplaced_share(answer.values, model, answer.distribution, COVERAGE)


def _together(fitted: Fitted) -> tuple[str, ...]:
    """Which pairs of columns some question looked at together."""
    names = fitted.codec.domain.columns
    if fitted.transcript.of(Trained):
        return (
            "All columns were looked at together, in training; what was learned about a relationship has no error bar.",
        )
    tables = [
        set(answer.columns)
        for answer in fitted.transcript
        if isinstance(answer, Measurement | SparseMeasurement | ResidualTable)
    ]
    seen = {pair for table in tables for pair in combinations(sorted(table), 2)}
    pairs = math.comb(len(names), 2)
    lines = [f"{len(seen):,} of {pairs:,} pairs of columns were measured together."]
    if 0 < len(seen) < pairs:
        shown = [f"{first} with {second}" for first, second in sorted(seen)[:MOST_PAIRS_NAMED]]
        more = len(seen) - len(shown)
        lines.append(MEASURED_TOGETHER + "; ".join(shown) + (f"; and {more:,} more." if more else "."))
    if len(seen) < pairs:
        lines.append("Any other relationship between columns follows from the method's assumptions, not from data.")
    unmeasured = sorted(set(names) - set().union(*tables)) if tables else sorted(names)
    if unmeasured:
        lines.append("In no query at all: " + ", ".join(unmeasured) + ".")
    return tuple(lines)


def _one_ways(fitted: Fitted) -> tuple[OneWay, ...]:
    codec = fitted.codec
    found = ((_one_way(name, fitted), codec.unreadable_code(name)) for name in codec.domain.columns)
    return tuple(replace(one, unreadable=code if code and code < len(one.labels) else None) for one, code in found)


def _one_way(name: str, fitted: Fitted) -> OneWay:
    """A column's counts: the noisy answer where it was asked on its own, else what the model makes of it."""
    clique = fitted.codec.domain.clique([name])
    size = fitted.codec.domain.sizes[name]
    shown = min(size, MOST_CODES)
    column = fitted.codec.schema.column(fitted.codec.origin(name))
    labels = tuple(_with_meaning(column, fitted.codec.describe(name, code)) for code in range(shown))
    bins = min(fitted.codec.layout(name).regular, shown) if isinstance(column, NumberColumn) else 0
    for answer in fitted.transcript.of(Measurement):
        if answer.columns == (name,) and answer.shape == (size,):
            values = tuple(float(value) for value in answer.values[:shown])
            return OneWay(name, labels, values, half_width(answer.distribution), "noisy counts as measured", bins)
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
        origin = f"counts of {DRAWN_ROWS:,} rows drawn, scaled"
        return OneWay(name, labels, tuple(map(float, counts)), None, origin, bins)
    if not sums:
        origin = "counts of the fitted model; no error bar is known in closed form"
        return OneWay(name, labels, values, None, origin, bins)
    origin = "counts of the fitted model; error bars of sums of noisy cells"
    return OneWay(name, labels, values, min(sums), origin, bins)


def _sample(data: Path, total: int) -> SampleRows:
    with pq.ParquetFile(data) as stored:
        names = tuple(stored.schema_arrow.names)
        batch = next(stored.iter_batches(batch_size=SAMPLE_ROWS), None)
    rows = [] if batch is None else batch.to_pylist()
    texts = tuple(tuple("" if row[name] is None else str(row[name]) for name in names) for row in rows)
    return SampleRows(names, texts, total)
