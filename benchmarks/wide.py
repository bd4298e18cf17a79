"""Wide tables: whole runs on 100 to 1,000 columns, on one column of a million codes and on Adult; said and used.

    python -m benchmarks.wide                                       # the grid below, about half an hour
    python -m benchmarks.wide --columns 500 --methods mst privsyn --stages
    python -m benchmarks.wide --columns --codes 1000000             # only the wide column
    python -m benchmarks.wide --columns --codes --adult adult.csv adult.yaml

Tables are made up: 10⁵ rows; columns of 2 to 50 codes (text, whole numbers and real numbers in turn) in blocks of ten
that follow one hidden class each, so that there is a structure to be found. The wide column is a category of that many
labels (or an integer of that many values with `--integer`), its frequencies falling, beside eleven ordinary ones. Each
line is a process of its own, as in `forecasts`: it warms up on a few columns and rows, plans with the number of rows as
hint, runs and saves. "Used" is what the peak rose by, and the CPU seconds of that run, all of them: reading, fitting,
drawing as many rows, writing folder and card.

The bars: 500 columns within 60 CPU s and 2 GiB, 1,000 columns within 300 CPU s; memory said within a factor of 1.5 of
what was used and time within 2, except below 64 MiB and below 1 second.
"""

import argparse
import itertools
import json
import resource
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.alone import alone
from benchmarks.forecasts import FEW_BYTES, FEW_COLUMNS, FEW_ROWS, FEW_SECONDS, Stages, near, peak_bytes, schema_for
from benchmarks.forecasts import table_at as few_at

from understudy import Schema, plan, synthesize, verify
from understudy.errors import UnderstudyError
from understudy.schema import Category, Float, Integer, UniformBins, Unit

SIZES = (2, 2, 3, 5, 10, 4, 25, 2, 8, 50, 3, 6, 15, 2, 12, 7, 30, 4, 20, 9)
BLOCK, CLASSES, ROWS, BESIDE = 10, 5, 100_000, 11
METHODS = ("independent", "mst", "auto", "privsyn")
MOST_BYTES = 16 << 30
BYTES_TIMES, SECONDS_TIMES = 1.5, 2.0
BARS: Mapping[int, tuple[float, float]] = {500: (60.0, 2.0 * 2**30), 1000: (300.0, np.inf)}


@dataclass(frozen=True)
class Case:
    """A table to run on: its file, its schema, how many rows and columns it has, and how wide its widest column is."""

    data: Path
    schema: Schema
    rows: int
    columns: int
    codes: int = max(SIZES)


@dataclass(frozen=True)
class Used:
    """What a run was said to take and took; the size of its folder and of its card."""

    seconds: float
    cpu: float
    bytes: int
    rose: int
    folder: int
    card: int
    stages: list[tuple[str, float, float, int]]

    def text(self, columns: int) -> str:
        """Numbers, ratios and which bars are missed."""
        missed = [] if self._said_bytes else ["MISSED memory said"]
        missed += [] if self._said_seconds else ["MISSED time said"]
        most_seconds, most_bytes = BARS.get(columns, (np.inf, np.inf))
        missed += ["MISSED CPU s"] if self.cpu > most_seconds else []
        missed += ["MISSED memory"] if self.rose > most_bytes else []
        return (
            f"{self.bytes / 2**20:>9.0f}{self.rose / 2**20:>8.0f}{self.bytes / max(self.rose, 1):>6.2f}"
            f"{self.seconds:>9.2f}{self.cpu:>9.2f}{self.seconds / self.cpu:>6.2f}"
            f"{self.folder / 2**20:>9.1f}{self.card / 2**20:>7.2f}  {', '.join(missed) or 'met'}"
        )

    @property
    def _said_bytes(self) -> bool:
        return near(self.bytes / max(self.rose, 1), BYTES_TIMES) or max(self.bytes, self.rose) <= FEW_BYTES

    @property
    def _said_seconds(self) -> bool:
        return near(self.seconds / self.cpu, SECONDS_TIMES) or max(self.seconds, self.cpu) <= FEW_SECONDS


def wide_schema(columns: int) -> Schema:
    """Columns of these numbers of codes in turn: text, whole numbers and real numbers."""
    made: list[Category | Integer | Float] = []
    for place, size in zip(range(columns), itertools.cycle(SIZES)):
        name = f"c{place:04d}"
        if place % 3 == 0:
            made.append(Category(name=name, labels=tuple(f"label {code}" for code in range(size)), missing=False))
        elif place % 3 == 1:
            made.append(Integer(name=name, lower=0, upper=size - 1, missing=False))
        else:
            made.append(Float(name=name, lower=0.0, upper=float(size), bins=UniformBins(count=size), missing=False))
    return Schema(columns=tuple(made), unit=Unit())


def wide_rows(columns: int, rows: int) -> dict[str, pa.Array]:
    """Rows whose columns follow, in half of the cases, the hidden class of their block."""
    rng = np.random.default_rng(columns)
    arrays: dict[str, pa.Array] = {}
    hidden = rng.integers(0, CLASSES, rows)
    for place, size in zip(range(columns), itertools.cycle(SIZES)):
        if place % BLOCK == 0:
            hidden = rng.integers(0, CLASSES, rows)
        follows = rng.random(rows, np.float32) < 0.5
        codes = np.where(follows, hidden * size // CLASSES, rng.integers(0, size, rows)).astype(np.int32)
        if place % 3 == 0:
            labels = pa.array([f"label {code}" for code in range(size)])
            arrays[f"c{place:04d}"] = pa.DictionaryArray.from_arrays(pa.array(codes), labels).cast(pa.string())
        else:
            arrays[f"c{place:04d}"] = pa.array(codes if place % 3 == 1 else codes + rng.random(rows))
    return arrays


def many_columns(folder: Path, columns: int, rows: int) -> Case:
    """The made-up table of that many columns."""
    path = folder / f"wide-{columns}-{rows}.parquet"
    if not path.exists():
        pq.write_table(pa.table(wide_rows(columns, rows)), path)
    return Case(path, wide_schema(columns), rows, columns)


def many_codes(folder: Path, codes: int, rows: int, *, integer: bool) -> Case:
    """One column of that many codes beside a few of the others."""
    beside = wide_schema(BESIDE)
    labels = () if integer else tuple(f"code {code:07d}" for code in range(codes))
    wide = (
        Integer(name="wide", lower=0, upper=codes - 1, missing=False)
        if integer
        else Category(name="wide", labels=labels, missing=False)
    )
    path = folder / f"codes-{codes}-{rows}-{integer}.parquet"
    if not path.exists():
        drawn = falling(codes, rows)
        column = pa.array(drawn) if integer else pa.array(labels).take(pa.array(drawn))
        pq.write_table(pa.table({"wide": column, **wide_rows(BESIDE, rows)}), path)
    return Case(path, Schema(columns=(wide, *beside.columns), unit=Unit()), rows, BESIDE + 1, codes)


def falling(codes: int, rows: int) -> npt.NDArray[np.int64]:
    """Codes of which the first are frequent and most are held by hardly anybody."""
    return (codes ** np.random.default_rng(codes).random(rows)).astype(np.int64) - 1


def measure(case: Case, few: Path, method: str, epsilon: float) -> Used | str:
    """Plans, runs and verifies one method, in this process; or why it does not run."""
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    asked = {"method": method, "epsilon": epsilon, "delta": 1e-9}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        try:
            synthesize(few, schema_for(FEW_COLUMNS), out=Path(folder) / "few", seed=0, **asked)
            planned = plan(case.schema, rows_hint=case.rows, **asked)
            stages = Stages()
            before, cpu = peak_bytes(), time.process_time()
            synthesize(case.data, case.schema, out=out, seed=0, progress=stages, **asked)
            cpu, rose = time.process_time() - cpu, peak_bytes() - before
            verify(out)
        except UnderstudyError as error:
            return f"  {str(error).splitlines()[0][:100]}"
        except MemoryError:
            return f"  more than {MOST_BYTES >> 30} GiB"
        size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
        card = (out / "card.html").stat().st_size
    return Used(planned.seconds, cpu, planned.bytes, rose, size, card, stages.seen)


def cases(given: argparse.Namespace, folder: Path) -> list[Case]:
    """The tables that were asked for."""
    found = [alone(many_columns, folder, columns, given.rows) for columns in given.columns]
    found += [alone(many_codes, folder, codes, given.rows, integer=given.integer) for codes in given.codes]
    if given.adult:
        data, schema = given.adult
        rows = sum(1 for _ in data.open()) - 1
        read = Schema.from_yaml(schema)
        found.append(Case(data, read, rows, len(read.columns)))
    return found


def main() -> None:
    """Prints one line per table and method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--columns", type=int, nargs="*", default=[100, 500, 1000])
    parser.add_argument("--codes", type=int, nargs="*", default=[1_000_000])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--integer", action="store_true", help="the wide column holds whole numbers, not labels")
    parser.add_argument("--adult", type=Path, nargs=2, metavar=("DATA", "SCHEMA"), help="a table of your own")
    parser.add_argument("--keep", type=Path, help="folder for the tables, to be used again")
    parser.add_argument("--stages", action="store_true", help="also print CPU seconds and peak MiB at every stage")
    given = parser.parse_args()
    folder = given.keep or Path(tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    few = alone(few_at, folder, FEW_COLUMNS, FEW_ROWS)
    head = f"{'method':<12}{'columns':>8}{'codes':>10}{'rows':>9}{'said':>9}{'MiB':>8}{'':>6}{'said':>9}{'CPU s':>9}"
    print(f"{head}{'folder':>15}{'card':>7}")
    for case in cases(given, folder):
        for method in given.methods:
            try:
                line = alone(measure, case, few, method, given.epsilon)
            except BrokenProcessPool:
                line = "  the process died"
            text = line if isinstance(line, str) else line.text(case.columns)
            print(f"{method:<12}{case.columns:>8,}{case.codes:>10,}{case.rows:>9,}{text}", flush=True)
            if given.stages and isinstance(line, Used):
                print(json.dumps(line.stages), flush=True)


if __name__ == "__main__":
    main()
