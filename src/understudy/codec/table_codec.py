"""TableCodec: a whole table ⇄ codes, from the schema and the labels and edges that were paid for."""

import enum
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.codec.axis import axis_of
from understudy.codec.bins import settled_edges, special_of
from understudy.codec.column_codec import CodeArray, CodeReader, ColumnCodec, Layout, encode_safely
from understudy.codec.derived import derived_column, derived_type
from understudy.codec.forbidden import forbidden_cells
from understudy.codec.label_codec import LabelCodec, boolean_codec
from understudy.codec.number_codec import NumberCodec
from understudy.codec.pool.pool_codec import Pool, PoolCodec, checked_pool
from understudy.codec.split.split_codec import SplitCodec
from understudy.codec.support import Number
from understudy.errors import UsageError, nearest
from understudy.marginals.domain import Domain
from understudy.marginals.forbidden import Forbidden
from understudy.schema import (
    Boolean,
    Category,
    Column,
    Derived,
    Integer,
    OpenCategory,
    PrivateBins,
    Schema,
    code_names,
)
from understudy.schema.column import STORAGE, Named

__all__ = ["TableCodec"]

# Rows coded at a time: large enough to amortise calls, small enough to stay in cache.
_SLICE_ROWS = 1 << 18


class TableCodec:
    """Values ⇄ codes of all modelled columns. Build it with `TableCodec.of`.

    A column of the table has one column of codes under its own name, or two if the schema splits it; all that counts
    and models speaks of columns of codes, and `origin` tells from which column of the table each is read.
    """

    def __init__(
        self,
        schema: Schema,
        codecs: Mapping[str, ColumnCodec | SplitCodec],
        labels: Mapping[str, tuple[str, ...]],
        edges: Mapping[str, tuple[Number, ...]],
        pools: Mapping[str, Pool] | None = None,
        *,
        unreadable: bool = True,
    ) -> None:
        self.schema = schema
        self.unreadable = unreadable
        self.pools = dict(pools or {})
        self.labels = dict(labels)
        self.edges = dict(edges)
        self._columns = dict(codecs)
        self._codecs: dict[str, CodeReader] = {}
        self._origins: dict[str, str] = {}
        for name, codec in codecs.items():
            names = code_names(schema.column(name))
            parts: list[CodeReader] = [codec.size, codec.kind] if isinstance(codec, SplitCodec) else [codec]
            self._codecs |= dict(zip(names, parts, strict=True))
            self._origins |= dict.fromkeys(names, name)
        self.domain = Domain.of({name: codec.layout.size for name, codec in self._codecs.items()})

    @classmethod
    def of(
        cls,
        schema: Schema,
        labels: Mapping[str, Sequence[str]] | None = None,
        edges: Mapping[str, Sequence[Number]] | None = None,
        *,
        columns: Iterable[str] | None = None,
        pools: Mapping[str, Pool] | None = None,
        unreadable: bool | None = None,
        judging: bool = False,
    ) -> "TableCodec":
        """The codec of a schema.

        A column that has neither a code for missing nor one for other has one for what cannot be read, unless the
        schema says `unreadable: drop`. By its codec a table is released; `judging` gives the one by which a table is
        judged, in which absent and unreadable values are told apart.

        Args:
            schema: Public facts about the table.
            labels: Discovered labels of open categories.
            edges: Bin edges of columns with private bins, on the column's axis.
            columns: Restricts the codec to these columns, so that others need not be settled yet.
            pools: Rare labels that share one code, with their shares, of categories that ask for that.
            unreadable: Whether columns may have a code for what cannot be read; by default as the schema says.
            judging: Gives every column a code for missing and, where it has no other, one for unreadable beside it.

        Raises:
            UsageError: if an open category or a privately binned column is not settled.
        """
        found = {name: tuple(texts) for name, texts in (labels or {}).items()}
        given = {name: tuple(_number(edge) for edge in places) for name, places in (edges or {}).items()}
        chosen = None if columns is None else set(columns)
        pooled = {
            name: checked_pool(name, _labels_of(schema.column(name)), pool) for name, pool in (pools or {}).items()
        }
        for name in sorted((chosen or set()) | set(found) | set(given)):
            _check_settled(schema.column(name), is_labelled=name in found, is_cut=name in given)
        keeps = schema.unreadable == "keep" if unreadable is None else unreadable
        odd = _Odd.JUDGED if judging else _Odd.CODED if keeps else _Odd.LEFT_OUT
        settled = _Settled(found, given, pooled, odd)
        codecs = {
            column.name: _codec_of(column, settled)
            for column in schema.modelled
            if chosen is None or column.name in chosen
        }
        return cls(schema, codecs, found, given, pooled, unreadable=keeps or judging)

    @cached_property
    def taxonomies(self) -> dict[str, npt.NDArray[np.int64]]:
        """For each category with `groups`, the group of every code; a code without a group is one of its own."""
        found = {}
        for name, codec in self._codecs.items():
            column = self.schema.column(self._origins[name])
            if isinstance(column, Category) and column.groups and column.name not in self.pools:
                groups = column.groups
                keys = [("group", groups[label]) if label in groups else ("label", label) for label in column.labels]
                keys += [("code", str(code)) for code in range(len(keys), codec.layout.size)]
                numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
                found[name] = np.array([numbers[key] for key in keys], dtype=np.int64)
        return found

    @cached_property
    def forbidden(self) -> tuple[Forbidden, ...]:
        """Cells that the schema's rules and hierarchies exclude, and pairs of size and kind that no value has."""
        splits = {name: codec for name, codec in self._columns.items() if isinstance(codec, SplitCodec)}
        return forbidden_cells(self.schema, self._codecs, splits, self.domain)

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """Names and types of `decode`'s table, in schema order: decided by the schema, never by rows."""
        types = {name: codec.arrow_type for name, codec in self._columns.items()}
        fields = [
            pa.field(
                column.name, derived_type(column, self.schema) if isinstance(column, Derived) else types[column.name]
            )
            for column in self._shown()
        ]
        return pa.schema(fields)

    def _shown(self) -> list[Column]:
        whole = len(self._columns) == len(self.schema.modelled)
        return [
            column for column in self.schema.columns if column.name in self._columns or (whole and _derived(column))
        ]

    def origin(self, name: str) -> str:
        """The column of the table that a column of codes is read from."""
        self._codec(name)
        return self._origins[name]

    def _codec(self, name: str) -> CodeReader:
        if name not in self._codecs:
            raise UsageError(f"column {name!r}", "is not a modelled column of the schema.", nearest(name, self._codecs))
        return self._codecs[name]

    def layout(self, name: str) -> Layout:
        """How many codes of each sort a column of codes has."""
        return self._codec(name).layout

    def dtype(self, name: str) -> np.dtype[np.unsignedinteger]:
        """The smallest unsigned type that holds the column's codes."""
        return self._codec(name).layout.dtype

    def encode(self, name: str, values: pa.Array | pa.ChunkedArray) -> CodeArray:
        """The code of each value of `origin(name)`. Never raises on content; each depends on its own value alone.

        In columns that are `leaving_out`, the number past the last code stands for a value that has none.
        """
        codec = self._codec(name)
        codes = np.empty(len(values), dtype=codec.layout.dtype)
        start = 0
        for chunk in values.chunks if isinstance(values, pa.ChunkedArray) else [values]:
            # A dictionary is coded once, however long the chunk is.
            step = len(chunk) if pa.types.is_dictionary(chunk.type) else _SLICE_ROWS
            for first in range(0, len(chunk), max(step, 1)):
                piece = chunk.slice(first, step)
                codes[start : start + len(piece)] = encode_safely(piece, codec.encode, codec.layout)
                start += len(piece)
        return codes

    def decode(self, codes: Mapping[str, npt.NDArray[np.integer]], rng: np.random.Generator) -> pa.Table:
        """The table these codes stand for, in schema order, derived columns recomputed."""
        arrays: dict[str, pa.Array] = {}
        for name, codec in self._columns.items():
            parts = [np.asarray(codes[part]) for part in code_names(self.schema.column(name))]
            if isinstance(codec, SplitCodec):
                arrays[name] = codec.decode(parts[0], parts[1], rng)
            else:
                arrays[name] = codec.decode(parts[0], rng)
        for column in self._shown():
            if isinstance(column, Derived):
                arrays[column.name] = derived_column(column, self.schema, arrays)
        return pa.table([arrays[field.name] for field in self.arrow_schema], schema=self.arrow_schema)

    def describe(self, name: str, code: int) -> str:
        """The code in words: a label, "[20, 30)", "missing", "unreadable"."""
        codec = self._codec(name)
        if not 0 <= code < codec.layout.size:
            raise UsageError(f"column {name!r}", f"has codes below {codec.layout.size}, got {code}.")
        return codec.describe(code)

    def codes_matching(self, name: str, text: str) -> npt.NDArray[np.int64]:
        """The codes that `name=text` stands for exactly: a label, a value, "lo..hi" of whole bins, "missing" …

        Raises:
            UsageError: if it matches nothing, or would be answered for more or less than was asked.
        """
        codec = self._codec(name)
        found = codec.codes_matching(text)
        if len(found):
            return found
        advice = codec.nearest_conditions(text)
        if advice:
            raise UsageError(f"{name}={text}", "cuts through a code of this column.", advice)
        shown = [codec.describe(code) for code in range(min(codec.layout.size, 50))]
        raise UsageError(f"{name}={text}", "matches no code of this column.", nearest(text, shown))

    @cached_property
    def leaving_out(self) -> tuple[str, ...]:
        """The columns of codes in which a value may have no code, so that its row is left out."""
        return tuple(name for name, codec in self._codecs.items() if codec.layout.leaves_out)

    @cached_property
    def readable(self) -> Domain:
        """The codes without those for what cannot be read, which come last in their columns."""
        return Domain.of({name: codec.layout.size - codec.layout.unreadable for name, codec in self._codecs.items()})

    def unreadable_code(self, name: str) -> int | None:
        """The code of what cannot be read, for a column of codes that has one of its own."""
        return self._codec(name).layout.unreadable_code

    def missing_code(self, name: str) -> int | None:
        """The code of missing values, for a column of codes that has one."""
        return self._codec(name).layout.missing_code

    def other_code(self, name: str) -> int | None:
        """The code of values outside the list, for a column of codes that has one."""
        return self._codec(name).layout.other_code

    def to_json(self) -> dict[str, object]:
        """Settled labels, edges and rare labels: with the schema, all that is needed to build this codec again.

        `unreadable` says that columns may have a code for what cannot be read; the first format had none.
        """
        document: dict[str, object] = {
            "labels": {name: list(texts) for name, texts in self.labels.items()},
            "edges": {name: list(places) for name, places in self.edges.items()},
        }
        if self.pools:
            document["rare"] = {name: [label for label, _ in pool] for name, pool in self.pools.items()}
            document["shares"] = {name: [share for _, share in pool] for name, pool in self.pools.items()}
        if self.unreadable:
            document["unreadable"] = True
        return document

    @classmethod
    def from_json(cls, schema: Schema, document: Mapping[str, object]) -> "TableCodec":
        """The codec that `to_json` described."""
        labels, edges = document.get("labels", {}), document.get("edges", {})
        if not (_is_lists(labels, (str,)) and _is_lists(edges, (int, float))):
            raise UsageError(
                "codec", "must hold lists of labels and lists of edges by column.", "Use to_json's output."
            )
        rare, shares = document.get("rare", {}), document.get("shares", {})
        if not (_is_lists(rare, (str,)) and _is_lists(shares, (int, float)) and _same_sizes(rare, shares)):
            raise UsageError("codec", "must hold one share for each rare label.", "Use to_json's output.")
        unreadable = document.get("unreadable", False)
        if not isinstance(unreadable, bool):
            raise UsageError("codec", "must say true or false for unreadable.", "Use to_json's output.")
        pools = {name: tuple(zip(rare[name], shares[name], strict=True)) for name in rare}  # type: ignore[index, attr-defined]
        return cls.of(schema, labels, edges, pools=pools, unreadable=unreadable)  # type: ignore[arg-type]


class _Odd(enum.Enum):
    """What becomes of a value that cannot be read in a column with neither missing nor other."""

    CODED = "it has a code of its own"
    LEFT_OUT = "it has none, and its row is left out"
    JUDGED = "it has a code of its own, in every column without other, beside one for missing"


@dataclass(frozen=True, slots=True)
class _Settled:
    """What a schema leaves open, by column."""

    labels: Mapping[str, tuple[str, ...]]
    edges: Mapping[str, tuple[Number, ...]]
    pools: Mapping[str, Pool]
    odd: _Odd

    def layout(self, column: Named, regular: int, *, other: bool = False) -> Layout:
        """The codes of a column with this many regular ones."""
        missing = column.missing or self.odd is _Odd.JUDGED
        own = not other and (self.odd is _Odd.JUDGED or (self.odd is _Odd.CODED and not missing))
        return Layout(regular, other=other, missing=missing, unreadable=own)


def _codec_of(column: Column, settled: _Settled) -> ColumnCodec | SplitCodec:
    match column:
        case Category():
            layout = settled.layout(column, len(column.labels), other=column.other is not None)
            full = LabelCodec(column.labels, layout, _stored(column), other=column.other)
            pool = settled.pools.get(column.name)
            return full if pool is None else PoolCodec(full, pool)
        case OpenCategory():
            labels = settled.labels.get(column.name)
            if labels is None:
                rule = "is an open category whose labels are not discovered yet."
                raise UsageError(f"column {column.name!r}", rule, "Pass its labels.")
            # The empty text is missing, and the name of other is a code already.
            kept = [label for label in dict.fromkeys(labels) if label not in ("", column.other)]
            layout = settled.layout(column, len(kept), other=True)
            return LabelCodec(kept, layout, _stored(column), other=column.other)
        case Boolean():
            return boolean_codec(settled.layout(column, 2), _stored(column))
        case Derived():
            raise UsageError(f"column {column.name!r}", "is derived, so it has no codes.")
        case _:
            places = settled_edges(column, settled.edges.get(column.name))
            odd = settled.layout(column, len(places) - 1)
            special = special_of(column)
            codec = NumberCodec(axis_of(column), places, special, missing=odd.missing, unreadable=odd.unreadable)
            return SplitCodec(codec, column.split) if isinstance(column, Integer) and column.split else codec


def _labels_of(column: Column) -> tuple[str, ...]:
    """Labels that may be pooled: none where the schema does not ask for it."""
    return column.labels if isinstance(column, Category) and column.rare == "private" else ()


def _check_settled(column: Column, *, is_labelled: bool, is_cut: bool) -> None:
    """Labels and edges may be given only where the schema leaves them open."""
    if is_labelled and not isinstance(column, OpenCategory):
        raise UsageError(
            f"column {column.name!r}", "has labels of its own or none.", "Pass labels of open categories only."
        )
    if is_cut and not isinstance(getattr(column, "bins", None), PrivateBins):
        raise UsageError(f"column {column.name!r}", "has bins of its own or none.", "Pass edges of private bins only.")


def _stored(column: Category | OpenCategory | Boolean) -> pa.DataType:
    return pa.type_for_alias(column.storage or STORAGE[column.kind][0])


def _derived(column: Column) -> bool:
    return isinstance(column, Derived)


def _number(edge: Number) -> Number:
    # Edges computed with NumPy must be plain numbers to be written as JSON.
    return edge.item() if isinstance(edge, np.generic) else edge


def _is_lists(document: object, kinds: tuple[type, ...]) -> bool:
    return isinstance(document, Mapping) and all(
        isinstance(name, str) and isinstance(items, list) and all(_is_item(item, kinds) for item in items)
        for name, items in document.items()
    )


def _same_sizes(one: object, other: object) -> bool:
    assert isinstance(one, Mapping)
    assert isinstance(other, Mapping)
    return {name: len(items) for name, items in one.items()} == {name: len(items) for name, items in other.items()}


def _is_item(item: object, kinds: tuple[type, ...]) -> bool:
    if isinstance(item, str):
        # Half of a surrogate pair is no text, though JSON can spell it.
        return str in kinds and not any("\ud800" <= letter <= "\udfff" for letter in item)
    return type(item) in kinds and (not isinstance(item, float) or math.isfinite(item))
