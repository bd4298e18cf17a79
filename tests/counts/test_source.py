"""The seam: the same table gives the same counts wherever it lies, and the same as counting by hand."""

import datetime as dt
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.counts.places import PLACES, by_hand, every_clique, full_counts, people
from understudy.codec.table import TableCodec
from understudy.counts.opening import open_table
from understudy.schema import Boolean, Category, Date, Float, Integer, OpenCategory, Schema, UniformBins, Unit

NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
HOSTILE_NAMES = st.sampled_from(
    [
        'a"b',
        "c'; drop table x; --",
        "select",
        "a.b",
        "a",
        "ф 🙂",
        "line\nbreak",
        "rowid",
        "%s {x}",
        "c0",
        "unit",
        "n" * 300,
    ]
)
LABELS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=5)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, pa.Table]:
    names = draw(st.lists(NAMES | HOSTILE_NAMES, min_size=1, max_size=4, unique_by=lambda name: name.lower()))
    labels = draw(st.lists(LABELS, min_size=2, max_size=5, unique=True))
    declared = tuple(labels[: max(1, len(labels) - 1)])
    cells = st.sampled_from([*labels, None])
    rows = draw(st.lists(st.tuples(*[cells] * len(names)), max_size=25))
    columns = [pa.array([row[position] for row in rows], pa.string()) for position in range(len(names))]
    schema = Schema(columns=tuple(Category(name=name, labels=declared) for name in names), unit=Unit())
    return schema, pa.table(columns, names=names)


@settings(max_examples=12, deadline=None)
@given(tables())
def test_hostile_names_and_labels_count_alike_everywhere(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[Schema, pa.Table]
) -> None:
    schema, table = drawn
    folder = tmp_path_factory.getbasetemp()
    codec = TableCodec.of(schema)
    expected = {clique: by_hand(codec, table, clique) for clique in every_clique(codec)}
    for name, place in PLACES.items():
        source = open_table(place(table, folder), schema, threads=1).bind(codec)
        found = source.counts(list(expected))
        assert {clique: counts.tolist() for clique, counts in found.items()} == expected, name


@settings(max_examples=8, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["1", "2", "x", "é", None, ""]), st.integers(0, 9), st.sampled_from("FM")),
        max_size=30,
    ),
    st.integers(1, 3),
)
def test_the_unit_bound_keeps_the_same_rows_everywhere(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str | None, int, str]], bound: int
) -> None:
    schema = people(unit=Unit(column="who", rows=bound))
    table = pa.table(
        {
            "who": pa.array([row[0] for row in rows], pa.string()),
            "age": pa.array([str(row[1]) for row in rows], pa.string()),
            "sex": pa.array([row[2] for row in rows], pa.string()),
            "city": pa.array(["Rome"] * len(rows), pa.string()),
        }
    )
    folder = tmp_path_factory.getbasetemp()
    codec = TableCodec.of(schema)
    held = Counter(row[0] for row in rows if row[0])
    found = {name: full_counts(open_table(place(table, folder), schema).bind(codec)) for name, place in PLACES.items()}
    assert all(counts == found["arrow"] for counts in found.values()), found
    assert sum(found["arrow"]) == sum(min(bound, count) for count in held.values())


def test_typed_ids_are_the_same_people_as_their_text(tmp_path: Path) -> None:
    schema = people(unit=Unit(column="who", rows=1))
    codec = TableCodec.of(schema)
    rest = {"age": ["1", "2", "3"], "sex": ["F", "M", "F"], "city": ["Rome", "Oslo", "Bonn"]}
    kinds = [pa.array([7, 7, None]), pa.array([7.0, 7.0, None]), pa.array(["7", "7", None])]
    found = []
    for ids in kinds:
        for place in PLACES.values():
            data = place(pa.table({"who": ids, **rest}), tmp_path)
            found.append(full_counts(open_table(data, schema).bind(codec)))
    assert len({tuple(counts) for counts in found[:9]}) == 1
    # A float written into text keeps its point ("7.0"), which is still one person.
    assert {sum(counts) for counts in found} == {1}


@pytest.mark.parametrize("unit", [Unit(), Unit(column="who", rows=2)], ids=["row", "person"])
def test_labels_are_counted_alike_everywhere(tmp_path: Path, unit: Unit) -> None:
    schema = Schema(columns=(OpenCategory(name="job"),), unit=unit)
    jobs = ["cook", "nurse", "cook", None, "", "x'y\"z", "ünï🙂", "cook", "a\nb", "cook", "nurse"]
    table = pa.table(
        {"who": ["1", "1", "1", "1", "1", "2", "2", "2", "3", None, ""], "job": pa.array(jobs, pa.string())}
    )
    found = []
    for place in PLACES.values():
        labels = open_table(place(table, tmp_path), schema).label_counts("job")
        found.append(list(zip(labels.labels, labels.counts.tolist(), strict=True)))
    assert all(answer == found[0] for answer in found), found
    if unit.column is None:
        assert dict(found[0]) == {"a\nb": 1, "cook": 4, "nurse": 2, "x'y\"z": 1, "ünï🙂": 1}
    else:
        assert sum(count for _, count in found[0]) == 2 + 2 + 1


VALUES = (
    *(
        "",
        " ",
        "NA",
        "na",
        " NULL ",
        "N/A",
        ".",
        "-",
        "-99",
        "-99.0",
        "99",
        "yes",
        "YES",
        "Yes ",
        "ｙes",
        "STRASSE",
        "straße",
    ),
    *("1", "1.0", "1,0", "1.234", "1,234", "1 234", "1\u202f234,5", "1.234,5", "1,234.5", "12,34", "€ 7", "-€7", "€-7"),
    *("(7)", "(€7)", "(-7)", "7 %", "7%", "€7%", "7-", "+7", "1e1", "1,5e1", "inf", "true", "2020-01-02", "02.01.2020"),
    *("1900-01-01", "x", None),
)


@st.composite
def declarations(draw: st.DrawFn) -> Schema:
    """A column of every kind, with any of the keys that say how values are written."""
    own = st.none() | st.lists(st.sampled_from(("NA", "-99", "1900-01-01", "x", " . ")), max_size=3, unique=True).map(
        tuple
    )
    number = {
        "prefix": draw(st.sampled_from(("", "€"))),
        "suffix": draw(st.sampled_from(("", "%"))),
        "parentheses": draw(st.booleans()),
        **draw(
            st.sampled_from(
                ({}, {"decimal": ",", "thousands": "."}, {"thousands": ","}, {"decimal": ",", "thousands": " "})
            )
        ),
    }
    day = {
        "lower": dt.date(2020, 1, 1),
        "upper": dt.date(2020, 12, 31),
        "format": draw(st.sampled_from((None, "%d.%m.%Y"))),
    }
    missing = {name: {"missing": draw(st.booleans()), "missing_values": draw(own)} for name in "abcdefg"}
    columns = (
        Category(name="a", labels=("Yes", "straße", "1"), ignore_case=draw(st.booleans()), **missing["a"]),
        Category(name="b", labels=("Yes", "null"), other="else", ignore_case=draw(st.booleans()), **missing["b"]),
        Boolean(name="c", **missing["c"]),
        Integer(name="d", lower=-10, upper=2000, bins=UniformBins(5), special=(99,), **number, **missing["d"]),
        Float(name="e", lower=-10.0, upper=2000.0, bins=UniformBins(5), **number, **missing["e"]),
        Date(name="f", bins=UniformBins(3), **day, **missing["f"]),
        OpenCategory(name="g", **missing["g"]),
    )
    return Schema(columns, Unit(), missing_values=draw(own))


@settings(max_examples=6, deadline=None)
@given(declarations())
def test_values_get_the_same_codes_everywhere_however_they_are_written(
    tmp_path_factory: pytest.TempPathFactory, schema: Schema
) -> None:
    folder = tmp_path_factory.getbasetemp()
    table = pa.table({name: pa.array(VALUES, pa.string()) for name in schema.names})
    labels = open_table(table, schema).label_counts("g").labels
    codecs = [TableCodec.of(schema, {"g": labels}, judging=judging) for judging in (False, True)]
    ones = [codecs[0].domain.clique([name]) for name in schema.names]
    expected = [{clique: by_hand(codec, table, clique) for clique in ones} for codec in codecs]
    for name, place in PLACES.items():
        opened = open_table(place(table, folder), schema, threads=1)
        assert opened.label_counts("g").labels == labels, name
        found = [opened.bind(codec).counts(ones) for codec in codecs]
        assert [{clique: counts.tolist() for clique, counts in each.items()} for each in found] == expected, name


def test_what_means_no_value_is_no_label() -> None:
    jobs = ["cook", "NA", " N/A ", "cook", ".", "na", "-9.0"]
    table = pa.table({"job": pa.array(jobs, pa.string())})
    for own, found in (
        (None, ("-9", "cook", "na")),
        ((), ("-9", ".", "N/A", "NA", "cook", "na")),
        (("-9",), (".", "N/A", "NA", "cook", "na")),
    ):
        schema = Schema((OpenCategory(name="job", missing_values=own),), Unit())
        assert open_table(table, schema).label_counts("job").labels == found
        schema = Schema((OpenCategory(name="job"),), Unit(), missing_values=own)
        assert open_table(table, schema).label_counts("job").labels == found
