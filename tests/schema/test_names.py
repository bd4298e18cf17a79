"""What names and storage types suggest, and that nothing else is looked at."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.schema import Unit
from understudy.schema.document import schema_from_text
from understudy.schema.draft import draft_schema, open_places
from understudy.schema.guesses import guess_of, words_of

KINDS = {
    "integer": (
        "age Age AGE ageInYears alter edad birth_year yearOfBirth geburtsjahr year jahr month monat hour hours_per_week"
        " n_children kinder hijos householdSize num_visits anzahl_besuche rating stars score systolic_bp diastolic"
        " heart_rate length_of_stay days_since_visit duration"
    ),
    "float": (
        "income salary annual-salary price amount total_cost einkommen gehalt prix salario percent pct_complete share"
        " height weight gewicht taille bmi latitude lng temperature_rate"
    ),
    "date": "date_of_birth dob geburtsdatum fecha_nacimiento visit_date admissionDate datum",
    "datetime": "created_at timestamp DispatchDtTm",
    "boolean": "is_active hasChildren smoker flag_default consent raucher pregnant died EverTreated",
    "category": "sex gender geschlecht sexe weekday day_of_week",
    "open_category": (
        "postcode zip_code plz icd10 diagnosis country land state region city education marital_status race ethnicity"
        " occupation industry job religion status payer_code customerType age_group howOften"
    ),
}
LEFT_OUT = "patient_id personId id ssn e-mail first_name vorname apellido street address phone comments notes bemerkung"


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in KINDS.items() for name in names.split()])
def test_names_that_everybody_knows(kind: str, name: str) -> None:
    guess = guess_of(name)
    assert guess is not None
    assert guess.kind == kind, guess


@pytest.mark.parametrize("name", LEFT_OUT.split())
def test_what_tells_people_apart_is_left_out(name: str) -> None:
    guess = guess_of(name)
    assert guess is not None
    assert not guess.said


@pytest.mark.parametrize("name", ["brillig", "candid", "x", "", "Jubjub", "das Ding", "ξ", "mome_raths"])
def test_other_names_suggest_nothing(name: str) -> None:
    assert guess_of(name) is None


def test_joined_words_are_cut_only_where_all_parts_are_known() -> None:
    assert words_of("agegroup") == "age group"
    assert words_of("INCWAGE") == "inc wage"
    assert words_of("RDATE") == "date"
    assert words_of("rdate") == "rdate"
    assert words_of("village") == "village"


@pytest.mark.parametrize(
    ("name", "storage", "kind"),
    [
        ("age", "uint8", "integer"),
        ("age", "double", "integer"),
        ("age", "large_string", "open_category"),
        ("sex", "int8", "category"),
        ("smoker", "double", "category"),
        ("income", "int32", "integer"),
        ("income", "float", "float"),
        ("region", "int64", "open_category"),
        ("brillig", "uint8", "integer"),
        ("brillig", "dictionary<values=string, indices=int8, ordered=0>", "open_category"),
        ("brillig", "date32[day]", "date"),
        ("dob", "timestamp[ns]", "datetime"),
        ("year", "uint8", "integer"),
        ("share", "int64", "integer"),
        ("weekday", "int16", "integer"),
    ],
)
def test_guesses_suit_the_storage_type(name: str, storage: str, kind: str) -> None:
    guess = guess_of(name, storage)
    assert guess is not None
    assert guess.kind == kind
    text = draft_schema([(name, storage), ("other", "int64")], unit=Unit()).partition("  other:")[0]
    schema = schema_from_text("\n".join(line.partition("  # guess:")[0] for line in text.splitlines()), "draft")
    assert schema.column(name).kind == kind


@pytest.mark.parametrize(("name", "storage"), [("brillig", "int32"), ("brillig", "double"), ("dob", "int64")])
def test_wide_numbers_without_a_known_name_stay_open(name: str, storage: str) -> None:
    assert guess_of(name, storage) is None


ALL = " ".join(KINDS.values()).split()
TYPES = ["string", "int8", "uint16", "int64", "float", "double", "bool", "date32[day]", "timestamp[s]", "time32[s]"]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(ALL), st.sampled_from(TYPES)), min_size=1, unique_by=lambda pair: pair[0]))
def test_every_guess_is_a_valid_column_once_it_is_confirmed(header: list[tuple[str, str]]) -> None:
    text = draft_schema([*header, ("really", "bool")], unit=Unit())
    opened = {place.column for place in open_places(text) if not place.guess}
    kept = [(name, storage) for name, storage in header if name not in opened]
    text = draft_schema([*kept, ("really", "bool")], unit=Unit())
    confirmed = "\n".join(line.partition("  # guess:")[0] for line in text.splitlines())
    if not {place.column for place in open_places(text) if not place.guess}:
        assert len(schema_from_text(confirmed, "draft").columns) >= 1


def test_a_title_helps_where_the_name_does_not() -> None:
    assert guess_of("v17") is not None
    guess = guess_of("xkcd", title="Age of the respondent")
    assert guess is not None
    assert guess.said["upper"] == 120


STEWARD = (
    "patient_id admission_date discharge_date date_of_birth sex age postcode country marital_status "
    "education occupation insurance_type ward diagnosis_main icd_code_2 icd_code_3 procedure_code "
    "length_of_stay emergency_flag weight_kg height_cm bmi systolic_bp diastolic_bp heart_rate "
    "temperature smoker alcohol_use diabetes_status hba1c cholesterol glucose creatinine hemoglobin "
    "medication_count num_visits readmitted_flag pain_score satisfaction total_cost insurance_amount "
    "doctor_id comments discharge_status outcome survived next_visit_date blood_group vaccinated "
)


def test_a_stewards_file_needs_little_more_than_confirmations() -> None:
    text = draft_schema([(name, "string") for name in STEWARD.split()])
    opened = [place.column for place in open_places(text) if not place.guess and place.column]
    assert len(opened) * 3 <= len(STEWARD.split()), opened
    assert "unit: {column: patient_id, rows: DECIDE}  # guess:" in text
    assert text.count("DECIDE") <= len(STEWARD.split()) // 3 + 4
