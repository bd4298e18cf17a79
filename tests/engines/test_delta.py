"""Delta: versions, partitions of declared types, files that are gone, and protocols that are refused."""

import datetime
import json
import string
import struct
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


def rewrite(table: Path, feature: str, setting: dict[str, str], removed: dict[str, object] | None = None) -> None:
    """Makes the log of a table ask for a feature of its readers."""
    log = table / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            features = {"readerFeatures": [feature], "writerFeatures": [feature]}
            line["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
        if "metaData" in line:
            line["metaData"]["configuration"] = setting
        if "add" in line and removed is not None:
            line["add"]["deletionVector"] = removed
    log.write_text("\n".join(json.dumps(line) for line in lines))


@pytest.mark.parametrize(
    ("feature", "setting"),
    [("columnMapping", {"delta.columnMapping.mode": "name"}), ("typeWidening", {}), ("variantType", {})],
)
def test_protocols_that_cannot_be_read_are_refused(table: Path, feature: str, setting: dict[str, str]) -> None:
    rewrite(table, feature, setting)
    with pytest.raises(InputError):
        open_table(f"delta:{table}", SCHEMA)


def vector_of(rows: list[int]) -> dict[str, object]:
    """A deletion vector within the log: a bitmap of removed rows in the text form of ZeroMQ."""
    places = b"".join(struct.pack("<H", row) for row in rows)
    head = struct.pack("<iqI", 1681511377, 1, 0) + struct.pack("<IIHHI", 12346, 1, 0, len(rows) - 1, 16)
    raw = head + places + b"\0" * (-len(head + places) % 4)
    words = struct.unpack(f">{len(raw) // 4}I", raw)
    signs = string.digits + string.ascii_lowercase + string.ascii_uppercase + ".-:+=^!/*?&<>()[]{}@%$#"
    text = "".join(signs[word // 85**power % 85] for word in words for power in (4, 3, 2, 1, 0))
    size = len(head + places)
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": size, "cardinality": len(rows)}


def test_rows_of_a_deletion_vector_do_not_count(tmp_path: Path) -> None:
    needs("deltalake")
    from deltalake import write_deltalake

    write_deltalake(str(tmp_path / "t"), TABLE)
    rewrite(tmp_path / "t", "deletionVectors", {}, vector_of([0, 2]))
    location = f"delta:{tmp_path / 't'}"
    assert counts(location) == counts(TABLE.slice(1, 1))
    assert sum(rows for rows, _ in open_table(location, SCHEMA).batches([])) == 1


def test_what_is_no_version_or_no_table_is_refused(table: Path, tmp_path: Path) -> None:
    for location in (f"delta:{table}@7", f"delta:{tmp_path / 'nothing'}", "delta:"):
        with pytest.raises(InputError) as caught:
            open_table(location, SCHEMA)
        assert caught.value.__context__ is None
    with pytest.raises(UsageError, match="whole number"):
        open_table(f"delta:{table}@newest", SCHEMA)


def test_a_pattern_is_no_table(table: Path) -> None:
    with pytest.raises(InputError, match="is a pattern"):
        open_table(f"delta:{table}*", SCHEMA)


def test_words_of_the_package_are_not_shown(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import deltalake

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("SECRET/part=Ada")

    monkeypatch.setattr(deltalake.DeltaTable, "get_add_actions", broken)
    with pytest.raises(InputError, match="log cannot be read") as refused:
        open_table(f"delta:{table}", SCHEMA)
    assert "SECRET" not in str(refused.value)
    assert refused.value.__context__ is None
