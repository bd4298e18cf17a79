"""Distances of small tables: by hand, worst first, and honest about what was left out."""

import pandas as pd
import pytest

from tests.evaluate.examples import codes_schema, context, mixed_frame, pair_of, rows_of, shuffled
from understudy.evaluate.marginals import CrosstabDistance, Marginals
from understudy.evaluate.metric import joint_counts

SCHEMA = codes_schema({"a": 2, "b": 2})
REAL = pd.DataFrame({"a": list("0011"), "b": list("0011")})
SYNTHETIC = pd.DataFrame({"a": list("0001"), "b": list("0101")})


def test_by_hand() -> None:
    found = Marginals().compare(pair_of(REAL, SYNTHETIC, schema=SCHEMA), context())
    assert found.score("one_way_mean").value == pytest.approx((0.25 + 0) / 2)
    assert found.score("one_way_worst").value == pytest.approx(0.25)
    assert found.score("two_way_mean").value == pytest.approx(0.25)  # 00: .5/.5, 01: 0/.25, 11: .5/.25
    assert "fewer than 3 columns" in found.score("three_way_mean").why_not
    assert [row["column_1"] for row in found.detail("columns").records()] == ["a", "b"]


def test_worst_come_first_and_copies_are_averaged() -> None:
    frame = mixed_frame(300)
    found = Marginals().compare(pair_of(frame, shuffled(frame), frame), context())
    for name in ("columns", "pairs", "triples"):
        distances = [row["distance"] for row in found.detail(name).records()]
        assert distances == sorted(distances, reverse=True)  # type: ignore[type-var]
    alone = Marginals().compare(pair_of(frame, shuffled(frame)), context())
    assert found.value == pytest.approx(alone.value / 2)  # type: ignore[operator]


def test_cells_hold_the_shares_of_every_label() -> None:
    cells = Marginals().compare(pair_of(REAL, SYNTHETIC, schema=SCHEMA), context()).detail("cells").records()
    assert cells[0] == {"column": "a", "label": "0", "real_share": 0.5, "synthetic_share": 0.75, "code": 0}
    assert len(cells) == 4


def test_drawing_triples_is_not_silent() -> None:
    frame = mixed_frame(200)
    found = Marginals(most_triples=5).compare(pair_of(frame, shuffled(frame)), context())
    assert found.detail("triples").table.num_rows == 5
    assert found.notes == ("5 of 20 triples, drawn at random, were compared.",)


def test_yardstick_is_the_distance_of_halves() -> None:
    frame = mixed_frame(400)
    pair = pair_of(frame, shuffled(frame))
    found = Marginals(ways=2).compare(pair, context())
    halves = Marginals(ways=2).compare(pair_of(frame, frame), context())
    assert found.yardstick == halves.yardstick
    assert 0 < found.yardstick < found.value  # type: ignore[operator]
    assert "up to 2 columns" in found.score("three_way_mean").why_not


# The full cross-tabulation, by hand.


CROSSTAB_SCHEMA = codes_schema({"a": 2, "b": 3})
CROSSTAB_REAL = pd.DataFrame({"a": list("00011"), "b": list("01122")})
CROSSTAB_SYNTHETIC = pd.DataFrame({"a": list("0011"), "b": list("0012")})


def test_crosstab_by_hand() -> None:
    found = CrosstabDistance().compare(pair_of(CROSSTAB_REAL, CROSSTAB_SYNTHETIC, schema=CROSSTAB_SCHEMA), context())
    # real: 00→1, 01→2, 12→2; synthetic: 00→2, 11→1, 12→1
    assert found.score("l1").value == 1 + 2 + 1 + 1
    assert found.score("half_l1").value == 2.5
    assert found.value == pytest.approx((abs(0.2 - 0.5) + 0.4 + 0.25 + abs(0.4 - 0.25)) / 2)


def test_joint_counts_add_up() -> None:
    ours, theirs = joint_counts(rows_of(CROSSTAB_REAL, CROSSTAB_SCHEMA), rows_of(CROSSTAB_SYNTHETIC, CROSSTAB_SCHEMA))
    assert (ours.sum(), theirs.sum()) == (5, 4)
    assert len(ours) == 4


def test_yardstick_of_counts_is_for_tables_of_the_real_size() -> None:
    frame = pd.concat([CROSSTAB_REAL] * 20)
    found = CrosstabDistance().compare(pair_of(frame, frame, schema=CROSSTAB_SCHEMA), context())
    assert found.score("l1").yardstick == pytest.approx(2 * found.score("half_l1").yardstick)  # type: ignore[operator]
    assert found.score("l1").yardstick == pytest.approx(2 * 100 * found.yardstick)  # type: ignore[operator]
