"""How often 95 % intervals of `pool` hold the truth of real tables: `python -m tests.evaluate.coverage [TABLE …]`.

For every table random samples of rows, noise, columns, conditions and models; the table itself is the population. It
prints the share of intervals that hold, by kind of answer, and how many were tried; below each table the kinds that
held less often there. Bars: 93 % of each kind, which the slow tests of test_measured*.py hold other samples to.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Sequence

import pyarrow.parquet as pq

from tests.evaluate.measured_tables import covered
from tests.evaluate.model_tables import PARTS, ModelTally, covered_models, usable
from tests.real.shared_tables import FOLDER, schema_of

BAR = 0.93
Hits = dict[str, tuple[float, float]]
"""By kind of answer: intervals that held, and all of them."""


def known_tables() -> list[str]:
    """The real tables beside the checkout that describe their own columns."""
    if not FOLDER.is_dir():
        return []
    described = [one for one in sorted(FOLDER.iterdir()) if (one / "domain.json").exists()]
    return [one.name for one in described if (one / "data.parquet").exists()]


def coverage_of(name: str, samples: int, seed: int) -> Hits:
    """Answers and models about random samples of one table."""
    table, schema = pq.read_table(FOLDER / name / "data.parquet"), schema_of(name)
    hits: Hits = {}
    for residuals in (False, True):
        found = covered(table, schema, samples, seed, residuals=residuals)
        for kind, (share, number) in found.shares().items():
            hits[f"{kind}, {'residuals' if residuals else 'tables'}"] = (share * number, number)
    for parts in PARTS if len(usable(schema)) > 1 else ():
        tally = ModelTally()
        covered_models(tally, table, schema, samples, seed, parts)
        for kind, held in tally.hits.items():
            hits[f"{kind}, {parts}"] = (sum(held), len(held))
    return hits


def joined(found: Sequence[Hits]) -> Hits:
    """The same over several tables; each interval counts once."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for hits in found:
        for kind, (held, tried) in hits.items():
            sums[kind][0] += held
            sums[kind][1] += tried
    return {kind: (held, tried) for kind, (held, tried) in sorted(sums.items())}


def shares(hits: Hits, below: float = 1.1) -> str:
    """A line for each kind that held less often than that."""
    lines = [
        f"{kind:45} {100 * held / tried:5.1f} % of {tried:,.0f}"
        for kind, (held, tried) in hits.items()
        if tried and held / tried < below
    ]
    return "\n".join(lines)


def main() -> None:
    """Prints one line for each kind of answer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=known_tables())
    parser.add_argument("--samples", type=int, default=20, help="random samples of each table and kind")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    found = []
    for name in given.tables:
        began = time.process_time()
        found.append(coverage_of(name, given.samples, given.seed))
        print(f"{name}, {time.process_time() - began:.0f} CPU s\n{shares(found[-1], BAR)}".rstrip(), flush=True)
    print("\nAll tables")
    print(shares(joined(found)))


if __name__ == "__main__":
    main()
