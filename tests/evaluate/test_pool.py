"""pool: numbers, models and shares; copies that share their noise are refused."""

import pytest

import understudy as us
from tests.release.people import people, release_of_simple
from understudy.errors import UsageError
from understudy.evaluate.pooling import MeasuredShare, PooledModel
from understudy.evaluate.pooling_rules import Pooled, PooledTest, pool_liu
from understudy.release.release import Release


@pytest.fixture(scope="module")
def renewed() -> Release:
    """Three copies, each measured anew."""
    return release_of_simple(copies=3, copies_mode="remeasure", epsilon=30.0)


def test_numbers() -> None:
    assert us.pool([0.1, 0.2], [0.01, 0.01], rule="liu") == pool_liu([0.1, 0.2], [0.01, 0.01])
    found = us.pool([5.0, 7.0], rule="chi2", degrees=3)
    assert isinstance(found, PooledTest)
    assert isinstance(us.pool([0.5, 0.3], rule="p_values", degrees=3), PooledTest)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "variance of each"),
        ({"rule": "chi2"}, "degrees"),
        ({"rule": "rubin"}, "is not known"),
        ({"variances": [1.0, 1.0], "copies_mode": "resample"}, "share its privacy noise"),
    ],
)
def test_refusals(settings: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        us.pool([0.1, 0.2], **settings)  # type: ignore[arg-type]


def test_models_are_pooled_over_copies(renewed: Release) -> None:
    found = us.pool(renewed, formula="age ~ sex + voted")
    assert isinstance(found, PooledModel)
    assert found.family == "linear"
    assert list(found.coefficients) == ["(intercept)", "sex=M", "voted=true"]
    pooled = found.coefficients["sex=M"]
    assert isinstance(pooled, Pooled)
    assert pooled.copies == 3
    frame = people()
    gap = frame[frame["sex"] == "M"]["age"].mean() - frame[frame["sex"] == "F"]["age"].mean()
    assert pooled.low - 2 < gap < pooled.high + 2
    assert isinstance(us.pool(renewed, where={"sex": "F"}), MeasuredShare)


def test_logistic_models_too(renewed: Release) -> None:
    found = us.pool(renewed, formula="voted ~ age")
    assert isinstance(found, PooledModel)
    assert found.family == "logistic"


def test_copies_of_one_model_are_refused(plain_release: Release) -> None:
    with pytest.raises(UsageError, match="single copy"):
        us.pool(plain_release, formula="age ~ sex")
    with pytest.raises(UsageError, match="share its privacy noise"):
        us.pool(release_of_simple(copies=2, copies_mode="resample"), formula="age ~ sex")


def test_a_release_needs_one_question(plain_release: Release) -> None:
    for settings in ({}, {"formula": "age ~ sex", "where": {"sex": "F"}}):
        with pytest.raises(UsageError, match="either a formula or a condition"):
            us.pool(plain_release, **settings)  # type: ignore[arg-type]
