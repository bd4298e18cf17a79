"""Histogram trees: where records are counted layer by layer, and the distribution that fits all counts best.

How to use the room, from a structure to a model:

    tree = Structure.root(domain)                      # one node that holds every record
    tree = tree.split(["voted"])                       # one child per code; one entry per node of the last layer
    tree = tree.split(["age", None])                   # nodes may differ; None passes a node on unsplit
    tree = tree.refine(["income", None], parts=4)      # nearly equal ranges of codes of an ordered column
    tree = tree.divide(["age", None], [[2, 4], []])    # ranges that start at given codes

    tree.widths(layer)                                 # codes left per node and column: > 1 means still to be split
    tree.partition(layer)                              # a `Partition` whose cells are the nodes of that layer, in order
    tree.nodes(layer)                                  # the same as a list of (parent, column, low, high)
    tree.leaf_parents()                                # for every cell of the full table (row-major) its last node

Layer 0 is the root. Every layer holds every record once, so any layer costs what one histogram costs; a node passed on
unsplit appears again in the next layer (a second count of the same records, which least squares will use). Below the
last layer comes the *leaf layer*: the full table of all columns in the row-major order of the domain. It is counted as
the clique `domain.everything()`; its cells know their node by `leaf_parents`.

    HistogramTree.of(structure)                        # parent pointers of all layers and of the leaves
    least_squares(tree, values, variances)             # best estimates; variance 0 = known, inf = not measured
    nonnegative_tree(tree, estimates, total, ...)      # counts of 0 or more, children adding up to their parents
    TreeModel.of(structure, signed, counts, total)     # the model: marginals, rows, conditions, files

`mechanisms/tree/layers.py` does all of this for a mechanism in two calls: share out the cost, then measure and fit.
"""
