"""After the charge nothing in a row may stop a run, and nothing of a row may show anywhere but under noise."""

import datetime as dt
import decimal
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.cli.terminal import Outcome, run
from tests.cli.workspace import SCHEMA, Workspace, people

HEADER = b"region,sex,age,income,visited\n"
GOOD = b"north,F,30,100.00,2020-05-05\n"
NAMES = ["region", "sex", "age", "income", "visited"]

TEXT: dict[str, bytes] = {
    "no rows": HEADER,
    "no rows and no line end": HEADER.rstrip(),
    "one row": HEADER + GOOD,
    "byte order mark": b"\xef\xbb\xbf" + HEADER + GOOD,
    "windows line ends": (HEADER + GOOD * 3).replace(b"\n", b"\r\n"),
    "mixed line ends": HEADER + GOOD + GOOD.replace(b"\n", b"\r\n") + GOOD,
    "old mac line ends inside": HEADER + GOOD + b"north,F,30\r,1,2020-05-05\n",
    "too few cells": HEADER + GOOD + b"north,F\n" + GOOD,
    "too many cells": HEADER + GOOD + b"north,F,30,1,2020-05-05,extra,extra\n" + GOOD,
    "blank lines": HEADER + b"\n\n" + GOOD + b"\n",
    "open quote": HEADER + GOOD + b'"north,F,30,1,2020-05-05\n' + GOOD,
    "quote in the middle": HEADER + GOOD + b'no"rth,F,30,1,2020-05-05\n',
    "nul in a cell": HEADER + GOOD + b"nor\0th,F,30,1,2020-05-05\n",
    "latin-1 bytes": HEADER + GOOD + b"s\xfcd,F,30,1,2020-05-05\n",
    "lone continuation bytes": HEADER + b"\x80\x81\xff,F,30,1,2020-05-05\n",
    "all cells empty": HEADER + b",,,,\n" * 5,
    "nothing fits": HEADER + b"?,?,?,?,?\n" * 5,
    "huge numbers": HEADER + b"north,F,99999999999999999999999999,1e999,2020-05-05\n",
    "odd numbers": HEADER + b"north,F,-0,nan,2020-05-05\nnorth,F,3.7,-inf,2020-05-05\nnorth,F,0x1F,1_000,0\n",
    "odd dates": HEADER + b"north,F,30,1,0000-00-00\nnorth,F,30,1,9999-12-31\nnorth,F,30,1,05/05/2020\n",
    "formulas": HEADER + b"=1+1,@SUM(A1),+30,-1,=TODAY()\n",
    "right to left and zero width": HEADER + "\u202enorth,\u200bF,３０,١,2020-05-05\n".encode(),
    "a cell of one megabyte": HEADER + b"x" * 1_000_000 + b",F,30,1,2020-05-05\n",
    "no line end after the last row": HEADER + GOOD.rstrip(),
}
COLUMNS: dict[str, dict[str, pa.Array]] = {
    "all null": {name: pa.nulls(6) for name in NAMES},
    "wrong types": {
        "region": pa.array([1, 2, None]),
        "sex": pa.array([True, False, None]),
        "age": pa.array(["30", "old", None]),
        "income": pa.array([decimal.Decimal("1.50"), None, None]),
        "visited": pa.array([dt.datetime(2020, 5, 5, 3), None, dt.datetime(1700, 1, 1)]),
    },
    "nested types": {
        "region": pa.array([["north"], [], None]),
        "sex": pa.array([{"a": 1}, None, {"a": 2}]),
        "age": pa.array([[1, 2], None, [3]]),
        "income": pa.array([b"\xff\x00", b"12", None]),
        "visited": pa.array([dt.timedelta(days=3), None, None]),
    },
    "dictionaries": {
        "region": pa.array(["north", "Mars", None]).dictionary_encode(),
        "sex": pa.array(["F", None, "F"]).dictionary_encode(),
        "age": pa.array([30, 31, None]).dictionary_encode(),
        "income": pa.array([float("nan"), float("inf"), -0.0]),
        "visited": pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    },
    "extreme numbers": {
        "region": pa.array(["north"] * 3),
        "sex": pa.array(["F"] * 3),
        "age": pa.array([2**63, 2**64 - 1, 0], pa.uint64()),
        "income": pa.array([1e308, -1e308, 5e-324]),
        "visited": pa.array([2**31 - 1, -(2**31), 0], pa.int32()).cast(pa.date32()),
    },
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace.make(tmp_path_factory.mktemp("hostile"), rows=20)


def _released(place: Workspace, table: Path, name: str) -> Outcome:
    out = place.folder / f"release-{name}"
    shown = place.synthesize("--out", out, "--method", "independent", table=table, epsilon=1)
    assert shown.status == 0, shown.err
    assert out.is_dir()
    return shown


@pytest.mark.parametrize("name", TEXT)
def test_text_content_never_stops_a_run(name: str, place: Workspace) -> None:
    table = place.folder / f"{name}.csv"
    table.write_bytes(TEXT[name])
    _released(place, table, f"text-{name}")


@pytest.mark.parametrize("name", COLUMNS)
def test_arrow_content_never_stops_a_run(name: str, place: Workspace) -> None:
    table = place.folder / f"{name}.parquet"
    pq.write_table(pa.table(COLUMNS[name]), table)
    _released(place, table, f"arrow-{name}")


TOKEN = "Trillian48151623"
NUMBER = "48151623.42"


def _planted(folder: Path) -> Path:
    """A table with a token in every place a row can hold one, and in a column that the schema does not know."""
    rows = [f"{TOKEN},{TOKEN},{NUMBER},{NUMBER},{TOKEN},{TOKEN}", f"north,F,30,1.00,2020-05-05,{TOKEN}"]
    rows += [f'"{TOKEN}', f"{TOKEN},,,,,,,,,{TOKEN}", f"\ud7ff{TOKEN}\0,F,1e999{TOKEN},{NUMBER}e7,{TOKEN}-13-99,x"]
    rows += ["south,M,40,2.00,2020-06-06,secret-id"] * 50
    path = folder / "planted.csv"
    path.write_bytes(("region,sex,age,income,visited,person\n" + "\n".join(rows) + "\n").encode())
    return path


def _traces(folder: Path, shown: Outcome) -> list[str]:
    """Where the token or the number shows: output, names or contents of files (Parquet also decoded)."""
    wanted = [TOKEN, "48151623", "secret-id"]
    places = {"standard output": shown.out, "standard error": shown.err}
    for path in sorted(folder.rglob("*")):
        places[f"name of {path.name}"] = path.name
        if path.is_file():
            places[f"content of {path.name}"] = path.read_bytes().decode("latin-1")
        if path.suffix == ".parquet":
            file = pq.read_table(path)
            places[f"rows of {path.name}"] = str(file.to_pylist()) + str(file.schema.metadata)
    return [where for where, text in places.items() if any(word in text for word in wanted)]


@pytest.mark.parametrize("method", ["independent", "laplace"])
@pytest.mark.parametrize("unit", ["unit: row", "unit: {column: person, rows: 2}"])
def test_a_planted_value_shows_nowhere(method: str, unit: str, tmp_path: Path) -> None:
    place = Workspace.make(tmp_path, rows=5)
    bins = SCHEMA.replace("upper: 65", "upper: 65\n    bins: 4").replace("decimals: 2", "decimals: 2\n    bins: 4")
    bins = bins.replace("upper: 2020-12-31", "upper: 2020-12-31\n    bins: 4")
    place.schema.write_text(bins.replace("unit: row", unit), encoding="utf-8")
    shown = place.synthesize("--method", method, table=_planted(tmp_path), epsilon=5)
    assert shown.status == 0, shown.err
    assert len(list(place.release.iterdir())) >= 9
    assert _traces(place.release, shown) == []
    assert TOKEN.encode() not in place.ledger.read_bytes()


def test_a_planted_value_shows_nowhere_in_a_real_process(tmp_path: Path) -> None:
    """As above, but with what native libraries write past Python's streams."""
    place = Workspace.make(tmp_path, rows=5)
    words = ["synthesize", _planted(tmp_path), "--schema", place.schema, "--epsilon", 5, "--out", place.release]
    command = [sys.executable, "-m", "understudy", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert _traces(place.release, Outcome(0, done.stdout, done.stderr)) == []


def test_a_file_that_breaks_while_it_is_read_keeps_its_secrets(tmp_path: Path) -> None:
    """Damage inside a file with a good header shows only after the charge: the charge stays, nothing is released."""
    place = Workspace.make(tmp_path, rows=50)
    table = people(500).set_column(0, "region", pa.array([TOKEN] * 500))
    pq.write_table(table, tmp_path / "damaged.parquet", compression="none")
    content = bytearray((tmp_path / "damaged.parquet").read_bytes())
    content[4:24] = b"\xff" * 20
    (tmp_path / "damaged.parquet").write_bytes(bytes(content))
    shown = place.synthesize(table=tmp_path / "damaged.parquet")
    assert (shown.status, shown.panels, shown.out) == (2, 1, "")
    assert TOKEN not in shown.err
    assert not place.release.exists()
    assert '"releases": 1' in place.balance()


def test_the_trace_test_finds_a_trace(tmp_path: Path) -> None:
    (tmp_path / f"{TOKEN}.txt").write_text("x", encoding="utf-8")
    pq.write_table(pa.table({"a": pa.array([TOKEN] * 9)}), tmp_path / "rows.parquet")
    (tmp_path / "text.json").write_text('{"income": 48151623}', encoding="utf-8")
    found = _traces(tmp_path, Outcome(0, "secret-id", TOKEN))
    assert {"standard output", "standard error", f"name of {TOKEN}.txt", "rows of rows.parquet"} <= set(found)
    assert "content of text.json" in found


def test_messages_quote_no_row_even_when_the_header_is_one(tmp_path: Path) -> None:
    place = Workspace.make(tmp_path, rows=5)
    table = tmp_path / "headless.csv"
    table.write_text(f"{TOKEN},F,48151623,1.00,2020-05-05\nnorth,F,30,1.00,{TOKEN}\n", encoding="utf-8")
    for words in (
        ("synthesize", table, "--schema", place.schema, "--epsilon", 1, "--out", place.release),
        ("schema", "check", place.schema, table),
    ):
        shown = run(*words)
        assert shown.status == 2
        assert TOKEN not in shown.out + shown.err
        assert "48151623" not in shown.out + shown.err


def _break(monkeypatch: pytest.MonkeyPatch, raised: Callable[[], Exception]) -> None:
    def count(*_: object, **__: object) -> object:
        raise raised()

    monkeypatch.setattr("understudy.privacy.curator.Curator.measure", count)


@pytest.mark.parametrize("debug", [False, True])
def test_a_fault_of_ours_shows_no_private_value(debug: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, folder = tmp_path / "kept", tmp_path / "place"
    kept.mkdir()
    folder.mkdir()
    place = Workspace.make(folder, rows=5)
    monkeypatch.setattr("tempfile.tempdir", str(kept))
    _break(monkeypatch, lambda: ZeroDivisionError(TOKEN))
    shown = place.synthesize(*(["--debug"] if debug else []))
    assert (shown.status, shown.panels, shown.out) == (1, 1, "")
    assert "ZeroDivisionError" in shown.err
    assert TOKEN not in shown.err
    assert not place.release.exists()
    assert sorted(path.suffix for path in kept.iterdir()) == ([".txt"] if debug else [])
    assert '"releases": 1' in place.balance()


def test_people_of_the_workspace_are_released(tmp_path: Path) -> None:
    place = Workspace.make(tmp_path, rows=300)
    shown = place.synthesize(table=tmp_path / "people.parquet")
    assert shown.status == 0
    assert run("verify", place.release).status == 0
    assert pq.read_table(place.release / "data.parquet").schema.names == people(1).schema.names


BYTES: dict[str, tuple[str, bytes]] = {
    "a broken sequence as a label": ("job", b"\xc3\x28"),
    "a surrogate as a label": ("job", b"\xed\xa0\x80"),
    "Latin-1 as a label": ("job", b"K\xf6chin"),
    "an id that is not UTF-8": ("person", b"\xc3\x28"),
    "a label of 30 MB": ("job", b"x" * 30_000_000),
    "an id of 30 MB": ("person", b"x" * 30_000_000),
}
JOBS = "understudy: 1\nunit: {column: person, rows: 1}\ncolumns:\n  job: {kind: open_category}\n"


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_no_label_and_no_id_decides_how_a_run_ends(kind: str, suffix: str, tmp_path: Path) -> None:
    column, value = BYTES[kind]
    rows = [{"job": b"nurse", "person": b"p%d" % number} for number in range(60)]
    rows.append({"job": b"nurse", "person": b"p60", column: value})
    schema, data = tmp_path / "schema.yaml", tmp_path / f"people.{suffix}"
    schema.write_text(JOBS)
    if suffix == "csv":
        data.write_bytes(b"job,person\n" + b"".join(row["job"] + b"," + row["person"] + b"\n" for row in rows))
    else:
        unchecked = pc.CastOptions.unsafe(pa.string())
        values = {name: pa.array([row[name] for row in rows]) for name in ("job", "person")}
        pq.write_table(pa.table({name: pc.cast(array, options=unchecked) for name, array in values.items()}), data)
    arguments = [
        "--method",
        "independent",
        "--epsilon",
        "20",
        "--delta",
        "1e-6",
        "--memory",
        "64MiB",
        "--quiet",
        "--yes",
    ]
    outcome = run("synthesize", str(data), "--schema", str(schema), "--out", str(tmp_path / "out"), *arguments)
    assert outcome.status == 0, outcome.err
    labels = json.loads((tmp_path / "out" / "model" / "codec-1.json").read_text())["labels"]["job"]
    assert labels == ["nurse"]
