"""Labels that a spreadsheet would run come out as text; everything else stays as it was."""

from pathlib import Path

import pyarrow as pa
import pytest

from understudy.errors import UsageError
from understudy.release.release import check_safe, safe_rows, safe_schema, safe_table

PAYLOADS = [
    *("=1+1", "=cmd|' /C calc'!A0", '=HYPERLINK("http://x")', "+1", "+cmd", "-1+1", "-2", "@SUM(1)", "@x", "\t=1"),
    *("\r=1", "\n=1", "=", "+", "-", "@", "＝1", "＋1", "－1", "＠1"),
]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_payloads_become_text(kind: pa.DataType) -> None:
    made = safe_table(pa.table({"label": pa.array(PAYLOADS, kind)}))
    assert made["label"].to_pylist() == [f"'{payload}" for payload in PAYLOADS]
    assert made["label"].type == kind


def test_harmless_text_and_numbers_are_untouched() -> None:
    table = pa.table({"text": ["a=b", "1-2", "", None, "'=x", "é"], "number": [-1.5, 2.0, None, 0.0, -0.0, 1e9]})
    assert safe_table(table).equals(table)


def test_column_names_are_made_safe() -> None:
    table = pa.table({"=name": [-1], "plain": ["x"]})
    assert safe_table(table).column_names == ["'=name", "plain"]
    assert safe_schema(table.schema).names == ["'=name", "plain"]


def test_rows_are_made_safe_only_on_demand() -> None:
    table = pa.table({"=name": ["=1"]})
    schema, pieces = safe_rows(table.schema, [table], excel_safe=False)
    assert schema.names == ["=name"]
    assert [piece["=name"].to_pylist() for piece in pieces] == [["=1"]]
    schema, pieces = safe_rows(table.schema, [table], excel_safe=True)
    assert schema.names == ["'=name"]
    assert [piece["'=name"].to_pylist() for piece in pieces] == [["'=1"]]


def test_only_text_files_can_be_made_safe() -> None:
    for name in ("rows.csv", "rows.TSV"):
        check_safe(Path(name), excel_safe=True)
    check_safe(Path("rows.parquet"), excel_safe=False)
    with pytest.raises(UsageError, match="csv and"):
        check_safe(Path("rows.parquet"), excel_safe=True)
