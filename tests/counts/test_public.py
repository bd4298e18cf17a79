"""Drafts of tables and frames; what a public table shows, and that a private one shows names and types alone."""

import datetime as dt
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy as us
from understudy.counts.public import MOST_LABELS, arrow_name, facts_of_table, header_of_table, outward
from understudy.errors import InputError, SchemaError, UsageError
from understudy.schema import Category, Datetime, Float, Integer, Unit
from understudy.schema.document import schema_from_text

TABLE = """\
id,age,wage,sex,zip,code,born,seen,clock,flag,either,long,empty,notes
1,23,10.50,f,01234,7,2001-05-05,31.12.2020,08:15,true,01/02/2020,a0,,x
2,61,,m,00012,12,1999-01-01,01.02.2019,17:30,false,02/01/2020,a1,NA,y
3,44,99.99,f,01234,7,1950-12-31,05.05.2021,23:59,true,03/04/2020,a2,.,z
"""


def said(folder: Path, text: str = TABLE) -> dict[str, dict[str, object]]:
    path = folder / "public.csv"
    path.write_text(text, encoding="utf-8")
    facts = facts_of_table(path)
    assert all(fact.origin == "the public table public.csv" for fact in facts)
    return {fact.name: dict(fact.said) for fact in facts}


def test_a_public_table_shows_kinds_bounds_labels_and_forms(tmp_path: Path) -> None:
    found = said(tmp_path)
    assert found["age"] == {"kind": "integer", "lower": 20, "upper": 70, "missing": False}
    assert found["wage"] == {"kind": "float", "lower": 10.0, "upper": 100.0, "decimals": 2, "missing": True}
    assert found["sex"] == {"kind": "category", "labels": ("f", "m"), "missing": False}
    assert found["zip"]["labels"] == ("00012", "01234")
    assert found["code"]["labels"] == ("7", "12")  # a code by its name, though these are numbers
    assert found["born"] == {
        "kind": "date",
        "lower": dt.date(1950, 1, 1),
        "upper": dt.date(2001, 12, 31),
        "missing": False,
    }
    assert found["seen"] == {
        "kind": "date",
        "format": "%d.%m.%Y",
        "lower": dt.date(2019, 1, 1),
        "upper": dt.date(2021, 12, 31),
        "missing": False,
    }
    assert found["clock"]["kind"] == "time"
    assert found["flag"]["kind"] == "boolean"
    assert found["either"] == {"kind": "date", "missing": False}  # the fifth of March, or the third of May?
    assert "empty" not in found
    assert not {"id", "notes"} & set(found)
    assert set(said(tmp_path, "name,first,age\nA B,A,3\n")) == {"age"}


def test_many_labels_make_an_open_category(tmp_path: Path) -> None:
    rows = "".join(f"name{number}\n" for number in range(MOST_LABELS + 1))
    assert said(tmp_path, "town\n" + rows)["town"] == {"kind": "open_category", "missing": False}
    assert len(said(tmp_path, "town\n" + rows.partition("\n")[2])["town"]["labels"]) == MOST_LABELS  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["parquet", "arrow", "pandas", "polars"])
def test_a_typed_public_table_shows_the_same(kind: str, tmp_path: Path) -> None:
    table = pa.table(
        {
            "age": pa.array([23, 61, None], pa.int16()),
            "wage": [10.5, None, 99.25],
            "born": [dt.date(2001, 5, 5), dt.date(1999, 1, 1), None],
            "sex": pa.array(["f", "m", "f"]).dictionary_encode(),
            "alive": [True, False, True],
        }
    )
    pq.write_table(table, tmp_path / "p.parquet")
    given = {
        "parquet": tmp_path / "p.parquet",
        "arrow": table,
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
    }[kind]
    found = {fact.name: dict(fact.said) for fact in facts_of_table(given)}
    assert found["age"] == {"kind": "integer", "lower": 20, "upper": 70, "missing": True}
    assert found["wage"] == {"kind": "float", "lower": 10.0, "upper": 100.0, "decimals": 2, "missing": True}
    assert found["born"]["upper"] == dt.date(2001, 12, 31)
    assert found["sex"]["labels"] == ("f", "m")
    assert found["alive"]["kind"] == "boolean"


@pytest.mark.parametrize(
    ("low", "high", "whole"), [(0, 0, True), (-7, 13, True), (1e-9, 2e-9, False), (-1e300, 1e300, False), (5, 5, False)]
)
def test_bounds_are_rounded_outwards(low: float, high: float, whole: bool) -> None:
    lower, upper = outward(low, high, whole=whole)
    assert lower <= low <= high <= upper
    assert lower < upper


def test_headers_of_frames_are_storage_types() -> None:
    frame = pd.DataFrame(
        {
            "a": pd.array([1, None], "Int16"),
            "b": [1.5, 2.0],
            "c": pd.Categorical(["x", "y"]),
            "d": pd.to_datetime(["2020-01-01", "2020-01-02"]).tz_localize("UTC"),
            "e": ["t", "u"],
        }
    )
    types = dict(header_of_table(frame))
    assert (types["a"], types["b"], types["e"]) == ("int16", "double", "string")
    assert types["c"].startswith("dictionary")
    assert types["d"].endswith("tz=UTC]")
    lazy = pl.LazyFrame({"a": [1], "b": ["x"], "c": [dt.date(2020, 1, 1)]})
    assert header_of_table(lazy) == [("a", "int64"), ("b", "string"), ("c", "date32[day]")]
    assert header_of_table(lazy.collect()) == header_of_table(lazy)
    assert arrow_name("Datetime(time_unit='us', time_zone=None)") == "timestamp[us]"
    with pytest.raises(InputError, match="must be a pandas"):
        header_of_table(7)


class Watched(pd.DataFrame):  # type: ignore[misc]
    """A frame that notices when its cells are read."""

    @property
    def _constructor(self):
        raise AssertionError("cells were read")


def test_a_private_frame_shows_no_cell() -> None:
    draft = us.Schema.draft(Watched({"age": [1, 2], "town": ["Ulm", "Bonn"], "x": pd.Categorical(["Zaphod", "b"])}))
    assert not any(word in draft.text for word in ("Ulm", "Zaphod"))
    assert [place.column for place in draft.open if place.guess] == ["age", "town", "x"]


def test_drafts_in_python_load_once_nothing_is_open(tmp_path: Path) -> None:
    private, book = tmp_path / "people.csv", tmp_path / "book.csv"
    private.write_text("age,sex,region\n17,m,secret\n", encoding="utf-8")
    book.write_text("name,type,min,max,values\nage,integer,0,99,\nsex,category,,,f|m\n", encoding="utf-8")
    like = pd.DataFrame({"region": ["north", "south"], "age": [1, 2]})
    draft = us.Schema.draft(private, like=like, codebook=book, unit=Unit())
    assert draft.open == ()
    schema = draft.schema()
    assert schema.column("age") == Integer(
        name="age", lower=0, upper=99, missing=False, note="from the codebook book.csv and the public table"
    )
    assert isinstance(schema.column("region"), Category)
    assert "secret" not in draft.text
    path = tmp_path / "schema.yaml"
    draft.save(path)
    assert us.Schema.from_yaml(path) == schema
    assert "unit: DECIDE" in us.Schema.draft(private, codebook=[book]).text
    with pytest.raises(SchemaError, match="names none of the table's columns"):
        us.Schema.draft(private, like=pd.DataFrame({"zebra": [1]}))


def test_how_the_file_is_written_is_part_of_the_draft(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("age;sex\n1;f\n", encoding="utf-8")
    draft = us.Schema.draft(us.read_table(path, delimiter=";"))
    assert "\nfile: {delimiter: semicolon}\ncolumns:\n" in draft.text
    assert [place.column for place in draft.open if place.guess] == ["age", "sex"]


def test_repeated_names_are_numbered_once_somebody_vouches_for_them(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("age,score,age,age 2,sex\n31,1,32,33,f\n")
    with pytest.raises(SchemaError, match="2 of its 5 columns"):
        us.Schema.draft(path)
    drafted = us.Schema.draft(path, unit=Unit(), names_are_right=True).text
    assert "names: [age, score, age 3, age 2, sex]" in drafted
    schema = schema_from_text(drafted.replace("# guess:", "# was a guess:"), "draft")
    assert schema.check(path).left_out == ()


def test_the_storage_type_of_the_private_frame_decides_the_kind(tmp_path: Path) -> None:
    private = pd.DataFrame(
        {
            "seen": pd.to_datetime(["1977-01-01"]).tz_localize("Europe/Berlin"),
            "n": [1],
            "x": [1.5],
            "b": [True],
            "c": pd.Categorical(["zaphod"]),
        }
    )
    public = tmp_path / "p.csv"
    public.write_text("seen,n,x,b,c\n2020-01-01 10:00:00,1.5,3,0,1\n2021-05-05 10:00:00,7.5,900,1,2\n")
    draft = us.Schema.draft(private, like=public, unit="row")
    assert draft.open == ()
    schema = draft.schema()
    assert schema.unit == Unit()
    columns = {column.name: column for column in schema.columns}
    seen, n, x, c = columns["seen"], columns["n"], columns["x"], columns["c"]
    assert isinstance(seen, Datetime)
    assert (seen.zone, seen.lower.year, seen.upper.year) == ("Europe/Berlin", 2020, 2021)
    assert isinstance(n, Integer)
    assert (n.lower, n.upper) == (1, 8)
    assert isinstance(x, Float)
    assert (x.lower, x.upper) == (0, 900)
    assert columns["b"].kind == "boolean"
    assert isinstance(c, Category)
    assert c.labels == ("1", "2")
    again = us.Schema.draft(private[["seen"]], like=private[["seen"]], unit="row").schema().column("seen")
    assert isinstance(again, Datetime)
    assert again.lower.year == 1977


def test_labels_that_a_type_lists_in_order_are_kept_to_be_confirmed() -> None:
    frames = [
        pl.DataFrame({"o": pl.Series(["lo"], dtype=pl.Enum(["lo", "mid", "hi"])), "k": [1]}),
        pl.LazyFrame({"o": pl.Series(["lo"], dtype=pl.Enum(["lo", "mid", "hi"])), "k": [1]}),
    ]
    for frame in frames:
        text = us.Schema.draft(frame, unit=Unit()).text
        assert "  o:  # guess: labels of the column's type; confirm them if they were declared" in text
        assert "    labels: [lo, mid, hi]\n" in text
        assert "    ordered: true\n" in text


def test_categories_of_a_private_pandas_frame_are_never_looked_at() -> None:
    """`pd.Categorical(values)` lists what the rows hold."""
    ordered = pd.DataFrame({"o": pd.Categorical(["Zaphod", "Rome"], ordered=True)})
    assert "Zaphod" not in us.Schema.draft(ordered, unit="row").text
    public = pd.DataFrame({"o": pd.Categorical(["lo"], categories=["lo", "mid", "hi"], ordered=True)})
    found = us.Schema.draft(ordered, like=public, unit="row").schema().column("o")
    assert isinstance(found, Category)
    assert (found.labels, found.ordered) == (("lo", "mid", "hi"), True)


def test_a_unit_that_is_no_unit_is_refused_with_the_way_to_say_it() -> None:
    frame = pd.DataFrame({"age": [1]})
    assert "unit: row\n" in us.Schema.draft(frame, unit="row").text
    with pytest.raises(UsageError, match=r"us\.Unit\(column=…, rows=…\)"):
        us.Schema.draft(frame, unit="age")


def test_a_public_table_without_a_header_is_told_as_the_public_one(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("31,Zaphod,2001-01-01\n32,Rome,2002-02-02\n")
    with pytest.raises(InputError, match="first line of the public table looks like values") as caught:
        us.Schema.draft(pd.DataFrame({"age": [1]}), like=tmp_path / "p.csv")
    assert "Zaphod" not in str(caught.value)
    years = pd.DataFrame({"2019": [1, 5], "country": ["a", "b"]})
    assert us.Schema.draft(years, like=years, names_are_right=True, unit="row").open == ()


def test_a_codebook_is_read_under_the_heading_that_names_the_table(tmp_path: Path) -> None:
    book = tmp_path / "book.csv"
    book.write_text("Variable,VariableNameLong,Min,Max\nHSD010,Wob,0,9\nHSD020,Zork,1,5\nHSD030,Zork,1,5\n")
    frame = pd.DataFrame({"Wob": [1], "Zork": [1]})
    schema = us.Schema.draft(frame, codebook=book, unit="row").schema()
    assert [(column.name, column.upper) for column in schema.columns] == [("Wob", 9), ("Zork", 5)]  # type: ignore[union-attr]
    assert (
        us.Schema.draft(pd.DataFrame({"hsd020": [1]}), codebook=book, unit="row").schema().column("hsd020").upper == 5
    )
    with pytest.raises(SchemaError, match="under its heading 'Variable'"):
        us.Schema.draft(pd.DataFrame({"brillig": [1]}), codebook=book)
