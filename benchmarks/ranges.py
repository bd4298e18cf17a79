"""Counts of ranges of one ordered column: a hierarchy of ranges beside noise on every cell and beside columns alone.

    python -m benchmarks.ranges --data FOLDER     # the folder with the public tables

One column, personal income in the national excerpt of the American Community Survey (NIST; incomes from 0 to 2²⁰ − 1),
in even bins; pure ε = 1. The error of a range is the distance between its count in the table and in the model, in rows,
averaged over 2,000 random ranges and over 5 releases. `independent` measures a single column as `laplace` does.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import understudy as us

FILE, COLUMN, UPPER = "nist_crc_acs2019/national2019.parquet", "PINCP", 2**20
RELEASES, RANGES = 5, 2000
METHODS = ("universal_histogram", "laplace")


def schema_of(bins: int) -> us.Schema:
    """The column in that many even bins."""
    column = us.schema.Integer(name=COLUMN, lower=0, upper=UPPER - 1, bins=us.schema.UniformBins(bins), missing=False)
    return us.Schema((column,), us.Unit(), unreadable="drop")


def mean_error(table: pa.Table, method: str, bins: int, rng: np.random.Generator) -> float:
    """The mean distance of the counts of random ranges from the truth."""
    true = np.bincount(np.asarray(table[COLUMN]) * bins // UPPER, minlength=bins)
    ends = np.sort(rng.integers(0, bins + 1, (RANGES, 2)), axis=1)
    errors = []
    for _ in range(RELEASES):
        release = us.synthesize(table, schema_of(bins), method=method, epsilon=1.0)
        model = release.model
        cells: npt.NDArray[np.float64] = model.marginal(model.domain.clique([COLUMN])).ravel() * model.total
        sums = np.concatenate([[0.0], np.cumsum(cells[:bins] - true)])
        errors.append(np.abs(sums[ends[:, 1]] - sums[ends[:, 0]]).mean())
    return float(np.mean(errors))


def main() -> None:
    """Prints a line for each number of bins."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the public tables")
    incomes = pq.read_table(parser.parse_args().data / FILE, columns=[COLUMN]).column(0).cast(pa.int64())
    inside = pc.and_(pc.greater_equal(incomes, 0), pc.less(incomes, UPPER))
    table = pa.table({COLUMN: incomes.filter(inside).drop_null()})
    warnings.simplefilter("ignore")
    print("rows", table.num_rows)
    print("bins", *METHODS)
    for bins in (64, 1024, 16_384):
        rng = np.random.default_rng(bins)
        print(f"{bins:,}", *(f"{mean_error(table, method, bins, rng):.1f}" for method in METHODS), flush=True)


if __name__ == "__main__":
    main()
