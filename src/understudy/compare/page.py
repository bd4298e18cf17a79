"""The page of a study: which method at which ε, every score over ε with its interval, ranks and where they disagree."""

import itertools
import math
from collections.abc import Sequence
from importlib.metadata import version

from understudy.compare.recommend import headlines, recommend
from understudy.compare.settings import StudySettings
from understudy.compare.study import Study
from understudy.compare.summary import Level, agreements, gaps, judging, levels, ranks, spelled
from understudy.report.page import Block, Items, Lines, Page, Paragraph, Section, Series, Table

__all__ = ["build_page"]

CONFIDENTIAL = "NOT FOR RELEASE. Computed from the private table; no privacy guarantee covers these numbers."
PUBLIC = "Computed from a public table of the same schema: no private row was read and no budget was spent."
SIDE_STEP = 0.015
"""How far apart methods are drawn at one ε, as a share of the axis."""
DECADES = 30
"""Errors that lie further apart than this, largest over smallest, are drawn on a logarithmic axis."""
_BETTER = {"lower": "lower is better", "higher": "higher is better", "none": "describes, does not judge"}


def build_page(study: Study) -> Page:
    """The whole study as a page."""
    found = levels(study)
    return Page(
        title=f"Comparison of methods{': ' + study.title if study.title else ''}",
        banner=CONFIDENTIAL if study.confidential else PUBLIC,
        sections=(
            _recommended(study),
            *(_metric(study, found, metric) for metric in dict.fromkeys(level.metric for level in found)),
            _ranked(study, found),
            _resources(study),
            _unfinished(study),
            *_without_number(study),
            _how(study),
        ),
        footer="All numbers are in results.parquet beside this page.",
        confidential=study.confidential,
    )


def _recommended(study: Study) -> Section:
    rows = tuple((spelled(one.epsilon), one.candidate or "none", one.grounds) for one in recommend(study))
    names = headlines(study)
    text = f"Ranked by the first score of each metric: {'; '.join(names) or 'none'}."
    warning = "A method chosen by scores on the private table is itself a release of information about it."
    blocks: list[Block] = [Table(("ε", "Method", "Grounds"), rows, numeric=frozenset({"ε"})), Paragraph(text)]
    if study.confidential:
        blocks.append(Paragraph(warning + " Use a public proxy, or pay for the choice."))
    return Section("Recommendation", "Which method should be used, at which ε?", tuple(blocks))


def _metric(study: Study, found: Sequence[Level], metric: str) -> Section:
    names = list(dict.fromkeys(level.name for level in found if level.metric == metric))
    blocks: list[Block] = []
    for name in names:
        rows = [level for level in found if level.name == name]
        yardsticks = [level.yardstick for level in rows if level.yardstick is not None]
        line = math.fsum(yardsticks) / len(yardsticks) if yardsticks else None
        caption = f"{rows[0].score} ({_BETTER[rows[0].direction]})"
        if line is not None:
            caption += f"; dotted: two halves of the real table, {line:.4g}"
        decades = _in_decades(rows, line)
        upward = f"{rows[0].score} (logarithmic)" if decades else rows[0].score
        curves = _curves(study, rows)
        blocks.append(Lines(caption, "ε", upward, curves, logarithmic=True, yardstick=line, decades=decades))
        blocks.append(_numbers(study, rows))
    return Section(metric, f"How do the methods compare by {metric}, and how much is chance?", tuple(blocks))


def _in_decades(rows: Sequence[Level], yardstick: float | None) -> bool:
    """Whether errors lie so far apart that a linear axis would press the smaller ones onto the floor."""
    values = [level.mean for level in rows] + ([] if yardstick is None else [yardstick])
    return rows[0].direction == "lower" and min(values) > 0 and max(values) > DECADES * min(values)


def _curves(study: Study, rows: Sequence[Level]) -> tuple[Series, ...]:
    curves = []
    for number, candidate in enumerate(study.settings.candidates):
        own = sorted((level for level in rows if level.candidate == candidate.name), key=lambda level: level.epsilon)
        if not own:
            continue
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


def _numbers(study: Study, rows: Sequence[Level]) -> Table:
    at = {(level.candidate, level.epsilon): level for level in rows}
    epsilons, asked = study.settings.epsilons, study.settings.repeats
    header = ("Method", *(f"ε = {spelled(epsilon)}" for epsilon in epsilons))
    body = tuple(
        (one.name, *(_mean(at.get((one.name, epsilon)), asked) for epsilon in epsilons))
        for one in study.settings.candidates
    )
    caption = "Mean and 95 % interval over repeats."
    if any(level.repeats != asked for level in rows):
        caption += f" n: how many repeats gave a number, where it was not {asked}."
    return Table(header, body, caption, frozenset(header[1:]))


def _mean(level: Level | None, asked: int) -> str:
    """A mean with half of its interval (the longer half, where one was cut) and with n where repeats are missing."""
    if level is None:
        return "none"
    text = f"{level.mean:.4g}"
    if level.low is not None and level.high is not None:
        text += f" ± {max(level.high - level.mean, level.mean - level.low):.2g}"
    return text if level.repeats == asked else f"{text} (n = {level.repeats})"


def _ranked(study: Study, found: Sequence[Level]) -> Section:
    blocks: list[Block] = []
    for epsilon in study.settings.epsilons:
        names = judging(found)
        tables = {name: ranks(found, name, epsilon) for name in names}
        header = ("Score", *(one.name for one in study.settings.candidates))
        body = tuple((name, *(_rank(tables[name].get(cell)) for cell in header[1:])) for name in names)
        blocks.append(Table(header, body, f"Ranks at ε = {spelled(epsilon)}; 1 is best.", frozenset(header[1:])))
        blocks += _disagreement(found, epsilon)
    return Section("Ranks", "Do the scores agree on the order of methods?", tuple(blocks))


def _disagreement(found: Sequence[Level], epsilon: float) -> list[Block]:
    """The pairs of scores that disagree most on the order of methods; nothing if there is no pair to compare."""
    pairs = agreements(found, epsilon)
    apart = [pair for pair in pairs if round(pair.tau, 9) < 1]
    if not apart:
        agreed = "All scores that can be compared put the methods in the same order (Kendall's τ = 1)."
        return [Paragraph(agreed)] if pairs else []
    lines = tuple(f"{pair.first} against {pair.second}: τ = {pair.tau:.2f}" for pair in apart[:3])
    return [Paragraph("Where scores disagree most (Kendall's τ; 1 the same order, −1 the opposite):"), Items(lines)]


def _rank(rank: float | None) -> str:
    return "none" if rank is None else f"{rank:g}"


def _resources(study: Study) -> Section:
    header = ("Method", "ε", "Runs", "Seconds", "CPU seconds", "Peak MiB")
    body = []
    for candidate in study.settings.candidates:
        for epsilon in study.settings.epsilons:
            done = [
                run.outcome
                for run in study.runs
                if (run.cell.candidate, run.cell.epsilon) == (candidate, epsilon) and run.outcome.status == "done"
            ]
            if done:
                means = [
                    math.fsum(numbers) / len(done)
                    for numbers in (
                        [one.seconds for one in done],
                        [one.cpu_seconds for one in done],
                        [one.peak_bytes / 2**20 for one in done],
                    )
                ]
                body.append((candidate.name, spelled(epsilon), str(len(done)), *(f"{mean:,.3g}" for mean in means)))
    caption = "Means over runs: synthesis and drawing rows in a fresh process, scoring not included."
    table = Table(header, tuple(body), caption, frozenset(header[1:]))
    return Section("Time and memory", "What does each method cost to run?", (table,))


def _unfinished(study: Study) -> Section:
    ended = ((run.cell, run.outcome) for run in study.runs if run.outcome.status != "done")
    rows = tuple(
        (cell.candidate.name, spelled(cell.epsilon), str(cell.repeat), outcome.status, outcome.reason)
        for cell, outcome in ended
    )
    missing = len(study.settings.cells) - len(study.runs)
    whole = "Every run has ended." if rows else "Every run has ended and has scores."
    blocks: list[Block] = [Paragraph(f"{missing} runs have not ended yet." if missing else whole)]
    if rows:
        blocks.append(Table(("Method", "ε", "Repeat", "Ended", "Why"), rows))
    return Section("Runs without scores", "What did not finish, and why?", tuple(blocks))


def _without_number(study: Study) -> tuple[Section, ...]:
    """The section on scores that finished runs could not give; none if all have numbers."""
    every = len(study.settings.candidates)
    rows = tuple(
        (
            gap.name,
            "all" if len(gap.candidates) == every > 1 else ", ".join(gap.candidates),
            ", ".join(map(spelled, gap.epsilons)),
            str(gap.runs),
            gap.why,
        )
        for gap in gaps(study)
    )
    if not rows:
        return ()
    table = Table(("Score", "Methods", "ε", "Runs", "Why"), rows, numeric=frozenset({"Runs"}))
    return (Section("Scores without a number", "What could not be computed, and why?", (table,)),)


def _how(study: Study) -> Section:
    settings = study.settings
    items = [
        _delta(settings),
        f"{_counted(settings.repeats, 'repeat', 'repeats')}, each with fresh noise; "
        f"{_counted(settings.copies, 'copy', 'copies')} a run ({settings.copies_mode}).",
        "Each run in a process of its own, under a limit of time and memory.",
        "In pictures, methods at one ε stand a little beside one another, so that every interval can be seen.",
        f"Seed of drawing rows and of scoring: {settings.seed}. Noise has no seed, so a new study gives other numbers.",
        f"This page was written by understudy {version('understudy')}.",
    ]
    if study.has_public:
        items.append(_public(study))
    given = [f"{name}.{key}={value}" for name, own in settings.metric_options.items() for key, value in own.items()]
    if given:
        items.append(f"Options of metrics: {', '.join(given)}.")
    if settings.formula is not None:
        items.append(f"Model of regression and ci_overlap: {settings.formula}.")
    return Section("How it was done", "What was run?", (Items(tuple(items)),))


def _delta(settings: StudySettings) -> str:
    """Which δ the methods had."""
    least = min(settings.epsilons)
    pure = [one.name for one in settings.candidates if not settings.budget(one, least).delta]
    if settings.delta and pure:
        return f"δ = {settings.delta:g}; {', '.join(pure)} had δ = 0, a stronger promise, for want of a use for more."
    return f"δ = {settings.delta:g} for every method."


def _counted(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _public(study: Study) -> str:
    """Who was given the public table."""
    names = study.settings.candidates
    users, others = [one.name for one in names if one.uses_public], [one.name for one in names if not one.uses_public]
    rest = f" {', '.join(others)} cannot use one and had none." if others else ""
    return f"A public table was given to {', '.join(users)}.{rest}"
