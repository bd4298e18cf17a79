"""The page on files: its snippets run, its tables name what there is."""

import re
from pathlib import Path

import understudy as us
from tests.cli.test_app import DIALECT
from understudy.counts.files import SUFFIXES
from understudy.counts.opening import open_table
from understudy.counts.streams import LEAST_EXPANDED, MOST_RATIO
from understudy.schema.document import schema_from_text
from understudy.schema.schema import parted

PAGE = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")


def test_every_suffix_is_named_and_no_other() -> None:
    listed = PAGE.split("## How text")[0]
    assert set(re.findall(r"`(\.\w+)`", listed)) == set(SUFFIXES)


def test_every_flag_is_named() -> None:
    read, _, _ = PAGE.partition("## What is written")
    assert set(re.findall(r"--[a-z][a-z-]+", read)) == set(DIALECT)


def test_snippets_run(tmp_path: Path) -> None:
    (python,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    call = python.strip().splitlines()[-1]
    assert call == 'us.read_table("people.csv", delimiter=";", encoding="latin-1", decimal=",")'
    said = us.read_table("people.csv", delimiter=";", encoding="latin-1", decimal=",")
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    schema = schema_from_text(block, "docs/files.md")
    assert schema.file == parted(said)[1]
    (tmp_path / "people.csv").write_bytes("city;wage\nKöln;1,5\n".encode("latin-1"))
    assert open_table(tmp_path / "people.csv", schema).undeclared == ()


def test_limits_are_those_of_the_code() -> None:
    assert f"{MOST_RATIO:,} times its own size, or to {LEAST_EXPANDED >> 20} MiB" in PAGE
