"""What plans forecast beside what runs take: peak memory and CPU seconds, from the charge to the written folder.

    python -m benchmarks.forecasts                                     # the grid below
    python -m benchmarks.forecasts --methods mst aim --columns 20 100 --rows 100000 1000000 --epsilon 1 10

Tables are made up: columns of 2 to 30 codes (text, whole numbers and real numbers in turn) that follow a few hidden
classes, in Parquet files. Each line is a process of its own. It first runs the same method on a few columns and rows,
so that libraries and kernels are loaded, and notes the peak of its memory; it makes a plan with the number of rows as
hint; then it runs and saves the release. "Used" is what the peak rose by, and the CPU seconds of that run alone.
The bar: memory within a factor of 1.5 and time within 2.5, except below 64 MiB and below 1 second.
"""

import argparse
import itertools
import json
import resource
import tempfile
import time
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.alone import alone

from understudy import Schema, plan, synthesize
from understudy.errors import UnderstudyError
from understudy.schema import Category, Float, Integer, UniformBins, Unit

SIZES = (2, 3, 4, 6, 8, 12, 16, 5, 7, 9, 20, 30)
CLASSES, PIECE, FEW_COLUMNS, FEW_ROWS = 6, 250_000, 4, 1_000
PURE = ("laplace", "fieldgroups")
OPTIONS: dict[str, dict[str, object]] = {"dpsyn": {"marginals": "pairs"}}
METHODS = ("independent", "mst", "aim", "mwem", "privsyn", "privbayes", "dpsyn", "fieldgroups", "laplace", "auto")
BYTES_TIMES, FEW_BYTES, SECONDS_TIMES, FEW_SECONDS = 1.5, 2**26, 2.5, 1.0


@dataclass
class Stages:
    """CPU seconds and peak at every stage of a run, for whoever fits the constants."""

    seen: list[tuple[str, float, float, int]] = field(default_factory=list)

    def stage(self, name: str, done: float) -> None:
        """Notes where the run is."""
        self.seen.append((name, round(done, 3), round(time.process_time(), 2), peak_bytes() >> 20))


@dataclass(frozen=True)
class Line:
    """One run: seconds and bytes, said and used."""

    seconds: float
    cpu: float
    bytes: int
    rose: int
    stages: list[tuple[str, float, float, int]]

    def text(self) -> str:
        """Numbers, ratios and whether both bars are met."""
        memory, round_costs = self.bytes / max(self.rose, 1), self.seconds / self.cpu
        met = near(memory, BYTES_TIMES) or max(self.bytes, self.rose) <= FEW_BYTES
        met &= near(round_costs, SECONDS_TIMES) or max(self.seconds, self.cpu) <= FEW_SECONDS
        return (
            f"{self.bytes / 2**20:>9.0f}{self.rose / 2**20:>9.0f}{memory:>7.2f}"
            f"{self.seconds:>10.2f}{self.cpu:>10.2f}{round_costs:>7.2f}  {'met' if met else 'MISSED'}"
        )


def near(ratio: float, times: float) -> bool:
    """Whether a ratio is within a factor of 1."""
    return max(ratio, 1 / max(ratio, 1e-9)) <= times


def schema_for(columns: int, sizes: tuple[int, ...] = SIZES) -> Schema:
    """Columns of these numbers of codes in turn: text, whole numbers and real numbers."""
    made: list[Category | Integer | Float] = []
    for place, size in zip(range(columns), itertools.cycle(sizes)):
        name = f"c{place:03d}"
        if place % 3 == 0:
            made.append(Category(name=name, labels=tuple(f"label {code}" for code in range(size)), missing=False))
        elif place % 3 == 1:
            made.append(Integer(name=name, lower=0, upper=size - 1, missing=False))
        else:
            made.append(Float(name=name, lower=0.0, upper=float(size), bins=UniformBins(count=size), missing=False))
    return Schema(columns=tuple(made), unit=Unit())


def piece_for(columns: int, rows: int, rng: np.random.Generator) -> pa.Table:
    """Rows whose columns follow a hidden class."""
    hidden = rng.integers(0, CLASSES, rows)
    arrays: dict[str, pa.Array] = {}
    for place, size in zip(range(columns), itertools.cycle(SIZES)):
        follows = rng.random(rows, np.float32) < 0.5
        codes = np.where(follows, hidden * size // CLASSES, rng.integers(0, size, rows)).astype(np.int32)
        if place % 3 == 0:
            labels = pa.array([f"label {code}" for code in range(size)])
            arrays[f"c{place:03d}"] = pa.DictionaryArray.from_arrays(pa.array(codes), labels).cast(pa.string())
        else:
            arrays[f"c{place:03d}"] = pa.array(codes if place % 3 == 1 else codes + rng.random(rows))
    return pa.table(arrays)


def table_at(folder: Path, columns: int, rows: int) -> Path:
    """The file of a table, made when first asked for."""
    path = folder / f"{columns}-{rows}.parquet"
    if not path.exists():
        rng = np.random.default_rng(columns)
        first = piece_for(columns, min(rows, PIECE), rng)
        with pq.ParquetWriter(path, first.schema) as writer:
            for start in range(0, rows, PIECE):
                writer.write_table(first if start == 0 else piece_for(columns, min(PIECE, rows - start), rng))
    return path


def measure(data: Path, few: Path, method: str, columns: int, given: tuple[int, float]) -> Line | str:
    """Plans and runs one method, in this process; or why it does not run."""
    rows, epsilon = given
    queries = {"method": method, "epsilon": epsilon, "delta": 0.0 if method in PURE else 1e-9}
    queries |= {"options": OPTIONS.get(method, {})}
    with tempfile.TemporaryDirectory() as folder:
        try:
            synthesize(few, schema_for(FEW_COLUMNS), out=Path(folder) / "few", seed=0, **queries)
            planned = plan(schema_for(columns), rows_hint=rows, **queries)
            stages = Stages()
            before, cpu = peak_bytes(), time.process_time()
            synthesize(data, schema_for(columns), out=Path(folder) / "out", seed=0, progress=stages, **queries)
        except UnderstudyError as error:
            return f"  {str(error).splitlines()[0][:100]}"
        cpu = time.process_time() - cpu
    return Line(planned.seconds, cpu, planned.bytes, peak_bytes() - before, stages.seen)


def peak_bytes() -> int:
    """The most memory this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """Prints one line per method, number of columns, number of rows and ε."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--columns", type=int, nargs="*", default=[20, 100, 200])
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000])
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0])
    parser.add_argument("--keep", type=Path, help="folder for the tables, to be used again")
    parser.add_argument("--stages", action="store_true", help="also print CPU seconds and peak MiB at every stage")
    given = parser.parse_args()
    folder = given.keep or Path(tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    few = alone(table_at, folder, FEW_COLUMNS, FEW_ROWS)
    print(f"{'method':<13}{'columns':>8}{'rows':>11}{'ε':>5}{'said':>9}{'MiB':>9}{'':>7}{'said':>10}{'CPU s':>10}")
    for columns, rows in itertools.product(given.columns, given.rows):
        data = alone(table_at, folder, columns, rows)
        for method, epsilon in itertools.product(given.methods, given.epsilon):
            try:
                line = alone(measure, data, few, method, columns, (rows, epsilon))
            except BrokenProcessPool:
                line = "  the process died"
            text = line if isinstance(line, str) else line.text()
            print(f"{method:<13}{columns:>8}{rows:>11,}{epsilon:>5g}{text}", flush=True)
            if given.stages and isinstance(line, Line):
                print(json.dumps(line.stages[:2] + line.stages[-8:]), flush=True)


if __name__ == "__main__":
    main()
