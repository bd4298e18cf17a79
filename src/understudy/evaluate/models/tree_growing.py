"""Growing a classification tree for two classes on coded columns: the compiled half.

Splits minimise Gini impurity. Ordered columns are cut between codes; the labels of unordered ones are sorted by their
share of class 1 and cut there, which finds the best subset. A code that did not occur at a node follows the larger
side.
"""

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled

__all__ = ["grow", "leaves_of"]

LEAST_GAIN = 1e-9

Bytes = npt.NDArray[np.uint8]


@compiled()  # pragma: no cover
def _histogram(column, target, rows, low, high, number, ones):  # type: ignore[no-untyped-def]
    number[:] = 0
    ones[:] = 0
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
    sides[:] = 1 if 2 * left >= total else 0
    for place in range(used):
        sides[order[place]] = 1 if place <= where else 0


@compiled()  # pragma: no cover
def _partition(column, rows, low, high, sides, room):  # type: ignore[no-untyped-def]
    """Moves rows that go left to the front, keeping their order; returns where the right part begins."""
    middle, waiting = low, 0
    for i in range(low, high):
        if sides[column[rows[i]]]:
            rows[middle] = rows[i]
            middle += 1
        else:
            room[waiting] = rows[i]
            waiting += 1
    for i in range(waiting):
        rows[middle + i] = room[i]
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
            best_order[:used] = order[:used]
            best_counts[:size] = counts[:size]
    return chosen, where, best_used


@compiled()  # pragma: no cover
def _enlarged(sides, needed):  # type: ignore[no-untyped-def]
    larger = np.zeros(max(2 * sides.size, needed), np.uint8)
    larger[: sides.size] = sides
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
    room = np.zeros(rows.size, np.int64)
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
        middle = _partition(codes[chosen], rows, low, high, here, room)
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
