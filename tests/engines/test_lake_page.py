"""The page on engines: what it says about lakes runs."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from tests.counts.places import people
from tests.engines import lakes
from tests.engines.available import needs

PAGE = (Path(__file__).parents[2] / "docs" / "engines.md").read_text(encoding="utf-8")
TABLE = pa.table({"sex": ["F", "M"], "age": [1, 2], "city": ["Rome", None]})


@contextmanager
def _ready(engine: str, folder: Path) -> Iterator[None]:
    match engine:
        case "folder":
            Path(lakes.as_folder(TABLE, folder)).rename(folder / "people")
            yield
        case "s3":
            needs("moto")
            with lakes.bucket() as store:
                lakes.as_bucket(TABLE, store, "people/table")
                yield
        case "delta":
            needs("deltalake")
            from deltalake import write_deltalake

            write_deltalake(str(folder / "people"), TABLE)
            yield
        case _:
            needs("pyiceberg")
            with lakes.catalog(folder):
                from pyiceberg.catalog import load_catalog

                load_catalog("lake").create_table("people.rows", schema=TABLE.schema).append(TABLE)
                yield


@pytest.mark.parametrize("engine", ["folder", "s3", "delta", "iceberg"])
def test_snippets_run(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (snippet,) = re.findall(rf"<!-- engine: {engine} -->\n```python\n(.*?)```", PAGE, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    people().to_yaml(tmp_path / "schema.yaml")
    with _ready(engine, tmp_path):
        names: dict[str, object] = {}
        exec(snippet, names)  # noqa: S102 - our own page
        assert sum(rows for rows, _ in names["table"].batches(["age", "city"])) == 2  # type: ignore[attr-defined]
