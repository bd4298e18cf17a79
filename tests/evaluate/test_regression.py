"""The metric of regressions."""

import dataclasses

import numpy as np
import pytest
import statsmodels.api as sm

from tests.evaluate.examples import context, mixed, mixed_frame, pair_of, rows_of, shuffled
from tests.evaluate.written_out import dense
from understudy.demo import schema_text, voter_table
from understudy.errors import UsageError
from understudy.evaluate import regression
from understudy.evaluate.metric import Unavailable
from understudy.evaluate.pooling_rules import pool_liu
from understudy.evaluate.regression import (
    Compared,
    Estimate,
    FittedCoefficients,
    IntervalOverlap,
    ModelComparison,
    ModelData,
    Regression,
    TermPart,
    check_outcome,
    checked_formula,
    coefficient_detail,
    compare_models,
    fit_model,
    interval_overlap,
    model_data,
    parse_formula,
    references,
)
from understudy.schema import Category, Integer, Schema, Unit
from understudy.schema.document import schema_from_text

FRAME = mixed_frame(500)


def test_fresh_rows_are_close_and_shuffled_ones_are_not() -> None:
    metric = Regression(formula="income ~ age + sex")
    fresh = metric.compare(pair_of(FRAME, mixed_frame(500, seed=9)), context())
    apart = metric.compare(pair_of(FRAME, shuffled(FRAME)), context())
    assert fresh.value < 3 < apart.value  # type: ignore[operator]
    assert fresh.score("same_sign").value == 1
    assert apart.score("covered").value < 0.5  # type: ignore[operator]
    assert fresh.notes[0] == "Model: income ~ age + sex (linear)."


def test_lost_coefficients_are_told() -> None:
    found = Regression(formula="income ~ region").compare(pair_of(FRAME, FRAME[FRAME["region"] != "east"]), context())
    assert "1 coefficients cannot be estimated" in found.notes[-1]


def test_without_a_formula_there_is_a_reason() -> None:
    found = Regression().compare(pair_of(FRAME, FRAME), context())
    assert {score.why_not for score in found.scores} == {"no formula was given"}
    Regression().check(mixed())
    with pytest.raises(UsageError, match="not a column"):
        Regression(formula="wage ~ age").check(mixed())


# The metric of interval overlap.


CI_OVERLAP_FRAME = mixed_frame(400)


def test_overlap_is_the_mean_over_coefficients() -> None:
    found = IntervalOverlap(formula="income ~ age + sex").compare(
        pair_of(CI_OVERLAP_FRAME, shuffled(CI_OVERLAP_FRAME)), context()
    )
    rows = found.detail("coefficients").records()
    assert found.value == pytest.approx(sum(row["overlap"] for row in rows) / len(rows))  # type: ignore[misc]
    gaps = found.score("mean_with_gaps").value
    assert gaps == pytest.approx(sum(row["overlap_or_gap"] for row in rows) / len(rows))  # type: ignore[misc]
    assert gaps < found.value  # type: ignore[operator]
    assert found.score("worst_overlap").value == 0


def test_profile_intervals() -> None:
    metric = IntervalOverlap(formula="voted ~ sex", family="firth", interval="profile")
    found = metric.compare(pair_of(CI_OVERLAP_FRAME, mixed_frame(400, seed=8)), context())
    wald = IntervalOverlap(formula="voted ~ sex", family="firth").compare(
        pair_of(CI_OVERLAP_FRAME, mixed_frame(400, seed=8)), context()
    )
    assert found.value == pytest.approx(wald.value, abs=0.05)
    assert found.value != wald.value
    assert "profile intervals" in found.notes[0]


def test_profile_intervals_of_several_copies_are_refused_by_their_name() -> None:
    metric = IntervalOverlap(formula="voted ~ sex", family="firth", interval="profile")
    found = metric.compare(pair_of(CI_OVERLAP_FRAME, mixed_frame(300, seed=8), mixed_frame(300, seed=9)), context())
    assert all(score.value is None and "cannot be pooled" in score.why_not for score in found.scores)
    assert not any("profile" in note for note in found.notes)
    wald = IntervalOverlap(formula="voted ~ sex", family="firth")
    pooled = wald.compare(pair_of(CI_OVERLAP_FRAME, mixed_frame(300, seed=8), mixed_frame(300, seed=9)), context())
    assert pooled.value is not None
    assert "95 % Wald intervals" in pooled.notes[0]


# Coefficients side by side: overlap vectors, pooling, choice of the family.


COEFFICIENTS_FRAME = mixed_frame(400)


def _compared(text: str, *copies: object, family: str = "auto") -> ModelComparison:
    pair = pair_of(COEFFICIENTS_FRAME, *copies)
    found = compare_models(pair, pair.real, pair.copies, text, family, level=0.95)  # type: ignore[arg-type]
    assert isinstance(found, ModelComparison)
    return found


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [((0, 2), (1, 5), 0.375), ((0, 4), (1, 2), 0.625), ((0, 1), (0, 1), 1.0), ((0, 1), (3, 4), -2.0)],
)
def test_overlap_vectors(first: tuple[float, float], second: tuple[float, float], overlap: float) -> None:
    assert interval_overlap(first, second) == pytest.approx(overlap)
    assert interval_overlap(second, first) == pytest.approx(overlap)


def test_intervals_without_width() -> None:
    assert interval_overlap((1, 1), (1, 1)) == 1
    assert interval_overlap((1, 1), (0, 2)) == 0


def test_facts_about_a_coefficient() -> None:
    one = Compared("a", Estimate(1.0, 0.5, 0.0, 2.0), Estimate(2.0, 0.25, 1.5, 2.5))
    assert (one.standardised, one.same_sign, one.covered) == (2.0, True, False)
    lost = Compared("a", Estimate(1.0, 0.5, 0.0, 2.0), None)
    assert (lost.standardised, lost.same_sign, lost.covered, lost.overlap) == (None, False, False, 0.0)


def test_copies_are_pooled_by_lius_rule() -> None:
    copies = [mixed_frame(400, seed) for seed in (2, 3, 4)]
    pooled = _compared("income ~ age + sex", *copies)
    alone = [_compared("income ~ age + sex", copy) for copy in copies]
    for place, one in enumerate(pooled.coefficients):
        single = [found.coefficients[place].synthetic for found in alone]
        wanted = pool_liu([fit.value for fit in single if fit], [fit.error**2 for fit in single if fit])
        assert one.synthetic is not None
        assert (one.synthetic.value, one.synthetic.low) == pytest.approx((wanted.estimate, wanted.low))


def test_levels_that_are_gone_have_no_estimate() -> None:
    copy = COEFFICIENTS_FRAME[COEFFICIENTS_FRAME["region"] != "east"]
    found = {one.name: one for one in _compared("income ~ region", copy).coefficients}
    assert found["region=east"].synthetic is None
    assert found["region=south"].synthetic is not None


def test_auto_uses_firth_where_estimates_run_away() -> None:
    assert _compared("voted ~ age", COEFFICIENTS_FRAME).family == "logistic"
    assert _compared("income ~ age", COEFFICIENTS_FRAME).family == "linear"
    separated = COEFFICIENTS_FRAME.assign(voted=COEFFICIENTS_FRAME["age"] > 40)
    pair = pair_of(separated, separated)
    found = compare_models(pair, pair.real, pair.copies, "voted ~ C(age)", "auto", level=0.95)
    assert isinstance(found, ModelComparison)
    assert found.family == "firth"
    assert any("Firth" in note for note in found.notes)


def test_incomplete_rows_are_told() -> None:
    assert any("left out" in note for note in _compared("income ~ age", shuffled(COEFFICIENTS_FRAME)).notes)


def test_copies_of_one_model_come_with_a_warning() -> None:
    pair = dataclasses.replace(
        pair_of(COEFFICIENTS_FRAME, COEFFICIENTS_FRAME, COEFFICIENTS_FRAME), copies_mode="resample"
    )
    found = compare_models(pair, pair.real, pair.copies, "income ~ age", "auto", level=0.95)
    assert isinstance(found, ModelComparison)
    assert any("privacy noise" in note for note in found.notes)
    renewed = dataclasses.replace(pair, copies_mode="remeasure")
    again = compare_models(renewed, pair.real, pair.copies, "income ~ age", "auto", level=0.95)
    assert not any("privacy noise" in note for note in again.notes)  # type: ignore[union-attr]


def test_detail_is_worst_first() -> None:
    rows = coefficient_detail(_compared("income ~ age + sex", shuffled(COEFFICIENTS_FRAME))).records()
    overlaps = [row["overlap_or_gap"] for row in rows]
    assert overlaps == sorted(overlaps)  # type: ignore[type-var]


def test_reasons() -> None:
    pair = pair_of(COEFFICIENTS_FRAME, COEFFICIENTS_FRAME.assign(voted=True))
    nothing = compare_models(pair, pair.real, pair.copies, "", "auto", level=0.95)
    assert nothing == Unavailable("no formula was given")
    constant = compare_models(pair, pair.real, pair.copies, "voted ~ age", "logistic", level=0.95)
    assert isinstance(constant, Unavailable)
    assert constant.reason.startswith("copy 1: the outcome is the same")
    with pytest.raises(UsageError, match="number as outcome"):
        checked_formula("income ~ age", "firth", mixed())
    with pytest.raises(UsageError, match="labels as outcome"):
        checked_formula("voted ~ age", "linear", mixed())


# Estimates and intervals against an independent implementation.


ROWS = rows_of(mixed_frame(400), mixed())


def _data(text: str) -> ModelData:
    formula = parse_formula(text, mixed())
    return model_data(formula, ROWS, references(formula, ROWS))


@pytest.mark.parametrize(
    ("text", "family", "model"), [("income ~ age + sex", "linear", sm.OLS), ("voted ~ age + sex", "logistic", sm.Logit)]
)
def test_equals_statsmodels(text: str, family: str, model: type) -> None:
    data = _data(text)
    found = fit_model(data, family, level=0.9)  # type: ignore[arg-type]
    reference = model(data.outcomes, dense(data.design)).fit(**({"disp": 0} if family == "logistic" else {}))
    assert isinstance(found, FittedCoefficients)
    ends = reference.conf_int(0.1)
    for place, estimate in enumerate(found.estimates.values()):
        assert estimate.value == pytest.approx(reference.params[place], rel=1e-6, abs=1e-9)
        assert estimate.error == pytest.approx(reference.bse[place], rel=1e-5)
        assert (estimate.low, estimate.high) == pytest.approx(tuple(ends[place]), rel=1e-5, abs=1e-7)


def test_firth_profile_intervals_are_wider_on_the_far_side() -> None:
    data = _data("voted ~ sex")
    wald, profile = fit_model(data, "firth"), fit_model(data, "firth", profile=True)
    assert isinstance(wald, FittedCoefficients)
    assert isinstance(profile, FittedCoefficients)
    one, other = wald.estimates["sex=M"], profile.estimates["sex=M"]
    assert one.value == other.value
    assert (other.low, other.high) == pytest.approx((one.low, one.high), abs=0.02)


def test_estimates_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    data = _data("voted ~ age")
    constant = ModelData(data.design, np.ones(data.complete), data.complete, data.rows)
    assert "same in every" in fit_model(constant, "logistic").reason  # type: ignore[union-attr]
    none = ModelData(data.design.take(np.arange(0)), np.empty(0), 0, 10)
    assert "fewer than two rows" in fit_model(none, "linear").reason  # type: ignore[union-attr]
    two = ModelData(data.design.take(np.arange(2)), np.array([0.0, 1.0]), 2, 10)
    assert "no more complete rows" in fit_model(two, "linear").reason  # type: ignore[union-attr]
    monkeypatch.setattr(regression, "MOST_COEFFICIENTS", 1)
    assert isinstance(fit_model(data, "logistic"), Unavailable)


# Formulas: what they mean, and what is refused.


ODD = Schema(
    columns=(
        Integer(name="my income [in ~ +]", lower=0, upper=9),
        Category(name="a:b", labels=("x y", "[z]")),
        Category(name="c", labels=("u", "v")),
    ),
    unit=Unit(),
)


def _terms(text: str) -> list[tuple[str, ...]]:
    return [tuple(str(part) for part in term) for term in parse_formula(text, mixed()).terms]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("income ~ age", [("age",)]),
        ("income~age+sex", [("age",), ("sex",)]),
        ("income ~ age + age", [("age",)]),
        ("income ~ age:sex", [("age", "sex")]),
        ("income ~ age*sex", [("age",), ("sex",), ("age", "sex")]),
        ("income ~ age*sex*voted", [("age",), ("sex",), ("voted",), ("age", "sex"), ("age", "voted"), ("sex", "voted"),
                                    ("age", "sex", "voted")]),
        ("income ~ C(age) + sex", [("C(age)",), ("sex",)]),
        ("income ~ `age` + `sex`", [("age",), ("sex",)]),
        ("voted ~ .", [("region",), ("sex",), ("age",), ("income",), ("seen",)]),
    ],
)  # fmt: skip
def test_terms(text: str, terms: list[tuple[str, ...]]) -> None:
    found = _terms(text)
    assert sorted(map(sorted, found)) == sorted(map(sorted, terms))


def test_order_of_main_effects_is_kept() -> None:
    assert _terms("income ~ sex + age")[0] == ("sex",)


def test_events() -> None:
    assert parse_formula("voted[true] ~ age", mixed()).event == "true"
    assert parse_formula("region[east] ~ age", mixed()).event == "east"
    assert parse_formula("region[else] ~ age", mixed()).event == "else"
    assert parse_formula("income ~ age", mixed()).event is None


def test_odd_names() -> None:
    formula = parse_formula("`my income [in ~ +]` ~ `a:b` + c + `a:b`:c", ODD)
    assert formula.outcome == "my income [in ~ +]"
    assert formula.terms == ((TermPart("a:b"),), (TermPart("c"),), (TermPart("a:b"), TermPart("c")))
    assert parse_formula("c[v] ~ `a:b`", ODD).columns == ("c", "a:b")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 'needs a "~"'),
        ("income", 'needs a "~"'),
        ("income ~", "empty term"),
        ("~ age", "empty term"),
        ("income ~ age +", "empty term"),
        ("income ~ wage", "not a column"),
        ("income ~ agee", 'Did you mean "age"'),
        ("wage ~ age", "not a column"),
        ("income ~ income", "outcome"),
        ("income ~ age:income", "outcome"),
        ("region[west] ~ age", "no label 'west'"),
        ("income[5] ~ age", "holds numbers"),
        ("income ~ age - 1", "not a column"),
        ("income ~ __import__('os')", "not a column"),
    ],
)
def test_refusals(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_formula(text, mixed())


# Model matrices: complete rows, reference levels, outcomes.


MATRIX_ROWS = rows_of(mixed_frame(300), mixed())


def test_incomplete_rows_are_left_out() -> None:
    formula = parse_formula("income ~ age + region", mixed())
    data = model_data(formula, MATRIX_ROWS, references(formula, MATRIX_ROWS))
    missing = (
        np.isnan(MATRIX_ROWS.numbers["income"])
        | np.isnan(MATRIX_ROWS.numbers["age"])
        | (MATRIX_ROWS.codes["region"] == 4)
    )
    assert data.complete == 300 - missing.sum()
    assert data.design.names == ("(intercept)", "age", "region=south", "region=east")
    np.testing.assert_array_equal(data.outcomes, MATRIX_ROWS.numbers["income"][~missing])


def test_bins_keep_special_values() -> None:
    formula = parse_formula("income ~ C(age)", mixed())
    data = model_data(formula, MATRIX_ROWS, references(formula, MATRIX_ROWS))
    assert "age=999" in data.design.names
    assert data.complete == (~np.isnan(MATRIX_ROWS.numbers["income"])).sum()


def test_products_with_numbers() -> None:
    formula = parse_formula("income ~ age:sex", mixed())
    data = model_data(formula, MATRIX_ROWS, references(formula, MATRIX_ROWS))
    assert data.design.names == ("(intercept)", "age:sex=M")


def test_outcomes() -> None:
    assert check_outcome(parse_formula("income ~ age", mixed()), mixed())
    assert not check_outcome(parse_formula("voted ~ age", mixed()), mixed())
    assert not check_outcome(parse_formula("region[east] ~ age", mixed()), mixed())
    with pytest.raises(UsageError, match="more than two labels"):
        check_outcome(parse_formula("region ~ age", mixed()), mixed())
    formula = parse_formula("region[east] ~ age", mixed())
    data = model_data(formula, MATRIX_ROWS, references(formula, MATRIX_ROWS))
    assert set(data.outcomes.tolist()) == {0.0, 1.0}


def test_references_come_from_the_rows_given() -> None:
    formula = parse_formula("income ~ region", mixed())
    assert references(formula, MATRIX_ROWS) == {"region": 0}
    eastern = MATRIX_ROWS.take(np.flatnonzero(MATRIX_ROWS.codes["region"] == 2))
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
