"""The contract of count sources: equal to counting by hand, whatever the names, labels, units and values."""

import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.audit.neighbours import designed_pairs
from understudy.codec.table_codec import TableCodec
from understudy.counts.source import CountSource, PrivateTable
from understudy.errors import InputError, SchemaError
from understudy.marginals.clique import Clique
from understudy.schema import Schema, Unit
from understudy.testing import tables

__all__ = ["OpenTable", "check_source"]

OpenTable = Callable[[pa.Table, Schema], PrivateTable]
"""Puts an Arrow table of text columns where the source under test can read it, and opens it there."""


def check_source(open_table: OpenTable) -> None:
    """Raises AssertionError where the source differs from counting by hand."""
    for schema in (tables.small(), tables.every_kind(), tables.hostile_names(), tables.split_amounts()):
        for rows in (0, 1, 57):
            _check_counts(open_table, schema, tables.some_rows(schema, rows, seed=rows))
        _check_hostile_values(open_table, schema)
    _check_labels(open_table)
    _check_header_that_is_data(open_table)
    for bound in (1, 3):
        _check_unit(open_table, tables.several_rows(bound))
        _check_unit(open_table, tables.split_amounts(unit=Unit(column="person", rows=bound)))


@dataclass(frozen=True, slots=True)
class _Blocks:
    """A partition that no clique expresses: the parity of the sum of all codes, beside the first column."""

    columns: Clique
    sizes: tuple[int, ...]
    name: str = "blocks"

    @property
    def cells(self) -> int:
        return 2 * self.sizes[0]

    def assign(self, codes: Mapping[str, npt.NDArray[np.integer]]) -> npt.NDArray[np.int64]:
        total = sum(codes[name].astype(np.int64) for name in self.columns)
        return np.asarray(codes[self.columns[0]].astype(np.int64) * 2 + total % 2, dtype=np.int64)


def _encoded(codec: TableCodec, table: pa.Table) -> dict[str, list[int]]:
    return {name: codec.encode(name, table.column(codec.origin(name))).tolist() for name in codec.domain.columns}


def _by_hand(codec: TableCodec, codes: dict[str, list[int]], clique: Clique, rows: int) -> list[int]:
    counted: Counter[tuple[int, ...]] = (
        Counter(zip(*(codes[name] for name in clique), strict=True)) if clique else Counter({(): rows})
    )
    return [counted[cell] for cell in itertools.product(*(range(size) for size in codec.domain.shape(clique)))]


def _check_counts(open_table: OpenTable, schema: Schema, table: pa.Table) -> None:
    codec = TableCodec.of(schema)
    source = open_table(table, schema).bind(codec)
    codes = _encoded(codec, table)
    names = codec.domain.columns
    cliques = [codec.domain.clique(names[:width]) for width in (0, 1)]
    cliques += [codec.domain.clique(pair) for pair in itertools.combinations(names, 2)]
    cliques += [codec.domain.clique(names[:3])]
    answers = source.counts(cliques)
    for clique in cliques:
        exact = answers[clique]
        assert exact.dtype == np.int64
        assert exact.tolist() == _by_hand(codec, codes, clique, table.num_rows), clique
    _check_everything(source, codec, codes)
    records = source.records()
    by_hand = Counter(zip(*(codes[name] for name in names), strict=True))
    assert Counter(map(tuple, records.codes.tolist())) == by_hand, "the records are not the rows"
    assert records.starts.tolist() == list(range(table.num_rows + 1)), "every row is a unit of its own"


def _check_everything(source: CountSource, codec: TableCodec, codes: dict[str, list[int]]) -> None:
    everything = codec.domain.everything()
    shape = codec.domain.shape(everything)
    cells = Counter(
        int(np.ravel_multi_index(cell, shape)) for cell in zip(*(codes[name] for name in everything), strict=True)
    )
    occupied = source.occupied(everything)
    assert occupied.indices.tolist() == sorted(cells)
    assert occupied.counts.tolist() == [cells[index] for index in sorted(cells)]
    blocks = _Blocks(everything, shape)
    expected = np.bincount(
        blocks.assign({name: np.array(values, dtype=np.int64) for name, values in codes.items()}),
        minlength=blocks.cells,
    )
    assert source.partition_counts([blocks])[0].tolist() == expected.tolist()


def _check_hostile_values(open_table: OpenTable, schema: Schema) -> None:
    """All hostile values of the designed pairs in one table: counted by the codec's rule, without a sound."""
    pairs = [pair for pair in designed_pairs(schema) if pair.name.startswith("hostile")]
    last_rows = pa.concat_tables([pair.neighbour.slice(pair.neighbour.num_rows - 1) for pair in pairs])
    _check_counts(open_table, schema, last_rows)


def _check_labels(open_table: OpenTable) -> None:
    schema = tables.open_labels()
    labels = ["nurse", "cook", "nurse", None, "ünï🙂", "nurse", "x'y\"z", "cook"]
    table = pa.table({"sex": pa.array(["F"] * len(labels)), "job": pa.array(labels, pa.string())})
    found = open_table(table, schema).label_counts("job")
    expected = Counter(label for label in labels if label is not None)
    assert dict(zip(found.labels, found.counts.tolist(), strict=True)) == dict(expected)


def _check_header_that_is_data(open_table: OpenTable) -> None:
    """A table whose names are somebody's values, or end in them, is refused without a word of them."""
    schema = tables.small()
    *first, last = schema.names
    person = ["Zyxwvut", "48151623", "2001-02-03", "zyx@example.org"]
    headers = {
        "a row in place of the header": person,
        "a row beside the header": [*first, last, *person],
        "a row merged into the header": [*first, last + person[0], *person[1:]],
    }
    for case, names in headers.items():
        refused = ""
        try:
            open_table(pa.table({name: ["yes"] for name in names}), schema)
        except (InputError, SchemaError) as error:
            refused = f"{error} {error.__context__ or ''}"
        assert refused, f"{case}: was taken for a header"
        assert not any(value in refused for value in person), f"{case}: a value is quoted"


def _check_unit(open_table: OpenTable, schema: Schema) -> None:
    """At most k rows of each unit count, nobody without a unit does, and leaving one out changes at most k rows."""
    column, bound = schema.unit.column, schema.unit.rows
    assert column is not None
    table = tables.some_rows(schema, 60, seed=bound)
    codec = TableCodec.of(schema)
    everything = codec.domain.everything()
    held = Counter(name for name in table.column(column).to_pylist() if name is not None)
    full = open_table(table, schema).bind(codec).counts([everything])[everything]
    assert full.sum() == sum(min(bound, rows) for rows in held.values())
    records = open_table(table, schema).bind(codec).records()
    counted = np.ravel_multi_index(tuple(records.codes.astype(np.int64).T), codec.domain.shape(everything))
    assert np.bincount(counted, minlength=full.size).tolist() == full.tolist()
    assert sorted(np.diff(records.starts).tolist()) == sorted(min(bound, rows) for rows in held.values())
    reversed_rows = table.take(pa.array(range(table.num_rows - 1, -1, -1)))
    again = open_table(reversed_rows, schema).bind(codec).counts([everything])[everything]
    assert again.tolist() == full.tolist(), "the order of rows must not matter"
    for unit in sorted(held)[:6]:
        keep = [name != unit for name in table.column(column).to_pylist()]
        without = open_table(table.filter(pa.array(keep)), schema).bind(codec).counts([everything])[everything]
        assert int(np.abs(full - without).sum()) == min(bound, held[unit])
