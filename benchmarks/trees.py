"""Trees on the SIMULATED voter table (44,821 rows, 15 columns, 1,290,240 possible cells): size, comparison, depth.

    python -m benchmarks.trees size       # CPU s and memory of fitting, correcting and sampling the full table
    python -m benchmarks.trees compare    # steps against laplace and random_partition, ε = 1, five copies made anew
    python -m benchmarks.trees depth      # steps with columns chosen node by node, more and more layers

Every line runs in a process of its own; memory is the most that process ever held. Errors are total variations between
the synthetic and the real table, averaged over tables and over the five copies of a release; a repeat is a release, and
random_partition draws another tree for each. Intervals are 95 % (t) of means over repeats; differences are taken
repeat by repeat. "Top" tables are those within the columns of the sequence, "rest" all others. A random tree spends its
layers on columns of the rest, and is better there for that alone; "free" tables have no column of either tree.
`leaf_heavy` gives 90 % of the budget to the full table, and the layers share the other 10 %. By default every method
runs as a user gets it: steps rakes its columns, the baselines sum them up as the papers do. A second part, `summed`,
treats both kinds of trees alike, to tell what the tree does from what raking does; `--margins` picks the parts.
"""

import argparse
import itertools
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from benchmarks.alone import alone
from benchmarks.peers.measure import total_variation
from scipy import stats

from understudy import synthesize
from understudy.codec.table import TableCodec
from understudy.demo import schema_text, voter_table
from understudy.domain import Domain
from understudy.methods.random_partition import random_structure
from understudy.methods.universal_histogram import cut_levels
from understudy.models.histogram_tree import HistogramTree, TreeModel, TreeStructure, least_squares, nonnegative_tree
from understudy.models.tables import allowed
from understudy.schema.document import schema_from_text

SEQUENCE = ("voted", "college_degree", "preregistration_state")
COPIES, SCALE = 5, 10.0
KINDS = ("1-way top", "2-way top", "1-way rest", "2-way rest", "1-way free", "2-way free")
LEAF_HEAVY = 0.9
BAR_SECONDS, BAR_BYTES, BAR_LAYERS = 10.0, 2**30, 6
Run = tuple[str, Mapping[str, object]]


def schema_and_codec() -> tuple[object, TableCodec]:
    """The hand-written schema of the voters and its codes."""
    schema = schema_from_text(schema_text(), "voters.yaml")
    return schema, TableCodec.of(schema)


def peak_bytes() -> int:
    """The most memory this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _by_sequence(domain: Domain, columns: Sequence[str]) -> TreeStructure:
    tree = TreeStructure.root(domain)
    for name in columns:
        tree = tree.split([name] * tree.size())
    return tree


def _by_ranges(domain: Domain, branching: int) -> TreeStructure:
    tree = TreeStructure.root(domain)
    for cut in (cut for level in cut_levels(domain, domain.columns, branching)[:-1] for cut in level):
        tree = tree.refine([cut.column] * tree.size(), parts=cut.parts)
    return tree


TREES: dict[str, Callable[[Domain], TreeStructure]] = {
    "flat": lambda domain: TreeStructure.root(domain),
    "sequence of 3": lambda domain: _by_sequence(domain, SEQUENCE),
    "6 layers by node": lambda domain: random_structure(domain, 6, 1, "node"),
    "ranges, branching 16": lambda domain: _by_ranges(domain, 16),
    "ranges, branching 2": lambda domain: _by_ranges(domain, 2),
}


def size_line(name: str) -> str:
    """Times of one tree, kernels warm: structure, fit, both corrections, both ways to rows."""
    _, codec = schema_and_codec()
    domain, rng = codec.domain, np.random.default_rng(1)
    possible = allowed(domain, domain.everything(), np.arange(domain.cells(domain.columns)), codec.structural_zeros)
    seconds: dict[str, float] = {}
    for _ in range(2):  # the first round loads compiled kernels
        with _timed("tree", seconds):
            structure = TREES[name](domain)
        with _timed("pointers", seconds):
            tree = HistogramTree.of(structure)
        values = [rng.laplace(44_821 / size, SCALE, size) for size in tree.sizes]
        values[-1][~possible] = 0.0
        variances = [2 * SCALE**2] * len(values)
        variances[-1] = np.where(possible, 2 * SCALE**2, 0.0)
        with _timed("fit", seconds):
            fitted = least_squares(tree, values, variances).values
        for way in ("norm_sub", "clip_rescale"):
            with _timed(way, seconds):
                counts = nonnegative_tree(tree, fitted, 44_821.0, way, possible=possible)
        for way in ("controlled", "multinomial"):
            model = TreeModel.of(structure, fitted[-1], counts[-1], 44_821.0, way)
            with _timed(way, seconds):
                model.draw(44_821, rng)
    met = sum(seconds.values()) <= BAR_SECONDS and peak_bytes() < BAR_BYTES
    shown = "".join(f"{value:>13.3f}" for value in seconds.values())
    facts = f"{name:<22}{sum(tree.sizes[:-1]):>10,}{possible.sum():>11,}{shown}{peak_bytes() / 2**20:>10.0f}"
    return f"{facts}  {'met' if met else 'MISSED'}"


@contextmanager
def _timed(step: str, seconds: dict[str, float]) -> Iterator[None]:
    """Notes the CPU seconds of what happens inside."""
    start = time.process_time()
    yield
    seconds[step] = time.process_time() - start


def size() -> None:
    """Prints one line per tree."""
    print(f"CPU s with warm kernels; bar: all steps within {BAR_SECONDS:.0f} s and 1 GiB")
    steps = ("tree", "pointers", "fit", "norm_sub", "clip_rescale", "controlled", "multinomial")
    print(f"{'tree':<22}{'nodes':>10}{'leaves':>11}" + "".join(f"{step:>13}" for step in steps) + f"{'peak MiB':>10}")
    for name in TREES:
        print(alone(size_line, name), flush=True)


@dataclass(frozen=True)
class Repeat:
    """One release of five copies: the mean total variation of every table, and the columns its tree splits by."""

    errors: npt.NDArray[np.float64]
    split: frozenset[str]


def repeats_of(run: Run, epsilon: float, repeats: int) -> list[Repeat]:
    """Releases of one method, held against the real table; a random tree is drawn anew for each."""
    method, options = run
    _, codec = schema_and_codec()
    found = []
    for seed in range(repeats):
        split: frozenset[str] = frozenset(str(options.get("sequence", "")).split(",")) - {""}
        if method == "random_partition":
            options = {**options, "structure_seed": seed}
            tree = random_structure(codec.domain, int(str(options["layers"])), seed, "layer")
            split = frozenset(node.column for layer in range(1, tree.layers + 1) for node in tree.nodes(layer)[:1])
        found.append(Repeat(errors_of((method, options), epsilon, seed), split))
    return found


def errors_of(run: Run, epsilon: float, seed: int) -> npt.NDArray[np.float64]:
    """Total variation of all one- and two-way tables, averaged over the copies of one release."""
    schema, codec = schema_and_codec()
    real_table = voter_table()
    method, options = run
    release = synthesize(
        real_table, schema, method=method, epsilon=epsilon, options=options, copies=COPIES,
        copies_mode="remeasure", seed=seed,
    )  # fmt: skip
    domain = dict(codec.domain.sizes)
    real = {name: codec.encode(name, real_table.column(name)).astype(np.int64) for name in domain}
    found = np.zeros(len(tables_of(domain)))
    for table in release.tables:
        made = {name: codec.encode(name, table.column(name)).astype(np.int64) for name in domain}
        found += [total_variation(real, made, clique, domain) / COPIES for clique in tables_of(domain)]
    return found


def tables_of(columns: Iterable[str]) -> list[tuple[str, ...]]:
    """All one- and two-way tables, in a fixed order."""
    names = list(columns)
    return [*itertools.combinations(names, 1), *itertools.combinations(names, 2)]


def runs_of(allocation: str, margins: str) -> dict[str, Run]:
    """The methods to compare, by the name of their lines."""
    runs: dict[str, Run] = {"laplace": ("laplace", {})}
    for depth in (2, 3):
        tree: dict[str, object] = {"allocation": allocation, "layers": depth}
        if allocation == "leaf_heavy":
            upper = [str((1 - LEAF_HEAVY) / depth)] * depth
            tree = {"allocation": "custom", "shares": ",".join([*upper, str(LEAF_HEAVY)]), "layers": depth}
        if margins != "default":
            tree["margins"] = margins
        runs[f"steps-{depth}"] = ("steps", {**tree, "sequence": ",".join(SEQUENCE[:depth])})
        runs[f"random_partition-{depth}"] = ("random_partition", tree)
    return runs


def compare(epsilon: float, repeats: int, allocation: str, ways: Sequence[str]) -> None:
    """Prints errors of every method, each as soon as it has run, and then the verdicts for STEPS-2 and STEPS-3."""
    done: dict[str, list[Repeat]] = {}
    for margins in ways:
        columns = "by default (steps raked, others summed)" if margins == "default" else margins
        print(
            f"\nε = {epsilon:g}, {COPIES} copies made anew, allocation {allocation}, columns {columns}, "
            f"{repeats} repeats",
            flush=True,
        )
        found = {}
        for name, (method, options) in runs_of(allocation, margins).items():
            key = f"{method} {sorted(options.items())}"
            if key not in done:  # laplace has no margins to choose, and a default may be asked for by its name
                done[key] = alone(repeats_of, (method, options), epsilon, repeats)
            found[name] = done[key]
            print(f"{name:<22}{_overall(found[name])}", flush=True)
        for depth in (2, 3):
            verdicts(found, depth)


def _overall(some: Sequence[Repeat]) -> str:
    """The mean over all one-way and all two-way tables."""
    width = np.array([len(clique) for clique in tables_of(voter_table(0).column_names)])
    intervals = [_interval(np.array([one.errors[width == degree].mean() for one in some])) for degree in (1, 2)]
    return "".join(
        f"  all {degree}-way {mean:.4f} ± {half:.4f}" for degree, (mean, half) in enumerate(intervals, start=1)
    )


def verdicts(found: Mapping[str, Sequence[Repeat]], depth: int) -> None:
    """Prints errors by kind of table and whether steps with that many layers is better where it should be."""
    print(f"\ntop columns: {', '.join(SEQUENCE[:depth])}")
    print(f"{'method':<22}" + "".join(f"{kind:>20}" for kind in KINDS[:4]))
    for name in ("laplace", f"random_partition-{depth}", f"steps-{depth}"):
        parts = [_means(some.errors, _groups(SEQUENCE[:depth], frozenset()))[:4] for some in found[name]]
        intervals = [_interval(np.array(values)) for values in zip(*parts, strict=True)]
        print(f"{name:<22}" + "".join(f"{mean:>11.4f} ± {half:.4f}" for mean, half in intervals))
    for rival in ("laplace", f"random_partition-{depth}"):
        for line in _verdicts(found[f"steps-{depth}"], found[rival], depth, f"steps-{depth} − {rival}"):
            print(line, flush=True)


def _groups(top: Sequence[str], split: frozenset[str]) -> list[npt.NDArray[np.bool_]]:
    """Which tables belong to each of KINDS, given the top columns and those the other tree splits by."""
    tables = tables_of(voter_table(0).column_names)
    width = np.array([len(clique) for clique in tables])
    within = np.array([set(clique) <= set(top) for clique in tables])
    free = np.array([not set(clique) & ({*top} | split) for clique in tables])
    return [(width == degree) & kind for kind in (within, ~within, free) for degree in (1, 2)]


def _means(errors: npt.NDArray[np.float64], groups: Sequence[npt.NDArray[np.bool_]]) -> list[float]:
    return [float(errors[group].mean()) for group in groups]


def _interval(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Mean and half the width of its 95 % interval."""
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
    return float(values.mean()), float(half)


def _verdicts(ours: Sequence[Repeat], theirs: Sequence[Repeat], depth: int, title: str) -> Iterator[str]:
    """Top tables must be better beyond the interval of the difference, all others not worse beyond it."""
    pairs = []
    for mine, other in zip(ours, theirs, strict=True):
        groups = _groups(SEQUENCE[:depth], other.split)
        pairs.append((_means(mine.errors, groups), _means(other.errors, groups)))
    for place, kind in enumerate(KINDS):
        mean, half = _interval(np.array([mine[place] - other[place] for mine, other in pairs]))
        met = mean + half < 0 if kind.endswith("top") else mean - half <= 0
        relative = mean / np.mean([other[place] for _, other in pairs])
        yield f"  {title}, {kind}: {mean:+.4f} ± {half:.4f} ({relative:+.1%})  {'met' if met else 'MISSED'}"


def depth_line(layers: int, epsilon: float) -> tuple[str, float, int]:
    """Time and memory of one release with a tree of that many chosen layers; nodes are those of its model."""
    schema, _ = schema_and_codec()
    table = voter_table()
    seconds = []
    for seed in range(3):
        start = time.process_time()
        release = synthesize(table, schema, method="steps", epsilon=epsilon, options={"layers": layers}, seed=seed)
        seconds.append(time.process_time() - start)
    structure = release.model.structure
    inner, leaves = structure.parents.size, release.model.probabilities.size
    warm = float(np.mean(seconds[1:]))
    line = (
        f"{layers:>6}{inner:>12,}{leaves:>12,}{seconds[0]:>10.2f}{warm:>10.2f}{warm / (inner + leaves) * 1e6:>12.3f}"
        f"{peak_bytes() / 2**20:>10.0f}"
    )
    return line, warm, inner


def depth(epsilon: float) -> None:
    """Prints one line per number of layers, and how well a cost per layer and per node explains the times."""
    print(
        f"steps, columns chosen by AIC node by node, ε = {epsilon:g}, one copy; CPU s of the first and later releases"
    )
    print(f"{'layers':>6}{'nodes':>12}{'cells':>12}{'first':>10}{'later':>10}{'µs a node':>12}{'peak MiB':>10}")
    rows, times = [], []
    for layers in (1, 2, 3, 4, BAR_LAYERS, 8, 10, 12, 14):
        line, seconds, nodes = alone(depth_line, layers, epsilon)
        print(line, flush=True)
        rows.append([1.0, layers, nodes])
        times.append(seconds)
    table = np.array(rows)
    costs = np.linalg.lstsq(table, np.array(times), rcond=None)[0]
    off = np.abs(table @ costs - times).max()
    print(
        f"linear: {costs[0]:.2f} s + {costs[1] * 1e3:.0f} ms a layer + {costs[2] * 1e6:.2f} µs a node above the cells; "
        f"no line is off by more than {off:.2f} s"
    )


def main() -> None:
    """Runs the part that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["size", "compare", "depth"])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--allocation", default="half_leaf", choices=["half_leaf", "equal", "leaf_heavy"])
    parser.add_argument("--margins", nargs="+", default=["default", "summed"], choices=["default", "summed", "raked"])
    given = parser.parse_args()
    if given.part == "size":
        size()
    elif given.part == "compare":
        compare(given.epsilon, given.repeats, given.allocation, given.margins)
    else:
        depth(given.epsilon)


if __name__ == "__main__":
    main()
