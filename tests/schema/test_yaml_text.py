"""Tests of `understudy.schema.yaml_text`."""

import datetime as dt

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.schema.strategies import labels
from understudy.errors import Problem, SchemaError
from understudy.schema import Category, Float, Impossible, Schema, Time, Unit, yaml_text
from understudy.schema.document import Reader
from understudy.schema.yaml_text import Entries, Leaf, YamlList, parse_yaml, schema_to_text, text_token


def test_scalars_keep_their_text_line_and_quotes() -> None:
    tree = parse_yaml("a: 007\nb: ['yes', ~]\n", "f")
    assert tree == Entries(
        (
            (Leaf("a", 1), Leaf("007", 1)),
            (Leaf("b", 2), YamlList((Leaf("yes", 2, plain=False), Leaf("~", 2)), 2)),
        ),
        1,
    )


@pytest.mark.parametrize("text", ["yes", "no", "on", "off", "y", "n", "2020-01-01", "1:30", "0x10", "1_000", "=", "<<"])
def test_words_of_older_yaml_are_text(text: str) -> None:
    leaf = Leaf(text, 1)
    assert (leaf.null, leaf.boolean, leaf.whole, leaf.real) == (False, None, None, None)


def test_core_scalars_have_a_meaning_only_without_quotes() -> None:
    assert [Leaf(text, 1).null for text in ("", "~", "null", "NULL", "nil")] == [True] * 4 + [False]
    assert [Leaf(text, 1).boolean for text in ("true", "FALSE", "tRUE")] == [True, False, None]
    assert [Leaf(text, 1).whole for text in ("12", "-7", "+3", "1.0", "²")] == [12, -7, 3, None, None]
    assert [Leaf(text, 1).real for text in ("1", "-.5", "1.5e-3", ".inf", "1e")] == [
        1.0,
        -0.5,
        0.0015,
        float("inf"),
        None,
    ]
    quoted = Leaf("true", 1, plain=False)
    assert (quoted.boolean, Leaf("1", 1, plain=False).whole, Leaf("", 1, plain=False).null) == (None, None, False)


def test_repeated_keys_are_all_listed() -> None:
    with pytest.raises(SchemaError) as caught:
        parse_yaml('a: 1\nb: {c: 1, c: 2}\n"a": 3\n', "f")
    assert [problem.where for problem in caught.value.problems] == ["f:2", "f:3"]


def test_nesting_up_to_the_limit_is_read() -> None:
    assert isinstance(parse_yaml("[" * 31 + "x" + "]" * 31, "f"), YamlList)
    with pytest.raises(SchemaError, match="nesting"):
        parse_yaml("[" * 32 + "x" + "]" * 32, "f")


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


@given(labels())
def test_any_text_survives_on_one_line(text: str) -> None:
    token = text_token(text)
    assert token.isprintable()
    tree = parse_yaml(f"[{token}, {token}]", "f")
    leaf = tree.values[0]
    assert isinstance(leaf, Leaf)
    assert leaf.text == text
    assert tree.values[1].text == text
    assert (leaf.null, leaf.undecided, leaf.boolean) == (False, False, None)


@given(labels())
def test_other_yaml_readers_see_the_same_text(text: str) -> None:
    assert yaml.safe_load(f"[{text_token(text)}]") == [text]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_other_yaml_readers_see_the_same_numbers(value: float) -> None:
    schema = Schema((Float(name="x", lower=-1e300, upper=1e300, special=(value,)),), Unit())
    assert yaml.safe_load(schema_to_text(schema))["columns"]["x"]["special"] == [value]


def test_the_file_is_pleasant_to_read() -> None:
    states = tuple(f"state {i}" for i in range(30))
    schema = Schema(
        (
            Category(name="sex", labels=("F", "M"), missing=False),
            Category(name="state", labels=states),
            Time(name="at"),
        ),
        Unit("person_id", 3),
        (Impossible({"sex": ("F",), "state": (None,)}, "law"),),
        title="Voters",
    )
    assert schema_to_text(schema) == (
        "understudy: 1\n"
        "title: Voters\n"
        "unit: {column: person_id, rows: 3}\n"
        "columns:\n"
        "  sex:\n"
        "    kind: category\n"
        "    labels: [F, M]\n"
        "    missing: false\n"
        "  state:\n"
        "    kind: category\n"
        "    labels: [state 0, state 1, state 2, state 3, state 4, state 5, state 6, state 7, state 8, state 9,\n"
        "      state 10, state 11, state 12, state 13, state 14, state 15, state 16, state 17, state 18, state 19,\n"
        "      state 20, state 21, state 22, state 23, state 24, state 25, state 26, state 27, state 28, state 29]\n"
        "    missing: true\n"
        "  at:\n"
        "    kind: time\n"
        "    missing: true\n"
        "rules:\n"
        "  - impossible: {sex: [F], state: [~]}\n"
        "    note: law\n"
    )


def read(text: str) -> object:
    try:
        return parse_yaml(text, "f")
    except SchemaError as error:
        return [str(problem) for problem in error.problems]


def read_by_yaml_alone(text: str) -> object:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(yaml_text, "_LONG", 1 << 30)
        return read(text)


@pytest.fixture
def every_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_text, "_LONG", 1)


BRITTLE = [*"\"\\,[]{}:#-&*!%|>'\n \t0aé\x85\u2028\ufeff\x07.~", ", ", "\n  ", '"\\', "\\u00e9", "list0", ": ", " #"]
EDITS = st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(BRITTLE), st.booleans()), max_size=3)


@pytest.mark.usefixtures("every_list")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(labels(), st.text("ab1.", min_size=1)), min_size=2, max_size=40, unique=True), EDITS)
def test_long_lists_are_read_as_yaml_reads_them(said: list[str], edits: list[tuple[int, str, bool]]) -> None:
    more = f"    other: [{', '.join(map(text_token, said))}]"
    lines = f"    labels: [{', '.join(map(text_token, said))}]".replace(", ", ",\n      ").split("\n")
    text = "\n".join(["columns:", "  a:", *lines, "  b:", more, "    note: |", "      labels: [a, b]", "end: x"])
    for place, piece, replaces in edits:
        place %= len(text)
        text = text[:place] + piece + text[place + replaces :]
    assert read(text) == read_by_yaml_alone(text)


@pytest.mark.usefixtures("every_list")
@pytest.mark.parametrize(
    "text",
    [
        "a:\n  b: [x, y]\n",
        'a:\n  b: ["\\u00e9\\x41", "]", "a, b", "#", x y,\n  -5, 2020-01-01, ~]\n  c: [a, b]',
        'a: "\n  b: [x, y]\n"\n',
        "a: |\n  b: [x, y]\nc:\n  d: [x, y]\n",
        "# a\n  b: [x, y]\n",
        "a:\n  b: [x, y]\n  c: [x, y\n",
        "a:\n  b: [x, y]\n  b: [x, y]\n",
        "list0: list0\na:\n  b: [x, y]\n  c: [list0]\n",
        'a:\n  b: ["\\ud800", x]\n',
        'a:\n  b: [x, "\\U00110000"]\n',
    ],
)
def test_lists_in_odd_places_are_read_as_yaml_reads_them(text: str) -> None:
    assert read(text) == read_by_yaml_alone(text)


@pytest.mark.usefixtures("every_list")
def test_entries_of_long_lists_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_text, "MOST_ENTRIES", 20)
    text = f"a:\n  b: [{', '.join(map(str, range(30)))}]\n"
    assert "more than 20 entries" in str(read(text))
    assert read(text) == read_by_yaml_alone(text)


def test_a_long_list_is_not_left_to_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    text = schema_to_text(Schema((Category(name="a", labels=tuple(f"label {i} é" for i in range(3000))),), Unit()))
    expected = read_by_yaml_alone(text)
    monkeypatch.setattr(yaml_text, "MOST_ENTRIES", 3100)
    seen: list[int] = []
    parsed = yaml_text._parsed
    monkeypatch.setattr(yaml_text, "_parsed", lambda short, where: seen.append(len(short)) or parsed(short, where))
    assert read(text) == expected
    assert len(seen) == 1
    assert seen[0] < 1000
