"""The public card of a release: what was promised, what was measured, how noisy it is, how to use it.

Built from what is already in the release folder; nothing on it was computed from private rows.
"""

from dataclasses import dataclass

from understudy.report.page import Bars, Block, BulletList, Page, Paragraph, Section, TextTable

MOST_BARS = 24
MOST_SECTION_TABLES = 200


@dataclass(frozen=True, slots=True)
class PrivacyFacts:
    """The statement in words: label → text, the charges, and the lists that go with it."""

    promise: str
    facts: tuple[tuple[str, str], ...]
    odds: str
    charges: tuple[tuple[str, ...], ...]
    not_protected: tuple[str, ...]
    left_out: tuple[str, ...]
    odd: tuple[str, ...] = ()
    """Columns of which strikingly much could not be read, in sentences."""


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
    privacy: PrivacyFacts
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
            _promise(facts.privacy),
            *_codebook(facts.columns),
            _measured(facts),
            _columns(facts.one_ways, facts.privacy.odd),
            _relative(facts.measured),
            _rows(facts.sample),
            _use(facts.copies),
            _conclusions(),
            _spending(facts.privacy),
        ),
        footer=facts.footer,
    )


def _promise(privacy: PrivacyFacts) -> Section:
    blocks: list[Block] = [
        Paragraph(privacy.promise, strong=True),
        Paragraph(privacy.odds),
        TextTable(("Fact", "Value"), privacy.facts),
        Paragraph("Not protected, or outside the promise:"),
        BulletList(privacy.not_protected),
    ]
    if privacy.left_out:
        blocks.append(Paragraph("Columns of the table that the schema does not declare, and that were left out:"))
        blocks.append(BulletList(privacy.left_out))
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


def _spending(privacy: PrivacyFacts) -> Section:
    return Section(
        "Spending",
        "What did each question cost?",
        (TextTable(("Run", "Step", "Cost", "Noise", "Scale"), privacy.charges[:MOST_SECTION_TABLES]),),
    )
