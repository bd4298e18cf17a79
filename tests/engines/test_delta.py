"""Delta: versions, partitions of declared types, files that are gone, and protocols that are refused."""

import datetime
import json
from pathlib import Path

import pyarrow as pa
import pytest

from tests.counts.places import full_counts
from tests.engines.available import needs
from understudy.codec.table import TableCodec
from understudy.counts.delta import DeltaReader
from understudy.counts.opening import open_table
from understudy.errors import InputError, UsageError
from understudy.schema import Category, Date, Integer, Schema, Unit

pytestmark = pytest.mark.engines
DAYS = [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), None]
TABLE = pa.table({"age": [1, 2, None], "city": ["a/b=c %é", "01", None], "day": DAYS})
SCHEMA = Schema(
    (
        Integer(name="age", lower=0, upper=9),
        Category(name="city", labels=("a/b=c %é", "01")),
        Date(name="day", lower=datetime.date(2020, 1, 1), upper=datetime.date(2020, 1, 3)),
    ),
    Unit(),
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    needs("deltalake")
    from deltalake import write_deltalake

    write_deltalake(str(tmp_path / "t"), TABLE, partition_by=["city", "day"])
    return tmp_path / "t"


def counts(data: object) -> list[int]:
    return full_counts(open_table(data, SCHEMA).bind(TableCodec.of(SCHEMA)))


def test_partitions_have_the_types_of_the_log(table: Path) -> None:
    assert counts(f"delta:{table}") == counts(TABLE)
    assert dict(DeltaReader(f"delta:{table}").header)["day"] == "date32[day]"


def test_the_version_is_pinned_and_told(table: Path) -> None:
    from deltalake import write_deltalake

    opened = open_table(f"delta:{table}", SCHEMA)
    write_deltalake(str(table), TABLE, mode="overwrite")
    write_deltalake(str(table), TABLE, mode="append")
    assert full_counts(opened.bind(TableCodec.of(SCHEMA))) == counts(TABLE)
    assert counts(f"delta:{table}@0") == counts(TABLE)
    assert sum(counts(f"delta:{table}")) == 6
    reader = DeltaReader(f"delta:{table}")
    assert (reader.engine, reader.snapshot) == ("Delta", "version 2")


def test_a_vacuumed_version_is_refused_before_rows(table: Path) -> None:
    from deltalake import DeltaTable, write_deltalake

    write_deltalake(str(table), TABLE, mode="overwrite")
    DeltaTable(str(table)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(InputError, match="is gone") as caught:
        open_table(f"delta:{table}@0", SCHEMA)
    assert "city=" not in str(caught.value)
    assert sum(counts(f"delta:{table}")) == 3


def test_no_rows_and_columns_added_later(table: Path, tmp_path: Path) -> None:
    from deltalake import write_deltalake

    write_deltalake(str(tmp_path / "n"), TABLE.slice(0, 0))
    assert sum(counts(f"delta:{tmp_path / 'n'}")) == 0
    write_deltalake(str(tmp_path / "m"), TABLE.drop_columns(["age"]))
    write_deltalake(str(tmp_path / "m"), TABLE, mode="append", schema_mode="merge")
    without = TABLE.set_column(0, "age", pa.nulls(3, pa.int64()))
    assert counts(f"delta:{tmp_path / 'm'}") == counts(pa.concat_tables([without, TABLE]))


@pytest.mark.parametrize(
    ("feature", "setting"),
    [("columnMapping", {"delta.columnMapping.mode": "name"}), ("typeWidening", {}), ("variantType", {})],
)
def test_protocols_that_cannot_be_read_are_refused(table: Path, feature: str, setting: dict[str, str]) -> None:
    log = table / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            features = {"readerFeatures": [feature], "writerFeatures": [feature]}
            line["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
        if "metaData" in line:
            line["metaData"]["configuration"] = setting
    log.write_text("\n".join(json.dumps(line) for line in lines))
    with pytest.raises(InputError):
        open_table(f"delta:{table}", SCHEMA)


def test_what_is_no_version_or_no_table_is_refused(table: Path, tmp_path: Path) -> None:
    for location in (f"delta:{table}@7", f"delta:{tmp_path / 'nothing'}", "delta:"):
        with pytest.raises(InputError) as caught:
            open_table(location, SCHEMA)
        assert caught.value.__context__ is None
    with pytest.raises(UsageError, match="whole number"):
        open_table(f"delta:{table}@newest", SCHEMA)
