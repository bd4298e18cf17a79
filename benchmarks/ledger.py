"""Milliseconds per charge of the privacy ledger, each synced to disk, beside a bare synced write of the same size.

    python benchmarks/ledger.py [--folder FOLDER] [--charges 200]

The bar is 10 ms. A charge also checks the whole file for damage, so it grows slowly with the number of entries.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from understudy.privacy.cost import Budget
from understudy.privacy.ledger import Ledger

LENGTHS = (0, 100, 1000)
BUDGET = Budget(0.001, 1e-12)
COST = BUDGET.cost("zcdp")


def milliseconds(action: Callable[[int], object], times: int) -> tuple[float, float]:
    """Median and worst time of the action."""
    taken = []
    for number in range(times):
        start = time.perf_counter()
        action(number)
        taken.append(1000 * (time.perf_counter() - start))
    return statistics.median(taken), max(taken)


def bare_write(folder: Path, times: int) -> tuple[float, float]:
    """What the disk alone takes: 1 KiB appended and synced."""
    handle = os.open(folder / "bare", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def write(number: int) -> None:
        os.write(handle, bytes(1024))
        os.fsync(handle)

    try:
        return milliseconds(write, times)
    finally:
        os.close(handle)


def charge(ledger: Ledger, run: str) -> None:
    ledger.charge("table", run=run, method="benchmark", cost=COST, budget=BUDGET)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", help="where to write; the disk under it is what is measured", default=None)
    parser.add_argument("--charges", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        median, worst = bare_write(folder, options.charges)
        print(f"bare synced write                 median {median:6.2f} ms   worst {worst:6.2f} ms")
        for composition in ("basic", "zcdp"):
            ledger = Ledger.create(folder / composition, "table", Budget(1e5, 1e-3), composition)
            for length in LENGTHS:
                for number in range(len(ledger.entries()), length):
                    charge(ledger, f"before {number}")
                median, worst = milliseconds(lambda number: charge(ledger, f"{length} {number}"), options.charges)  # noqa: B023
                print(f"charge, {composition:12} {length:6,} before  median {median:6.2f} ms   worst {worst:6.2f} ms")
            start = time.perf_counter()
            problems = ledger.verify()
            seconds = time.perf_counter() - start
            print(f"verify, {len(ledger.entries()):,} entries: {seconds:.2f} s, {len(problems)} problems")


if __name__ == "__main__":
    main()
