import datetime as dt

import pytest

from understudy.errors import Problem
from understudy.schema.document import Reader
from understudy.schema.yaml_text import Entries, Leaf, YamlList


@pytest.fixture
def reader() -> Reader:
    return Reader("f")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("integer", "-3", -3),
        ("float", "1e3", 1000.0),
        ("date", "2020-02-29", dt.date(2020, 2, 29)),
        ("time", "08:30", dt.time(8, 30)),
        ("datetime", "2020-02-29 08:30", dt.datetime(2020, 2, 29, 8, 30)),
        ("datetime", "2020-02-29T08:30:01Z", dt.datetime(2020, 2, 29, 8, 30, 1, tzinfo=dt.UTC)),
    ],
)
def test_points_are_read_by_kind(reader: Reader, kind: str, text: str, value: object) -> None:
    assert reader.point(Leaf(text, 1), "x", kind) == value
    assert reader.problems == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("integer", "1.0"),
        ("float", "one"),
        ("date", "20200229"),
        ("date", "2020-W01-1"),
        ("date", "2021-02-29"),
        ("time", "24:00"),
        ("time", "8"),
        ("datetime", "2020-02-29"),
        ("datetime", "2020-02-29T08:30:00.5"),
        ("integer", ""),
    ],
)
def test_other_forms_are_problems(reader: Reader, kind: str, text: str) -> None:
    assert reader.point(Leaf(text, 7), "x", kind) is None
    assert [problem.where for problem in reader.problems] == ["f:7: x"]


def test_every_bad_item_of_a_list_is_a_problem(reader: Reader) -> None:
    items = YamlList((Leaf("a", 1), Leaf("true", 2), Leaf("", 3), YamlList((), 4)), 1)
    assert reader.texts(items, "x") is None
    assert [problem.where for problem in reader.problems] == ["f:2: x", "f:3: x", "f:4: x"]


def test_maps_are_read_by_text(reader: Reader) -> None:
    entries = Entries(((Leaf("a", 1), Leaf("1", 1)), (Leaf("b", 2), Leaf("2.5", 2))), 1)
    assert reader.number_map(entries, "x") == {"a": 1.0, "b": 2.5}
    assert reader.text_map(entries, "x") == {"a": "1", "b": "2.5"}
    assert reader.number_map(Entries(((Leaf("a", 1), Leaf("z", 1)),), 1), "x") is None


def test_rule_labels_follow_the_kind_of_column(reader: Reader) -> None:
    assert reader.rule_label(Leaf("~", 1), "x", "category") == (None,)
    assert reader.rule_label(Leaf("true", 1), "x", "boolean") == ("true",)
    assert reader.rule_label(Leaf("0999", 1), "x", "integer") == ("999",)
    assert reader.rule_label(Leaf("999", 1), "x", "float") == ("999.0",)
    assert reader.rule_label(Leaf("0999", 1), "x", "category") == ("0999",)
    assert reader.rule_label(Leaf("true", 1), "x", "category") == ()


def test_problems_are_located_at_the_closest_key(reader: Reader) -> None:
    reader.lines.update({"columns.a": 3, "columns.a.upper": 5})
    wheres = ("columns.a.upper", "columns.a.lower", "columns['b.c'].lower", "title")
    lines = [reader.located(Problem(where, "rule")).where for where in wheres]
    assert lines == ["f:5: columns.a.upper", "f:3: columns.a.lower", "f: columns['b.c'].lower", "f: title"]
