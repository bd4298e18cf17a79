"""Terms are model matrices in disguise: the same columns that one would write out."""

import numpy as np

from tests.evaluate.examples import mixed, mixed_frame, rows_of
from tests.evaluate.written_out import dense
from understudy.evaluate.glm import column_terms, design_of, factor, product, propensity_terms, slope

CODES = np.array([0, 1, 2, 1, 4])
NAMES = ["a", "b", "c", "d", "e"]


def test_factor_drops_the_reference_and_levels_that_do_not_occur() -> None:
    term = factor(NAMES, CODES)
    assert term.names == ("b", "c", "e")
    assert term.level.tolist() == [-1, 0, 1, 0, 2]
    assert factor(NAMES, CODES, reference=1).names == ("a", "c", "e")


def test_products_are_products_of_columns() -> None:
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    one, two, number = factor(NAMES, CODES), factor(["x", "y"], np.array([0, 1, 1, 0, 1])), slope("z", values)
    both = dense(design_of([product(one, two)], 5))[:, 1:]
    assert product(one, two).names == ("b:y", "c:y", "e:y")
    assert both.sum() == 3
    np.testing.assert_allclose(dense(design_of([product(one, number)], 5))[:, 1], [0, 2, 0, 4, 0])
    np.testing.assert_allclose(dense(design_of([product(number, number)], 5))[:, 1], values**2)


def test_numbers_get_a_slope_and_indicators_of_their_states() -> None:
    rows = rows_of(mixed_frame(300), mixed())
    number, states = column_terms(rows, "age")
    assert number.names == ("age",)
    odd = np.isnan(rows.numbers["age"])
    assert states.names == ("age=999",)
    np.testing.assert_array_equal(states.level >= 0, odd)
    assert number.value is not None
    assert abs(float(number.value[~odd].mean())) < 1e-12
    assert (number.value[odd] == 0).all()


def test_missing_is_a_level_of_labels() -> None:
    rows = rows_of(mixed_frame(300), mixed())
    (term,) = column_terms(rows, "region")
    assert "region=missing" in term.names


def test_interactions_add_every_pair() -> None:
    rows = rows_of(mixed_frame(300), mixed())
    main, all_terms = propensity_terms(rows, interactions=False), propensity_terms(rows, interactions=True)
    assert len(main) == 8  # region, sex, voted; age, income and seen with slopes; age and income with states
    assert len(all_terms) > len(main) + 15
