"""Moving rows towards overlapping tables: time, bytes and distance of the gradual update and of column sweeps.

    python -m benchmarks.gradual_update                              # 10⁶ rows × 200 tables × 50 rounds, and 10 sweeps
    python -m benchmarks.gradual_update --rows 100000 --tables 60 --rounds 20

Rows come from eight hidden classes over columns of 2 to 39 codes; the tables are exact pairs of them, so distance 0 can
be reached. The start has the right columns and nothing else. The distance is the mean total variation over the tables.
CPU seconds count; wall seconds depend on what else the machine does. Compiling is shown apart.
"""

import argparse
import itertools
import resource
import time

import numpy as np

from understudy.domain import Clique, Domain
from understudy.models.model import Codes
from understudy.models.records import Schedule, Target, column_sweeps, gradual_update

COLUMNS, CLASSES = 21, 8


def job(rows: int, tables: int, seed: int = 0) -> tuple[Domain, Codes, list[Target]]:
    """Columns, rows to begin with, and tables to reach."""
    rng = np.random.default_rng(seed)
    domain = Domain.of({f"c{place}": int(size) for place, size in enumerate(rng.integers(2, 40, COLUMNS))})
    hidden = rng.integers(0, CLASSES, rows)
    truth = {}
    for name, size in domain.sizes.items():
        steps = rng.dirichlet(np.full(size, 0.5), CLASSES).cumsum(axis=1)
        spots = rng.random(rows)
        truth[name] = np.zeros(rows, dtype=np.uint8)
        for kind in range(CLASSES):
            mine = hidden == kind
            truth[name][mine] = np.minimum(np.searchsorted(steps[kind], spots[mine], side="right"), size - 1)
    pairs = [Clique(pair) for pair in itertools.combinations(domain.columns, 2)]
    targets = []
    for place in rng.permutation(len(pairs))[:tables]:
        first, second = pairs[place]
        cells = truth[first].astype(np.int64) * domain.sizes[second] + truth[second]
        counts = np.bincount(cells, minlength=domain.cells(pairs[place])).astype(np.float64)
        targets.append(Target(pairs[place], counts))
    return domain, {name: rng.permutation(codes) for name, codes in truth.items()}, targets


def main() -> None:
    """Prints one line for compiling and one for each way of moving rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--sweeps", type=int, default=10)
    given = parser.parse_args()
    domain, start, targets = job(given.rows, given.tables)
    few = {name: codes[:100] for name, codes in start.items()}
    print(f"{given.rows:,} rows, {len(targets)} tables, {sum(target.counts.size for target in targets):,} cells")
    for name in ("compiling", "gradual update", "column sweeps"):
        wall, cpu = time.perf_counter(), time.process_time()
        if name == "compiling":
            gradual_update(domain, few, targets[:2], seed=1, schedule=Schedule(2))
            moved = column_sweeps(domain, few, targets[:2], seed=1, sweeps=2)
        elif name == "gradual update":
            moved = gradual_update(domain, start, targets, seed=1, schedule=Schedule(given.rounds))
        else:
            moved = column_sweeps(domain, start, targets, seed=1, sweeps=given.sweeps)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        apart = [error / 2 / given.rows / len(targets) for error in moved.errors]
        shown = "" if name == "compiling" else f"distance {apart[0]:.4f} → {apart[-1]:.4f} after {len(apart)} rounds"
        print(f"{name:<16}{cpu:8.2f} CPU s{wall:9.2f} wall s   peak {peak / 2**20:6.0f} MiB   {shown}", flush=True)


if __name__ == "__main__":
    main()
