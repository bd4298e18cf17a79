"""Tests of `understudy.schema.document`."""

import dataclasses
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.schema.strategies import HOSTILE, HOSTILE_LABELS, schemas
from understudy.errors import SchemaError
from understudy.schema import (
    Boolean,
    Category,
    Derived,
    Float,
    GivenBins,
    Impossible,
    Integer,
    LinearSum,
    PrivateBins,
    Range,
    Schema,
    UniformBins,
    Unit,
)
from understudy.schema import yaml_text as emit
from understudy.schema import yaml_text as parse
from understudy.schema.document import FORMULAS, KINDS, Reader, read_column, read_schema, schema_from_text, write_schema
from understudy.schema.schema import Dialect
from understudy.schema.yaml_text import MOST_BYTES, parse_yaml, schema_to_text

HEAD = "understudy: 1\nunit: row\ncolumns:\n"


def problems(text: str) -> list[str]:
    with pytest.raises(SchemaError) as caught:
        schema_from_text(text, "s.yaml")
    return [str(problem) for problem in caught.value.problems]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(schemas())
def test_what_is_written_is_read_back_equal(schema: Schema) -> None:
    text = schema_to_text(schema)
    again = schema_from_text(text, "schema.yaml")
    assert again == schema
    assert [list(rule.when) for rule in again.rules] == [list(rule.when) for rule in schema.rules]
    assert schema_to_text(again) == text


def test_hostile_names_and_labels_survive_the_file(tmp_path: Path) -> None:
    texts = (*HOSTILE_LABELS, "é" * 512, "\0", "")
    columns = [
        Category(name=name, labels=(text, "a"), other="Z", groups={text: name}, note=name)
        for name, text in zip(HOSTILE, HOSTILE_LABELS, strict=True)
    ]
    columns[0] = Category(name=HOSTILE[0], labels=texts, groups={text: text[::-1] for text in texts})
    columns.append(Category(name="n" * 10_000, labels=("a" * 1024, "b\n" * 512)))
    rules = [Impossible({HOSTILE[0]: HOSTILE_LABELS, HOSTILE[1]: (None, "Z")}, note="🎭\n")]
    schema = Schema(tuple(columns), Unit("id", 2), tuple(rules))
    write_schema(schema, tmp_path / "schema.yaml")
    assert read_schema(tmp_path / "schema.yaml") == schema


def test_the_documented_form_is_read() -> None:
    schema = schema_from_text(
        """
understudy: 1
title: Voters
unit: {column: person_id, rows: 3, note: register}
columns:
  age: {kind: integer, lower: 18, upper: 99, bins: [18, 30, 50, 99], special: [999], missing: false, note: form}
  income: {kind: float, lower: 0, upper: 1e6, bins: {private: 16}, decimals: 2}
  weight: {kind: float, lower: 0, upper: 100, bins: 10}
  registered: {kind: category, labels: [yes, no, 7, 007], other: "other"}
  voted: {kind: boolean, missing: true}
  age_group: {kind: derived, cut: {column: age, edges: [18, 50, 99], labels: [young, old]}}
rules:
  - impossible: {voted: [true, ~], registered: [no], age: {from: 18, to: 29}}
    note: law
""",
        "s.yaml",
    )
    assert schema.unit == Unit("person_id", 3, "register")
    age = schema.column("age")
    assert age == Integer(
        name="age", lower=18, upper=99, bins=GivenBins((18, 30, 50, 99)), special=(999,), missing=False, note="form"
    )
    assert schema.column("income") == Float(name="income", lower=0.0, upper=1e6, bins=PrivateBins(16), decimals=2)
    assert schema.column("weight") == Float(name="weight", lower=0.0, upper=100.0, bins=UniformBins(10))
    assert schema.column("registered") == Category(name="registered", labels=("yes", "no", "7", "007"), other="other")
    assert schema.column("voted") == Boolean(name="voted")
    when = {"voted": ("true", None), "registered": ("no",), "age": Range(18, 29)}
    assert schema.rules == (Impossible(when, "law"),)


A = "  a: {kind: boolean}\n"
MALFORMED = {
    "empty": ("", "is empty"),
    "only a comment": ("# nothing", "is empty"),
    "a list": ("[1, 2]", "must be a mapping"),
    "a scalar": ("hello", "must be a mapping"),
    "alias": (HEAD + "  a: &x {kind: boolean}\n  b: *x\n", "s.yaml:4: anchors"),
    "alias alone": (HEAD + "  a: *x\n", "s.yaml:4: aliases"),
    "tag": (HEAD + "  a: !!python/object/apply:os.system [ls]\n", "s.yaml:4: tags"),
    "local tag": (HEAD + "  a: !thing {kind: boolean}\n", "s.yaml:4: tags"),
    "directive": ("%YAML 1.1\n---\n" + HEAD + A, "s.yaml:1: directives"),
    "repeated key": (HEAD + A + A, "s.yaml:5: the key 'a' appears twice (first in line 4)"),
    "repeated key inside": (HEAD + "  a: {kind: boolean, kind: boolean}\n", "'kind' appears twice"),
    "two documents": (HEAD + A + "---\na: 1\n", "s.yaml:5: a second document"),
    "deep nesting": (HEAD + "  a: " + "[" * 40 + "]" * 40, "s.yaml:4: nesting deeper"),
    "list as key": (HEAD + "  ? [a]\n  : {kind: boolean}\n", "a key must be text"),
    "open bracket": (HEAD + "  a: {kind: boolean", "is not valid YAML"),
    "open quote": (HEAD + "  a: {kind: 'boolean}", "is not valid YAML"),
    "tab": (HEAD + "\ta: {kind: boolean}\n", "is not valid YAML"),
    "two colons": (HEAD + "  a: kind: boolean\n", "is not valid YAML"),
    "control character": (HEAD + "  a\x07: {kind: boolean}\n", "s.yaml:4: holds the character U+0007"),
    "impossible escape": (HEAD + '  "\\UFFFFFFFF": {kind: boolean}\n', "names no character"),
    "half a surrogate": (HEAD + '  "\\uD800": {kind: boolean}\n', "half of a surrogate pair"),
    "billion laughs": ("a: &a [x]\nb: &b [*a,*a]\n", "anchors"),
    "merge key": (HEAD + "  a: {kind: boolean, <<: {missing: false}}\n", "columns.a['<<'] is not a key"),
    "no unit": ("understudy: 1\ncolumns:\n" + A, "unit is not stated"),
    "no columns": ("understudy: 1\nunit: row\n", "columns is not stated"),
    "empty columns": ("understudy: 1\nunit: row\ncolumns: {}\n", "must list at least one column"),
    "no format": ("unit: row\ncolumns:\n" + A, "understudy is not stated"),
    "other format": ("understudy: 2\nunit: row\ncolumns:\n" + A, "2 is a format"),
    "unknown key": (HEAD + A + "rule: []\n", 'Did you mean "rules"?'),
    "unknown column key": (HEAD + "  a: {kind: boolean, mising: true}\n", 'Did you mean "missing"?'),
    "unknown kind": (HEAD + "  a: {kind: intger}\n", 'Did you mean "integer"?'),
    "no kind": (HEAD + "  a: {missing: true}\n", "s.yaml:4: columns.a.kind is not stated"),
    "unit in words": ("understudy: 1\nunit: person\ncolumns:\n" + A, "'person' is not a unit"),
    "unit without rows": ("understudy: 1\nunit: {column: id}\ncolumns:\n" + A, "unit.rows is not stated"),
    "quoted number": (HEAD + '  a: {kind: integer, lower: "1", upper: 2}\n', "without quotes"),
    "float for integer": (HEAD + "  a: {kind: integer, lower: 1.5, upper: 2}\n", "'1.5' must be a whole number"),
    "not a number": (HEAD + "  a: {kind: float, lower: .nan, upper: 2}\n", "must be finite"),
    "infinite": (HEAD + "  a: {kind: float, lower: 0, upper: .inf}\n", "must be finite"),
    "bad date": (HEAD + "  a: {kind: date, lower: 2020-02-30, upper: 2021-01-01}\n", "'2020-02-30' must be a date"),
    "date for datetime": (HEAD + "  a: {kind: datetime, lower: 2020-02-03, upper: 2021-01-01}\n", "date and time"),
    "yes for true": (HEAD + "  a: {kind: boolean, missing: yes}\n", "'yes' must be true or false"),
    "true as label": (HEAD + "  a: {kind: category, labels: [true, b]}\n", "Put quotes around it"),
    "null as label": (HEAD + "  a: {kind: category, labels: [b, null]}\n", "Put quotes around it"),
    "null as name": (HEAD + "  ~: {kind: boolean}\n", "Put quotes around it"),
    "labels as text": (HEAD + "  a: {kind: category, labels: b}\n", "must be a list"),
    "labels as map": (HEAD + "  a: {kind: category, labels: {b: c}}\n", "must be a list"),
    "two formulas": (HEAD + A + "  b: {kind: derived, sum: {}, cut: {}}\n", "exactly one formula"),
    "no formula": (HEAD + A + "  b: {kind: derived}\n", "exactly one formula"),
    "rule of unknown column": (HEAD + A + "rules: [{impossible: {b: [x]}}]\n", "column 'b' is not in the schema"),
    "rule without list": (HEAD + A + "rules: [{impossible: {a: true}}]\n", "must be a list of labels or a range"),
    "range of booleans": (HEAD + A + "rules: [{impossible: {a: {to: 3}}}]\n", "a range needs a number"),
    "rules as text": (HEAD + A + "rules: none\n", "must be a list"),
    "huge digits": (HEAD + f"  a: {{kind: integer, lower: {'9' * 5000}, upper: 2}}\n", "must be a whole number"),
    "beyond 64 bits": (HEAD + f"  a: {{kind: integer, lower: 0, upper: {'9' * 30}}}\n", "64 bits"),
    "still to decide": (HEAD + "  a: {kind: DECIDE}\n", "still says DECIDE"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_file_is_refused_with_its_reason(case: str) -> None:
    text, reason = MALFORMED[case]
    found = problems(text)
    assert any(reason in message for message in found), found
    assert all(message.startswith("s.yaml") and "\n" not in message for message in found)


def test_all_problems_come_at_once_with_their_lines() -> None:
    found = problems(
        "understudy: 1\nunit: row\nnotes: x\ncolumns:\n  a: {kind: integer, lower: x, uper: 3}\n"
        "  b: {kind: integer, lower: 17, upper: 0}\n  c: {kind: date}\n"
    )
    starts = {" ".join(message.replace("lower:", "lower").split()[:2]) for message in found}
    assert starts >= {
        "s.yaml:3: notes",
        "s.yaml:5: columns.a.lower",
        "s.yaml:5: columns.a.uper",
        "s.yaml:5: columns.a.upper",
    }
    assert "s.yaml:6: columns.b.upper (0) must be above lower (17). Fix the bounds." in found
    assert sum("columns.c." in message for message in found) == 2


def test_problems_of_a_readable_file_carry_the_line_of_their_key() -> None:
    found = problems(
        HEAD + "  age:\n    kind: integer\n    lower: 17\n    upper: 0\nrules:\n  - impossible: {age: [x]}\n"
    )
    assert found == ["s.yaml:7: columns.age.upper (0) must be above lower (17). Fix the bounds."]
    found = problems(HEAD + "  age: {kind: integer, lower: 0, upper: 9}\nrules:\n  - impossible: {age: [x]}\n")
    assert len(found) == 1
    assert found[0].startswith("s.yaml:6: rules[0].age: 'x' is not a label")


def test_every_undecided_place_is_one_problem() -> None:
    found = problems(
        "understudy: 1\nunit: DECIDE\ncolumns:\n  a: {kind: integer, lower: DECIDE, upper: 3, missing: DECIDE}\n"
        "  b: {kind: category, labels: DECIDE}\n  c: {kind: category, labels: [x, DECIDE]}\n"
    )
    assert len(found) == 5
    assert all("still says DECIDE" in message for message in found)
    assert "s.yaml:4: columns.a.lower still says DECIDE: state the lower bound, from public knowledge." in found


def test_a_label_may_be_called_decide_in_quotes() -> None:
    schema = schema_from_text(HEAD + '  a: {kind: category, labels: ["DECIDE"]}\n', "s.yaml")
    assert schema.column("a") == Category(name="a", labels=("DECIDE",))


def test_special_values_are_named_in_rules_as_numbers_or_text() -> None:
    text = HEAD + "  a: {kind: float, lower: 0, upper: 9, special: [999]}\n  b: {kind: boolean}\nrules:\n"
    for form in ("999", "999.0", '"999.0"'):
        schema = schema_from_text(text + f"  - impossible: {{a: [{form}], b: [true]}}\n", "s.yaml")
        assert schema.rules[0].when["a"] == ("999.0",)


def test_files_that_cannot_be_read_are_schema_errors(tmp_path: Path) -> None:
    cases = {"large": b"#" * MOST_BYTES + b"\n", "latin": b"understudy: 1\nnote: caf\xe9\n"}
    reasons = {
        "large": "larger than 16 MiB",
        "latin": "latin:2: is not UTF-8",
        "absent": "cannot be read: no such file",
    }
    for name, content in cases.items():
        (tmp_path / name).write_bytes(content)
    for name, reason in reasons.items():
        with pytest.raises(SchemaError, match=reason):
            read_schema(tmp_path / name)
    with pytest.raises(SchemaError, match="cannot be read"):
        read_schema(tmp_path)
    with pytest.raises(SchemaError, match="larger than 16 MiB"):
        schema_from_text("#" * MOST_BYTES + "\n", "s.yaml")


def test_the_entries_of_a_file_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "MOST_ENTRIES", 100)
    assert schema_from_text(HEAD + A, "s.yaml").names == ("a",)
    with pytest.raises(SchemaError, match="entries is not allowed"):
        schema_from_text(HEAD + f"  a: {{kind: category, labels: [{', '.join(map(str, range(100)))}]}}\n", "s.yaml")


def test_labels_of_more_than_a_mebibyte_are_read_back(tmp_path: Path) -> None:
    labels = tuple(f"label {i:06d}" for i in range(80_000))
    schema = Schema((Category(name="a", labels=labels),), Unit())
    write_schema(schema, tmp_path / "schema.yaml")
    assert (tmp_path / "schema.yaml").stat().st_size > 2**20
    assert read_schema(tmp_path / "schema.yaml") == schema


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(schemas())
def test_what_is_written_has_as_many_entries_as_are_counted_when_it_is_read(schema: Schema) -> None:
    loader = parse._StrictLoader(schema_to_text(schema))
    loader.get_single_node()
    assert loader.entries == emit._entries(emit._top(schema))


def test_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "schema.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + (HEAD + A).replace("\n", "\r\n").encode())
    assert read_schema(path) == Schema((Boolean(name="a"),), Unit())


@pytest.mark.parametrize(("limit", "number"), [("MOST_BYTES", 100_000), ("MOST_ENTRIES", 7_000)])
def test_a_schema_too_large_to_be_read_back_is_not_written(
    limit: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emit, limit, number)
    schema = Schema((Category(name="a", labels=tuple(f"label {i:09d}" for i in range(7_000))),), Unit())
    with pytest.raises(SchemaError, match="which no reader accepts"):
        write_schema(schema, tmp_path / "schema.yaml")
    assert not (tmp_path / "schema.yaml").exists()


def read(text: str) -> tuple[object, list[str]]:
    reader = Reader("f")
    column, _ = read_column(reader, "a", parse_yaml(text, "f"))
    return column, [str(problem) for problem in reader.problems]


def test_every_kind_names_its_required_keys_when_they_lack() -> None:
    for kind, made in KINDS.items():
        _, found = read(f"kind: {kind}")
        required = [
            field.name
            for field in dataclasses.fields(made)
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        ]
        assert len(found) == len(set(required) - {"name"}), (kind, found)


def test_every_formula_names_its_required_keys_when_they_lack() -> None:
    for key in FORMULAS:
        _, found = read(f"kind: derived\n{key}: {{}}")
        assert found
        assert all("is not stated" in message for message in found)


def test_empty_optional_keys_mean_none_but_others_are_problems() -> None:
    column, found = read("{kind: integer, lower: 0, upper: 9, bins: , note: , storage: ~}")
    assert (column, found) == (Integer(name="a", lower=0, upper=9), [])
    column, found = read("{kind: integer, lower: 0, upper: 9, missing: , step: }")
    assert column is None
    assert len(found) == 2


def test_bins_and_formulas_are_read() -> None:
    assert read("{kind: integer, lower: 0, upper: 9, bins: 3}")[0] == Integer(
        name="a", lower=0, upper=9, bins=UniformBins(3)
    )
    assert read("{kind: integer, lower: 0, upper: 9, bins: {privat: 3}}")[0] is None
    assert read("{kind: derived, sum: {weights: {x: 2}, constant: 1}}")[0] == Derived(
        name="a", formula=LinearSum({"x": 2.0}, 1.0)
    )


def test_how_values_are_written_is_read_and_unused_keys_are_not_written() -> None:
    text = """understudy: 1
unit: row
missing_values: [NA, "-99"]
columns:
  wage:
    kind: float
    title: Wage
    description: "Before tax, by month"
    lower: 0.0
    upper: 9.5
    decimal: ","
    thousands: "."
    prefix: "€"
    suffix: "%"
    parentheses: true
    measured_in: euros
    missing: true
    missing_values: []
  vote: {kind: category, labels: ["1", "2"], ignore_case: true, ordered: true, meanings: {"1": "yes", "2": "no"}}
"""
    schema = schema_from_text(text, "s.yaml")
    wage, vote = schema.columns
    assert (schema.missing_values, wage.missing_values, vote.missing_values) == (("NA", "-99"), (), None)
    assert schema.column("vote").missing_values == schema.modelled[1].missing_values == ("NA", "-99")
    assert isinstance(vote, Category)
    assert vote.meanings == {"1": "yes", "2": "no"}
    written = schema_to_text(schema)
    assert schema_from_text(written, "s.yaml") == schema
    assert written.split("  vote:")[0] == text.split("  vote:")[0]
    bare = schema_to_text(Schema((Category(name="a", labels=("x",)), Integer(name="b", lower=0, upper=9)), Unit()))
    assert bare == (
        "understudy: 1\nunit: row\ncolumns:\n  a:\n    kind: category\n    labels: [x]\n    missing: true\n"
        "  b:\n    kind: integer\n    lower: 0\n    upper: 9\n    missing: true\n"
    )


def test_words_that_mean_nothing_to_yaml_can_be_missing_values() -> None:
    schema = schema_from_text(f"{HEAD}  a: {{kind: open_category, missing_values: [NULL, ~, 'no', 7]}}\n", "s.yaml")
    assert schema.columns[0].missing_values == ("NULL", "~", "no", "7")


def test_marks_around_numbers_must_not_be_empty() -> None:
    (found,) = problems(f'{HEAD}  n: {{kind: integer, lower: 0, upper: 9, prefix: ""}}\n')
    assert found.startswith("s.yaml:4: columns.n.prefix is empty.")


FILE = 'file: {delimiter: semicolon, encoding: latin-1, decimal: ",", header: false, names: [a, b], multiline: true}'


def test_how_the_file_is_written() -> None:
    text = f"understudy: 1\nunit: row\n{FILE}\ncolumns:\n  a: {{kind: boolean}}\n"
    schema = schema_from_text(text, "s.yaml")
    assert schema.file == Dialect(";", "latin-1", ",", ("a", "b"), True)
    assert schema_from_text(schema_to_text(schema), "s.yaml") == schema
    assert "file" not in schema_to_text(dataclasses.replace(schema, file=None))


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("{delimeter: x}", "s.yaml:3: file.delimeter is not a key that belongs here"),
        ("{delimiter: abc}", "s.yaml:3: file.delimiter must be one ASCII character"),
        ("{encoding: utf-7}", "s.yaml:3: file.encoding: 'utf-7' is neither"),
        ("{header: false}", "s.yaml:3: file.header is false, so names"),
        ("{decimal: x}", "s.yaml:3: file.decimal must be"),
        ("text", "s.yaml:3: file must be a mapping"),
        ('{decimal: ","}', "columns.a.thousands: ',' is the decimal mark of the whole file"),
    ],
)
def test_mistakes_in_how_the_file_is_written(said: str, problem: str) -> None:
    columns = '  a: {kind: integer, lower: 0, upper: 1, thousands: ","}\n'
    text = f"understudy: 1\nunit: row\nfile: {said}\ncolumns:\n{columns}"
    with pytest.raises(SchemaError) as caught:
        schema_from_text(text, "s.yaml")
    assert problem in str(caught.value)
