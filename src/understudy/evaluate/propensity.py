"""specks and pmse: how well can a classifier tell synthetic rows from real ones?

Classifiers
-----------
Logistic regression and classification trees, for real rows (0) against synthetic ones (1). Both are prepared once for a
stacked table and can then be fitted to any labels and any selection of its rows, which is what permutations, bootstrap
draws and folds need. Trees are pruned at one complexity for all data sets of an evaluation: every copy, the two real
halves, and what is drawn under a null. It is the one with the least error in 5-fold cross-validation on the real table
and the first copy, unless an option sets it; the draw of the folds follows from the seed alone, so that all metrics
with trees use the same one.

specks
------
The Kolmogorov–Smirnov distance of propensity scores of real and synthetic rows: 0 means that the classifier learned
nothing, 1 that it separates the tables. Copies are averaged. `legacy` is what the authors' published script computes
(the distance of the values of the distribution functions on a grid), for comparison with printed figures only.

pmse
----
The mean squared deviation of propensity scores from the share of synthetic rows, raw and against its null:
ratio = pMSE / its mean under the null (1: as close as the null says), standardised = (pMSE − mean) / standard
deviation. Where no tree splits under the null, the ratio is undefined and says so.

Three nulls say what pMSE would be if the tables could not be told apart, so always state which. permutation: both
tables are independent samples from one distribution. fitted_model: the synthetic rows are drawn from the correct model
fitted to the real ones, which makes them closer, and the mean smaller, by the factor 1 − c, with c the share of
synthetic rows. bootstrap: both tables are drawn with replacement from the real rows. For logistic regression scored on
its own rows the first two have closed forms: pMSE·N/(c(1 − c)) is about χ² with as many degrees of freedom as slopes.

The factor 1 − c is that of all real rows against all synthetic ones, so it is offered for rows that were fitted only:
with folds, a part of the real rows is as far from the model as a fresh sample, and 1 − c would be nearly twice too
small. A tree sees every combination of columns, so for it the correct model is one that fits them all.
"""

import math
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, Protocol

import numpy as np
import pyarrow as pa
from scipy.special import expit

from understudy.arrays import Bools, Floats, Ints
from understudy.errors import UsageError
from understudy.evaluate.cart import Features, best_complexity, grow_tree, tree_features
from understudy.evaluate.glm import (
    INTERCEPT,
    ModelMatrix,
    design_of,
    fit_logistic,
    independent_columns,
    propensity_terms,
)
from understudy.evaluate.metric import (
    Context,
    Detail,
    Metric,
    Outcome,
    Result,
    Rows,
    Scale,
    TablePair,
    Unavailable,
    mean_outcome,
    stacked,
    table_of,
)
from understudy.options import option

Terms = Literal["main", "interactions"]

MOST_COEFFICIENTS = 3000
MAIN_EFFECTS = ("A regression on main effects sees single columns only; the tree sees combinations too.",)
FOLDS = 5
TRAINED = 0.7
FEWEST_ROWS = 10
FEWEST_FOLD_ROWS = 50


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Propensity scores of rows, the number of fitted parameters, and whether anything was told apart at all."""

    scores: Floats
    parameters: int
    splits: bool = True
    ridge: float = 0.0


class Classifier(Protocol):
    """Fits labels to rows of a stacked table."""

    @property
    def rows(self) -> int:
        """Rows of the stacked table."""
        ...

    def scores(self, target: Floats, train: Ints | None = None, test: Ints | None = None) -> Scored:
        """Scores of the test rows after fitting the labels of the train rows (positions; all rows when not given)."""
        ...

    def resampled(self, index: Ints) -> "Classifier":
        """The same classifier for a table made of these rows."""
        ...


def labels(first: Rows, second: Rows) -> Floats:
    """0 for the rows of the first table, 1 for those of the second."""
    return np.concatenate([np.zeros(first.count), np.ones(second.count)])


def too_small(first: Rows, second: Rows, scheme: str) -> Unavailable | None:
    """Why these tables cannot be told apart by a classifier, if they cannot."""
    fewest = FEWEST_ROWS if scheme == "in_sample" else FEWEST_FOLD_ROWS
    if min(first.count, second.count) < fewest:
        return Unavailable(f"a table with fewer than {fewest} rows cannot train a classifier")
    return None


def common_complexity(pair: TablePair, given: float | None) -> float:
    """The complexity at which every tree of this evaluation is pruned: the given one, or one by cross-validation.

    Tables that are too small to train on are never scored, so that theirs does not matter.
    """
    if given is not None:
        return given
    if too_small(pair.real, pair.copies[0], "in_sample") is not None:
        return 0.0
    rng = np.random.default_rng([pair.seed, zlib.crc32(b"complexity of trees")])
    features = tree_features(stacked(pair.real, pair.copies[0]))
    return best_complexity(features, labels(pair.real, pair.copies[0]).astype(np.uint8), rng, folds=FOLDS)


class Logistic:
    """Logistic regression on main effects, or with all products of two columns."""

    def __init__(self, design: ModelMatrix) -> None:
        self.design = design

    @classmethod
    def of(cls, first: Rows, second: Rows, terms: Terms = "main") -> "Logistic | Unavailable":
        """The regression for two tables, unless it would have too many coefficients."""
        whole = stacked(first, second)
        found = propensity_terms(whole, interactions=terms == "interactions")
        width = 1 + sum(len(term.names) for term in found)
        if width > MOST_COEFFICIENTS:
            return Unavailable(
                f"the regression would have {width:,} coefficients, above the limit of {MOST_COEFFICIENTS:,}"
            )
        return cls(design_of(found, whole.count))

    @property
    def rows(self) -> int:
        """Rows of the stacked table."""
        return self.design.rows

    @cached_property
    def kept(self) -> Bools:
        """Columns of the whole matrix that are no combinations of others: the same for all labels."""
        return independent_columns(self.design.cross(np.ones(self.design.rows)))

    def scores(self, target: Floats, train: Ints | None = None, test: Ints | None = None) -> Scored:
        """Fitted probabilities of the test rows."""
        if train is None:
            fit = fit_logistic(self.design, target, self.kept)
        else:
            fit = fit_logistic(self.design.take(train), target[train])
        scores = fit.probabilities
        if train is not None or test is not None:
            wanted = self.design if test is None else self.design.take(test)
            scores = np.asarray(expit(wanted.predict(fit.coefficients)), np.float64)
        return Scored(scores, fit.parameters, fit.parameters > 1, fit.ridge)

    def resampled(self, index: Ints) -> "Logistic":
        """The same terms for a table made of these rows."""
        return Logistic(self.design.take(index))


class Trees:
    """A classification tree pruned at one complexity."""

    def __init__(self, features: Features, complexity: float) -> None:
        self.features = features
        self.complexity = complexity

    @classmethod
    def of(cls, first: Rows, second: Rows, complexity: float) -> "Trees":
        """The tree for two tables."""
        return cls(tree_features(stacked(first, second)), complexity)

    @property
    def rows(self) -> int:
        """Rows of the stacked table."""
        return int(self.features.codes.shape[1])

    def scores(self, target: Floats, train: Ints | None = None, test: Ints | None = None) -> Scored:
        """Shares of class 1 in the leaves of the test rows."""
        tree = grow_tree(self.features, target.astype(np.uint8), train)
        scores = tree.probabilities(self.features, self.complexity, test)
        return Scored(scores, int((tree.column >= 0).sum()), tree.splits(self.complexity))

    def resampled(self, index: Ints) -> "Trees":
        """The same columns for a table made of these rows, at the same complexity."""
        return Trees(self.features.take(index), self.complexity)


def out_of_sample(classifier: Classifier, target: Floats, rng: np.random.Generator) -> tuple[Scored, Ints]:
    """Scores of rows that took no part in the fit, and which rows those are.

    Both tables are cut into five folds; within each fold 70 % of either table train the classifier and the
    other 30 % are scored; the scores of all folds are pooled.
    """
    found: list[Floats] = []
    places: list[Ints] = []
    parameters, splits, ridge = 0, False, 0.0
    by_label = [rng.permutation(np.flatnonzero(target == label)) for label in (0.0, 1.0)]
    for fold in range(FOLDS):
        train: list[Ints] = []
        test: list[Ints] = []
        for members in by_label:
            here = members[fold::FOLDS]
            cut = round(TRAINED * len(here))
            train.append(np.sort(here[:cut]))
            test.append(np.sort(here[cut:]))
        scored = classifier.scores(target, np.concatenate(train), np.concatenate(test))
        found.append(scored.scores)
        places.append(np.concatenate(test))
        parameters, splits = max(parameters, scored.parameters), splits or scored.splits
        ridge = max(ridge, scored.ridge)
    return Scored(np.concatenate(found), parameters, splits, ridge), np.concatenate(places)


GRID = 10_000


def kolmogorov_smirnov(first: Floats, second: Floats) -> float:
    """The largest distance of the two empirical distribution functions.

    >>> round(kolmogorov_smirnov(np.array([0.2, 0.3, 0.3, 0.4, 0.5]), np.array([0.3, 0.5, 0.6, 0.6, 0.7])), 6)
    0.6
    """
    places = np.unique(np.concatenate([first, second]))
    return float(np.abs(_shares(first, places) - _shares(second, places)).max())


def legacy_distance(first: Floats, second: Floats) -> float:
    """What a published script computes instead: the distance of the *values* of both functions on a grid of [0, 1].

    Only for comparison with figures printed from that script.
    """
    grid = np.arange(GRID + 1) / GRID
    return kolmogorov_smirnov(_shares(first, grid), _shares(second, grid))


def mean_squared_deviation(scores: Floats, share: float) -> float:
    """pMSE: the mean squared distance of the scores from the share of synthetic rows."""
    return float(np.mean((scores - share) ** 2))


def _shares(sample: Floats, places: Floats) -> Floats:
    return np.searchsorted(np.sort(sample), places, side="right") / len(sample)


@dataclass(frozen=True, slots=True)
class Specks(Metric):
    """Distance of propensity scores, by logistic regression and by a classification tree."""

    name: ClassVar[str] = "specks"
    question: ClassVar[str] = "Can a classifier tell synthetic rows from real ones?"
    scales: ClassVar[tuple[Scale, ...]] = (
        Scale("logistic", "KS distance between real and synthetic rows in the scores of a logistic regression"),
        Scale("cart", "KS distance between real and synthetic rows in the scores of a classification tree"),
        Scale("legacy", "the first score as a published script computes it; for comparison with its figures only"),
    )

    terms: Terms = option("main", help="terms of the regression")
    scheme: Literal["in_sample", "folds"] = option(
        "in_sample", help="rows that are scored: those fitted, or held-out ones (5 folds, or 70/30)"
    )

    complexity: float | None = option(
        None, help="complexity parameter of the tree; cross-validated if omitted", least=0, most=1
    )

    def compare(self, pair: TablePair, context: Context) -> Result:
        """One distance for each classifier."""
        complexity = common_complexity(pair, self.complexity)
        context.done(1 / (len(pair.copies) + 4))
        found = []
        for place, copy in enumerate(pair.copies):
            found.append(self._distances(pair.real, copy, complexity, context))
            context.done((place + 2) / (len(pair.copies) + 4))
        lines = pair.between_halves(
            lambda one, other: self._distances(one, other, complexity, context).outcomes, len(self.scales)
        )
        bottoms = self._distances(pair.real, pair.independent, complexity, context).outcomes
        scores = tuple(
            scale.score(mean_outcome([one.outcomes[place] for one in found]), lines[place], bottoms[place])
            for place, scale in enumerate(self.scales)
        )
        notes = [*(MAIN_EFFECTS if self.terms == "main" else ())]
        if scores[1].value is not None:
            notes.append(f"All trees were pruned at complexity {complexity:.3g}.")
        details = (*_columns(pair), *found[0].details)
        return Result(self.name, self.question, scores, details, tuple(notes))

    def _distances(self, first: Rows, second: Rows, complexity: float, context: Context) -> "_ScoresApart":
        """By regression, by tree, and by regression as the published script has it."""
        reason = too_small(first, second, self.scheme)
        if reason is not None:
            return _ScoresApart((reason,) * 3)
        target = labels(first, second)
        trees = self._scores(Trees.of(first, second, complexity), target, context)
        by_tree = kolmogorov_smirnov(*trees)
        logistic = Logistic.of(first, second, self.terms)
        if isinstance(logistic, Unavailable):
            return _ScoresApart((logistic, by_tree, logistic), (_histogram("tree", trees),))
        scores = self._scores(logistic, target, context)
        pictures = (_histogram("tree", trees), _histogram("regression", scores))
        return _ScoresApart((kolmogorov_smirnov(*scores), by_tree, legacy_distance(*scores)), pictures)

    def _scores(self, classifier: Classifier, target: Floats, context: Context) -> tuple[Floats, Floats]:
        """Scores of the rows of the first and of the second table."""
        if self.scheme == "in_sample":
            scores, truth = classifier.scores(target).scores, target
        else:
            scored, places = out_of_sample(classifier, target, context.rng("folds"))
            scores, truth = scored.scores, target[places]
        return scores[truth == 0], scores[truth == 1]


@dataclass(frozen=True, slots=True)
class _ScoresApart:
    """Distances in the order of the scales, and the distribution of the scores of each classifier."""

    outcomes: tuple[Outcome, ...]
    details: tuple[Detail, ...] = ()


SCORE_BINS = 20


def _histogram(name: str, scores: tuple[Floats, Floats]) -> Detail:
    """Shares of the rows of both tables by score."""
    edges = np.linspace(0, 1, SCORE_BINS + 1)
    ours, theirs = (np.histogram(np.clip(one, 0, 1), edges)[0] / len(one) for one in scores)
    kinds = dict.fromkeys(("from", "to", "real_share", "synthetic_share"), pa.float64())
    columns = {"from": edges[:-1].tolist(), "to": edges[1:].tolist(), "real_share": ours.tolist()}
    caption = f"Rows of both tables by how likely the {name} thinks them to be synthetic, from unlikely to likely."
    return Detail(f"{name}_scores", caption, table_of(columns | {"synthetic_share": theirs.tolist()}, kinds))


def _columns(pair: TablePair) -> tuple[Detail, ...]:
    """Which columns give the synthetic rows away: how much each moves the log odds, for the first copy."""
    if too_small(pair.real, pair.copies[0], "in_sample") is not None:
        return ()
    classifier = Logistic.of(pair.real, pair.copies[0])
    if isinstance(classifier, Unavailable):
        return ()
    design = classifier.design
    fit = fit_logistic(design, labels(pair.real, pair.copies[0]), classifier.kept)
    origins = [_origin(pair, name) for name in design.names]
    found = []
    for name in dict.fromkeys(origins):
        if name != INTERCEPT:
            mine = np.where(np.asarray(origins) == name, fit.coefficients, 0.0)
            found.append((name, _spread(design, mine)))
    found.sort(key=lambda entry: -entry[1])
    kinds = {"column": pa.string(), "spread": pa.float64()}
    table = table_of({"column": [name for name, _ in found], "spread": [spread for _, spread in found]}, kinds)
    caption = "How much each column moves the log odds of being synthetic (standard deviation), largest first."
    return (Detail("columns", caption, table),)


def _spread(design: ModelMatrix, coefficients: Floats) -> float:
    return float(design.predict(coefficients).std())


def _origin(pair: TablePair, name: str) -> str:
    """The column behind a column of the matrix: names are "column" or "column=label"."""
    if name == INTERCEPT or name in pair.schema.names:
        return name
    parts = [part for part in pair.codec.domain.columns if name.startswith(f"{part}=")]
    return pair.codec.origin(max(parts, key=len)) if parts else name


NullName = Literal["permutation", "fitted_model", "bootstrap"]
Scheme = Literal["in_sample", "folds"]


@dataclass(frozen=True, slots=True)
class Null:
    """Mean and standard deviation of pMSE under the null, the draws behind them, and how many did not split."""

    name: NullName
    mean: float
    spread: float
    draws: tuple[float, ...] = ()
    unsplit: int = 0


def closed_form(name: NullName, parameters: int, share: float, rows: int) -> Null:
    """The null of a logistic regression with that many coefficients (the intercept included) on its own rows."""
    factor = share * (1 - share) / rows * ((1 - share) if name == "fitted_model" else 1.0)
    slopes = parameters - 1
    return Null(name, slopes * factor, math.sqrt(2 * slopes) * factor)


def observed(
    classifier: Classifier, target: Floats, scheme: Scheme, rng: np.random.Generator
) -> tuple[float, int, bool]:
    """pMSE of these labels, the number of parameters, and whether anything was told apart."""
    share = float(target.mean())
    if scheme == "in_sample":
        scored = classifier.scores(target)
    else:
        scored, _ = out_of_sample(classifier, target, rng)
    return mean_squared_deviation(scored.scores, share), scored.parameters, scored.splits


def drawn_null(
    classifier: Classifier, target: Floats, scheme: Scheme, name: NullName, *, draws: int, context: Context
) -> Null:  # fmt: skip
    """The null from random draws."""
    found: list[float] = []
    unsplit = 0
    share = float(target.mean())
    for draw in range(draws):
        rng = context.rng("null", name, scheme, draw)
        if name == "bootstrap":
            redrawn = classifier.resampled(rng.choice(np.flatnonzero(target == 0), len(target)))
            value, _, splits = observed(redrawn, target, scheme, rng)
        else:
            value, _, splits = observed(classifier, rng.permutation(target), scheme, rng)
        found.append(value * (1 - share) if name == "fitted_model" else value)
        unsplit += not splits
    values = np.asarray(found)
    spread = float(values.std(ddof=1)) if draws > 1 else 0.0
    return Null(name, float(values.mean()), spread, tuple(found), unsplit)


Kind = Literal["logistic", "cart"]
WORDS = {"logistic": "a logistic regression", "cart": "a classification tree"}


def _scales() -> tuple[Scale, ...]:
    found = []
    for kind, words in WORDS.items():
        ratio = f"pMSE of {words}, divided by its mean under the null: 1 is what chance alone gives"
        standard = f"pMSE of {words}, in standard deviations from its mean under the null"
        found.append(Scale(f"{kind}_ratio", ratio, highest=None))
        found.append(Scale(f"{kind}_raw", f"pMSE of {words}"))
        found.append(Scale(f"{kind}_standardised", standard, lowest=None, highest=None, best=None))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Pmse(Metric):
    """Propensity score mean squared error, by logistic regression and by a classification tree."""

    name: ClassVar[str] = "pmse"
    question: ClassVar[str] = "How much better than chance is a classifier at spotting synthetic rows?"
    scales: ClassVar[tuple[Scale, ...]] = _scales()

    terms: Terms = option("main", help="terms of the regression")
    scheme: Scheme = option(
        "in_sample", help="rows that are scored: those fitted, or held-out ones (5 folds, or 70/30)"
    )
    null: NullName = option("permutation", help="null distribution to divide by")
    draws: int = option(10, help="number of random draws for nulls without a closed form", least=2)
    complexity: float | None = option(
        None, help="complexity parameter of the tree; cross-validated if omitted", least=0, most=1
    )

    def _check_together(self) -> None:
        if self.null == "fitted_model" and self.scheme == "folds":
            rule = "is known only for rows that were fitted (scheme in_sample): folds train on parts of the real rows."
            raise UsageError("pmse: null fitted_model", rule, "Use null permutation or bootstrap with folds.")

    def compare(self, pair: TablePair, context: Context) -> Result:
        """Raw, ratio and standardised values of both classifiers."""
        rows: list[_Row] = []
        complexity = common_complexity(pair, self.complexity)
        for place, copy in enumerate(pair.copies):
            rows += self._both(pair.real, copy, f"copy {place + 1}", complexity, context)
            context.done((place + 1) / (len(pair.copies) + 1))
        halves = pair.halves
        lines: list[_Row] = []
        if not isinstance(halves, Unavailable):
            lines = self._both(*halves, "halves", complexity, context)
        scores = []
        for scale in self.scales:
            kind, _, form = scale.name.partition("_")
            values = [row.outcome(form) for row in rows if row.kind == kind and row.null.name == self.null]
            line = [row.outcome(form) for row in lines if row.kind == kind and row.null.name == self.null]
            against = halves if isinstance(halves, Unavailable) else mean_outcome(line)
            scores.append(scale.score(mean_outcome(values), against))
        notes = [
            f"The null is {self.null}.",
            *(MAIN_EFFECTS if self.terms == "main" else ()),
            *dict.fromkeys(row.note for row in rows if row.note),
        ]
        return Result(self.name, self.question, tuple(scores), (_variants([*rows, *lines]),), tuple(notes))

    def _both(self, first: Rows, second: Rows, which: str, complexity: float, context: Context) -> list["_Row"]:
        blank = Null(self.null, 0.0, 0.0)
        reason = too_small(first, second, self.scheme)
        if reason is not None:
            return [_Row(which, kind, self.scheme, blank, reason) for kind in ("logistic", "cart")]
        logistic = Logistic.of(first, second, self.terms)
        if isinstance(logistic, Unavailable):
            rows = [_Row(which, "logistic", self.scheme, blank, logistic)]
        else:
            rows = self._rows(logistic, first, second, which, context)
        return rows + self._rows(Trees.of(first, second, complexity), first, second, which, context)

    def _rows(
        self, classifier: Logistic | Trees, first: Rows, second: Rows, which: str, context: Context
    ) -> list["_Row"]:
        target = labels(first, second)
        kind: Kind = "logistic" if isinstance(classifier, Logistic) else "cart"
        value, parameters, splits = observed(classifier, target, self.scheme, context.rng("folds"))
        exact = kind == "logistic" and self.scheme == "in_sample"
        wanted: list[NullName] = ["permutation", "fitted_model"] if exact else [self.null]
        if self.null not in wanted:
            wanted.append(self.null)
        found = []
        for name in wanted:
            null = self._null(classifier, target, name, parameters if exact else None, context)
            found.append(_Row(which, kind, self.scheme, null, value, parameters, _remark(classifier, splits, null)))
        return found

    def _null(
        self, classifier: Classifier, target: Floats, name: NullName, parameters: int | None, context: Context
    ) -> Null:
        if parameters is not None and name != "bootstrap":
            return closed_form(name, parameters, float(target.mean()), len(target))
        return drawn_null(classifier, target, self.scheme, name, draws=self.draws, context=context)


@dataclass(frozen=True, slots=True)
class _Row:
    """pMSE of one pair of tables against one null."""

    which: str
    kind: Kind
    scheme: Scheme
    null: Null
    value: Outcome
    parameters: int = 0
    note: str = ""

    def outcome(self, form: str) -> Outcome:
        if isinstance(self.value, Unavailable) or form == "raw":
            return self.value
        if self.null.mean <= 0:
            if self.kind == "cart":
                return Unavailable("no tree split under the null, so there is nothing to divide by")
            return Unavailable("no column varies, so nothing can tell the tables apart")
        if form == "ratio":
            return self.value / self.null.mean
        if self.null.spread <= 0:
            return Unavailable("every draw under the null gave the same value")
        return (self.value - self.null.mean) / self.null.spread


def _remark(classifier: Logistic | Trees, splits: bool, null: Null) -> str:
    if isinstance(classifier, Logistic):
        return ""
    words = f"Trees were pruned at complexity {classifier.complexity:.3g}"
    own = "" if splits else "; the tree of these tables did not split"
    return f"{words}{own}; {null.unsplit} of {len(null.draws)} trees under the null did not split."


def _variants(rows: list[_Row]) -> Detail:
    kinds = {
        "tables": pa.string(), "classifier": pa.string(), "scheme": pa.string(), "null": pa.string(),
        "parameters": pa.int64(), "pmse": pa.float64(), "null_mean": pa.float64(), "null_sd": pa.float64(),
        "ratio": pa.float64(), "standardised": pa.float64(), "null_draws": pa.int64(), "null_unsplit": pa.int64(),
        "why_not": pa.string(),
    }  # fmt: skip
    ordered = sorted(rows, key=lambda row: -_number(row.outcome("ratio"), -math.inf))
    columns: dict[str, list[object]] = {name: [] for name in kinds}
    for row in ordered:
        ratio = row.outcome("ratio")
        entries: tuple[object, ...] = (
            row.which, row.kind, row.scheme, row.null.name, row.parameters, _shown(row.value), row.null.mean,
            row.null.spread, _shown(ratio), _shown(row.outcome("standardised")), len(row.null.draws),
            row.null.unsplit, ratio.reason if isinstance(ratio, Unavailable) else "",
        )  # fmt: skip
        for name, entry in zip(kinds, entries, strict=True):
            columns[name].append(entry)
    caption = "pMSE of each copy (and of two real halves) against each null, largest ratio first."
    return Detail("variants", caption, table_of(columns, kinds))


def _number(outcome: Outcome, otherwise: float) -> float:
    return otherwise if isinstance(outcome, Unavailable) else outcome


def _shown(outcome: Outcome) -> float | None:
    return None if isinstance(outcome, Unavailable) else outcome
