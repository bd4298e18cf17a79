"""Our methods and other packages on real tables: one command, one scoring, runs that can be taken up again, one page.

    make bench DATA=FOLDER                                  # all that is missing, then the page
    python -m benchmarks.bench --data FOLDER --by "understudy aim" --epsilon 1 --minutes 20
    python -m benchmarks.bench --page                       # the page alone, from what is kept

A contestant is a package and one of its methods. Every run is a process of its own within limits of time and memory,
through the contract of `benchmarks.peers`, on coded columns that are the same for all (`benchmarks.frontier`), with δ =
1e-9 and as many rows as the table. Scores are mean total variations of all single columns, all pairs and 60 triples.
Each run is a line in `benchmarks/results/CONTESTANT.jsonl`; runs that are there are not made again. A contestant that
was stopped at a limit on a table, or failed on it, is not started on it again, and the page says so.
`benchmarks.peers.claims` checks what the packages say of themselves.
"""

import argparse
import datetime
import itertools
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.frontier import DATA, TABLES, Coded, coded, errors
from benchmarks.graphical import DELTA
from benchmarks.peers.contract import DOMAIN, SETTINGS, TABLE, read_columns
from benchmarks.peers.run import OURS, Limits, run_ours, run_peer
from benchmarks.standing import KEPT, Record, kept, write_page
from studies.runs import commit

CONTESTANTS = (
    "understudy independent",
    "understudy mst",
    "understudy aim",
    "understudy privsyn",
    "understudy ensemble",
    "understudy auto",
    "mbi mst",
    "mbi aim",
    "dpmm mst",
    "dpmm aim",
    "smartnoise-synth mst",
    "smartnoise-synth aim",
    "dpsynth mst",
    "dpsynth aim",
)
RUN_ON = ("titanic", "sd2011", "uk_census", "salary", "bank", "credit", "adult", "cps_voting")
EPSILONS = (1.0, 0.1, 10.0)
REPEATS = 3


@dataclass(frozen=True)
class Run:
    """One synthetic table by one contestant."""

    table: str
    epsilon: float
    by: str
    repeat: int

    @property
    def key(self) -> str:
        return f"{self.table}/{self.epsilon:g}/{self.by}/{self.repeat}"


@dataclass(frozen=True)
class Place:
    """Where tables, environments and checkouts lie, and what a run may take."""

    data: Path
    cache: Path | None
    python: str | None
    checkouts: dict[str, Path]
    limits: Limits


def missing(runs: Sequence[Run], records: Sequence[Record]) -> Iterator[Run]:
    """Runs that are not kept, without those of a contestant that was stopped, or failed, on the same table."""
    done = {str(one["key"]) for one in records}
    failed = {(one["table"], one["by"]) for one in records if one["error"] is not None}
    for run in runs:
        if run.key not in done and (run.table, run.by) not in failed:
            yield run


def made(run: Run, place: Place) -> Record:
    """One run in a process of its own, scored."""
    sizes, real = coded(place.data / TABLES[run.table])
    package, method = run.by.split(" ")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        given, out = Path(folder) / "in", Path(folder) / "out"
        _write_job(given, sizes, real, method, run.epsilon)
        if package == OURS:
            result = run_ours(given, out, limits=place.limits)
        else:
            where = {"cache": place.cache, "python": place.python, "checkouts": place.checkouts}
            result = run_peer(package, given, out, limits=place.limits, **where)  # type: ignore[arg-type]
        record: Record = {
            "key": run.key,
            "table": run.table,
            "epsilon": run.epsilon,
            "by": run.by,
            "repeat": run.repeat,
            "rows": len(next(iter(real.values()))),
            "columns": len(sizes),
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "limit_seconds": place.limits.seconds,
            "commit": commit(),
        }
        record |= {
            name: result[name] for name in ("error", "seconds_cpu", "seconds_wall", "peak_rss_bytes", "versions")
        }
        if result["error"] is None:
            rows = read_columns(out / "synthetic-0.parquet", sizes)
            record |= dict(zip(("singles", "pairs", "triples"), errors(real, dict(rows), sizes), strict=True))
    return record


def _write_job(folder: Path, sizes: dict[str, int], real: Coded, method: str, epsilon: float) -> None:
    folder.mkdir()
    pq.write_table(pa.table({name: np.asarray(codes, np.int32) for name, codes in real.items()}), folder / TABLE)
    (folder / DOMAIN).write_text(json.dumps(sizes), encoding="utf-8")
    settings = {"method": method, "epsilon": epsilon, "delta": DELTA, "repeats": 1}
    (folder / SETTINGS).write_text(json.dumps(settings), encoding="utf-8")


def carry_out(runs: Sequence[Run], place: Place, minutes: float) -> None:
    """All runs that are missing, until the minutes are over; each is kept when it ends."""
    began = time.monotonic()
    for run in missing(runs, kept()):
        if time.monotonic() - began > 60 * minutes:
            print("The time for this sitting is over; the same command goes on.", flush=True)
            return
        if not (place.data / TABLES[run.table]).is_dir():
            print(f"{run.table}: not there, left out", flush=True)
            continue
        if run not in set(missing([run], kept())):  # stopped on this table since the list was made
            continue
        record = made(run, place)
        KEPT.mkdir(exist_ok=True)
        with (KEPT / f"{run.by.replace(' ', '-')}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
        said = record["error"] or f"pairs {record['pairs']:.4f}, CPU s {record['seconds_cpu']:.2f}"
        print(f"{run.key}: {said}", flush=True)


def main() -> None:
    """Makes what is missing and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--by", nargs="*", default=list(CONTESTANTS), choices=CONTESTANTS)
    parser.add_argument("--tables", nargs="*", default=list(RUN_ON), choices=sorted(TABLES))
    parser.add_argument("--epsilon", type=float, nargs="*", default=list(EPSILONS))
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--minutes", type=float, default=1e6, help="no run starts after so many minutes")
    parser.add_argument("--limit", type=float, default=600.0, help="most seconds of a run, by the clock")
    parser.add_argument("--gibibytes", type=float, default=8.0, help="most memory of a run")
    parser.add_argument("--cache", type=Path, help="folder of the environments")
    parser.add_argument("--python", help="Python to make environments with")
    parser.add_argument("--checkout", action="append", default=[], metavar="OWNER/NAME=FOLDER")
    parser.add_argument("--page", action="store_true", help="only write the page")
    given = parser.parse_args()
    if not given.page:
        checkouts = {name: Path(folder) for name, _, folder in (one.partition("=") for one in given.checkout)}
        limits = Limits(given.limit, int(given.gibibytes * 2**30))
        place = Place(given.data, given.cache, given.python, checkouts, limits)
        grid = itertools.product(range(given.repeats), given.epsilon, given.tables, given.by)
        carry_out([Run(table, epsilon, by, repeat) for repeat, epsilon, table, by in grid], place, given.minutes)
    print(write_page(CONTESTANTS, RUN_ON, sorted(EPSILONS)))


if __name__ == "__main__":
    main()
