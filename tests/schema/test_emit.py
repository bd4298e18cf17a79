import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.schema.strategies import labels
from understudy.schema import Category, Float, Impossible, Schema, Time, Unit
from understudy.schema.yaml_text import Leaf, parse_yaml, schema_to_text, text_token


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
