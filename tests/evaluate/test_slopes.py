"""The metric of slopes, and joint shares of chosen columns."""

import numpy as np
import pandas as pd
import pytest

from tests.evaluate.examples import codes_schema, context, mixed, mixed_frame, pair_of, shuffled
from understudy.errors import UsageError
from understudy.evaluate import marginals as indicators
from understudy.evaluate.marginals import (
    Correlations,
    Slopes,
    agreement,
    correlation_table,
    level_pairs,
    panel_detail,
    panel_notes,
    panel_of,
    slope_table,
)
from understudy.evaluate.metric import Unavailable, check_columns

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


# The metric of correlations.


def test_correlations_lost_associations_show() -> None:
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


def test_correlations_unknown_columns() -> None:
    with pytest.raises(UsageError, match="modelled column"):
        Correlations(outcomes=("wage",)).check(mixed())


# Slopes and correlations of indicators: the vector, and regressions written out.


TABLE = np.array([[30, 10], [20, 40]])  # rows: y = 1, 0; columns: x = 1, 0


def test_vector() -> None:
    assert slope_table(TABLE)[0, 0] == pytest.approx(0.4)
    assert correlation_table(TABLE)[0, 0] == pytest.approx(0.408248, abs=1e-6)


def test_equal_to_least_squares_on_indicators() -> None:
    rng = np.random.default_rng(1)
    y, x = rng.integers(0, 3, 200), rng.integers(0, 4, 200)
    table = np.zeros((3, 4), np.int64)
    np.add.at(table, (y, x), 1)
    for row in range(3):
        for column in range(4):
            outcome, given = (y == row).astype(float), (x == column).astype(float)
            assert slope_table(table)[row, column] == pytest.approx(np.polyfit(given, outcome, 1)[0])
            assert correlation_table(table)[row, column] == pytest.approx(np.corrcoef(given, outcome)[0, 1])


def test_undefined_numbers_are_not_numbers() -> None:
    assert np.isnan(slope_table(np.array([[3, 0], [4, 0]]))).all()
    assert np.isnan(correlation_table(np.array([[3, 5], [0, 0]]))).all()


def test_rare_levels_are_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indicators, "MOST_LEVELS", 2)
    pair = pair_of(mixed_frame(200), mixed_frame(200))
    found = list(level_pairs(pair, [pair.real], ["age"], both_ways=True))
    assert {one.outcome for one in found} == {"age"}
    assert len(found) == 5
    assert all(one.tables[0].shape == (3, len(one.given_codes) + 1) for one in found)
    assert all(one.tables[0].sum() == 200 for one in found)


# Panels: one number per pair of levels, with what cannot be computed counted as nothing.


SCHEMA = codes_schema({"a": 2, "b": 2})
REAL = pd.DataFrame({"a": list("0011") * 5, "b": list("0011") * 5})


def test_lost_levels_count_as_no_association() -> None:
    pair = pair_of(REAL, REAL.assign(b="0"), schema=SCHEMA)
    panel = panel_of(pair, pair.real, pair.copies, slope_table, outcomes=("a", "b"), both_ways=True)
    assert panel.mean_difference() == pytest.approx(1.0)  # every real slope is 1 or −1, every synthetic one 0
    assert panel.lost == 4
    assert "4 numbers cannot be computed" in panel_notes(pair, panel)[0]


def test_detail_is_worst_first() -> None:
    pair = pair_of(REAL, pd.DataFrame({"a": list("0011") * 5, "b": list("0111") * 5}), schema=SCHEMA)
    panel = panel_of(pair, pair.real, pair.copies, slope_table, outcomes=("a",), both_ways=True)
    rows = panel_detail(pair, panel, "levels", "caption").records()
    gaps = [abs(row["real"] - row["synthetic"]) for row in rows]  # type: ignore[operator]
    assert gaps == sorted(gaps, reverse=True)
    assert {row["column"] for row in rows} == {"a"}
    assert not panel_notes(pair, panel)


def test_agreement_has_reasons() -> None:
    assert agreement(np.array([1.0, 2.0, 4.0]), np.array([2.0, 4.0, 8.0])) == pytest.approx(1.0)
    assert isinstance(agreement(np.array([1.0, 2.0]), np.array([1.0, 2.0])), Unavailable)
    flat = agreement(np.array([1.0, 2.0, 3.0]), np.zeros(3))
    assert isinstance(flat, Unavailable)
    assert "synthetic values do not vary" in flat.reason
