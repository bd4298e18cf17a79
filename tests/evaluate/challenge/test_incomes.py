"""Score 3: the vectors, and cities by hand."""

import numpy as np
import pandas as pd
import pytest

from tests.evaluate.examples import rows_of
from understudy.evaluate.challenge.incomes import City, cities_of, gini, income_score
from understudy.evaluate.score import Unavailable
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
