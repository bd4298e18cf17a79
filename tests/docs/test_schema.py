"""The schema page: its example is a schema, and its tables name every kind and key there is."""

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from tests.docs.test_tutorial import BLOCK, _require, _run, _steps
from tests.processes import Forked
from understudy.codec.axes import axis_of
from understudy.codec.table import TableCodec
from understudy.schema.columns import BIN_RULES
from understudy.schema.document import FORMULAS, KINDS, schema_from_text
from understudy.schema.draft import open_places
from understudy.schema.yaml_text import schema_to_text

PAGE = (Path(__file__).parents[2] / "docs" / "schema.md").read_text(encoding="utf-8")
SHARED = ("missing", "storage", "note", "title", "description", "missing_values")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_blocks_are_schemas(block: str) -> None:
    schema = schema_from_text(block, "docs/schema.md")
    assert schema_from_text(schema_to_text(schema), "again") == schema


def test_every_way_to_choose_bins_is_on_the_page() -> None:
    assert len(BLOCKS) == 6
    for rule in BIN_RULES:
        assert f"by: {rule}" in PAGE


def test_the_example_is_read_and_split() -> None:
    schema = schema_from_text(PAGE.split("```yaml\n")[1].split("```")[0], "docs/schema.md")
    codec = TableCodec.of(schema)
    assert dict(codec.domain.sizes) == {"sex": 3, "wage.size": 8, "wage.kind": 9}
    assert [codec.describe("wage.kind", code) for code in (0, 7, 8)] == [
        "multiple of 100",
        "multiple of none",
        "no number",
    ]


VALUES: dict[str, str | bytes | None] = {
    "empty, null": "",
    "white space": "  ",
    "`NA`": "NA",
    "`F`": "F",
    "`F` and a space": "F ",
    "`f`": "f",
    "`1`": "1",
    "`1.0`": "1.0",
    "`01`": "01",
    "`€ 12.00`": "€ 12.00",
    "`1,234.50`": "1,234.50",
    "`2020-12-31`": "2020-12-31",
    "`31/12/2020`": "31/12/2020",
    "`2031-01-01`": "2031-01-01",
    "`120`": "120",
    "`-7`": "-7",
    "`999`": "999",
    "bytes that are not UTF-8": b"\xc3\x28",
    "5,000 letters": "x" * 5000,
}


WRITTEN = {
    f"`{value}`": value
    for value in (
        *(
            "NA",
            "N/A",
            "na",
            "-99",
            "-99.0",
            "unknown",
            "f",
            "F",
            "1.0",
            "1,234.50",
            "1.234,50",
            "1,23",
            "12345",
            "12.345",
        ),
        *("$ 12.00", "-$12", "$-12", "($12)", "(-12)", "12 €", "€ 12", "-12€", "12 %"),
    )
}


def code_table(mark: str, values: Mapping[str, str | bytes | None]) -> str:
    """What becomes of every value in every column of the page's schema that holds the mark, by the codec."""
    block = next(block for block in BLOCKS if mark in block)
    schema = schema_from_text(block, "docs/schema.md")
    codec = TableCodec.of(schema)
    lines = [["value", *(f"`{name}`" for name in schema.names)], ["---"] * (1 + len(schema.names))]
    for shown, value in values.items():
        kind = pa.binary() if isinstance(value, bytes) else pa.string()
        met = [codec.describe(name, int(codec.encode(name, pa.array([value], kind))[0])) for name in schema.names]
        lines.append([shown, *met])
    return "\n".join(f"| {' | '.join(line)} |".replace("| --- ", "|---").replace("--- |", "---|") for line in lines)


@pytest.mark.parametrize(("mark", "values"), [("closed", VALUES), ("any_case", WRITTEN)])
def test_the_tables_of_values_and_codes_are_what_the_codec_does(
    mark: str, values: Mapping[str, str | bytes | None]
) -> None:
    assert code_table(mark, values) in PAGE


def test_null_is_coded_like_empty_text() -> None:
    schema = schema_from_text(next(block for block in BLOCKS if "closed" in block), "docs/schema.md")
    codec = TableCodec.of(schema)
    for name in schema.names:
        coded = codec.encode(name, pa.array(["", None, "  "], pa.string())).tolist()
        assert len(set(coded)) == 1, name


def test_every_kind_and_key_is_on_the_page() -> None:
    rows = {line.split("|")[1].strip().strip("`"): line for line in PAGE.splitlines() if line.startswith("| `")}
    for name, kind in KINDS.items():
        keys = [field.name for field in dataclasses.fields(kind) if field.name not in ("name", "formula")]
        own = [key for key in keys if key not in SHARED]
        assert all(f"`{key}`" in PAGE for key in SHARED)
        for key in [*own, *(FORMULAS if name == "derived" else ())]:
            assert f"`{key}`" in rows[name], f"{name}: {key}"


def test_the_drafts_of_the_page_are_made_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    section = PAGE.partition("## Drafting a schema")[2].partition("\n## ")[0]
    steps = 0
    for key, value, kind, text in BLOCK.findall(section):
        if key == "file":
            Path(value).write_text(text, encoding="utf-8")
        elif key == "within":
            written = Path(value).read_text(encoding="utf-8")
            for line in text.splitlines():
                shape = ".*".join(re.escape(part) for part in line.split("…"))
                assert re.search(f"^{shape}", written, re.MULTILINE), line
        elif kind == "python":
            assert Forked(text).ended().status == 0
        elif kind == "console":
            for step in _steps(text, 0):
                status, output = _run(step.command)
                assert status == 0, output
                _require(step, output)
                steps += 1
    assert steps == 3
    assert [place.column for place in open_places(Path("python.yaml").read_text(encoding="utf-8"))] == ["wobble"]


FORMATS = re.findall(r"^\| `([^`]+)` \| `(%[^`]+)` \| (\S+) \|$", PAGE, re.MULTILINE)


def test_the_table_of_formats_has_the_usual_ones() -> None:
    assert {"%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%H:%M"} <= {form for _, form, _ in FORMATS}


@pytest.mark.parametrize(("text", "form", "iso"), FORMATS)
def test_the_formats_read_what_the_page_says(text: str, form: str, iso: str) -> None:
    clock = "" if "%S" in form else ", resolution: 60"
    declared = {
        10: "kind: date, lower: 2024-01-01, upper: 2024-12-31",
        19: f"kind: datetime, lower: 2024-01-01T00:00:00, upper: 2024-12-31T23:59:00{clock}",
        8: f'kind: time, lower: "00:00:00", upper: "23:59:00"{clock}',
    }[len(iso)]
    column = f'  when: {{{declared}, format: "{form}"}}'
    schema = schema_from_text(f"understudy: 1\nunit: row\ncolumns:\n{column}\n", "the page")
    axis = axis_of(schema.column("when"))
    reading = axis.read(pa.array([text, f" {text} ", "noon"]))
    assert reading.valid.tolist() == [True, True, False]
    assert [axis.text(int(number)) for number in reading.values[:2]] == [iso, iso]
