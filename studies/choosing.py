"""Which method for which table: a grid of tables, ε and methods, and the chooser page written from it.

python -m studies.choosing --data FOLDER --out docs       # writes docs/choosing.md
python -m studies.choosing --smoke --out FOLDER           # simulated tables only
"""

import functools
import itertools
import time
from dataclasses import dataclass
from pathlib import Path

from studies.chooser import measuring, tables
from studies.chooser.measuring import Ruler
from studies.chooser.tables import REAL, SIMULATED, Case, case
from studies.chooser.words import results_of, write
from studies.runs import Record, carry_out, kept_file
from studies.writing import Form, run_as_script
from understudy import synthesize
from understudy.errors import ResourceError

__all__ = ["METHODS", "study"]

DELTA = 1e-9
EPSILONS = (0.1, 1.0, 3.0, 10.0)
REPEATS = 3
METHODS = {
    DELTA: ("ensemble", "aim", "mst", "privsyn", "privbayes", "independent"),
    0.0: ("laplace", "ensemble", "mwem", "privsyn", "privbayes", "independent"),
}
OPTIONS = {name: {"rounding": "controlled"} for name in ("laplace", "independent")}
"""As `auto` has them; all else at its defaults."""
ROUNDS = ("aim", "mwem")
WIDE = ("stroke",)
"""Tables where methods that fit round after round are left out, and one ε is looked at."""
LAPLACE_CELLS = 10**7


@dataclass(frozen=True)
class Run:
    """One method on one table."""

    table: str
    data: Path | None
    method: str
    epsilon: float
    delta: float
    repeat: int

    @property
    def key(self) -> str:
        return f"{self.table}/{self.method}/{self.epsilon:g}/{self.delta:g}/{self.repeat}"


@functools.cache
def setting(name: str, data: Path | None) -> tuple[Case, Ruler]:
    """The table and its ruler, made once in every process."""
    found = case(name, data)
    return found, Ruler(found)


def one(run: Run) -> Record:
    """The distances of one release; a refusal is a record, too."""
    found, ruler = setting(run.table, run.data)
    facts: Record = {
        "table": run.table,
        "method": run.method,
        "epsilon": run.epsilon,
        "delta": run.delta,
        "repeat": run.repeat,
    }
    begun = time.process_time()
    try:
        release = synthesize(
            found.table,
            found.schema,
            method=run.method,
            options=OPTIONS.get(run.method, {}),
            epsilon=run.epsilon,
            delta=run.delta,
            rows=found.table.num_rows,
            seed=run.repeat,
        )
        made = release.tables[0]
    except ResourceError:
        return facts | {"seconds": time.process_time() - begun}
    seconds = time.process_time() - begun
    return facts | {"seconds": seconds} | ruler.distances(made)


def runs(names: tuple[str, ...], data: Path | None, repeats: int, epsilons: tuple[float, ...]) -> list[Run]:
    """The whole grid, all methods once before any of them twice."""
    found = []
    for repeat, name, epsilon, delta in itertools.product(range(1, repeats + 1), names, epsilons, METHODS):
        if name in WIDE and epsilon != 1.0:
            continue
        for method in METHODS[delta]:
            if name in WIDE and method in ROUNDS:
                continue
            domain = setting(name, data)[1].codec.domain
            if method == "laplace" and domain.cells(domain.columns) > LAPLACE_CELLS:
                continue
            found.append(Run(name, data, method, epsilon, delta, repeat))
    return found


def study(form: Form) -> Path:
    """Runs the grid and writes the chooser page."""
    if not form.smoke and form.data is None:
        raise SystemExit("The full form needs the real tables: --data FOLDER.")
    data = None if form.smoke else form.data
    names = SIMULATED[:1] if form.smoke else REAL
    epsilons = EPSILONS[1:2] if form.smoke else EPSILONS
    grid = runs(names, data, form.pick(1, REPEATS), epsilons)
    kept = kept_file(form.keep, "choosing", (__file__, measuring.__file__, tables.__file__))
    records = carry_out(grid, one, kept, form.jobs)
    return write(form, results_of(records, {name: setting(name, data)[0] for name in names}))


if __name__ == "__main__":
    run_as_script(study, __doc__ or "")
