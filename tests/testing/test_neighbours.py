import numpy as np
import pyarrow as pa

from understudy.codec.table import TableCodec
from understudy.schema import Schema
from understudy.testing import cases as tables
from understudy.testing.replay import HOSTILE, designed_pairs, random_pairs, record_pool, to_table, valid_texts


def _extra_rows(schema: Schema, table: pa.Table, neighbour: pa.Table) -> pa.Table:
    assert neighbour.slice(0, table.num_rows).equals(table), "the neighbour only adds rows"
    return neighbour.slice(table.num_rows)


def test_a_row_level_pair_differs_by_one_row() -> None:
    for pair in designed_pairs(tables.every_kind()):
        assert _extra_rows(tables.every_kind(), pair.table, pair.neighbour).num_rows == 1, pair.name


def test_a_unit_level_pair_differs_by_one_unit_with_too_many_rows() -> None:
    schema = tables.several_rows(3)
    for pair in designed_pairs(schema):
        extra = _extra_rows(schema, pair.table, pair.neighbour)
        assert set(extra.column("person").to_pylist()) == {"the-extra-unit"}
        assert extra.num_rows > 3
        assert "the-extra-unit" not in pair.table.column("person").to_pylist()


def test_every_listed_value_has_a_sole_holder() -> None:
    schema = tables.small()
    for column in schema.modelled:
        for text in valid_texts(column):
            holders = [
                pair
                for pair in designed_pairs(schema)
                if text in pair.neighbour.column(column.name).to_pylist()
                and text not in pair.table.column(column.name).to_pylist()
            ]
            assert holders, (column.name, text)


def test_every_hostile_value_meets_every_column() -> None:
    schema = tables.every_kind()
    seen = {(name, value) for pair in designed_pairs(schema) for name, value in _last(pair.neighbour).items()}
    assert {(column.name, value) for column in schema.modelled for value in HOSTILE} <= seen


def _last(table: pa.Table) -> dict[str, str | None]:
    return table.slice(table.num_rows - 1).to_pylist()[0]  # type: ignore[no-any-return]


def test_pool_values_are_inside_the_schema() -> None:
    schema = tables.every_kind()
    codec = TableCodec.of(schema)
    table = to_table(schema, record_pool(schema))
    for name, size in codec.domain.sizes.items():
        assert (codec.encode(name, table.column(name)) < size - 1).all(), f"{name}: missing is the last code"


def test_random_pairs_are_reproducible_and_mostly_different() -> None:
    first = list(random_pairs(tables.small(), 20, np.random.default_rng(1)))
    second = list(random_pairs(tables.small(), 20, np.random.default_rng(1)))
    assert [pair.neighbour for pair in first] == [pair.neighbour for pair in second]
    assert len({pair.neighbour.num_rows for pair in first}) > 5
