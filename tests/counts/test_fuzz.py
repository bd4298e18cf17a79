"""Mutated files end in our own errors, and what cells hold decides nothing."""

import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.cli.terminal import run
from tests.counts.containers import CONTAINERS, excel
from tests.counts.fuzz import ROWS, SCHEMA, mutated, outcome, seeds, tried
from understudy.errors import SchemaError
from understudy.schema import Schema
from understudy.schema.yaml_text import schema_to_text

ENDINGS = {"read", "InputError", "SchemaError", "ResourceError", "UsageError"}
HOSTILE = (
    "\0", "\x1b[31m", "=1+1", '"', "'", "\u202e", "é" * 300, "NaN", "1e999", "-" * 50, "{", "[[", "&lt;", "<v>",
    "9" * 400, "1900-02-29", "99999-01-01", "\ufeff", "€ 12", " ", "true", "\ud800",
)  # fmt: skip


def test_mutated_files(tmp_path: Path) -> None:
    found = list(tried(2000, 20260101, tmp_path))
    assert {ending for _, ending in found} <= ENDINGS
    assert {name for name, ending in found if ending == "read"} >= {"csv", "excel", "json", "zip", "stata", "spss"}


@pytest.mark.slow
def test_many_mutated_files(tmp_path: Path) -> None:
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    endings = {ending for _, ending in tried(100_000, seed, tmp_path)}
    assert endings <= ENDINGS, seed


def test_mutated_files_on_the_command_line(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    schema = tmp_path / "schema.yaml"
    schema.write_text(schema_to_text(SCHEMA), encoding="utf-8")
    for name, (location, data) in seeds(tmp_path).items():
        for number in range(4):
            place = tmp_path / f"mutated-{number}"
            suffixes = "".join(Path(location.partition("::")[0]).suffixes)
            Path(f"{place}{suffixes}").write_bytes(mutated(data, rng))
            shown = run("schema", "check", schema, location.format(place=place))
            assert shown.status in (0, 2), name
            assert "Traceback" not in shown.err + shown.out, name
            assert "Internal" not in shown.words, name


def _hostile(rng: np.random.Generator) -> pa.Table:
    """The same number of rows, with whatever may stand in a text cell."""

    def column() -> list[str]:
        return [HOSTILE[int(rng.integers(len(HOSTILE) - 1))] for _ in range(ROWS.num_rows)]

    return pa.table({name: column() for name in ROWS.column_names})


@pytest.mark.parametrize("name", [one for one in CONTAINERS if one not in ("frame", "latin-1") and "excel" not in one])
def test_what_cells_hold_decides_nothing(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for number in range(8):
        folder = tmp_path / str(number)
        folder.mkdir()
        location = CONTAINERS[name](_hostile(rng), folder)
        assert outcome(str(location), SCHEMA) == "read"


def test_bytes_of_cells_decide_nothing_in_text(tmp_path: Path) -> None:
    """Any byte but delimiter, quote and line end, in encodings of one byte, of several, and of two."""
    rng = np.random.default_rng(5)
    for encoding in ("utf-8", "latin-1", "cp1252", "shift_jis", "gb18030", "euc_kr", "big5", "euc_jp"):
        for _ in range(10):
            cells = [bytes(b for b in rng.bytes(12) if b not in b'",\r\n') for _ in range(8)]
            lines = [b",".join([*cells[at : at + 3], b"a"]) for at in range(0, 6)]
            path = tmp_path / "t.csv"
            path.write_bytes(b"city,age,rate,who\n" + b"\n".join(lines))
            assert outcome(f"{path}::encoding={encoding}", SCHEMA) == "read"


def test_cells_of_a_workbook_decide_nothing(tmp_path: Path) -> None:
    """Numbers that are none, references to nothing and dates outside the calendar, put into the XML itself."""
    rng = np.random.default_rng(9)
    excel(ROWS, tmp_path)
    for number in range(20):
        path = tmp_path / f"{number}.xlsx"
        _swap_values(tmp_path / "table.xlsx", path, rng)
        assert outcome(str(path), SCHEMA) == "read"


def _swap_values(source: Path, target: Path, rng: np.random.Generator) -> None:
    texts = (b"x", b"-1", b"1e999", b"99999999", b"", b"1.5.5", b"nan", b"&#233;", b"0.5")
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for part in old.namelist():
            data = old.read(part)
            if part.startswith("xl/worksheets/"):
                head, middle, rest = data.partition(b'<row r="2"')
                rest = re.sub(rb"<v>[^<]*</v>", lambda _: b"<v>" + texts[int(rng.integers(len(texts)))] + b"</v>", rest)
                data = head + middle + rest
            new.writestr(part, data)


def test_lines_of_json_decide_nothing(tmp_path: Path) -> None:
    first = json.dumps(dict.fromkeys(ROWS.column_names))
    odd = [
        "[" * 100_000,
        "{",
        "nul",
        '"text"',
        "1",
        "[]",
        '{"city": {"a": 1}}',
        '{"age": 1' + "0" * 5000 + "}",
        "\0",
        "{}",
    ]
    for line in odd:
        path = tmp_path / "t.jsonl"
        path.write_text(f'{first}\n{line}\n{{"city": "Rome", "who": "a"}}\n', encoding="utf-8")
        assert outcome(str(path), SCHEMA) == "read"


def test_a_schema_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_bytes(b"\xff\xfe\0")
    with pytest.raises(SchemaError):
        Schema.from_yaml(tmp_path / "s.yaml")
