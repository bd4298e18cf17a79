"""A schema's text changed as a form changes it: any column, in any order, with a way back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import SchemaError
from understudy.schema import Schema
from understudy.schema.document import schema_from_text
from understudy.schema.edit import SchemaEditor

TEXT = """\
# A comment that stays.
understudy: 1
unit: {column: id, rows: DECIDE}  # guess: id seems to tell people apart
columns:
  # Left out: note; its name suggests free text.
  sex: {kind: category, labels: [f, m]}  # guess: sex
  age:
    kind: integer
    lower: 0  # guess: by its name
    upper: DECIDE  # the greatest value that can occur
  day: {kind: date, lower: 2020-01-01, upper: 2020-12-31, bins: {private: 8}}
"""
PRINTABLE = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=20)


@pytest.fixture
def editor() -> SchemaEditor:
    return Schema.edit(TEXT)


def finish(editor: SchemaEditor) -> SchemaEditor:
    assert editor.protect() == []
    assert editor.state("age", {"lower": "0", "upper": "99"}) == []
    assert editor.confirm("sex") == []
    return editor


def test_columns_tell_what_is_said_open_and_wrong(editor: SchemaEditor) -> None:
    sex, age, day = editor.columns
    assert sex.said == {"kind": "category", "labels": ("f", "m")}
    assert [one.hint for one in sex.open] == ["sex"]
    assert [one.key for one in age.open] == ["lower", "upper"]
    assert len(age.problems) == 2
    assert day.problems == day.open == ()
    assert day.said["bins"] == "{private: 8}"
    assert editor.unit == {"column": "id", "rows": "DECIDE"}
    assert editor.left_out == ("note; its name suggests free text.",)


def test_a_form_finishes_a_schema_and_comments_stay(editor: SchemaEditor) -> None:
    finish(editor)
    assert editor.problems == ()
    assert editor.text.startswith("# A comment that stays.\n")
    assert "# Left out: note" in editor.text
    known = schema_from_text(editor.text, "schema")
    assert known.unit.column is None
    assert known.column("age").upper == 99


def test_every_step_can_be_undone(editor: SchemaEditor) -> None:
    finish(editor)
    assert editor.drop("day") == []
    assert editor.forbid({"sex": ["f"], "age": ["1"]}) == []
    while editor.undo():
        pass
    assert editor.text == TEXT


def test_a_guess_of_one_key_is_confirmed_by_stating_it(editor: SchemaEditor) -> None:
    editor.state("age", {"lower": "1"})
    assert [one.key for one in editor.columns[1].open] == ["upper"]
    editor.state("sex", {"title": "Sex"})
    assert [one.hint for one in editor.columns[0].open] == ["sex"], "a title confirms no guess of the whole column"


def test_stating_the_same_kind_takes_nothing_away(editor: SchemaEditor) -> None:
    editor.state("day", {"kind": "date", "upper": "2021-12-31"})
    assert editor.columns[2].said["bins"] == "{private: 8}"
    editor.state("day", {"kind": "category"})
    assert editor.columns[2].said == {"kind": "category", "labels": "DECIDE"}


@pytest.mark.parametrize(
    ("bins", "said", "left"),
    [
        ("121", {"lower": "0", "upper": "98"}, "99"),
        ("[0, 20, 65, 120]", {"upper": "60"}, ("0", "20", "60")),
        ("[0, 20, 65, 120]", {"upper": "120.0", "title": "Age"}, ("0", "20", "65", "120")),
        ("[0, 20, 65, 120]", {"upper": "60", "bins": "[0, 60]"}, ("0", "60")),
        ("[0, 20, 65, 120]", {"title": "Age"}, ("0", "20", "65", "120")),
        *[
            ("[0, 20, 65, 120]", {"upper": upper}, ("0", "20", "65", "120"))
            for upper in ("-5", "nan", "inf", "old", "")
        ],
        ("[[0, 20], 120]", {"upper": "60"}, "[[0, 20], 120]"),
        ("many", {"upper": "60"}, "many"),
    ],
)
def test_bins_follow_the_bounds_of_a_form_that_has_no_field_for_them(
    bins: str, said: dict[str, str], left: object
) -> None:
    text = f"understudy: 1\nunit: row\ncolumns:\n  age: {{kind: integer, lower: 0, upper: 120, bins: {bins}}}\n"
    editor = Schema.edit(text)
    assert editor.state("age", said) == []
    assert editor.columns[0].said["bins"] == left


def test_an_empty_field_takes_the_key_out(editor: SchemaEditor) -> None:
    editor.state("day", {"title": "The day", "note": "the form"})
    editor.state("day", {"title": "", "description": ""})
    assert "title" not in editor.columns[2].said
    assert editor.columns[2].said["note"] == "the form"


def test_what_is_wrong_is_written_and_told(editor: SchemaEditor) -> None:
    finish(editor)
    assert editor.state("age", {"upper": "many, or {more}"}) == []
    (problem,) = editor.problems
    assert "columns.age.upper" in problem.where


@pytest.mark.parametrize("said", ["a\nb", "a\0b", "\x1b[1m"])
def test_what_cannot_be_seen_is_refused(editor: SchemaEditor, said: str) -> None:
    assert editor.state("day", {"note": said})
    assert editor.text == TEXT


def test_a_column_that_something_names_has_to_stay(editor: SchemaEditor) -> None:
    finish(editor)
    editor.forbid({"sex": ["f"], "age": ["1"]}, "public")
    before = editor.text
    assert "A rule names" in editor.drop("sex")[0]
    assert editor.drop("nothing") == ["There is no such column."]
    assert editor.text == before


@pytest.mark.parametrize("rules", ["", "rules: []\n", "rules: [{impossible: {sex: [f], b: [x]}}]\n"])
def test_a_rule_is_added_however_rules_are_written(rules: str) -> None:
    text = "understudy: 1\nunit: row\ncolumns:\n  sex: {kind: category, labels: [f, m]}\n"
    editor = Schema.edit(f"{text}  b: {{kind: category, labels: [x, y, 'no']}}\n{rules}")
    before = rules.count("impossible")
    for value in ("y", "no"):
        assert editor.forbid({"sex": ["m"], "b": [value]}, "it's known") == []
    known = schema_from_text(editor.text, "schema")
    assert len(known.rules) == before + 2
    assert known.rules[-1].when == {"sex": ("m",), "b": ("no",)}
    assert known.rules[-1].note == "it's known"


def test_a_text_that_is_no_yaml_changes_nothing(editor: SchemaEditor) -> None:
    assert editor.replace("columns: [") != []
    assert editor.text == TEXT
    with pytest.raises(SchemaError):
        Schema.edit("columns: [")


@given(labels=st.lists(PRINTABLE, min_size=1, max_size=5, unique=True), note=PRINTABLE, title=PRINTABLE)
def test_any_text_comes_back_as_it_was_typed(labels: list[str], note: str, title: str) -> None:
    editor = finish(Schema.edit(TEXT))
    assert editor.state("sex", {"labels": labels, "note": note, "title": title}) == []
    said = editor.columns[0].said
    assert said["labels"] == tuple(labels)
    assert (said["note"], said["title"]) == (note, title)
    assert [one.name for one in editor.columns] == ["sex", "age", "day"]


@given(upper=st.text(st.characters(exclude_categories=("C", "Z")), max_size=12))
def test_no_bound_changes_another_column(upper: str) -> None:
    editor = finish(Schema.edit(TEXT))
    before = editor.text
    if editor.state("day", {"upper": upper}):
        assert editor.text == before
        return
    assert [one.name for one in editor.columns] == ["sex", "age", "day"]
    assert editor.columns[0].said == {"kind": "category", "labels": ("f", "m")}
    assert set(editor.columns[2].said) <= {"kind", "lower", "upper", "bins"}
