"""Classification trees for two classes on coded columns, grown and pruned as `rpart` does, and the metric of their use.

Columns as codes
----------------
Labels keep their codes. Numbers are cut at quantiles of all rows at hand (exactly, if they take few values), finer
than the bins of the schema, so that a tree also sees what the stand-in does inside a bin; special and missing
numbers get codes above all numbers.

Growing
-------
Splits minimise Gini impurity. Ordered columns are cut between codes; the labels of unordered ones are sorted by their
share of class 1 and cut there, which finds the best subset. A code that did not occur at a node follows the larger
side.

Cost-complexity pruning
-----------------------
The risk of a node is the number of rows it would misclassify. Starting from the full tree, the node whose removal
costs least per leaf saved is cut, again and again (weakest links); the penalty at which that happens is its collapse
value, relative to the risk of the root. The penalty used is cross-validated unless it is given.

prediction
----------
Train on synthetic rows, test on real ones, and compare with training on real rows. For each column a classification
tree predicts it from all others: the most frequent label against the rest, or whether a number is above its median. A
fifth of the real rows is kept for testing, the rest is halved: one half trains the real model, the other (as a stand-in
made of different people) gives the yardstick. The score is how much of the area under the ROC curve is lost.
"""

import heapq
import itertools
import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.stats import rankdata

from understudy.arrays import Bools, Bytes, Floats, Ints, Shorts
from understudy.compiled import compiled
from understudy.evaluate.metric import (
    Context,
    Detail,
    Metric,
    Result,
    Rows,
    Scale,
    TablePair,
    check_columns,
    refused,
    stacked,
    table_of,
    wholly_unread,
)
from understudy.options import option
from understudy.schema import Schema, code_names
from understudy.schema.columns import NumberColumn

MOST_CUTS = 256
MOST_CODES = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """One row per column of the table, one entry per record; `ordered` tells numbers from labels."""

    names: tuple[str, ...]
    codes: npt.NDArray[np.uint16]
    sizes: Ints
    ordered: Bools

    def take(self, index: Ints) -> "Features":
        """The same columns for these records."""
        return Features(self.names, np.ascontiguousarray(self.codes[:, index]), self.sizes, self.ordered)


def tree_features(rows: Rows, leave_out: Collection[str] = ()) -> Features:
    """The columns of the table but those left out."""
    codec = rows.codec
    names: list[str] = []
    columns: list[npt.NDArray[np.uint16]] = []
    sizes: list[int] = []
    ordered: list[bool] = []
    for part in rows.domain.columns:
        origin = codec.origin(part)
        number = isinstance(codec.schema.column(origin), NumberColumn)
        if origin in leave_out or (number and origin in names):
            continue
        codes, size = _number_codes(rows, origin, part) if number else _label_codes(rows, part)
        names.append(origin if number else part)
        columns.append(codes)
        sizes.append(size)
        ordered.append(number)
    matrix = np.stack(columns) if columns else np.empty((0, rows.count), np.uint16)
    return Features(tuple(names), matrix, np.asarray(sizes, np.int64), np.asarray(ordered, np.bool_))


def _label_codes(rows: Rows, part: str) -> tuple[npt.NDArray[np.uint16], int]:
    codes, size = rows.codes[part], rows.domain.sizes[part]
    if size > MOST_CODES:  # rare labels beyond the most frequent share one code
        often = np.argsort(-np.bincount(codes, minlength=size), kind="stable")[: MOST_CODES - 1]
        table = np.full(size, MOST_CODES - 1, np.int64)
        table[often] = np.arange(len(often))
        return table[codes].astype(np.uint16), MOST_CODES
    return codes.astype(np.uint16), size


def _number_codes(rows: Rows, name: str, part: str) -> tuple[npt.NDArray[np.uint16], int]:
    numbers = rows.numbers[name]
    odd = np.isnan(numbers)
    known = np.unique(numbers[~odd])
    if len(known) > MOST_CUTS:
        shares = np.arange(1, MOST_CUTS) / MOST_CUTS
        known = np.unique(np.quantile(numbers[~odd], shares, method="inverted_cdf"))
    found = np.searchsorted(known, numbers, side="left")
    states, place = np.unique(rows.codes[part][odd], return_inverse=True)
    codes = np.where(odd, 0, found).astype(np.int64)
    codes[odd] = len(known) + 1 + place.ravel()
    return codes.astype(np.uint16), len(known) + 1 + len(states)


LEAST_GAIN = 1e-9


@compiled()  # pragma: no cover
def _histogram(column, target, rows, low, high, number, ones):  # type: ignore[no-untyped-def]
    for code in range(number.size):
        number[code] = ones[code] = 0
    for i in range(low, high):
        code = column[rows[i]]
        number[code] += 1
        ones[code] += target[rows[i]]


@compiled()  # pragma: no cover
def _occupied_order(number, ones, ordered, order):  # type: ignore[no-untyped-def]
    """Codes that occur, by value or by share of class 1; returns how many."""
    used = 0
    for code in range(number.size):
        if number[code] > 0:
            order[used] = code
            used += 1
    if not ordered:
        shares = np.empty(used)
        for place in range(used):
            shares[place] = ones[order[place]] / number[order[place]]
        sorting = np.argsort(shares, kind="mergesort")
        copy = order[:used].copy()
        for place in range(used):
            order[place] = copy[sorting[place]]
    return used


@compiled()  # pragma: no cover
def _best_cut(number, ones, order, used, total, positive, bucket):  # type: ignore[no-untyped-def]
    """The place after which to cut and the gain in Σ n₁²/n; −1 if no cut is allowed."""
    best, where = 0.0, -1
    left, left_ones = 0, 0
    whole = positive * positive / total
    for place in range(used - 1):
        left += number[order[place]]
        left_ones += ones[order[place]]
        right = total - left
        if left < bucket:
            continue
        if right < bucket:
            break
        right_ones = positive - left_ones
        gain = left_ones * left_ones / left + right_ones * right_ones / right - whole
        if gain > best * (1.0 + 1e-12):
            best, where = gain, place
    return best, where


@compiled()  # pragma: no cover
def _split_sides(number, order, used, where, ordered, sides):  # type: ignore[no-untyped-def]
    """1 for codes that go left. Codes not seen here: by their place among ordered ones, else to the larger side."""
    left = 0
    for place in range(where + 1):
        left += number[order[place]]
    total = 0
    for place in range(used):
        total += number[order[place]]
    if ordered:
        cut = (order[where] + order[where + 1]) // 2
        for code in range(sides.size):
            sides[code] = 1 if code <= cut else 0
        return
    for code in range(sides.size):
        sides[code] = 1 if 2 * left >= total else 0
    for place in range(used):
        sides[order[place]] = 1 if place <= where else 0


@compiled()  # pragma: no cover
def _partition(column, rows, low, high, sides, scratch):  # type: ignore[no-untyped-def]
    """Moves rows that go left to the front, keeping their order; returns where the right part begins."""
    middle, waiting = low, 0
    for i in range(low, high):
        if sides[column[rows[i]]]:
            rows[middle] = rows[i]
            middle += 1
        else:
            scratch[waiting] = rows[i]
            waiting += 1
    for i in range(waiting):
        rows[middle + i] = scratch[i]
    return middle


@compiled()  # pragma: no cover
def _choose(codes, sizes, ordered, target, rows, span, bucket, work):  # type: ignore[no-untyped-def]
    """The column to split by (−1: none), the place of the cut, and how many codes occur; leaves order and counts."""
    low, high, positive = span
    counts, hits, order, best_counts, best_order = work
    best, chosen, where, best_used = LEAST_GAIN * (high - low), -1, -1, 0
    for f in range(sizes.size):
        size = sizes[f]
        _histogram(codes[f], target, rows, low, high, counts[:size], hits[:size])
        used = _occupied_order(counts[:size], hits[:size], ordered[f], order)
        gain, place = _best_cut(counts, hits, order, used, high - low, positive, bucket)
        if place >= 0 and gain > best * (1.0 + 1e-12):
            best, chosen, where, best_used = gain, f, place, used
            for i in range(used):  # loops: assigning slices takes many times as long to compile
                best_order[i] = order[i]
            for i in range(size):
                best_counts[i] = counts[i]
    return chosen, where, best_used


@compiled()  # pragma: no cover
def _enlarged(sides, needed):  # type: ignore[no-untyped-def]
    larger = np.zeros(max(2 * sides.size, needed), np.uint8)
    for place in range(sides.size):
        larger[place] = sides[place]
    return larger


@compiled()  # pragma: no cover
def grow(codes, sizes, ordered, target, rows, limits):  # type: ignore[no-untyped-def]
    """Nodes in the order they are made: column, children, rows and ones of each, and the sides of every split."""
    min_split, bucket, max_depth = limits
    most = 2 * (rows.size // bucket) + 3
    column, left = np.full(most, -1, np.int32), np.full(most, -1, np.int32)
    start, number, ones = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64)
    sides, used_sides = np.zeros(1024, np.uint8), 0
    widest = 1
    for f in range(sizes.size):
        widest = max(widest, sizes[f])
    work = (
        np.zeros(widest, np.int64), np.zeros(widest, np.int64), np.zeros(widest, np.int64),
        np.zeros(widest, np.int64), np.zeros(widest, np.int64),
    )  # fmt: skip
    scratch = np.zeros(rows.size, np.int64)
    stack = [(0, 0, rows.size, 0)]
    nodes = 1
    while len(stack) > 0:
        node, low, high, depth = stack.pop()
        positive = 0
        for i in range(low, high):
            positive += target[rows[i]]
        number[node], ones[node] = high - low, positive
        if high - low < min_split or depth >= max_depth or positive == 0 or positive == high - low:
            continue
        chosen, where, used = _choose(codes, sizes, ordered, target, rows, (low, high, positive), bucket, work)
        if chosen < 0:
            continue
        size = sizes[chosen]
        if used_sides + size > sides.size:
            sides = _enlarged(sides, used_sides + size)
        here = sides[used_sides : used_sides + size]
        _split_sides(work[3][:size], work[4], used, where, ordered[chosen], here)
        middle = _partition(codes[chosen], rows, low, high, here, scratch)
        column[node], left[node], start[node] = chosen, nodes, used_sides
        used_sides += size
        stack.append((nodes + 1, middle, high, depth + 1))
        stack.append((nodes, low, middle, depth + 1))
        nodes += 2
    return column[:nodes], left[:nodes], start[:nodes], number[:nodes], ones[:nodes], sides[:used_sides]


@compiled()  # pragma: no cover
def leaves_of(codes, rows, column, left, start, sides, collapse, complexity):  # type: ignore[no-untyped-def]
    """The node each row ends in, when nodes whose collapse value is not above the complexity are leaves."""
    found = np.empty(rows.size, np.int32)
    for i in range(rows.size):
        node = 0
        while column[node] >= 0 and collapse[node] > complexity:
            side = sides[start[node] + codes[column[node], rows[i]]]
            node = left[node] if side else left[node] + 1
        found[i] = node
    return found


@compiled()  # pragma: no cover
def collapse_values(left, number, ones):  # type: ignore[no-untyped-def]
    """The collapse value of every inner node; 0 for leaves. A parent always has a smaller number than its children."""
    nodes = left.size
    risk = np.minimum(ones, number - ones)
    parent = np.full(nodes, -1, np.int64)
    leaves = np.ones(nodes, np.int64)
    below = risk.copy()
    for node in range(nodes - 1, -1, -1):
        if left[node] >= 0:
            parent[left[node]] = node
            parent[left[node] + 1] = node
            leaves[node] = leaves[left[node]] + leaves[left[node] + 1]
            below[node] = below[left[node]] + below[left[node] + 1]
    collapse = np.zeros(nodes)
    gone = np.zeros(nodes, np.bool_)
    queue = [(0.0, 0)]
    queue.clear()
    for node in range(nodes):
        if left[node] >= 0:
            heapq.heappush(queue, ((risk[node] - below[node]) / (leaves[node] - 1), node))
    reached = 0.0
    scale = max(risk[0], 1)
    while len(queue) > 0:
        cost, node = heapq.heappop(queue)
        if leaves[node] == 1 or cost != (risk[node] - below[node]) / (leaves[node] - 1):
            continue
        up = parent[node]
        while up >= 0 and not gone[up]:
            up = parent[up]
        if up >= 0:  # a node above was cut before
            continue
        reached = max(reached, cost)
        collapse[node] = reached / scale
        saved, added = leaves[node] - 1, risk[node] - below[node]
        leaves[node], below[node], gone[node] = 1, risk[node], True
        up = parent[node]
        while up >= 0:
            leaves[up] -= saved
            below[up] += added
            if leaves[up] > 1:
                heapq.heappush(queue, ((risk[up] - below[up]) / (leaves[up] - 1), up))
            up = parent[up]
    for node in range(1, nodes):  # what lies under a node that was cut first goes with it
        if left[node] >= 0 and not gone[node]:
            collapse[node] = collapse[parent[node]]
    return collapse


@compiled()  # pragma: no cover
def errors_by_complexity(codes, rows, target, tree, grid):  # type: ignore[no-untyped-def]
    """Misclassified rows for every complexity of the increasing grid."""
    column, left, start, sides, collapse, number, ones = tree
    change = np.zeros(grid.size + 1, np.int64)
    for i in range(rows.size):
        node, bound = 0, grid.size
        while True:
            inner = column[node] >= 0
            first = np.searchsorted(grid, collapse[node]) if inner else 0
            if first < bound:
                predicted = 1 if 2 * ones[node] > number[node] else 0
                if predicted != target[rows[i]]:
                    change[first] += 1
                    change[bound] -= 1
                bound = first
            if not inner or bound == 0:
                break
            side = sides[start[node] + codes[column[node], rows[i]]]
            node = left[node] if side else left[node] + 1
    return np.cumsum(change[: grid.size])


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """When growing stops: rows a node needs to be split, rows a leaf must keep, levels below the root."""

    split: int = 20
    bucket: int = 7
    depth: int = 30


USUAL = TreeLimits()


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A fully grown tree; how much of it is used is decided by the complexity asked for."""

    column: Shorts
    left: Shorts
    start: Ints
    number: Ints
    ones: Ints
    sides: Bytes
    collapse: Floats

    def leaves(self, features: Features, complexity: float = -1.0, rows: Ints | None = None) -> Shorts:
        """The leaf of each row, when nodes worth no more than the complexity are cut; below 0: none is."""
        wanted = np.arange(features.codes.shape[1]) if rows is None else rows
        found: Shorts = leaves_of(
            features.codes, wanted, self.column, self.left, self.start, self.sides, self.collapse, complexity
        )
        return found

    def probabilities(self, features: Features, complexity: float = -1.0, rows: Ints | None = None) -> Floats:
        """The share of class 1 in the leaf of each row."""
        shares = self.ones / np.maximum(self.number, 1)
        return shares[self.leaves(features, complexity, rows)]

    def splits(self, complexity: float) -> bool:
        """Whether the tree still splits at this complexity."""
        return bool(self.column[0] >= 0 and self.collapse[0] > complexity)


def grow_tree(features: Features, target: Bytes, rows: Ints | None = None, limits: TreeLimits = USUAL) -> Tree:
    """The full tree for these rows (all of them when not given)."""
    index = np.arange(features.codes.shape[1]) if rows is None else rows.astype(np.int64)
    bounds = (limits.split, limits.bucket, limits.depth)
    parts = grow(features.codes, features.sizes, features.ordered, target, index.copy(), bounds)
    column, left, start, number, ones, sides = parts
    return Tree(column, left, start, number, ones, sides, collapse_values(left, number, ones))


def best_complexity(features: Features, target: Bytes, rng: np.random.Generator, *, folds: int = 5) -> float:
    """The complexity with the smallest cross-validated error, the largest one if several tie."""
    return cross_validated(features, target, rng, folds=folds)[0]


def cross_validated(
    features: Features, target: Bytes, rng: np.random.Generator, *, folds: int = 5
) -> tuple[float, float]:
    """The complexity with the smallest cross-validated error, and the share of rows that is wrong at it.

    Candidates lie between the values at which the tree of all rows changes. Of several with the same error it is the
    largest; a tree without any split is wrong about the smaller class.
    """
    whole = grow_tree(features, target)
    values = np.unique(whole.collapse[whole.column >= 0])
    values = values[values > 0]
    if not len(values):
        return 0.0, min(float(target.mean()), 1.0 - float(target.mean()))
    grid = np.concatenate([[0.0], np.sqrt(values[:-1] * values[1:]), [2 * values[-1]]])
    errors = np.zeros(len(grid), np.int64)
    fold = rng.permutation(np.arange(len(target)) % folds)
    for number in range(folds):
        tree = grow_tree(features, target, np.flatnonzero(fold != number))
        parts = (tree.column, tree.left, tree.start, tree.sides, tree.collapse, tree.number, tree.ones)
        errors += errors_by_complexity(features.codes, np.flatnonzero(fold == number), target, parts, grid)
    best = len(grid) - 1 - int(np.argmin(errors[::-1]))
    return float(grid[best]), float(errors[best]) / len(target)


LIMITS = TreeLimits(split=60, bucket=20, depth=8)
FEWEST_ROWS = 200
TESTED = 0.2
MOST_TARGETS = 30


def area_under_curve(scores: Floats, truth: Bytes) -> float | None:
    """The probability that a random positive scores above a random negative, ties counting half; None without both.

    >>> area_under_curve(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1], np.uint8))
    0.75
    """
    positive = int(truth.sum())
    negative = len(truth) - positive
    if positive == 0 or negative == 0:
        return None
    ranks = float(rankdata(scores)[truth == 1].sum())
    return (ranks - positive * (positive + 1) / 2) / (positive * negative)


@dataclass(frozen=True, slots=True)
class Prediction(Metric):
    """Predicting each column from the others."""

    name: ClassVar[str] = "prediction"
    question: ClassVar[str] = "Does a model trained on synthetic rows predict real ones as well?"
    scales: ClassVar[tuple[Scale, ...]] = (
        Scale("mean_loss", "mean loss of area under the ROC curve, compared with training on real rows"),
        Scale("worst_loss", "largest loss"),
    )

    targets: tuple[str, ...] = option((), help=f"columns to predict; the first {MOST_TARGETS} if omitted")

    def check(self, schema: Schema) -> None:
        """Raises for a column that is not in the schema."""
        check_columns("prediction", self.targets, schema)

    def compare(self, pair: TablePair, context: Context) -> Result:
        """Losses over all columns that can be predicted."""
        smallest = min(pair.real.count, *(copy.count for copy in pair.copies))
        if smallest < FEWEST_ROWS:
            return refused(self, f"fewer than {FEWEST_ROWS} rows are too few to train and test on")
        names = self.targets or tuple(column.name for column in pair.schema.modelled)
        notes = []
        if not self.targets and len(names) > MOST_TARGETS:
            notes.append(f"The first {MOST_TARGETS} of {len(names)} columns were predicted; name others with targets.")
            names = names[:MOST_TARGETS]
        order = context.rng("split").permutation(pair.real.count)
        found = []
        for place, name in enumerate(names):
            areas = _areas(pair, name, order)
            if areas is None:
                unread = any(wholly_unread(pair.real, part) for part in code_names(pair.schema.column(name)))
                why = "the schema can read no value of it" if unread else "one class is empty"
                notes.append(f"{name} cannot be predicted: {why}.")
            else:
                found.append((name, *areas))
            context.done((place + 1) / len(names))
        if not found:
            return refused(self, "no column has two classes in all parts")
        losses = [max(0.0, real - synthetic) for _, real, synthetic, _ in found]
        lines = [max(0.0, real - other) for _, real, _, other in found]
        blind = [max(0.0, real - 0.5) for _, real, _, _ in found]  # columns unrelated to a target predict it by chance
        scores = (
            self.scales[0].score(
                math.fsum(losses) / len(losses), math.fsum(lines) / len(lines), math.fsum(blind) / len(blind)
            ),
            self.scales[1].score(max(losses), max(lines), max(blind)),
        )
        return Result(self.name, self.question, scores, (_detail(found),), tuple(notes))


def _areas(pair: TablePair, name: str, order: Ints) -> tuple[float, float, float] | None:
    """Areas on the test rows: trained on a real part, on synthetic rows (mean of copies), on the other real part."""
    real, copies = pair.real, pair.copies
    whole = real
    for copy in copies:
        whole = stacked(whole, copy)
    target = _target(real, whole, name)
    features = tree_features(whole, leave_out={name})
    if not len(features.names):
        return None
    tested = round(TESTED * real.count)
    middle = tested + (real.count - tested) // 2
    test, first, second = order[:tested], order[tested:middle], order[middle:]
    starts = np.cumsum([real.count, *(copy.count for copy in copies)]).tolist()
    spans = [np.arange(low, high) for low, high in itertools.pairwise(starts)]
    areas = [_area(features, target, train, test) for train in (first, second, *spans)]
    known = [area for area in areas if area is not None]
    if len(known) < len(areas):
        return None
    return known[0], math.fsum(known[2:]) / len(copies), known[1]


def _area(features: Features, target: Bytes, train: Ints, test: Ints) -> float | None:
    tree = grow_tree(features, target, np.sort(train), LIMITS)
    return area_under_curve(tree.probabilities(features, rows=test), target[test])


def _target(real: Rows, whole: Rows, name: str) -> Bytes:
    """1 for the real table's most frequent label, or for numbers above the real median."""
    if isinstance(real.codec.schema.column(name), NumberColumn):
        known = real.numbers[name][~np.isnan(real.numbers[name])]
        middle = float(np.median(known)) if len(known) else 0.0
        return np.asarray(whole.numbers[name] > middle, np.uint8)
    part = next(part for part in real.domain.columns if real.codec.origin(part) == name)
    return np.asarray(whole.codes[part] == np.bincount(real.codes[part]).argmax(), np.uint8)


def _detail(found: list[tuple[str, float, float, float]]) -> Detail:
    ordered = sorted(found, key=lambda one: one[2] - one[1])
    kinds = {
        "column": pa.string(), "area_real": pa.float64(), "area_synthetic": pa.float64(), "area_yardstick": pa.float64()
    }  # fmt: skip
    columns = {name: [one[place] for one in ordered] for place, name in enumerate(kinds)}
    caption = "Area under the ROC curve on real test rows by what the model was trained on, largest loss first."
    return Detail("columns", caption, table_of(columns, kinds))
