"""Lines marked as a guess: found wherever they are comments, refused until somebody deletes the mark."""

import pytest

from understudy.errors import SchemaError
from understudy.schema import Unit
from understudy.schema.columns import GivenBins
from understudy.schema.document import schema_from_text
from understudy.schema.draft import OpenPlace, draft_schema, open_places
from understudy.schema.guesses import guess_of
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
    for place in ("s.yaml:2: unit", "s.yaml:4: columns.age", "s.yaml:5: columns.sex", "12: columns.weight.upper"):
        assert sum(f"{place} is a guess" in message for message in found) == 1, place
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


def kind_of(name: str, storage: str = "", title: str = "") -> str:
    guess = guess_of(name, storage, title=title)
    return "" if guess is None else f"{guess.kind} {guess.said.get('lower', '')} {guess.said.get('upper', '')}".strip()


def test_amounts_get_public_bins_of_any_size_and_zero_apart() -> None:
    fee, balance, small = guess_of("fee"), guess_of("balance"), guess_of("fee", "int16")
    assert fee is not None
    assert balance is not None
    assert small is not None
    edges = fee.said["bins"].edges  # type: ignore[attr-defined]
    assert (edges[:6], edges[-2:]) == ((0, 1, 2, 5, 10, 20), (500_000, 1_000_000))
    mirrored = balance.said["bins"].edges  # type: ignore[attr-defined]
    assert mirrored == tuple(-edge for edge in reversed(mirrored))
    assert small.said["bins"].edges[-2:] == (20_000, 32_767)  # type: ignore[attr-defined]
    assert fee.said["special"] == balance.said["special"] == small.said["special"] == (0,)


@pytest.mark.parametrize(
    "name", ["fee", "creatinine", "duration", "days", "population", "survey_weight", "price_index"]
)
@pytest.mark.parametrize("storage", ["", "int64", "int16", "double", "float"])
def test_guesses_over_orders_of_magnitude_are_valid_and_not_private(name: str, storage: str) -> None:
    text = draft_schema([(name, storage or "string"), ("z", storage or "string")], unit=Unit())
    line = next(line for line in text.splitlines() if line.startswith(f"  {name}:"))
    assert "private" not in line
    sure = line.partition("  # guess:")[0]
    column = schema_from_text(f"understudy: 1\nunit: row\ncolumns:\n{sure}\n", "s.yaml").column(name)
    assert isinstance(column.bins, GivenBins)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ModerateWorkActivity", "open_category"),
        ("moderate_activity", "open_category"),
        ("AgeWhenToldYouHadStroke", "integer 0 120"),
        ("AgeStoppedBreastfeedingdays", "integer 0 40000"),
        ("UsualSleepTimeOnWeekdaysOrWorkdays", ""),
        ("sleep_time_on_weekdays", ""),
        ("TimesLost10LbsOrMoreToLoseWeight", "integer 0 99"),
        ("WeightLossLowCarbDiet", "open_category"),
        ("CurrentWeightKg", "float 0.0 500.0"),
        ("SchoolLunchFreeReducedOrFullPrice", "open_category"),
        ("ExperienceConfusionMemoryProblems", ""),
        ("TriedToLoseWeightInPastYear", ""),
        ("IQ", "integer 40 160"),
        ("year", "integer 1900 2030"),
        ("decile1b", "integer 1 10"),
        ("days_b_screening_arrest", "integer -10000 10000"),
        ("c_days_from_compas", "integer -10000 10000"),
        ("days", "integer 0 3660"),
        ("education_num", "integer 0 30"),
        ("income", "float 0.0 1000000.0"),
        ("log_income", "float -20.0 20.0"),
        ("april", ""),
    ],
)
def test_words_are_met_whole_and_beside_others(name: str, kind: str) -> None:
    assert kind_of(name) == kind


_NOT_FLAGS = ["Age", "When", "What", "Kind", "Which", "Time", "Often", "How", "Many", "Much", "Number", "Type", "Year"]


@pytest.mark.parametrize("word", _NOT_FLAGS)
def test_questions_for_more_than_yes_or_no_are_no_flags(word: str) -> None:
    assert not kind_of(f"Took{word}Insulin").startswith("boolean")
    assert kind_of("TookThisInsulin") == "boolean"


def test_a_name_that_speaks_for_two_families_decides_nothing() -> None:
    text = draft_schema([("income_at_age", "string"), ("z", "string")])
    assert "  income_at_age:\n    kind: DECIDE  # an amount of money or an age?\n" in text
    typed = draft_schema([("income_at_age", "int64")])
    assert "    lower: DECIDE  # the least value that can occur (an amount of money or an age?)\n" in typed
    assert kind_of("age_in_days") == "integer 0 40000"


@pytest.mark.parametrize(
    ("title", "storage", "kind"),
    [
        ("=1 if married", "", "boolean"),
        ("Smokes (1=yes, 0=no)", "", "boolean"),
        ("=1 if married", "int8", "category"),
        ("years of education", "", "integer 0 120"),
        ("Time since arrival, years", "", "integer 0 120"),
        ("log of wage", "", "float -20.0 20.0"),
        ("hourly wage", "", "float 0.0 1000000.0"),
    ],
)
def test_titles_say_more_than_names(title: str, storage: str, kind: str) -> None:
    assert kind_of("zork", storage, title) == kind


def test_parts_of_a_name_are_left_out_beside_it() -> None:
    text = draft_schema([("name", "string"), ("first", "string"), ("last", "string")])
    assert all(f"# Left out: {name};" in text for name in ("name", "first", "last"))
    assert "Left out" not in draft_schema([("first", "string"), ("last", "string"), ("village", "string")])
