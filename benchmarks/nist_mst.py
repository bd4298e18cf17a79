"""nist_mst end to end: two real tables with a list of marginals from a public proxy, and the challenge's 147 tables.

    python benchmarks/nist_mst.py                    # all three
    python benchmarks/nist_mst.py fire --repeats 3

Each table is split at random into two halves. One half plays the public table: the list of marginals comes from it
(real use needs a table that is really public). The other half is protected at ε = 1, δ = 10⁻⁹. Printed per run: CPU
seconds (list, method without opening, rows), peak memory of the process, and the mean total variation of the synthetic
rows over all one-way tables, and all two-way tables with at most 10⁶ cells. "resampled" is the other half itself, as
large as the protected one: what no privacy at all would give. `--set expand=evenly` shows what that changes.

The challenge's records are not public; `match3` runs on rows generated from its specification: skewed columns, each
depending on its neighbour in the tree of the preset. Tables are read from ../shared/data and skipped if absent.
"""

import argparse
import itertools
import json
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from understudy import plan, synthesize
from understudy.codec.table import TableCodec
from understudy.domain import Domain
from understudy.methods.match_three import match3_schema, match3_tables
from understudy.schema import Category, Schema, Unit

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
REAL = {"fire": "nist2018_sf_fire", "acs": "nist2020_acs_iloh"}
SPECIFICATION = FOLDER / "nist2018_match3_specs" / "domain.json"
EPSILON, DELTA = 1.0, 1e-9
CELLS = 10**6
LEFT_OUT = ("Box", "Address")  # the published benchmark leaves these codes of thousands of values out, too

Codes = Mapping[str, npt.NDArray[np.integer]]


def main() -> None:
    """Runs what is asked for and prints a line per run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", help="fire, acs, match3; all by default")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--rows", type=int, default=661_967, help="generated rows of match3")
    parser.add_argument("--set", action="append", default=[], help="option=value of the method")
    given = parser.parse_args()
    options = dict(item.split("=", 1) for item in given.set)
    for name in given.tables or [*REAL, "match3"]:
        present = SPECIFICATION.exists() if name == "match3" else (FOLDER / REAL[name]).exists()
        if not present:
            print(f"{name}: not at hand")
        elif name == "match3":
            challenge(given.rows, given.repeats, options)
        else:
            real(name, given.repeats, options)


def real(name: str, repeats: int, options: Mapping[str, str]) -> None:
    """A real table, half of it public."""
    schema, table = read(REAL[name])
    order = np.random.default_rng(1).permutation(table.num_rows)
    public, private = table.take(order[::2]), table.take(order[1::2])
    started = time.process_time()
    planned = plan(schema, method="nist_mst", epsilon=EPSILON, delta=DELTA, public=public, options=options)
    listed = str(planned.options["marginals"])
    seconds = time.process_time() - started
    tables = listed.split(", ")
    triples = sum(entry.count("×") == 2 for entry in tables)
    print(
        f"{name}: {private.num_rows:,} rows × {len(schema.columns)}; {len(tables)} tables, {triples} of three columns"
    )
    print(f"  list from the public half: {seconds:.1f} s")
    codec = TableCodec.of(schema)
    truth = coded(codec, private)
    show("resampled", truth, coded(codec, public), codec.domain, "")
    for _ in range(repeats):
        protect(private, schema, {"marginals": listed, **options}, truth)


def challenge(rows: int, repeats: int, options: Mapping[str, str]) -> None:
    """Rows made up from the challenge's specification, its own list of tables."""
    schema = match3_schema(json.loads(SPECIFICATION.read_text(encoding="utf-8"))["columns"])
    codec = TableCodec.of(schema)
    table = codec.decode(generated(codec.domain, rows, seed=1), np.random.default_rng(2))
    print(f"match3: {rows:,} generated rows × {len(schema.columns)}; {sum(map(len, match3_tables().values()))} tables")
    for _ in range(repeats):
        protect(table, schema, {"preset": "match3", **options}, coded(codec, table))


def generated(domain: Domain, rows: int, seed: int) -> Codes:
    """Skewed columns; each follows one neighbour in the preset's tree three times out of four."""
    rng = np.random.default_rng(seed)
    edges = match3_tables()["tree"]
    codes: dict[str, npt.NDArray[np.integer]] = {}
    for name, size in domain.sizes.items():
        ranks = rng.permutation(size)
        own = ranks[np.minimum((size * rng.random(rows) ** (1.0 + 2.0 * np.log10(size))).astype(np.int64), size - 1)]
        near = [other for edge in edges if name in edge for other in edge if other in codes]
        if near:
            copied = ranks[codes[near[0]].astype(np.int64) % size]
            own = np.where(rng.random(rows) < 0.75, copied, own)
        codes[name] = own
    return codes


def protect(table: pa.Table, schema: Schema, options: Mapping[str, str], truth: Codes) -> None:
    """One release: its time, memory and distance from the truth."""
    started = time.process_time()
    release = synthesize(table, schema, method="nist_mst", epsilon=EPSILON, delta=DELTA, options=options)
    fitted = time.process_time() - started
    drawn = release.sample(table.num_rows, seed=1)
    seconds = time.process_time() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    codec = release.codec
    note = f"  {fitted:6.1f} s fitted, {seconds:6.1f} s with rows, {memory:.2f} GiB"
    show("nist_mst", truth, coded(codec, drawn), codec.domain, note)


def show(label: str, truth: Codes, other: Codes, domain: Domain, note: str) -> None:
    """Mean total variation over one-way and two-way tables."""
    ones = [distance(truth, other, domain, (name,)) for name in domain.columns]
    pairs = [pair for pair in itertools.combinations(domain.columns, 2) if domain.cells(pair) <= CELLS]
    if len(pairs) > 600:
        pairs = [pairs[place] for place in np.random.default_rng(0).choice(len(pairs), 600, replace=False)]
    twos = [distance(truth, other, domain, pair) for pair in pairs]
    print(f"  {label:10s} 1-way TV {np.mean(ones):.4f}, 2-way TV {np.mean(twos):.4f} ({len(pairs)} pairs){note}")
    sys.stdout.flush()


def distance(truth: Codes, other: Codes, domain: Domain, names: Sequence[str]) -> float:
    """Total variation between the two tables of these columns."""
    tables = []
    for codes in (truth, other):
        cell = np.zeros(len(codes[names[0]]), dtype=np.int64)
        for name in names:
            cell = cell * domain.sizes[name] + codes[name]
        tables.append(np.bincount(cell, minlength=domain.cells(names)) / cell.size)
    return float(np.abs(tables[0] - tables[1]).sum() / 2)


def coded(codec: TableCodec, table: pa.Table) -> Codes:
    """The codes of a table."""
    return {name: codec.encode(name, table.column(codec.origin(name))) for name in codec.domain.columns}


def read(folder: str) -> tuple[Schema, pa.Table]:
    """A real table with its documented domain."""
    described = json.loads((FOLDER / folder / "domain.json").read_text(encoding="utf-8"))["columns"]
    columns = tuple(
        Category(
            name=name,
            labels=tuple(str(code) for code in range(int(facts["size"]))),
            missing=bool(facts.get("missing", False)),
            storage="int64",
        )
        for name, facts in described.items()
        if name not in LEFT_OUT
    )
    table = pq.read_table(FOLDER / folder / "data.parquet", columns=[column.name for column in columns])
    return Schema(columns, Unit(), unreadable="drop"), table


if __name__ == "__main__":
    main()
