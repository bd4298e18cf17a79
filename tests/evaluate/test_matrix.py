"""Model matrices: complete rows, reference levels, outcomes."""

import numpy as np
import pytest

from tests.evaluate.examples import mixed, mixed_frame, rows_of
from understudy.demo import schema_text, voter_table
from understudy.errors import UsageError
from understudy.evaluate.regression import check_outcome, model_data, parse_formula, references
from understudy.schema.document import schema_from_text

ROWS = rows_of(mixed_frame(300), mixed())


def test_incomplete_rows_are_left_out() -> None:
    formula = parse_formula("income ~ age + region", mixed())
    data = model_data(formula, ROWS, references(formula, ROWS))
    missing = np.isnan(ROWS.numbers["income"]) | np.isnan(ROWS.numbers["age"]) | (ROWS.codes["region"] == 4)
    assert data.complete == 300 - missing.sum()
    assert data.design.names == ("(intercept)", "age", "region=south", "region=east")
    np.testing.assert_array_equal(data.outcomes, ROWS.numbers["income"][~missing])


def test_bins_keep_special_values() -> None:
    formula = parse_formula("income ~ C(age)", mixed())
    data = model_data(formula, ROWS, references(formula, ROWS))
    assert "age=999" in data.design.names
    assert data.complete == (~np.isnan(ROWS.numbers["income"])).sum()


def test_products_with_numbers() -> None:
    formula = parse_formula("income ~ age:sex", mixed())
    data = model_data(formula, ROWS, references(formula, ROWS))
    assert data.design.names == ("(intercept)", "age:sex=M")


def test_outcomes() -> None:
    assert check_outcome(parse_formula("income ~ age", mixed()), mixed())
    assert not check_outcome(parse_formula("voted ~ age", mixed()), mixed())
    assert not check_outcome(parse_formula("region[east] ~ age", mixed()), mixed())
    with pytest.raises(UsageError, match="more than two labels"):
        check_outcome(parse_formula("region ~ age", mixed()), mixed())
    formula = parse_formula("region[east] ~ age", mixed())
    data = model_data(formula, ROWS, references(formula, ROWS))
    assert set(data.outcomes.tolist()) == {0.0, 1.0}


def test_references_come_from_the_rows_given() -> None:
    formula = parse_formula("income ~ region", mixed())
    assert references(formula, ROWS) == {"region": 0}
    eastern = ROWS.take(np.flatnonzero(ROWS.codes["region"] == 2))
    assert references(formula, eastern) == {"region": 2}


def test_the_model_of_young_voters_has_thirty_two_coefficients() -> None:
    """Intercept, age, 11 columns of two labels, 14 and 6 labels with one left out each, and one product."""
    schema = schema_from_text(schema_text(), "voters.yaml")
    others = [name for name in schema.names if name != "voted"]
    text = "voted[yes] ~ " + " + ".join([*others, "preregistration_state:registered"])
    rows = rows_of(voter_table(3000), schema)
    formula = parse_formula(text, schema)
    names = model_data(formula, rows, references(formula, rows)).design.names
    assert len(set(names)) == len(names) == 1 + 1 + 11 + 13 + 5 + 1 == 32
    assert names[-1] == "preregistration_state=yes:registered=yes"
