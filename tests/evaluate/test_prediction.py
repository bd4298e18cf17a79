"""Training on synthetic rows and testing on real ones."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from tests.evaluate.examples import codes_schema, context, mixed, mixed_frame, pair_of, shuffled
from understudy.errors import UsageError
from understudy.evaluate import cart
from understudy.evaluate.cart import Prediction, area_under_curve


@pytest.mark.parametrize("seed", range(4))
def test_area_equals_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, truth = rng.integers(0, 6, 60) / 5, rng.integers(0, 2, 60).astype(np.uint8)
    assert area_under_curve(scores, truth) == pytest.approx(roc_auc_score(truth, scores))
    assert area_under_curve(scores, np.ones(60, np.uint8)) is None


def test_shuffled_rows_teach_nothing() -> None:
    frame = mixed_frame(800)
    found = Prediction().compare(pair_of(frame, shuffled(frame)), context())
    assert found.value > found.yardstick + 0.1  # type: ignore[operator]
    rows = found.detail("columns").records()
    losses = [row["area_real"] - row["area_synthetic"] for row in rows]  # type: ignore[operator]
    assert losses == sorted(losses, reverse=True)
    fresh = Prediction().compare(pair_of(frame, mixed_frame(800, seed=5)), context())
    assert fresh.value < 0.05  # type: ignore[operator]


def test_targets_and_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = mixed_frame(400)
    found = Prediction(targets=("voted",)).compare(pair_of(frame, frame), context())
    assert [row["column"] for row in found.detail("columns").records()] == ["voted"]
    monkeypatch.setattr(cart, "MOST_TARGETS", 2)
    cut = Prediction().compare(pair_of(frame, frame), context())
    assert "first 2 of 6 columns" in cut.notes[0]
    with pytest.raises(UsageError, match="modelled column"):
        Prediction(targets=("wage",)).check(mixed())


def test_reasons() -> None:
    frame = mixed_frame(400)
    assert "fewer than 200" in Prediction().compare(pair_of(frame, frame.head(50)), context()).why_not
    constant = pd.DataFrame({"a": ["0"] * 300})
    found = Prediction().compare(pair_of(constant, constant, schema=codes_schema({"a": 2})), context())
    assert "no column has two classes" in found.why_not
