"""Counting: all two-way tables of a 20-column table, by our sources and by plain pandas and DuckDB.

    python benchmarks/counting.py                      # 10⁶ and 10⁷ rows, integer codes; 10⁶ rows, text labels
    python benchmarks/counting.py --rows 1000000 --labels

CPU seconds of the process, all threads together (wall clock on a shared machine says little). Our time includes
encoding, compilation excepted (a warm-up on a few rows loads the cached kernels). "first" is the first question after
opening, "again" the same question once more. Peak memory is measured in a process of its own. Every engine's counts
are compared with ours.
"""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from understudy.codec.table import TableCodec
from understudy.counts.opening import open_table
from understudy.domain import Clique
from understudy.schema import Category, Integer, Schema, Unit

SIZES = (2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 20, 25, 32, 42, 64, 85, 100)
NAMES = tuple(f"c{position:02d}" for position in range(len(SIZES)))
CHUNK = 1_000_000
PANDAS_PAIRS = 19  # every tenth pair; the time is scaled to all 190 and the line says so

Codes = npt.NDArray[np.uint8]


def generated(rows: int) -> Iterator[list[Codes]]:
    """A skewed table in which each column depends on an earlier one."""
    rng = np.random.default_rng(11)
    parents = [int(rng.integers(0, column)) if column else -1 for column in range(len(SIZES))]
    tables = [
        rng.dirichlet(np.full(size, 0.5), size=SIZES[parent] if parent >= 0 else 1).cumsum(axis=1)
        for size, parent in zip(SIZES, parents, strict=True)
    ]
    for start in range(0, rows, CHUNK):
        count = min(CHUNK, rows - start)
        columns: list[Codes] = []
        for table, parent, size in zip(tables, parents, SIZES, strict=True):
            which = columns[parent] if parent >= 0 else np.zeros(count, np.uint8)
            drawn = np.empty(count, np.uint8)
            uniform = rng.random(count)
            for value in range(table.shape[0]):
                here = which == value
                drawn[here] = np.minimum(np.searchsorted(table[value], uniform[here]), size - 1)
            columns.append(drawn)
        yield columns


def label(name: str, code: int) -> str:
    return f"{name}_value_{code:03d}"


def write_table(path: Path, rows: int, labels: bool) -> None:
    kind = pa.string() if labels else pa.uint8()
    texts = {
        name: pa.array([label(name, code) for code in range(size)]) for name, size in zip(NAMES, SIZES, strict=True)
    }
    with pq.ParquetWriter(path, pa.schema([(name, kind) for name in NAMES])) as writer:
        for columns in generated(rows):
            arrays = [pa.array(codes) for codes in columns]
            if labels:
                arrays = [texts[name].take(codes) for name, codes in zip(NAMES, arrays, strict=True)]
            writer.write_table(pa.table(arrays, names=list(NAMES)))


def schema_of(labels: bool) -> Schema:
    pairs = list(zip(NAMES, SIZES, strict=True))
    if labels:
        columns = [
            Category(name=name, labels=tuple(label(name, code) for code in range(size)), missing=False)
            for name, size in pairs
        ]
        return Schema(columns=tuple(columns), unit=Unit(), unreadable="drop")
    return Schema(
        columns=tuple(Integer(name=name, lower=0, upper=size - 1, missing=False) for name, size in pairs),
        unit=Unit(),
        unreadable="drop",
    )


def pairs_of(schema: Schema) -> list[Clique]:
    domain = TableCodec.of(schema).domain
    return [domain.clique(pair) for pair in itertools.combinations(domain.columns, 2)]


def timed(work: Callable[[], object]) -> tuple[float, object]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def ours(data: object, schema: Schema) -> tuple[float, float, dict[Clique, npt.NDArray[np.int64]]]:
    """CPU seconds of the first and the second time all pairs are counted, and the counts."""
    source = open_table(data, schema).bind(TableCodec.of(schema))
    pairs = pairs_of(schema)
    first, counts = timed(lambda: source.counts(pairs))
    again, _ = timed(lambda: source.counts(pairs))
    return first, again, dict(counts)  # type: ignore[call-overload]


def code_of(value: object, labels: bool) -> int:
    return int(str(value)[-3:]) if labels else int(value)  # type: ignore[call-overload]


def dense(groups: Iterator[tuple[object, object, int]], shape: tuple[int, ...], labels: bool) -> npt.NDArray[np.int64]:
    table = np.zeros(shape, np.int64)
    for first, second, count in groups:
        table[code_of(first, labels), code_of(second, labels)] = count
    return table.ravel()


def with_pandas(path: Path, schema: Schema, labels: bool, expected: dict[Clique, npt.NDArray[np.int64]]) -> float:
    """CPU seconds of groupby().size() for all pairs, scaled from some; labels as categories, its fastest form."""
    import pandas as pd

    frame = pd.read_parquet(path)
    if labels:
        frame = frame.astype("category")
    pairs = pairs_of(schema)
    some = pairs[:: len(pairs) // PANDAS_PAIRS]
    cpu, results = timed(lambda: [frame.groupby(list(pair), observed=True, sort=False).size() for pair in some])
    for pair, result in zip(some, results, strict=True):  # type: ignore[call-overload]
        groups = ((first, second, count) for (first, second), count in result.items())
        shape = TableCodec.of(schema).domain.shape(pair)
        assert np.array_equal(dense(groups, shape, labels), expected[pair]), pair
    return cpu * len(pairs) / len(some)


def with_duckdb(
    path: Path, schema: Schema, labels: bool, expected: dict[Clique, npt.NDArray[np.int64]]
) -> dict[str, float]:
    """CPU seconds of one GROUP BY per pair, from memory (loading excluded) and from the file."""
    import duckdb

    found = {}
    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = false")
        connection.execute("CREATE TABLE loaded AS SELECT * FROM read_parquet(?)", [str(path)])
        escaped = str(path).replace("'", "''")
        for name, source in (
            ("DuckDB GROUP BY, in memory", "loaded"),
            ("DuckDB GROUP BY, Parquet", f"read_parquet('{escaped}')"),
        ):
            pairs = pairs_of(schema)
            queries = [f"SELECT {a}, {b}, count(*) FROM {source} GROUP BY {a}, {b}" for a, b in pairs]
            cpu, results = timed(lambda queries=queries: [connection.execute(query).fetchall() for query in queries])
            for pair, result in zip(pairs, results, strict=True):  # type: ignore[call-overload]
                shape = TableCodec.of(schema).domain.shape(pair)
                assert np.array_equal(dense(iter(result), shape, labels), expected[pair]), (name, pair)
            found[name] = cpu
    return found


def warm_up(folder: Path) -> None:
    for labels in (False, True):
        path = folder / f"warm-{labels}.parquet"
        write_table(path, 1000, labels)
        ours(path, schema_of(labels))
        ours(pq.read_table(path), schema_of(labels))


def peak_memory(path: Path, labels: bool) -> tuple[float, float]:
    """Peak resident MiB of a process after its imports, and after it counts all pairs from the file."""
    command = [sys.executable, __file__, "--peak", str(path), *(["--labels"] if labels else [])]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    before, after = map(float, answer.stdout.split())
    return before, after


def print_peak(path: Path, labels: bool) -> None:
    before = high_water()
    ours(path, schema_of(labels))
    print(before, high_water())


def high_water() -> float:
    """Peak resident MiB. The kernel's own mark, because the one of getrusage survives from the parent process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("this system does not tell the peak memory of a process")


def report(folder: Path, rows: int, labels: bool) -> None:
    kind = "text labels" if labels else "integer codes"
    path = folder / f"table-{rows}-{labels}.parquet"
    write_table(path, rows, labels)
    schema = schema_of(labels)
    print(f"\n{rows:,} rows × {len(SIZES)} columns of {kind}, 190 pairs, Parquet {path.stat().st_size / 2**20:.0f} MiB")
    file_first, file_again, expected = ours(path, schema)
    table = pq.read_table(path)
    frame_first, frame_again, same = ours(table, schema)
    del table
    assert all(np.array_equal(expected[pair], same[pair]) for pair in expected)
    theirs = {
        f"pandas groupby, in memory (scaled from {PANDAS_PAIRS + 1} pairs)": with_pandas(
            path, schema, labels, expected
        ),
        **with_duckdb(path, schema, labels, expected),
    }
    print(f"  {'engine':<56}{'CPU s':>9}{'frame is':>12}{'file is':>12}")
    print(f"  {'our frame source, first (encoding included) / again':<56}{frame_first:>9.2f} / {frame_again:.2f}")
    print(f"  {'our file source, first (reading and encoding) / again':<56}{file_first:>9.2f} / {file_again:.2f}")
    for name, cpu in theirs.items():
        print(f"  {name:<56}{cpu:>9.2f}{cpu / frame_first:>10.1f} ×{cpu / file_first:>10.1f} ×")
    before, after = peak_memory(path, labels)
    print(f"  file source: peak memory {after - before:.0f} MiB above {before:.0f} MiB; all counts agree")
    path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=None, help="numbers of rows (default: 10⁶ and 10⁷)")
    parser.add_argument("--labels", action="store_true", help="text labels instead of integer codes")
    parser.add_argument("--peak", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print_peak(options.peak, options.labels)
        return
    runs = [(1_000_000, False), (10_000_000, False), (1_000_000, True)]
    if options.rows is not None:
        runs = [(rows, options.labels) for rows in options.rows]
    print(f"{os.cpu_count()} processors; CPU seconds; ratios are against our first question")
    with tempfile.TemporaryDirectory() as name:
        warm_up(Path(name))
        for rows, labels in runs:
            report(Path(name), rows, labels)


if __name__ == "__main__":
    main()
