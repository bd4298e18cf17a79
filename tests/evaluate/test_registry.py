"""Metrics by name, with options as text."""

import dataclasses

import pytest

from tests.evaluate.examples import context, mixed_frame, pair_of, shuffled
from understudy.errors import UsageError
from understudy.evaluate.metric import METRICS, describe_metric
from understudy.evaluate.propensity import Pmse
from understudy.evaluate.suite import FITTED

ASKED: dict[str, dict[str, object]] = {
    **{name: {"formula": "voted ~ age + sex"} for name in FITTED},
    "slopes": {"groups": "sex"},
    "classifiers": {"trees": 4, "most_rows": 80, "draws": 2},
}
PROMISED = {"specks", "pmse", "nist", "marginals", "crosstab_l1", "chi2", "ci_overlap", "regression", "slopes"}


def test_every_promised_metric_is_there() -> None:
    assert set(METRICS.names()) >= PROMISED | {"correlations", "prediction", "rules", "disclosure"}
    for name in METRICS.names():
        assert METRICS.make(name).name == name
        assert METRICS.make(name).question.endswith("?")
        assert len({scale.name for scale in METRICS.make(name).scales}) == len(METRICS.make(name).scales)


def test_options_from_text() -> None:
    built = METRICS.make("pmse", {"null": "bootstrap", "draws": "4", "complexity": "0.01"})
    assert built == Pmse(null="bootstrap", draws=4, complexity=0.01)
    assert METRICS.make("slopes", {"groups": "sex, region"}).groups == ("sex", "region")  # type: ignore[attr-defined]
    assert METRICS.make("nist", {"include_last": "true"}).include_last is True  # type: ignore[attr-defined]


def test_every_option_says_what_it_is_for() -> None:
    options = [field for name in METRICS.names() for field in dataclasses.fields(METRICS.make(name))]  # type: ignore[arg-type]
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
        ("pmse", {"complexity": -1.0}, "complexity must be a number from 0 to 1"),
        ("marginals", {"ways": "4"}, "ways must be a whole number from 1 to 3"),
        ("nist", {"chance": "0"}, "above 0 and at most 1"),
        ("ci_overlap", {"interval": "profile"}, "firth"),
    ],
)
def test_bad_options(name: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        METRICS.make(name, options)


DISTANT = ("distance", "difference", "synthetic slope − real slope", "synthetic correlation − real correlation", "pMSE",
           "loss", "half of that sum", "break", "the first score as a published script")  # fmt: skip
CLOSE = ("agreement", "overlap", "same verdict", "same sign", "correlation of synthetic", "correlation of joint shares",
         "inside the synthetic interval", "mean of the scores below")  # fmt: skip


@pytest.mark.parametrize("name", METRICS.names())
def test_what_a_score_means_agrees_with_its_direction(name: str) -> None:
    """Distances are better when they are lower, agreements when they are higher; no word may say the other thing."""
    for scale in describe_metric(name).scales:
        if scale.direction == "none":
            continue
        found = {
            "lower": any(word in scale.meaning for word in DISTANT),
            "higher": any(w in scale.meaning for w in CLOSE),
        }
        assert found == {"lower": scale.direction == "lower", "higher": scale.direction == "higher"}, scale.meaning
        end = scale.lowest if scale.direction == "lower" else scale.highest
        assert scale.best == end


@pytest.mark.parametrize("name", METRICS.names())
def test_captions_put_the_worst_first_in_the_words_of_the_direction(name: str) -> None:
    frame = mixed_frame(200)
    result = METRICS.make(name, ASKED.get(name, {})).compare(pair_of(frame, shuffled(frame)), context(name))
    worst = {"lower": ("smallest", "higher is better"), "higher": ("largest", "lower is better"), "none": ()}
    for detail in result.details:
        caption = detail.caption.lower()
        if any(word in caption for word in ("difference", "distance", "ratio", "spread")):
            wrong: tuple[str, ...] = worst["lower"]
        elif "agreement" in caption or "overlap" in caption:
            wrong = worst["higher"]
        else:
            wrong = worst[result.headline.direction]
        assert not any(word in caption for word in wrong), detail.caption
