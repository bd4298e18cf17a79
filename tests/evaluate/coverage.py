"""How often 95 % intervals of `pool` hold the truth of real tables: `python -m tests.evaluate.coverage [TABLE …]`.

For every table random samples of rows, noise, columns, conditions and models; the table itself is the population. It
prints the share of intervals that hold, by kind of answer, and how many were tried. Bars: 93 % of each kind.
"""

import argparse
from collections import defaultdict

import pyarrow.parquet as pq

from tests.evaluate.measured_tables import covered
from tests.evaluate.model_tables import PARTS, ModelTally, covered_models, usable
from tests.real.shared_tables import FOLDER, schema_of


def main() -> None:
    """Prints one line for each kind of answer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [one.name for one in sorted(FOLDER.iterdir()) if (one / "domain.json").exists()]
    known = [name for name in known if (FOLDER / name / "data.parquet").exists()]
    parser.add_argument("tables", nargs="*", default=known)
    parser.add_argument("--samples", type=int, default=20, help="random samples of each table and kind")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    hits: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for name in given.tables:
        table, schema = pq.read_table(FOLDER / name / "data.parquet"), schema_of(name)
        for residuals in (False, True):
            found = covered(table, schema, given.samples, given.seed, residuals=residuals)
            for kind, (share, number) in found.shares().items():
                _add(hits[f"{kind}, {'residuals' if residuals else 'tables'}"], share * number, number)
        for parts in PARTS if len(usable(schema)) > 1 else ():
            tally = ModelTally()
            covered_models(tally, table, schema, given.samples, given.seed, parts)
            for kind, held in tally.hits.items():
                _add(hits[f"{kind}, {parts}"], sum(held), len(held))
        print(f"{name} done", flush=True)
    for kind, (inside, tried) in sorted(hits.items()):
        print(f"{kind:45} {100 * inside / tried:5.1f} % of {tried:,.0f}")


def _add(sums: list[float], held: float, tried: float) -> None:
    sums[0] += held
    sums[1] += tried


if __name__ == "__main__":
    main()
