"""Score 3: the vectors, and cities by hand."""

import numpy as np
import pandas as pd
import pytest

from tests.evaluate.examples import rows_of
from understudy.evaluate.metric import Unavailable
from understudy.evaluate.nist import City, cities_of, gini, income_score
from understudy.schema import Category, Integer, Schema, Unit

CITIES = {"a": City(0.40, 300), "b": City(0.35, 100), "c": City(0.50, 200)}
OTHERS = {"a": City(0.45, 150), "b": City(0.30, 120), "c": City(0.50, 260)}


def test_gini_vectors() -> None:
    assert gini(np.array([0.0, 0.0, 0.0, 10.0])) == pytest.approx(0.5)
    assert gini(np.array([100.0, 200.0, 300.0])) == pytest.approx(-0.1111, abs=1e-4)
    assert gini(np.full(4, 7.0)) == pytest.approx(-0.25)
    assert gini(np.zeros(3)) == gini(np.empty(0)) == 1.0


def test_score_vector() -> None:
    assert income_score(CITIES, OTHERS) == pytest.approx(837_030.4, abs=0.1)
    same = income_score(CITIES, CITIES)
    assert same == pytest.approx(1e6)


def test_the_two_parts_of_the_score() -> None:
    """Inequality alone with the original's gaps, ranks alone with its inequality: the other part is full."""
    same_gaps = {name: City(OTHERS[name].gini, city.gap) for name, city in CITIES.items()}
    same_gini = {name: City(city.gini, OTHERS[name].gap) for name, city in CITIES.items()}
    assert income_score(CITIES, same_gaps) == pytest.approx(483_477.0 + 500_000, abs=0.05)
    assert income_score(CITIES, same_gini) == pytest.approx(353_553.4 + 500_000, abs=0.05)


def test_missing_cities_contribute_nothing() -> None:
    fewer = income_score(CITIES, {"a": CITIES["a"]})
    assert fewer == pytest.approx(500_000 * 2 * np.sqrt(1 / 3))
    assert income_score(CITIES, {}) == 0
    assert isinstance(income_score({"a": CITIES["a"]}, OTHERS), Unavailable)


@pytest.mark.parametrize("numeric", [True, False])
def test_cities_by_hand(numeric: bool) -> None:
    wages = ["100", "300", "999998", "50", "70"]
    wage = (
        Integer(name="INCWAGE", lower=0, upper=10_000, special=(999_998,), missing=False)
        if numeric
        else Category(name="INCWAGE", labels=tuple(wages), missing=False)
    )
    columns = (Category(name="SEX", labels=("1", "2")), Category(name="CITY", labels=("x", "y"), missing=False), wage)
    frame = pd.DataFrame({"SEX": ["1", "2", "1", "1", None], "CITY": list("xxxyy"), "INCWAGE": wages})
    found = cities_of(rows_of(frame, Schema(columns=columns, unit=Unit())), ("SEX", "CITY", "INCWAGE"), ("1", "2"))
    assert found["x"].gap == pytest.approx(100 - 300)
    assert found["x"].gini == pytest.approx(gini(np.array([100.0, 300.0])))
    assert found["y"].gap == pytest.approx(50)


def _three_columns() -> Schema:
    return Schema(
        columns=(
            Category(name="SEX", labels=("1", "2"), missing=False),
            Category(name="CITY", labels=("10", "20", "30", "40"), missing=False),
            Integer(name="INCWAGE", lower=0, upper=5000, special=(999_998,), missing=False),
        ),
        unit=Unit(),
    )


def _cities(*people: tuple[str, str, int]) -> dict[str, City]:
    frame = pd.DataFrame(people, columns=["SEX", "CITY", "INCWAGE"])
    return cities_of(rows_of(frame, _three_columns()), ("SEX", "CITY", "INCWAGE"), ("1", "2"))


def test_a_city_without_a_known_wage_is_ranked() -> None:
    """Gini index 1 and pay gap 0, as the official program has it; the city was left out once."""
    original = _cities(("1", "10", 900), ("2", "10", 100), ("1", "20", 500), ("2", "20", 400), ("1", "30", 50),
                       ("2", "30", 450))  # fmt: skip
    submission = _cities(("1", "10", 900), ("2", "10", 100), ("1", "20", 999_998), ("2", "20", 999_998),
                         ("1", "30", 50), ("2", "30", 450))  # fmt: skip
    assert submission["20"] == City(1.0, 0.0)
    ours = original["20"].gini
    # Gaps 800, 100, −400 become 800, 0, −400: the order stays, and the index of one city is off by 1 − ours.
    wanted = 500_000 * (np.sqrt((2 + (1 - abs(1 - ours)) ** 2) / 3) + 1)
    assert income_score(original, submission) == pytest.approx(wanted)


def test_neighbouring_cases_of_a_city() -> None:
    found = _cities(("1", "10", 0), ("2", "10", 0), ("1", "20", 300), ("1", "20", 100), ("2", "30", 70), ("2", "40", 0),
                    ("1", "40", 999_998))  # fmt: skip
    assert found["10"] == City(1.0, 0.0)  # nobody earns anything
    assert found["20"].gap == pytest.approx(200)  # no women: the mean of men
    assert found["30"].gap == pytest.approx(-70)  # no men: minus the mean of women
    assert found["40"] == City(1.0, 0.0)  # one known wage, of 0


def test_wages_are_those_of_the_file() -> None:
    """A wage above the schema's bound counts as it is, and is not clamped."""
    found = _cities(("1", "10", 9000), ("2", "10", 1000))
    assert found["10"].gap == pytest.approx(8000)


def test_cities_that_the_original_lacks_still_take_a_rank() -> None:
    original = {"a": City(0.2, 30), "b": City(0.2, 20), "c": City(0.2, 10)}
    assert income_score(original, original | {"x": City(0.2, 25)}) == pytest.approx(
        500_000 * (1 + np.sqrt((1 + 0.25 + 0.25) / 3))
    )
