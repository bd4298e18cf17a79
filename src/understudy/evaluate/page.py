"""The confidential report as a page: answers to plain questions first, then pictures, then every number, folded.

Plain data in, plain data out: nothing is computed from rows here. A score is read against two anchors, the yardstick
(two halves of the real table) and the baseline (columns drawn independently of each other); where there is no room
between them, the page says that the score cannot tell.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, cast

import numpy as np
import pyarrow as pa

from understudy.arrays import Floats
from understudy.charts import (
    Amounts,
    Between,
    Forest,
    IntervalRow,
    Matrix,
    MatrixCell,
    PointMap,
    Points,
    SharesChart,
    Side,
    forest_axis,
    in_digits,
    percent,
    real_and_made,
)
from understudy.errors import UsageError
from understudy.evaluate.glm import INTERCEPT
from understudy.evaluate.metric import NEAR, NO_RULES, Detail, Result, Score
from understudy.evaluate.suite import NOTICE, YARDSTICK, Evaluation
from understudy.report import (
    Beside,
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
    long_gallery,
)

MOST_ROWS = 25
MOST_POINTS = 1500
MOST_FIGURES = 24
MOST_GROUPS = 15
MOST_COEFFICIENTS = 60
PAIRS_IN_FULL = 3
"""Pairs whose pictures stand open and tell the numbers of every cell; further ones are folded and smaller to load."""
MOST_HINTS = 60
"""Columns up to which every cell of the matrix of pairs tells its numbers; of more columns the worst pairs do."""
NO_PROOF = (
    "This proves nothing about privacy, in either direction: rows that equal real ones may simply be common, and rows "
    "unlike all others may still reveal something. What protects people is the promise of the release."
)
LEAST_TOP, LEAST_GAP = 0.1, 0.01
"""Distances of pairs, and differences of shares, at which shades are at their strongest, if none is larger: noise that
hardly shows must not look alarming."""
MOST_FURTHEST = 12
MOST_BESIDE = 16
"""Columns up to which the matrix of pairs leaves room for the list of pairs beside it."""
FOREST_ROWS = 12
"""Coefficients in one of several charts that stand side by side."""
SPOKEN = {
    "marginals.two_way_mean": "pairs of columns, mean distance",
    "marginals.two_way_worst": "pairs of columns, largest distance",
    "marginals.one_way_mean": "single columns, mean distance",
    "marginals.one_way_worst": "single columns, largest distance",
    "marginals.three_way_mean": "triples of columns, mean distance",
    "marginals.three_way_worst": "triples of columns, largest distance",
    "crosstab_l1.total_variation": "all columns together, distance",
    "crosstab_l1.l1": "all columns together, rows that differ",
    "crosstab_l1.half_l1": "all columns together, rows that would have to change",
    "specks.logistic": "how far a regression separates the tables",
    "specks.cart": "how far a tree separates the tables",
    "specks.legacy": "the regression's separation as a published script computes it",
    "pmse.logistic_ratio": "regression, as a multiple of chance",
    "pmse.logistic_raw": "regression, mean squared propensity",
    "pmse.logistic_standardised": "regression, standard deviations from chance",
    "pmse.cart_ratio": "tree, as a multiple of chance",
    "pmse.cart_raw": "tree, mean squared propensity",
    "pmse.cart_standardised": "tree, standard deviations from chance",
    "classifiers.forest_specks": "how far a forest separates the tables",
    "classifiers.forest_pmse_ratio": "forest, as a multiple of chance",
    "classifiers.forest_pmse_raw": "forest, mean squared propensity",
    "classifiers.svm_specks": "how far a support vector machine separates the tables",
    "classifiers.svm_pmse_ratio": "support vector machine, as a multiple of chance",
    "classifiers.svm_pmse_raw": "support vector machine, mean squared propensity",
    "chi2.at_5_percent": "tests with the same verdict, 5 % level",
    "chi2.at_1_percent": "tests with the same verdict, 1 % level",
    "chi2.at_10_percent": "tests with the same verdict, 10 % level",
    "slopes.agreement": "slopes, agreement",
    "slopes.worst_difference": "slopes, largest difference",
    "slopes.mean_difference": "slopes, mean difference",
    "slopes.joint_shares": "joint shares of chosen columns, agreement",
    "correlations.agreement": "correlations of levels, agreement",
    "correlations.worst_difference": "correlations of levels, largest difference",
    "correlations.mean_difference": "correlations of levels, mean difference",
    "regression.mean_difference": "coefficients, mean difference in standard errors",
    "regression.worst_difference": "coefficients, largest difference in standard errors",
    "regression.same_sign": "coefficients with the same sign",
    "regression.covered": "real coefficients inside the synthetic interval",
    "ci_overlap.mean_overlap": "confidence intervals, mean overlap",
    "ci_overlap.worst_overlap": "confidence intervals, smallest overlap",
    "ci_overlap.mean_with_gaps": "confidence intervals, mean overlap with gaps",
    "prediction.mean_loss": "prediction, mean loss",
    "prediction.worst_loss": "prediction, largest loss",
    "rules.broken": "rows that break a rule",
    "disclosure.unique_matches": "unique real rows that are also synthetic rows",
    "disclosure.equal_rows": "synthetic rows that equal a real one",
    "nist.match": "score of the 2018 challenge",
    "nist.clustering": "challenge: random triples of columns",
    "nist.classification": "challenge: random conditions",
    "nist.regression": "challenge: wages by city",
    "nist.k_marginal": "all pairs of columns, times 1,000",
}
"""Scores as people say them; those of other packages keep their names, spelled out."""
_BETTER = {"lower": "lower", "higher": "higher", "none": "–"}
_ANSWERS: Mapping[Light, str] = {
    "good": "Close",
    "fair": "Some way off",
    "poor": "Far off",
    "unknown": "Cannot tell",
}


def spoken(metric: str, score: str) -> str:
    """The name of a score as people say it.

    >>> spoken("marginals", "two_way_mean"), spoken("their_metric", "some_score")
    ('pairs of columns, mean distance', 'their metric: some score')
    """
    plain = f"{metric}: {score}".replace("_", " ")
    return SPOKEN.get(f"{metric}.{score}", plain)


def build_report(evaluation: Evaluation, numbers: str = "tables") -> Page:
    """The evaluation as a page, ready to be rendered; `numbers` is where its tables lie, seen from the page."""
    pictures = (
        *_columns(evaluation, numbers),
        *_pairs(evaluation, numbers),
        *_associations(evaluation, numbers),
        *_classifier(evaluation, numbers),
        *_models(evaluation, numbers),
        *_groups(evaluation, numbers),
        *_map(evaluation, numbers),
        *_nearest(evaluation, numbers),
    )
    return Page(
        title=f"Comparison with the real table{': ' + evaluation.title if evaluation.title else ''}",
        banner=NOTICE,
        sections=(_summary(evaluation), *pictures, _details(evaluation, numbers), _how(evaluation)),
        footer="Every number, uncut, is beside this page as JSON and CSV. Same seed, same numbers.",
        confidential=True,
    )


def _summary(evaluation: Evaluation) -> Section:
    cards = verdicts(evaluation)
    blocks: list[Block] = [
        *_unread(evaluation),
        Paragraph(_in_words(cards), strong=True),
        Verdicts(cards),
        Paragraph(
            "The left end of a bar is the score of two random halves of the real table (fresh real rows); the right "
            "end is that of real columns drawn independently (for single columns, that of equally frequent values)."
        ),
        FoldedBlocks("What the yardstick is", (Paragraph(YARDSTICK),)),
    ]
    return Section("In short", "Is the stand-in good enough, and for what?", tuple(blocks))


def _unread(evaluation: Evaluation) -> list[Block]:
    """What the schema cannot read, before any score."""
    said = tuple(sentence for one in evaluation.unread for sentence in one.sentences())
    if not said:
        return []
    return [Paragraph("The schema does not fit all of the values:", strong=True), BulletList(said)]


def _in_words(cards: Sequence[Verdict]) -> str:
    """All answers in one sentence, and what has none in another."""
    subjects = {
        light: [card.subject or card.question for card in cards if card.light == light]
        for light in ("good", "fair", "poor", "unknown")
    }
    said = [f"{light} on {_and(names)}" for light, names in subjects.items() if names and light != "unknown"]
    if not said:
        return "No question could be answered from what was computed."
    text = f"{'; '.join(said).capitalize()}."
    return f"{text} No answer on {_and(subjects['unknown'])}." if subjects["unknown"] else text


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def verdicts(evaluation: Evaluation) -> tuple[Verdict, ...]:
    """One answer for each question that something was computed for."""
    found = [
        _of_tables(evaluation, "one_way_mean", "columns", "How close are single columns?", "columns"),
        _of_tables(evaluation, "two_way_mean", "pairs", "How close are pairs of columns?", "pairs"),
        _of_tables(evaluation, "three_way_mean", "triples", "How close are triples of columns?", "pairs"),
        _of_classifier(evaluation),
        _of_models(evaluation),
        _of_prediction(evaluation),
        _of_rules(evaluation),
        _of_groups(evaluation),
        _of_copies(evaluation),
    ]
    return tuple(card for card in found if card is not None)


def _result(evaluation: Evaluation, name: str) -> Result | None:
    return next((result for result in evaluation.results if result.metric == name), None)


def light_of(score: Score) -> Light:
    """Good: at the yardstick or within a tenth of the way to the baseline (or the worst value); fair: within half."""
    if score.value is None or score.blind or score.yardstick is None:
        return "unknown"
    if score.reading.endswith("as close as two real halves"):
        return "good"
    place = _place(score)
    if place is not None:
        return "good" if place <= 0.1 else "fair" if place <= 0.5 else "poor"
    if score.direction != "lower" or score.yardstick <= 0:
        return "unknown"
    times = score.value / score.yardstick
    return "good" if times <= NEAR else "fair" if times <= 3 else "poor"


def _place(score: Score) -> float | None:
    """Where the score lies from its yardstick (0) to its baseline, or to the worst value if that is no anchor (1)."""
    if score.place is not None or score.value is None or score.yardstick is None or score.blind:
        return score.place
    if score.direction != "lower" or score.highest is None:
        return None
    return (score.value - score.yardstick) / (score.highest - score.yardstick)


def _answer(score: Score, light: Light) -> str:
    if light == "good" and score.reading.endswith("as close as two real halves"):
        return "As close as fresh real rows"
    if light == "poor" and score.place is not None and score.place >= 1:
        return "No better than unrelated columns"
    return _ANSWERS[light]


def _between(score: Score, far: str = "unrelated columns") -> Between | None:
    place = _place(score)
    if score.value is None or score.yardstick is None or score.baseline is None or place is None:
        return None
    end = score.baseline if score.place is not None else score.highest or 0.0
    far = far if score.place is not None else "the worst value"
    numbers = f"{in_digits(score.value)}; fresh real rows {in_digits(score.yardstick)}; {far} {in_digits(end)}"
    return Between("Where the score lies", place, "fresh real rows", far, f"Score {numbers}.")


def _of_tables(evaluation: Evaluation, name: str, detail: str, question: str, more: str) -> Verdict | None:
    result = _result(evaluation, "marginals")
    if result is None or result.score(name).value is None:
        return None
    score = result.score(name)
    light = light_of(score)
    sentence = f"{percent(score.value or 0.0)} of the rows would have to move, on average over all {detail}"
    if score.yardstick is not None:
        sentence += f"; between two real halves {percent(score.yardstick)}"
    (worst,) = result.detail(detail).records(1)
    names = " × ".join(str(value) for key, value in worst.items() if key.startswith("column_"))
    sentence += f". Furthest off: {names}, {percent(cast(float, worst['distance']))}."
    far = "all values equal" if detail == "columns" else "unrelated columns"
    subject = "single columns" if detail == "columns" else f"{detail} of columns"
    return Verdict(question, light, _answer(score, light), sentence, _between(score, far), more, subject)


_SEPARATORS = {"cart": "A tree", "logistic": "A regression"}
"""Two tables are as far apart as the classifier says that tells them apart best; another may just be too weak."""
_WORSE: Sequence[Light] = ("unknown", "good", "fair", "poor")


def _told_apart(score: Score) -> tuple[int, float]:
    return _WORSE.index(light_of(score)), _place(score) or 0.0


def _of_classifier(evaluation: Evaluation) -> Verdict | None:
    result = _result(evaluation, "specks")
    if result is None:
        return None
    question, subject = "Can a classifier tell them apart?", "a classifier's test"
    score = max((result.score(name) for name in _SEPARATORS), key=_told_apart)
    light = light_of(score)
    if score.value is None:
        return Verdict(question, light, _ANSWERS[light], f"Not computed: {score.why_not}.", subject=subject)
    named = _SEPARATORS[score.name]
    sentence = f"{named} separates real from synthetic rows by {in_digits(score.value)}, on a scale from 0 to 1"
    if score.yardstick is not None:
        sentence += f"; two real halves by {in_digits(score.yardstick)}"
    telling = [str(row["column"]) for detail in result.details if detail.name == "columns" for row in detail.records(3)]
    sentence += f". Most telling: {_and(telling)}." if telling and light != "good" else "."
    answer = {"good": "Hardly", "fair": "In part", "poor": "Yes", "unknown": "Cannot tell"}[light]
    return Verdict(question, light, answer, sentence, _between(score), "classifier", subject)


def _of_models(evaluation: Evaluation) -> Verdict | None:
    question, subject = "Do models and their intervals agree?", "models"
    result = _result(evaluation, "ci_overlap") or _result(evaluation, "regression")
    if result is None:
        if "ci_overlap" not in evaluation.left_out:
            return None
        ask = "No model was named; give a formula such as income ~ age + sex."
        return Verdict(question, "unknown", "Not asked", ask, subject=subject)
    score = result.headline
    light = light_of(score)
    if score.value is None:
        return Verdict(question, light, _ANSWERS[light], f"Not computed: {score.why_not}.", subject=subject)
    if result.metric == "ci_overlap":
        sentence = f"Confidence intervals overlap by {percent(score.value)} on average"
        line = None if score.yardstick is None else percent(score.yardstick)
    else:
        sentence = f"Coefficients differ by {in_digits(score.value)} standard errors on average"
        line = None if score.yardstick is None else in_digits(score.yardstick)
    sentence += f"; those of two real halves by {line}." if line else "."
    return Verdict(question, light, _answer(score, light), sentence, _between(score), "models", subject)


def _of_prediction(evaluation: Evaluation) -> Verdict | None:
    result = _result(evaluation, "prediction")
    if result is None or result.value is None:
        return None
    score = result.headline
    light = light_of(score)
    sentence = f"Trained on synthetic rows, a tree loses {_small(score.value or 0.0)} of its area under the curve"
    sentence += f"; on other real rows {_small(score.yardstick)}." if score.yardstick is not None else "."
    question = "Do models trained on it predict real rows?"
    return Verdict(question, light, _answer(score, light), sentence, _between(score), subject="prediction")


def _of_rules(evaluation: Evaluation) -> Verdict | None:
    result = _result(evaluation, "rules")
    if result is None or result.why_not == NO_RULES:
        return None
    question, value = "Are the rules of the schema kept?", result.value
    if value is None:
        return Verdict(question, "unknown", "Cannot tell", f"Not computed: {result.why_not}.", subject="rules")
    real = result.yardstick or 0.0
    light: Light = "good" if value <= real + 0.0005 else "fair" if value <= real + 0.01 else "poor"
    answer = "Yes" if value == 0 else {"good": "As in the real table", "fair": "Nearly", "poor": "No"}[light]
    sentence = f"{percent(value)} of the synthetic rows break one; of the real rows {percent(real)}."
    return Verdict(question, light, answer, sentence, subject="rules")


def _of_groups(evaluation: Evaluation) -> Verdict | None:
    groups = _records(evaluation, "groups")
    if not groups:
        return None
    worst = groups[0]
    light = _group_light(worst)
    answer = {"good": "Not noticeably", "fair": "Somewhat", "poor": "Yes"}[light]
    named = f"{worst['column']} = {worst['group']} ({worst['real_rows']:,} real rows)"
    sentence = f"Worst of {len(groups):,} groups: {named}"
    if worst["synthetic_rows"]:
        distance, line = (percent(cast(float, worst[key])) for key in ("distance", "yardstick"))
        sentence += f", whose other columns are off by {distance} on average; two real halves of it by {line}."
    else:
        sentence += " has no synthetic row at all."
    return Verdict("Does any subgroup suffer?", light, answer, sentence, None, "groups", "subgroups")


def _group_light(group: Mapping[str, object]) -> Light:
    beyond = cast(float, group["distance"]) - cast(float, group["yardstick"])
    return "good" if beyond <= 0.03 else "fair" if beyond <= 0.1 else "poor"


def _of_copies(evaluation: Evaluation) -> Verdict | None:
    rows = _records(evaluation, "nearest")
    if not rows:
        return None
    made, held = cast(float, rows[0]["synthetic_share"]), cast(float, rows[0]["holdout_share"])
    # Of copied real rows half lie in the half that is looked at; shares of 1,000 rows differ by 0.04 by chance.
    light: Light = "good" if made <= held + 0.05 else "fair" if made <= held + 0.1 else "poor"
    answer = {"good": "No more than chance", "fair": "More than chance", "poor": "Many"}[light]
    sentence = (
        f"{percent(made)} of the synthetic rows equal a row of one half of the real table; so do {percent(held)} of "
        "the real rows of the other half. No proof of privacy either way."
    )
    return Verdict("Are rows copied?", light, answer, sentence, None, "nearest", "copied rows")


def _small(value: float) -> str:
    return "less than 0.001" if 0 < value < 0.001 else f"{value:.2g}"


def _records(evaluation: Evaluation, name: str) -> list[dict[str, object]]:
    table = evaluation.picture(name)
    return [] if table is None else cast(list[dict[str, object]], table.to_pylist())


def _file(numbers: str, name: str) -> Link:
    return Link("Numbers of this section (CSV)", f"{numbers}/{name}.csv")


def _columns(evaluation: Evaluation, numbers: str) -> tuple[Section, ...]:
    """Every column as an overlay, the furthest off first."""
    rows: dict[str, list[dict[str, object]]] = {}
    for row in _records(evaluation, "columns"):
        rows.setdefault(str(row["column"]), []).append(row)
    if not rows:
        return ()
    result = _result(evaluation, "marginals")
    far = {} if result is None else {str(row["column_1"]): row for row in result.detail("columns").records()}
    order = [name for name in far if name in rows] + [name for name in rows if name not in far]
    figures = [_column(name, rows[name], far.get(name), evaluation.titles.get(name, "")) for name in order]
    blocks: list[Block] = [_file(numbers, "pictures.columns"), *long_gallery(figures[:MOST_FIGURES])]
    if len(figures) > MOST_FIGURES:
        title = f"{len(figures) - MOST_FIGURES:,} more columns, which are closer"
        blocks.append(FoldedBlocks(title, (Gallery(tuple(figures[MOST_FIGURES:])),)))
    question = "Does each column have the same values as often? The columns that are furthest off come first."
    return (Section("Columns", question, tuple(blocks), "columns"),)


def _column(name: str, rows: Sequence[Mapping[str, object]], far: Mapping[str, object] | None, title: str) -> Figure:
    amounts = (
        Amounts("real", "real", tuple(cast(float, row["real_share"]) for row in rows)),
        Amounts("made", "synthetic", tuple(cast(float, row["synthetic_share"]) for row in rows)),
    )
    labels, bins = tuple(str(row["label"]) for row in rows), sum(row["kind"] == "bin" for row in rows)
    remark = f"{title}. " if title else ""
    if far is not None:
        line = far["yardstick"]
        remark += f"Distance {percent(cast(float, far['distance']))}"
        remark += "." if line is None else f"; two real halves {percent(cast(float, line))}."
    return Figure(SharesChart(name, labels, amounts, bins), remark=remark)


def _pairs(evaluation: Evaluation, numbers: str) -> tuple[Section, ...]:
    """The distance of every pair as a matrix, then the worst pairs cell by cell."""
    result = _result(evaluation, "marginals")
    detail = None if result is None else next((one for one in result.details if one.name == "pairs"), None)
    if detail is None or not detail.table.num_rows:
        return ()
    records = detail.records()
    drawn = _drawn_pairs(evaluation)
    anchors = {frozenset(names): f"pair-{place + 1}" for place, names in enumerate(drawn)}
    missing = [(str(row["column_1"]), str(row["column_2"])) for row in records]
    missing = [names for names in missing if drawn and frozenset(names) not in anchors]
    names = _names_in_order(evaluation, records)
    place = {name: number for number, name in enumerate(names)}
    cells = []
    others = MORE_PAIRS if missing else ""
    for row in sorted(records, key=lambda row: _both(row) not in anchors):  # cells that share a link stand together
        pair = str(row["column_1"]), str(row["column_2"])
        first, second = sorted(pair, key=place.__getitem__)
        distance, line = cast(float, row["distance"]), row["yardstick"]
        halves = "" if line is None else f"; two real halves {percent(cast(float, line))}"
        told = len(names) <= MOST_HINTS or _both(row) in anchors
        hint = f"{pair[0]} × {pair[1]}: {percent(distance)}{halves}" if told else ""
        cells.append(MatrixCell(place[second], place[first], distance, hint, anchors.get(_both(row), others)))
    top = max(cast(float, records[0]["distance"]), LEAST_TOP)
    matrix = Matrix("Distance of every pair of columns", names, names, tuple(cells), top, unit="share")
    distances = np.array([cast(float, row["distance"]) for row in records])
    led = " Framed cells lead to their picture below." if drawn else ""
    picture, furthest = Figure(matrix, numbers=f"{numbers}/marginals.pairs.csv"), _furthest(records)
    blocks: list[Block] = [Paragraph(_quantiles("Distances of pairs", distances, percent) + led)]
    blocks += [Beside(((picture,), (furthest,)))] if len(names) <= MOST_BESIDE else [picture, furthest]
    if missing:
        blocks.append(Paragraph(_why_not_drawn(missing[0], len(drawn), len(records)), anchor=MORE_PAIRS))
    galleries = [
        Gallery(_pair_figures(names, rows, anchors[frozenset(names)], told=number < PAIRS_IN_FULL))
        for number, (names, rows) in enumerate(drawn.items())
    ]
    blocks += galleries[:1]
    if len(galleries) > 1:
        blocks.append(FoldedBlocks("The next pairs of columns", tuple(galleries[1:PAIRS_IN_FULL]), narrow=True))
    if len(galleries) > PAIRS_IN_FULL:
        title = f"{len(galleries) - PAIRS_IN_FULL:,} more pairs of columns"
        file = _file(numbers, "pictures.drawn_pairs")
        blocks.append(FoldedBlocks(title, (file, *galleries[PAIRS_IN_FULL:])))
    question = "Do pairs of columns go together as in the real table? Strong shades: many rows would have to move."
    return (Section("Pairs", question, tuple(blocks), "pairs"),)


def _furthest(records: Sequence[Mapping[str, object]]) -> TextTable:
    """The pairs that are furthest off, each beside its yardstick."""
    header = ("Pair", "Distance", "Two real halves")
    rows = tuple(
        (
            f"{row['column_1']} × {row['column_2']}",
            percent(cast(float, row["distance"])),
            "–" if row["yardstick"] is None else percent(cast(float, row["yardstick"])),
        )
        for row in records[:MOST_FURTHEST]
    )
    caption = (
        "Only the pairs that are furthest off are listed."
        if len(records) > len(rows)
        else "All pairs are listed, the furthest off first."
    )
    return TextTable(header, rows, caption, frozenset(header[1:]))


def _names_in_order(evaluation: Evaluation, records: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    """Columns of codes in the schema's order, as the pictures have them, else as the pairs do."""
    drawn = dict.fromkeys(str(row["column"]) for row in _records(evaluation, "columns"))
    met = dict.fromkeys(str(row[key]) for row in records for key in ("column_1", "column_2"))
    return tuple(name for name in drawn if name in met) if set(met) <= set(drawn) else tuple(met)


def _quantiles(what: str, values: Floats, spelled: Callable[[float], str] = in_digits) -> str:
    """The middle, the upper hundredth and the largest of many numbers: a mean alone hides the worst."""
    middle, high, largest = map(spelled, np.quantile(values, [0.5, 0.99, 1.0]).tolist())
    return f"{what}, {len(values):,} in all: half are below {middle}, 99 in 100 below {high}, the largest is {largest}."


MORE_PAIRS = "more-pairs"


def _both(row: Mapping[str, object]) -> frozenset[str]:
    return frozenset((str(row["column_1"]), str(row["column_2"])))


def _why_not_drawn(pair: tuple[str, str], drawn: int, pairs: int) -> str:
    """Why some cells of the matrix have no picture, and how to get one."""
    return (
        f"{drawn:,} of {pairs:,} pairs are drawn, the furthest off and those asked for: with all of them this page "
        f"would be too large to open. To have another one drawn, evaluate once more and name the pair: "
        f"pairs=[{','.join(pair)!r}] in Python, the option pair on the command line."
    )


def pair_figures(evaluation: Evaluation, names: tuple[str, str]) -> tuple[Figure, ...]:
    """Joint shares of two columns in both tables, and the difference, for one pair that was drawn.

    Raises:
        UsageError: if it was not, with what to do.
    """
    for pair, rows in _drawn_pairs(evaluation).items():
        if set(pair) == set(names):
            return _pair_figures(pair, rows, "")
    text = ",".join(names)
    fix = f"Evaluate with pairs=[{text!r}], and with pictures."
    raise UsageError(f"plot {text!r}", "is of a pair of columns that was not drawn.", fix)


def _drawn_pairs(evaluation: Evaluation) -> dict[tuple[str, str], list[dict[str, object]]]:
    found: dict[tuple[str, str], list[dict[str, object]]] = {}
    for row in _records(evaluation, "drawn_pairs"):
        found.setdefault((str(row["column_1"]), str(row["column_2"])), []).append(row)
    return found


def _pair_figures(
    pair: tuple[str, str], rows: Sequence[Mapping[str, object]], anchor: str, *, told: bool = True
) -> tuple[Figure, ...]:
    """Joint shares of both tables, and the difference, of one pair; `told` says the numbers of every cell."""
    lines = tuple(dict.fromkeys(str(row["label_1"]) for row in rows))
    columns = tuple(dict.fromkeys(str(row["label_2"]) for row in rows))
    shares = [
        (lines.index(str(row["label_1"])), columns.index(str(row["label_2"])), cast(float, row["real_share"]),
         cast(float, row["synthetic_share"]))
        for row in rows
    ]  # fmt: skip
    top = max(max(real, made) for _, _, real, made in shares) or 1.0
    most = max(LEAST_GAP, *(abs(made - real) for _, _, real, made in shares))
    figures = []
    for what in ("real", "synthetic", "difference"):
        cells = []
        for row, column, real, made in shares:
            value = {"real": real, "synthetic": made, "difference": made - real}[what]
            hint = f"{lines[row]}, {columns[column]}: {percent(real)} real, {percent(made)} synthetic"
            cells.append(MatrixCell(row, column, value, hint if told else ""))
        signed = what == "difference"
        caption, end = f"{pair[0]} × {pair[1]}: {what}", most if signed else top
        chart = Matrix(caption, lines, columns, tuple(cells), end, signed, small=True, root=not signed, unit="share")
        figures.append(Figure(chart, anchor=anchor if what == "real" else ""))
    return tuple(figures)


def _associations(evaluation: Evaluation, numbers: str) -> tuple[Section, ...]:
    records = _records(evaluation, "associations")
    known = [row for row in records if row["real"] is not None and row["synthetic"] is not None]
    if not known:
        return ()
    names = tuple(dict.fromkeys(str(row[key]) for row in records for key in ("column_1", "column_2")))
    place = {name: number for number, name in enumerate(names)}
    gaps = np.array([abs(cast(float, row["synthetic"]) - cast(float, row["real"])) for row in known])
    figures = []
    for what in ("real", "synthetic", "difference"):
        cells = []
        for row in records:
            ours, theirs = cast(float | None, row["real"]), cast(float | None, row["synthetic"])
            gap = None if ours is None or theirs is None else theirs - ours
            value = gap if what == "difference" else ours if what == "real" else theirs
            first, second = sorted((str(row["column_1"]), str(row["column_2"])), key=place.__getitem__)
            told = len(names) <= MOST_HINTS / 2 and value is not None
            hint = f"{first} × {second}: {in_digits(value or 0.0)}" if told else ""
            cells.append(MatrixCell(place[second], place[first], value, hint))
        signed = what == "difference"
        top = max(float(gaps.max()), LEAST_TOP) if signed else 1.0  # on a scale to 1 most could not be seen
        figures.append(Figure(Matrix(what, names, names, tuple(cells), top, signed, small=True)))
    worst = max(known, key=lambda row: abs(cast(float, row["synthetic"]) - cast(float, row["real"])))
    text = (
        f"{_quantiles('Differences', gaps)} Most changed: {worst['column_1']} × {worst['column_2']}, "
        f"{in_digits(cast(float, worst['real']))} real, {in_digits(cast(float, worst['synthetic']))} synthetic."
    )
    blocks = (Paragraph(text), Gallery(tuple(figures)), _file(numbers, "pictures.associations"))
    question = "Are columns as strongly associated (Cramér's V, 0 none to 1 complete)?"
    return (Section("Associations", question, blocks, "associations"),)


def _classifier(evaluation: Evaluation, numbers: str) -> tuple[Section, ...]:
    result = _result(evaluation, "specks")
    if result is None:
        return ()
    figures = [_scores(detail) for detail in result.details if detail.name.endswith("_scores")]
    for detail in result.details:
        rows = detail.records(12)
        if detail.name == "columns" and rows:
            labels = tuple(str(row["column"]) for row in rows)
            amounts = Amounts("made", "weight", tuple(cast(float, row["spread"]) for row in rows))
            chart = SharesChart("What gives synthetic rows away", labels, (amounts,), unit="number")
            remark = "How much each column moves a regression's log odds that a row is synthetic (standard deviation)."
            figures.append(Figure(chart, remark=remark))
    if not figures:
        return ()
    question = (
        "What does a classifier think of each row, and by which columns? Two separate humps mean that it can tell."
    )
    return (Section("Classifier", question, (Gallery(tuple(figures)), _file(numbers, "specks.columns")), "classifier"),)


def _scores(detail: Detail) -> Figure:
    rows = detail.records()
    labels = tuple(f"[{row['from']:.2g}, {row['to']:.2g})" for row in rows)
    amounts = (
        Amounts("real", "real", tuple(cast(float, row["real_share"]) for row in rows)),
        Amounts("made", "synthetic", tuple(cast(float, row["synthetic_share"]) for row in rows)),
    )
    name = detail.name.removesuffix("_scores")
    name = "regression" if name == "logistic" else name
    return Figure(SharesChart(f"Probability of being synthetic, by a {name}", labels, amounts, len(labels)))


def _models(evaluation: Evaluation, numbers: str) -> tuple[Section, ...]:
    result = _result(evaluation, "ci_overlap") or _result(evaluation, "regression")
    details = [] if result is None else [one for one in result.details if one.name == "coefficients"]
    if result is None or not details:
        return ()
    rows = []
    for row in details[0].records(MOST_COEFFICIENTS):
        real, made = (
            tuple(cast(float | None, row[f"{side}_{what}"]) for what in ("value", "low", "high"))
            for side in ("real", "synthetic")
        )
        numbers_of = None if None in made else cast(tuple[float, float, float], made)
        rows.append(IntervalRow(str(row["coefficient"]), cast(tuple[float, float, float], real), numbers_of))
    every = details[0].table.num_rows
    shown = f" Only the {len(rows)} of {every:,} that agree least are drawn." if len(rows) < every else ""
    text = f"{' '.join(result.notes[:1])} Coefficients with their 95 % intervals, smallest overlap first.{shown}"
    blocks: list[Block] = [Paragraph(text.strip())]
    for alone in (row for row in rows if row.name == INTERCEPT):
        blocks.append(Paragraph(f"The intercept is not drawn: {real_and_made(alone)}."))
    rows = [row for row in rows if row.name != INTERCEPT]
    axis, parts = forest_axis(rows), range(0, len(rows), FOREST_ROWS)
    charts = [tuple(rows[start : start + FOREST_ROWS]) for start in parts]
    captions = [f"Coefficients {start + 1} to {start + len(part)}" for start, part in zip(parts, charts, strict=True)]
    blocks.append(Gallery(tuple(Figure(Forest(text, part, axis)) for text, part in zip(captions, charts, strict=True))))
    blocks.append(_file(numbers, f"{result.metric}.coefficients"))
    return (Section("Models", "Would a regression say the same?", tuple(blocks), "models"),)


def _groups(evaluation: Evaluation, numbers: str) -> tuple[Section, ...]:
    rows = _records(evaluation, "groups")
    if not rows:
        return ()
    header = ("Group", "Distance", "Two real halves", "Real rows", "Synthetic rows")
    body = tuple(
        (
            f"{row['column']} = {row['group']}",
            percent(cast(float, row["distance"])),
            percent(cast(float, row["yardstick"])),
            f"{row['real_rows']:,}",
            f"{row['synthetic_rows']:,.0f}",
        )
        for row in rows[:MOST_GROUPS]
    )
    plain: Literal[""] = ""
    lights = tuple((plain, _group_light(row), plain, plain, plain) for row in rows[:MOST_GROUPS])
    caption = f"The {len(body)} worst of {len(rows):,} groups with at least 100 real rows."
    table = TextTable(header, body, caption, frozenset(header[1:]), lights)
    question = "Within each group, how far off are the other columns? Groups furthest beyond chance come first."
    return (Section("Subgroups", question, (table, _file(numbers, "pictures.groups")), "groups"),)


def _map(evaluation: Evaluation, numbers: str) -> tuple[Section, ...]:
    points = evaluation.picture("map")
    if points is None:
        return ()
    x, y = (np.asarray(points[name]) for name in ("x", "y"))
    left, right, low, high = np.quantile([x, y], [0.005, 0.995], axis=1).T.ravel().tolist()
    ends = (left, right, low, high)
    axes = _records(evaluation, "map_axes")
    names = [
        f"{way}, {percent(cast(float, row['share_of_variance']))} of the variance, mostly of {row['columns']}"
        for way, row in zip(("Across", "upward"), axes, strict=True)
    ]
    figures = []
    sides: tuple[tuple[str, Side], ...] = (("real", "real"), ("synthetic", "made"))
    for name, side in sides:
        mine = np.asarray(pa.compute.equal(points["table"], name))
        spots = tuple(zip(x[mine].tolist(), y[mine].tolist(), strict=True))
        summary = (
            f"{len(spots):,} {name} rows. Horizontally from {in_digits(float(x[mine].min()))} to "
            f"{in_digits(float(x[mine].max()))}, median {in_digits(float(np.median(x[mine])))}; vertically from "
            f"{in_digits(float(y[mine].min()))} to {in_digits(float(y[mine].max()))}, median "
            f"{in_digits(float(np.median(y[mine])))}."
        )
        figures.append(
            Figure(
                PointMap(
                    f"{len(spots):,} {name} rows", side, "first direction", "second direction", spots, ends, summary
                )
            )
        )
    question = "Do synthetic rows lie where real rows lie, with as many in each cluster?"
    axes_text = Paragraph(f"{'; '.join(names)}. Rows far outside are drawn at the edge.")
    blocks = (axes_text, Gallery(tuple(figures)), _file(numbers, "pictures.map"))
    return (Section("Map", question, blocks, "map"),)


def _nearest(evaluation: Evaluation, numbers: str) -> tuple[Section, ...]:
    rows = _records(evaluation, "nearest")
    if not rows:
        return ()
    used = [row for row in rows if row["holdout_share"] or row["synthetic_share"]]
    last = cast(int, used[-1]["columns_that_differ"])
    labels = tuple(str(row["columns_that_differ"]) for row in rows[: last + 1])
    amounts = (
        Amounts("real", "real rows held apart", tuple(cast(float, row["holdout_share"]) for row in rows[: last + 1])),
        Amounts("made", "synthetic rows", tuple(cast(float, row["synthetic_share"]) for row in rows[: last + 1])),
    )
    bins = len(labels) if len(labels) > 12 else 0
    chart = SharesChart("Columns in which a row differs from the nearest real row", labels, amounts, bins)
    blocks = (Paragraph(NO_PROOF, strong=True), Figure(chart), _file(numbers, "pictures.nearest"))
    question = "Are synthetic rows nearer to real rows than other real rows are?"
    return (Section("Nearest rows", question, blocks, "nearest"),)


def _details(evaluation: Evaluation, numbers: str) -> Section:
    folds = tuple(_metric(result, numbers) for result in evaluation.results)
    rows = tuple(
        (
            spoken(result.metric, score.name),
            _number(score.value),
            _number(score.yardstick),
            _number(score.baseline),
            score.reading,
        )
        for result in evaluation.results
        for score in result.scores[:1]
    )
    header = ("Score", "Value", "Two real halves", "Unrelated columns", "Reading")
    table = TextTable(header, rows, "The first score of every metric.", frozenset(header[1:4]))
    return Section("All scores", "What exactly was computed?", (table, _file(numbers, "scores"), *folds), "scores")


def _metric(result: Result, numbers: str) -> FoldedBlocks:
    header = ("Score", "Value", "Two real halves", "Unrelated columns", "Better", "Range", "Meaning")
    rows = tuple(
        (
            spoken(result.metric, score.name),
            _number(score.value),
            _number(score.yardstick),
            _number(score.baseline),
            _BETTER[score.direction],
            f"{_bound(score.lowest)} to {_bound(score.highest)}",
            score.meaning if score.value is not None else f"{score.meaning} Not computed: {score.why_not}",
        )
        for score in result.scores
    )
    named = Paragraph(f"To compute this alone, name the metric {result.metric}.")
    blocks: list[Block] = [named, TextTable(header, rows, numeric=frozenset(header[1:4]))]
    for detail in result.details:
        if not detail.name.endswith("_scores"):
            blocks += _detail(detail)
            blocks.append(
                Link(f"All {detail.table.num_rows:,} rows (CSV)", f"{numbers}/{result.metric}.{detail.name}.csv")
            )
    if result.notes:
        blocks.append(BulletList(result.notes))
    return FoldedBlocks(result.question, tuple(blocks))


def _detail(detail: Detail) -> list[Block]:
    blocks: list[Block] = []
    if {"real", "synthetic"} <= set(detail.table.column_names):
        ours, theirs = (np.asarray(detail.table[name], dtype=np.float64) for name in ("real", "synthetic"))
        known = np.isfinite(ours) & np.isfinite(theirs)
        points = tuple(zip(ours[known][:MOST_POINTS].tolist(), theirs[known][:MOST_POINTS].tolist(), strict=True))
        if len(points) > 2:
            cut = f" Only the first {MOST_POINTS:,} are drawn." if int(known.sum()) > MOST_POINTS else ""
            blocks.append(Paragraph(_quantiles("Differences", np.abs(ours - theirs)[known])))
            blocks.append(Points(detail.caption + cut, "real", "synthetic", points))
    shown, rows = detail.records(MOST_ROWS), detail.table.num_rows
    if not shown:
        return blocks
    header = tuple(name.replace("_", " ") for name in detail.table.column_names)
    numeric = frozenset(
        name.replace("_", " ") for name in detail.table.column_names if isinstance(shown[0][name], int | float)
    )
    caption = detail.caption if rows <= MOST_ROWS else f"{detail.caption} The first {MOST_ROWS} of {rows:,}."
    body = tuple(tuple(_word(value) if key in OPTIONS else _cell(value) for key, value in row.items()) for row in shown)
    return [*blocks, TextTable(header, body, caption, numeric)]


OPTIONS = ("null", "scheme")
"""Columns of details that hold the value of an option, which is spelled as it is typed."""


def _word(value: object) -> str:
    return _cell(value).replace("_", " ")


def _how(evaluation: Evaluation) -> Section:
    copies = ", ".join(f"{rows:,}" for rows in evaluation.synthetic_rows)
    left_out = tuple(f"Left out: {name} ({reason})." for name, reason in evaluation.left_out.items())
    items = (
        f"Rows: {evaluation.real_rows:,} real; {copies} synthetic.",
        f"Columns compared: {len(evaluation.columns)}.",
        *(f"{name}: {title}." for name, title in evaluation.titles.items()),
        f"Method: {evaluation.method or 'not known'}. {evaluation.promise}".strip(),
        f"Seed: {evaluation.seed}.",
    )
    return Section("How it was done", "What was compared with what?", (BulletList((*items, *left_out)),))


def _number(value: float | None) -> str:
    return "–" if value is None else in_digits(value)


def _bound(value: float | None) -> str:
    return "any" if value is None else f"{value:,g}"


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return in_digits(value)
    if isinstance(value, list | tuple):
        return " × ".join(str(part) for part in value)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
