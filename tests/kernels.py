"""Compiles the kernels that most tests need: `python -m tests.kernels`.

A kernel that is not on disk is compiled by every process that calls it, and both processes of the suite call these
within their first minute. `make test` runs this before them, beside the type checker, which needs one core as well.
"""

import tempfile
import warnings
from pathlib import Path

import pyarrow.csv

import understudy as us
from understudy.testing import cases


def main() -> None:
    """One release of a file with every kind of column, held against it."""
    schema = cases.every_kind()
    table = cases.possible_rows(schema, 300, seed=1)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns of a made-up table look odd
        path = Path(folder) / "table.csv"
        pyarrow.csv.write_csv(table, path)
        for method in ("aim", "privsyn"):
            release = us.synthesize(f"{path}::multiline", schema, method=method, epsilon=1.0, delta=1e-6)
        us.evaluate(table, release)


if __name__ == "__main__":
    main()
