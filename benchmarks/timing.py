"""Does the time of an answer tell neighbours apart? Every verb of the door on a table with and without one unit.

Run: .venv/bin/python benchmarks/timing.py [runs [verb …]]. For each verb that many answers on either side, in random
order, each by a fresh curator, in CPU time of the thread. Printed is how often an answer on the larger table took
longer than one on the smaller (ties count half; a half means that time tells nothing), with a 99 % margin for a half.
The unit is one that should show: it fills an empty cell, brings a label and a score of its own. The last column is the
same for a table of twice as many rows, from a fifth of the runs, so that one can see what the measure sees. A
difference smaller than the margin is not excluded.
"""

import gc
import math
import platform
import random
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.arrays import Ints
from understudy.codec.table import TableCodec
from understudy.counts.opening import open_table
from understudy.domain import Clique, Course, Distribution
from understudy.privacy.cost import Cost
from understudy.privacy.curator import Curator
from understudy.privacy.randomizer import SecureRandomizer
from understudy.privacy.training import Contributions
from understudy.privacy.trees import EvenSplit, Halving
from understudy.schema import Category, OpenCategory, Schema, Unit

ROWS = 500
LABELS = tuple(f"l{number}" for number in range(12))
COLUMNS = ("a", "b", "c")
CLOSED = Schema(tuple(Category(name=name, labels=LABELS, missing=False) for name in COLUMNS), Unit())
OPEN = Schema((OpenCategory(name="a", most_labels=50), *CLOSED.columns[1:]), Unit())
DOMAIN = TableCodec.of(CLOSED).domain
PURE, ZCDP = Cost(epsilon=10**12), Cost(rho=10**12)
Verb = Callable[[Curator], object]


@dataclass(frozen=True)
class Agreement:
    """Rows in the cell of each option: as many scores as there are cells."""

    name: ClassVar[str] = "rows in a cell"
    sensitivity: ClassVar[Fraction] = Fraction(1)
    monotone: ClassVar[bool] = True
    cliques: tuple[Clique, ...] = (DOMAIN.clique(COLUMNS[:2]),)
    options: tuple[int, ...] = tuple(range(DOMAIN.cells(DOMAIN.clique(COLUMNS[:2]))))

    def scores(self, exact: Mapping[Clique, Ints]) -> Ints:
        return exact[self.cliques[0]]


@dataclass(frozen=True)
class Counting:
    """A training of three steps, each on a tenth of the rows, that counts the labels of the first column."""

    name: ClassVar[str] = "counting"
    course: ClassVar[Course] = Course(64, 3, Fraction(19, 2), Fraction(1, 2))
    first_cells: ClassVar[int] = len(LABELS)
    cells: ClassVar[int] = len(LABELS)

    def look(self, codes: npt.NDArray[np.unsignedinteger]) -> Contributions:
        return self.contribute(codes)

    def looked(self, noisy: Ints, distribution: Distribution) -> None:
        """Learns nothing."""

    def contribute(self, codes: npt.NDArray[np.unsignedinteger]) -> Contributions:
        lengths, rest = np.full((len(codes), 1), 64, np.int32), np.zeros((len(codes), 0), np.int32)
        return Contributions(codes[:, :1].astype(np.int32), lengths, rest)

    def step(self, noisy: Ints) -> None:
        """Learns nothing."""


HALF = len(LABELS) // 2
CUTS = EvenSplit("a", len(LABELS), ((0, HALF), (HALF, 2 * HALF)), (2, 2), "cuts of a")


def _clique(curator: Curator, *names: str) -> Clique:
    return curator.domain.clique(names)


VERBS: dict[str, tuple[Schema, Verb]] = {
    "measure, Laplace": (CLOSED, lambda door: door.measure([_clique(door, "a", "b")], PURE)),
    "measure, Gaussian": (CLOSED, lambda door: door.measure([_clique(door, "a", "b")], ZCDP)),
    "measure_sparse": (CLOSED, lambda door: door.measure_sparse(_clique(door, *COLUMNS), PURE, 12)),
    "measure_residuals": (CLOSED, lambda door: door.measure_residuals([_clique(door, "a", "b")], ZCDP)),
    "select": (CLOSED, lambda door: door.select(Agreement(), PURE)),
    "select_within": (CLOSED, lambda door: door.select_within(CUTS.partition, CUTS, PURE)),
    "grow": (CLOSED, lambda door: door.grow(Halving.of("a", len(LABELS), theta=20), PURE)),
    "train": (CLOSED, lambda door: door.train(Counting(), Cost(epsilon=10**12, delta=10**12))),
    "score": (CLOSED, lambda door: door.score(Agreement(), PURE)),
    "discover": (OPEN, lambda door: door.discover("a", Cost(epsilon=10**12, delta=10**12))),
}


def _table(*, unit: bool, times: int = 1) -> pa.Table:
    """Rows that leave one label of every column to the unit."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, len(LABELS) - 1, (ROWS * times, len(COLUMNS)))
    codes = np.vstack([codes, np.full((int(unit), len(COLUMNS)), len(LABELS) - 1)])
    return pa.table({name: np.array(LABELS)[codes[:, place]] for place, name in enumerate(COLUMNS)})


def _seconds(verb: Verb, schema: Schema, table: pa.Table) -> int:
    curator = Curator(open_table(table, schema), Cost(10**13, 10**13, 10**15), SecureRandomizer())
    if schema is CLOSED:
        curator.fix_codec(TableCodec.of(schema))
    start = time.thread_time_ns()
    verb(curator)
    return time.thread_time_ns() - start


def _longer(verb: Verb, schema: Schema, tables: tuple[pa.Table, pa.Table], runs: int) -> float:
    """How often the second table takes longer than the first."""
    sides = [0, 1] * runs
    random.SystemRandom().shuffle(sides)
    taken: tuple[list[int], list[int]] = ([], [])
    for side in sides:
        taken[side].append(_seconds(verb, schema, tables[side]))
    first, second = (np.sort(np.array(one)) for one in taken)
    less, most = np.searchsorted(first, second, "left"), np.searchsorted(first, second, "right")
    return float((less + most).sum() / 2 / runs**2)


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    margin = 2.576 * math.sqrt((2 * runs + 1) / (12 * runs**2))
    smaller, larger, twice = _table(unit=False), _table(unit=True), _table(unit=False, times=2)
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, {runs:,} runs a side")
    print(f"{'verb':<20}{'one unit more':>15}{'twice the rows':>16}   margin {margin:.3f}")
    wanted = sys.argv[2:] or list(VERBS)
    for name in wanted:
        schema, verb = VERBS[name]
        for table in (smaller, larger, twice) * 20:
            _seconds(verb, schema, table)
        gc.collect()
        gc.disable()
        found = _longer(verb, schema, (smaller, larger), runs)
        seen = _longer(verb, schema, (smaller, twice), max(50, runs // 5))
        gc.enable()
        print(f"{name:<20}{found:>15.3f}{seen:>16.3f}", flush=True)


if __name__ == "__main__":
    main()
