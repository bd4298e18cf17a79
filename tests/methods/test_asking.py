"""Questions at fixed costs: each pays just its own, also when they come in several batches."""

import pytest

from tests.methods.door import door, letters, rho, rows_of
from understudy.answers import Measurement
from understudy.domain import Clique
from understudy.methods import marginals as asking
from understudy.privacy.cost import Cost


@pytest.mark.parametrize("batch", [1, 7, 2**23])
def test_every_question_costs_its_price(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "BATCH_CELLS", batch)
    curator = door(rows_of({"a": [0, 1], "b": [1, 2], "c": [0, 0]}), letters({"a": 2, "b": 3, "c": 2}), rho(1.0))
    questions = [*asking.alone(["a", "b", "c"]), Clique("ab")]
    costs = [Cost(rho=part) for part in (10**6 + 1, 2 * 10**6 + 7, 4 * 10**6, 10**9 + 1)]
    answers = asking.at_costs(curator, questions, costs)
    assert [answer.columns for answer in answers] == [("a",), ("b",), ("c",), ("a", "b")]
    assert [cost.rho for _, cost in curator.charges] == [paid.rho for paid in costs]
    assert len(curator.transcript.of(Measurement)) == 4


def test_no_questions_cost_nothing() -> None:
    curator = door(rows_of({"a": [0]}), letters({"a": 2}), rho(1.0))
    assert asking.at_costs(curator, [], []) == []
    assert not curator.charges
