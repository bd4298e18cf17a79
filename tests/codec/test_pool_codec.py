"""Pooled labels: kept ones as ever, rare ones to one code and back by their shares, and the file form."""

import numpy as np
import pyarrow as pa
import pytest

from tests.codec.examples import schema_of
from understudy.codec.labels import checked_pool
from understudy.codec.table import TableCodec
from understudy.errors import UsageError
from understudy.schema import Category

TOWN = Category(name="town", labels=("Rome", "Ada", "Oslo", "Bor", "Cut"), other="elsewhere", rare="private")
POOL = (("Ada", 1.0), ("Bor", 3.0), ("Cut", 0.0))
RNG = np.random.default_rng(1)


def _codec(**changes: object) -> TableCodec:
    return TableCodec.of(schema_of(TOWN), pools={"town": POOL}, **changes)  # type: ignore[arg-type]


def test_kept_labels_come_first_then_the_common_code_then_other_and_missing() -> None:
    codec = _codec()
    assert dict(codec.domain.sizes) == {"town": 5}
    values = pa.array(["Rome", "Oslo", "Ada", "Bor", "Cut", "Paris", None])
    assert codec.encode("town", values).tolist() == [0, 1, 2, 2, 2, 3, 4]
    assert codec.encode("town", values.dictionary_encode()).tolist() == [0, 1, 2, 2, 2, 3, 4]
    shown = [codec.describe("town", code) for code in range(5)]
    assert shown == ["Rome", "Oslo", "one of 3 rare labels", "elsewhere", "missing"]
    queries = ("Oslo", "one of 3 rare labels", "missing")
    assert [codec.codes_matching("town", text).tolist() for text in queries] == [[1], [2], [4]]
    with pytest.raises(UsageError, match='ask for all of these labels with "one of 3 rare labels"'):
        codec.codes_matching("town", "Bor")
    with pytest.raises(UsageError, match="matches no code"):
        codec.codes_matching("town", "Paris")


def test_rows_of_the_common_code_are_drawn_by_the_shares() -> None:
    codes = np.array([0, 1, 2, 3, 4] * 8_000, dtype=np.uint8)
    towns = _codec().decode({"town": codes}, RNG).column("town").to_pylist()
    drawn = towns[2::5]
    assert set(drawn) == {"Ada", "Bor"}
    assert abs(drawn.count("Bor") / 8_000 - 0.75) < 6 * (0.75 * 0.25 / 8_000) ** 0.5
    assert [towns[0], towns[1], towns[3], towns[4]] == ["Rome", "Oslo", "elsewhere", None]


def test_everything_may_be_rare_and_labels_may_be_numbers() -> None:
    column = Category(name="code", labels=("7", "8"), storage="int64", missing=False, rare="private")
    codec = TableCodec.of(schema_of(column), pools={"code": (("7", 1.0), ("8", 1.0))})
    assert codec.domain.sizes["code"] == 2
    assert codec.encode("code", pa.array([7, 8, 9, None])).tolist() == [0, 0, 1, 1]
    assert [codec.describe("code", code) for code in (0, 1)] == ["one of 2 rare labels", "unreadable"]
    dropped = TableCodec.of(codec.schema, pools=codec.pools, unreadable=False)
    assert dropped.encode("code", pa.array([7, 8, 9, None])).tolist() == [0, 0, 1, 1]
    assert dropped.domain.sizes["code"] == 1  # so that 1 is no code
    assert set(codec.decode({"code": np.zeros(50, np.uint8)}, RNG).column("code").to_pylist()) == {7, 8}


def test_the_file_form_brings_the_same_codec_back() -> None:
    codec = _codec()
    document = codec.to_json()
    assert document["rare"] == {"town": ["Ada", "Bor", "Cut"]}
    again = TableCodec.from_json(codec.schema, document)
    assert again.pools == codec.pools == {"town": POOL}
    assert again.domain == codec.domain
    assert "rare" not in TableCodec.of(codec.schema).to_json()


@pytest.mark.parametrize(
    "change",
    [
        {"shares": {"town": [1.0]}},
        {"shares": {}},
        {"rare": {"town": ["Ada", "Bor", 3]}},
        {"shares": {"town": [1.0, -1.0, 2.0]}},
        {"shares": {"town": [0.0, 0.0, 0.0]}},
        {"rare": {"town": ["Ada", "Ada", "Bor"]}},
        {"rare": {"town": ["Ada", "Bor", "Paris"]}},
    ],
)
def test_other_file_forms_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        TableCodec.from_json(_codec().schema, {**_codec().to_json(), **change})


def test_pools_are_only_for_columns_that_ask_for_them() -> None:
    plain = schema_of(Category(name="town", labels=TOWN.labels))
    with pytest.raises(UsageError, match="needs at least two of its labels"):
        TableCodec.of(plain, pools={"town": POOL})
    with pytest.raises(UsageError, match="needs at least two"):
        checked_pool("town", TOWN.labels, (("Ada", 1.0),))
    with pytest.raises(UsageError, match="shares"):
        checked_pool("town", TOWN.labels, (("Ada", float("nan")), ("Bor", 1.0)))
