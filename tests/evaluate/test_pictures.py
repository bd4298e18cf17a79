"""The numbers behind pictures, held against what is written out by hand, and the baseline of scores."""

import itertools
import math
import time
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.evaluate.examples import codes_schema, context, mixed_frame, pair_of, shuffled
from understudy.evaluate import evaluate
from understudy.evaluate.marginals import Correlations, Marginals
from understudy.evaluate.metric import Detail, TablePair
from understudy.evaluate.page import build_report
from understudy.evaluate.pictures import LEAST_GROUP, pictures_of
from understudy.evaluate.propensity import Specks
from understudy.report import render_page
from understudy.schema import Category, Integer, Schema, Unit


def _tables(pair: TablePair, worst: list[tuple[str, str]] | None = None) -> dict[str, pd.DataFrame]:
    return {detail.name: detail.table.to_pandas() for detail in pictures_of(pair, worst or [])}


@pytest.fixture(scope="module")
def pair() -> TablePair:
    frame = mixed_frame(600)
    return pair_of(frame, shuffled(frame))


@pytest.fixture(scope="module")
def tables(pair: TablePair) -> dict[str, pd.DataFrame]:
    return _tables(pair, [("region", "sex")])


def test_shares_of_every_column_add_up(tables: dict[str, pd.DataFrame]) -> None:
    sums = tables["columns"].groupby("column")[["real_share", "synthetic_share"]].sum()
    assert np.allclose(sums, 1)
    kinds = tables["columns"].groupby("column")["kind"].agg(list)
    assert kinds["age"][:5] == ["bin"] * 5
    assert "missing" in kinds["region"]


def test_associations_are_bergsmas(pair: TablePair, tables: dict[str, pd.DataFrame]) -> None:
    row = tables["associations"].set_index(["column_1", "column_2"]).loc[("region", "sex")]
    counts = pd.crosstab(pair.real.codes["region"], pair.real.codes["sex"]).to_numpy().astype(float)
    total, (rows, columns) = counts.sum(), counts.shape
    expected = counts.sum(1, keepdims=True) * counts.sum(0, keepdims=True) / total
    phi = ((counts - expected) ** 2 / expected).sum() / total - (rows - 1) * (columns - 1) / (total - 1)
    sides = [size - (size - 1) ** 2 / (total - 1) for size in (rows, columns)]
    assert row["real"] == pytest.approx(math.sqrt(max(0, phi) / (min(sides) - 1)))
    assert row["real"] > 0.4 > row["synthetic"], "shuffled columns have lost it"


def test_the_worst_pairs_are_shown_cell_by_cell(pair: TablePair, tables: dict[str, pd.DataFrame]) -> None:
    cells = tables["drawn_pairs"]
    assert cells[["real_share", "synthetic_share"]].sum().to_numpy() == pytest.approx([1, 1])
    cell = cells[(cells["label_1"] == "north") & (cells["label_2"] == "M")]["real_share"].item()
    both = (pair.real.codes["region"] == 0) & (pair.real.codes["sex"] == 1)
    assert cell == pytest.approx(float(both.mean()))


def test_many_levels_are_put_together_and_no_row_is_lost() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({name: rng.integers(0, 40, 500).astype(str) for name in ("a", "b")})
    wide = pair_of(frame, shuffled(frame), schema=codes_schema({"a": 40, "b": 40}))
    cells = _tables(wide, [("a", "b")])["drawn_pairs"]
    assert len(cells) == 100
    assert cells[["real_share", "synthetic_share"]].sum().to_numpy() == pytest.approx([1, 1])
    assert "0 to 3" in set(cells["label_1"]), "numbers in runs of neighbours with about as many rows each"
    assert cells.groupby("label_1")["real_share"].sum().between(0.05, 0.15).all()
    named = Schema(tuple(Category(name=name, labels=tuple(f"no {n}" for n in range(40))) for name in "ab"), Unit())
    words = pair_of("no " + frame, "no " + shuffled(frame), schema=named)
    cells = _tables(words, [("a", "b")])["drawn_pairs"]
    assert len(cells) == 100
    assert cells[["real_share", "synthetic_share"]].sum().to_numpy() == pytest.approx([1, 1])
    assert "others" in set(cells["label_1"])


def test_a_group_that_suffers_comes_first() -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"g": rng.integers(0, 3, 3000), "a": rng.integers(0, 4, 3000), "b": rng.integers(0, 2, 3000)})
    made = frame.copy()
    made.loc[made["g"] == 2, ["a", "b"]] = 0
    groups = _tables(pair_of(frame.astype(str), made.astype(str), schema=codes_schema({"g": 3, "a": 4, "b": 2})))[
        "groups"
    ]
    first = groups.iloc[0]
    assert (first["column"], first["group"]) == ("g", "2")
    inside = frame[frame["g"] == 2]
    by_hand = [float((inside[name] != 0).mean()) for name in "ab"]  # the rows that would have to become 0
    assert first["distance"] == pytest.approx(sum(by_hand) / 2)
    assert first["yardstick"] < 0.1
    assert first["real_rows"] == len(inside) >= LEAST_GROUP


def test_nearest_rows_are_found(pair: TablePair) -> None:
    frame = mixed_frame(120)
    close = pair_of(frame, frame)
    table = _tables(close)["nearest"]
    assert table[["holdout_share", "synthetic_share"]].sum().to_numpy() == pytest.approx([1, 1])
    first, second = close.halves  # type: ignore[misc]
    codes = [np.stack([half.codes[name] for name in half.domain.columns], axis=1) for half in (first, second)]
    fewest = [min(int((row != other).sum()) for other in codes[0]) for row in codes[1]]
    by_hand = np.bincount(fewest, minlength=len(table)) / len(fewest)
    assert table["holdout_share"].to_numpy() == pytest.approx(by_hand)
    assert table["synthetic_share"][0] >= 0.5, "every row of the first half is there"


def test_the_map_has_one_frame_and_says_what_it_is_made_of(tables: dict[str, pd.DataFrame]) -> None:
    points, axes = tables["map"], tables["map_axes"]
    assert set(points["table"]) == {"real", "synthetic"}
    spread = points[points["table"] == "real"][["x", "y"]].var()
    assert spread["x"] > spread["y"] > 0
    assert axes["share_of_variance"].is_monotonic_decreasing
    assert all(words for words in axes["columns"])


def test_equal_seeds_give_equal_pictures(pair: TablePair) -> None:
    for one, other in zip(pictures_of(pair, []), pictures_of(pair, []), strict=True):
        assert one == other


def test_tables_with_hardly_anything_in_them_still_give_pictures() -> None:
    for rows, columns in itertools.product((1, 3, 5), (1, 2)):
        frame = pd.DataFrame({f"c{place}": ["0"] * rows for place in range(columns)})
        schema = codes_schema({f"c{place}": 2 for place in range(columns)})
        names = set(_tables(pair_of(frame, frame, schema=schema)))
        assert {"columns", "associations"} <= names


def test_the_baseline_is_the_score_of_columns_drawn_by_themselves(pair: TablePair) -> None:
    independent = pair.independent
    for name in independent.domain.columns:
        ours, theirs = (np.bincount(rows.codes[name], minlength=9) / rows.count for rows in (pair.real, independent))
        assert np.abs(ours - theirs).sum() / 2 < 0.1
        assert not theirs[ours == 0].any()
    found = Marginals().compare(pair, context("marginals"))
    pairs = found.score("two_way_mean")
    assert pairs.baseline == pytest.approx(pairs.value, rel=0.3), "the stand-in has shuffled columns too"
    assert pairs.yardstick < pairs.baseline  # type: ignore[operator]
    other = TablePair(pair.codec, pair.real, (independent,), pair.seed)
    assert Marginals().compare(other, context("marginals")).score("two_way_mean").value == pytest.approx(pairs.baseline)
    related = Correlations().compare(other, context("correlations")).headline
    assert related.value == related.baseline
    apart = Specks().compare(other, context("specks"))
    assert apart.score("cart").value == apart.score("cart").baseline


def test_single_columns_are_held_against_all_values_equally_often() -> None:
    frame = pd.DataFrame({"a": ["0"] * 30 + ["1"] * 10, "b": ["0"] * 40})
    score = Marginals().compare(pair_of(frame, frame, schema=codes_schema({"a": 4, "b": 2})), context("marginals"))
    assert score.score("one_way_mean").baseline == pytest.approx((0.5 + 0.5) / 2)


def test_the_report_of_fifty_columns_is_small_and_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """3 MB at most, and 20 seconds of a processor beyond the metrics."""
    rng = np.random.default_rng(7)
    numbers = rng.integers(0, 40, (1000, 50))
    numbers[:, 1:] = np.where(rng.random((1000, 49)) < 0.4, numbers[:, :-1], numbers[:, 1:])
    columns = tuple(
        Integer(name=f"amount {place}", lower=0, upper=39)
        if place % 3 == 0
        else Category(name=f"a category {place}", labels=tuple(f"label {code}" for code in range(40)))
        for place in range(50)
    )
    real, made = (
        pa.table(
            {
                column.name: [
                    str(code) if isinstance(column, Integer) else f"label {code}" for code in part[:, place].tolist()
                ]
                for place, column in enumerate(columns)
            }
        )
        for part in (numbers[:500], numbers[500:])
    )
    took: list[float] = []

    def timed(*given: Any) -> tuple[Detail, ...]:
        begun = time.process_time()
        made = pictures_of(*given)
        took.append(time.process_time() - begun)
        return made

    monkeypatch.setattr("understudy.evaluate.suite.pictures_of", timed)
    asked = {"marginals": {"ways": 2}}
    found = evaluate(real, made, Schema(columns, Unit()), metrics=["marginals"], options=asked, seed=1)
    begun = time.process_time()
    text = render_page(build_report(found))
    spent = time.process_time() - begun + sum(took)
    assert len(took) == 1
    assert text.count("<svg") > 55
    drawn = len({(row["column_1"], row["column_2"]) for row in found.tables()["pictures.drawn_pairs"].to_pylist()})
    assert 60 <= drawn < 50 * 49 / 2
    assert text.count('href="#pair-') == drawn
    assert f"{drawn} of 1,225 pairs are drawn" in text
    assert len(text.encode()) <= 3e6
    assert spent <= 20
