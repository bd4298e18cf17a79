"""Nulls of pMSE: closed forms against simulation, and draws against the closed form."""

import numpy as np
import pandas as pd
import pytest

from tests.evaluate.examples import codes_schema, context, rows_of
from understudy.evaluate.metric import Unavailable
from understudy.evaluate.propensity import Classifier, Logistic, Trees, closed_form, drawn_null, labels, observed

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
