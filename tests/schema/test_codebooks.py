"""Every kind of codebook with a sample of its own, and files that must be refused with the place."""

import contextlib
import datetime as dt
import json
import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from understudy.errors import SchemaError, UsageError
from understudy.schema import Unit
from understudy.schema.codebooks import MOST_BYTES, ColumnFacts, label_text, read_codebook, values_of
from understudy.schema.document import schema_from_text
from understudy.schema.draft import draft_schema


def read(folder: Path, name: str, content: str | bytes | object) -> dict[str, ColumnFacts]:
    path = folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    facts = read_codebook(path)
    assert all(fact.origin == f"the codebook {name}" for fact in facts)
    return {fact.name: fact for fact in facts}


def refused(folder: Path, name: str, content: str | bytes | object) -> str:
    with pytest.raises(SchemaError) as caught:
        read(folder, name, content)
    assert len(caught.value.problems) == 1
    return str(caught.value).replace(str(folder), "")


def loads(facts: dict[str, ColumnFacts]) -> None:
    """A draft of exactly these facts has nothing open and is a schema."""
    header = [(name, "string") for name in facts]
    schema_from_text(draft_schema(header, facts=list(facts.values()), unit=Unit()), "draft")


DICTIONARY = """\
Variable,Kind,Minimum,Upper,Codes,Label,Description,Required,Units
age,integer,18,110,,Age,"Years, at entry",yes,years
sex,categorical,,,1=female; 2=male,Sex,,yes,
smoker,yes/no,,,,Smokes,,,
mood,ordinal,,,low|middling|high,,,no,
score,number,0,1.5,,,,,
visited,date,2020-01-01,2024-12-31,,,,,
children,int,0,20,98=refused; 99=don't know; 77=many,,,,
pid,identifier,,,,,,,
remarks,free text,,,,,,,
height,float,,,,,,,cm
"""


def test_a_data_dictionary_in_csv(tmp_path: Path) -> None:
    facts = read(tmp_path, "book.csv", DICTIONARY)
    assert facts["age"].said == {
        "kind": "integer",
        "lower": 18,
        "upper": 110,
        "title": "Age",
        "description": "Years, at entry",
        "missing": False,
        "measured_in": "years",
    }
    assert facts["sex"].said["labels"] == ("1", "2")
    assert facts["sex"].said["meanings"] == {"1": "female", "2": "male"}
    assert facts["mood"].said == {
        "kind": "category",
        "labels": ("low", "middling", "high"),
        "ordered": True,
        "missing": True,
    }
    assert facts["score"].said == {"kind": "float", "lower": 0.0, "upper": 1.5}
    assert facts["visited"].said["upper"] == dt.date(2024, 12, 31)
    assert facts["children"].said["special"] == (77,)
    assert facts["children"].said["missing_values"] == ("98", "99")
    assert "identifier" in facts["pid"].left_out
    assert "free text" in facts["remarks"].left_out
    assert (facts["height"].said, facts["height"].storage) == ({}, "double")
    loads({name: fact for name, fact in facts.items() if name not in ("pid", "remarks", "height")})


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_a_dictionary_may_be_delimited_otherwise_and_hold_line_ends_in_quotes(mark: str, tmp_path: Path) -> None:
    text = mark.join(("name", "type", "values")) + "\r\n" + mark.join(("a", "category", '"x\ny ""z"""')) + "\r\n"
    assert read(tmp_path, "book.csv", text)["a"].said["labels"] == ("x", 'y "z"')


def test_a_dictionary_of_redcap(tmp_path: Path) -> None:
    head = '"Variable / Field Name","Field Type","Field Label","Choices, Calculations, OR Slider Labels",'
    head += '"Text Validation Type OR Show Slider Number","Text Validation Min","Text Validation Max","Required Field?"'
    lines = [head, 'sex,radio,Sex,"1, Female | 2, Male",,,,y', "age,text,Age,,integer,0,120,", "story,notes,Story,,,,,"]
    facts = read(tmp_path, "redcap.csv", "\n".join(lines))
    assert facts["sex"].said["meanings"] == {"1": "Female", "2": "Male"}
    assert facts["sex"].said["missing"] is False
    assert (facts["age"].said["lower"], facts["age"].said["upper"]) == (0, 120)
    assert facts["story"].left_out


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", []),
        ("1=yes; 2=no", [("1", "yes"), ("2", "no")]),
        ("1: yes\n2: no", [("1", "yes"), ("2", "no")]),
        ("a|b|c", [("a", ""), ("b", ""), ("c", "")]),
        ("a, b", [("a", ""), ("b", "")]),
        ('["a", 2, true, null]', [("a", ""), ("2", ""), ("true", "")]),
        ("<30|>=30|NO", [("<30", ""), (">=30", ""), ("NO", "")]),
        ("farming, fishing|mining", [("farming, fishing", ""), ("mining", "")]),
        ("[0-10)|[10-20)", [("[0-10)", ""), ("[10-20)", "")]),
    ],
)
def test_values_as_dictionaries_write_them(text: str, pairs: list[tuple[str, str]]) -> None:
    assert values_of(text) == pairs


def test_labels_of_numbers_are_plain() -> None:
    assert [label_text(value) for value in (1.0, 1.5, 3, "01", True)] == ["1", "1.5", "3", "01", "true"]


FIELDS = {
    "fields": [
        {
            "name": "age",
            "type": "integer",
            "title": "Age",
            "constraints": {"minimum": 0, "maximum": 99, "required": True},
        },
        {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"]}},
        {"name": "mood", "categories": [{"value": 1, "label": "bad"}, {"value": 2}], "categoriesOrdered": True},
        {
            "name": "seen",
            "type": "date",
            "format": "%d.%m.%Y",
            "constraints": {"minimum": "2020-01-01", "maximum": "2021-12-31"},
        },
        {"name": "wage", "type": "number", "decimalChar": ",", "constraints": {"minimum": 0, "maximum": 10.5}},
        {"name": "alive", "type": "boolean", "missingValues": ["?"]},
        {"name": "row", "type": "integer"},
        {"name": "free"},
    ],
    "missingValues": ["", "-99"],
    "primaryKey": "row",
}


@pytest.mark.parametrize("packed", [False, True])
def test_frictionless_schemas_and_packages(packed: bool, tmp_path: Path) -> None:
    content = {"name": "p", "resources": [{"path": "x.csv", "schema": FIELDS}]} if packed else FIELDS
    facts = read(tmp_path, "datapackage.json", content)
    assert facts["age"].said["missing"] is False
    assert facts["age"].said["missing_values"] == ("", "-99")
    assert facts["sex"].said["labels"] == ("f", "m")
    assert facts["mood"].said["ordered"] is True
    assert facts["mood"].said["meanings"] == {"1": "bad"}
    assert facts["seen"].said["format"] == "%d.%m.%Y"
    assert facts["wage"].said["decimal"] == ","
    assert facts["alive"].said == {"kind": "boolean", "missing_values": ("?",)}
    assert facts["row"].left_out
    loads({name: fact for name, fact in facts.items() if name not in ("row", "free")})


def test_labels_win_over_missing_values_and_offsets_bring_a_zone(tmp_path: Path) -> None:
    fields = [
        {"name": "a", "constraints": {"enum": ["", "x", "-99"]}},
        {"name": "b", "type": "datetime", "constraints": {"minimum": "2020-01-01T00:00:00Z", "maximum": "2021-01-01"}},
    ]
    facts = read(tmp_path, "a.json", {"fields": fields, "missingValues": ["-99", "-98"]})
    assert facts["a"].said == {"kind": "category", "labels": ("x", "-99"), "missing_values": ("-98",)}
    assert facts["b"].said["zone"] == "UTC"
    loads(facts)
    zoned = [("b", "timestamp[us, tz=Europe/Berlin]"), ("c", "int64")]
    text = draft_schema(zoned, facts=[replace(facts["b"], said={"kind": "datetime", "lower": dt.datetime(2020, 1, 1)})])
    assert "lower: 2020-01-01T00:00:00+00:00" in text
    assert "zone: Europe/Berlin" in text


def test_csvw_metadata(tmp_path: Path) -> None:
    columns = [
        {
            "name": "age",
            "titles": "Age",
            "datatype": {"base": "integer", "minimum": 0, "maximum": 120},
            "required": True,
        },
        {"name": "day", "datatype": {"base": "date", "format": "dd.MM.yyyy", "minimum": "2020-01-01"}, "null": ["NA"]},
        {"name": "sex", "datatype": {"base": "string", "format": "f|m"}, "dc:description": "as on the form"},
        {"name": "id", "titles": {"en": "Id"}},
        {"name": "made", "virtual": True},
    ]
    schema = {"columns": columns, "primaryKey": "id"}
    for content in (
        {"@context": "http://www.w3.org/ns/csvw", "url": "a.csv", "tableSchema": schema},
        {"tables": [{"tableSchema": schema}]},
    ):
        facts = read(tmp_path, "a.csv-metadata.json", content)
        assert facts["Age"].said == {"kind": "integer", "lower": 0, "upper": 120, "missing": False, "title": "Age"}
        assert facts["age"].said == facts["Age"].said
        assert facts["day"].said["format"] == "%d.%m.%Y"
        assert facts["day"].said["missing_values"] == ("NA",)
        assert facts["sex"].said["labels"] == ("f", "m")
        assert facts["sex"].said["description"] == "as on the form"
        assert facts["Id"].left_out
        assert "made" not in facts


def test_json_schema(tmp_path: Path) -> None:
    content = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "array",
        "items": {"$ref": "#/$defs/person"},
        "$defs": {
            "share": {"type": "number", "minimum": 0, "maximum": 1},
            "person": {
                "type": "object",
                "required": ["age", "sex"],
                "properties": {
                    "age": {"type": "integer", "minimum": 0, "exclusiveMaximum": 120, "title": "Age"},
                    "sex": {"enum": ["f", "m", None]},
                    "mood": {"oneOf": [{"const": 1, "title": "bad"}, {"const": 2, "title": "good"}]},
                    "part": {"$ref": "#/$defs/share", "description": "of the whole"},
                    "born": {"type": ["string", "null"], "format": "date"},
                    "alive": {"type": "boolean"},
                    "price": {"type": "integer", "minimum": 0, "maximum": 100, "multipleOf": 5},
                    "any": {},
                },
            },
        },
    }
    facts = read(tmp_path, "person.schema.json", content)
    assert facts["age"].said == {"kind": "integer", "lower": 0, "upper": 119, "missing": False, "title": "Age"}
    assert facts["sex"].said == {"kind": "category", "labels": ("f", "m"), "missing": True}
    assert facts["mood"].said["meanings"] == {"1": "bad", "2": "good"}
    assert facts["part"].said == {"kind": "float", "lower": 0.0, "upper": 1.0, "description": "of the whole"}
    assert (facts["born"].said, facts["born"].storage) == ({"missing": True}, "date32[day]")
    assert facts["alive"].said == {"kind": "boolean"}
    assert facts["price"].said["step"] == 5
    assert facts["any"].said == {}
    loads({name: fact for name, fact in facts.items() if name not in ("born", "any")})


SQL = """
-- The people of the survey; a comment may hold anything; even this: CREATE TABLE no (
CREATE TYPE public.mood AS ENUM ('bad', 'so-so', 'good');
CREATE DOMAIN share AS numeric(3,2) CHECK (VALUE BETWEEN 0 AND 1);
/* and this */
CREATE TABLE IF NOT EXISTS "survey"."people" (
    id SERIAL PRIMARY KEY,
    age INTEGER NOT NULL CHECK (age >= 18 AND age < 100) COMMENT 'Age, in years',
    sex CHAR(1) NOT NULL CHECK (sex IN ('f', 'm')),
    feels public.mood,
    part share,
    `income` DECIMAL(9,2) CHECK (-10 <= income AND income <= 1e6),
    colour ENUM('red', 'it''s green'),
    born DATE CHECK (born BETWEEN DATE '1900-01-01' AND DATE '2020-12-31'),
    seen TIMESTAMP WITH TIME ZONE,
    alive BOOLEAN DEFAULT TRUE,
    kind VARCHAR(10),
    region text CONSTRAINT known CHECK ((region)::text = ANY ((ARRAY['n'::character varying, 's'::text])::text[])),
    weight DOUBLE PRECISION,
    odd INT CHECK (odd < 3 OR odd > 9),
    CHECK (weight > 0 AND weight < 500),
    FOREIGN KEY (kind) REFERENCES kinds (id)
);
COMMENT ON COLUMN survey.people.kind IS 'What kind';
INSERT INTO people VALUES (1, 'x');
"""


def test_sql_definitions(tmp_path: Path) -> None:
    facts = read(tmp_path, "people.sql", SQL)
    assert facts["id"].left_out
    assert facts["age"].said == {
        "kind": "integer",
        "lower": 18,
        "upper": 99,
        "title": "Age, in years",
        "missing": False,
    }
    assert facts["sex"].said == {"kind": "category", "labels": ("f", "m"), "missing": False}
    assert facts["feels"].said["labels"] == ("bad", "so-so", "good")
    assert facts["part"].said == {"kind": "float", "lower": 0.0, "upper": 1.0, "decimals": 2}
    assert facts["income"].said == {"kind": "float", "lower": -10.0, "upper": 1e6, "decimals": 2}
    assert facts["colour"].said["labels"] == ("red", "it's green")
    assert facts["born"].said["lower"] == dt.date(1900, 1, 1)
    assert (facts["seen"].said, facts["seen"].storage) == ({}, "timestamp[us]")
    assert facts["alive"].said == {"kind": "boolean"}
    assert (facts["kind"].said, facts["kind"].storage) == ({"title": "What kind"}, "string")
    assert facts["region"].said["labels"] == ("n", "s")
    assert facts["weight"].said == {"kind": "float", "lower": 0.0, "upper": 500.0}
    assert (facts["odd"].said, facts["odd"].storage) == ({}, "int64")
    loads({name: fact for name, fact in facts.items() if name not in ("id", "seen", "kind", "odd")})


@pytest.fixture(scope="module")
def statistics_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pandas = pytest.importorskip("pandas")
    pyreadstat = pytest.importorskip("pyreadstat")
    folder = tmp_path_factory.mktemp("statistics")
    frame = pandas.DataFrame({"sex": [1.0, 2.0], "age": [30.0, 99.0], "town": ["x", "y"], "mood": [1.0, 9.0]})
    labels = {"sex": {1: "female", 2: "male"}, "age": {99: "refused"}, "mood": {1: "bad", 2: "good", 9: "no answer"}}
    titles = ["Sex of the person", "Age in years", "", "Mood"]
    pyreadstat.write_sav(
        frame,
        str(folder / "a.sav"),
        column_labels=titles,
        variable_value_labels=labels,
        missing_ranges={"age": [99], "mood": [{"lo": 8, "hi": 9}]},
        variable_measure={"mood": "ordinal", "sex": "nominal", "age": "scale"},
    )
    pyreadstat.write_xport(frame, str(folder / "a.xpt"), column_labels=titles)
    pyreadstat.write_por(frame, str(folder / "a.por"), column_labels=titles)
    pyreadstat.write_dta(frame, str(folder / "a.dta"), column_labels=titles, variable_value_labels=labels)
    return folder


@pytest.mark.parametrize("name", ["a.sav", "a.dta"])
def test_statistics_files_by_their_metadata_alone(name: str, statistics_files: Path) -> None:
    facts = {fact.name: fact for fact in read_codebook(statistics_files / name)}
    assert facts["sex"].said["labels"] == ("1", "2")
    assert facts["sex"].said["meanings"] == {"1": "female", "2": "male"}
    assert facts["sex"].said["title"] == "Sex of the person"
    assert "kind" not in facts["age"].said
    assert facts["age"].said["missing_values"] == ("99",)
    assert facts["town"].storage == "string"
    if name == "a.sav":
        assert facts["mood"].said["labels"] == ("1", "2")
        assert facts["mood"].said["ordered"] is True
        assert facts["mood"].said["missing_values"] == ("8", "9")


@pytest.mark.parametrize("name", ["a.xpt", "a.por"])
def test_files_without_value_labels_give_titles(name: str, statistics_files: Path) -> None:
    facts = {fact.name.lower(): fact for fact in read_codebook(statistics_files / name)}
    assert facts["age"].said["title"] == "Age in years"
    assert facts["town"].storage == "string"


def test_the_extra_is_named_where_the_library_is_absent(
    statistics_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(UsageError, match=r"understudy\[stats\]"):
        read_codebook(statistics_files / "a.sav")


DEEP = '{"fields": ' + "[" * 100_000 + "]" * 100_000 + "}"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", "hello", "is not a known kind of codebook"),
        ("a.json", "{", "a.json:1: is not valid JSON"),
        ("a.json", "[]", "must be a JSON object"),
        ("a.json", "{}", "is not a codebook of a known kind"),
        ("a.json", DEEP, "is nested too deeply"),
        ("a.json", '{"fields": [{"name": "a", "name": "b"}]}', "a key appears twice"),
        ("a.json", '{"fields": [{"name": "a", "constraints": {"maximum": NaN}}]}', "NaN is not a number"),
        ("a.json", '{"fields": [{"name": ' + "1" * 5000 + "}]}", "is not valid JSON"),
        ("a.json", {"fields": {}}, "fields must be a list"),
        ("a.json", {"fields": [1]}, "fields[0] must be an object"),
        ("a.json", {"fields": [{"type": "integer"}]}, "fields[0].name must be the name of a column"),
        ("a.json", {"fields": []}, "describes no column"),
        (
            "a.json",
            {"fields": [{"name": "a", "type": "integer", "constraints": {"minimum": "x"}}]},
            "fields[0].minimum: 'x' is not a value that a column of kind integer",
        ),
        ("a.json", {"resources": [{"schema": "other.json"}]}, "names another file"),
        ("a.json", {"properties": {"a": {"$ref": "http://example.org/x"}}}, "must name a part of the same file"),
        ("a.json", {"properties": {"a": {"$ref": "#/properties/a"}}}, "leads through more than 8 references"),
        ("a.json", {"properties": {"a": {"enum": [{"b": 1}]}}}, "properties.a.enum must hold plain values"),
        ("a.json", {"tableSchema": {"columns": [{"datatype": 3, "name": "x"}]}}, "datatype must be an object"),
        ("a.sql", "SELECT 1;", "creates no table"),
        ("a.sql", "CREATE TABLE x (\n a INT,\n b INT", "has parentheses that are never closed"),
        ("a.sql", "CREATE TABLE x (a INT CHECK " + "(" * 5000 + ")" * 5000 + ")", "nested deeper than 64"),
        ("a.sql", "CREATE TABLE x (a INT);\n'", "a.sql:2: is not SQL"),
        ("a.sql", "CREATE TABLE x (a INT); " + "/* " * 200_000, "a.sql:1: is not SQL"),
        ("a.sql", "CREATE TABLE x (a INT " + "CHECK (a > 1) " * 1001 + ")", "more than 1,000 rules"),
        ("a.sql", "CREATE DOMAIN d AS INT " + "NOT NULL " * 600 + "; CREATE TABLE x (a d);", "more than 1,000 words"),
        ("a.sql", "CREATE TABLE x (a);", "declares no column with a type"),
        ("a.sql", "CREATE TABLE x AS SELECT 1;", "without a list of columns"),
        ("a.csv", "age,sex\n1,f\n", "a.csv:1: its first line does not name the columns of a data dictionary"),
        ("a.csv", "name,min\n\n,3\n", "a.csv:3: names no column"),
        ("a.csv", "name,min\na,3\na,4\n", "a.csv:3: names a column twice"),
        ("a.csv", 'name,type\n"a,int\n', "a.csv:2: opens a quote that is never closed"),
        ("a.csv", "name,type\na,int,3,4\n", "a.csv:2: has 4 fields, but the first line has 2"),
        ("a.csv", "name,type,min\na,integer,x\n", "a.csv:2.minimum: 'x' is not a value"),
        ("a.csv", "name,required\na,perhaps\n", "must be yes or no"),
        ("a.csv", b"name,type\nM\xfcller,int\n", "a.csv:2: is not UTF-8"),
        ("a.csv", b"name,type\n\0,int\n", "holds zero bytes"),
        ("a.sav", b"$FL2 not really", "is not a valid file of its kind"),
        ("a.dta", b"", "is not a valid file of its kind"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_the_place(
    name: str, content: str | bytes | object, said: str, tmp_path: Path
) -> None:
    assert said in refused(tmp_path, name, content)


def test_columns_and_labels_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.schema.codebooks._MOST_COLUMNS", 20)
    monkeypatch.setattr("understudy.schema.codebooks._MOST_LABELS", 100)
    many = "name,type\n" + "".join(f"c{number},int\n" for number in range(21))
    assert "more than 20 columns" in refused(tmp_path, "a.csv", many)
    often = {f"c{number}": {"$ref": "#/$defs/long"} for number in range(11)}  # a short file that names a list often
    content = {"$defs": {"long": {"enum": list(range(10))}}, "properties": often}
    assert "or 100 labels" in refused(tmp_path, "a.json", content)


def test_a_codebook_has_a_size(tmp_path: Path) -> None:
    assert "is larger than 16 MiB" in refused(tmp_path, "a.csv", b"name,type\n" + b" " * MOST_BYTES)
    with pytest.raises(SchemaError, match="cannot be read"):
        read_codebook(tmp_path / "absent.csv")
    with pytest.raises(SchemaError, match="cannot be read"):
        read_codebook(tmp_path / "absent.sav")


def test_a_codebook_in_utf_16_is_read_and_titles_cannot_steer(tmp_path: Path) -> None:
    facts = read(tmp_path, "a.csv", "name,type,label\nx,boolean,a\x1b[31m\u202eb  c\n".encode("utf-16"))
    assert facts["x"].said["title"] == "a[31mb c"


def test_hostile_texts_stay_texts_in_the_draft(tmp_path: Path) -> None:
    label = "x\n  evil: {kind: boolean}  # guess: y"
    content = {"fields": [{"name": "a", "title": label, "constraints": {"enum": [label, "# guess: z", "no"]}}]}
    facts = read(tmp_path, "a.json", content)
    text = draft_schema([("a", "string")], facts=list(facts.values()), unit=Unit())
    column = schema_from_text(text, "draft").column("a")
    assert column.labels == (label, "# guess: z", "no")


SAMPLES = {
    "a.csv": DICTIONARY,
    "a.json": json.dumps(FIELDS),
    "b.json": json.dumps({"properties": {"a": {"type": "integer", "minimum": 0, "enum": [1]}, "b": {"$ref": "#/x"}}}),
    "c.json": json.dumps(
        {"tableSchema": {"columns": [{"name": "a", "datatype": {"base": "date", "format": "d.M.yyyy"}}]}}
    ),
    "a.sql": SQL,
}


@pytest.mark.parametrize("name", SAMPLES)
def test_damaged_codebooks_are_read_or_refused(name: str, tmp_path: Path) -> None:
    """Cut, repeated and exchanged pieces: a schema error or facts that can be drafted, never another exception."""
    chance = random.Random(name)
    outcomes = set()
    for _ in range(150):
        text = SAMPLES[name]
        for _ in range(chance.randint(1, 4)):
            first, last = sorted(chance.randrange(len(text) + 1) for _ in range(2))
            piece = text[first : min(last, first + 40)]
            junk = chance.choice(
                ["", piece * 2, "{", "]", '"', "'", "(", "9" * 400, "-1e999", "null", "\n", ",", "\u202e", ";"]
            )
            text = text[:first] + junk + text[first + len(piece) :]
            text = text or "x"
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        try:
            facts = read_codebook(path)
            draft_schema([(fact.name, "string") for fact in facts][:1], facts=facts, names_are_right=True)
            outcomes.add("read")
        except SchemaError:
            outcomes.add("refused")
    assert "refused" in outcomes


@pytest.mark.parametrize(
    ("word", "storage"),
    [
        ("continuous", "double"),
        ("Numeric", "double"),
        ("integer", "int64"),
        ("real", "double"),
        ("string", "string"),
        ("date", "date32[day]"),
        ("n/a", ""),
    ],
)
def test_a_type_among_the_values_is_no_label(word: str, storage: str, tmp_path: Path) -> None:
    fact = read(tmp_path, "b.csv", f"name,values\nwob,{word}\n")["wob"]
    assert "labels" not in fact.said
    assert fact.storage == storage


def test_free_text_among_the_values_leaves_the_column_out(tmp_path: Path) -> None:
    assert read(tmp_path, "b.csv", "name,values\nwob,free text\n")["wob"].left_out
    bounded = read(tmp_path, "b.csv", "name,min,max,values\nwob,0,9.5,continuous\n")["wob"]
    assert bounded.said == {"kind": "float", "lower": 0.0, "upper": 9.5}


def test_a_list_of_a_single_label_is_to_be_confirmed(tmp_path: Path) -> None:
    facts = read(tmp_path, "b.csv", "name,values\nwob,see appendix\nzork,a|b\n")
    assert facts["wob"].doubt
    assert not facts["zork"].doubt
    text = draft_schema([(name, "string") for name in facts], facts=list(facts.values()), unit=Unit())
    assert "  wob:  # guess: a list of one label" in text
    assert text.count("# guess: a list") == 1


@pytest.mark.parametrize("cell", ["(" * 200_000, "1" + "." * 100_000 + "x", "decimal" + "(" * 100_000])
def test_a_cell_of_one_character_over_and_over_takes_no_time(cell: str, tmp_path: Path) -> None:
    """Once the time grew with the square of its length: 17 s for the first."""
    book = tmp_path / "book.csv"
    book.write_text(f"name,type,values\nage,{cell},{cell}\n")
    with contextlib.suppress(SchemaError):
        read_codebook(book, ["age"])
