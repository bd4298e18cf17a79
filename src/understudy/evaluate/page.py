"""The confidential report: what an evaluation found, as a page. Every score beside its yardstick, the worst first."""

from collections.abc import Sequence

from understudy.evaluate.evaluation import NOTICE, YARDSTICK, Evaluation
from understudy.evaluate.score import Detail, Result
from understudy.report.page import Block, Items, Page, Paragraph, Points, Section, Table

__all__ = ["build_report"]

MOST_ROWS = 25
MOST_POINTS = 1500
MOST_FACTS = 12
_BETTER = {"lower": "lower", "higher": "higher", "none": "–"}


def build_report(evaluation: Evaluation) -> Page:
    """The evaluation as a page, ready to be rendered."""
    return Page(
        title=f"Comparison with the real table{': ' + evaluation.title if evaluation.title else ''}",
        banner=NOTICE,
        sections=(_summary(evaluation), *(_metric(result) for result in evaluation.results), _how(evaluation)),
        footer="Every number, uncut, is beside this page as JSON and CSV. Same seed, same numbers.",
        confidential=True,
    )


def _summary(evaluation: Evaluation) -> Section:
    rows = tuple(
        (
            result.question,
            score.reading,
            f"{result.metric}: {score.name}",
            _number(score.value),
            _number(score.yardstick),
        )
        for result in evaluation.results
        for score in result.scores[:1]
    )
    header = ("Question", "Reading", "Score", "Value", "Yardstick")
    blocks: list[Block] = [
        *_unread(evaluation),
        Table(header, rows, "The first score of every metric.", frozenset({"Value", "Yardstick"})),
        Paragraph(YARDSTICK),
    ]
    worst = _worst(evaluation.results)
    if worst:
        blocks += [Paragraph("Where the stand-in is furthest off:", strong=True), Items(worst)]
    return Section("In short", "Is the stand-in good enough, and for what?", tuple(blocks))


def _unread(evaluation: Evaluation) -> list[Block]:
    """What the schema cannot read, before any score."""
    said = tuple(sentence for one in evaluation.unread for sentence in one.sentences())
    if not said:
        return []
    return [Paragraph("The schema does not fit all of the values:", strong=True), Items(said)]


def _worst(results: Sequence[Result]) -> tuple[str, ...]:
    """The first row of what is sorted worst first, in words, of every metric that judges and finds a difference."""
    found = []
    for result in results:
        score = result.headline
        if score.value is None or score.value == score.best or score.direction == "none":
            continue
        for detail in result.details[:1]:
            for record in detail.records(1):
                if len(record) > MOST_FACTS:  # a table of variants, not of places
                    continue
                words = ", ".join(f"{name} {_cell(value)}" for name, value in record.items() if value is not None)
                found.append(f"{result.metric}: {words}")
    return tuple(found)


def _metric(result: Result) -> Section:
    header = ("Score", "Value", "Yardstick", "Better", "Range", "Meaning")
    rows = tuple(
        (
            score.name,
            _number(score.value),
            _number(score.yardstick),
            _BETTER[score.direction],
            f"{_bound(score.lowest)} to {_bound(score.highest)}",
            score.meaning if score.value is not None else f"{score.meaning} Not computed: {score.why_not}",
        )
        for score in result.scores
    )
    blocks: list[Block] = [Table(header, rows, numeric=frozenset({"Value", "Yardstick"}))]
    for detail in result.details:
        blocks += _detail(detail)
    if result.notes:
        blocks.append(Items(result.notes))
    return Section(result.metric, result.question, tuple(blocks))


def _detail(detail: Detail) -> list[Block]:
    blocks: list[Block] = []
    if {"real", "synthetic"} <= set(detail.table.column_names):
        pairs = [(row["real"], row["synthetic"]) for row in detail.records(MOST_POINTS)]
        points = tuple(
            (float(real), float(synthetic))
            for real, synthetic in pairs
            if isinstance(real, int | float) and isinstance(synthetic, int | float)
        )
        if len(points) > 2:
            cut = detail.table.num_rows > MOST_POINTS
            drawn = f" Drawn: the first {MOST_POINTS:,} of {detail.table.num_rows:,}." if cut else ""
            blocks.append(Points(detail.caption + drawn, "real", "synthetic", points))
    shown, rows = detail.records(MOST_ROWS), detail.table.num_rows
    if not shown:
        return blocks
    header = tuple(detail.table.column_names)
    numeric = frozenset(name for name in header if isinstance(shown[0][name], int | float))
    caption = detail.caption if rows <= MOST_ROWS else f"{detail.caption} The first {MOST_ROWS} of {rows:,}."
    body = tuple(tuple(_cell(row[name]) for name in header) for row in shown)
    return [*blocks, Table(header, body, caption, numeric)]


def _how(evaluation: Evaluation) -> Section:
    copies = ", ".join(f"{rows:,}" for rows in evaluation.synthetic_rows)
    left_out = tuple(
        f"Left out, as it was not asked for by name: {name} ({reason})." for name, reason in evaluation.left_out.items()
    )
    items = (
        f"Rows: {evaluation.real_rows:,} real; {copies} synthetic.",
        f"Columns compared: {len(evaluation.columns)}.",
        f"Method: {evaluation.method or 'not known'}. {evaluation.promise}".strip(),
        f"Seed: {evaluation.seed}.",
    )
    return Section("How it was done", "What was compared with what?", (Items((*items, *left_out)),))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.5g}"


def _bound(value: float | None) -> str:
    return "any" if value is None else f"{value:,g}"


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.5g}"
    if isinstance(value, list | tuple):
        return " × ".join(str(part) for part in value)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
