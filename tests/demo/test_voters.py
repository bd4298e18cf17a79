"""The built-in voter table: published shares, the structural zero, the size of its domain, and its label."""

import math
from functools import cache

import numpy as np
import pytest

from understudy.codec.table import TableCodec
from understudy.demo import EFFECTS, LEVELS, ROWS, schema_text, voter_codes, voter_table
from understudy.schema import Schema

PUBLISHED_OCCUPIED = 21_329  # 1,290,240 possible cells less the 1,268,911 empty ones of the study


@cache
def _codes() -> dict[str, np.ndarray]:
    return voter_codes()


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Schema:
    path = tmp_path_factory.mktemp("voters") / "voters.yaml"
    path.write_text(schema_text(), encoding="utf-8")
    return Schema.from_yaml(path)


@pytest.mark.parametrize("column", LEVELS)
def test_shares_are_the_published_ones(column: str) -> None:
    wanted = np.array([level.share for level in LEVELS[column]])
    found = np.bincount(_codes()[column], minlength=wanted.size) / ROWS * 100
    assert wanted.sum() == pytest.approx(100.0)
    assert np.abs(found - wanted).max() < 0.5


def test_income_agrees_with_the_three_published_numbers() -> None:
    shares = [level.share for level in LEVELS["family_income"]]
    assert (len(shares), min(shares), float(np.median(shares)), max(shares)) == (14, 3.1, pytest.approx(5.9), 26.5)


def test_nobody_votes_unregistered() -> None:
    codes = _codes()
    assert not np.any((codes["voted"] == 1) & (codes["registered"] == 0))


def test_cells_and_structural_zero_are_those_of_the_study(schema: Schema) -> None:
    codec = TableCodec.of(schema)
    domain = codec.domain
    assert domain.cells(domain.everything()) == 1_720_320
    (zero,) = codec.structural_zeros
    assert set(zero.clique) == {"voted", "registered"}
    assert 1_720_320 * (1 - zero.mask.mean()) == 1_290_240


def test_occupied_cells_are_about_as_many_as_in_the_study() -> None:
    codes = _codes()
    shape = [len(LEVELS[column]) for column in codes]
    cells = np.ravel_multi_index(list(codes.values()), shape)
    occupied = np.unique(cells).size
    assert abs(occupied - PUBLISHED_OCCUPIED) / PUBLISHED_OCCUPIED < 0.02
    assert math.prod(shape) == 1_720_320


def test_columns_depend_on_each_other() -> None:
    """Every stated effect shows in the table with its sign, so the demo has something to lose and to keep."""
    codes = _codes()
    registered = codes["registered"] == 1
    for column, effects in EFFECTS.items():
        rows = registered if column == "voted" else np.ones(ROWS, dtype=bool)
        for parent, effect in effects.items():
            if abs(effect) >= 0.5:
                correlation = np.corrcoef(codes[column][rows], codes[parent][rows])[0, 1]
                assert correlation * effect > 0, (column, parent)


def test_same_table_every_time() -> None:
    again = voter_codes()
    assert all(np.array_equal(again[column], codes) for column, codes in _codes().items())


def test_table_is_marked_simulated_and_fits_its_schema(schema: Schema) -> None:
    table = voter_table(1_000)
    assert table.num_rows == 1_000
    assert b"SIMULATED" in table.schema.metadata[b"title"]
    assert "SIMULATED" in schema.title
    assert tuple(table.column_names) == schema.names
    assert all("SIMULATED" in column.note for column in schema.columns)
    assert not any(column.missing for column in schema.columns)
    codec = TableCodec.of(schema)
    for name in schema.names:
        codes = codec.encode(name, table[name])
        assert [codec.describe(name, int(code)) for code in codes] == [str(value) for value in table[name].to_pylist()]
