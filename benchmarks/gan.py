"""`dpwgan` on one coded table beside `mst` and `independent`: error, time, rows a second.

    python -m benchmarks.gan FOLDER                       # NAME.csv of codes and NAME-domain.json, as for graphical
    python -m benchmarks.gan FOLDER --epsilon 1 8 --repeats 3 --device cuda

Timed is `synthesize` on a frame in memory with as many rows as the table has, δ = 1e-9. Errors are mean total
variations between the synthetic and the real table over all columns, pairs and triples. `rows/s trained` are rows that
took part in a step, `rows/s drawn` are rows drawn from the finished model.
"""

import argparse
import multiprocessing
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from benchmarks.graphical import read, schema_of
from benchmarks.peers.measure import mean_total_variation

from understudy import synthesize

DELTA = 1e-9
DRAWN = 1_000_000


def measure(folder: Path, method: str, epsilon: float, options: dict[str, object], seed: int) -> dict[str, float]:
    """One run in this process."""
    domain, real = read(folder)
    schema, frame = schema_of(domain), pa.table(real)
    wall, cpu = time.perf_counter(), time.process_time()
    release = synthesize(
        frame, schema, method=method, epsilon=epsilon, delta=DELTA, options=options, rows=frame.num_rows, seed=seed
    )
    drawn = release.table
    found = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    made = {column: drawn.column(column).to_numpy().astype(np.int64) for column in domain}
    for degree in (1, 2, 3):
        found[f"tv{degree}"] = mean_total_variation(real, made, domain, degree)
    start = time.process_time()
    release.model.draw(DRAWN, np.random.default_rng(seed))
    found["drawn"] = DRAWN / (time.process_time() - start)
    if method == "dpwgan":
        settings = release.config.options
        found["trained"] = frame.num_rows * settings["rate"] * settings["steps"] / found["cpu"]
    return found


def main() -> None:
    """Print one line per method and ε."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 8.0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--methods", nargs="*", default=["dpwgan", "mst", "independent"])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    given = parser.parse_args()
    print(f"{'method':<13}{'ε':>5}{'CPU s':>8}{'wall s':>8}{'1-way TV':>10}{'2-way TV':>19}{'3-way TV':>10}", end="")
    print(f"{'rows/s trained':>16}{'rows/s drawn':>14}")
    for epsilon in given.epsilon:
        for method in given.methods:
            options: dict[str, object] = {}
            if method == "dpwgan":
                options = {"device": given.device, **dict(pair.split("=", 1) for pair in given.settings)}
            runs = []
            for seed in range(given.repeats):
                extra = {"structure_seed": seed} if method == "dpwgan" else {}
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    runs.append(pool.apply(measure, (given.folder, method, epsilon, options | extra, seed)))
            mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
            spread = float(np.std([run["tv2"] for run in runs])) / max(1, len(runs) - 1) ** 0.5
            trained = f"{mean['trained']:,.0f}" if "trained" in mean else ""
            print(
                f"{method:<13}{epsilon:>5g}{mean['cpu']:>8.1f}{mean['wall']:>8.1f}{mean['tv1']:>10.4f}"
                f"{mean['tv2']:>10.4f} ± {spread:.4f}{mean['tv3']:>10.4f}{trained:>16}{mean['drawn']:>14,.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
