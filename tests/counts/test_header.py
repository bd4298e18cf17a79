from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.counts.malformed import CONTAINER_WRONG, PARQUET_WRONG, SECRET
from understudy.counts.files import connect_read_only, container_of, file_batches
from understudy.counts.opening import header_of
from understudy.errors import InputError


def refused(location: object) -> InputError:
    with pytest.raises(InputError) as caught:
        container_of(location)  # type: ignore[arg-type]
    assert SECRET not in str(caught.value)
    assert SECRET not in str(caught.value.__cause__)
    return caught.value


def test_text_types_are_never_guessed(tmp_path: Path) -> None:
    path = tmp_path / "t.CSV"
    path.write_text("a,b\n1,2020-01-01\n")
    assert header_of(path) == [("a", "string"), ("b", "string")]
    assert container_of(str(path)).delimiter == ","


def test_parquet_names_and_types(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": pa.array([1], pa.int16()), "x.y": ["z"], "": [1.5]}), path)
    assert header_of(path) == [("a", "int16"), ("x.y", "string"), ("", "double")]


def test_database_tables(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute('CREATE TABLE "one ""table""" (a INTEGER, "B b" VARCHAR)')
    assert header_of(path) == [("a", "INTEGER"), ("B b", "VARCHAR")]
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE other (c DATE)")
    assert header_of(f"{path}::other") == [("c", "DATE")]
    assert "exactly one table" in str(refused(path))
    assert "no table 'nothing'" in str(refused(f"{path}::nothing"))


def test_a_database_connection_reaches_nothing_else(tmp_path: Path) -> None:
    path, other = tmp_path / "t.duckdb", tmp_path / "other.csv"
    other.write_text("a\n1\n")
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (a INTEGER)")
    with connect_read_only(path) as connection:
        for command in (
            f"SELECT * FROM read_csv('{other}')",
            "INSERT INTO t VALUES (1)",
            "INSTALL httpfs",
            "SET enable_external_access = true",
            f"COPY t TO '{tmp_path / 'out.csv'}'",
        ):
            with pytest.raises(duckdb.Error):
                connection.execute(command)


def test_globs(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv"):
        (tmp_path / name).write_text("x,y\n1,2\n")
    assert [path.name for path in container_of(f"{tmp_path}/*.csv").paths] == ["a.csv", "b.csv"]
    (tmp_path / "c.csv").write_text("y,x\n1,2\n")
    assert "c.csv" in str(refused(f"{tmp_path}/*.csv"))
    (tmp_path / "d.tsv").write_text("x\n")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "e.parquet")
    assert "different kinds" in str(refused(f"{tmp_path}/[de].*"))
    assert "no file matches" in str(refused(f"{tmp_path}/*.pq"))


def test_hostile_paths(tmp_path: Path) -> None:
    for name in (
        "a'b; drop table x.csv",
        'q"uote.csv',
        "brackets[1]*.csv",
        "ünï 🙂.csv",
        "new\nline.csv",
        "::.csv",
        "-x.csv",
    ):
        path = tmp_path / name
        path.write_text("x\n1\n")
        assert header_of(path) == [("x", "string")]
        assert container_of(path).paths == (path,)


def test_wrong_places(tmp_path: Path) -> None:
    assert "no such file" in str(refused(tmp_path / "missing.csv"))
    assert "folder" in str(refused(tmp_path))
    (tmp_path / "t.xls").write_bytes(b"x")
    assert ".parquet" in str(refused(tmp_path / "t.xls"))
    refused("")
    refused("x\0y.csv")
    refused("y" * 5000 + ".csv")


def test_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n")

    def denied(*_: object, **__: object) -> None:
        raise PermissionError("denied")

    monkeypatch.setattr(Path, "open", denied)
    assert "cannot be read" in str(refused(path))


@pytest.mark.parametrize("name", ["empty", "only line ends", "utf-16", "utf-16 without mark", "utf-32", "gzip"])
def test_text_containers_that_cannot_be_used(name: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(CONTAINER_WRONG[name])
    assert str(path) in str(refused(path))


@pytest.mark.parametrize("name", PARQUET_WRONG)
def test_parquet_containers_that_cannot_be_used(name: str, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(PARQUET_WRONG[name])
    assert str(path) in str(refused(path))


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9, 0.999])
def test_parquet_cut_short(keep: float, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [SECRET] * 1000, "b": list(range(1000))}), path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    assert "Parquet" in str(refused(path))


@pytest.mark.parametrize("data", [b"", SECRET.encode() * 99, b"DUCK" * 2000], ids=["empty", "garbage", "almost"])
def test_databases_that_cannot_be_used(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    path.write_bytes(data)
    assert str(path) in str(refused(path))


def test_a_dialect_is_declared_in_the_location(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv", "t.tsv"):
        (tmp_path / name).write_text('x,y\n1,"2\n3"\n'.replace(",", "\t" if name == "t.tsv" else ","))
    for location, files in (("a.csv", 1), ("*.csv", 2), ("t.tsv", 1)):
        plain, declared = container_of(tmp_path / location), container_of(f"{tmp_path / location}::multiline")
        assert (plain.multiline, declared.multiline) == (False, True)
        assert plain.paths == declared.paths
        assert len(plain.paths) == files
        assert plain.header == declared.header
        for container, rows in ((plain, 2), (declared, 1)):
            batches = file_batches(container, ["y"], memory_bytes=1 << 27, threads=1)
            assert sum(count for count, _ in batches) == rows * files
    assert "'multilines' is not known" in str(refused(f"{tmp_path / 'a.csv'}::multilines"))
    assert "::multiline" in str(refused(f"{tmp_path / 'a.csv'}::"))
    assert "no such file" in str(refused(f"{tmp_path / 'c.csv'}::multiline"))
