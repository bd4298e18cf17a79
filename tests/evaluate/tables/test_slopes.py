"""The metric of slopes, and joint shares of chosen columns."""

import pytest

from tests.evaluate.examples import context, mixed, mixed_frame, pair_of, shuffled
from understudy.errors import UsageError
from understudy.evaluate.tables.slopes import Slopes, check_columns

FRAME = mixed_frame(400)


def test_lost_associations_show() -> None:
    found = Slopes().compare(pair_of(FRAME, shuffled(FRAME)), context())
    assert found.value > 1.4 * found.yardstick  # type: ignore[operator]
    assert found.score("agreement").value < 0.5  # type: ignore[operator]
    assert "no columns were chosen" in found.score("joint_shares").why_not


def test_outcomes_and_groups() -> None:
    found = Slopes(outcomes=("voted",), groups=("sex", "region")).compare(pair_of(FRAME, shuffled(FRAME)), context())
    assert {row["column"] for row in found.detail("levels").records()} == {"voted"}
    shares = found.detail("joint_shares").records()
    assert set(shares[0]) == {"region", "sex", "real share", "synthetic share"}
    assert sum(row["real share"] for row in shares) == pytest.approx(1)  # type: ignore[misc]
    assert found.score("joint_shares").value < found.score("joint_shares").yardstick  # type: ignore[operator]


def test_unknown_columns() -> None:
    with pytest.raises(UsageError, match='Did you mean "sex"'):
        Slopes(groups=("sexx",)).check(mixed())
    check_columns("slopes", ("sex",), mixed())
