import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schema.strategies import names
from understudy.errors import SchemaError
from understudy.schema import Boolean, Category, Date, Datetime, Float, Integer, Schema, Time, Unit
from understudy.schema.document import schema_from_text
from understudy.schema.draft import draft_schema

HEADER = [
    ("person_id", "int64"),
    ("age", "uint8"),
    ("income", "double"),
    ("ratio", "float"),
    ("birth_date", "string"),
    ("seen", "timestamp[us, tz=Europe/Berlin]"),
    ("made", "timestamp[ns]"),
    ("day", "date32[day]"),
    ("at", "time64[us]"),
    ("voted", "bool"),
    ("city", "dictionary<values=string, indices=int32, ordered=0>"),
    ("tags", "list<item: string>"),
    ("", "string"),
]
TYPES = ("int64", "double", "bool", "date32[day]", "timestamp[us]", "timestamp[s, tz=UTC]", "time32[s]", "string")


def problems(text: str) -> list[str]:
    with pytest.raises(SchemaError) as caught:
        schema_from_text(text, "s.yaml")
    return [str(problem) for problem in caught.value.problems]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(names(), st.sampled_from(TYPES)), min_size=1, max_size=5, unique_by=lambda pair: pair[0]))
def test_a_draft_has_one_problem_per_marker_and_no_other(header: list[tuple[str, str]]) -> None:
    text = draft_schema(header, names_are_right=True)
    markers = 1 + sum(2 if kind in ("bool", "string") else 3 for _, kind in header)
    markers -= sum(kind == "bool" for _, kind in header)
    found = problems(text)
    assert len(found) == markers, text
    assert all("still says DECIDE" in message for message in found)


def test_a_draft_becomes_a_schema_once_everything_is_decided() -> None:
    text = draft_schema(HEADER)
    answers = {
        "unit: DECIDE": "unit: {column: person_id, rows: 2}",
        "labels: DECIDE": "labels: [a, b]",
        "missing: DECIDE": "missing: false",
    }
    for question, answer in answers.items():
        text = text.replace(question, answer)
    bounds = {
        "integer": ("0", "9"),
        "float": ("0", "1"),
        "date": ("2020-01-01", "2020-12-31"),
        "datetime": ("2020-01-01T00:00:00", "2020-12-31T00:00:00"),
        "time": ("00:00", "12:00"),
    }
    lines, kind, zoned = [], "", ""
    for line in text.splitlines():
        kind = line.partition("kind: ")[2] if line.startswith("    kind") else kind
        zoned = "+00:00" if line.startswith("  seen") else "" if line.startswith("  made") else zoned
        lower, upper = bounds.get(kind, ("", ""))
        offset = zoned if kind == "datetime" else ""
        line = line.replace("lower: DECIDE", f"lower: {lower}{offset}")
        lines.append(line.replace("upper: DECIDE", f"upper: {upper}{offset}"))
    text = "\n".join(lines)
    start = text.index("  # By name this may be an id. It")
    text = text[:start] + text[text.index("  age:") :]
    schema = schema_from_text(text, "s.yaml")
    assert isinstance(schema, Schema)
    assert schema.unit == Unit("person_id", 2)
    kinds = [type(column) for column in schema.columns]
    assert kinds == [Integer, Float, Float, Category, Datetime, Datetime, Date, Time, Boolean, Category]
    storage = [column.storage for column in schema.columns]
    assert storage == ["uint8", "", "float", "", "", "timestamp[ns]", "", "", "", ""]
    assert schema.column("seen").zone == "Europe/Berlin"


def test_names_only_lead_to_comments() -> None:
    text = draft_schema(HEADER)
    assert "# By name this may be an id: person_id." in text
    assert "By name this may be a date" in text
    assert 'Left out: tags has the type "list<item: string>"' in text
    assert "Left out: a column without a usable name" in text
    assert "left out of the release" in text.splitlines()[2]
    assert "By name" not in draft_schema([("village", "string"), ("candid", "int64")])


def test_a_fixed_offset_is_no_zone() -> None:
    assert "zone: DECIDE" in draft_schema([("t", "timestamp[us, tz=+02:00]")])


def test_hostile_names_cannot_break_out_of_comments() -> None:
    text = draft_schema([("x\nunit: row # id", "list<int>"), ("y\n  evil_id", "string")])
    assert len(problems(text)) == 3


def test_a_name_that_appears_twice_is_refused() -> None:
    for vouched in (False, True):
        with pytest.raises(SchemaError, match="appears twice"):
            draft_schema([("a", "string"), ("a", "int64")], names_are_right=vouched)


@pytest.mark.parametrize(
    "row",
    [
        ["Zaphod", "F", "31", "Rome"],
        ["Zaphod", "F", "2001-02-03", "Rome"],
        ["Zaphod", "F", "zaphod@example.org", "Rome"],
        ["Zaphod", "", "", "Rome"],
        ["Zaphod", "Rome", "nurse", "Rome"],
        ["Zaphod", "F", "NA", "Rome"],
    ],
)
def test_names_that_look_like_a_row_are_refused_and_not_shown(row: list[str]) -> None:
    header = [(value, "string") for value in row]
    with pytest.raises(SchemaError) as caught:
        draft_schema(header)
    assert "names_are_right=True" in str(caught.value)
    assert not any(value in str(caught.value) for value in row if len(value) > 1)


def test_names_that_a_person_vouches_for_are_taken() -> None:
    header = [("country", "string"), ("2019", "int64"), ("2020", "int64")]
    with pytest.raises(SchemaError, match="2 of its 3 columns"):
        draft_schema(header)
    text = draft_schema(header, names_are_right=True)
    assert '"2019":' in text
    assert len(problems(text)) == 9
