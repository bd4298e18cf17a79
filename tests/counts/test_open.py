from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.counts.malformed import CONTAINER_WRONG, SECRET
from tests.counts.places import PLACES, people
from understudy.codec.table import TableCodec
from understudy.counts.frames import FrameTable
from understudy.counts.opening import open_table
from understudy.counts.readers import StreamedTable
from understudy.errors import InputError, SchemaError, UnderstudyError, UsageError
from understudy.schema import Category, Integer, Schema, Unit

TABLE = pa.table({"sex": ["F"], "age": ["1"], "city": ["Rome"], "extra": [SECRET]})


@pytest.mark.parametrize("place", PLACES)
def test_everything_the_user_may_have(place: str, tmp_path: Path) -> None:
    data = PLACES[place](TABLE, tmp_path)
    opened = open_table(data, people())
    assert isinstance(opened, StreamedTable if isinstance(data, str | Path) else FrameTable)
    assert opened.schema == people()
    assert opened.undeclared == ("extra",)
    assert open_table(opened, people()) is opened
    with pytest.raises(UsageError, match="another schema"):
        open_table(opened, people(unit=Unit(column="extra")))


def test_the_unit_column_is_declared(tmp_path: Path) -> None:
    schema = people(unit=Unit(column="extra", rows=1))
    assert open_table(TABLE, schema).undeclared == ()
    with pytest.raises(SchemaError, match="'extra'"):
        open_table(TABLE.drop(["extra"]), schema)


@pytest.mark.parametrize("data", [None, 5, [1, 2], {"a": [1]}, b"table.csv", pd.Series([1])], ids=str)
def test_anything_else_is_refused(data: object) -> None:
    with pytest.raises(InputError, match="must be a pandas"):
        open_table(data, people())


def test_limits() -> None:
    with pytest.raises(UsageError, match="must be at least 64 MiB, got 1 MiB"):
        open_table(TABLE, people(), memory_bytes=2**20)
    for limits in ({"memory_bytes": 5}, {"threads": 0}, {"memory_bytes": -1}):
        with pytest.raises(UsageError):
            open_table(TABLE, people(), **limits)


@pytest.mark.parametrize("name", CONTAINER_WRONG)
def test_wrong_containers_and_headers_are_refused_without_a_value(name: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(CONTAINER_WRONG[name])
    with pytest.raises(UnderstudyError) as caught:
        open_table(path, people())
    assert isinstance(caught.value, InputError | SchemaError)
    assert SECRET not in str(caught.value)


def test_opening_reads_no_row(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path)
    data = bytearray(path.read_bytes())
    data[4:60] = b"\0" * 56  # the only page
    path.write_bytes(data)
    assert open_table(path, people()).undeclared == ("extra",)


def test_the_same_values_get_the_same_codes_in_every_form(tmp_path: Path) -> None:
    """Integers with gaps: text as pandas writes it, text, Parquet text, integers and floats, objects of pandas."""
    values = [1, 0, None, 1, 7, None, 0, 1]
    column = Category(name="vote", labels=("0", "1"), missing=False)
    schema = Schema(columns=(column, Integer(name="n", lower=0, upper=3, missing=False)), unit=Unit())
    codec = TableCodec.of(schema)
    clique = codec.domain.everything()
    texts = ["" if value is None else f"{value}.0" for value in values]
    (tmp_path / "pandas.csv").write_text("vote,n\n" + "".join(f"{text},{text}\n" for text in texts))
    (tmp_path / "plain.csv").write_text("vote,n\n" + "".join(f" {text[:1]} ,{text[:1]}\n" for text in texts))
    typed = {kind: pa.array(values, pa.int64()).cast(kind) for kind in (pa.string(), pa.int64(), pa.float64())}
    for place, array in enumerate(typed.values()):
        pq.write_table(pa.table({"vote": array, "n": array}), tmp_path / f"{place}.parquet")
    objects = pd.Series(values, dtype=object)
    frames = [
        pd.DataFrame({"vote": one, "n": one}) for one in (objects, pd.Series(values), pd.Series(values, dtype="Int64"))
    ]
    forms = [*sorted(tmp_path.iterdir()), *frames]
    assert len(forms) == 8
    counted = [open_table(form, schema).bind(codec).counts([clique])[clique].tolist() for form in forms]
    assert counted[0] == [2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 1, 2]
    assert all(one == counted[0] for one in counted)


@pytest.mark.parametrize(
    "location",
    [
        "jdbc:postgresql://ada:SECRET@db/people",
        "md:my_db?motherduck_token=SECRET",
        "AccountKey=SECRET;EndpointSuffix=x",
        "sqlite://u:SECRET@h/x.db",
        "delta:mysql://u:SECRET@h/t",
        "spark:jdbc:postgresql://u:SECRET@h/d",
        "s3:k:SECRET@b/t.parquet",
        "snowflake:u:SECRET@acct/db",
        "u:SECRET@host/db",
        "postgresql://u:5432?SECRET@h/d::t",
    ],
)
def test_what_looks_like_a_password_is_never_repeated(location: str) -> None:
    with pytest.raises(UnderstudyError) as refused:
        open_table(location, people())
    assert "SECRET" not in str(refused.value)


def test_a_file_whose_name_looks_like_a_password_is_a_file(tmp_path: Path) -> None:
    place = tmp_path / "ada:one@two.csv"
    place.write_text("sex,age,city\nF,1,Rome\n", encoding="utf-8")
    assert open_table(place, people()).undeclared == ()


def test_a_closed_table_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "people.csv"
    place.write_text("sex,age,city\nF,1,Rome\n", encoding="utf-8")
    table = open_table(place, people())
    table.close()
    with pytest.raises(UsageError, match="was closed"):
        open_table(table, people())
