"""Classifiers fit any labels to any rows of a stacked table."""

import numpy as np
import pytest

from tests.evaluate.examples import mixed, mixed_frame, rows_of, shuffled
from understudy.evaluate import propensity as room
from understudy.evaluate.metric import TablePair, Unavailable
from understudy.evaluate.propensity import Logistic, Trees, common_complexity, labels, out_of_sample

FRAME = mixed_frame(400)
REAL, OTHER = rows_of(FRAME, mixed()), rows_of(shuffled(FRAME), mixed())
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
    monkeypatch.setattr(room, "MOST_COEFFICIENTS", 5)
    found = Logistic.of(REAL, OTHER)
    assert isinstance(found, Unavailable)
    assert "above the limit of 5" in found.reason


def test_complexity_is_chosen_when_not_given() -> None:
    assert common_complexity(TablePair(REAL.codec, REAL, (OTHER,), 1), None) >= 0
    assert common_complexity(TablePair(REAL.codec, REAL, (OTHER,), 1), 0.25) == 0.25
