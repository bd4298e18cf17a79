"""The options that say how a text file is written, from the draft to the report."""

import gzip
from pathlib import Path

from tests.cli.terminal import run

SCHEMA = """\
understudy: 1
unit: row
file: {delimiter: semicolon, encoding: latin-1, decimal: ",", header: false, names: [city, wage]}
columns:
  city: {kind: category, labels: [Köln, Rome], missing: false}
  wage: {kind: float, lower: 0, upper: 4, bins: 4, missing: false}
"""


def table(folder: Path) -> Path:
    path = folder / "people.csv.gz"
    path.write_bytes(gzip.compress("Köln;1,5\nRome;2,5\n".encode("latin-1") * 500))
    return path


def test_options_become_part_of_the_draft(tmp_path: Path) -> None:
    words = ("--delimiter", "semicolon", "--encoding", "latin-1", "--decimal", ",", "--no-header")
    (tmp_path / "names.txt").write_text("city\nwage\n")
    for number, names in enumerate(("city,wage", f"@{tmp_path}/names.txt")):
        out = tmp_path / f"{number}.yaml"
        assert run("schema", "draft", table(tmp_path), "-o", out, *words, "--names", names).status == 0
        assert SCHEMA.splitlines()[2] in out.read_text(encoding="utf-8")


def test_what_the_schema_says_need_not_be_said_again(tmp_path: Path) -> None:
    path, schema = table(tmp_path), tmp_path / "schema.yaml"
    schema.write_text(SCHEMA, encoding="utf-8")
    assert run("schema", "check", schema, path).status == 0
    words = ("--schema", schema, "--method", "independent", "--epsilon", 20, "--delta", 1e-9, "--yes")
    made = run("synthesize", path, *words, "-o", tmp_path / "release")
    assert made.status == 0, made.err
    assert "cannot be read" not in made.words
    judged = run("evaluate", path, tmp_path / "release", "-o", tmp_path / "r.html", "--metric", "marginals")
    assert judged.status == 0, judged.err
    assert "cannot be read" not in judged.words


def test_flags_win(tmp_path: Path) -> None:
    path, schema = tmp_path / "t.csv", tmp_path / "schema.yaml"
    schema.write_text(SCHEMA.replace("header: false, names: [city, wage]", "multiline: false"), encoding="utf-8")
    path.write_text("city|wage\nRome|1,5\n")
    assert run("schema", "check", schema, path).status == 2
    assert run("schema", "check", schema, path, "--delimiter", "pipe").status == 0


def test_mistakes(tmp_path: Path) -> None:
    path = table(tmp_path)
    for words, said in (
        (("--delimiter", "ab"), "--delimiter must be one ASCII character"),
        (("--encoding", "utf-7"), "--encoding: 'utf-7' is neither"),
        (("--decimal", "x"), "--decimal must be"),
        (("--names", "a,b,c,d,e"), "and --names lists 5. Give one name for each column"),
        (("--no-header",), "--no-header leaves the columns without names"),
        (("--no-header", "--names", "a,a"), "--names must differ"),
        (("--no-header", "--names", "@nowhere"), "cannot be read"),
        (("--most-bytes", "many"), "--most-bytes must be a size"),
    ):
        shown = run("schema", "draft", path, "-o", tmp_path / "s.yaml", *words)
        assert (shown.status, shown.panels) == (2, 1)
        assert said in shown.words


def test_a_delimiter_that_was_found_is_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("city;wage\n")
    shown = run("schema", "draft", tmp_path / "t.csv", "-o", tmp_path / "s.yaml")
    assert "a semicolon separates the fields of" in shown.words
    (tmp_path / "u.csv").write_text("city;wage|age\n")
    assert "Give --delimiter" in run("schema", "draft", tmp_path / "u.csv", "-o", tmp_path / "u.yaml").words


def test_an_unfinished_schema_already_says_how_the_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "t.data").write_text("1;2\n3;4\n")
    flags = ("--delimiter", ";", "--no-header", "--names", "size,weight")
    assert run("schema", "draft", tmp_path / "t.data", "-o", tmp_path / "s.yaml", *flags).status == 0
    shown = run("schema", "check", tmp_path / "s.yaml", tmp_path / "t.data")
    assert shown.status == 2
    assert "DECIDE" in shown.words
    assert "suffix" not in shown.words
    assert "not in the table" not in shown.words


def test_a_header_in_another_encoding_is_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("Städte,n\nKöln,1\n".encode("latin-1"))
    drafted = run("schema", "draft", tmp_path / "t.csv", "-o", tmp_path / "s.yaml")
    assert "is not UTF-8. If the file is in Latin-1, give --encoding latin-1" in drafted.words
    told = run("schema", "draft", tmp_path / "t.csv", "-o", tmp_path / "u.yaml", "--encoding", "latin-1")
    assert "is not UTF-8" not in told.words
