"""The metric of slopes, and joint shares of chosen columns."""

import numpy as np
import pandas as pd
import pytest

from tests.evaluate.examples import codes_schema, context, mixed, mixed_frame, pair_of, shuffled
from understudy.errors import UsageError
from understudy.evaluate.slopes import Slopes, check_columns

FRAME = mixed_frame(400)


def test_lost_associations_show() -> None:
    found = Slopes().compare(pair_of(FRAME, shuffled(FRAME)), context())
    assert found.value < 0.5 < found.yardstick  # type: ignore[operator]
    mean = found.score("mean_difference")
    assert mean.value > 1.4 * mean.yardstick  # type: ignore[operator]
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


def test_thousands_of_unrelated_levels_do_not_read_as_good() -> None:
    """Two columns go together and thirty do not: a mean over all levels hardly sees that the two were torn apart."""
    rng = np.random.default_rng(1)
    names = [*(f"c{place}" for place in range(30)), "a"]
    frame, torn = (pd.DataFrame({name: rng.integers(0, 8, 30_000).astype(str) for name in names}) for _ in range(2))
    frame["b"], torn["b"] = frame["a"], rng.permutation(torn["a"])
    schema = codes_schema(dict.fromkeys(frame.columns, 8))
    found = Slopes().compare(pair_of(frame, torn, schema=schema), context())
    mean = found.score("mean_difference")
    assert mean.value < 1.5 * mean.yardstick  # type: ignore[operator]
    assert "unrelated" in mean.meaning
    assert found.headline.name == "agreement"
    assert found.value < 0.2 < 0.6 < found.yardstick  # type: ignore[operator]
    assert "below the yardstick" in found.headline.reading
