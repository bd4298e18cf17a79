"""Outcomes of values: what a run reads, told apart from what it does not; the same in every kind of table."""

import datetime as dt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.counts.places import PLACES
from understudy.codec.table import TableCodec
from understudy.counts import profile as module
from understudy.counts.opening import open_table
from understudy.counts.profile import OutcomeCodec, profile, shape_of
from understudy.schema import (
    Boolean,
    Category,
    Date,
    Float,
    Impossible,
    Integer,
    OpenCategory,
    PrivateBins,
    Range,
    Schema,
    Time,
    Unit,
)

COLUMNS = (
    Category(name="gaps", labels=("F", "M")),
    Category(name="rest", labels=("F", "M"), other="else", missing=False),
    Boolean(name="flag", missing=False),
    Integer(name="wage", lower=0, upper=99, special=(-1, 999), split=(10, 5)),
    Integer(name="cut", lower=10, upper=20, bins=PrivateBins(4)),
    Float(name="part", lower=0.5, upper=1.5),
    Date(name="day", lower=dt.date(2020, 1, 1), upper=dt.date(2020, 12, 31)),
    Time(name="clock", lower=dt.time(8), upper=dt.time(18)),
    OpenCategory(name="town"),
)
SCHEMA = Schema(COLUMNS, Unit())
VALUES: dict[str, dict[str, list[str | bytes | None]]] = {
    "gaps": {"inside": ["F", " M "], "missing": ["", None, "  "], "unreadable": ["f", "x", b"\xc3\x28"]},
    "rest": {"inside": ["F"], "outside": ["f", "else", "Zaphod"], "missing": [None, " "]},
    "flag": {"inside": ["yes", "0"], "missing": [""], "unreadable": ["perhaps"]},
    "wage": {
        "inside": ["0", "99", "-1", "999"],
        "outside": ["-2", "100", "1e9"],
        "missing": [""],
        "unreadable": ["€ 5"],
    },
    "cut": {"inside": ["10", "20"], "outside": ["9", "21"], "unreadable": ["ten"]},
    "part": {"inside": ["0.5", "1.5"], "outside": ["0.49", "1.51", "inf"], "missing": [" "], "unreadable": ["1,2"]},
    "day": {"inside": ["2020-12-31"], "outside": ["2019-12-31", "2021-01-01"], "unreadable": ["31/12/2020"]},
    "clock": {"inside": ["08:00", "18:00:00"], "outside": ["07:59:59", "23:00"], "unreadable": ["noon"]},
    "town": {"inside": ["Rome", "x" * 1024], "missing": ["", None], "unreadable": ["x" * 1025, b"\xc3\x28"]},
}


@pytest.mark.parametrize("name", VALUES)
def test_every_value_has_the_outcome_it_should(name: str) -> None:
    codec = OutcomeCodec(SCHEMA)
    for outcome, values in VALUES[name].items():
        for value in values:
            array = pa.array([value], pa.binary() if isinstance(value, bytes) else pa.string())
            (code,) = codec.encode(name, array).tolist()
            assert codec.describe(name, code) == outcome, (value, codec.describe(name, code))


def test_numbers_keep_their_outcome_in_every_storage() -> None:
    codec = OutcomeCodec(SCHEMA)
    numbers = [-2, -1, 0, 99, 100]
    for kind in (pa.int8(), pa.int64(), pa.float32(), pa.decimal128(19), pa.string()):
        array = pa.array(numbers).cast(kind)
        for form in (array, array.dictionary_encode(), pa.chunked_array([array[:2], array[2:]])):
            assert codec.encode("wage", form).tolist() == [1, 0, 0, 0, 1], (kind, form.type)
    days = pa.array([dt.date(2019, 1, 1), dt.date(2020, 1, 1), None])
    assert codec.encode("day", days).tolist() == [1, 0, 2]
    assert codec.encode("flag", pa.array([[1], None], pa.list_(pa.int8()))).tolist() == [3, 2]


def test_what_a_run_cannot_read_is_neither_inside_nor_outside() -> None:
    """The shares are those of a run: codes for missing and unreadable there are the same values as here."""
    columns = tuple(column for column in COLUMNS if column.name not in ("town", "cut", "rest"))
    schema = Schema(columns, Unit())
    run, outcomes = TableCodec.of(schema), OutcomeCodec(schema)
    words = ["", "x", "5", "2020-06-01", "12:00", "F", "true", "-7", None, "999"]
    for name in outcomes.domain.columns:
        array = pa.array(words, pa.string())
        part = "wage.size" if name == "wage" else name
        layout = run.layout(part)
        odd = np.isin(run.encode(part, array), [layout.missing_code, layout.unreadable_code])
        assert (outcomes.encode(name, array) >= 2).tolist() == odd.tolist(), name


def table(**columns: list[object]) -> pa.Table:
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


SMALL = Schema((Category(name="sex", labels=("F", "M")), Integer(name="age", lower=0, upper=99)), Unit("who", 1))
ROWS = table(
    who=["a", "a", "b", ""],
    sex=["F", "female", "Male", ""],
    age=["5", "12 years", "100", "7 years"],
)


@pytest.mark.parametrize("kind", PLACES)
def test_the_profile_is_the_same_wherever_the_table_lies(kind: str, tmp_path: Path) -> None:
    found = profile(open_table(PLACES[kind](ROWS, tmp_path), SMALL))
    assert found.rows == 4  # all of them: the bound on rows per unit is for what is released
    assert {name: one.outcomes.tolist() for name, one in found.columns.items()} == {
        "sex": [1, 0, 1, 2],
        "age": [1, 1, 0, 2],
    }
    assert found.columns["sex"].shapes == (("aaaa", 1), ("aaaaaa", 1))
    assert found.columns["age"].shapes == (("9 aaaaa", 1), ("99 aaaaa", 1))


def test_an_empty_table_has_an_empty_profile() -> None:
    found = profile(open_table(ROWS.slice(0, 0), SMALL))
    assert (found.rows, found.columns["sex"].outcomes.tolist(), found.columns["sex"].shapes) == (0, [0] * 4, ())


def test_rules_and_derived_columns_do_not_matter() -> None:
    rule = Impossible({"age": Range(0, 9), "sex": ("M",)})
    found = profile(open_table(ROWS, Schema(SMALL.columns, SMALL.unit, (rule,), unreadable="drop")))
    assert found.columns["sex"].outcomes.tolist() == [1, 0, 1, 2]


def test_shapes_hide_letters_and_digits_and_are_short() -> None:
    assert shape_of("Dr. Åse Ñandú-42/٣") == "aa. aaa aaaaa-99/9"
    assert shape_of("7" * 20) == "9" * 20
    assert shape_of("7" * 21) == "9" * 20 + "…"
    assert shape_of("-" * 30 + "x") == "-" * 20 + "…a"
    assert len(shape_of("ab, " * 1000)) == 60
    assert shape_of("\x1b[31m") == "\x1b[99a"  # spelled out when it is printed


def test_values_that_are_no_text_have_a_shape_too() -> None:
    schema = Schema((Integer(name="age", lower=0, upper=9),), Unit())
    lists = pa.table({"age": pa.array([[1], [2], None], pa.list_(pa.int8()))})
    assert profile(open_table(lists, schema)).columns["age"].shapes == (("[9]", 2),)
    raw = pa.table({"age": pa.array([b"\xc3\x28", b"\xfe"], pa.binary())})
    assert profile(open_table(raw, schema)).columns["age"].shapes == ((module.NOT_UTF8, 2),)


def test_memory_for_shapes_is_bounded_and_frequent_ones_survive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SHAPES", 16)
    monkeypatch.setattr(module, "_SHAPE_ROWS", 8)
    marks = [chr(0x2600 + place) for place in range(20)]
    values = [text for mark in marks for text in (mark * 3, "n/a", "?", mark)]
    rows = pa.table({"age": pa.array(values)})
    schema = Schema((Integer(name="age", lower=0, upper=9),), Unit())
    seen = []

    def kept(self: module._Shapes) -> tuple[tuple[str, int], ...]:
        seen.append(len(self._counts))
        return tuple(self._sorted()[:2])

    monkeypatch.setattr(module._Shapes, "most_frequent", kept)
    first, again = (profile(open_table(rows, schema)).columns["age"].shapes for _ in range(2))
    assert first == again == (("?", 20), ("a/a", 20))
    assert max(seen) <= 16


def test_declared_forms_and_missing_texts_are_read_as_a_run_reads_them() -> None:
    schema = Schema(
        (
            Category(name="sex", labels=("F", "M"), ignore_case=True),
            Float(name="price", lower=0, upper=2000, decimal=",", thousands=".", suffix="€"),
            Integer(name="age", lower=0, upper=99, missing_values=("-99", "unknown")),
        ),
        Unit(),
    )
    codec = OutcomeCodec(schema)
    cells = {
        "sex": (["f", "NA", "x"], ["inside", "missing", "unreadable"]),
        "price": (["1.234,50 €", "2.000,01 €", "1,234.5"], ["inside", "outside", "unreadable"]),
        "age": (["-99", "-98", "unknown", "NA"], ["missing", "outside", "missing", "unreadable"]),
    }
    for name, (values, expected) in cells.items():
        codes = codec.encode(name, pa.array(values)).tolist()
        assert [codec.describe(name, code) for code in codes] == expected, name
