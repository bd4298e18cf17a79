import csv
import io
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.counts import delimited
from understudy.counts.delimited import delimited_batches, delimited_header


def shown(texts: pa.Array) -> list[str | bytes | None]:
    """Text where it is UTF-8, else its bytes."""
    found: list[str | bytes | None] = []
    for raw in texts.cast(pa.large_binary()).to_pylist():
        try:
            found.append(None if raw is None else raw.decode())
        except UnicodeDecodeError:
            found.append(raw)
    return found


def read(path: Path, data: bytes, delimiter: str = ",") -> tuple[list[str], list[tuple[str | bytes | None, ...]]]:
    path.write_bytes(data)
    header = delimited_header(path, delimiter)
    wanted = list(dict.fromkeys(header))
    rows: list[tuple[str | bytes | None, ...]] = []
    for count, columns in delimited_batches(path, delimiter, header, wanted):
        found = list(zip(*(shown(columns[name]) for name in wanted), strict=True))
        assert len(found) == count
        rows += found
    return header, rows


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        (b"a,b\n1,2\n3,4\n", [("1", "2"), ("3", "4")]),
        (b"a,b\n1,2\n3,4", [("1", "2"), ("3", "4")]),
        (b"a,b\r\n1,2\n3,4\r5,6\r\n", [("1", "2"), ("3", "4"), ("5", "6")]),
        (b"\xef\xbb\xbfa,b\n1,2\n", [("1", "2")]),
        (b"a,b\n\n\r\n1,2\n\n", [("1", "2")]),
        (b"a,b\n1\n1,2,3\n,\n,,,,\n", [("1", None), ("1", "2"), (None, None), (None, None)]),
        (b'a,b\n"1,1","x\ny"\n', [("1,1", "x\ny")]),
        (b'a,b\n"say ""hi""",""""\n', [('say "hi"', '"')]),
        (b'a,b\n"",2\n', [(None, "2")]),
        (b'a,b\n1,ab"c\n', [("1", 'ab"c')]),
        (b'a,b\n1,"abc\n3,4\n', [("1", '"abc'), ("3", "4")]),
        (b'a,b\n1,"abc\n3,"x"\n', [("1", '"abc'), ("3", "x")]),
        (b'a,b\n1,"4"x\n5,6\n', [("1", '"4"x'), ("5", "6")]),
        (b'a,b\n1,"', [("1", '"')]),
        (b'a,b\n1,"x"', [("1", "x")]),
        (b"a,b\n1,x\x00y\n", [("1", "x\x00y")]),
        (b"a,b\n1,\xe9t\xe9\n2,\xc3\xa9\n", [("1", b"\xe9t\xe9"), ("2", "é")]),
        (b"a,b\n \t1 ,2\n", [(" \t1 ", "2")]),
        (b"a,b\n", []),
        (b"a,b", []),
    ],
)
def test_records(tmp_path: Path, data: bytes, rows: list[tuple[str | bytes | None, ...]]) -> None:
    assert read(tmp_path / "t.csv", data) == (["a", "b"], rows)


def test_headers(tmp_path: Path) -> None:
    assert read(tmp_path / "t.csv", b'"a ""x""","b\nc",\n1,2,3\n') == (['a "x"', "b\nc", ""], [("1", "2", "3")])
    assert read(tmp_path / "t.csv", b"")[0] == []
    assert read(tmp_path / "t.csv", b"\n\n")[0] == []
    assert read(tmp_path / "t.tsv", b"a,b\tc\n1,2\t3\n", "\t") == (["a,b", "c"], [("1,2", "3")])


def test_no_columns_still_counts_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,2\n\n3\n")
    assert [count for count, _ in delimited_batches(path, ",", ["a", "b"], [])] == [2]


FIELDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@settings(max_examples=80, deadline=None)
@given(rows=st.lists(st.tuples(FIELDS, FIELDS), max_size=20), block=st.integers(1, 64))
def test_what_a_writer_quotes_comes_back_whatever_the_block_size(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], block: int
) -> None:
    stream = io.StringIO()
    csv.writer(stream, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "READ_BYTES", block)
        patch.setattr(delimited, "MOST_ROWS", 3)
        found = read(tmp_path_factory.getbasetemp() / "written.csv", stream.getvalue().encode())
    assert found == (["a", "b"], [(first or None, second or None) for first, second in rows])


@settings(max_examples=150, deadline=None)
@given(
    data=st.lists(st.sampled_from([b'"', b",", b"\n", b"\r", b"x", b"\xff", b"\0", b'""', b'"\n'])),
    block=st.integers(1, 9),
)
def test_any_bytes_are_read_alike_in_any_block_size(
    tmp_path_factory: pytest.TempPathFactory, data: list[bytes], block: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    whole = read(path, b"a,b\n" + b"".join(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "READ_BYTES", block)
        assert read(path, b"a,b\n" + b"".join(data)) == whole
    assert len(whole[1]) <= b"".join(data).count(b"\n") + b"".join(data).count(b"\r") + 1


def test_a_stray_quote_spoils_no_more_than_its_reach(tmp_path: Path) -> None:
    rows = b"3,4\n" * 600_000
    found = read(tmp_path / "t.csv", b'a,b\n1,"abc\n' + rows)[1]
    assert len(found) == 600_001
    assert found[0] == ("1", '"abc')


def test_a_record_without_end_is_cut_and_the_next_line_is_read(tmp_path: Path) -> None:
    long = b"x" * (delimited.MOST_RECORD + delimited.READ_BYTES)
    found = read(tmp_path / "t.csv", b"a,b\n1," + long + b",9\n3,4\n")[1]
    assert [row[0] for row in found] == ["1", "3"]
    assert len(found[0][1] or "") == delimited.MOST_RECORD - 2
    assert found[1] == ("3", "4")
