"""Graphical methods on one coded table: time, memory and error of `mst`, `aim` and `mwem`, with the bars to meet.

    python -m benchmarks.graphical FOLDER     # NAME.csv of codes and NAME-domain.json, or data.parquet and domain.json
    python -m benchmarks.graphical FOLDER --epsilon 1 --repeats 5 --methods aim "aim triples"
    python -m benchmarks.graphical FOLDER --peers INPUT OURS PEER [PEER ...]  # folders of benchmarks/peers, with ratios
    python -m benchmarks.graphical long --rows 10000000      # mst on a generated Parquet file of 20 columns

Each method and ε runs in a process of its own. Timed is `synthesize` on a frame in memory: charge, counting, noise,
fit and drawing as many rows as the table has. "cold" is a run that compiles every kernel (an empty cache, once a
method), "first" one that loads kernels from the cache, as every later process does, and the other times are of repeats
in the same process; imports are in none of them. Errors are mean total variations between the synthetic and the real
table over all pairs and all triples of columns. The bars are stated for the folder `adult` (48,842 × 14) at ε = 1,
δ = 1e-9 on two cores, kernels compiled. `long` times reading, counting and fitting, and writing as many rows again.
"""

import argparse
import itertools
import json
import os
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from benchmarks.alone import alone
from benchmarks.peers.compare import compare
from benchmarks.peers.measure import mean_total_variation

from benchmarks import counting
from understudy import Schema, Unit, synthesize
from understudy.schema import Category

METHODS: dict[str, tuple[str, dict[str, object]]] = {
    "mst": ("mst", {}),
    "aim": ("aim", {}),
    "aim triples": ("aim", {"workload": "triples"}),
    "mwem": ("mwem", {}),
}
BARS = {"mst": (0.052, 0.113, 4.0), "aim": (0.0396, 0.0890, 5.0), "aim triples": (None, None, 60.0)}
BAR_JOB, BAR_BYTES, DELTA = ("adult", 1.0), 2**30, 1e-9


@dataclass(frozen=True)
class Outcome:
    """One method at one ε: repeats of (wall s, CPU s, two-way, three-way) and the most memory of its process."""

    folder: str
    name: str
    epsilon: float
    repeats: tuple[tuple[float, float, float, float], ...]
    peak_bytes: int

    def line(self, cold: float | None = None) -> str:
        """One line of the table; the mean leaves out the times of the first repeat if there are more."""
        numbers = np.array(self.repeats)
        warm = numbers[1:] if len(numbers) > 1 else numbers
        error = numbers[:, 2:].std(axis=0) / max(1, len(numbers) - 1) ** 0.5
        return (
            f"{self.name:<14}{self.epsilon:>6g}{'' if cold is None else f'{cold:.2f}':>8}{numbers[0, 1]:>8.2f}"
            f"{warm[:, 1].mean():>8.2f}{warm[:, 0].mean():>8.2f}"
            f"{self.peak_bytes / 2**20:>10.0f}{numbers[:, 2].mean():>10.4f} ± {error[0]:.4f}"
            f"{numbers[:, 3].mean():>9.4f} ± {error[1]:.4f}  {self.verdict()}"
        )

    def verdict(self) -> str:
        """Whether the bars are met, where there are some."""
        if (self.folder, self.epsilon) != BAR_JOB or self.name not in BARS:
            return ""
        pairs, triples, seconds = BARS[self.name]
        numbers = np.array(self.repeats)
        met = numbers[:, 1].max() <= seconds and self.peak_bytes <= BAR_BYTES
        met &= pairs is None or numbers[:, 2].mean() <= pairs
        met &= triples is None or numbers[:, 3].mean() <= triples
        return "met" if met else "MISSED"


def read(folder: Path) -> tuple[dict[str, int], dict[str, np.ndarray]]:
    """The domain and the coded columns of the one table in a folder."""
    (place,) = folder.glob("*domain.json")
    domain = json.loads(place.read_text(encoding="utf-8"))
    if place.name == "domain.json":
        domain = {name: column["size"] for name, column in domain["columns"].items()}
        table = pq.read_table(folder / "data.parquet")
    else:
        table = pacsv.read_csv(folder / f"{place.name.removesuffix('-domain.json')}.csv")
    return domain, {name: table.column(name).to_numpy().astype(np.int64) for name in domain}


def schema_of(domain: dict[str, int]) -> Schema:
    """Categories with the labels "0", "1", …, none missing."""
    columns = tuple(
        Category(name=name, labels=tuple(map(str, range(size))), missing=False, storage="int64")
        for name, size in domain.items()
    )
    return Schema(columns=columns, unit=Unit(), unreadable="drop")


def measure(folder: Path, name: str, epsilon: float, repeats: int) -> Outcome:
    """Runs one method, in this process."""
    domain, real = read(folder)
    schema, frame = schema_of(domain), pa.table(real)
    method, options = METHODS[name]
    found = []
    peak = 0
    for seed in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        release = synthesize(
            frame, schema, method=method, epsilon=epsilon, delta=DELTA, options=options, rows=frame.num_rows, seed=seed
        )
        drawn = release.table
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        # Read before the tables are compared, which takes memory of its own.
        peak = peak or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        made = {column: drawn.column(column).to_numpy().astype(np.int64) for column in domain}
        errors = [mean_total_variation(real, made, domain, degree) for degree in (2, 3)]
        found.append((wall, cpu, errors[0], errors[1]))
    return Outcome(folder.resolve().name, name, epsilon, tuple(found), peak)


def cold_seconds(folder: Path, name: str, epsilon: float) -> float:
    """CPU s of one run that compiles all its kernels."""
    before = os.environ.get("NUMBA_CACHE_DIR")
    with tempfile.TemporaryDirectory() as place:
        os.environ["NUMBA_CACHE_DIR"] = place
        try:
            return alone(measure, folder, name, epsilon, 1).repeats[0][1]
        finally:
            del os.environ["NUMBA_CACHE_DIR"]
            if before is not None:
                os.environ["NUMBA_CACHE_DIR"] = before


def long_run(path: Path, rows: int) -> str:
    """mst from a Parquet file to a Parquet file, in this process: one line."""
    times = [(time.perf_counter(), time.process_time())]
    release = synthesize(path, counting.schema_of(False), method="mst", epsilon=1.0, delta=DELTA, rows=1)
    times.append((time.perf_counter(), time.process_time()))
    fitted = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    release.sample_to(path.with_name("synthetic.parquet"), rows, seed=1)
    times.append((time.perf_counter(), time.process_time()))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    (wall, cpu), (more_wall, more_cpu) = (np.subtract(after, one) for one, after in itertools.pairwise(times))
    return (
        f"mst, {rows:,} rows × {len(counting.NAMES)}, file of {path.stat().st_size / 2**20:.0f} MiB: read, counted and "
        f"fitted {cpu:.2f} CPU s ({wall:.2f} wall), peak {fitted:.0f} MiB; as many rows written {more_cpu:.2f} CPU s "
        f"({more_wall:.2f} wall), peak {peak:.0f} MiB"
    )


def long(rows: int) -> None:
    """Generates the file and prints the line."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "table.parquet"
        alone(counting.write_table, path, rows, False)
        print(alone(long_run, path, rows), flush=True)


def main() -> None:
    """Print one line per method and ε, then the peers; or the line of the long table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help='a folder with a coded table, or "long"')
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 0.1, 10.0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--peers", type=Path, nargs="*", default=[], metavar="FOLDER")
    parser.add_argument("--rows", type=int, default=10**7, help="of the long table")
    given = parser.parse_args()
    if str(given.folder) == "long":
        long(given.rows)
        return
    print(
        f"δ = {DELTA:g}; CPU s with kernels compiled anew (cold) and loaded (first); mean CPU s and wall s of the rest"
    )
    print(
        f"{'method':<14}{'ε':>6}{'cold':>8}{'first':>8}{'CPU s':>8}{'wall s':>8}{'peak MiB':>10}{'2-way TV':>19}"
        f"{'3-way TV':>18}"
    )
    for epsilon in given.epsilon:
        for name in given.methods:
            cold = cold_seconds(given.folder, name, epsilon) if epsilon == given.epsilon[0] else None
            print(alone(measure, given.folder, name, epsilon, given.repeats).line(cold), flush=True)
    if given.peers:
        print(compare(given.peers[0], given.peers[1], given.peers[2:]))


if __name__ == "__main__":
    main()
