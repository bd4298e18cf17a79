"""Cells of a workbook, whatever stands in its XML."""

import datetime as dt
import zipfile
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy.codec.reading import canonical_text
from understudy.counts.excel import _is_date_style
from understudy.counts.files import container_of, file_batches
from understudy.counts.streams import UNREADABLE

BOOK = '<workbook xmlns="m" xmlns:r="r"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>'
LINKS = '<Relationships><Relationship Id="r1" Target="worksheets/sheet1.xml"/></Relationships>'


def texts_of(place: Path, name: str) -> list[object]:
    batches = file_batches(container_of(place), [name], memory_bytes=1 << 27, threads=1)
    return [value for _, batch in batches for value in canonical_text(batch[name]).cast(pa.binary()).to_pylist()]


def book(place: Path, *cells: str, shared: tuple[str, ...] = (), code: str = "General") -> Path:
    """A workbook of one column `a`; style 1 has the format code."""
    rows = "".join(f"<row>{cell}</row>" for cell in ('<c t="inlineStr"><is><t>a</t></is></c>', *cells))
    styles = f'<numFmts><numFmt numFmtId="164" formatCode="{code}"/></numFmts>'
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", BOOK)
        archive.writestr("xl/_rels/workbook.xml.rels", LINKS)
        archive.writestr("xl/sharedStrings.xml", f"<sst>{''.join(f'<si><t>{text}</t></si>' for text in shared)}</sst>")
        xfs = '<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/></cellXfs>'
        archive.writestr("xl/styles.xml", f"<styleSheet>{styles}{xfs}</styleSheet>")
        archive.writestr("xl/worksheets/sheet1.xml", f"<worksheet><sheetData>{rows}</sheetData></worksheet>")
    return place


@pytest.mark.parametrize(
    "cell",
    [
        f'<c s="{"9" * 5000}"><v>7</v></c>',
        '<c s="x"><v>7</v></c>',
        f'<c t="s"><v>{"9" * 5000}</v></c>',
        f"<c><v>{'9' * 5000}</v></c>",
    ],
)
def test_a_number_that_is_too_long_spoils_its_cell_alone(cell: str, tmp_path: Path) -> None:
    place = book(tmp_path / "t.xlsx", "<c><v>1</v></c>", cell, "<c><v>2</v></c>")
    assert texts_of(place, "a") == [b"1", UNREADABLE, b"2"]


def test_a_place_with_many_digits_does_not_stop_the_reading(tmp_path: Path) -> None:
    place = book(tmp_path / "t.xlsx", f'<c r="A{"9" * 5000}"><v>1</v></c>', "<c><v>2</v></c>")
    assert texts_of(place, "a") == [b"1", b"2"]


def test_cells_and_formats_of_a_mebibyte_are_read_in_linear_work(tmp_path: Path) -> None:
    # In quadratic work either would take hours.
    size = (1 << 20) - 1
    place = book(tmp_path / "t.xlsx", f"<c><v>{'1' * size}x</v></c>", '<c s="1"><v>2</v></c>', code="[" * size)
    assert texts_of(place, "a") == [UNREADABLE, b"2"]


@pytest.mark.parametrize(("code", "dates"), [("yyyy" + " " * 251, True), ("yyyy" + " " * 252, False)])
def test_a_format_code_longer_than_excel_allows_shows_no_date(code: str, dates: bool) -> None:
    assert _is_date_style(code) == dates


@pytest.mark.parametrize("iso", [False, True])
def test_moments_have_the_text_of_other_sources(iso: bool, tmp_path: Path) -> None:
    moments = [dt.datetime(2020, 12, 31, 18), dt.datetime(2020, 12, 31, 18, 0, 0, 500_000)]
    pq.write_table(pa.table({"a": moments}), tmp_path / "t.parquet")
    made = openpyxl.Workbook(iso_dates=iso) if iso else openpyxl.Workbook()
    sheet = made.active
    assert sheet is not None
    for value in ("a", *moments):
        sheet.append([value])
    made.save(tmp_path / "t.xlsx")
    assert texts_of(tmp_path / "t.xlsx", "a") == texts_of(tmp_path / "t.parquet", "a")
    assert texts_of(tmp_path / "t.xlsx", "a")[0] == b"2020-12-31 18:00:00"


def test_characters_written_by_their_number(tmp_path: Path) -> None:
    inline = '<c t="inlineStr"><is><t>x_x0009_y</t></is></c>'
    cells = (*(f'<c t="s"><v>{place}</v></c>' for place in range(4)), inline, '<c t="str"><v>_x0041_</v></c>')
    shared = ("a_x000A_b", "_x005F_x000A_", "_xD83D__xDE00_", "_x00G0_")
    place = book(tmp_path / "t.xlsx", *cells, shared=shared)
    assert texts_of(place, "a") == [b"a\nb", b"_x000A_", "😀".encode(), b"_x00G0_", b"x\ty", b"A"]
