"""Graphical methods on one coded table: time, memory and error of `mst`, `aim` and `mwem`, with the bars to meet.

    python -m benchmarks.graphical FOLDER     # NAME.csv of codes and NAME-domain.json, or data.parquet and domain.json
    python -m benchmarks.graphical FOLDER --epsilon 1 --repeats 5 --methods aim "aim triples"
    python -m benchmarks.graphical FOLDER --peers INPUT RESULT [RESULT ...]   # folders of benchmarks/peers, beside ours

Each method and ε runs in a process of its own. Timed is `synthesize` on a frame in memory: charge, counting, noise,
fit and drawing as many rows as the table has; the first repeat, which loads compiled kernels, is shown apart. Errors
are mean total variations between the synthetic and the real table over all pairs and all triples of columns. The bars
are stated for the folder `adult` (48,842 × 14) at ε = 1, δ = 1e-9 on two cores.
"""

import argparse
import json
import multiprocessing
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from benchmarks.peers.compare import Entry, entry
from benchmarks.peers.contract import RESULT
from benchmarks.peers.measure import mean_total_variation

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

    def line(self) -> str:
        """One line of the table; the mean leaves out the times of the first repeat if there are more."""
        numbers = np.array(self.repeats)
        warm = numbers[1:] if len(numbers) > 1 else numbers
        error = numbers[:, 2:].std(axis=0) / max(1, len(numbers) - 1) ** 0.5
        return (
            f"{self.name:<14}{self.epsilon:>6g}{numbers[0, 1]:>9.2f}{warm[:, 1].mean():>8.2f}{warm[:, 0].mean():>8.2f}"
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
    return Schema(columns=columns, unit=Unit())


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


def peers(job: Path, results: Sequence[Path]) -> list[Entry]:
    """Numbers of other libraries from the files that `benchmarks.peers.run` left behind."""
    return [entry(job, place, json.loads((place / RESULT).read_text(encoding="utf-8"))) for place in results]


def main() -> None:
    """Print one line per method and ε, then the peers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 0.1, 10.0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--peers", type=Path, nargs="*", default=[], metavar="FOLDER")
    given = parser.parse_args()
    print(f"δ = {DELTA:g}; times: CPU s of the first repeat, mean CPU s and wall s of the others; peak of the process")
    print(
        f"{'method':<14}{'ε':>6}{'first':>9}{'CPU s':>8}{'wall s':>8}{'peak MiB':>10}{'2-way TV':>19}{'3-way TV':>18}"
    )
    for epsilon in given.epsilon:
        for name in given.methods:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.apply(measure, (given.folder, name, epsilon, given.repeats)).line(), flush=True)
    for row in peers(given.peers[0], given.peers[1:]) if given.peers else []:
        shown = "  ".join(f"{key} {value:.4g}" for key, value in row.numbers.items())
        print(f"{row.name:<28} {shown} {row.error or ''}")


if __name__ == "__main__":
    main()
