"""What cannot be read is refused before a charge, by name, and bombs by a public limit."""

import gzip
import sys
import zipfile
from pathlib import Path

import openpyxl
import pyarrow as pa
import pytest

from tests.counts.containers import CONTAINERS, as_zip, shared_excel
from tests.counts.malformed import SECRET
from tests.counts.places import people
from understudy.counts import streams
from understudy.counts.files import container_of, read_table
from understudy.counts.opening import open_table
from understudy.counts.source import PrivateTable
from understudy.errors import InputError, ResourceError

TABLE = pa.table({"sex": ["F", "M"], "age": [1, 2], "city": ["Rome", SECRET]})
CSV = f"sex,age,city\nF,1,Rome\nM,2,{SECRET}\n".encode()


def refused(location: object) -> str:
    with pytest.raises(InputError) as caught:
        open_table(location, people())
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None, "a reader's words may quote rows"
    return str(caught.value)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files may expand to 1,000 bytes or 5 times their size."""
    monkeypatch.setattr(streams, "LEAST_EXPANDED", 1000)
    monkeypatch.setattr(streams, "MOST_RATIO", 5)


def bomb(folder: Path, name: str) -> Path:
    data = b"sex,age,city\n" + b"F,1,Rome\n" * 100_000
    path = folder / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(data))
    elif name.endswith(".zst"):
        path.write_bytes(pa.compress(data, codec="zstd", asbytes=True))
    else:
        as_zip(data, "t.csv", path)
    return path


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["t.csv.gz", "t.csv.zst", "t.zip"])
def test_a_bomb_is_refused_by_a_public_limit(name: str, tmp_path: Path) -> None:
    path = bomb(tmp_path, name)
    assert "expands to more than" in refused(path)
    assert "give most_bytes=" in refused(path)
    assert isinstance(open_table(read_table(path, most_bytes=10**7), people()), PrivateTable)
    assert container_of(path).names == ("sex", "age", "city"), "the header is public and can be read"


@pytest.mark.usefixtures("small")
def test_a_bomb_of_another_kind(tmp_path: Path) -> None:
    table = pa.table({name: pa.array([1] * 100_000) for name in ("sex", "age", "city")})
    with pa.ipc.new_file(
        str(tmp_path / "t.arrow"), table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as file:
        file.write_table(table)
    assert "expands to more than" in refused(tmp_path / "t.arrow")
    book = openpyxl.Workbook()
    book.active.append(["sex", "age", "city"])
    for _ in range(3000):
        book.active.append(["F", 1, "Rome"])
    book.save(tmp_path / "t.xlsx")
    assert "expands to more than" in refused(tmp_path / "t.xlsx")


def test_a_batch_must_fit_in_memory(tmp_path: Path) -> None:
    table = pa.table({name: pa.array(["x" * 100] * 300_000) for name in ("sex", "age", "city")})
    with pa.ipc.new_file(
        str(tmp_path / "t.feather"), table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as file:
        file.write_table(table)
    with pytest.raises(ResourceError, match="smaller batches"):
        open_table(tmp_path / "t.feather", people(), memory_bytes=64 << 20)


def test_entities_that_expand_are_refused(tmp_path: Path) -> None:
    shared_excel(TABLE, tmp_path)
    lines = "".join(f'<!ENTITY a{level} "{f"&a{level - 1};" * 10}">' for level in range(1, 10))
    laughs = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a0 "ha">{lines}]><sst><si><t>&a9;</t></si></sst>'.encode()
    for part in ("xl/sharedStrings.xml", "xl/workbook.xml", "xl/worksheets/sheet1.xml", "xl/styles.xml"):
        with zipfile.ZipFile(tmp_path / "shared.xlsx") as old, zipfile.ZipFile(tmp_path / "bomb.xlsx", "w") as new:
            for name in old.namelist():
                new.writestr(name, laughs if name == part else old.read(name))
        refused(tmp_path / "bomb.xlsx")


def _damaged(name: str, data: bytes) -> bytes:
    return data[: len(data) * 2 // 3] if name != "excel" else data[: len(data) // 2]


@pytest.mark.parametrize("name", ["gz", "zst", "zip", "parquet in a zip", "arrow", "feather", "excel", "stata", "spss"])
def test_damage_is_found_before_anything_is_charged(name: str, tmp_path: Path) -> None:
    long = pa.concat_tables([TABLE] * 300)
    path = Path(str(CONTAINERS[name](long, tmp_path)))
    open_table(path, people())
    path.write_bytes(_damaged(name, path.read_bytes()))
    refused(path)


def test_a_zip_holds_one_table(tmp_path: Path) -> None:
    path = tmp_path / "t.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", CSV)
        archive.writestr("b.csv", CSV)
    assert "exactly one table, and holds 2 files" in refused(path)
    with zipfile.ZipFile(path, "w"):
        pass
    assert "holds no files" in refused(path)
    assert "inside a .zip file" in refused(as_zip(CSV, "t.xlsx", path))
    path.write_bytes(b"not a zip")
    assert "not a readable zip" in refused(path)


def test_an_encrypted_zip_is_refused(tmp_path: Path) -> None:
    data = bytearray(Path(as_zip(CSV, "t.csv", tmp_path / "t.zip")).read_bytes())
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "t.zip").write_bytes(data)
    assert "encrypted" in refused(tmp_path / "t.zip")


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    for name in ("t.xls", "t.parquet.gz", "t.gz", "t.xlsx.zst", "t.json", "t.rda"):
        (tmp_path / name).write_bytes(b"x")
        assert "is not known" in refused(tmp_path / name)


def test_sheets(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.title = "People of Köln"
    for row in (["sex", "age", "city"], ["F", "=1+1", "Rome"], [], ["M", 2, "Oslo", "more"]):
        book.active.append(row)
    book.create_sheet("Notes").append([SECRET])
    book.save(tmp_path / "t.xlsx")
    assert "sheets here: People of Köln, Notes" in refused(tmp_path / "t.xlsx")
    assert "has no sheet 'people'" in refused(f"{tmp_path}/t.xlsx::people")
    table = open_table(f"{tmp_path}/t.xlsx::People of Köln", people())
    ((rows, batch),) = table.batches(["sex", "age", "city"])
    assert rows == 2
    assert batch["age"].to_pylist() == [None, b"2"], "a formula that nobody computed has no value"


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = CONTAINERS["stata"](TABLE, tmp_path)
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(InputError, match=r"pip install 'understudy\[stats\]'"):
        open_table(path, people())


def test_text_that_does_not_fit_its_encoding_stops_nothing(tmp_path: Path) -> None:
    """The library alone fails on such a file."""
    path = Path(str(CONTAINERS["stata"](TABLE, tmp_path)))
    path.write_bytes(path.read_bytes().replace(b"Rome", b"\xff\xfe\xff\xfe"))
    ((_, batch),) = open_table(path, people()).batches(["city"])
    assert batch["city"].to_pylist() == [b"\xff\xfe\xff\xfe", SECRET.encode()]


def test_opening_reads_no_value(tmp_path: Path) -> None:
    """Two files of the same structure, one of which holds nothing that could be read, open alike."""
    for name in ("gz", "zst", "zip", "arrow", "json", "excel", "stata", "spss", "sas"):
        for word in ("Rome", "\x01\x02\x03\x04"):
            table = TABLE.set_column(2, "city", pa.array([word if name != "excel" else "????", "Oslo"]))
            open_table(CONTAINERS[name](table, tmp_path), people())
