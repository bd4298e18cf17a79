"""Every schema on the reference page is read without a problem, and every key it names exists."""

import dataclasses
import re
from pathlib import Path

import pytest

from understudy.schema.column import BIN_RULES
from understudy.schema.document import schema_from_text, schema_to_text
from understudy.schema.text.columns import FORMULAS, KINDS

PAGE = (Path(__file__).parents[2] / "docs" / "schema.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_blocks_are_schemas(block: str) -> None:
    schema = schema_from_text(block, "docs/schema.md")
    assert schema_from_text(schema_to_text(schema), "again") == schema


def test_the_page_names_every_kind_key_and_rule() -> None:
    assert len(BLOCKS) == 3
    named = set(re.findall(r"`([a-z_]+)`", PAGE))
    keys = {field.name for kind in KINDS.values() for field in dataclasses.fields(kind)}
    assert {*KINDS, *FORMULAS, *keys} - {"name", "formula"} <= named
    for rule in BIN_RULES:
        assert f"by: {rule}" in PAGE or rule == "mass"
