import datetime as dt
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.counts.places import by_hand, every_clique, people
from understudy.codec.table import TableCodec
from understudy.counts import frames as frame_source
from understudy.counts.frames import FrameTable, is_frame
from understudy.errors import InputError, SchemaError
from understudy.schema import Category, Integer, Schema, Unit

MEMORY = 1 << 30
SECRET = "Zyxwvut-9731"


def table_of(data: object, schema: Schema | None = None, threads: int = 1) -> FrameTable:
    return FrameTable(data, schema or people(), memory_bytes=MEMORY, threads=threads)


def column_counts(data: object, column: str, schema: Schema | None = None) -> list[int]:
    schema = schema or people()
    source = table_of(data, schema).bind(TableCodec.of(schema))
    clique = source.domain.clique([column])
    return source.counts([clique])[clique].tolist()


def frame(**columns: object) -> pd.DataFrame:
    rows = len(next(iter(columns.values())))  # type: ignore[arg-type]
    return pd.DataFrame({"sex": ["F"] * rows, "age": [1] * rows, "city": ["Rome"] * rows} | columns)


@pytest.mark.parametrize(
    ("ages", "counts"),
    [
        ([0, 1, 1], [1, 2]),
        (pd.Series([0, 1, None], dtype="Int8"), [1, 1]),
        (pd.Series([0.0, 1.0, np.nan]), [1, 1]),
        (pd.Series(["0", "1", None]), [1, 1]),
        (pd.Series([0, "1", 1.0, None, [1], b"1", 10**40, SECRET], dtype=object), [1, 3]),
        (pd.Series([1, 0, 1]).astype("category"), [1, 2]),
        (pd.Series([decimal.Decimal(0), decimal.Decimal("1.0")], dtype=object), [1, 1]),
        (pd.arrays.SparseArray([0, 1, 1]), [1, 2]),
        (pd.Series([pd.Interval(0, 1), pd.Interval(0, 2)]), [0, 0]),
        (pd.Series([pd.Period("2020"), pd.NaT]), [0, 0]),
        (pd.Series([1 + 2j]), [0, 0]),
        (pd.Series([], dtype=object), [0, 0]),
    ],
    ids=str,
)
def test_pandas_columns_of_any_kind(ages: object, counts: list[int]) -> None:
    found = column_counts(frame(age=ages), "age")
    assert found[:2] == counts
    assert sum(found) == len(ages)  # type: ignore[arg-type]


def test_polars_columns_of_any_kind() -> None:
    rows = {"sex": ["F", "M"], "city": ["Rome", None]}
    for ages in (
        pl.Series([0, 1]),
        pl.Series([0.0, 1.0]),
        pl.Series(["0", "1"]),
        pl.Series(["0", "1"], dtype=pl.Categorical),
        pl.Series([0, "1"], dtype=pl.Object),
        pl.Series([decimal.Decimal(0), decimal.Decimal(1)]),
    ):
        assert column_counts(pl.DataFrame({**rows, "age": ages}), "age")[:2] == [1, 1], ages.dtype
    assert sum(column_counts(pl.DataFrame({**rows, "age": [[1], [2]]}), "age")) == 2
    assert sum(column_counts(pl.DataFrame({**rows, "age": [dt.date(2020, 1, 1), None]}), "age")) == 2


def test_header_problems_come_all_at_once() -> None:
    data = pd.DataFrame([[1, 2, 3]], columns=["sex", "sex", "other"])
    with pytest.raises(SchemaError) as caught:
        table_of(data)
    text = str(caught.value)
    assert len(caught.value.problems) == 3
    assert "'age'" in text
    assert "'city'" in text
    assert "appears twice" in text


def test_names_that_are_not_text() -> None:
    schema = Schema(columns=(Category(name="1", labels=("x",)),), unit=Unit())
    data = pd.DataFrame({1: ["x", "y"], ("a", 2): [SECRET, SECRET], b"b": [1, 2]})
    opened = table_of(data, schema)
    assert opened.undeclared == ("('a', 2)", "b'b'")
    assert column_counts(data, "1", schema) == [1, 1]
    with pytest.raises(SchemaError, match="appears twice"):
        table_of(pd.DataFrame([["x", "x"]], columns=[1, "1"]), schema)


def test_kinds_to_hand_back() -> None:
    plain = frame(age=[1])
    assert table_of(plain).frame_kind == "pandas"
    assert table_of(pl.from_pandas(plain)).frame_kind == "polars"
    assert table_of(pl.from_pandas(plain).lazy()).frame_kind == "polars"
    assert table_of(pa.Table.from_pandas(plain)).frame_kind == "arrow"
    assert not is_frame([1, 2])
    assert not is_frame("table.csv")


def test_a_lazy_frame_runs_at_the_first_count_and_reads_declared_columns_only() -> None:
    ran = []

    def watched(part: pl.DataFrame) -> pl.DataFrame:
        ran.append(part.columns)
        return part

    data = pl.from_pandas(frame(age=[0, 1, 1], extra=[1, 2, 3])).lazy().map_batches(watched, schema=None)
    source = table_of(data).bind(TableCodec.of(people()))
    assert not ran
    clique = source.domain.clique(["age"])
    assert source.counts([clique])[clique][:2].tolist() == [1, 2]
    source.counts([source.domain.clique(["sex"])])
    assert len(ran) == 1


def test_a_failing_query_is_told_without_its_rows() -> None:
    data = pl.LazyFrame({"sex": [SECRET], "age": [SECRET], "city": [SECRET]}).with_columns(pl.col("age").cast(pl.Int8))
    source = table_of(data).bind(TableCodec.of(people()))
    with pytest.raises(InputError) as caught:
        source.counts([source.domain.clique(["age"])])
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_each_column_is_encoded_once_and_only_when_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []
    original = TableCodec.encode
    monkeypatch.setattr(
        TableCodec,
        "encode",
        lambda codec, name, values: (encoded.append(name), original(codec, name, values))[1],
    )
    source = table_of(frame(age=[1, 2])).bind(TableCodec.of(people()))
    assert encoded == []
    source.counts([source.domain.clique(["age"])])
    source.counts([source.domain.clique(["age"]), source.domain.clique(["age", "sex"])])
    assert encoded == ["age", "sex"]


def test_threads_and_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    table = pa.table(
        {
            "sex": pa.array(["F", "M", None]).take(pa.array(rng.integers(0, 3, 5000))),
            "age": rng.integers(0, 12, 5000),
            "city": pa.array(["Rome", "Oslo", "?"]).take(pa.array(rng.integers(0, 3, 5000))),
        }
    )
    codec = TableCodec.of(people())
    expected = {clique: by_hand(codec, table, clique) for clique in every_clique(codec)}
    monkeypatch.setattr(frame_source, "LEAST_ROWS_PER_THREAD", 10)
    monkeypatch.setattr(frame_source, "CHUNK_ROWS", 700)
    source = table_of(table, threads=3).bind(codec)
    assert {clique: counts.tolist() for clique, counts in source.counts(list(expected)).items()} == expected
    everything = codec.domain.everything()
    assert source.occupied(everything).counts.sum() == 5000


def test_integers_beyond_the_schema_are_clamped_not_refused() -> None:
    schema = Schema(columns=(Integer(name="age", lower=0, upper=3, missing=False),), unit=Unit())
    assert column_counts(pd.DataFrame({"age": [-(2**63), 2**63 - 1, 1]}), "age", schema) == [1, 1, 0, 1, 0]
