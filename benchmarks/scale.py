"""Scale in rows on one machine: reading, counting, fitting and writing beside plain scans, with the bars to meet.

    python -m benchmarks.scale                          # 10⁷ rows × 20 columns
    python -m benchmarks.scale --rows 100000000 --csv-rows 4000000 --keep FOLDER
    python -m benchmarks.scale --rows 100000000 --keep FOLDER --workers     # only two workers beside one

Two tables of 20 columns. "numbered" holds labels that are whole numbers of 64 bits, as coded tables usually come; the
bars are stated for it. "mixed" holds every usual storage: text, whole numbers as labels, as values and in bins, floats
with gaps, days, moments, truth values. Every line runs in a process of its own after a warm-up on a few rows, which
loads the cached kernels; making the files is not timed. CPU seconds are of all threads together. Wall time is the best
of three and means something only where nothing else runs; CPU/wall says how many processors a line really had.

Bars, stated for 10⁸ rows: `mst` (read, counted, fitted) in 25 CPU s, 1.8 times as fast by wall with two workers, 1 GiB
above what the program holds itself; text at pyarrow's rate; `privbayes` within twice of `mst`; 2.5 million synthetic
rows written a second and core.
"""

import argparse
import datetime as dt
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from benchmarks.alone import alone
from benchmarks.counting import high_water

from benchmarks import counting
from understudy import Schema, Unit, synthesize
from understudy.codec.table import TableCodec
from understudy.counts.opening import open_table
from understudy.schema import Boolean, Category, Date, Datetime, Float, Integer, UniformBins

WORDS = {"sex": 2, "marital": 6, "origin": 9, "education": 16, "job": 25, "region": 51, "plan": 4}
NUMBERED = {"grade": 12, "branch": 40}
WHOLE = {"age": (0, 99, 20), "hours": (0, 99, 20), "children": (0, 9, None), "income": (0, 500_000, 32)}
DECIMAL = {"bmi": (10.0, 60.0, 25), "latitude": (-90.0, 90.0, 30), "paid": (0.0, 10_000.0, 20)}
GAPS = {"education", "job", "hours", "income", "bmi", "paid", "born", "smoker"}
STEP = 1_000_000
DELTA = 1e-9
BAR_SECONDS, BAR_FASTER, BAR_BYTES, BAR_TIMES, BAR_ROWS = 25.0, 1.8, 2**30, 2.0, 2.5e6


def schema_of(kind: str) -> Schema:
    """Twenty columns."""
    if kind == "numbered":
        pairs = zip(counting.NAMES, counting.SIZES, strict=True)
        return Schema(columns=tuple(_numbered(name, size) for name, size in pairs), unit=Unit())
    columns = [
        *(Category(name=name, labels=_labels(name, size), missing=name in GAPS) for name, size in WORDS.items()),
        *(_numbered(name, size) for name, size in NUMBERED.items()),
        *(
            Integer(name=name, lower=low, upper=high, bins=bins and UniformBins(bins), missing=name in GAPS)
            for name, (low, high, bins) in WHOLE.items()
        ),
        *(
            Float(name=name, lower=low, upper=high, bins=UniformBins(bins), missing=name in GAPS)
            for name, (low, high, bins) in DECIMAL.items()
        ),
        Date(name="born", lower=dt.date(1920, 1, 1), upper=dt.date(2025, 12, 31), bins=UniformBins(30)),
        Datetime(
            name="seen",
            lower=dt.datetime(2020, 1, 1),
            upper=dt.datetime(2025, 12, 31),
            bins=UniformBins(24),
            missing=False,
        ),
        Boolean(name="smoker"),
        Boolean(name="insured", missing=False),
    ]
    return Schema(columns=tuple(columns), unit=Unit())


def _numbered(name: str, size: int) -> Category:
    return Category(name=name, labels=tuple(map(str, range(size))), missing=False, storage="int64")


def _labels(name: str, size: int) -> tuple[str, ...]:
    return tuple(f"{name} {place:02d}" for place in range(size))


def piece(rng: np.random.Generator, rows: int) -> pa.Table:
    """Rows whose columns all lean on one hidden number."""
    hidden = rng.random(rows, np.float32)

    def share() -> np.ndarray:
        return 0.6 * hidden + 0.4 * rng.random(rows, np.float32)

    def gap(name: str) -> np.ndarray | None:
        return rng.random(rows, np.float32) < 0.05 if name in GAPS else None

    columns: dict[str, pa.Array] = {}
    for name, size in WORDS.items():
        codes = pa.array((size * share() ** 1.5).astype(np.int8), mask=gap(name))
        columns[name] = pa.DictionaryArray.from_arrays(codes, pa.array(_labels(name, size))).cast(pa.string())
    for name, size in NUMBERED.items():
        columns[name] = pa.array((size * share()).astype(np.int64))
    for name, (low, high, _) in WHOLE.items():
        numbers = low + (high + 1 - low) * share() ** (3 if name == "income" else 1)
        columns[name] = pa.array(numbers.astype(np.int32), mask=gap(name))
    for name, (low, high, _) in DECIMAL.items():
        numbers = low - 1 + (high - low + 2) * share().astype(np.float64)
        columns[name] = pa.array(numbers if name == "latitude" else np.round(numbers, 2), mask=gap(name))
    columns["born"] = pa.array((-18_000 + 38_000 * share()).astype(np.int32), mask=gap("born")).cast(pa.date32())
    seen = (1_577_836_800 + 189e6 * share().astype(np.float64)).astype(np.int64) * 1_000_000
    columns["seen"] = pa.array(seen).cast(pa.timestamp("us"))
    columns["smoker"] = pa.array(share() < 0.3, mask=gap("smoker"))
    columns["insured"] = pa.array(share() < 0.7)
    return pa.table(columns)


def pieces(rows: int, kind: str) -> Iterator[pa.Table]:
    """The table in pieces."""
    if kind == "numbered":
        for columns in counting.generated(rows):
            yield pa.table([pa.array(codes.astype(np.int64)) for codes in columns], names=list(counting.NAMES))
        return
    rng = np.random.default_rng(5)
    for start in range(0, rows, STEP):
        yield piece(rng, min(STEP, rows - start))


def write_table(path: Path, rows: int, kind: str) -> None:
    """The table as Parquet or CSV."""
    stored = next(pieces(1, kind)).schema
    with pacsv.CSVWriter(path, stored) if path.suffix == ".csv" else pq.ParquetWriter(path, stored) as writer:
        for part in pieces(rows, kind):
            writer.write_table(part)


@dataclass(frozen=True)
class Used:
    """What a line took: CPU and wall seconds, and MiB above what the process held before."""

    cpu: float
    wall: float
    peak: float

    def text(self) -> str:
        """For the table."""
        busy = self.cpu / max(self.wall, 1e-9)
        return f"{self.cpu:>9.2f}{self.wall:>9.2f}{busy:>11.2f}{self.peak:>10.0f}"


def used(work: Callable[[], object]) -> Used:
    """Runs it once."""
    before, cpu, wall = high_water(), time.process_time(), time.perf_counter()
    work()
    return Used(time.process_time() - cpu, time.perf_counter() - wall, high_water() - before)


def fitted(path: Path, small: Path, kind: str, method: str, threads: int) -> Used:
    """A method from the file to its model, in this process."""

    def work(place: Path) -> None:
        table = open_table(place, schema_of(kind), threads=threads)
        synthesize(table, schema_of(kind), method=method, epsilon=1.0, delta=DELTA, rows=1, seed=1)

    work(small)
    return used(lambda: work(path))


def written(path: Path, small: Path, kind: str, rows: int) -> Used:
    """Synthetic rows of `mst` into Parquet; nothing of the fit is timed."""
    release = synthesize(small, schema_of(kind), method="mst", epsilon=1.0, delta=DELTA, rows=1, seed=1)
    with tempfile.TemporaryDirectory(dir=small.parent) as place:
        release.sample_to(Path(place) / "few.parquet", 1000, seed=1)
        return used(lambda: release.sample_to(Path(place) / "many.parquet", rows, seed=1))


def counted(path: Path, small: Path, kind: str, threads: int) -> Used:
    """Every column of the file read, coded and counted alone."""

    def work(place: Path) -> None:
        source = open_table(place, schema_of(kind), threads=threads).bind(TableCodec.of(schema_of(kind)))
        source.counts([source.domain.clique([name]) for name in source.domain.columns])

    work(small)
    return used(lambda: work(path))


def scanned_by_arrow(path: Path) -> Used:
    """Every column read by pyarrow with one thread, batch by batch; text of a mixed table in the types it has."""
    if path.suffix == ".csv":
        convert = pacsv.ConvertOptions(column_types=piece(np.random.default_rng(0), 1).schema)
        options = pacsv.ReadOptions(use_threads=False, block_size=8 << 20)
        return used(lambda: [None for _ in pacsv.open_csv(path, read_options=options, convert_options=convert)])
    words = [field.name for field in pq.read_schema(path) if pa.types.is_string(field.type)]
    file = pq.ParquetFile(path, read_dictionary=words)
    return used(lambda: [None for _ in file.iter_batches(batch_size=1 << 17, use_threads=False)])


def scanned_by_duckdb(path: Path, kind: str) -> Used:
    """A hash over every column, by DuckDB with one thread: least and most it would take from the file's statistics."""
    import duckdb

    place = str(path).replace("'", "''")
    every = ", ".join(f"bit_xor(hash({name}))" for name in schema_of(kind).names)
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET enable_progress_bar = false")
        return used(lambda: connection.execute(f"SELECT {every} FROM '{place}'").fetchall())


def best(times: int, work: Callable[..., Used], *given: object) -> Used:
    """The fastest by wall, with the least CPU."""
    found = [alone(work, *given) for _ in range(times)]
    return Used(min(one.cpu for one in found), min(one.wall for one in found), max(one.peak for one in found))


def verdict(met: bool) -> str:
    """In one word."""
    return "met" if met else "MISSED"


def report_workers(path: Path, small: Path, kind: str, repeats: int) -> None:
    """One worker and two in turn: by wall, and by CPU, which tells how much two of them do twice."""
    found: dict[int, list[Used]] = {1: [], 2: []}
    for _ in range(repeats):
        for threads, lines in found.items():
            lines.append(alone(fitted, path, small, kind, "mst", threads))
            print(f"  {f'mst, workers: {threads}':<32}{lines[-1].text()}", flush=True)
    (one, two), (cpu, more) = (
        [min(getattr(line, what) for line in lines) for lines in found.values()] for what in ("wall", "cpu")
    )
    print(f"  two workers take {more / cpu:.2f} × the CPU seconds of one")
    print(f"  two workers ≥ {BAR_FASTER} × as fast by wall: {one / two:.2f}, {verdict(one / two >= BAR_FASTER)}")


def report_parquet(path: Path, small: Path, kind: str, rows: int, repeats: int) -> None:
    """Lines about the Parquet file, and the bars."""
    lines = {
        "pyarrow reads every column": alone(scanned_by_arrow, path),
        "DuckDB looks at every column": alone(scanned_by_duckdb, path, kind),
        "every column counted": alone(counted, path, small, kind, 1),
        "mst, one worker": best(repeats, fitted, path, small, kind, "mst", 1),
        "mst, two workers": best(repeats, fitted, path, small, kind, "mst", 2),
        "privbayes, one worker": alone(fitted, path, small, kind, "privbayes", 1),
        "as many rows written": alone(written, path, small, kind, rows),
    }
    for name, line in lines.items():
        print(f"  {name:<32}{line.text()}", flush=True)
    one, two = lines["mst, one worker"], lines["mst, two workers"]
    seconds = BAR_SECONDS * rows / 10**8
    faster, times = one.wall / two.wall, lines["privbayes, one worker"].cpu / one.cpu
    rate = rows / lines["as many rows written"].cpu
    peak = max(one.peak, two.peak)
    scan = one.cpu / lines["pyarrow reads every column"].cpu
    theirs = one.cpu / lines["DuckDB looks at every column"].cpu
    print(f"  mst takes {scan:.1f} × pyarrow's scan, {theirs:.1f} × DuckDB's")
    print(f"  mst in {seconds:g} CPU s: {one.cpu:.1f}, {verdict(one.cpu <= seconds)}")
    print(f"  two workers ≥ {BAR_FASTER} × as fast by wall: {faster:.2f}, {verdict(faster >= BAR_FASTER)}")
    print(f"  memory ≤ 1,024 MiB: {peak:.0f}, {verdict(peak <= BAR_BYTES / 2**20)}")
    print(f"  privbayes ≤ {BAR_TIMES:g} × mst: {times:.2f}, {verdict(times <= BAR_TIMES)}")
    print(f"  rows written ≥ {BAR_ROWS / 1e6:g} million/s: {rate / 1e6:.2f}, {verdict(rate >= BAR_ROWS)}")


def report_text(path: Path, small: Path, kind: str) -> None:
    """Lines about the CSV file, and the bar."""
    size = path.stat().st_size / 2**20
    lines = {
        "pyarrow": alone(scanned_by_arrow, path),
        "DuckDB": alone(scanned_by_duckdb, path, kind),
        "every column counted": alone(counted, path, small, kind, 1),
        "every column counted, 2 workers": alone(counted, path, small, kind, 2),
    }
    for name, line in lines.items():
        print(f"  {name:<32}{line.text()}{size / line.cpu:>9.1f} MiB/s", flush=True)
    ratio = lines["pyarrow"].cpu / lines["every column counted"].cpu
    print(f"  text at ≥ pyarrow's rate: {ratio:.2f} ×, {verdict(ratio >= 1)}")


def main() -> None:
    """Makes the files, prints the lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--csv-rows", type=int, default=2 * 10**6)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tables", type=int, default=3, help="1: the numbered table only, 2: without text")
    parser.add_argument("--workers", action="store_true", help="only two workers beside one, on the numbered table")
    parser.add_argument("--keep", type=Path, help="a folder for the files, where they stay and are used again")
    given = parser.parse_args()
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as place:
        folder = given.keep or Path(place)
        jobs = [
            ("numbered", ".parquet", given.rows),
            ("mixed", ".parquet", given.rows),
            ("mixed", ".csv", given.csv_rows),
        ]
        for kind, suffix, rows in jobs[: 1 if given.workers else given.tables]:
            path, small = folder / f"{kind}-{rows}{suffix}", folder / f"{kind}-small{suffix}"
            for made, count in ((small, 50_000), (path, rows)):
                if not made.exists():
                    alone(write_table, made, count, kind)
            print(f"\n{rows:,} rows × 20 columns, {kind}, {path.stat().st_size / 2**20:,.0f} MiB {suffix}")
            print(f"  {'':<32}{'CPU s':>9}{'wall s':>9}{'CPU/wall':>11}{'MiB':>10}")
            if given.workers:
                report_workers(path, small, kind, given.repeats)
            elif suffix == ".parquet":
                report_parquet(path, small, kind, rows, given.repeats)
            else:
                report_text(path, small, kind)


if __name__ == "__main__":
    main()
