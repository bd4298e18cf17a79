"""Metrics by name, with options as text."""

import dataclasses

import pytest

from understudy.errors import UsageError
from understudy.evaluate.propensity.pmse import Pmse
from understudy.evaluate.registry import metric, names

PROMISED = {"specks", "pmse", "nist", "marginals", "crosstab_l1", "chi2", "ci_overlap", "regression", "slopes"}


def test_every_promised_metric_is_there() -> None:
    assert set(names()) >= PROMISED | {"correlations", "prediction", "rules", "disclosure"}
    for name in names():
        assert metric(name).name == name
        assert metric(name).question.endswith("?")
        assert len({scale.name for scale in metric(name).scales}) == len(metric(name).scales)


def test_options_from_text() -> None:
    built = metric("pmse", {"null": "bootstrap", "draws": "4", "complexity": "0.01"})
    assert built == Pmse(null="bootstrap", draws=4, complexity=0.01)
    assert metric("slopes", {"groups": "sex, region"}).groups == ("sex", "region")  # type: ignore[attr-defined]
    assert metric("nist", {"include_last": "true"}).include_last is True  # type: ignore[attr-defined]


def test_every_option_says_what_it_is_for() -> None:
    options = [field for name in names() for field in dataclasses.fields(metric(name))]  # type: ignore[arg-type]
    assert {"ways", "most_triples", "formula", "null"} <= {field.name for field in options}
    assert all(field.metadata.get("help") for field in options)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("speck", {}, "Did you mean"),
        ("pmse", {"nul": "x"}, "is not an option"),
        ("pmse", {"null": "guess"}, "permutation or fitted_model or bootstrap"),
        ("pmse", {"draws": "many"}, "a whole number"),
        ("pmse", {"draws": 1}, "at least 2"),
        ("pmse", {"complexity": -1.0}, "between 0 and 1"),
        ("marginals", {"ways": "4"}, "1, 2 or 3"),
        ("nist", {"chance": "0"}, "above 0"),
        ("ci_overlap", {"interval": "profile"}, "firth"),
    ],
)
def test_bad_options(name: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        metric(name, options)
