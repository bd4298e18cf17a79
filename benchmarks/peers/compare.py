"""Our result and the peers' on one job, side by side, each peer's numbers also as multiples of ours.

    python -m benchmarks.peers.compare INPUT OURS PEER [PEER ...]     # folders; each holds a result.json

Refuses results on another table or at another ε or δ: a ratio means something only within one run.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .contract import DOMAIN, RESULT, TABLE, ContractError, read_columns
from .measure import mean_total_variation

MEASURES = ("seconds_wall", "seconds_cpu", "peak_rss_bytes", "two_way", "three_way")
HEADS = ("wall s", "CPU s", "peak MiB", "2-way TV", "3-way TV")
SCALES = (1.0, 1.0, 2.0**20, 1.0, 1.0)


@dataclass(frozen=True)
class Entry:
    """One result: its name and numbers, or the reason why it has none."""

    name: str
    numbers: dict[str, float]
    error: str | None


def entry(folder: Path, result_folder: Path, result: dict[str, object]) -> Entry:
    """The numbers of one result; total variations are means over its repeats."""
    name = f"{result['peer']} {result['settings']['method']}"  # type: ignore[index]
    runs = [run for run in result["runs"] if run["error"] is None]  # type: ignore[attr-defined]
    if not runs:
        return Entry(name, {}, str(result["error"]))
    domain = json.loads((folder / DOMAIN).read_text(encoding="utf-8"))
    real = read_columns(folder / TABLE, domain)
    made = [read_columns(result_folder / run["synthetic"], domain) for run in runs]
    numbers = {measure: float(str(result[measure])) for measure in MEASURES[:3]}
    for measure, degree in (("two_way", 2), ("three_way", 3)):
        numbers[measure] = float(np.mean([mean_total_variation(real, rows, domain, degree) for rows in made]))
    return Entry(name, numbers, None if result["error"] is None else str(result["error"]))


def check_alike(results: list[dict[str, object]]) -> None:
    """Raise unless all results are of one table at one ε and δ."""
    for what, values in (
        ("tables", {result["table_sha256"] for result in results}),
        ("ε", {float(result["settings"]["epsilon"]) for result in results}),  # type: ignore[index]
        ("δ", {float(result["settings"]["delta"]) for result in results}),  # type: ignore[index]
    ):
        if len(values) > 1:
            raise ContractError(f"results of different {what} cannot be compared: {', '.join(map(str, values))}")


def ratio(theirs: float, ours: float) -> str:
    """The peer's number as a multiple of ours."""
    return f"{theirs / ours:.3g}×" if ours > 0 else "–"


def table(entries: list[Entry]) -> str:
    """Text lines: ours first, then each peer with its multiples in brackets."""
    ours = entries[0]
    lines = ["".join([f"{'':28}", *(f"{head:>20}" for head in HEADS)])]
    for place, row in enumerate(entries):
        if not row.numbers:
            lines.append(f"{row.name:28}  no result: {row.error}")
            continue
        cells = []
        for measure, scale in zip(MEASURES, SCALES, strict=True):
            shown = f"{row.numbers[measure] / scale:.4g}"
            if place and ours.numbers:
                shown += f" ({ratio(row.numbers[measure], ours.numbers[measure])})"
            cells.append(f"{shown:>20}")
        lines.append("".join([f"{row.name:28}", *cells]))
        if row.error:
            lines.append(f"{'':28}  not all repeats: {row.error}")
    return "\n".join(lines)


def compare(folder: Path, ours: Path, peers: list[Path]) -> str:
    """The comparison of result folders on one job folder, as text; multiples above 1 are in our favour."""
    folders = [ours, *peers]
    results = [json.loads((place / RESULT).read_text(encoding="utf-8")) for place in folders]
    check_alike(results)
    return table([entry(folder, place, result) for place, result in zip(folders, results, strict=True)])


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path)
    parser.add_argument("ours", type=Path)
    parser.add_argument("peers", type=Path, nargs="*")
    given = parser.parse_args()
    print(compare(given.input, given.ours, given.peers))


if __name__ == "__main__":
    main()
