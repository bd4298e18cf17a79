from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schema.strategies import names
from understudy.errors import SchemaError, UsageError
from understudy.schema import Boolean, Category, Date, Datetime, Float, Integer, OpenCategory, Schema, Time, Unit
from understudy.schema.codebooks import ColumnFacts
from understudy.schema.columns import UniformBins
from understudy.schema.document import schema_from_text
from understudy.schema.draft import Draft, draft_schema, open_places

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
def test_a_draft_has_one_problem_per_open_place_and_no_other(header: list[tuple[str, str]]) -> None:
    text = draft_schema(header, names_are_right=True)
    opened = open_places(text)
    found = problems(text)
    told = [message for message in found if "still says DECIDE" in message or "is a guess" in message]
    assert len(told) == len(opened), text
    left = set(found) - set(told)
    assert not left or (len(left) == 1 and "columns" in next(iter(left))), text  # a draft that leaves out everything


def confirmed(text: str, **decided: str) -> str:
    """The draft with every guess confirmed and the DECIDE of each key replaced."""
    for key, value in decided.items():
        text = text.replace(f"{key}: DECIDE", f"{key}: {value}")
    return "\n".join(line.partition("  # guess:")[0] for line in text.splitlines())


def test_a_draft_becomes_a_schema_once_everything_is_decided() -> None:
    text = draft_schema(HEADER)
    schema = schema_from_text(confirmed(text, rows="2", lower="0", upper="1"), "s.yaml")
    assert isinstance(schema, Schema)
    assert schema.unit == Unit("person_id", 2)
    assert {column.name: type(column) for column in schema.columns} == {
        "age": Integer,
        "income": Float,
        "ratio": Float,
        "birth_date": Date,
        "seen": Datetime,
        "made": Datetime,
        "day": Date,
        "at": Time,
        "voted": Boolean,
        "city": OpenCategory,
    }
    storage = [column.storage for column in schema.columns]
    assert storage == ["uint8", "", "float", "string", "", "timestamp[ns]", "", "", "", ""]
    assert schema.column("seen").zone == "Europe/Berlin"


def test_what_a_name_suggests_is_a_guess_and_what_cannot_be_kept_is_said() -> None:
    text = draft_schema(HEADER)
    assert "unit: {column: person_id, rows: DECIDE}  # guess: person_id seems to identify people" in text
    assert "  age: {kind: integer, lower: 0, upper: 120" in text
    assert "# Left out: person_id; its name suggests an id." in text
    assert 'Left out: tags has the type "list<item: string>"' in text
    assert "Left out: a column without a usable name" in text
    plain = draft_schema([("village", "string"), ("candid", "int64")])
    assert [place.column for place in open_places(plain) if place.guess] == ["village"]
    assert "  candid:\n    kind: integer\n    lower: DECIDE" in plain


def test_the_likeliest_id_is_offered_as_the_unit() -> None:
    def unit(*names: str, facts: tuple[ColumnFacts, ...] = ()) -> str:
        text = draft_schema([(name, "string") for name in names], facts=facts)
        return next(line for line in text.splitlines() if line.startswith("unit:"))

    assert unit("row_id", "patient_id", "age").startswith("unit: {column: patient_id, rows: DECIDE}  # guess: ")
    assert unit("SEQN", "age").startswith("unit: {column: SEQN, rows: DECIDE}")
    told = ColumnFacts("brillig", {}, "the form", left_out="an identifier, as the codebook says")
    assert unit("age", "brillig", facts=(told,)).startswith("unit: {column: brillig, rows: DECIDE}")
    assert unit("age", "sex") == "unit: DECIDE"


def test_in_a_text_file_an_unknown_name_is_no_category() -> None:
    text = draft_schema([("brillig", "string"), ("toves", "string")])
    assert text.count("kind: DECIDE") == 2
    assert "labels: DECIDE" not in text
    typed = draft_schema([("brillig", "string"), ("toves", "double")])
    assert "  brillig: {kind: open_category}  # guess: stored as text" in typed
    assert "  toves:\n    kind: float\n    lower: DECIDE" in typed


FACTS = [
    ColumnFacts("Age", {"kind": "integer", "lower": 18, "title": "Age at entry"}, "the codebook book.csv"),
    ColumnFacts("mood", {"kind": "category", "labels": ("1", "2"), "meanings": {"1": "good"}}, "the codebook book.csv"),
    ColumnFacts("age", {"kind": "integer", "lower": 0, "upper": 99, "missing": False}, "the public table old.csv"),
    ColumnFacts("mood", {"kind": "integer", "lower": 1, "missing": True}, "the public table old.csv"),
    ColumnFacts("elsewhere", {"kind": "boolean"}, "the public table old.csv"),
]


def test_facts_are_taken_over_with_their_source_and_the_first_is_believed() -> None:
    text = draft_schema([("age", "string"), ("mood", "string")], facts=FACTS, unit=Unit())
    assert open_places(text) == []
    schema = schema_from_text(text, "s.yaml")
    both = "from the codebook book.csv and the public table old.csv"
    assert schema.column("age") == Integer(
        name="age", lower=18, upper=99, title="Age at entry", missing=False, note=both
    )
    assert schema.column("mood") == Category(name="mood", labels=("1", "2"), meanings={"1": "good"}, note=both)
    assert "the codebook book.csv, the public table old.csv" in text.splitlines()[0]


def test_what_facts_leave_out_is_a_stub_of_the_right_kind() -> None:
    facts = [
        ColumnFacts("age", {"kind": "integer", "lower": 18}, "the form"),
        ColumnFacts("shoes", {"kind": "float", "upper": 9.5}, "the form"),
        ColumnFacts("mood", {"kind": "category"}, "the form"),
        ColumnFacts("sold", {"title": "Day of sale"}, "the form", storage="date32[day]"),
    ]
    header = [(name, "string") for name in ("age", "shoes", "mood", "sold")]
    text = draft_schema(header, facts=facts, unit=Unit())
    assert "    lower: 18\n    upper: 120  # guess: years of age" in text
    assert "    lower: DECIDE  # the least value that can occur\n    upper: 9.5" in text
    assert "    kind: category\n    labels: DECIDE" in text
    assert [(place.column, place.key) for place in open_places(text)] == [
        ("age", "upper"),
        ("shoes", "lower"),
        ("mood", "labels"),
        ("sold", ""),
    ]


def test_facts_that_contradict_themselves_or_are_about_another_table_are_refused() -> None:
    upside = ColumnFacts("age", {"kind": "integer", "lower": 9, "upper": 1}, "the codebook b.csv")
    with pytest.raises(SchemaError, match=r"the codebook b\.csv: columns\.age\.upper"):
        draft_schema([("age", "string")], facts=[upside])
    with pytest.raises(SchemaError, match="names none of the table's columns"):
        draft_schema([("age", "string")], facts=[ColumnFacts("zebra", {"kind": "boolean"}, "the codebook b.csv")])


def test_a_draft_is_saved_once(tmp_path: Path) -> None:
    made = Draft(draft_schema([("age", "string")], unit=Unit()))
    assert [place.column for place in made.open] == ["age"]
    with pytest.raises(SchemaError, match="is a guess"):
        made.schema()
    made.save(tmp_path / "s.yaml")
    assert (tmp_path / "s.yaml").read_text(encoding="utf-8") == str(made)
    with pytest.raises(UsageError, match="never overwritten"):
        made.save(tmp_path / "s.yaml")


def test_a_fixed_offset_is_no_zone() -> None:
    assert "zone: DECIDE" in draft_schema([("t", "timestamp[us, tz=+02:00]")])


def test_hostile_names_cannot_break_out_of_comments() -> None:
    text = draft_schema([("x\nunit: row # id", "list<int>"), ("y\n  evil_id", "string"), ("z\n# guess: a", "int64")])
    assert [(place.column, place.key) for place in open_places(text)] == [
        ("", "unit"),
        ("", "unit.rows"),
        ("z\n# guess: a", "lower"),
        ("z\n# guess: a", "upper"),
    ]


def test_a_name_that_appears_twice_is_refused() -> None:
    for vouched in (False, True):
        with pytest.raises(SchemaError, match=r"columns 1 and 3 have the same name") as caught:
            draft_schema([("abc", "string"), ("b", "int64"), ("abc", "int64")], names_are_right=vouched)
        assert "abc" not in str(caught.value)


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
    assert len(problems(text)) == 1 + 1 + 4


def test_zeros_are_pointed_out_where_bounds_were_stated() -> None:
    def drafted(**said: object) -> str:
        return draft_schema([("wob", "string")], facts=[ColumnFacts("wob", said, "the form")], unit=Unit())

    hint = "    # special: [0] gives exact zeros a code of their own, if many rows hold one\n"
    assert drafted(kind="integer", lower=0, upper=100).endswith(hint)
    assert drafted(kind="float", lower=-1.0, upper=1.0).endswith(hint)
    assert open_places(drafted(kind="float", lower=0.0, upper=1.0)) == []
    others = ({"upper": 99}, {"lower": 1, "upper": 500}, {"special": (0,)}, {"bins": UniformBins(7)})
    for said in others:
        assert hint not in drafted(kind="integer", **{"lower": 0, "upper": 500, **said})
    assert hint not in draft_schema([("fee", "string"), ("age", "string")])


def test_a_fact_in_doubt_is_a_guess() -> None:
    fact = ColumnFacts("mood", {"kind": "category", "labels": ("a",)}, "the form", doubt="all?")
    (place,) = open_places(draft_schema([("mood", "string")], facts=[fact], unit=Unit()))
    assert (place.column, place.hint) == ("mood", "all?")


def test_the_unit_that_a_title_names_is_what_numbers_are_measured_in() -> None:
    facts = [
        ColumnFacts("a", {"kind": "float", "lower": 0.0, "upper": 9.0, "title": "Load (kg)"}, "the form"),
        ColumnFacts("fee", {"title": "Fee in euros"}, "the form"),
        ColumnFacts("c", {"kind": "category", "labels": ("1", "2"), "title": "Load (kg)"}, "the form"),
    ]
    text = draft_schema([(name, "string") for name in ("a", "fee", "c")], facts=facts, unit=Unit())
    schema = schema_from_text(confirmed(text), "s.yaml")
    assert (schema.column("a").measured_in, schema.column("fee").measured_in) == ("kg", "euros")
    assert text.count("measured_in") == 2


def test_positions_of_equal_names_are_told_only_where_no_name_looks_like_a_value() -> None:
    with pytest.raises(SchemaError) as caught:
        draft_schema([(value, "string") for value in ("Rome", "31", "Rome")])
    assert "same name" not in str(caught.value)
    assert "header=False with names=" in str(caught.value)
