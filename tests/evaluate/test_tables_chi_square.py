"""Verdicts of tests of independence: agreement, pooling, structural zeros, pairs that cannot be tested."""

import numpy as np
import pandas as pd
import pytest

from tests.evaluate.examples import codes_schema, context, mixed_frame, pair_of, shuffled
from understudy.evaluate.chi2 import ChiSquare, pearson
from understudy.evaluate.pooling_rules import pool_chi_squares

FRAME = mixed_frame(400)


def test_lost_associations_are_other_verdicts() -> None:
    found = ChiSquare().compare(pair_of(FRAME, shuffled(FRAME)), context())
    assert found.value < 0.7  # type: ignore[operator]
    first = found.detail("pairs").records(1)[0]
    assert first["real_p_value"] < 0.01 < first["synthetic_p_value"]  # type: ignore[operator]
    assert found.detail("pairs").table.num_rows == 15


def test_pairs_tied_by_a_rule_are_flagged() -> None:
    found = ChiSquare().compare(pair_of(FRAME, FRAME), context())
    flagged = [row for row in found.detail("pairs").records() if row["structural_zero"]]
    assert [(row["column_1"], row["column_2"]) for row in flagged] == [("region", "sex")]
    assert "1 pairs have cells" in found.notes[-1]


def test_copies_are_pooled() -> None:
    schema = codes_schema({"a": 3, "b": 3})
    rng = np.random.default_rng(1)
    frames = []
    for _ in range(4):
        a = rng.integers(0, 3, 200)
        frames.append(
            pd.DataFrame({"a": a, "b": np.where(rng.random(200) < 0.15, a, rng.integers(0, 3, 200))}).astype(str)
        )
    pair = pair_of(*frames, schema=schema)
    found = ChiSquare().compare(pair, context()).detail("pairs").records()[0]
    tables = [np.bincount(copy.codes["a"].astype(int) * 3 + copy.codes["b"], minlength=9) for copy in pair.copies]
    statistics = [pearson(table, (3, 3)).common for table in tables]  # type: ignore[union-attr]
    assert found["synthetic_p_value"] == pytest.approx(pool_chi_squares(statistics, 4).p_value)


def test_constant_columns() -> None:
    schema = codes_schema({"a": 2, "b": 2, "c": 2})
    frame = pd.DataFrame({"a": ["0", "1"] * 30, "b": ["0", "1"] * 30, "c": ["0"] * 60})
    found = ChiSquare().compare(pair_of(frame, frame, schema=schema), context())
    assert "2 pairs were left out" in found.notes[0]
    lost = ChiSquare().compare(pair_of(frame, frame.assign(a="0"), schema=schema), context())
    assert lost.value == 0  # the real association cannot be found any more
    alone = ChiSquare().compare(pair_of(frame.assign(b="0"), frame, schema=schema), context())
    assert "no pair of columns can be tested" in alone.why_not


def test_fifteen_columns_have_a_hundred_and_five_tables() -> None:
    names = [f"c{place}" for place in range(15)]
    rng = np.random.default_rng(4)
    frames = [pd.DataFrame(rng.integers(0, 2, (60, 15)), columns=names).astype(str) for _ in range(2)]
    found = ChiSquare().compare(pair_of(*frames, schema=codes_schema(dict.fromkeys(names, 2))), context())
    pairs = found.detail("pairs").records()
    assert len({(row["column_1"], row["column_2"]) for row in pairs}) == len(pairs) == 105
