"""Lines marked as a guess: found wherever they are comments, refused until somebody deletes the mark."""

import pytest

from understudy.errors import SchemaError
from understudy.schema.document import schema_from_text
from understudy.schema.draft import OpenPlace, open_places
from understudy.schema.yaml_text import guessed_lines

GUESSED = """\
understudy: 1
unit: {column: patient, rows: DECIDE}  # guess: patient tells people apart
columns:
  age: {kind: integer, lower: 0, upper: 120}  # guess: years of age
  sex:  # guess: as on most forms
    kind: category
    labels: [F,
      M]
  weight:
    kind: float
    lower: DECIDE  # in kg
    upper: 300  # guess: in kg
    missing: DECIDE
"""


def problems(text: str) -> list[str]:
    with pytest.raises(SchemaError) as caught:
        schema_from_text(text, "s.yaml")
    return [str(problem) for problem in caught.value.problems]


def test_every_guess_and_every_decide_is_refused_with_its_line() -> None:
    found = problems(GUESSED)
    assert sum("still says DECIDE" in message for message in found) == 3
    for place in ("s.yaml:2: unit:", "s.yaml:4: columns.age:", "s.yaml:5: columns.sex:", "12: columns.weight.upper:"):
        assert sum(place in message and "is a guess" in message for message in found) == 1, place
    assert len(found) == 7
    lines = [int(message.split(":")[1]) for message in found]
    assert lines == sorted(lines)
    assert all("Delete the comment to confirm it" in message for message in found if "is a guess" in message)


def test_a_guess_is_confirmed_by_deleting_its_comment() -> None:
    text = "understudy: 1\nunit: row\ncolumns:\n  age: {kind: integer, lower: 0, upper: 120}  # guess: years of age\n"
    assert len(problems(text)) == 1
    for confirmed in (text.replace("  # guess: years of age", ""), text.replace("# guess:", "# sure:")):
        assert schema_from_text(confirmed, "s.yaml").column("age").upper == 120


def test_open_places_tell_what_and_why() -> None:
    assert open_places(GUESSED) == [
        OpenPlace(2, "", "unit", "patient tells people apart", "{column: patient, rows: DECIDE}"),
        OpenPlace(2, "", "unit.rows", "patient tells people apart", ""),
        OpenPlace(4, "age", "", "years of age", "{kind: integer, lower: 0, upper: 120}"),
        OpenPlace(5, "sex", "", "as on most forms", "{kind: category, labels: [F, M]}"),
        OpenPlace(11, "weight", "lower", "in kg", ""),
        OpenPlace(12, "weight", "upper", "in kg", "300"),
        OpenPlace(13, "weight", "missing", "whether the value may be absent (true or false)", ""),
    ]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a: 1 # guess: x", [1]),
        ("a: 1 #GUESS:x", [1]),
        ("a: 1# guess: no comment", []),
        ("# guess: alone\na: 1", []),
        ("   # guess: alone\na: 1", []),
        ('a: "x # guess: y"', []),
        ("a: 'x # guess: y'  # guess: z", [1]),
        ("a: |\n  x # guess: y\nb: 1", []),
        ("a: |  # guess: y\n  x\nb: 1", [1]),
        ("a: >\n  x # guess: y\nb: 1 # guess: z", [3]),
        ('a: "x\n  # guess: y"\nb: 1', []),
        ("a: [1,  # guess: y\n  2]", [1]),
        ("a: 1\r\nb: 2 # guess: y\r\n", [2]),
        ("a: 1 # see # guess: y", [1]),
        ("a: 1\x85b: 2 # guess: y", [2]),
    ],
)
def test_only_comments_behind_something_are_guesses(text: str, lines: list[int]) -> None:
    assert list(guessed_lines(text)) == lines


def test_many_guesses_are_found_in_one_pass() -> None:
    text = "".join(f"k{number}: [a, b] # guess: g{number}\n" for number in range(5_000))
    found = guessed_lines(text)
    assert len(found) == 5_000
    assert found[5_000] == "g4999"
