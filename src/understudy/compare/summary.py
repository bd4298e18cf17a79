"""What the runs of a study say together: tidy tables, means with intervals, ranks, a recommendation, and a page.

The recommendation names one method for each ε, by the mean rank over the headline score of every metric that judges and
has numbers at that ε; of equals, the faster. Ranked are the methods that finished every repeat there (if none did,
those that finished most) and have all of these scores in each; who is left out is named with the reason. A lead or a
lag counts as clear only where intervals do not overlap. The best by mean rank is named even where the runs do not tell
it from others: then these are named beside it, and which of them is much faster.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import pyarrow as pa
from scipy import stats

from understudy.charts import Lines, Series
from understudy.compare.study import Cell, Study, StudySettings
from understudy.report import Block, BulletList, Page, Paragraph, Section, TextTable

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class MeanScore:
    """The mean of one score of one method at one ε over its repeats, with its interval (none for a single repeat).

    The interval ends at the best value that the score can take: nothing lies beyond it.
    """

    metric: str
    score: str
    direction: str
    candidate: str
    epsilon: float
    repeats: int
    mean: float
    low: float | None
    high: float | None
    yardstick: float | None

    @property
    def name(self) -> str:
        """Metric and score in one word."""
        return f"{self.metric}: {self.score}"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Kendall's τ of the order in which two scores put the methods: 1 the same order, −1 the opposite one."""

    first: str
    second: str
    tau: float


@dataclass(frozen=True, slots=True)
class Gap:
    """A score without a number: of which methods, at which ε, in how many runs, and why."""

    name: str
    candidates: tuple[str, ...]
    epsilons: tuple[float, ...]
    runs: int
    why: str


def spelled(epsilon: float) -> str:
    """ε in few digits, but in as many as tell it from every other number.

    >>> spelled(1.0), spelled(1.0000001)
    ('1', '1.0000001')
    """
    short = f"{epsilon:g}"
    return short if float(short) == epsilon else repr(epsilon)


def tidy(study: Study) -> pa.Table:
    """One row for each score of each run (and one without a score for a run that has none)."""
    columns: dict[str, list[object]] = {name: [] for name in _TIDY.names}
    for run in study.runs:
        cell, outcome = run.cell, run.outcome
        facts = (cell.candidate.name, cell.candidate.method, cell.epsilon, _delta(study, run.cell), cell.repeat)
        ends = (outcome.status, outcome.reason, outcome.seconds, outcome.cpu_seconds, outcome.peak_bytes)
        rows: list[tuple[object, ...]] = [
            (one.metric, one.score, one.value, one.yardstick, one.direction, one.why_not) for one in outcome.scores
        ]
        for row in rows or [(None, None, None, None, None, "")]:
            for name, value in zip(_TIDY.names, (*facts, *ends, *row), strict=True):
                columns[name].append(value)
    return pa.table(columns, schema=_TIDY)


def failures(study: Study) -> tuple[str, ...]:
    """Runs that ended without scores and why, runs of one method with the same reason taken together."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for run in study.runs:
        if run.outcome.status != "done":
            key = (run.cell.candidate.name, run.outcome.status, run.outcome.reason)
            found.setdefault(key, []).append(run.cell.epsilon)
    return tuple(
        f"{name} at ε = {', '.join(map(spelled, dict.fromkeys(places)))} "
        f"({len(places)} {'run' if len(places) == 1 else 'runs'}, {status}): {reason}"
        for (name, status, reason), places in found.items()
    )


def gaps(study: Study) -> tuple[Gap, ...]:
    """Scores of finished runs that have no number, and why; methods with the same gaps are taken together."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for run in study.runs:
        for one in run.outcome.scores:
            if one.value is None:
                key = (f"{one.metric}: {one.score}", one.why_not, run.cell.candidate.name)
                found.setdefault(key, []).append(run.cell.epsilon)
    together: dict[tuple[str, str, tuple[float, ...]], list[str]] = {}
    for (name, why, candidate), places in found.items():
        together.setdefault((name, why, tuple(sorted(places))), []).append(candidate)
    return tuple(
        Gap(name, tuple(candidates), tuple(dict.fromkeys(places)), len(candidates) * len(places), why)
        for (name, why, places), candidates in together.items()
    )


def levels(study: Study) -> tuple[MeanScore, ...]:
    """Every score of every method at every ε, over the repeats that gave a number."""
    found: dict[tuple[str, str, str, str, float], list[float]] = {}
    lines: dict[tuple[str, str, str, str, float], list[float]] = {}
    best: dict[tuple[str, str, str, str, float], float | None] = {}
    for run in study.runs:
        for one in run.outcome.scores:
            if one.value is None:
                continue
            key = (one.metric, one.score, one.direction, run.cell.candidate.name, run.cell.epsilon)
            found.setdefault(key, []).append(one.value)
            best[key] = one.best
            if one.yardstick is not None:
                lines.setdefault(key, []).append(one.yardstick)
    return tuple(_level(key, values, lines.get(key, []), best[key]) for key, values in found.items())


def judging(found: Sequence[MeanScore]) -> tuple[str, ...]:
    """The names of scores that say which is better, in the order they were met."""
    return tuple(dict.fromkeys(level.name for level in found if level.direction != "none"))


def ranks(found: Sequence[MeanScore], name: str, epsilon: float) -> dict[str, float]:
    """Rank of every method by that score at that ε: 1 is best, ties share their mean rank."""
    rows = [level for level in found if level.name == name and level.epsilon == epsilon]
    signed = [level.mean if level.direction == "lower" else -level.mean for level in rows]
    order = stats.rankdata(signed, method="average") if signed else []
    return {level.candidate: float(rank) for level, rank in zip(rows, order, strict=True)}


def agreements(found: Sequence[MeanScore], epsilon: float) -> tuple[Agreement, ...]:
    """How far each pair of scores agrees on the order of methods at that ε, the worst agreement first."""
    orders = {name: ranks(found, name, epsilon) for name in judging(found)}
    pairs = []
    for first, second in itertools.combinations(orders, 2):
        shared = [one for one in orders[first] if one in orders[second]]
        if len(shared) < 2:
            continue
        tau = stats.kendalltau([orders[first][one] for one in shared], [orders[second][one] for one in shared])
        if not math.isnan(tau.statistic):
            pairs.append(Agreement(first, second, float(tau.statistic)))
    return tuple(sorted(pairs, key=lambda pair: pair.tau))


_TIDY = pa.schema(
    [
        ("candidate", pa.string()),
        ("method", pa.string()),
        ("epsilon", pa.float64()),
        ("delta", pa.float64()),
        ("repeat", pa.int64()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("seconds", pa.float64()),
        ("cpu_seconds", pa.float64()),
        ("peak_bytes", pa.int64()),
        ("metric", pa.string()),
        ("score", pa.string()),
        ("value", pa.float64()),
        ("yardstick", pa.float64()),
        ("direction", pa.string()),
        ("why_not", pa.string()),
    ]
)


def _delta(study: Study, cell: Cell) -> float:
    return study.settings.budget(cell.candidate, cell.epsilon).delta


def _level(
    key: tuple[str, str, str, str, float], values: list[float], lines: list[float], best: float | None
) -> MeanScore:
    count = len(values)
    mean = math.fsum(values) / count
    low = high = None
    if count > 1:
        spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1) / count)
        half = float(stats.t.ppf(0.5 + CONFIDENCE / 2, count - 1)) * spread
        low, high = mean - half, mean + half
        if best is not None and key[2] == "lower":
            low = min(max(low, best), mean)
        if best is not None and key[2] == "higher":
            high = max(min(high, best), mean)
    line = math.fsum(lines) / len(lines) if lines else None
    return MeanScore(*key, count, mean, low, high, line)


MUCH_FASTER = 5
"""A method that takes this many times less is called much faster."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to use at an ε and why; `candidate` is empty if no method could be ranked."""

    epsilon: float
    candidate: str
    grounds: str


@dataclass(frozen=True, slots=True)
class _Field:
    """Who can be ranked at an ε and by which scores; what was left out, in words."""

    kept: tuple[str, ...]
    names: tuple[str, ...]
    left_out: tuple[str, ...]


def headlines(study: Study) -> tuple[str, ...]:
    """The first score of every metric that judges and has a value, by which methods are ranked together."""
    scores = [one for run in study.runs for one in run.outcome.scores if one.direction != "none"]
    known = {(one.metric, one.score) for one in scores if one.value is not None}
    names: dict[str, str] = {}
    for one in scores:
        if (one.metric, one.score) in known:
            names.setdefault(one.metric, f"{one.metric}: {one.score}")
    return tuple(names.values())


def recommend(study: Study) -> tuple[Recommendation, ...]:
    """One recommendation for each ε of the study."""
    found = levels(study)
    return tuple(_at(study, found, epsilon) for epsilon in study.settings.epsilons)


def _at(study: Study, found: Sequence[MeanScore], epsilon: float) -> Recommendation:
    seconds = {one.name: _seconds(study, one.name, epsilon) for one in study.settings.candidates}
    most = max(len(spent) for spent in seconds.values())
    if not most:
        return Recommendation(epsilon, "", "No method finished at this ε.")
    here = [level for level in found if level.epsilon == epsilon]
    field = _field(study, here, {one: len(spent) for one, spent in seconds.items()})
    words = [] if most == study.settings.repeats else [f"No method finished more: {_runs(most, study)}."]
    if not field.kept:
        lack = "no method has every score" if field.names else "no score that judges has a number"
        words += [f"Methods finished at this ε, but {lack} in every run.", *field.left_out]
        return Recommendation(epsilon, "", " ".join(words))
    took = {one: math.fsum(seconds[one]) / most for one in field.kept}
    best, grounds = _first(field, here, took)
    if most == 1 and len(field.kept) > 1:
        grounds += " One repeat only: chance is not ruled out."
    return Recommendation(epsilon, best, " ".join((*words, grounds, *field.left_out)))


def _field(study: Study, here: Sequence[MeanScore], finished: Mapping[str, int]) -> _Field:
    """Those with the most finished runs that have a number in each, for every headline that one of them has so."""
    most, every = max(finished.values()), headlines(study)
    pool = [one for one, count in finished.items() if count == most]
    numbers = {(level.name, level.candidate): level.repeats for level in here}
    lost = {(name, one): most - numbers.get((name, one), 0) for name in every for one in pool}
    names = tuple(name for name in every if not all(lost[name, one] for one in pool))
    kept = tuple(one for one in pool if names and not any(lost[name, one] for name in names))
    out = [f"{one} ({_runs(count, study)})" for one, count in finished.items() if count < most]
    for one in pool:
        lacks = [f"{name} missing in {lost[name, one]} of {most} runs" for name in names if lost[name, one]]
        out += [f"{one} ({', '.join(lacks)})"] if lacks else []
    uncounted = [name for name in every if name not in names]
    left_out = [f"Not counted, for want of numbers: {', '.join(uncounted)}."] if uncounted else []
    left_out += [f"Left out: {', '.join(out)}."] if out else []
    return _Field(kept, names, tuple(left_out))


def _runs(finished: int, study: Study) -> str:
    return f"{finished} of {study.settings.repeats} runs finished"


def _first(field: _Field, here: Sequence[MeanScore], took: Mapping[str, float]) -> tuple[str, str]:
    """The best by mean rank, of equals the faster, and on what grounds."""
    rows = [level for level in here if level.candidate in field.kept]
    tables = {name: ranks(rows, name, rows[0].epsilon) for name in field.names}
    means = {one: math.fsum(table[one] for table in tables.values()) / len(tables) for one in field.kept}
    best, *others = sorted(field.kept, key=lambda one: (means[one], took[one]))
    spent = f"It took {_time(took[best])} on average"
    if not others:
        return best, f"Scored by {', '.join(field.names)}; there was nothing to compare it with. {spent}."
    wins = [name for name, table in tables.items() if table[best] == 1.0]
    metrics = "1 metric" if len(tables) == 1 else f"{len(tables)} metrics"
    words = [f"Mean rank {means[best]:.2f} over {metrics}; best by {', '.join(wins) or 'none of them alone'}."]
    equals = [one for one in others if means[one] == means[best]]
    if equals:
        words.append(f"Same mean rank as {', '.join(equals)}; of equals, the faster is named.")
    at = {(level.name, level.candidate): level for level in rows}
    leads = {one: _leads(at, field.names, best, one) for one in others}
    words += _against(leads)
    rivals = [one for one in others if leads[one][1] or not leads[one][0]]
    faster = [f"{one} ({_time(took[one])})" for one in rivals if MUCH_FASTER * took[one] <= took[best]]
    words.append(f"{spent}; much faster: {', '.join(faster)}." if faster else f"{spent}.")
    return best, " ".join(words)


_Leads = tuple[tuple[str, ...], tuple[str, ...]]
"""Scores by which a method is clearly ahead of another, and clearly behind it."""


def _leads(at: Mapping[tuple[str, str], MeanScore], names: Sequence[str], best: str, other: str) -> _Leads:
    ahead = tuple(name for name in names if _apart(at[name, best], at[name, other]))
    behind = tuple(name for name in names if _apart(at[name, other], at[name, best]))
    return ahead, behind


def _against(leads: Mapping[str, _Leads]) -> list[str]:
    """How the best stands to every other method, those that it stands to in the same way taken together."""
    groups: dict[_Leads, list[str]] = {}
    for other, lead in leads.items():
        groups.setdefault(lead, []).append(other)
    words = []
    for (ahead, behind), others in groups.items():
        them, by, less = ", ".join(others), ", ".join(ahead), ", ".join(behind)
        if ahead and behind:
            words.append(f"Split with {them}: clearly ahead by {by}, clearly behind by {less}.")
        elif ahead:
            words.append(f"Clearly ahead of {them} by {by}.")
        elif behind:
            words.append(f"Clearly behind {them} by {less}, clearly ahead by none.")
        else:
            words.append(f"The runs do not tell it apart from {them}.")
    return words


def _apart(one: MeanScore, other: MeanScore) -> bool:
    """Whether the first is better and the intervals do not overlap."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.high < other.low if one.direction == "lower" else one.low > other.high


def _seconds(study: Study, candidate: str, epsilon: float) -> list[float]:
    """What each finished run of a method took."""
    return [
        run.outcome.seconds
        for run in study.runs
        if run.outcome.status == "done" and (run.cell.candidate.name, run.cell.epsilon) == (candidate, epsilon)
    ]


def _time(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 1000 else f"{seconds:.3g} s"


CONFIDENTIAL = "NOT FOR RELEASE. Computed from the private table; no privacy guarantee covers these numbers."
PUBLIC = "Computed from a public table of the same schema: no private row was read and no budget was spent."
SIDE_STEP = 0.015
"""How far apart methods are drawn at one ε, as a share of the axis."""
DECADES = 30
"""Errors that lie further apart than this, largest over smallest, are drawn on a logarithmic axis."""
_BETTER = {"lower": "lower is better", "higher": "higher is better", "none": "descriptive only"}


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
    blocks: list[Block] = [TextTable(("ε", "Method", "Grounds"), rows, numeric=frozenset({"ε"})), Paragraph(text)]
    if study.confidential:
        blocks.append(Paragraph(warning + " Use a public proxy, or pay for the choice."))
    return Section("Recommendation", "Which method should be used, at which ε?", tuple(blocks))


def _metric(study: Study, found: Sequence[MeanScore], metric: str) -> Section:
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


def _in_decades(rows: Sequence[MeanScore], yardstick: float | None) -> bool:
    """Whether errors lie so far apart that a linear axis would press the smaller ones onto the floor."""
    values = [level.mean for level in rows] + ([] if yardstick is None else [yardstick])
    return rows[0].direction == "lower" and min(values) > 0 and max(values) > DECADES * min(values)


def _curves(study: Study, rows: Sequence[MeanScore]) -> tuple[Series, ...]:
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


def _numbers(study: Study, rows: Sequence[MeanScore]) -> TextTable:
    at = {(level.candidate, level.epsilon): level for level in rows}
    epsilons, queries = study.settings.epsilons, study.settings.repeats
    header = ("Method", *(f"ε = {spelled(epsilon)}" for epsilon in epsilons))
    body = tuple(
        (one.name, *(_mean(at.get((one.name, epsilon)), queries) for epsilon in epsilons))
        for one in study.settings.candidates
    )
    caption = "Mean and 95 % interval over repeats."
    if any(level.repeats != queries for level in rows):
        caption += f" n: how many repeats gave a number, where it was not {queries}."
    return TextTable(header, body, caption, frozenset(header[1:]))


def _mean(level: MeanScore | None, queries: int) -> str:
    """A mean with half of its interval (the longer half, where one was cut) and with n where repeats are missing."""
    if level is None:
        return "none"
    text = f"{level.mean:.4g}"
    if level.low is not None and level.high is not None:
        text += f" ± {max(level.high - level.mean, level.mean - level.low):.2g}"
    return text if level.repeats == queries else f"{text} (n = {level.repeats})"


def _ranked(study: Study, found: Sequence[MeanScore]) -> Section:
    blocks: list[Block] = []
    for epsilon in study.settings.epsilons:
        names = judging(found)
        tables = {name: ranks(found, name, epsilon) for name in names}
        header = ("Score", *(one.name for one in study.settings.candidates))
        body = tuple((name, *(_rank(tables[name].get(cell)) for cell in header[1:])) for name in names)
        blocks.append(TextTable(header, body, f"Ranks at ε = {spelled(epsilon)}; 1 is best.", frozenset(header[1:])))
        blocks += _disagreement(found, epsilon)
    return Section("Ranks", "Do the scores agree on the order of methods?", tuple(blocks))


def _disagreement(found: Sequence[MeanScore], epsilon: float) -> list[Block]:
    """The pairs of scores that disagree most on the order of methods; nothing if there is no pair to compare."""
    pairs = agreements(found, epsilon)
    apart = [pair for pair in pairs if round(pair.tau, 9) < 1]
    if not apart:
        agreed = "All scores that can be compared put the methods in the same order (Kendall's τ = 1)."
        return [Paragraph(agreed)] if pairs else []
    lines = tuple(f"{pair.first} against {pair.second}: τ = {pair.tau:.2f}" for pair in apart[:3])
    return [
        Paragraph("Where scores disagree most (Kendall's τ; 1 the same order, −1 the opposite):"),
        BulletList(lines),
    ]


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
    table = TextTable(header, tuple(body), caption, frozenset(header[1:]))
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
        blocks.append(TextTable(("Method", "ε", "Repeat", "Ended", "Why"), rows))
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
    table = TextTable(("Score", "Methods", "ε", "Runs", "Why"), rows, numeric=frozenset({"Runs"}))
    return (Section("Scores without a number", "What could not be computed, and why?", (table,)),)


def _how(study: Study) -> Section:
    settings = study.settings
    items = [
        _delta_sentence(settings),
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
    return Section("How it was done", "What was run?", (BulletList(tuple(items)),))


def _delta_sentence(settings: StudySettings) -> str:
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
