"""Filling in a schema file: the text changes where the answer stands, and answers that cannot be are refused."""

import os
from pathlib import Path

import pytest

from understudy.errors import SchemaError
from understudy.schema.document import schema_from_text
from understudy.schema.draft import draft_schema
from understudy.schema.edit import SchemaEditor, save_text

TEXT = """\
# A head that stays.
understudy: 1
unit: {column: patient, rows: DECIDE}  # guess: patient tells people apart
columns:
  age: {kind: integer, lower: 0, upper: 120}  # guess: years of age
  # a remark that stays
  sex:  # guess: as on most forms
    kind: category
    labels: [F,
      M]
  code:
    kind: DECIDE
    labels: DECIDE  # the list
    missing: true   # kept
  weight:
    kind: float
    lower: DECIDE  # in kg
    upper: 300  # from the form # guess: in kg
    missing: DECIDE
"""


def column(*lines: str, text: str = "") -> str:
    return "understudy: 1\nunit: row\ncolumns:\n  a:\n" + "".join(f"    {line}\n" for line in lines) + text


def walked(text: str, *answers: str) -> SchemaEditor:
    editor = SchemaEditor(text)
    for answer in answers:
        assert editor.answer(answer) == [], answer
    return editor


def test_a_walk_settles_every_place_and_touches_nothing_else() -> None:
    editor = walked(TEXT, "", "3", "", "", "date", "2020-01-01", "2021-12-31", "0", "", "no")
    assert (editor.left, editor.question(), editor.answered) == (0, None, 10)
    expected = TEXT.replace("rows: DECIDE}  # guess: patient tells people apart", "rows: 3}")
    expected = expected.replace("  # guess: years of age", "").replace("  # guess: as on most forms", "")
    expected = expected.replace(
        "    kind: DECIDE\n    labels: DECIDE  # the list\n",
        "    kind: date\n    lower: 2020-01-01\n    upper: 2021-12-31\n",
    )
    expected = expected.replace("lower: DECIDE  # in kg", "lower: 0  # in kg").replace(" # guess: in kg", "")
    assert editor.text == expected.replace("missing: DECIDE", "missing: false")
    schema = schema_from_text(editor.text, "the walk")
    assert (schema.unit.rows, schema.column("weight").missing, schema.column("code").kind) == (3, False, "date")


def test_questions_tell_what_is_asked_and_what_was_guessed() -> None:
    editor = SchemaEditor(TEXT)
    found = []
    while (question := editor.question()) is not None:
        found.append((question.subject, question.kind, question.default, question.hint))
        editor.skip()
    assert found == [
        ("unit", "", "{column: patient, rows: DECIDE}", "patient tells people apart"),
        ("unit.rows", "", "", "patient tells people apart"),
        ("age", "integer", "{kind: integer, lower: 0, upper: 120}", "years of age"),
        ("sex", "category", "{kind: category, labels: [F, M]}", "as on most forms"),
        ("code · kind", "", "", ""),
        ("code · labels", "", "", "the list"),
        ("weight · lower", "float", "", "in kg"),
        ("weight · upper", "float", "300", "in kg"),
        ("weight · missing", "float", "", ""),
    ]
    assert editor.text == TEXT


@pytest.mark.parametrize(
    ("lines", "answer", "reason"),
    [
        (("kind: integer", "lower: 5", "upper: DECIDE", "missing: DECIDE"), "3", "must be above lower (5)"),
        (("kind: integer", "lower: DECIDE", "upper: 9"), "many", "must be a whole number"),
        (("kind: date", "lower: DECIDE", "upper: DECIDE"), "31/12/2020", "a date such as 2020-12-31"),
        (("kind: boolean", "missing: DECIDE"), "perhaps", "true or false"),
        (("kind: DECIDE",), "number", "is not a kind of column"),
        (("kind: category", "labels: DECIDE"), "a, a", "twice"),
        (("kind: category", "labels: DECIDE"), "[a, b", "is not valid YAML"),
        (("kind: category", "labels: DECIDE"), "", "nothing to accept"),
        (("kind: category", "labels: DECIDE"), "DECIDE", "leaves it open"),
        (("kind: category", "labels: DECIDE"), "a\x1b[A", "cannot be seen"),
        (("kind: category", "labels: DECIDE"), "a\udcff", "cannot be seen"),
        (("kind: integer", "lower: 7", "upper: 3  # guess: x"), "", "must be above lower (7)"),
    ],
)
def test_answers_that_cannot_be_are_refused_with_the_reason(lines: tuple[str, ...], answer: str, reason: str) -> None:
    editor = SchemaEditor(column(*lines))
    found = editor.answer(answer)
    assert reason in " ".join(found)
    assert (editor.text, editor.answered) == (column(*lines), 0)


def test_an_answer_is_not_refused_for_what_others_have_done() -> None:
    rule = "rules:\n  - impossible: {a: {from: 0, to: 3}}\n"
    text = column("kind: integer", "lower: 0", "upper: 9", "bins: 2", "missing: DECIDE", text=rule)
    editor = walked(text, "true")
    with pytest.raises(SchemaError, match="rules"):
        schema_from_text(editor.text, "s")
    worse = column("kind: integer", "lower: 9", "upper: 3", text="  b: {kind: boolean, missing: DECIDE}\n")
    assert walked(worse, "n").left == 0


@pytest.mark.parametrize(
    ("key", "answer", "written"),
    [
        ("labels", "F, M", "[F, M]"),
        ("labels", "1, 2", '["1", "2"]'),
        ("labels", """'a, b' , "c" """, """['a, b', "c"]"""),
        ("labels", "don't, won't", """["don't", "won't"]"""),
        ("labels", "yes, no", '["yes", "no"]'),
        ("labels", "[x y, 'u']", "[x y, 'u']"),
        ("labels", "ward #7", '["ward #7"]'),
        ("labels", "F, M,", "[F, M]"),
    ],
)
def test_lists_need_no_brackets(key: str, answer: str, written: str) -> None:
    assert f"    {key}: {written}\n" in walked(column("kind: category", f"{key}: DECIDE"), answer).text


def test_text_that_yaml_would_read_otherwise_is_quoted() -> None:
    text = column("kind: boolean", "note: DECIDE")
    for said in ("see #7", "a: b", "- dash", "| bar", "% sign"):
        assert schema_from_text(walked(text, said).text, "s").column("a").note == said
    flow = "understudy: 1\nunit: row\ncolumns:\n  a: {kind: boolean, note: DECIDE}\n"
    assert schema_from_text(walked(flow, "forms 7, 8 [old]").text, "s").column("a").note == "forms 7, 8 [old]"


def test_a_kind_brings_the_keys_it_needs_and_takes_open_ones_it_has_not() -> None:
    editor = walked(column("kind: category  # guess: text", "labels: DECIDE", "missing: DECIDE"), "integer")
    assert editor.text == column("kind: integer", "lower: DECIDE", "upper: DECIDE", "missing: DECIDE")
    flow = "understudy: 1\nunit: row\ncolumns:\n  a: {kind: DECIDE, labels: DECIDE, missing: true}\n"
    assert (
        walked(flow, "float").text.splitlines()[-1] == "  a: {kind: float, lower: DECIDE, upper: DECIDE, missing: true}"
    )
    stated = SchemaEditor(column("kind: DECIDE", "labels: [x, y]"))
    assert "is not a key that belongs here" in " ".join(stated.answer("integer"))
    assert stated.answer("category") == []


def test_a_guess_may_be_answered_otherwise() -> None:
    editor = walked(TEXT, "row")
    assert "\nunit: row\n" in editor.text
    editor.skip()
    assert editor.answer("{kind: category, labels: [x, y]}") == []
    assert "  sex:\n    {kind: category, labels: [x, y]}\n  code:" in editor.text


def test_undo_goes_back_over_answers_and_skips() -> None:
    editor = walked(TEXT, "", "3")
    before = editor.text
    editor.skip()
    assert editor.answer("") == []
    assert (editor.undo(), editor.text, editor.question().subject) == (True, before, "sex")
    assert (editor.undo(), editor.question().subject) == (True, "age")
    assert (editor.undo(), editor.undo(), editor.undo()) == (True, True, False)
    assert (editor.text, editor.answered, editor.question().subject) == (TEXT, 0, "unit")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line_ends_stay_as_they_are(newline: str) -> None:
    text = column("kind: DECIDE", "labels: DECIDE").replace("\n", newline)
    done = walked(text, "integer", "0", "9").text
    assert done == column("kind: integer", "lower: 0", "upper: 9").replace("\n", newline)
    assert walked(column("kind: DECIDE").rstrip("\n"), "float", "0", "1").text == column(
        "kind: float", "lower: 0", "upper: 1"
    ).rstrip("\n")


def test_a_decide_that_is_marked_as_a_guess_is_asked_once() -> None:
    editor = SchemaEditor(column("kind: integer", "lower: DECIDE  # guess: none", "upper: 9"))
    assert editor.left == 1
    assert editor.answer("0") == []
    assert editor.text == column("kind: integer", "lower: 0", "upper: 9")


def test_equal_keys_in_a_list_are_settled_one_by_one() -> None:
    rules = "rules:\n  - {impossible: {a: [true]}, note: DECIDE}\n  - {impossible: {a: [false]}, note: DECIDE}\n"
    editor = walked(column("kind: boolean", text=rules), "first", "second")
    assert [rule.note for rule in schema_from_text(editor.text, "s").rules] == ["first", "second"]


def test_every_draft_can_be_walked_to_its_end() -> None:
    kinds = ("int64", "double", "bool", "date32[day]", "timestamp[us]", "time64[us]", "string")
    said = {"lower": "0", "upper": "9", "missing": "n", "labels": "x, y", "unit": "row", "kind": "open_category"}
    ends = {
        "date": ("2020-01-01", "2021-01-01"),
        "datetime": ("2020-01-01T00:00:00", "2021-01-01T00:00:00"),
        "time": ("08:00:00", "09:00:00"),
    }
    editor = SchemaEditor(draft_schema([(f"v{place}", kind) for place, kind in enumerate(kinds)]))
    for _ in range(60):
        question = editor.question()
        if question is None:
            break
        answer = said.get(question.place.key, "")
        if question.kind in ends and question.place.key in ("lower", "upper"):
            answer = ends[question.kind][question.place.key == "upper"]
        assert editor.answer("" if question.default else answer) == [], question
    assert len(schema_from_text(editor.text, "s").columns) == len(kinds)


def test_saving_replaces_the_file_in_one_step_and_keeps_its_rights(tmp_path: Path) -> None:
    path, link = tmp_path / "s.yaml", tmp_path / "link.yaml"
    path.write_bytes("\ufeffa: ä\r\n".encode())
    path.chmod(0o640)
    link.symlink_to(path)
    save_text(link, "a: ö\r\n", "a: ä\r\n")
    assert path.read_bytes() == "\ufeffa: ö\r\n".encode()
    assert (path.stat().st_mode & 0o777, link.is_symlink()) == (0o640, True)
    assert sorted(os.listdir(tmp_path)) == ["link.yaml", "s.yaml"]


def test_a_file_that_somebody_else_changed_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("theirs", encoding="utf-8")
    with pytest.raises(SchemaError, match="changed by somebody else"):
        save_text(path, "ours", "before")
    assert path.read_text(encoding="utf-8") == "theirs"


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("before", encoding="utf-8")

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("understudy.schema.edit.os.replace", stopped)
    with pytest.raises(KeyboardInterrupt):
        save_text(path, "after", "before")
    assert path.read_text(encoding="utf-8") == "before"
    assert os.listdir(tmp_path) == ["s.yaml"]


SEVERAL = """\
understudy: 1
unit: {column: who, rows: 2}
columns:
  who: {kind: DECIDE}
  first: {kind: open_category}  # guess: by its name
  # about the second
  "a: b":  # guess: text
    kind: category
    labels: [x]
    note: |
      two
      lines
  city: {kind: category, labels: [x], within: state, missing: DECIDE}
  state: {kind: category, labels: [x], missing: DECIDE}
  band: {kind: derived, cut: {column: age, edges: [0, 9], labels: [x]}, missing: DECIDE}
  age: {kind: integer, lower: 0, upper: DECIDE}
  total: {kind: derived, sum: {weights: {fee: 1}}}
  fee: {kind: float, lower: 0, upper: DECIDE}
  ruled: {kind: boolean, missing: DECIDE}
rules:
  - impossible: {ruled: [true]}
"""


def at(subject: str, text: str) -> SchemaEditor:
    """The walk through a text, with everything skipped that is asked before that place."""
    editor = SchemaEditor(text)
    while (question := editor.question()) is not None and question.subject != subject:
        editor.skip()
    assert editor.question() is not None
    return editor


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_column_that_is_left_out_becomes_a_remark(newline: str) -> None:
    text = SEVERAL.replace("\n", newline)
    editor = at("first", text)
    assert (editor.leave_out(), editor.leave_out()) == ([], [])
    first, rest = SEVERAL.index("  first:"), SEVERAL.index("  city:")
    remarks = "  # Left out: first; decided while editing.\n  # about the second\n"
    remarks += '  # Left out: "a: b"; decided while editing.\n'
    assert editor.text == (SEVERAL[:first] + remarks + SEVERAL[rest:]).replace("\n", newline)
    assert (editor.answered, editor.question().subject) == (2, "city · missing")
    assert (editor.undo(), editor.undo(), editor.text) == (True, True, text)
    assert editor.question().subject == "first"


def test_leaving_out_settles_all_places_of_a_column_skipped_ones_too() -> None:
    text = column("kind: integer", "lower: DECIDE", "upper: DECIDE", text="  b: {kind: boolean}\n")
    editor = at("a · upper", text)
    assert (editor.leave_out(), editor.left, editor.question()) == ([], 0, None)
    assert schema_from_text(editor.text, "s").names == ("b",)


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        ("who · kind", "the unit's column"),
        ("state · missing", "The column 'city' names 'state'"),
        ("age · upper", "The column 'band' names 'age'"),
        ("fee · upper", "The column 'total' names 'fee'"),
        ("ruled · missing", "A rule names 'ruled'"),
    ],
)
def test_a_column_that_is_needed_is_not_left_out(subject: str, reason: str) -> None:
    editor = at(subject, SEVERAL)
    assert reason in " ".join(editor.leave_out())
    assert editor.text == SEVERAL


def test_only_columns_are_left_out_and_one_stays() -> None:
    assert "only a column" in " ".join(SchemaEditor("understudy: 1\nunit: DECIDE\ncolumns: {}\n").leave_out())
    assert "only column" in " ".join(SchemaEditor(column("kind: DECIDE")).leave_out())
    flow = "columns: {a: {kind: DECIDE}, b: {kind: boolean}}\n"
    assert "cannot be edited here" in " ".join(SchemaEditor(flow).leave_out())


@pytest.mark.parametrize("said", ["Low, High", "[Low, High]", "labels: Low, High", "labels: [Low, High]"])
def test_a_list_is_a_category_with_these_labels(said: str) -> None:
    open_kind = column("kind: DECIDE", "missing: true", "note: form 7")
    assert walked(open_kind, said).text == column(
        "kind: category", "labels: [Low, High]", "missing: true", "note: form 7"
    )
    head = "understudy: 1\nunit: row\ncolumns:\n"
    for guess in ("{kind: open_category, most_labels: 9}", "{kind: integer, lower: 0, upper: 9}", "DECIDE"):
        done = walked(f"{head}  a: {guess}  # guess: x\n", said)
        assert done.text == f"{head}  a: {{kind: category, labels: [Low, High]}}\n"
    known = walked(f"{head}  a: {{kind: category, labels: [x], ignore_case: true}}  # guess: x\n", said)
    assert known.text == f"{head}  a: {{kind: category, labels: [Low, High], ignore_case: true}}\n"
    assert "labels: [Low, High]\n" in walked(column("kind: category", "labels: DECIDE"), said).text


@pytest.mark.parametrize("said", ["integer, 0, 9", "lower=0, upper=9", "lower 0, upper 9", "Low", "{lower: 0}"])
def test_what_may_be_meant_otherwise_is_not_taken_for_labels(said: str) -> None:
    for text in (column("kind: DECIDE"), column("kind: open_category").replace("a:", "a:  # guess: x")):
        editor = SchemaEditor(text)
        assert editor.answer(said)
        assert editor.text == text


@pytest.mark.parametrize(
    ("said", "lines"),
    [
        ("{kind: open_category}", ["kind: open_category"]),
        ("{kind: integer, lower: 0, upper: 9}", ["kind: integer", "lower: 0", "upper: 9"]),
        ("kind: integer, lower: 0", ["kind: integer", "upper: DECIDE", "lower: 0"]),
        ("{kind: float, lower: 0, upper: 1, bins: {private: 4}}", None),
        ("{kind: category, labels: ['a, b', c]}", ["kind: category", "labels: ['a, b', c]"]),
    ],
)
def test_at_a_kind_a_whole_declaration_may_be_said(said: str, lines: list[str] | None) -> None:
    lines = lines or ["kind: float", "lower: 0", "upper: 1", "bins: {private: 4}"]
    assert walked(column("kind: DECIDE", "note: x"), said).text == column(*lines, "note: x")
    flow = "understudy: 1\nunit: row\ncolumns:\n  a: {kind: DECIDE, note: x}\n"
    assert walked(flow, said).text.endswith(f"  a: {{{', '.join(lines)}, note: x}}\n")


def test_a_declaration_that_cannot_be_is_refused() -> None:
    for said in ("{kind: integer", "{kind: number}", "{kind: date, lower: 0, upper: 9}", "{}", "labels: [a, note: b"):
        editor = SchemaEditor(column("kind: DECIDE"))
        assert editor.answer(said), said
        assert editor.text == column("kind: DECIDE")


def test_where_labels_are_unknown_another_kind_may_be_said() -> None:
    text = column("kind: category", "labels: DECIDE", "missing: true")
    assert walked(text, "kind: open_category").text == column("kind: open_category", "missing: true")


@pytest.mark.parametrize(
    ("zone", "lower", "upper"),
    [
        ("", "2013-01-01T00:00:00", "2013-07-31T23:59:59"),
        ("Europe/Berlin", "2013-01-01T00:00:00+01:00", "2013-07-31T23:59:59+02:00"),
        ("UTC", "2013-01-01T00:00:00+00:00", "2013-07-31T23:59:59+00:00"),
    ],
)
def test_a_day_that_bounds_datetimes_is_its_first_or_last_second(zone: str, lower: str, upper: str) -> None:
    more = [f"zone: {zone}"] if zone else []
    done = column("kind: datetime", f"lower: {lower}", f"upper: {upper}", *more)
    text = column("kind: datetime", "lower: DECIDE", "upper: DECIDE", *more)
    assert walked(text, "2013-01-01", "2013-07-31").text == done
    text = column("kind: DECIDE", *more)
    assert walked(text, "{kind: datetime, lower: 2013-01-01, upper: 2013-07-31}").text == done
    schema_from_text(done, "s")
    guessed = column("kind: datetime", *more, "lower: DECIDE", "upper: DECIDE").replace("a:", "a:  # guess: x")
    said = "lower: 2013-01-01, upper: 2013-07-31"
    assert walked(guessed, said).text == column("kind: datetime", *more, f"lower: {lower}", f"upper: {upper}")


def test_a_day_for_a_zone_that_is_open_is_in_utc_and_one_that_never_was_is_refused() -> None:
    text = column("kind: datetime", "lower: DECIDE", "upper: DECIDE", "zone: DECIDE")
    assert "lower: 2013-01-01T00:00:00+00:00\n" in walked(text, "2013-01-01").text
    assert "must be a date and time" in " ".join(SchemaEditor(text).answer("2013-02-30"))


def test_remarks_of_a_draft_go_with_the_answer_and_those_of_people_stay() -> None:
    draft = draft_schema([("wobble", "string"), ("wibble", "string")])
    editor = at("wobble · kind", draft)
    assert editor.question().hint == ""
    assert editor.answer("integer") == []
    assert "  wobble:\n    kind: integer\n    lower: DECIDE\n" in editor.text
    typed = draft_schema([("wobble", "int64"), ("wibble", "timestamp[us, tz=UTC]")])
    done = walked(typed, "row", "0", "9", "2013-01-01", "2014-01-01").text
    assert "#" not in done.partition("columns:")[2]
    assert schema_from_text(done, "s").column("wobble").kind == "integer"
    own = column("kind: DECIDE  # category, open_category, see above")
    assert walked(own, "boolean").text == own.replace("DECIDE", "boolean")


GUESSED = """\
understudy: 1
unit: {column: who, rows: DECIDE}  # guess: by its name
columns:
  day: {kind: date, lower: 1990-01-01, upper: 2030-12-31, missing: false}  # guess: a date
  age:  # guess: years
    lower: 0  # by law
    kind: integer
    upper: 120
"""


def test_of_a_guessed_mapping_only_what_differs_need_be_said() -> None:
    editor = walked(GUESSED, "rows: 4", "upper: 2025-12-31, note: form 7: page 2", "upper: 99, bins: 5")
    expected = GUESSED.replace("rows: DECIDE}  # guess: by its name", "rows: 4}").replace("  # guess: years", "")
    expected = expected.replace(
        "2030-12-31, missing: false}  # guess: a date", '2025-12-31, missing: false, note: "form 7: page 2"}'
    )
    assert editor.text == expected.replace("    upper: 120\n", "    upper: 99\n    bins: 5\n")
    assert editor.left == 0


@pytest.mark.parametrize(
    ("guess", "answer", "bins"),
    [
        ("integer, lower: 0, upper: 120, bins: 121", "lower: 18, upper: 99", "82"),
        ("integer, lower: 0, upper: 120, bins: 121", "upper: 130", "121"),
        ("integer, lower: 0, upper: 120, bins: 121", "upper: 99, bins: 5", "5"),
        ("integer, lower: 0, upper: 5000, bins: [0, 100, 2000, 5000]", "upper: 1000", "[0, 100, 1000]"),
        ("integer, lower: 0, upper: 5000, bins: [0, 100, 2000, 5000]", "upper: 9000", "[0, 100, 2000, 5000, 9000]"),
        ("float, lower: -1.0, upper: 1.0, bins: [-1.0, -0.1, 0, 1.0]", "lower: -0.5", "[-0.5, -0.1, 0, 1.0]"),
        ("float, lower: 0, upper: 500, bins: {private: 8}", "upper: 400", "{private: 8}"),
        ("date, lower: 1990-01-01, upper: 2030-12-31, bins: 32", "upper: 2020-12-31", "32"),
    ],
)
def test_guessed_bins_follow_the_bounds_that_are_stated(guess: str, answer: str, bins: str) -> None:
    editor = walked(f"understudy: 1\nunit: row\ncolumns:\n  a: {{kind: {guess}}}  # guess: because\n", answer)
    assert f"bins: {bins}}}\n" in editor.text
    assert editor.left == 0


@pytest.mark.parametrize("answer", ["upper: -1", "upper: many", "upper: 1990-01-01"])
def test_bounds_that_cannot_be_are_refused_and_guessed_bins_stay(answer: str) -> None:
    guess = "{kind: integer, lower: 0, upper: 50, bins: [0, 10, 50]}"
    editor = SchemaEditor(f"understudy: 1\nunit: row\ncolumns:\n  a: {guess}  # guess: because\n")
    assert "columns.a.upper" in " ".join(editor.answer(answer))
    assert guess in editor.text


def test_another_kind_takes_the_guessed_keys_along() -> None:
    editor = walked(GUESSED, "", "4", "category", "a, b", "float")
    assert "  day: {kind: category, labels: [a, b], missing: false}\n" in editor.text
    assert editor.text.endswith("  age:\n    kind: float\n    lower: DECIDE\n    upper: DECIDE\n")
    assert walked(GUESSED, "", "4", "kind: float, upper: 1, lower: 0").text.count(
        "  day: {kind: float, lower: 0, upper: 1, missing: false}\n"
    )
    assert "is not a kind" in " ".join(walked(GUESSED, "", "4").answer("kind: number"))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (
            "{understudy: 1, unit: row, columns: {a: {kind: category, labels: DECIDE}, b: {kind: boolean}}}\n",
            "[x, y]}, evil: {kind: boolean, missing: false",
        ),
        (
            "{understudy: 1, unit: DECIDE, columns: {a: {kind: boolean}}}\n",
            "{column: id, rows: 3}, unreadable: drop",
        ),
        (
            "understudy: 1\nunit: row\ncolumns:\n  c: {kind: integer, lower: 0, upper: 9}  # guess: because\n",
            "upper: 5}, e: {kind: boolean",
        ),
    ],
)
def test_an_answer_says_nothing_beyond_its_place(text: str, answer: str) -> None:
    editor = SchemaEditor(text)
    assert editor.answer(answer)
    assert editor.text == text
