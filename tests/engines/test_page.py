"""Every snippet of docs/engines.md runs here, in order, on servers of our own; its table names what there is."""

import contextlib
import re
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.terminal import run
from tests.docs.test_tutorial import BLOCK
from tests.engines.servers import Server
from understudy.counts.opening import ENGINES
from understudy.schema import Category, Integer, Schema, Unit

PAGE = (Path(__file__).parents[2] / "docs" / "engines.md").read_text(encoding="utf-8")
SECTIONS = ("PostgreSQL", "SQLite", "Other databases", "From Python")
VISITS = pa.table({"ward": ["A", "B", None] * 50, "age": list(range(10, 60)) * 3})


def test_every_snippet_runs(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Schema((Category(name="ward", labels=("A", "B")), Integer(name="age", lower=0, upper=99)), Unit()).to_yaml(
        Path("schema.yaml")
    )
    pq.write_table(VISITS, "visits.parquet")
    with contextlib.closing(sqlite3.connect("clinic.db")) as database, database:
        database.execute("CREATE TABLE visits (ward, age)")
        database.executemany("INSERT INTO visits VALUES (?, ?)", [tuple(row.values()) for row in VISITS.to_pylist()])
    server.run(f"ALTER TABLE {server.hold(VISITS)} RENAME TO visits")
    ran = 0
    for title in SECTIONS:
        for _, _, kind, text in BLOCK.findall(_section(title)):
            ran += 1
            if kind == "python":
                subprocess.run([sys.executable, "-c", text], check=True, timeout=600)
            else:
                _type(text.replace("postgresql://db.example/clinic::public.visits", server.location("public.visits")))
    assert ran == len(SECTIONS)


def _section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def _type(text: str) -> None:
    """Commands of a block, each with the words it must print."""
    for step in text.split("$ understudy ")[1:]:
        command, *expected = step.replace("\\\n", " ").splitlines()
        shown = run(*shlex.split(command))
        assert shown.status == 0, shown.words
        for part in "\n".join(expected).split("…"):
            assert part.strip() in shown.words


def test_every_scheme_and_suffix_of_these_engines_is_named() -> None:
    ours = [name for name, place in ENGINES.items() if re.search("postgres|sqlite", str(place))]
    assert all(f"{name}:" in PAGE or f"`{name}`" in PAGE for name in ours if name != "postgres")
