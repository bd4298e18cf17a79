"""Workbooks and Arrow files of synthetic rows: the same rows, text that stays text, and limits known in advance."""

import datetime as dt
import sys
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from understudy.errors import UsageError
from understudy.release import frames
from understudy.release.frames import require_writer, write_workbook
from understudy.release.release import Release, write_rows


def _cells(path: Path) -> list[tuple[object, ...]]:
    return [tuple(row) for row in openpyxl.load_workbook(path).active.iter_rows(values_only=True)]


def _written(tmp_path: Path, **columns: pa.Array) -> list[tuple[object, ...]]:
    table = pa.table(columns)
    write_workbook(tmp_path / "x.xlsx", table.schema, [table], {})
    return _cells(tmp_path / "x.xlsx")


@pytest.mark.parametrize("suffix", ["arrow", "feather"])
def test_arrow_files_hold_the_same_rows_and_say_what_they_are(
    full_release: Release, tmp_path: Path, suffix: str
) -> None:
    full_release.sample_to(tmp_path / f"x.{suffix}", 300, seed=4)
    full_release.sample_to(tmp_path / "x.parquet", 300, seed=4)
    found = feather.read_table(tmp_path / f"x.{suffix}")
    assert found.equals(pq.read_table(tmp_path / "x.parquet"))
    assert found.schema.metadata[b"understudy.synthetic"] == b"true"


def test_a_workbook_holds_the_same_rows(full_release: Release, tmp_path: Path) -> None:
    full_release.sample_to(tmp_path / "x.xlsx", 300, seed=4)
    full_release.sample_to(tmp_path / "x.parquet", 300, seed=4)
    names, *rows = _cells(tmp_path / "x.xlsx")
    assert names == tuple(full_release.codec.arrow_schema.names)
    expected = pq.read_table(tmp_path / "x.parquet").to_pylist()
    moments = [tuple(_midnight(row[name]) for name in names) for row in expected]
    assert rows == moments
    about = openpyxl.load_workbook(tmp_path / "x.xlsx").properties
    assert "understudy.epsilon" in about.description


def _midnight(value: object) -> object:
    """Workbooks know moments only."""
    return dt.datetime(value.year, value.month, value.day) if type(value) is dt.date else value


def test_text_never_becomes_a_formula(tmp_path: Path) -> None:
    write_workbook(
        tmp_path / "x.xlsx", pa.schema([("=A1", pa.string())]), [pa.table({"=A1": ["=1+1", "#N/A", "no"]})], {}
    )
    sheet = openpyxl.load_workbook(tmp_path / "x.xlsx").active
    assert [cell.data_type for row in sheet.iter_rows() for cell in row] == ["s", "s", "s", "s"]
    assert [cell.value for row in sheet.iter_rows() for cell in row] == ["=A1", "=1+1", "#N/A", "no"]


def test_what_a_workbook_would_change_is_text(tmp_path: Path) -> None:
    rows = _written(
        tmp_path,
        number=pa.array([2**53 + 1, 7]),
        day=pa.array([dt.date(1899, 12, 31), dt.date(1950, 1, 2)]),
        moment=pa.array([dt.datetime(1850, 1, 1, 3), dt.datetime(2020, 1, 1, 12)], pa.timestamp("us", "Europe/Rome")),
        time=pa.array([dt.time(3, 4, 5), None]),
    )
    assert rows[1][:2] == ("9007199254740993", "1899-12-31")
    assert str(rows[1][2]).startswith("1850-01-01T")
    assert rows[1][3] == dt.time(3, 4, 5)
    assert rows[2] == (7, dt.datetime(1950, 1, 2), dt.datetime(2020, 1, 1, 13), None)


def test_limits_of_a_sheet_are_known_in_advance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_writer(".xlsx", ["a"], 2**20 - 1)
    for names, rows in ((["a"], 2**20), ([f"c{place}" for place in range(2**14 + 1)], 1)):
        with pytest.raises(UsageError, match="at most"):
            require_writer(".xlsx", names, rows)
    monkeypatch.setattr(frames, "WORKBOOK_ROWS", 3)
    with pytest.raises(UsageError, match="at most"):
        _written(tmp_path, a=pa.array([1, 2, 3]))


@pytest.mark.parametrize("label", ["a\x00b", "x" * 40_000])
def test_labels_without_a_place_in_a_sheet_are_refused(label: str, tmp_path: Path) -> None:
    table = pa.table({"a": [label]})
    with pytest.raises(UsageError, match="label"):
        write_rows(tmp_path / "x.xlsx", table.schema, [table], {})
    assert list(tmp_path.iterdir()) == []


def test_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, plain_release: Release) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(UsageError, match=r"understudy\[excel\]"):
        plain_release.sample_to("x.xlsx", 5)
