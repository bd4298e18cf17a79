"""How near methods come to a table: `ensemble` beside `aim` and `privsyn` on several coded tables, in one run.

    python -m benchmarks.frontier                                   # adult, bank and uk_census at ε = 1
    python -m benchmarks.frontier adult salary --epsilon 0.1 1 10 --repeats 5 --methods ensemble aim
    python -m benchmarks.frontier --data FOLDER                     # where the folders of tables lie

Errors are mean total variations over all columns, all pairs, and 60 triples picked the same way every time, δ = 1e-9;
beside them the standard deviation over repeats, and CPU seconds of the fastest repeat. Numbers with many values are cut
into 32 equal bins by their stated limits, a missing value is a code of its own, and every method sees the same codes.
A table that is not there is named and left out. The bars are those of `ensemble` on adult.
"""

import argparse
import itertools
import json
import math
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from benchmarks.alone import alone
from benchmarks.graphical import DELTA, schema_of
from benchmarks.peers.measure import total_variation

from understudy import synthesize

TABLES = {
    "adult": "adult",
    "bank": "bank_marketing",
    "uk_census": "uk_census2011",
    "salary": "salary",
    "cps_voting": "cps_voting",
    "nist_iloh": "nist2020_acs_iloh",
    "fire": "nist2018_sf_fire",
    "loans": "loans",
    "titanic": "titanic",
    "stroke": "stroke_ist",
    "sd2011": "sd2011",
    "credit": "credit_default",
}
TUNED_ON = ("adult", "bank", "uk_census")
METHODS = ("ensemble", "aim", "privsyn")
BARS = {("adult", 0.1): (0.093, 0.155), ("adult", 1.0): (0.0280, 0.0690), ("adult", 10.0): (0.0104, 0.043)}
BINS, SMALL_RANGE, LARGE_RANGE, TRIPLES, SEED = 32, 100, 10_000, 60, 20240607
DATA = Path(__file__).parents[2] / "shared" / "data"

Coded = dict[str, np.ndarray]


@dataclass(frozen=True)
class Found:
    """One method on one table: repeats of (columns, pairs, triples, CPU s)."""

    table: str
    method: str
    epsilon: float
    repeats: tuple[tuple[float, ...], ...]

    def line(self) -> str:
        """One line of the table, with whether the bars are met where there are some."""
        numbers = np.array(self.repeats)
        mean, spread = numbers.mean(axis=0), numbers.std(axis=0)
        errors = "".join(f"{mean[at]:>9.4f} ± {spread[at]:.4f}" for at in range(3))
        bar = BARS.get((self.table, self.epsilon)) if self.method == "ensemble" else None
        verdict = "" if bar is None else ("  met" if mean[1] <= bar[0] and mean[2] <= bar[1] else "  MISSED")
        return f"{self.table:<12}{self.epsilon:>6g}  {self.method:<10}{errors}{numbers[:, 3].min():>8.2f}{verdict}"


def coded(folder: Path) -> tuple[dict[str, int], Coded]:
    """Sizes and codes of the table in a folder: codes already (adult), or values with stated kinds and limits."""
    (place,) = folder.glob("*domain.json")
    document: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    if place.name != "domain.json":
        table = pacsv.read_csv(folder / f"{place.name.removesuffix('-domain.json')}.csv")
        sizes = document.get("columns", document)
        sizes = {name: size if isinstance(size, int) else size["size"] for name, size in sizes.items()}
        return sizes, {name: table.column(name).to_numpy().astype(np.int64) for name in sizes}
    table, sizes, codes = pq.read_table(folder / "data.parquet"), {}, {}
    for name, facts in document["columns"].items():
        if name in table.column_names and facts["kind"] != "identifier" and not _is_number_of_row(facts):
            found, size = _codes(table.column(name), facts)
            if size > 1:
                sizes[name], codes[name] = size, found
    return sizes, codes


def _is_number_of_row(facts: Mapping[str, Any]) -> bool:
    """A whole number of so many values that it counts rows."""
    return facts["kind"] == "integer" and facts["max"] - facts["min"] > LARGE_RANGE and facts.get("min") == 1


def _codes(column: pa.ChunkedArray, facts: Mapping[str, Any]) -> tuple[np.ndarray, int]:
    missing = column.is_null().to_numpy()
    if facts["kind"] == "categorical" and "size" in facts:
        size, found = facts["size"], np.nan_to_num(column.to_numpy().astype(float)).astype(np.int64)
    elif facts["kind"] == "categorical":
        places = {str(value): code for code, value in enumerate(facts["values"])}
        size = len(places)
        found = np.array([places.get(str(value).removesuffix(".0"), 0) for value in column.to_pylist()], np.int64)
    else:
        low, high = facts["min"], facts["max"]
        numbers = np.nan_to_num(column.cast(pa.float64(), safe=False).to_numpy(), nan=low) - low
        small = facts["kind"] == "integer" and high - low < SMALL_RANGE
        size = int(high - low) + 1 if small else BINS
        found = (numbers if small else np.floor(numbers / (high - low) * BINS)).astype(np.int64)
    found = np.where(missing, size, np.clip(found, 0, size - 1))
    return found, size + int(missing.any())


def errors(real: Coded, made: Coded, sizes: dict[str, int]) -> list[float]:
    """Mean total variations over columns, pairs and triples."""
    triples = list(itertools.combinations(sizes, 3))
    picked = sorted(random.Random(SEED).sample(range(len(triples)), min(TRIPLES, len(triples))))
    groups: list[Sequence[tuple[str, ...]]] = [
        [(name,) for name in sizes],
        list(itertools.combinations(sizes, 2)),
        [triples[at] for at in picked],
    ]
    return [
        math.fsum(total_variation(real, made, one, sizes) for one in group) / max(1, len(group)) for group in groups
    ]


def measure(folder: Path, table: str, method: str, epsilon: float, repeats: int) -> Found:
    """Runs one method, in this process."""
    sizes, real = coded(folder)
    schema, frame = schema_of(sizes), pa.table(real)
    found = []
    for seed in range(repeats):
        cpu = time.process_time()
        release = synthesize(frame, schema, method=method, epsilon=epsilon, delta=DELTA, rows=frame.num_rows, seed=seed)
        drawn = release.table
        cpu = time.process_time() - cpu
        made = {name: drawn.column(name).to_numpy().astype(np.int64) for name in sizes}
        found.append((*errors(real, made, sizes), cpu))
    return Found(table, method, epsilon, tuple(found))


def main() -> None:
    """Prints one line per table, ε and method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=list(TUNED_ON), choices=[*TABLES, []])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    given = parser.parse_args()
    print("table       epsilon method        columns           pairs            triples   CPU s")
    for table in given.tables:
        folder = given.data / TABLES[table]
        if not folder.is_dir():
            print(f"{table}: not there, left out")
            continue
        for epsilon, method in itertools.product(given.epsilon, given.methods):
            print(alone(measure, folder, table, method, epsilon, given.repeats).line(), flush=True)


if __name__ == "__main__":
    main()
