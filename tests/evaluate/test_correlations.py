"""The metric of correlations."""

import pytest

from tests.evaluate.examples import context, mixed, mixed_frame, pair_of, shuffled
from understudy.errors import UsageError
from understudy.evaluate.slopes import Correlations

FRAME = mixed_frame(400)


def test_lost_associations_show() -> None:
    found = Correlations().compare(pair_of(FRAME, shuffled(FRAME)), context())
    assert found.value < 0.5 < found.yardstick  # type: ignore[operator]
    mean = found.score("mean_difference")
    assert mean.value > 1.4 * mean.yardstick  # type: ignore[operator]
    first = found.detail("levels").records(1)[0]
    assert abs(first["real"]) > 0.5 > abs(first["synthetic"])  # type: ignore[arg-type]


def test_pairs_are_looked_at_once() -> None:
    rows = Correlations().compare(pair_of(FRAME, FRAME), context()).detail("levels").records()
    seen = {frozenset([(row["column"], row["level"]), (row["other_column"], row["other_level"])]) for row in rows}
    assert len(seen) == len(rows)


def test_unknown_columns() -> None:
    with pytest.raises(UsageError, match="modelled column"):
        Correlations(outcomes=("wage",)).check(mixed())
