"""The page of `benchmarks.bench`: error against ε, time, memory, failures and claims, from the runs that are kept."""

import json
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from understudy.charts import Lines, Series
from understudy.report import render_picture

__all__ = ["KEPT", "Record", "kept", "write_page"]

Record = dict[str, object]
ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "studies" / "benchmark.md"
CLAIMS = "claims.json"


def kept() -> list[Record]:
    """All runs that were made, a line each; a line that a kill cut short is left out."""
    found = []
    for file in sorted(KEPT.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found


def write_page(contestants: Sequence[str], tables: Sequence[str], epsilons: Sequence[float]) -> Path:
    """Writes page and figures; says which runs there are, and which are not."""
    records = [one for one in kept() if one["by"] in contestants and one["table"] in tables]
    parts = ["# Benchmark: our methods and other packages on real tables", _about(records, tables, epsilons)]
    parts += ["## Error", *(_errors(records, contestants, tables, epsilon) for epsilon in epsilons)]
    parts += [_figure(records, contestants, table, epsilons) for table in tables]
    parts += ["## Time and memory", _costs(records, contestants, tables)]
    parts += ["## What failed, and what was not run", _failures(records, contestants, tables, epsilons)]
    parts += ["## What the packages say of themselves", _claims()]
    PAGE.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")
    return PAGE


def _about(records: Sequence[Record], tables: Sequence[str], epsilons: Sequence[float]) -> str:
    dates = sorted({str(one["date"]) for one in records}) or ["never"]
    versions: dict[str, str] = {}
    for one in records:
        package = str(one["by"]).split(" ")[0]
        found = one["versions"] if isinstance(one["versions"], dict) else {}
        versions |= {package: str(found[package])} if package in found else {}
    sizes = {str(one["table"]): f"{one['rows']:,} × {one['columns']}" for one in records}
    shown = ", ".join(f"{name} ({sizes[name]})" for name in tables if name in sizes)
    named = ", ".join(f"{name} {versions[name]}" for name in sorted(versions))
    cells = Counter((one["table"], one["epsilon"], one["by"]) for one in records)
    most = max(cells.values(), default=0)
    return (
        "Made by `make bench DATA=FOLDER`; `python -m benchmarks.bench --page` writes this page again from the runs in "
        f"`benchmarks/results`, {len(records):,} so far, of {' to '.join(dict.fromkeys((dates[0], dates[-1])))}. "
        f"Versions: {named}; dpsynth is a checkout of google/dpsynth (commit cf8075f). {_commits(records)}\n\n"
        f"Tables: {shown}. ε {', '.join(f'{one:g}' for one in epsilons)}, δ = 1e-9, as many rows as the table. Every "
        "run is a process of its own on the same coded columns; errors are mean total variations over all single "
        "columns, all pairs, and 60 triples. A cell is the mean of its runs, of which most have one and none more than "
        f"{most}: small differences say nothing. `mbi` ships inference only: its mechanisms here are written by us "
        "(`benchmarks/peers`). Seconds are of processors "
        "on a shared machine with two cores, compilation included for peers. Ours have kernels in the "
        "cache but for the first runs of a method, which compile some (several seconds)."
    )


def _commits(records: Sequence[Record]) -> str:
    """Which commits of this package made how many of its runs; runs of other packages do not depend on them."""
    ours = Counter(one.get("commit") for one in records if str(one["by"]).startswith("understudy "))
    named = [f"{count} of commit {made}" for made, count in sorted(ours.items(), key=str) if made is not None]
    if ours[None]:
        named.append(f"{ours[None]} of version 0.2.0 under way, before runs noted their commit")
    return f"Runs of ours: {', '.join(named)}." if named else ""


def _chosen(records: Sequence[Record], **wanted: object) -> list[Record]:
    return [one for one in records if one["error"] is None and all(one[name] == wanted[name] for name in wanted)]


def _errors(records: Sequence[Record], contestants: Sequence[str], tables: Sequence[str], epsilon: float) -> str:
    """Pairs and triples of every contestant on every table at one ε, the best of a table in bold."""
    head = ["contestant", *tables]
    body = []
    best = {}
    for table in tables:
        means = [_mean(_chosen(records, table=table, epsilon=epsilon, by=by), "pairs") for by in contestants]
        best[table] = min((one for one in means if one is not None), default=None)
    for by in contestants:
        cells = []
        for table in tables:
            runs = _chosen(records, table=table, epsilon=epsilon, by=by)
            pairs, triples = _mean(runs, "pairs"), _mean(runs, "triples")
            text = "–" if pairs is None else f"{pairs:.4f} / {triples:.4f}"
            cells.append(f"**{text}**" if pairs is not None and pairs == best[table] else text)
        if set(cells) != {"–"}:
            body.append([by, *cells])
    caption = f"ε = {epsilon:g}: mean total variation of pairs / triples; the lowest of pairs in bold; – no run."
    return f"{caption}\n\n{_table(head, body)}" if body else ""


def _mean(runs: Sequence[Record], name: str) -> float | None:
    return statistics.fmean(float(str(one[name])) for one in runs) if runs else None


def _figure(records: Sequence[Record], contestants: Sequence[str], table: str, epsilons: Sequence[float]) -> str:
    """Pairs against ε of those contestants that ran at more than one ε."""
    curves = []
    for by in contestants:
        runs = {one: _chosen(records, table=table, epsilon=one, by=by) for one in epsilons}
        there = [one for one in epsilons if runs[one]]
        if len(there) > 1:
            levels = [_mean(runs[one], "pairs") or 0.0 for one in there]
            curves.append(Series(by, tuple(there), tuple(levels)))
    if not curves:
        return ""
    caption = f"{table}: mean total variation of pairs against ε; lower is better"
    file = f"benchmark-{table.replace('_', '-')}.svg"
    picture = Lines(caption, "ε", "mean total variation of pairs", tuple(curves), logarithmic=True, decades=True)
    (PAGE.parent / file).write_text(render_picture(picture), encoding="utf-8")
    return f"![{caption}]({file})\n\n*{caption}*"


def _costs(records: Sequence[Record], contestants: Sequence[str], tables: Sequence[str]) -> str:
    """Processor seconds and peak memory at ε = 1."""
    body = []
    for by in contestants:
        cells = []
        for table in tables:
            runs = _chosen(records, table=table, epsilon=1.0, by=by)
            seconds, peak = _mean(runs, "seconds_cpu"), _mean(runs, "peak_rss_bytes")
            cells.append("–" if seconds is None or peak is None else f"{seconds:.3g} s, {peak / 2**20:,.0f} MiB")
        if set(cells) != {"–"}:
            body.append([by, *cells])
    return f"At ε = 1: CPU seconds, peak memory.\n\n{_table(['contestant', *tables], body)}"


def _failures(
    records: Sequence[Record], contestants: Sequence[str], tables: Sequence[str], epsilons: Sequence[float]
) -> str:
    """What did not end, with its reason, and how much of the grid there is."""
    lines = [
        f"* `{one['by']}` on {one['table']} at ε = {float(str(one['epsilon'])):g}: {str(one['error'])[:300]}"
        for one in records
        if one["error"] is not None
    ]
    cells = [(table, epsilon) for table in tables for epsilon in epsilons]
    for by in contestants:
        there = {(one["table"], one["epsilon"]) for one in records if one["by"] == by}
        stopped = {one["table"] for one in records if one["by"] == by and one["error"] is not None}
        left = [cell for cell in cells if cell not in there and cell[0] not in stopped]
        if left:
            lines.append(f"* `{by}`: not run in {len(left)} of {len(cells)} cells of table and ε.")
    said = (
        "A contestant that was stopped, or failed, on a table was not started on it again. Limits are by the clock of "
        "a machine that was busy with other work; CPU seconds come out higher there, too."
    )
    return "\n".join([said, "", *lines])


def _claims() -> str:
    """What packages say of themselves, the check, what it found."""
    path = KEPT / CLAIMS
    if not path.exists():
        return "Not checked yet: `python -m benchmarks.peers.claims`."
    body = [
        [one["peer"], one["claim"], one["check"], one["found"], "holds" if one["holds"] else "does not hold"]
        for one in json.loads(path.read_text(encoding="utf-8"))
    ]
    said = (
        "Each check runs in the package's own environment (`python -m benchmarks.peers.claims`). Only what a check "
        "shows is listed; nothing is said of the rest."
    )
    return f"{said}\n\n{_table(['package', 'it says', 'check', 'found', 'verdict'], body)}"


def _table(head: Sequence[object], body: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
