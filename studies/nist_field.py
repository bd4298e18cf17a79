"""The field of the 2018 NIST challenge under the same light: its scores, and the propensity measures of a later review.

Entries of the challenge's teams as this package has them, and four other methods beside them, on fire calls (Matches 1
and 2) and on a survey of persons (in place of Match 3's census). A row for every rank that Bowen and Snoke (2021)
print in their Tables 4 to 6.

    python -m studies.nist_field --data FOLDER            # the full form needs the real tables
    python -m studies.nist_field --smoke                  # the packaged demonstration table

"""

import functools
import time
from dataclasses import dataclass
from pathlib import Path

from studies.field import entrants, scoring, tables
from studies.field.entrants import Entrant, Knowledge, knowledge, present
from studies.field.judge import judge
from studies.field.results import Results
from studies.field.scoring import Scorer
from studies.field.show import describe, show
from studies.field.tables import READERS, Bench, voters
from studies.runs import Record, carry_out, kept_file, spent_on
from studies.writing import Form, StudyPage, run_as_script
from understudy import synthesize

__all__ = ["study"]

REPEATS = 12
SAMPLED = 8_000


@dataclass(frozen=True)
class Entry:
    """One synthetic table: which method, on which table, at which ε of the challenge."""

    bench: str
    data: Path | None
    entrant: Entrant
    epsilon: float
    repeat: int

    @property
    def key(self) -> str:
        return f"{self.bench}/{self.entrant.name}/{self.epsilon:g}/{self.repeat}"


@functools.cache
def setting(name: str, data: Path | None) -> tuple[Bench, Knowledge, Scorer]:
    """The table, what its public part tells, and its tests: made once in every process."""
    bench = voters() if data is None else READERS[name](data)
    return bench, knowledge(bench), Scorer(bench, SAMPLED if data is not None else 400)


def run(entry: Entry) -> Record:
    """One synthetic table at its share of ε, scored."""
    bench, told, scorer = setting(entry.bench, entry.data)
    begun = time.process_time()
    release = synthesize(
        bench.private,
        bench.schema,
        method=entry.entrant.method,
        options=dict(told.options(entry.entrant, bench)),
        epsilon=entry.epsilon / bench.sets,
        delta=bench.delta if entry.entrant.takes_delta else 0.0,
        rows=bench.private.num_rows,
        seed=entry.repeat,
    )
    made = release.tables[0]
    seconds = time.process_time() - begun
    scores = scorer.scores(made, entry.repeat)
    facts = {"bench": entry.bench, "entrant": entry.entrant.name, "epsilon": entry.epsilon, "repeat": entry.repeat}
    return facts | {"seconds": seconds, "scored": time.process_time() - begun - seconds} | scores


def study(form: Form) -> Path:
    """Runs all entries, writes the page and its figures."""
    data = None if form.smoke else form.data
    if not form.smoke and data is None:
        raise SystemExit("The full form needs the real tables: --data FOLDER.")
    names = ("voters",) if data is None else tuple(READERS)
    page = StudyPage("nist_field", "The field of the 2018 NIST challenge", form)
    repeats = form.pick(1, REPEATS)
    benches = {name: setting(name, data)[0] for name in names}
    entries = [
        Entry(name, data, entrant, epsilon, repeat)
        for repeat in range(1, repeats + 1)
        for name, bench in benches.items()
        for epsilon in bench.epsilons
        for entrant in present()
    ]
    kept = kept_file(form.keep, page.name, (__file__, entrants.__file__, scoring.__file__, tables.__file__))
    records = carry_out(entries, run, kept, form.jobs)
    page.spent = spent_on(records)
    results = Results.of(records)
    describe(page, benches, repeats, results)
    for name, bench in benches.items():
        show(page, bench, setting(name, data)[1], results, setting(name, data)[2].yardstick(0))
    judge(page, results, smoke=form.smoke)
    return page.write()


if __name__ == "__main__":
    run_as_script(study, __doc__ or "")
