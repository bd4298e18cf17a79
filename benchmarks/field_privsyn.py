"""PrivSyn and DPSyn on coded tables: error, time and memory, each choice that differs from the source on its own.

    python -m benchmarks.field_privsyn ADULT [STROKE ...]      # folders as for benchmarks.graphical
    python -m benchmarks.field_privsyn ADULT --variants privsyn mst --repeats 5 --triples

Each variant runs in a process of its own; times, peaks and errors are those of `benchmarks.graphical` (mean total
variation over all pairs, with --triples over triples, too). `mst` stands beside them as the bar: PrivSyn should be no
worse than it on Adult at ε = 1, δ = 1e-9.
"""

import argparse
import resource
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from benchmarks.alone import alone
from benchmarks.graphical import DELTA, Outcome, read, schema_of
from benchmarks.peers.measure import mean_total_variation

from understudy import synthesize

SOURCE: Mapping[str, object] = {"one_way_share": 0.1, "update": "gradual", "clique_cells": 5000}
VARIANTS: dict[str, tuple[str, Mapping[str, object]]] = {
    "mst": ("mst", {}),
    "privsyn": ("privsyn", {}),
    "gradual": ("privsyn", {"update": "gradual"}),
    "both": ("privsyn", {"update": "both"}),
    "not pooled": ("privsyn", {"threshold": 0.0}),
    "columns 0.1": ("privsyn", {"one_way_share": 0.1}),
    "combined": ("privsyn", {"clique_cells": 5000}),
    "as the source": ("privsyn", SOURCE),
    "dpsyn pairs": ("dpsyn", {"marginals": "pairs"}),
}


def measure(folder: Path, name: str, epsilon: float, repeats: int, triples: bool) -> Outcome:
    """Runs one variant, in this process."""
    domain, real = read(folder)
    schema, frame = schema_of(domain), pa.table(real)
    method, options = VARIANTS[name]
    found, peak = [], 0
    for seed in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        release = synthesize(
            frame, schema, method=method, epsilon=epsilon, delta=DELTA, options=options, rows=frame.num_rows, seed=seed
        )
        drawn = release.table
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        peak = peak or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        made = {column: drawn.column(column).to_numpy().astype(np.int64) for column in domain}
        three = mean_total_variation(real, made, domain, 3) if triples else float("nan")
        found.append((wall, cpu, mean_total_variation(real, made, domain, 2), three))
    return Outcome(folder.resolve().name, name, epsilon, tuple(found), peak)


def main() -> None:
    """Prints one line per folder, ε and variant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--triples", action="store_true")
    given = parser.parse_args()
    for folder in given.folders:
        print(f"{folder.resolve().name}, δ = {DELTA:g}; CPU s of the first repeat, mean CPU s and wall s of the others")
        for epsilon in given.epsilon:
            for name in given.variants:
                print(alone(measure, folder, name, epsilon, given.repeats, given.triples).line(), flush=True)


if __name__ == "__main__":
    main()
