"""One entry of the study: a synthetic table at its share of ε, and its scores."""

import functools
import time
from dataclasses import dataclass
from pathlib import Path

from studies.field.entrants import Entrant, Knowledge, knowledge
from studies.field.scoring import Scorer
from studies.field.tables import READERS, Bench, voters
from studies.runs import Record
from understudy import synthesize

__all__ = ["Entry", "run", "setting"]

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
