"""Tests of `understudy.evaluate.propensity`."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp

from tests.evaluate.examples import codes_schema, context, mixed, mixed_frame, pair_of, rows_of, shuffled
from understudy.errors import UsageError
from understudy.evaluate import propensity
from understudy.evaluate.metric import TablePair, Unavailable
from understudy.evaluate.propensity import (
    Classifier,
    Logistic,
    Pmse,
    Specks,
    Trees,
    closed_form,
    common_complexity,
    drawn_null,
    kolmogorov_smirnov,
    labels,
    legacy_distance,
    mean_squared_deviation,
    observed,
    out_of_sample,
)
from understudy.schema import Category, Schema, Unit

# specks: what it sees, what it cannot see, and which columns give rows away.


FRAME = mixed_frame(500)


def test_other_shares_are_seen_by_the_regression() -> None:
    other = FRAME.copy()
    other.loc[other.index[:250], "sex"] = "F"
    result = Specks().compare(pair_of(FRAME, other), context("specks"))
    assert result.score("logistic").value > 1.5 * result.score("logistic").yardstick  # type: ignore[operator]
    assert result.detail("columns").records(1)[0]["column"] == "sex"


def test_lost_associations_are_seen_with_interactions() -> None:
    pair = pair_of(FRAME, shuffled(FRAME))
    main = Specks().compare(pair, context("specks"))
    every = Specks(terms="interactions").compare(pair, context("specks"))
    assert every.score("logistic").value > main.score("logistic").value + 0.2  # type: ignore[operator]
    assert "single columns" in main.notes[0]
    assert not any("single columns" in note for note in every.notes)


def test_exact_value_for_one_column() -> None:
    """One binary column: the scores take two values, and the distance is the difference of shares."""
    schema = Schema(columns=(Category(name="a", labels=("x", "y"), missing=False),), unit=Unit())
    first = pd.DataFrame({"a": ["x"] * 30 + ["y"] * 70})
    second = pd.DataFrame({"a": ["x"] * 55 + ["y"] * 45})
    result = Specks().compare(pair_of(first, second, schema=schema), context("specks"))
    assert result.value == pytest.approx(0.25)
    assert result.score("cart").value == pytest.approx(0.25)


def test_reasons() -> None:
    small = Specks().compare(pair_of(FRAME, FRAME.head(5)), context("specks"))
    assert "fewer than 10 rows" in small.why_not
    folds = Specks(scheme="folds").compare(pair_of(FRAME, FRAME.head(40)), context("specks"))
    assert "fewer than 50 rows" in folds.why_not
    assert mixed().title == "mixed"


def _complexities(notes: tuple[str, ...]) -> set[str]:
    return {found for note in notes for found in re.findall(r"at complexity ([0-9.e+-]+\d)", note)}


def test_one_complexity_for_all_data_sets_and_both_metrics() -> None:
    """Copies that differ by much: each of them, the halves and the other metric used to get a complexity of its own."""
    copies = (shuffled(FRAME), mixed_frame(500, seed=9), FRAME.assign(sex="F"))
    pair = pair_of(FRAME, *copies)
    by_specks = _complexities(Specks().compare(pair, context("specks")).notes)
    by_pmse = _complexities(Pmse(draws=2).compare(pair, context("pmse")).notes)
    assert len(by_specks) == 1
    assert by_pmse == by_specks
    (chosen,) = by_specks
    alone = [
        Specks(complexity=common_complexity(pair, None)).compare(pair_of(FRAME, copy), context("specks"))
        for copy in copies
    ]
    whole = Specks().compare(pair, context("specks"))
    assert whole.score("cart").value == pytest.approx(sum(one.score("cart").value or 0 for one in alone) / 3)
    assert f"{common_complexity(pair, None):.3g}" == chosen


def test_the_complexity_can_be_set_for_both_metrics() -> None:
    pair = pair_of(FRAME, shuffled(FRAME))
    assert Specks(complexity=1.0).compare(pair, context("specks")).score("cart").value == 0
    assert "0.25" in _complexities(Specks(complexity=0.25).compare(pair, context("specks")).notes)
    for kind in (Specks, Pmse):
        with pytest.raises(UsageError, match="from 0 to 1"):
            kind(complexity=1.5)


# pmse: raw, ratio and standardised values against each null, and what happens when no tree splits.


def test_exact_values_for_one_column() -> None:
    schema = codes_schema({"a": 2})
    first, second = pd.DataFrame({"a": ["0"] * 60 + ["1"] * 40}), pd.DataFrame({"a": ["0"] * 40 + ["1"] * 60})
    result = Pmse(draws=2).compare(pair_of(first, second, schema=schema), context("pmse"))
    assert result.score("logistic_raw").value == pytest.approx(0.01)  # scores are 0.4 and 0.6
    assert result.score("logistic_ratio").value == pytest.approx(0.01 / (0.25 / 200))
    spread = np.sqrt(2) * 0.25 / 200
    assert result.score("logistic_standardised").value == pytest.approx((0.01 - 0.25 / 200) / spread)
    by_null = {row["null"]: row for row in result.detail("variants").records() if row["tables"] == "copy 1"
               and row["classifier"] == "logistic"}  # fmt: skip
    assert by_null["fitted_model"]["ratio"] == pytest.approx(2 * by_null["permutation"]["ratio"])  # type: ignore[operator]


def test_copies_are_averaged() -> None:
    one, two = shuffled(FRAME, 1), shuffled(FRAME, 2)
    options = Pmse(draws=2, complexity=0.001)
    alone = [options.compare(pair_of(FRAME, copy), context("pmse")).score("cart_raw").value for copy in (one, two)]
    both = options.compare(pair_of(FRAME, one, two), context("pmse"))
    assert both.score("cart_raw").value == pytest.approx(sum(alone) / 2)  # type: ignore[arg-type]


CALIBRATED = [
    ("permutation", "in_sample"),
    ("permutation", "folds"),
    ("fitted_model", "in_sample"),
    ("bootstrap", "in_sample"),
    ("bootstrap", "folds"),
]


def test_the_fitted_model_null_of_folds_is_refused() -> None:
    with pytest.raises(UsageError, match="scheme in_sample"):
        Pmse(null="fitted_model", scheme="folds")


@pytest.mark.parametrize(("null", "scheme"), CALIBRATED)
def test_every_null_and_scheme(null: str, scheme: str) -> None:
    options = Pmse(null=null, scheme=scheme, draws=2, complexity=0.0)  # type: ignore[arg-type]
    result = options.compare(pair_of(FRAME, mixed_frame(400, seed=5)), context("pmse"))
    assert result.value is not None
    assert 0.2 < result.value < 5
    assert f"The null is {null}." in result.notes


def test_trees_that_do_not_split_leave_no_ratio() -> None:
    result = Pmse(draws=3, complexity=1.0).compare(pair_of(FRAME, shuffled(FRAME)), context("pmse"))
    assert result.score("cart_raw").value == pytest.approx(0)
    assert "no tree split" in result.score("cart_ratio").why_not
    assert any("3 of 3 trees under the null did not split" in note for note in result.notes)


def test_constant_columns_leave_no_ratio() -> None:
    schema = codes_schema({"a": 2})
    frame = pd.DataFrame({"a": ["0"] * 50})
    result = Pmse(draws=2).compare(pair_of(frame, frame, schema=schema), context("pmse"))
    assert "no column varies" in result.why_not


# Classifiers fit any labels to any rows of a stacked table.


CLASSIFIER_FRAME = mixed_frame(400)
REAL, OTHER = rows_of(CLASSIFIER_FRAME, mixed()), rows_of(shuffled(CLASSIFIER_FRAME), mixed())
TARGET = labels(REAL, OTHER)


def _classifiers() -> list[Logistic | Trees]:
    logistic = Logistic.of(REAL, OTHER, "interactions")
    assert isinstance(logistic, Logistic)
    return [logistic, Trees.of(REAL, OTHER, 0.001)]


@pytest.mark.parametrize("place", [0, 1])
def test_scores_are_probabilities_and_calibrated_in_sample(place: int) -> None:
    scored = _classifiers()[place].scores(TARGET)
    assert scored.scores.min() >= 0
    assert scored.scores.max() <= 1
    assert scored.scores.mean() == pytest.approx(0.5, abs=1e-4)
    assert scored.scores[400:].mean() > scored.scores[:400].mean()


@pytest.mark.parametrize("place", [0, 1])
def test_out_of_sample_rows_take_no_part(place: int) -> None:
    scored, places = out_of_sample(_classifiers()[place], TARGET, np.random.default_rng(2))
    assert len(scored.scores) == len(places) == len(set(places.tolist()))
    assert len(places) == pytest.approx(0.3 * 800, abs=10)
    assert abs((TARGET[places] == 1).mean() - 0.5) < 0.02


@pytest.mark.parametrize("place", [0, 1])
def test_resampled_rows_are_the_rows(place: int) -> None:
    classifier = _classifiers()[place]
    index = np.arange(800)[::-1].copy()
    again = classifier.resampled(index).scores(TARGET[index])
    np.testing.assert_allclose(again.scores[::-1], classifier.scores(TARGET).scores, atol=1e-8)


def test_too_many_coefficients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(propensity, "MOST_COEFFICIENTS", 5)
    found = Logistic.of(REAL, OTHER)
    assert isinstance(found, Unavailable)
    assert "above the limit of 5" in found.reason


def test_complexity_is_chosen_when_not_given() -> None:
    assert common_complexity(TablePair(REAL.codec, REAL, (OTHER,), 1), None) >= 0
    assert common_complexity(TablePair(REAL.codec, REAL, (OTHER,), 1), 0.25) == 0.25


# Distances of scores: vectors, an independent implementation, and the published script's other quantity.


FIRST = np.array([0.2, 0.3, 0.3, 0.4, 0.5])
SECOND = np.array([0.3, 0.5, 0.6, 0.6, 0.7])


def test_vectors() -> None:
    assert kolmogorov_smirnov(FIRST, SECOND) == pytest.approx(0.6, abs=1e-12)
    assert legacy_distance(FIRST, SECOND) == pytest.approx(0.3000, abs=1e-4)


def test_legacy_is_another_quantity() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.normal(0.49, 0.01, 20_000), rng.normal(0.51, 0.01, 20_000)
    assert kolmogorov_smirnov(first, second) == pytest.approx(0.6827, abs=0.02)
    assert legacy_distance(first, second) == pytest.approx(0.0249, abs=0.004)


@pytest.mark.parametrize("seed", range(5))
def test_equals_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 9, 70) / 8, rng.integers(2, 12, 40) / 8
    assert kolmogorov_smirnov(first, second) == pytest.approx(ks_2samp(first, second).statistic)


def test_mean_squared_deviation() -> None:
    assert mean_squared_deviation(np.array([0.4, 0.6]), 0.5) == pytest.approx(0.01)


# Nulls of pMSE: closed forms against simulation, and draws against the closed form.


SCHEMA = codes_schema({"a": 2, "b": 2, "c": 3})


def _rows(rng: np.random.Generator, rows: int) -> object:
    columns = {"a": rng.integers(0, 2, rows), "b": rng.integers(0, 2, rows), "c": rng.integers(0, 3, rows)}
    return rows_of(pd.DataFrame(columns).astype(str), SCHEMA)


def test_closed_forms() -> None:
    fitted = closed_form("fitted_model", 5, 0.5, 1000)
    assert (fitted.mean, fitted.spread) == pytest.approx((4 * 0.125 / 1000, np.sqrt(8) * 0.125 / 1000))
    both = closed_form("permutation", 5, 0.5, 1000)
    assert both.mean == pytest.approx(1e-3)
    assert fitted.mean / both.mean == pytest.approx(0.5)
    uneven = [closed_form(name, 5, 0.25, 1000).mean for name in ("fitted_model", "permutation")]  # type: ignore[arg-type]
    assert uneven[0] / uneven[1] == pytest.approx(0.75)


def test_draws_agree_with_the_closed_form() -> None:
    rng = np.random.default_rng(1)
    first, second = _rows(rng, 400), _rows(rng, 400)
    classifier = Logistic.of(first, second)  # type: ignore[arg-type]
    assert isinstance(classifier, Logistic)
    target = labels(first, second)  # type: ignore[arg-type]
    for name in ("permutation", "bootstrap"):
        drawn = drawn_null(classifier, target, "in_sample", name, draws=150, context=context())  # type: ignore[arg-type]
        wanted = closed_form("permutation", 5, 0.5, 800)
        assert drawn.mean == pytest.approx(wanted.mean, abs=4 * wanted.spread / np.sqrt(150))
        assert len(drawn.draws) == 150
    halved = drawn_null(classifier, target, "in_sample", "fitted_model", draws=5, context=context())
    assert halved.mean > 0


def test_observed_counts_parameters_and_splits() -> None:
    rng = np.random.default_rng(2)
    first, second = _rows(rng, 300), _rows(rng, 300)
    target = labels(first, second)  # type: ignore[arg-type]
    value, parameters, splits = observed(
        Logistic.of(first, second), target, "in_sample", np.random.default_rng(1)  # type: ignore[arg-type]
    )  # fmt: skip
    assert (parameters, splits) == (5, True)
    assert 0 < value < 0.25
    unsplit = observed(Trees.of(first, second, 1.0), target, "in_sample", rng)  # type: ignore[arg-type]
    assert unsplit[0] == pytest.approx(0)
    assert unsplit[2] is False


def _pair(null: str, rng: np.random.Generator) -> tuple[object, object, object]:
    """Two tables as the null says, and the real rows it speaks of."""
    real = _rows(rng, 500)
    if null == "permutation":
        return real, _rows(rng, 500), real
    if null == "bootstrap":
        return *(real.take(rng.integers(0, 500, 500)) for _ in range(2)), real  # type: ignore[attr-defined, return-value]
    if null == "saturated":  # the correct model that fits every combination: the real table itself
        return real, real.take(rng.integers(0, 500, 500)), real  # type: ignore[attr-defined]
    # from the product of the fitted one-way tables: the right model here, as far as single columns are looked at
    shares = {name: np.bincount(real.codes[name], minlength=size) / 500  # type: ignore[attr-defined]
              for name, size in {"a": 2, "b": 2, "c": 3}.items()}  # fmt: skip
    columns = {name: rng.choice(len(share), 500, p=share) for name, share in shares.items()}
    return real, rows_of(pd.DataFrame(columns).astype(str), SCHEMA), real


def _simulated(null: str, *, scheme: str = "in_sample", kind: str = "logistic", repeats: int = 200) -> np.ndarray:
    """pMSE-ratios of tables drawn as the null says, each divided as `pmse` divides."""
    rng = np.random.default_rng(7)
    name = "fitted_model" if null == "saturated" else null
    ratios = []
    for _ in range(repeats):
        first, second, real = _pair(null, rng)
        target = labels(first, second)  # type: ignore[arg-type]
        value, parameters, _ = observed(_classifier(kind, first, second, rng), target, scheme, rng)  # type: ignore[arg-type]
        if kind == "logistic" and scheme == "in_sample" and null != "bootstrap":
            mean = closed_form(name, parameters, 0.5, 1000).mean  # type: ignore[arg-type]
        else:
            against = _classifier(kind, real, second, rng)
            mean = drawn_null(against, target, scheme, name, draws=10, context=context()).mean  # type: ignore[arg-type]
        ratios.append(value / mean)
    return np.asarray(ratios)


def _classifier(kind: str, first: object, second: object, rng: np.random.Generator) -> Classifier:
    found = Logistic.of(first, second) if kind == "logistic" else Trees.of(first, second, 0.0)  # type: ignore[arg-type]
    assert not isinstance(found, Unavailable)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("null", ["permutation", "fitted_model"])
def test_ratio_is_one_under_its_null(null: str) -> None:
    ratios = _simulated(null)
    # pMSE follows a scaled χ² with 4 degrees of freedom: mean 1, standard deviation √(2/4).
    assert ratios.mean() == pytest.approx(1.0, abs=4 * np.sqrt(0.5) / np.sqrt(200))
    assert ratios.std() == pytest.approx(np.sqrt(0.5), rel=0.25)


@pytest.mark.slow
def test_ratio_is_not_one_under_the_other_null() -> None:
    assert _simulated("fitted_model").mean() / 2 == pytest.approx(0.5, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "kind"), [("folds", "logistic"), ("in_sample", "cart"), ("folds", "cart")])
def test_drawn_ratio_is_one_under_permutation(scheme: str, kind: str) -> None:
    ratios = _simulated("permutation", scheme=scheme, kind=kind)
    assert np.median(ratios) == pytest.approx(1.0, abs=0.15)
    assert ratios.mean() == pytest.approx(1.0, abs=4 * ratios.std() / np.sqrt(200) + 0.03)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "kind"), [("in_sample", "logistic"), ("folds", "logistic"), ("in_sample", "cart"), ("folds", "cart")]
)
def test_drawn_ratio_is_one_under_the_bootstrap(scheme: str, kind: str) -> None:
    repeats = 200 if (scheme, kind) == ("in_sample", "logistic") else 120
    ratios = _simulated("bootstrap", scheme=scheme, kind=kind, repeats=repeats)
    assert ratios.mean() == pytest.approx(1.0, abs=4 * ratios.std() / np.sqrt(repeats) + 0.05)


@pytest.mark.slow
def test_drawn_ratio_of_trees_is_one_under_a_fitted_model() -> None:
    """Of a model that fits what a tree can see: the table itself. Under permutation the ratio would be about ½."""
    ratios = _simulated("saturated", kind="cart", repeats=120)
    assert ratios.mean() == pytest.approx(1.0, abs=4 * ratios.std() / np.sqrt(120) + 0.05)


@pytest.mark.slow
def test_the_fitted_model_factor_does_not_hold_for_folds() -> None:
    """Why `pmse` refuses it: parts of 14 % of the rows give 1 − 0.14 c instead of 1 − c, here 1.86 times as much."""
    ratios = _simulated("saturated", scheme="folds", repeats=120)
    assert ratios.mean() == pytest.approx(0.93 / 0.5, abs=4 * ratios.std() / np.sqrt(120))
    assert ratios.mean() > 1.4


@pytest.mark.slow
def test_folds_inflate_the_null_as_stated() -> None:
    """Training on 0.7 N/5 rows: 14.3 times the fitted-model mean; dividing by that would be wrong."""
    rng = np.random.default_rng(9)
    values = []
    for _ in range(200):
        first, second = _rows(rng, 2000), _rows(rng, 2000)
        classifier = Logistic.of(first, second)  # type: ignore[arg-type]
        values.append(observed(classifier, labels(first, second), "folds", rng)[0])  # type: ignore[arg-type]
    wanted = closed_form("fitted_model", 5, 0.5, 4000).mean
    assert np.mean(values) / wanted == pytest.approx(14.3, rel=0.1)
