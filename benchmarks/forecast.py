"""What plans forecast beside what runs take: CPU seconds and memory of every method on one table after another.

    python -m benchmarks.forecast FOLDER [FOLDER ...]      # folders as for benchmarks.graphical; "voters" is built in
    python -m benchmarks.forecast voters FOLDER --methods mst aim --epsilon 1 10

Each line is a process of its own that runs a method on a few rows first, so that loading kernels is in no number. Then
a plan is made with the table's number of rows as its hint, and the method runs: charge, counting, noise, fit and
drawing as many rows as the table has. Memory is what the peak of the process rose by, beyond the program and the table.
The bar: forecast and measured seconds within a factor of 5, except where both are below a second.
"""

import argparse
import resource
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from benchmarks.alone import alone
from benchmarks.graphical import read, schema_of

from understudy import Schema, plan, synthesize
from understudy.demo.voters import schema_text, voter_table
from understudy.errors import UnderstudyError
from understudy.schema.document import schema_from_text

METHODS: dict[str, tuple[str, float, dict[str, object]]] = {
    "independent": ("independent", 0.0, {}),
    "laplace": ("laplace", 0.0, {}),
    "mst": ("mst", 1e-9, {}),
    "aim": ("aim", 1e-9, {}),
    "aim triples": ("aim", 1e-9, {"workload": "triples"}),
    "mwem": ("mwem", 1e-9, {}),
    "mwem pure": ("mwem", 0.0, {}),
    "privbayes": ("privbayes", 1e-9, {}),
    "privbayes pure": ("privbayes", 0.0, {}),
    "privsyn": ("privsyn", 1e-9, {}),
    "dpsyn": ("dpsyn", 1e-9, {"marginals": "pairs"}),
    "fieldgroups": ("fieldgroups", 0.0, {}),
    "pfr": ("pfr", 0.0, {}),
    "steps": ("steps", 0.0, {"layers": 3}),
    "random_partition": ("random_partition", 0.0, {"layers": 3}),
    "universal_histogram": ("universal_histogram", 0.0, {}),
    "rdt": ("rdt", 0.0, {}),
    "dpwgan": ("dpwgan", 1e-9, {}),
}
TIMES, FEW_SECONDS, FEW = 5.0, 1.0, 1000


@dataclass(frozen=True)
class Line:
    """One method on one table: CPU seconds and bytes, forecast and measured."""

    seconds: float
    cpu: float
    bytes: int
    rose: int

    def text(self) -> str:
        """Numbers, ratios and whether the bar is met."""
        ratio = self.seconds / self.cpu
        met = max(ratio, 1 / ratio) <= TIMES or max(self.seconds, self.cpu) <= FEW_SECONDS
        return (
            f"{self.seconds:>10.2f}{self.cpu:>10.2f}{ratio:>8.2f}{self.bytes / 2**20:>10.0f}{self.rose / 2**20:>10.0f}"
            f"  {'met' if met else 'MISSED'}"
        )


def table_of(name: str) -> tuple[Schema, pa.Table]:
    """Schema and rows of a folder, or of the simulated voters."""
    if name == "voters":
        return schema_from_text(schema_text(), "voters.yaml"), voter_table()
    domain, codes = read(Path(name))
    return schema_of(domain), pa.table(codes)


def measure(place: str, name: str, epsilon: float) -> Line | str:
    """Plans and runs one method, in this process; or why it does not run."""
    schema, table = table_of(place)
    method, delta, options = METHODS[name]
    if method == "rdt":
        options = {"private": schema.columns[-1].name, **options}
    asked = {"method": method, "epsilon": epsilon, "delta": delta, "options": options}
    few = Schema(columns=schema.columns[-3:], unit=schema.unit, unreadable=schema.unreadable)
    with suppress(UnderstudyError):  # then kernels are loaded in what is timed
        synthesize(table.select([column.name for column in few.columns])[:FEW], few, rows=FEW, seed=0, **asked)
    try:
        planned = plan(schema, rows_hint=table.num_rows, **asked)
        before, cpu = peak_bytes(), time.process_time()
        synthesize(table, schema, rows=table.num_rows, seed=0, **asked)
        cpu = time.process_time() - cpu
    except UnderstudyError as error:
        return f"  {str(error).splitlines()[0][:100]}"
    return Line(planned.seconds, cpu, planned.bytes, peak_bytes() - before)


def peak_bytes() -> int:
    """The most memory this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """Prints one line per table, ε and method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0])
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    given = parser.parse_args()
    for place in given.tables:
        print(f"{Path(place).name}: CPU s and MiB, forecast and measured")
        print(f"{'method':<22}{'ε':>6}{'forecast':>10}{'CPU s':>10}{'ratio':>8}{'forecast':>10}{'MiB':>10}")
        for epsilon in given.epsilon:
            for name in given.methods:
                line = alone(measure, place, name, epsilon)
                print(f"{name:<22}{epsilon:>6g}{line if isinstance(line, str) else line.text()}", flush=True)


if __name__ == "__main__":
    main()
