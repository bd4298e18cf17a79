import pytest

from understudy.schema.schema import looks_like_a_value, looks_like_an_id, same_but_for_spelling, unlike_names

VALUES = """31|-4|+1.5|1,234.50|1'000|12 %|6'2"|.5|1e5|-1.5E-3|2020-05-05|5.5.2020|05/05/20|2020-05-05T10:00:00Z
2020-05-05 10:00|10:30|10:30 pm|5 May 2020|05-Jan-99|May 5, 2020|€ 12.00|$5|12 EUR|+49 30 1234567|(555) 123-4567
a.b@example.org|https://example.org/x|NA|n/a|NaN|null|TRUE|false|-inf|123e4567-e89b-12d3-a456-426614174000| 31 |٣١"""
NAMES = """age|sex|Q1|q1_2|V162|2nd dose|1st_visit|B19001_001E|May|April 2|€|income (EUR)|e5|x@y|nanny|truely|DMDEDUC2
a|ф 🙂|line\nbreak|per%cent {x}|How old are you (in years)?|TIMESTAMP|date of birth|p-value|k=10|§"""


@pytest.mark.parametrize("name", VALUES.replace("\n", "|").split("|"))
def test_values(name: str) -> None:
    assert looks_like_a_value(name)


@pytest.mark.parametrize("name", NAMES.replace("\n", "|").split("|"))
def test_names(name: str) -> None:
    assert not looks_like_a_value(name)


def test_a_name_is_short() -> None:
    assert looks_like_a_value("x" * 257)
    assert not looks_like_a_value("x" * 256)


def test_absent_names_are_usual_at_the_ends_alone() -> None:
    assert unlike_names(["", "a", "b", ""]) == 0
    assert unlike_names(["a", "", "b"]) == 1
    assert unlike_names([]) == 0


def test_spelling_is_case_spaces_and_punctuation() -> None:
    assert same_but_for_spelling("first name", ["First_Name", "name"]) == "First_Name"
    assert same_but_for_spelling("age", ["age1", "ages", "31"]) == ""
    assert same_but_for_spelling("age", ["Age", "AGE"]) == ""


IDS = """id|ID|person_id|person id|PatientID|customerId|uuid|user_key|ssn|email|E-Mail|email_address|Person|patient
employee number|Customer-No|passport_no|full name|student_nr|social security number"""
NO_IDS = """age|covid|paid|grid|valid|member|student|idea|ids_seen|email_sent|persons|number_of_persons|phone|keyword
name|monkey|user_type|voter"""


@pytest.mark.parametrize("name", IDS.replace("\n", "|").split("|"))
def test_names_of_ids(name: str) -> None:
    assert looks_like_an_id(name)


@pytest.mark.parametrize("name", NO_IDS.replace("\n", "|").split("|"))
def test_names_of_other_columns(name: str) -> None:
    assert not looks_like_an_id(name)
