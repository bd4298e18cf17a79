"""Merging partial counts of very many partitions, by the code that Spark's executors and driver run.

    python -m benchmarks.merging                   # 10,000 partitions, 10⁶ cells

Every partition has the counts of 125 tables of 8,000 cells (all that a pass over 50 columns of 20 codes asks for is
1,225 pairs of 400 cells, summed out of fewer and larger tables). A partition's rows fall into cells by a skewed law.
Told are the bytes that a partition sends, the time to make and to merge a vector, and the memory of the merge, which
must not grow with the number of partitions.
"""

import argparse
import resource
import time
from collections.abc import Iterator

import numpy as np

from understudy.arrays import Ints
from understudy.counts.partials import FAN_IN, PartialCounts, merge_in_groups, pieces_of

TABLES, CELLS = 125, 8_000
DRAWN = 4  # vectors that are drawn; every partition has its own turn of one of them, so no two are the same


def partial_counts(rows: int) -> list[list[Ints]]:
    """Counts of that many rows in each table, a few times over."""
    rng = np.random.default_rng(3)
    law = rng.dirichlet(np.full(CELLS, 0.3))
    return [[rng.multinomial(rows, law).astype(np.int64) for _ in range(TABLES)] for _ in range(DRAWN)]


class Partitions:
    """Partial counts as they arrive, and beside them their sum by plain addition."""

    def __init__(self, partitions: int, rows: int) -> None:
        self._drawn = partial_counts(rows)
        self._partitions = partitions
        self.sums = np.zeros((TABLES, CELLS), np.int64)
        self.sent = 0
        self.checking = 0.0  # CPU s of what is no merging: turning and adding up

    def arriving(self) -> Iterator[Iterator[PartialCounts]]:
        """The pieces of each partition."""
        for number in range(self._partitions):
            began = time.process_time()
            vectors = [np.roll(vector, number) for vector in self._drawn[number % DRAWN]]
            for sums, vector in zip(self.sums, vectors, strict=True):
                sums += vector
            self.checking += time.process_time() - began
            yield self._counted(pieces_of(vectors))

    def _counted(self, pieces: Iterator[PartialCounts]) -> Iterator[PartialCounts]:
        for piece in pieces:
            self.sent += len(piece.values)
            yield piece


def simulate(partitions: int, rows: int) -> None:
    """Prints what merging takes, and checks the sum."""
    made = Partitions(partitions, rows)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    merged = merge_in_groups(made.arriving())
    took = time.process_time() - start - made.checking
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    exact = all(np.array_equal(merged.vector(table, CELLS), made.sums[table]) for table in range(TABLES))
    sent = made.sent / partitions
    cells = TABLES * CELLS
    print(f"{partitions:,} partitions of {rows:,} rows, {cells:,} cells, groups of {FAN_IN}: exact {exact}")
    print(f"sent by a partition: {sent / 1e6:.2f} MB ({sent / cells:.2f} bytes a cell)")
    whole = sent * partitions / 1e9
    print(f"sent in all: {whole:.1f} GB to groups, then {8 * cells / 1e6:.0f} MB a group at most")
    print(f"merged in {took:.1f} CPU s ({1e3 * took / partitions:.2f} ms a partition, made and added)")
    print(f"memory of the merge: {more / 1024:.0f} MiB more at its peak")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=10_000_000)
    given = parser.parse_args()
    simulate(given.partitions, given.rows)


if __name__ == "__main__":
    main()
