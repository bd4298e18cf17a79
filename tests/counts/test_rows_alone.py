"""Whether something in a file is a row is decided by it alone, not by where it stands or what follows."""

import io
from pathlib import Path

import pandas as pd
import pyreadstat
import pytest

from understudy.counts import jsonlines, stats_files
from understudy.counts.files import container_of, file_batches


def rows_of(place: Path, *columns: str) -> int:
    return sum(rows for rows, _ in file_batches(container_of(place), columns, memory_bytes=1 << 27, threads=1))


@pytest.mark.parametrize("version", [5, 8])
def test_the_last_row_of_a_transport_file_does_not_decide_about_those_before(version: int, tmp_path: Path) -> None:
    found = []
    for last in ([], ["z"]):
        frame = pd.DataFrame({"a": ["x", "", "y", *[""] * 20, *last], "b": ["", "", "y", *[""] * 20, *last]})
        pyreadstat.write_xport(frame, tmp_path / "t.xpt", file_format_version=version)
        found.append([rows_of(tmp_path / "t.xpt", *columns) for columns in ((), ("a",), ("b",), ("b", "a"))])
    kept = 2 if version == 5 else 23
    assert found == [[kept] * 4, [kept + 1] * 4]


def test_blank_rows_of_a_transport_file_with_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats_files, "_MOST_VALUES", 4)  # two rows a piece
    frame = pd.DataFrame({"a": ["x", "", "", "b", "y"], "n": [1.0, None, 2.0, 3.0, 4.0]})
    pyreadstat.write_xport(frame, tmp_path / "t.xpt", file_format_version=5)
    assert rows_of(tmp_path / "t.xpt", "a") == 5
    data = (tmp_path / "t.xpt").read_bytes()
    place = data.rindex(b"bA")
    (tmp_path / "t.xpt").write_bytes(data[:place] + b" " * 9 + data[place + 9 :])
    assert rows_of(tmp_path / "t.xpt", "a") == rows_of(tmp_path / "t.xpt", "n") == 4


def test_blank_lines_count_by_their_length_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonlines, "_MOST_LINE", 8)
    monkeypatch.setattr(jsonlines, "_READ_BYTES", 8)
    for length, expected in ((0, 1), (8, 1), (9, 4), (15, 4), (17, 4), (40, 4)):
        for before in range(20):
            for end in (b"", b"\n"):
                data = b"\n" * before + b"{}\n" + b"\n".join([b" " * length] * 3) + end
                rows = sum(rows for rows, _ in jsonlines.json_batches(io.BytesIO(data), ["a"], {}))
                assert rows == expected, (length, before, end)
