"""Malformed tables, schemas and options: status 2, one panel, nothing charged, nothing written."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.terminal import Outcome, listing, run
from tests.cli.workspace import SCHEMA, Workspace, people

Case = Callable[[Workspace], Outcome]
HEADER = "region,sex,age,income,visited"
ROW = "north,F,30,100.00,2020-05-05"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace.make(tmp_path_factory.mktemp("bad"), rows=20)


def _file(place: Workspace, name: str, content: bytes | str) -> Path:
    path = place.folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def _table(name: str, content: bytes | str) -> Case:
    return lambda place: place.synthesize(table=_file(place, name, content))


def _schema(content: bytes | str) -> Case:
    return lambda place: place.synthesize(schema=_file(place, "bad.yaml", content))


def _edited(before: str, after: str) -> Case:
    assert before in SCHEMA
    return _schema(SCHEMA.replace(before, after, 1))


def _options(*words: object, **named: object) -> Case:
    return lambda place: place.synthesize(*words, **named)


def _path(name: str) -> Case:
    return lambda place: place.synthesize(table=place.folder / name)


def _cut_parquet(place: Workspace) -> Outcome:
    content = (place.folder / "people.parquet").read_bytes()
    return place.synthesize(table=_file(place, "cut.parquet", content[: len(content) // 2]))


def _scrambled_footer(place: Workspace) -> Outcome:
    content = bytearray((place.folder / "people.parquet").read_bytes())
    footer = int.from_bytes(content[-8:-4], "little")
    content[-8 - footer : -8] = b"\xff" * footer
    return place.synthesize(table=_file(place, "scrambled.parquet", bytes(content)))


def _parquet_without_column(place: Workspace) -> Outcome:
    path = place.folder / "narrow.parquet"
    pq.write_table(people(5).drop_columns(["age"]), path)
    return place.synthesize(table=path)


def _parquet_twice_a_column(place: Workspace) -> Outcome:
    path = place.folder / "twice.parquet"
    table = people(5)
    pq.write_table(pa.table([*table.columns, table["age"]], names=[*table.column_names, "age"]), path)
    return place.synthesize(table=path)


def _unequal_files(place: Workspace) -> Outcome:
    _file(place, "part-1.csv", f"{HEADER}\n{ROW}\n")
    _file(place, "part-2.csv", "region,age,sex,income,visited\n")
    return place.synthesize(table=place.folder / "part-*.csv")


def _mixed_kinds(place: Workspace) -> Outcome:
    _file(place, "mix.csv", f"{HEADER}\n{ROW}\n")
    pq.write_table(people(5), place.folder / "mix.parquet")
    return place.synthesize(table=place.folder / "mix.*")


def _database_without_table(place: Workspace) -> Outcome:
    path = place.folder / "town.duckdb"
    if not path.exists():
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE cattle (region VARCHAR)")
    return place.synthesize(table=f"{path}::people")


TABLES: dict[str, Case] = {
    "no such file": _path("nobody.csv"),
    "a folder": _path("."),
    "pattern without match": _path("nobody-*.csv"),
    "unknown suffix": _table("people.xlsx", b"PK\x03\x04"),
    "no suffix": _table("people", HEADER),
    "json": _table("people.json", "[]"),
    "empty csv": _table("empty.csv", b""),
    "csv of one line end": _table("blank.csv", b"\n"),
    "csv lacks a column": _table("narrow.csv", "region,sex,age,income\nnorth,F,30,1\n"),
    "csv twice a column": _table("twice.csv", HEADER + ",age\n"),
    "csv with two delimiters": _table("semicolon.csv", HEADER.replace(",", ";", 1).replace(",", "|") + "\n"),
    "csv without header": _table("rows.csv", ROW + "\n"),
    "csv in utf-16": _table("wide.csv", f"{HEADER}\n{ROW}\n".encode("utf-16")),
    "csv header with nul": _table("nul.csv", HEADER.replace("age", "a\0ge") + "\n"),
    "csv that is binary": _table("junk.csv", bytes(range(256)) * 4),
    "csv header in another case": _table("case.csv", HEADER.upper() + "\n"),
    "tsv with two delimiters": _table("people.tsv", f"{HEADER}\n{ROW}\n".replace(",", "|", 1)),
    "empty parquet": _table("empty.parquet", b""),
    "parquet of magic only": _table("magic.parquet", b"PAR1PAR1"),
    "parquet that is a csv": _table("text.parquet", f"{HEADER}\n{ROW}\n"),
    "parquet cut in half": _cut_parquet,
    "parquet with a scrambled footer": _scrambled_footer,
    "parquet lacks a column": _parquet_without_column,
    "parquet twice a column": _parquet_twice_a_column,
    "files with different headers": _unequal_files,
    "files of different kinds": _mixed_kinds,
    "database that is none": _table("junk.duckdb", b"not a database" * 100),
    "database without the table": _database_without_table,
}
SCHEMAS: dict[str, Case] = {
    "missing schema": lambda place: place.synthesize(schema=place.folder / "nobody.yaml"),
    "schema is a folder": lambda place: place.synthesize(schema=place.folder),
    "empty schema": _schema(""),
    "schema is no yaml": _schema("columns: [a: b: c"),
    "schema is a list": _schema("- age\n- sex\n"),
    "schema is binary": _schema(bytes(range(128, 256))),
    "schema with an anchor": _edited("unit: row", "unit: &u row\ntitle2: *u"),
    "schema with a tag": _edited("unit: row", "unit: !!python/object/apply:os.system [ls]"),
    "schema with a key twice": _edited("unit: row", "unit: row\nunit: row"),
    "schema above 16 MiB": _schema(SCHEMA + "#" * (1 << 24)),
    "schema of another format": _edited("understudy: 1", "understudy: 99"),
    "schema without unit": _edited("unit: row\n", ""),
    "schema undecided": _edited("unit: row", "unit: DECIDE"),
    "unknown key": _edited("lower: 18", "lowest: 18"),
    "unknown kind": _edited("kind: integer", "kind: whole"),
    "reversed bounds": _edited("upper: 65", "upper: 17"),
    "bound is text": _edited("upper: 65", "upper: old"),
    "bound is infinite": _edited("upper: 100000", "upper: .inf"),
    "no labels": _edited("labels: [F, M]", "labels: []"),
    "label twice": _edited("labels: [F, M]", "labels: [F, F]"),
    "no columns": _schema("understudy: 1\nunit: row\ncolumns: {}\n"),
    "date that is none": _edited("lower: 2020-01-01", "lower: 2020-02-31"),
    "rule about an unknown column": _schema(SCHEMA + "rules:\n  - impossible: {height: [tall], sex: [F]}\n"),
    "rule about an unknown label": _schema(SCHEMA + "rules:\n  - impossible: {sex: [X], region: [north]}\n"),
    "unit in a column that is not there": _edited("unit: row", "unit: {column: person, rows: 3}"),
    "unit of no rows": _edited("unit: row", "unit: {column: sex, rows: 0}"),
}
OPTIONS: dict[str, Case] = {
    **{f"epsilon {text}": _options(epsilon=text) for text in ("0", "-1", "nan", "inf", "1e-30", "1e9", "one", "")},
    **{f"delta {text}": _options("--delta", text) for text in ("1", "-0.1", "nan", "2", "x")},
    "rows negative": _options("--rows", "-1"),
    "rows not whole": _options("--rows", "1.5"),
    "copies 0": _options("--copies", "0"),
    "unknown mode of copies": _options("--copies-mode", "photocopy"),
    "unknown method": _options("--method", "laplce"),
    "unknown option of the method": _options("--method", "laplace", "--set", "treshold=3"),
    "option without value": _options("--method", "laplace", "--set", "threshold"),
    "option with a bad value": _options("--method", "laplace", "--set", "threshold=low"),
    "option twice": _options("--method", "laplace", "--set", "threshold=3", "--set", "threshold=4"),
    "pure method with delta": _options("--method", "laplace", "--delta", "1e-9"),
    "memory in words": _options("--memory", "plenty"),
    "seed negative": _options("--seed", "-3"),
    "seed in words": _options("--seed", "lucky"),
    "public table": _options("--public", "public.csv"),
    "unknown dataset": _options("--dataset", "poeple"),
    "unknown flag": _options("--fast"),
    "output exists": lambda place: place.synthesize("--out", place.folder),
    "output with an endless name": lambda place: place.synthesize("--out", place.folder / ("x" * 300)),
    "table with an endless name": lambda place: place.synthesize(table=place.folder / ("x" * 300 + ".csv")),
    "output in no folder": lambda place: place.synthesize("--out", place.folder / "no" / "release"),
    "dataset without ledger": lambda place: run(
        *("synthesize", place.table, "--schema", place.schema, "--epsilon", 1, "--out", place.release),
        *("--dataset", "people"),
    ),
}


@pytest.mark.parametrize("case", [*TABLES, *SCHEMAS, *OPTIONS])
def test_refused_before_anything_happens(case: str, place: Workspace) -> None:
    act = (TABLES | SCHEMAS | OPTIONS)[case]
    before = place.balance()
    act(place)  # makes the files of the case, so that the second run must leave the folder as it was
    files = listing(place.folder)
    shown = act(place)
    assert (shown.status, shown.panels, shown.out) == (2, 1, ""), shown.err
    assert "Traceback" not in shown.err
    assert "Internal error" not in shown.words
    assert listing(place.folder) == files
    assert not place.release.exists()
    assert place.balance() == before


def test_there_are_at_least_forty_cases_beside_the_options() -> None:
    assert len(TABLES) + len(SCHEMAS) >= 40


def test_budget_is_refused_with_status_3_and_the_largest_request_that_would_pass(place: Workspace) -> None:
    files, before = listing(place.folder), place.balance()
    shown = place.synthesize("--yes", epsilon=101)
    assert (shown.status, shown.panels, shown.out) == (3, 1, "")
    assert "100" in shown.words
    assert (listing(place.folder), place.balance()) == (files, before)


@pytest.mark.parametrize("content", [b"", b"not a ledger" * 50], ids=["empty", "junk"])
def test_unusable_ledger_is_status_3(content: bytes, place: Workspace, tmp_path: Path) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(content)
    words = (
        "--schema",
        place.schema,
        "--epsilon",
        1,
        "--out",
        place.release,
        "--ledger",
        broken,
        "--dataset",
        "people",
    )
    shown = run("synthesize", place.table, *words)
    assert (shown.status, shown.panels, shown.out) == (3, 1, "")
    assert broken.read_bytes() == content
    assert not place.release.exists()


def test_too_little_memory_is_refused_with_status_4_before_the_charge(place: Workspace) -> None:
    before = place.balance()
    shown = place.synthesize("--memory", "1kB")
    assert (shown.status, shown.panels, shown.out) == (4, 1, "")
    assert place.balance() == before
    assert not place.release.exists()
