"""Dialects are declared, or found from the header line alone."""

import gzip
import io
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import understudy as us
from tests.counts.malformed import SECRET
from tests.counts.places import full_counts, people
from understudy.codec.table import TableCodec
from understudy.counts import streams
from understudy.counts.files import container_of, file_batches, read_table
from understudy.counts.opening import open_table
from understudy.errors import InputError, UsageError
from understudy.schema import Category, Float, Schema, Unit
from understudy.schema.schema import Dialect, located, parted


def rows(location: object, columns: list[str]) -> list[tuple[object, ...]]:
    container = container_of(location)  # type: ignore[arg-type]
    found: list[tuple[object, ...]] = []
    for _, batch in file_batches(container, columns, memory_bytes=1 << 27, threads=1):
        found += zip(*(batch[name].cast("large_binary").to_pylist() for name in columns), strict=True)
    return found


@pytest.mark.parametrize(
    ("name", "header", "delimiter", "found"),
    [
        ("t.csv", b"a,b", ",", False),
        ("t.csv", b"a;b", ";", True),
        ("t.csv", b"a\tb", "\t", True),
        ("t.csv", b"a|b", "|", True),
        ("t.csv", b'"a,x";b', ";", True),
        ("t.csv", b"a;x,b", ",", False),
        ("t.csv", b"a", ",", False),
        ("t.tsv", b"a\tb,c", "\t", False),
        ("t.tsv", b"a,b", ",", True),
        ("t.txt", b"a\tb", "\t", True),
        ("t.txt", b"a", ",", True),
    ],
)
def test_the_header_line_shows_the_delimiter(
    tmp_path: Path, name: str, header: bytes, delimiter: str, found: bool
) -> None:
    (tmp_path / name).write_bytes(header + b"\n1;1;1|2|2\n")
    container = container_of(tmp_path / name)
    assert (container.delimiter, container.found) == (delimiter, found)


def test_what_could_be_two_is_asked_for(tmp_path: Path) -> None:
    for name, header in (("t.csv", "a;b|c"), ("t.txt", "a,b;c")):
        (tmp_path / name).write_text(f"{header}\n{SECRET}\n")
        with pytest.raises(InputError, match="Give delimiter=") as caught:
            container_of(tmp_path / name)
        assert SECRET not in str(caught.value)
        assert container_of(read_table(tmp_path / name, delimiter=";")).names == tuple(header.split(";"))


def test_rows_do_not_show_the_delimiter(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1;2\n3;4\n")
    assert container_of(tmp_path / "t.csv").delimiter == ","
    with pytest.raises(InputError, match="Give delimiter="):
        container_of(read_table(tmp_path / "t.txt", names=["a", "b"]) if _empty(tmp_path / "t.txt") else "")


def _empty(path: Path) -> bool:
    path.write_text("")
    return True


@pytest.mark.parametrize(
    ("encoding", "city"),
    [("latin-1", "Köln"), ("cp1252", "€uro"), ("utf-16", "Köln"), ("utf-16-be", "東京"), ("shift_jis", "東京|ソ")],
)
def test_text_in_another_encoding(tmp_path: Path, encoding: str, city: str) -> None:
    (tmp_path / "t.csv").write_bytes(f"größe,b\n{city},2\n".replace("größe", "g").encode(encoding))
    assert rows(read_table(tmp_path / "t.csv", encoding=encoding), ["g", "b"]) == [(city.encode(), b"2")]


def test_names_are_in_the_encoding_too(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("größe;b\n1;2\n".encode("cp1252"))
    assert container_of(read_table(tmp_path / "t.csv", encoding="cp1252")).names == ("größe", "b")


def test_invalid_bytes_make_their_value_unreadable_and_no_other(tmp_path: Path) -> None:
    lines = {
        "cp1252": b"a,b\nx\x81y,1\nz,2\n",
        "shift_jis": b"a,b\nx\x81,1\nz,2\n",
        "gb18030": b"a,b\nx\x81\x30\x81,1\nz,2\n",
        "utf-16": "a,b\nx\ud800,1\nz,2\n".encode("utf-16", "surrogatepass"),
    }
    for encoding, data in lines.items():
        (tmp_path / "t.csv").write_bytes(data)
        first, last = rows(read_table(tmp_path / "t.csv", encoding=encoding), ["a", "b"])
        with pytest.raises(UnicodeDecodeError):
            bytes(first[0]).decode()  # type: ignore[call-overload]
        assert last == (b"z", b"2"), encoding


def test_an_encoding_is_never_guessed(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("a,b\nKöln,1\n".encode("latin-1"))
    assert rows(tmp_path / "t.csv", ["a"]) == [(b"K\xf6ln",)]
    (tmp_path / "t.csv").write_bytes("a,b\nx,1\n".encode("utf-16"))
    with pytest.raises(InputError, match="give encoding="):
        container_of(tmp_path / "t.csv")


def test_a_file_without_names(tmp_path: Path) -> None:
    """Its first line is a row: it is never shown, and whatever it holds changes nothing."""
    for first in (SECRET.encode(), b"\xff\xfe\0", b"", b"\0;\0"):
        (tmp_path / "t.csv").write_bytes(b"F," + first + b",Rome\nM,2,Oslo\n")
        said = read_table(tmp_path / "t.csv", names=["sex", "age", "city"])
        assert sum(full_counts(open_table(said, people()).bind(TableCodec.of(people())))) == 2
    (tmp_path / "t.csv").write_bytes(b"")
    assert sum(full_counts(open_table(said, people()).bind(TableCodec.of(people())))) == 0


@pytest.mark.parametrize(
    "said",
    [
        {"delimiter": "ab"}, {"delimiter": "x"}, {"delimiter": '"'}, {"delimiter": "§"}, {"delimiter": ""},
        {"encoding": "nonsense"}, {"encoding": "utf-32"}, {"encoding": "utf-7"}, {"encoding": "rot13"},
        {"encoding": "iso2022_jp"}, {"encoding": "cp037"}, {"encoding": "idna"}, {"encoding": "raw_unicode_escape"},
        {"decimal": ";"}, {"decimal": ",", "delimiter": ","}, {"names": []}, {"names": ["a", "a"]}, {"names": "abc"},
        {"names": ["a", ""]}, {"most_bytes": 0}, {"most_bytes": "1"},
    ],
    ids=str,
)  # fmt: skip
def test_what_makes_no_sense_is_refused(said: dict[str, object]) -> None:
    with pytest.raises(UsageError) as caught:
        read_table("t.csv", **said)  # type: ignore[arg-type]
    assert caught.value.problem.where in said


def test_a_location_keeps_what_was_said() -> None:
    said = Dialect(";", "latin-1", ",", ("a b", "c,d", "e&f=g", "ü:"), True)
    assert parted(located("x y.csv", said, 5)) == ("x y.csv", said, 5)
    assert parted(located(located("x.csv", Dialect(";")), Dialect(encoding="cp1252")))[1] == Dialect(";", "cp1252")
    assert located("x.csv", Dialect()) == "x.csv"
    assert us.read_table("x.csv::multiline", delimiter="pipe") == "x.csv::multiline::delimiter=%7C"


def test_only_text_has_a_dialect(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"x")
    with pytest.raises(InputError, match="delimiter= cannot be declared"):
        container_of(read_table(tmp_path / "t.parquet", delimiter=";"))


def test_what_is_said_wins_over_the_schema(tmp_path: Path) -> None:
    schema = replace(people(), file=Dialect(delimiter=";"))
    (tmp_path / "t.csv").write_text("sex|age|city\nF|1|Rome\n")
    with pytest.raises(InputError, match="names none of"):
        open_table(tmp_path / "t.csv", schema)
    assert open_table(read_table(tmp_path / "t.csv", delimiter="|"), schema).undeclared == ()


def test_a_long_line_does_not_change_how_the_next_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of any length give the same text, in an encoding of several bytes."""
    text = "a,b\n" + "東" * 40 + ",1\n京,2\n" + "ソ" * 7 + ",3\n"
    (tmp_path / "t.csv").write_bytes(text.encode("shift_jis"))
    expected = [tuple(part.encode() for part in line.split(",")) for line in text.splitlines()[1:]]
    for size in (1, 2, 3, 7, 30, 1000):
        stream = streams._Transcoded(io.BytesIO((tmp_path / "t.csv").read_bytes()), "shift_jis")
        whole = b""
        while piece := stream.read(size):
            whole += piece
        assert whole.decode() == text
    assert rows(read_table(tmp_path / "t.csv", encoding="shift_jis"), ["a", "b"]) == expected
    monkeypatch.setattr(streams, "_LONGEST_LINE", 20)
    long = streams._Transcoded(io.BytesIO(("x" * 100 + "\n京\n").encode("shift_jis")), "shift_jis")
    assert b"".join(iter(lambda: long.read(7), b"")).endswith("\n京\n".encode())


def test_declared_names_stand_for_those_of_a_header(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,a\n1,2,3\n")
    renamed = read_table(path, names=["x", "y", "z"], header=True)
    assert container_of(renamed).names == ("x", "y", "z")
    assert rows(renamed, ["z", "x"]) == [(b"3", b"1")]
    assert len(rows(read_table(path, names=["x", "y", "z"]), ["x"])) == 2
    with pytest.raises(InputError, match="has 3 names, and names= lists 2"):
        container_of(read_table(path, names=["x", "y"], header=True))
    with pytest.raises(UsageError, match="header is false, so names"):
        read_table(path, header=False)


@pytest.mark.parametrize("name", ["t.data", "t.dat", "t.asc.gz"])
def test_a_declared_delimiter_makes_any_file_text(tmp_path: Path, name: str) -> None:
    text = b"a b\n1 2\n"
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    with pytest.raises(InputError, match="Other text files need delimiter="):
        container_of(tmp_path / name)
    assert rows(read_table(tmp_path / name, delimiter="space"), ["b"]) == [(b"2",)]
    assert container_of(tmp_path / name, Dialect(delimiter=" ")).names == ("a", "b")


@pytest.mark.parametrize("first", ['{"city": "Rome"}', '{"age": 3, "city": "Rome"}', "no object", "[1]", "{"])
def test_the_first_line_of_json_decides_nothing_under_a_schema(tmp_path: Path, first: str) -> None:
    """It is a row: whether it lacks a key, or is no object at all, must not show before the charge."""
    path = tmp_path / "t.jsonl"
    path.write_text(f'{first}\n{{"age": 4, "city": "Bern", "id": "x"}}\n')
    schema = people()
    table = open_table(path, schema)
    assert table.undeclared == ()
    assert sum(count for count, _ in table.batches(["age", "city"])) == 2


BROKEN_ENDS = [
    *(("euc_jp", tail) for tail in (b"\x8f", b"\xa4")),
    *((encoding, tail) for encoding in ("gb18030", "gbk") for tail in (b"\x810", b"\x81")),
    *((encoding, b"\xa4\xd4") for encoding in ("euc_kr", "cp949")),
    *((encoding, b"\x8f") for encoding in ("shift_jis", "euc_jis_2004", "euc_jisx0213", "big5", "utf-8", "cp1252")),
]


@pytest.mark.parametrize(("encoding", "tail"), BROKEN_ENDS)
def test_what_is_broken_before_a_line_end_leaves_the_next_line_alone(
    tmp_path: Path, encoding: str, tail: bytes
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,c\n1,x\n9," + tail + b"\n2,y\r\n3," + tail)
    assert [row[0] for row in rows(read_table(path, encoding=encoding), ["a", "c"])] == [b"1", b"9", b"2", b"3"]


def units_counted(location: object) -> int:
    """How many rows count if everybody has one."""
    schema = Schema((Category(name="c", labels=("x", "y")),), Unit("id", 1))
    table = open_table(location, schema)
    codec = TableCodec.of(schema)
    (counts,) = table.bind(codec).counts([codec.domain.clique(["c"])]).values()
    return int(np.sum(counts))


@pytest.mark.parametrize("encoding", ["cp1252", "shift_jis", "cp949", "euc_jp", "utf-8"])
def test_ids_that_cannot_be_decoded_stay_different(tmp_path: Path, encoding: str) -> None:
    """Two people in one unit would let the rows of one decide which of the other's count."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"id,c\nM\x81,x\nM\x8d,x\nM\x8f,x\nM\x8f,x\n")
    assert units_counted(read_table(path, encoding=encoding)) == 3


def test_ids_that_a_container_cannot_read_are_none(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"id":[1],"c":"x"}\n{"id":{"k":2},"c":"x"}\nbroken\n{"id":"7","c":"y"}\n')
    assert units_counted(path) == 1


def test_a_decimal_that_groups_thousands_elsewhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("wage;n\n1,5;1\n")
    schema = Schema((Float(name="wage", lower=0.0, upper=9.0, thousands=","),), Unit())
    with pytest.raises(UsageError, match="decimal is ',', which separates thousands in column 'wage'"):
        open_table(read_table(path, decimal=","), schema)


@pytest.mark.parametrize("encoding", ["gb18030", "shift_jis"])
def test_long_lines_of_another_encoding_are_read_in_large_pieces(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,c\n5,y" + b"q" * (4 << 20) + b"\n1," + b"z" * (5 << 20) + b"\n2,x\n")
    with mock.patch.object(streams._Transcoded, "_next", autospec=True, side_effect=streams._Transcoded._next) as step:
        assert len(rows(read_table(path, encoding=encoding), ["a"])) == 3
    assert step.call_count < 60


def test_bytes_that_are_not_utf8_spoil_their_own_value_of_a_line_of_json(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"id":"M\xfcller","c":"x"}\n{"id":"B\xf6hm","c":"x"}\n{"id":"J\xe4ger","c":"\xff"}\n')
    assert units_counted(path) == 3
    location = located(str(path), Dialect(names=("id", "c")))
    assert [row[1] for row in rows(location, ["id", "c"])][:2] == [b"x", b"x"]


def test_half_a_character_of_utf16_is_damage(tmp_path: Path) -> None:
    """Behind it every line would be read one byte off: one line would change all rows after it."""
    schema = Schema((Category(name="c", labels=("x", "y")),), Unit())
    whole = "c\nx\ny\n".encode("utf-16-le")
    for name, packed in (("t.csv", bytes), ("t.csv.gz", gzip.compress)):
        path = tmp_path / name
        path.write_bytes(packed(whole))
        open_table(read_table(path, encoding="utf-16-le"), schema)
        path.write_bytes(packed(whole[:4] + b"\x00" + whole[4:]))
        with pytest.raises(InputError, match="odd number of bytes"):
            open_table(read_table(path, encoding="utf-16-le"), schema)
