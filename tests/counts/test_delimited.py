import csv
import io
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.counts import delimited
from understudy.counts.delimited import delimited_batches, delimited_header

Row = tuple[str | bytes | None, ...]


def shown(texts: pa.Array) -> list[str | bytes | None]:
    """Text where it is UTF-8, else its bytes."""
    found: list[str | bytes | None] = []
    for raw in texts.cast(pa.large_binary()).to_pylist():
        try:
            found.append(None if raw is None else raw.decode())
        except UnicodeDecodeError:
            found.append(raw)
    return found


def read(path: Path, data: bytes, delimiter: str = ",", *, multiline: bool = False) -> tuple[list[str], list[Row]]:
    path.write_bytes(data)
    with path.open("rb") as stream:
        header = delimited_header(stream, delimiter, multiline=multiline)
    wanted = list(dict.fromkeys(header))
    rows: list[Row] = []
    with path.open("rb") as stream:
        for count, columns in delimited_batches(stream, delimiter, header, wanted, multiline=multiline):
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
        (b'a,b\n"1,1","x\ny"\n', [("1,1", '"x'), ('y"', None)]),
        (b'a,b\n"1,1","x\ry"\r\n', [("1,1", '"x'), ('y"', None)]),
        (b'a,b\n"x","y"\r\n', [("x", "y")]),
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
def test_records(tmp_path: Path, data: bytes, rows: list[Row]) -> None:
    assert read(tmp_path / "t.csv", data) == (["a", "b"], rows)


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        (b'a,b\n"1,1","x\ny"\n3,4\n', [("1,1", "x\ny"), ("3", "4")]),
        (b'a,b\n"1\r\n\r\n2","x ""y""\n"\n3,4\n', [("1\r\n\r\n2", 'x "y"\n'), ("3", "4")]),
        (b'a,b\n"1\n2\n3",4', [("1\n2\n3", "4")]),
        # The joined record would have one field, or three: then each line stands for itself.
        (b'a,b\n"1,x\n3"\n', [('"1', "x"), ('3"', None)]),
        (b'a,b\n1,"x\n3",4\n5,6\n', [("1", '"x'), ('3"', "4"), ("5", "6")]),
        # The quote that would close is followed by text, or there is none.
        (b'a,b\n1,"x\n3"y\n5,6\n', [("1", '"x'), ('3"y', None), ("5", "6")]),
        (b'a,b\n1,"x\n3,4\n', [("1", '"x'), ("3", "4")]),
    ],
)
def test_records_of_the_dialect_whose_fields_hold_line_ends(tmp_path: Path, data: bytes, rows: list[Row]) -> None:
    assert read(tmp_path / "t.csv", data, multiline=True) == (["a", "b"], rows)


def test_headers(tmp_path: Path) -> None:
    data = b'"a ""x""","b\nc",\n1,2,3\n'
    assert read(tmp_path / "t.csv", data, multiline=True) == (['a "x"', "b\nc", ""], [("1", "2", "3")])
    assert read(tmp_path / "t.csv", data)[0] == ['a "x"', '"b']
    assert read(tmp_path / "t.csv", b'"a,b\n1,2\n"3,4"\n')[0] == ['"a', "b"]
    assert read(tmp_path / "t.csv", b"")[0] == []
    assert read(tmp_path / "t.csv", b"\n\n")[0] == []
    assert read(tmp_path / "t.tsv", b"a,b\tc\n1,2\t3\n", "\t") == (["a,b", "c"], [("1,2", "3")])


def test_no_columns_still_counts_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,2\n\n3\n")
    with path.open("rb") as stream:
        assert [count for count, _ in delimited_batches(stream, ",", ["a", "b"], [])] == [2]


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
        found = read(tmp_path_factory.getbasetemp() / "written.csv", stream.getvalue().encode(), multiline=True)
    assert found == (["a", "b"], [(first or None, second or None) for first, second in rows])


@settings(max_examples=150, deadline=None)
@given(
    data=st.lists(st.sampled_from([b'"', b",", b"\n", b"\r", b"x", b"\xff", b"\0", b'""', b'"\n'])),
    block=st.integers(1, 9),
    multiline=st.booleans(),
)
def test_any_bytes_are_read_alike_in_any_block_size(
    tmp_path_factory: pytest.TempPathFactory, data: list[bytes], block: int, multiline: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    whole = read(path, b"a,b\n" + b"".join(data), multiline=multiline)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "READ_BYTES", block)
        assert read(path, b"a,b\n" + b"".join(data), multiline=multiline) == whole
    assert len(whole[1]) <= b"".join(data).count(b"\n") + b"".join(data).count(b"\r") + 1


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_line_is_read_alike_wherever_it_lies(tmp_path: Path, end: bytes) -> None:
    """Bytes are looked at 64 at a time: every mark comes to lie on either side of where one look ends."""
    path = tmp_path / "moved.csv"
    lines = [b'"x,y",z', b'x,"say ""hi"""', b'"open,1', b'a"b,c"', b"1", b",", b'"",2', b'"q"r,"s', b"y" * 70 + b",2",
             b'"' + b"y," * 40 + b'",3', b"1,2,3"]  # fmt: skip
    alone = [row for line in lines for row in read(path, b"a,b\n" + line)[1]]
    assert len(alone) == len(lines)
    for before in range(66):
        moved = read(path, b"a,b\n" + end.join([b"m" * before + b",0", *lines]))[1]
        assert moved == [("m" * before or None, "0"), *alone]


PIECES = st.lists(st.sampled_from(['"', '""', ",", "\t", "x", "y", " ", "\0", "é", "6'2\""]), max_size=8)
LINES = st.lists(PIECES.map("".join), max_size=12)


@settings(max_examples=300, deadline=None)
@given(lines=LINES, added=PIECES.map("".join), data=st.data(), end=st.sampled_from(["\n", "\r", "\r\n"]))
@pytest.mark.parametrize(("header", "delimiter"), [("a", ","), ("a,b", ","), ("a,b,c", ","), ("a\tb\tc", "\t")])
def test_one_more_line_is_one_more_row_and_changes_no_other(
    tmp_path_factory: pytest.TempPathFactory,
    header: str,
    delimiter: str,
    lines: list[str],
    added: str,
    data: st.DataObject,
    end: str,
) -> None:
    """The sensitivity of the reader: whatever the lines hold, the rows of both files differ by that line's row."""
    path = tmp_path_factory.getbasetemp() / "one-more.csv"
    place = data.draw(st.integers(0, len(lines)))
    longer = [*lines[:place], added, *lines[place:]]

    def rows(chosen: list[str]) -> Counter[Row]:
        return Counter(read(path, end.join([header, *chosen]).encode(), delimiter)[1])

    alone = rows([added])
    assert alone.total() == (1 if added else 0)
    assert rows(longer) == rows(lines) + alone


RECORDS = st.tuples(*[st.text(st.sampled_from('",\n\rx'), max_size=6)] * 3)


@settings(max_examples=200, deadline=None)
@given(rows=st.lists(RECORDS, max_size=8), added=RECORDS, data=st.data())
def test_one_more_written_record_is_one_more_row_in_the_dialect_with_line_ends(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str, str]],
    added: tuple[str, str, str],
    data: st.DataObject,
) -> None:
    place = data.draw(st.integers(0, len(rows)))
    path = tmp_path_factory.getbasetemp() / "one-more-record.csv"

    def found(records: list[tuple[str, str, str]]) -> Counter[Row]:
        stream = io.StringIO()
        csv.writer(stream).writerows([("a", "b", "c"), *records])
        return Counter(read(path, stream.getvalue().encode(), multiline=True)[1])

    assert found([*rows[:place], added, *rows[place:]]) == found(rows) + found([added])
    assert found([added]).total() == 1


@pytest.mark.parametrize(("suffix", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_an_opening_quote_takes_no_other_line_with_it(suffix: str, delimiter: str, tmp_path: Path) -> None:
    lines = [f"n{number},170,Rome" for number in range(5000)]
    lines[4000] = "x,6'2\",Oslo"
    hostile = [*lines[:10], '"x,170,Bern', *lines[10:]]
    for chosen in (lines, hostile):
        text = "\n".join(["name,height,city", *chosen]).replace(",", delimiter)
        assert len(read(tmp_path / f"t.{suffix}", text.encode(), delimiter)[1]) == len(chosen)


def test_the_dialect_with_line_ends_lets_a_quote_reach_one_mebibyte_and_no_further(tmp_path: Path) -> None:
    within, beyond = 1000, delimited.MOST_QUOTED // 4 + 1
    for lines, rows in ((within, 1), (beyond, beyond + 2)):
        data = b'a,b\n1,"abc\n' + b"3,4\n" * lines + b'x"\n'
        assert len(read(tmp_path / "t.csv", data, multiline=True)[1]) == rows
        assert len(read(tmp_path / "t.csv", data)[1]) == lines + 2


def test_a_record_without_end_is_cut_and_the_next_line_is_read(tmp_path: Path) -> None:
    long = b"x" * (delimited.MOST_RECORD + delimited.READ_BYTES)
    found = read(tmp_path / "t.csv", b"a,b\n1," + long + b",9\n3,4\n")[1]
    assert [row[0] for row in found] == ["1", "3"]
    assert found[0] == ("1", None)  # two long ids could differ in what was cut off, so neither is taken for one
    assert found[1] == ("3", "4")
