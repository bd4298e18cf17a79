"""Cost-complexity pruning: at which penalty per leaf each node of a tree becomes a leaf.

The risk of a node is the number of rows it would misclassify. Starting from the full tree, the node whose removal
costs least per leaf saved is cut, again and again (weakest links); the penalty at which that happens is its collapse
value, relative to the risk of the root.
"""

import heapq

import numpy as np

from understudy.compiled import compiled

__all__ = ["collapse_values", "errors_by_complexity"]


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
