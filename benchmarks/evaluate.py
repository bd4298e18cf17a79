"""What `evaluate` takes: every metric on a middling table, metrics of counts on a large one, and the slow ones there.

    python -m benchmarks.evaluate middling     # all metrics, 50,000 rows × 15 columns; bar: 60 s
    python -m benchmarks.evaluate counts       # the metrics that need counts only, 10⁶ × 50
    python -m benchmarks.evaluate rows         # specks, pmse and prediction, 10⁶ × 50, one process each
    python -m benchmarks.evaluate middling --rows 20000 --copies 5

Rows come from eight hidden classes over columns of 2 to 12 codes, every fifth a number; the synthetic table has the
same distribution with a tenth of its rows drawn column by column, so that there is something to find. CPU seconds by
metric; reading and coding both tables is "prepare". Kernels are loaded by a run on a few rows beforehand.
"""

import argparse
import resource
import time
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from benchmarks.alone import alone

from understudy import Schema, Unit, evaluate
from understudy.evaluate.metric import METRICS
from understudy.schema import Category, Integer

COUNTED = ("marginals", "crosstab_l1", "nist", "chi2", "slopes", "correlations", "rules", "disclosure")
SLOW = ("specks", "pmse", "prediction")
CLASSES, BAR_SECONDS = 8, 60.0
FEW = 2_000


def schema_of(columns: int) -> Schema:
    """Categories, and a number in every fifth place."""
    sizes = np.random.default_rng(3).integers(2, 13, columns)
    return Schema(
        columns=tuple(
            Integer(name=f"c{place}", lower=0, upper=int(size) * 5, missing=False)
            if place % 5 == 4
            else Category(name=f"c{place}", labels=tuple(f"l{code}" for code in range(size)), missing=False)
            for place, size in enumerate(sizes)
        ),
        unit=Unit(),
        unreadable="drop",
    )


def table_of(schema: Schema, rows: int, seed: int, apart: float) -> pa.Table:
    """Rows of one distribution; a share of them drawn column by column."""
    distribution, rng = np.random.default_rng(5), np.random.default_rng(seed)
    hidden = rng.integers(0, CLASSES, rows)
    found = {}
    for column in schema.columns:
        labels = column.labels if isinstance(column, Category) else range(column.upper + 1)
        steps = distribution.dirichlet(np.full(len(labels), 0.6), CLASSES).cumsum(axis=1)
        mine = np.where(rng.random(rows) < apart, rng.integers(0, CLASSES, rows), hidden)
        spots = rng.random(rows)
        codes = np.zeros(rows, dtype=np.int32)
        for kind in range(CLASSES):
            here = mine == kind
            codes[here] = np.minimum(np.searchsorted(steps[kind], spots[here]), len(labels) - 1)
        texts = pa.array(list(labels))
        found[column.name] = texts.take(pa.array(codes))
    return pa.table(found)


class Stages:
    """CPU seconds of preparing and of each metric, by what the evaluation tells of its progress."""

    def __init__(self, metrics: Sequence[str]) -> None:
        self.metrics = metrics
        self.spent = {"prepare": 0.0, **dict.fromkeys(metrics, 0.0)}
        self._running, self._since = "prepare", time.process_time()

    def stage(self, name: str, done: float) -> None:
        """Books the time since the last report on what was running."""
        now = time.process_time()
        self.spent[self._running] += now - self._since
        self._since = now
        if name == "measure" and done < 1.0:
            self._running = self.metrics[int(done * len(self.metrics) + 1e-6)]


def measure(metrics: Sequence[str], rows: int, columns: int, copies: int) -> tuple[dict[str, float], float, int]:
    """CPU s by stage, wall s of the evaluation and the peak of this process."""
    schema = schema_of(columns)
    formula = "c4 ~ c0 + c1 + c2"
    small = table_of(schema, FEW, 1, 0.0)
    evaluate(small, [small], schema, metrics=metrics, formula=formula)
    real = table_of(schema, rows, 1, 0.0)
    made = [table_of(schema, rows, 2 + copy, 0.1) for copy in range(copies)]
    stages, wall = Stages(metrics), time.perf_counter()
    evaluate(real, made, schema, metrics=metrics, formula=formula, progress=stages)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return stages.spent, time.perf_counter() - wall, peak


def show(metrics: Sequence[str], rows: int, columns: int, copies: int) -> float:
    """Runs in a process of its own and prints; the CPU seconds of all."""
    spent, wall, peak = alone(measure, metrics, rows, columns, copies)
    for name, seconds in spent.items():
        print(f"  {name:<28}{seconds:>9.2f} CPU s")
    total = sum(spent.values())
    print(f"  {'all':<28}{total:>9.2f} CPU s {wall:9.2f} wall s   peak {peak / 2**20:,.0f} MiB", flush=True)
    return total


def main() -> None:
    """Runs the part that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["middling", "counts", "rows"])
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--columns", type=int, default=None)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--metrics", nargs="*", default=None, choices=METRICS.names())
    given = parser.parse_args()
    rows = given.rows or (50_000 if given.part == "middling" else 10**6)
    columns = given.columns or (15 if given.part == "middling" else 50)
    print(f"{given.part}: {rows:,} rows × {columns} columns, {given.copies} synthetic")
    if given.part == "rows":
        for name in given.metrics or SLOW:
            show([name], rows, columns, given.copies)
        return
    total = show(given.metrics or (COUNTED if given.part == "counts" else METRICS.names()), rows, columns, given.copies)
    if given.part == "middling" and given.metrics is None:
        print(f"bar of {BAR_SECONDS:g} s: {'met' if total <= BAR_SECONDS else 'MISSED'}")


if __name__ == "__main__":
    main()
