"""The page of a study: what to use and why, error against ε with intervals, ranks, time and memory, what is missing.

Plain data in, plain data out. It can be written at any moment of a study, and says how far the study has come. Nobody
is recommended at an ε before all runs there have ended.
"""

import itertools
import math
from collections.abc import Sequence
from importlib.metadata import version
from typing import Literal

from understudy.charts import CurveNames, CurvePanel, Series
from understudy.compare.study import Study, StudySettings
from understudy.compare.summary import (
    MeanScore,
    Recommendation,
    agreements,
    gaps,
    headlines,
    is_running,
    judged_by,
    judging,
    levels,
    places,
    recommend,
    resources,
    said,
    spelled,
)
from understudy.report import (
    Block,
    BulletList,
    Figure,
    FoldedBlocks,
    Gallery,
    Light,
    Link,
    Page,
    Paragraph,
    Section,
    TextTable,
    Verdict,
    Verdicts,
)

CONFIDENTIAL = "NOT FOR RELEASE. Computed from the private table; no privacy guarantee covers these numbers."
PUBLIC = "Computed from a public table of the same schema: no private row was read and no budget was spent."
SIDE_STEP = 0.02
"""How far apart methods are drawn at one ε, as a share of the axis."""
DECADES = 30
"""Errors that lie further apart than this, largest over smallest, are drawn on a logarithmic axis."""
MOST_HEADLINES = 12
_BETTER = {"lower": "lower is better", "higher": "higher is better", "none": "descriptive only"}


def build_page(study: Study) -> Page:
    """The whole study as a page, as far as it has come."""
    found = levels(study)
    return Page(
        title=f"Comparison of methods{': ' + study.title if study.title else ''}",
        banner=CONFIDENTIAL if study.confidential else PUBLIC,
        sections=(
            _recommended(study),
            *_errors(study, found),
            *_ranked(study, found),
            *_resources(study),
            *_unfinished(study),
            *_without_number(study),
            _how(study),
        ),
        footer="Every score of every run is in results.parquet beside this page, means and places in CSV files.",
        confidential=study.confidential,
    )


def _recommended(study: Study) -> Section:
    found = levels(study)
    blocks: list[Block] = [*_standing(study), Verdicts(tuple(_card(study, one, found) for one in recommend(study)))]
    if headlines(study):
        blocks.append(Paragraph(judged_by(study)))
    if study.confidential:
        warning = "A method chosen by scores on the private table is itself a release of information about it."
        blocks.append(Paragraph(warning + " Use a public proxy, or pay for the choice."))
    return Section("Recommendation", "Which method should be used, at which ε?", tuple(blocks))


def _standing(study: Study) -> list[Block]:
    """How far the study has come, if it is not finished."""
    done, every = len(study.runs), len(study.settings.cells)
    if done == every:
        return []
    text = (
        f"{done:,} of {every:,} runs are done. This page is written anew while the study runs: reload it to see more. "
    )
    return [Paragraph(text + "If the study was stopped, run the same command again to continue it.", strong=True)]


def _card(study: Study, one: Recommendation, found: Sequence[MeanScore]) -> Verdict:
    light: Light = "good" if one.candidate else "fair" if one.tied else "unknown"
    answer = _capital(one.answer) if one.tied else one.answer
    if is_running(study, one.epsilon):
        answer = "Not known yet"
    grounds = f"{one.grounds} {_how_good(study, one, found)}".strip()
    return Verdict(f"At ε = {spelled(one.epsilon)}", light, answer, grounds, None, "ranks" if study.runs else "")


def _how_good(study: Study, one: Recommendation, found: Sequence[MeanScore]) -> str:
    """The first score of whoever is named beside two real halves: the best of several may still be of no use."""
    best = one.candidate or (one.tied[0] if one.tied else "")
    for name in headlines(study)[:1]:
        for level in found:
            if (level.name, level.candidate, level.epsilon) == (
                name,
                best,
                one.epsilon,
            ) and level.yardstick is not None:
                return (
                    f"“{_capital(said(name))}” of {best}: {level.mean:.3g}; of two real halves: {level.yardstick:.3g}."
                )
    return ""


def _errors(study: Study, found: Sequence[MeanScore]) -> tuple[Section, ...]:
    """The first score of every metric as small pictures, the others folded, and the numbers of all."""
    names = list(dict.fromkeys(level.name for level in found))
    if not names:
        return ()
    first = [name for name in headlines(study) if name in names][:MOST_HEADLINES] or names[:1]
    rest = [name for name in names if name not in first]
    blocks: list[Block] = [Paragraph(_how_to_read(study)), *_legend(study)]
    blocks += [Gallery(tuple(_panel(study, found, name) for name in first)), Link("All means (CSV)", "means.csv")]
    if rest:
        more = Gallery(tuple(_panel(study, found, name) for name in rest))
        blocks.append(FoldedBlocks(f"{_counted(len(rest), 'more score', 'more scores')}", (more,)))
    tables = tuple(_numbers(study, [level for level in found if level.name == name]) for name in names)
    blocks.append(FoldedBlocks("The numbers of all pictures", tables))
    question = "How do the methods compare by each score, and how much is chance?"
    return (Section("Errors", question, tuple(blocks), "errors"),)


def _how_to_read(study: Study) -> str:
    across = "over ε" if len(study.settings.epsilons) > 1 else f"at ε = {spelled(study.settings.epsilons[0])}"
    return (
        f"Means {across} with 95 % intervals over repeats. Dotted lines show two halves of the real table, which "
        "are as close as fresh real rows would come. Where intervals overlap, the runs do not tell methods apart."
    )


def _legend(study: Study) -> list[Block]:
    """Which curve is which; pictures of one ε name their rows."""
    names = tuple(one.name for one in study.settings.candidates)
    return [Figure(CurveNames("Methods", names))] if len(study.settings.epsilons) > 1 else []


def _panel(study: Study, found: Sequence[MeanScore], name: str) -> Figure:
    rows = [level for level in found if level.name == name]
    yardsticks = [level.yardstick for level in rows if level.yardstick is not None]
    line = math.fsum(yardsticks) / len(yardsticks) if yardsticks else None
    decades = _in_decades(rows, line)
    caption = said(name) if rows[0].metric != "resources" else name.partition(": ")[2]
    remark = f"{_BETTER[rows[0].direction]}{'; logarithmic' if decades else ''}"
    remark += f"; two real halves {line:.3g}" if line is not None else ""
    panel = CurvePanel(caption, "ε", _curves(study, rows), study.settings.epsilons, line, decades)
    return Figure(panel, remark=f"{_capital(remark)}.")


def _in_decades(rows: Sequence[MeanScore], yardstick: float | None) -> bool:
    """Whether errors lie so far apart that a linear axis would press the smaller ones onto the floor."""
    values = [level.mean for level in rows] + ([] if yardstick is None else [yardstick])
    return rows[0].direction == "lower" and min(values) > 0 and max(values) > DECADES * min(values)


def _curves(study: Study, rows: Sequence[MeanScore]) -> tuple[Series, ...]:
    """One for each method, with or without numbers, so that a method looks the same in every picture."""
    curves = []
    for number, candidate in enumerate(study.settings.candidates):
        own = sorted((level for level in rows if level.candidate == candidate.name), key=lambda level: level.epsilon)
        lows = tuple(math.nan if level.low is None else level.low for level in own)
        highs = tuple(math.nan if level.high is None else level.high for level in own)
        beside = _beside(study.settings, number)
        places, values = tuple(level.epsilon * beside for level in own), tuple(level.mean for level in own)
        curves.append(Series(candidate.name, places, values, lows, highs))
    return tuple(curves)


def _beside(settings: StudySettings, number: int) -> float:
    """What moves a method's points a little to the side, so that intervals at one ε do not cover one another."""
    order = sorted(math.log(epsilon) for epsilon in settings.epsilons)
    if len(order) < 2:
        return 1.0
    gap = min(after - before for before, after in itertools.pairwise(order))
    step = min(SIDE_STEP * (order[-1] - order[0]), gap / (3 * len(settings.candidates)))
    return math.exp(step * (number - (len(settings.candidates) - 1) / 2))


def _numbers(study: Study, rows: Sequence[MeanScore]) -> TextTable:
    at = {(level.candidate, level.epsilon): level for level in rows}
    epsilons, queries = study.settings.epsilons, study.settings.repeats
    header = ("Method", *(f"ε = {spelled(epsilon)}" for epsilon in epsilons))
    body = tuple(
        (one.name, *(_mean(at.get((one.name, epsilon)), queries) for epsilon in epsilons))
        for one in study.settings.candidates
    )
    caption = f"{_named(rows[0])}: mean and 95 % interval over repeats."
    if any(level.repeats != queries for level in rows):
        caption += f" n is the number of repeats that gave a number, where it is not {queries}."
    return TextTable(header, body, caption, frozenset(header[1:]))


def _named(level: MeanScore) -> str:
    return _capital(level.score if level.metric == "resources" else said(level.name))


def _mean(level: MeanScore | None, queries: int) -> str:
    """A mean with half of its interval (the longer half, where one was cut) and with n where repeats are missing."""
    if level is None:
        return "none"
    text = f"{level.mean:.3g}"
    if level.low is not None and level.high is not None:
        text += f" ± {max(level.high - level.mean, level.mean - level.low):.2g}"
    return text if level.repeats == queries else f"{text} (n = {level.repeats})"


def _ranked(study: Study, found: Sequence[MeanScore]) -> tuple[Section, ...]:
    """For each ε the places that every score leaves open to every method, and where scores disagree."""
    names = judging(found)
    if not names:
        return ()
    text = (
        "Each cell holds the places that the intervals leave open: 1–3 means that the method may be the first or the "
        "third by this score. Green means that no other is clearly ahead; yellow, that some are; red, that all are; no "
        "colour, that the runs tell nothing apart."
    )
    blocks: list[Block] = [Paragraph(text)]
    for epsilon in dict.fromkeys(level.epsilon for level in found):
        first = [name for name in headlines(study) if name in names]
        blocks.append(_places(study, found, first or names, epsilon))
        more = [_places(study, found, names, epsilon)] if len(names) > len(first) else []
        blocks.append(
            FoldedBlocks(
                f"ε = {spelled(epsilon)}: every score, and where scores disagree",
                (*more, *_disagreement(found, epsilon)),
            )
        )
    blocks.append(Link("All places (CSV)", "ranks.csv"))
    return (Section("Ranks", "Which methods differ, by which score?", tuple(blocks), "ranks"),)


def _places(study: Study, found: Sequence[MeanScore], names: Sequence[str], epsilon: float) -> TextTable:
    header = ("Score", *(one.name for one in study.settings.candidates))
    body, lights = [], []
    for name in names:
        open_to = places(found, name, epsilon)
        cells = [open_to.get(method) for method in header[1:]]
        body.append((_named_score(name), *(_place(cell) for cell in cells)))
        lights.append(("", *(_light(cell, len(open_to)) for cell in cells)))
    caption = f"Ranks at ε = {spelled(epsilon)}; 1 is best."
    return TextTable(header, tuple(body), caption, frozenset(header[1:]), tuple(lights))


def _named_score(name: str) -> str:
    return _capital(said(name))


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _place(cell: tuple[int, int] | None) -> str:
    if cell is None:
        return "none"
    best, worst = cell
    return f"{best}" if best == worst else f"{best}–{worst}"


def _light(cell: tuple[int, int] | None, methods: int) -> Light | Literal[""]:
    if cell is None or cell == (1, methods):
        return ""
    return "good" if cell[0] == 1 else "poor" if cell[0] == methods else "fair"


def _disagreement(found: Sequence[MeanScore], epsilon: float) -> list[Block]:
    """The pairs of scores that disagree most on the order of methods; nothing if there is no pair to compare."""
    pairs = agreements(found, epsilon)
    apart = [pair for pair in pairs if round(pair.tau, 9) < 1]
    if not apart:
        agreed = "All scores that can be compared put the methods in the same order (Kendall's τ = 1)."
        return [Paragraph(agreed)] if pairs else []
    lines = tuple(f"{said(pair.first)} against {said(pair.second)}: τ = {pair.tau:.2f}" for pair in apart[:3])
    return [
        Paragraph("Where scores disagree most (Kendall's τ; 1 the same order, −1 the opposite):"),
        BulletList(lines),
    ]


def _resources(study: Study) -> tuple[Section, ...]:
    found = resources(study)
    if not found:
        return ()
    names = tuple(dict.fromkeys(level.name for level in found))
    several = max(run.outcome.jobs for run in study.runs)
    text = "Time and memory for synthesis and drawing rows in a fresh process, without scoring."
    if several > 1:
        text += f" Up to {several} runs went on at the same time, so each took longer than it would have alone."
    tables = tuple(_numbers(study, [level for level in found if level.name == name]) for name in names)
    figures = tuple(_panel(study, found, name) for name in names)
    blocks: tuple[Block, ...] = (
        Paragraph(text),
        *_legend(study),
        Gallery(figures),
        FoldedBlocks("The numbers", tables),
    )
    return (Section("Time and memory", "What does each method cost to run?", blocks, "resources"),)


def _unfinished(study: Study) -> tuple[Section, ...]:
    """The section on runs without scores; none once every run has ended and has them."""
    ended = ((run.cell, run.outcome) for run in study.runs if run.outcome.status != "done")
    rows = tuple(
        (cell.candidate.name, spelled(cell.epsilon), str(cell.repeat), outcome.status, outcome.reason)
        for cell, outcome in ended
    )
    missing = len(study.settings.cells) - len(study.runs)
    if not rows and not missing:
        return ()
    whole = "Every run has ended."
    blocks: list[Block] = [Paragraph(f"{missing} runs have not ended yet." if missing else whole)]
    if rows:
        blocks.append(TextTable(("Method", "ε", "Repeat", "Ended", "Why"), rows))
    return (Section("Runs without scores", "What did not finish, and why?", tuple(blocks)),)


def _without_number(study: Study) -> tuple[Section, ...]:
    """The section on scores that finished runs could not give; none if all have numbers."""
    every = len(study.settings.candidates)
    rows = tuple(
        (
            _named_score(gap.name),
            "all" if len(gap.candidates) == every > 1 else ", ".join(gap.candidates),
            ", ".join(map(spelled, gap.epsilons)),
            str(gap.runs),
            gap.why,
        )
        for gap in gaps(study)
    )
    if not rows:
        return ()
    table = TextTable(("Score", "Methods", "ε", "Runs", "Why"), rows, numeric=frozenset({"Runs"}))
    return (Section("Scores without a number", "What could not be computed, and why?", (table,)),)


def _how(study: Study) -> Section:
    settings = study.settings
    items = [
        _delta_sentence(settings),
        f"{_counted(settings.repeats, 'repeat', 'repeats')}, each with fresh noise; "
        f"{_counted(settings.copies, 'copy', 'copies')} a run ({settings.copies_mode}).",
        "Each run had a process of its own, under a limit of time and memory.",
        "In pictures, methods at the same ε are drawn slightly apart, so that every interval can be seen.",
        f"Seed for sampling rows and for scoring: {settings.seed}. Privacy noise is never seeded, so a new study "
        "gives other numbers.",
        f"This page was written by understudy {version('understudy')}.",
    ]
    if study.has_public:
        items.append(_public(study))
    given = [f"{name}.{key}={value}" for name, own in settings.metric_options.items() for key, value in own.items()]
    if given:
        items.append(f"Options of metrics: {', '.join(given)}.")
    if settings.formula is not None:
        items.append(f"Model of regression and ci_overlap: {settings.formula}.")
    return Section("How it was done", "What was run?", (BulletList(tuple(items)),))


def _delta_sentence(settings: StudySettings) -> str:
    """Which δ the methods had."""
    least = min(settings.epsilons)
    pure = [one.name for one in settings.candidates if not settings.budget(one, least).delta]
    if settings.delta and pure:
        return f"δ = {settings.delta:g}; δ = 0, a stronger promise, for methods that need no δ: {', '.join(pure)}."
    return f"δ = {settings.delta:g} for every method."


def _counted(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _public(study: Study) -> str:
    """Who was given the public table."""
    names = study.settings.candidates
    users, others = [one.name for one in names if one.uses_public], [one.name for one in names if not one.uses_public]
    rest = f" {', '.join(others)} cannot use one and had none." if others else ""
    return f"A public table was given to {', '.join(users)}.{rest}"
