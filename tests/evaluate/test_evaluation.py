"""Evaluations are plain values: equal for equal seeds, complete as JSON and as tables."""

import json

import pytest

from tests.evaluate.examples import mixed, mixed_frame, shuffled
from understudy.errors import UsageError
from understudy.evaluate import Evaluation, evaluate
from understudy.evaluate.suite import NOTICE

METRICS = ["marginals", "crosstab_l1", "rules"]


@pytest.fixture(scope="module")
def found() -> Evaluation:
    frame = mixed_frame()
    return evaluate(frame, shuffled(frame), mixed(), metrics=METRICS, seed=4)


def test_same_seed_same_numbers(found: Evaluation) -> None:
    frame = mixed_frame()
    assert evaluate(frame, shuffled(frame), mixed(), metrics=METRICS, seed=4) == found
    other = evaluate(frame, shuffled(frame), mixed(), metrics=METRICS, seed=5)
    assert other["marginals"].yardstick != found["marginals"].yardstick
    assert other["marginals"].value == found["marginals"].value


def test_a_metric_does_not_depend_on_the_others(found: Evaluation) -> None:
    frame = mixed_frame()
    alone = evaluate(frame, shuffled(frame), mixed(), metrics=["crosstab_l1"], seed=4)
    assert alone["crosstab_l1"] == found["crosstab_l1"]


def test_json_holds_everything_and_says_what_it_is(found: Evaluation) -> None:
    document = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert next(iter(document)) == "notice"
    assert document["notice"] == NOTICE
    assert [one["metric"] for one in document["metrics"]] == METRICS
    detail = document["metrics"][0]["details"][1]
    assert (detail["name"], detail["rows"], len(detail["first"])) == ("pairs", 15, 15)
    assert len(found.to_json(rows=2)["metrics"][0]["details"][1]["first"]) == 2  # type: ignore[index]


def test_frame_and_tables(found: Evaluation) -> None:
    scores = found.frame().to_pylist()
    assert {row["metric"] for row in scores} == set(METRICS)
    assert set(found.tables()) >= {"scores", "marginals.columns", "marginals.pairs", "marginals.triples", "rules.rules"}
    assert found.metrics == tuple(METRICS)


def test_unknown_metric(found: Evaluation) -> None:
    with pytest.raises(UsageError, match=r"Did you mean \"marginals\""):
        found["marginal"]
