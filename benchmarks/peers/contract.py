"""The adapter's side of the file contract: read the job, run one repeat, write the rows and what they cost.

Runs inside a peer's environment, so it needs NumPy and pyarrow only and nothing of understudy. Timed is what turns the
coded columns in memory into synthetic columns in memory; imports, reading and writing are outside. It refuses columns
or codes outside the declared domain, from either side.
"""

import importlib.metadata
import json
import os
import platform
import resource
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

Codes = npt.NDArray[np.int64]
TABLE, DOMAIN, SETTINGS, RESULT = "table.parquet", "domain.json", "settings.json", "result.json"
NO_SETTINGS: Mapping[str, object] = {
    "delta": 0.0,
    "repeats": 1,
    "seed": None,
    "rows": None,
    "workload": "pairs",
    "options": {},
}


class ContractError(Exception):
    """A file that breaks the contract, or a setting that a peer has no equal for."""


@dataclass(frozen=True)
class Job:
    """One table and the privacy it may cost."""

    columns: Mapping[str, Codes]
    domain: Mapping[str, int]
    method: str
    epsilon: float
    delta: float
    workload: str | list[list[str]]
    rows: int
    seed: int | None
    options: Mapping[str, object]

    def cliques(self) -> list[tuple[str, ...]]:
        """The workload written out: all pairs, all triples, or the sets of columns that were named."""
        if isinstance(self.workload, str):
            degree = {"pairs": 2, "triples": 3}.get(self.workload)
            if degree is None:
                raise ContractError(f'workload is "{self.workload}"; it can be "pairs", "triples" or a list of lists')
            return combinations(list(self.domain), degree)
        return [tuple(clique) for clique in self.workload]


def combinations(names: Sequence[str], degree: int) -> list[tuple[str, ...]]:
    """All sets of that many names, in the order of the names."""
    if degree == 0:
        return [()]
    return [(name, *rest) for place, name in enumerate(names) for rest in combinations(names[place + 1 :], degree - 1)]


def read_settings(folder: Path) -> dict[str, object]:
    """The settings with what they leave out filled in."""
    given = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    for name in ("method", "epsilon"):
        if name not in given:
            raise ContractError(f'{SETTINGS}: "{name}" is missing')
    unknown = sorted(set(given) - {"method", "epsilon", *NO_SETTINGS})
    if unknown:
        raise ContractError(f"{SETTINGS}: unknown {', '.join(unknown)}")
    return {**NO_SETTINGS, **given}


def read_columns(path: Path, domain: Mapping[str, int]) -> dict[str, Codes]:
    """The coded columns of a Parquet file, checked against the domain."""
    table = pq.read_table(path)
    if set(table.column_names) != set(domain):
        raise ContractError(f"{path.name}: its columns are not those of {DOMAIN}")
    columns = {name: np.asarray(table.column(name).to_numpy(), dtype=np.int64) for name in domain}
    check_codes(columns, domain, path.name)
    return columns


def check_codes(columns: Mapping[str, Codes], domain: Mapping[str, int], where: str) -> None:
    """Raise unless every code lies in its column's domain and all columns are equally long."""
    if len({len(codes) for codes in columns.values()}) > 1:
        raise ContractError(f"{where}: columns of different lengths")
    for name, codes in columns.items():
        if len(codes) and (codes.min() < 0 or codes.max() >= domain[name]):
            raise ContractError(f'{where}: column "{name}" has codes outside 0..{domain[name] - 1}')


def read_job(folder: Path, repeat: int) -> Job:
    """The job of one repeat; a seed, where given, moves on with the repeat."""
    settings = read_settings(folder)
    domain = {name: int(size) for name, size in json.loads((folder / DOMAIN).read_text(encoding="utf-8")).items()}
    columns = read_columns(folder / TABLE, domain)
    length = len(next(iter(columns.values())))
    seed = settings["seed"]
    return Job(
        columns=columns,
        domain=domain,
        method=str(settings["method"]),
        epsilon=float(str(settings["epsilon"])),
        delta=float(str(settings["delta"])),
        workload=settings["workload"],  # type: ignore[arg-type]
        rows=int(str(settings["rows"])) if settings["rows"] is not None else length,
        seed=None if seed is None else int(str(seed)) + repeat,
        options=settings["options"],  # type: ignore[arg-type]
    )


def write_columns(path: Path, columns: Mapping[str, Codes]) -> None:
    """Write coded columns as 32-bit integers."""
    pq.write_table(pa.table({name: pa.array(codes, pa.int32()) for name, codes in columns.items()}), path)


def peak_bytes() -> int:
    """Most resident memory of this process so far (not its parent's, which getrusage would mix in on Linux)."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def cpu_seconds() -> float:
    """CPU time of this process, its threads and the children it has waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Python's version and that of each package by name."""
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in packages}


def serve(
    synthesize: Callable[[Job], Mapping[str, npt.ArrayLike]], *, packages: Sequence[str], notes: Sequence[str]
) -> None:
    """Run one repeat as `python -m … INPUT OUTPUT REPEAT` and leave run-<i>.json and synthetic-<i>.parquet."""
    folder, output, repeat = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    report: dict[str, object] = {"versions": versions(packages), "notes": list(notes), "error": None}
    try:
        job = read_job(folder, repeat)
        wall, cpu = time.perf_counter(), cpu_seconds()
        made = synthesize(job)
        report |= {"seconds_wall": time.perf_counter() - wall, "seconds_cpu": cpu_seconds() - cpu}
        columns = {name: np.asarray(made[name], dtype=np.int64) for name in job.domain}
        check_codes(columns, job.domain, "synthetic rows")
        write_columns(output / f"synthetic-{repeat}.parquet", columns)
        report |= {"rows": len(next(iter(columns.values()))), "synthetic": f"synthetic-{repeat}.parquet"}
    except Exception as error:  # noqa: BLE001 - whatever a peer raises belongs in its result
        traceback.print_exc()
        report["error"] = f"{type(error).__name__}: {error}"
    report["peak_rss_bytes"] = peak_bytes()
    (output / f"run-{repeat}.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    sys.exit(0 if report["error"] is None else 1)
