"""The schema page: its example is a schema, and its tables name every kind and key there is."""

import dataclasses
import re
from pathlib import Path

import pytest

from understudy.codec.table_codec import TableCodec
from understudy.schema.column import BIN_RULES
from understudy.schema.document import schema_from_text, schema_to_text
from understudy.schema.text.columns import FORMULAS, KINDS

PAGE = (Path(__file__).parents[2] / "docs" / "schema.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_blocks_are_schemas(block: str) -> None:
    schema = schema_from_text(block, "docs/schema.md")
    assert schema_from_text(schema_to_text(schema), "again") == schema


def test_every_way_to_choose_bins_is_on_the_page() -> None:
    assert len(BLOCKS) == 3
    for rule in BIN_RULES:
        assert f"by: {rule}" in PAGE


def test_the_example_is_read_and_split() -> None:
    schema = schema_from_text(PAGE.split("```yaml\n")[1].split("```")[0], "docs/schema.md")
    codec = TableCodec.of(schema)
    assert dict(codec.domain.sizes) == {"sex": 2, "wage.size": 7, "wage.kind": 9}
    assert [codec.describe("wage.kind", code) for code in (0, 7, 8)] == [
        "multiple of 100",
        "multiple of none",
        "no number",
    ]


def test_every_kind_and_key_is_on_the_page() -> None:
    rows = {line.split("|")[1].strip().strip("`"): line for line in PAGE.splitlines() if line.startswith("| `")}
    for name, kind in KINDS.items():
        keys = [field.name for field in dataclasses.fields(kind) if field.name not in ("name", "formula")]
        own = [key for key in keys if key not in ("missing", "storage", "note")]
        for key in [*own, *(FORMULAS if name == "derived" else ())]:
            assert f"`{key}`" in rows[name], f"{name}: {key}"
