"""Rows: one table as codes and numbers, in an order that does not depend on how it was stored.

Rows are sorted by a public hash of their own content. Halves, folds and permutations drawn with a seed are then the
same whatever the order of rows or columns in the file. Unit bounds are not applied: the comparison is with the
whole table, so that what a bound cost shows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from understudy.codec.column_codec import CodeArray
from understudy.codec.table_codec import TableCodec
from understudy.counts.chunked_source import encode_column
from understudy.counts.kernels import hash_rows
from understudy.counts.open import open_table
from understudy.counts.source import PrivateTable
from understudy.evaluate.data.numbers import Floats, read_numbers
from understudy.marginals.domain import Domain
from understudy.schema import Schema, Unit
from understudy.schema.column import NumberColumn

__all__ = ["Rows", "open_for_comparison", "read_rows", "stacked"]

Ints = npt.NDArray[np.int64]

_ORDER_KEY = 0x5EED


@dataclass(frozen=True, eq=False)
class Rows:
    """Codes of every column of codes, and numbers of every number column (NaN where missing or special).

    `unclamped` holds the numbers of the file itself, special ones and those beyond the bounds included, of the columns
    in which they differ from `numbers`; `raw` looks them up.
    """

    codec: TableCodec
    count: int
    codes: Mapping[str, CodeArray]
    numbers: Mapping[str, Floats]
    unclamped: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def domain(self) -> Domain:
        """How many codes each column has."""
        return self.codec.domain

    def raw(self, name: str) -> Floats:
        """The numbers of a number column as the file has them; NaN where it holds none."""
        return self.unclamped[name] if name in self.unclamped else self.numbers[name]

    def take(self, index: Ints) -> "Rows":
        """These rows, in this order."""
        return replace(
            self,
            count=len(index),
            codes={name: codes[index] for name, codes in self.codes.items()},
            numbers={name: numbers[index] for name, numbers in self.numbers.items()},
            unclamped={name: numbers[index] for name, numbers in self.unclamped.items()},
        )

    @cached_property
    def groups(self) -> Ints:
        """The number of the distinct row that each row equals, over all codes."""
        return group_rows([self.codes[name] for name in self.domain.columns], self.count)


def open_for_comparison(data: object, schema: Schema) -> PrivateTable:
    """The table under the schema, every row of it: without a unit, so without a bound."""
    return open_table(data, replace(schema, unit=Unit()))


def read_rows(table: PrivateTable, codec: TableCodec) -> Rows:
    """Every row of the table, coded, in the order of its hash."""
    names = codec.domain.columns
    origins = list(dict.fromkeys(codec.origin(name) for name in names))
    axes = [column for column in codec.schema.modelled if isinstance(column, NumberColumn) and column.name in origins]
    codes: dict[str, list[CodeArray]] = {name: [np.empty(0, codec.dtype(name))] for name in names}
    numbers: dict[str, list[Floats]] = {column.name: [np.empty(0)] for column in axes}
    unclamped: dict[str, list[Floats]] = {column.name: [np.empty(0)] for column in axes}
    count = 0
    for rows, batch in table.batches(origins):
        count += rows
        for name in names:
            codes[name].append(encode_column(codec, name, batch[codec.origin(name)]))
        for column in axes:
            read, raw = read_numbers(column, batch[column.name])
            numbers[column.name].append(read)
            unclamped[column.name].append(raw if _differ(read, raw) else read)
    known = {name: np.concatenate(parts) for name, parts in numbers.items()}
    beyond = {name: np.concatenate(parts) for name, parts in unclamped.items()}
    whole = Rows(
        codec,
        count,
        {name: np.concatenate(parts) for name, parts in codes.items()},
        known,
        {name: raw for name, raw in beyond.items() if _differ(known[name], raw)},
    )
    return whole.take(_order(whole))


def _differ(numbers: Floats, raw: Floats) -> bool:
    return not np.array_equal(numbers, raw, equal_nan=True)


def _order(rows: Rows) -> Ints:
    """Positions by hash; names go into the key in sorted order, so that the schema's order does not matter."""
    columns: list[npt.NDArray[np.unsignedinteger]] = [rows.codes[name] for name in sorted(rows.codes)]
    columns += [(rows.raw(name) + 0.0).view(np.uint64) for name in sorted(rows.numbers)]
    return np.argsort(hash_rows(columns, _ORDER_KEY, rows.count), kind="stable")


def stacked(first: Rows, second: Rows) -> Rows:
    """The rows of both, one after the other."""
    return replace(
        first,
        count=first.count + second.count,
        codes={name: np.concatenate([first.codes[name], second.codes[name]]) for name in first.codes},
        numbers={name: np.concatenate([first.numbers[name], second.numbers[name]]) for name in first.numbers},
        unclamped={
            name: np.concatenate([first.raw(name), second.raw(name)])
            for name in first.numbers
            if name in first.unclamped or name in second.unclamped
        },
    )


def group_rows(columns: Sequence[npt.NDArray[np.integer]], rows: int) -> Ints:
    """Equal rows get equal numbers 0, 1, 2, …; exact for any number of columns.

    >>> group_rows([np.array([1, 0, 1]), np.array([2, 2, 2])], 3).tolist()
    [1, 0, 1]
    """
    index, groups = np.zeros(rows, np.int64), 1
    for column in columns:
        size = int(column.max()) + 1 if rows else 1
        if groups * size >= 1 << 62:
            index, groups = _renumbered(index)
        index = index * size + column
        groups *= size
    return _renumbered(index)[0]


def _renumbered(index: Ints) -> tuple[Ints, int]:
    found, places = np.unique(index, return_inverse=True)
    return places.astype(np.int64).ravel(), max(1, len(found))
