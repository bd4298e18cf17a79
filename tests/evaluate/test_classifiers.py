"""SPECKS and pMSE by a random forest and a support vector machine."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from tests.evaluate.examples import codes_schema, context, mixed, mixed_frame, pair_of, shuffled
from understudy.errors import UsageError
from understudy.evaluate.cart import tree_features
from understudy.evaluate.classifiers import Classifiers, Estimator, Settings, indicators
from understudy.evaluate.metric import stacked
from understudy.evaluate.propensity import labels

FEW = Classifiers(trees=8, most_rows=200, draws=2)


def test_related_columns_tell_shuffled_rows_apart_and_fresh_ones_not() -> None:
    frame = mixed_frame(400)
    apart = FEW.compare(pair_of(frame, shuffled(frame)), context())
    close = FEW.compare(pair_of(frame, mixed_frame(400, seed=5)), context())
    for place, scale in enumerate(FEW.scales):
        if not scale.name.endswith("pmse_raw"):
            assert apart.scores[place].value > close.scores[place].value + 0.1, scale.name  # type: ignore[operator]
    assert "saw 200 rows" in apart.notes[0]


def test_indicators_are_labels_and_places() -> None:
    frame = mixed_frame(200)
    pair = pair_of(frame, frame)
    features = tree_features(stacked(pair.real, pair.copies[0]))
    matrix = indicators(features).toarray()
    assert matrix.shape[1] == sum(
        1 if ordered else size for ordered, size in zip(features.ordered, features.sizes, strict=True)
    )
    start = 0
    for place, size in enumerate(features.sizes.tolist()):
        width = 1 if features.ordered[place] else size
        block, codes = matrix[:, start : start + width], features.codes[place]
        expected = codes[:, None] / max(size - 1, 1) if features.ordered[place] else np.eye(size)[codes]
        assert np.array_equal(block, expected)
        start += width


def test_the_forest_is_that_of_scikit_learn() -> None:
    frame = mixed_frame(300)
    pair = pair_of(frame, shuffled(frame))
    features, target = tree_features(stacked(pair.real, pair.copies[0])), labels(pair.real, pair.copies[0])
    rows = np.arange(0, len(target), 2)
    found = Estimator("forest", features, Settings(10, 5, 3)).scores(target, rows).scores
    matrix = indicators(features)
    forest = RandomForestClassifier(10, min_samples_leaf=5, random_state=3).fit(matrix[rows], target[rows])
    assert np.array_equal(found, forest.predict_proba(matrix)[:, 1])


def test_the_same_seed_gives_the_same_scores() -> None:
    frame = mixed_frame(200)
    pair = pair_of(frame, shuffled(frame))
    one, other = (FEW.compare(pair, context()) for _ in range(2))
    assert [score.value for score in one.scores] == [score.value for score in other.scores]


def test_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = mixed_frame(200)
    assert "fewer than 50 rows" in FEW.compare(pair_of(frame, frame.head(20)), context()).scores[0].why_not
    constant = pd.DataFrame({"a": ["0"] * 100})
    found = FEW.compare(pair_of(constant, constant, schema=codes_schema({"a": 2})), context())
    assert [score.value for score in found.scores[:5]] == pytest.approx([0, 0, 1, 0, 0], abs=0.01)
    assert "nothing varies" in found.scores[5].why_not
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(UsageError, match="scikit-learn"):
        FEW.check(mixed())
