"""TableCodec: a whole table ⇄ codes, from the schema and the labels and edges that were paid for.

Rules of the schema become cells of small tables that no record can be in. Derived columns are not coded: they are
recomputed from the columns just decoded, so that they always agree with them.

Methods may merge codes that noisy counts have shown to be rare (`MergedCodec`): relations are then counted and measured
on merged codes, and the model of the method draws a code for each merged one afterwards. So there is no way back to
values there: those are decoded by the codec with all codes.
"""

import contextlib
import copy
import enum
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from understudy.arrays import Floats
from understudy.codec.axes import Number, axis_of, fixed_edges, special_of, written
from understudy.codec.column import (
    CodeArray,
    CodeReader,
    ColumnCodec,
    ColumnPasses,
    LabelCodec,
    Layout,
    Pool,
    PoolCodec,
    boolean_codec,
    checked_pool,
    code_type,
    encode_safely,
    touched,
)
from understudy.codec.kernels import LEAST_ROWS
from understudy.codec.numbers import NumberCodec, SplitCodec
from understudy.codec.reading import canonical_text
from understudy.domain import Domain, StructuralZeros
from understudy.errors import Problem, SchemaError, UsageError, nearest
from understudy.schema import (
    Boolean,
    Category,
    Column,
    Cut,
    Derived,
    Float,
    Integer,
    LinearSum,
    Lookup,
    OpenCategory,
    PrivateBins,
    Range,
    Schema,
    code_names,
)
from understudy.schema.columns import STORAGE, Named, missing_texts, number_of

MOST_CELLS = 10_000_000

Conditions = Mapping[str, tuple[str | None, ...] | Range]


def structural_zero_cells(
    schema: Schema, codecs: Mapping[str, CodeReader], splits: Mapping[str, SplitCodec], domain: Domain
) -> tuple[StructuralZeros, ...]:
    """The cells excluded by the schema's rules, hierarchies and split columns; what names columns left out is skipped.

    A rule about a split column is one about its size.

    Raises:
        SchemaError: naming every rule whose table would have more than ten million cells.
    """
    problems: list[Problem] = []
    found: list[StructuralZeros] = []
    for place, rule in enumerate(schema.rules):
        when = {code_names(schema.column(name))[0]: said for name, said in rule.when.items()}
        # A rule about a column that is left out excludes nothing among the others.
        if when.keys() <= codecs.keys() and _fits(domain, tuple(when), f"rules[{place}]", problems):
            found.append(_of_rule(when, codecs, domain))
    for column in schema.modelled:
        if isinstance(column, Category) and column.within is not None and {column.name, column.within} <= set(codecs):
            names = (column.name, column.within)
            if _fits(domain, names, f"columns.{column.name}.within", problems):
                found.append(_of_hierarchy(column, codecs, domain))
    for name, split in splits.items():
        parts = code_names(schema.column(name))
        if not split.possible.all() and _fits(domain, parts, f"columns.{name}.split", problems):
            found.append(StructuralZeros(domain.clique(parts), ~split.possible.ravel()))
    if problems:
        raise SchemaError(problems)
    return tuple(found)


def _fits(domain: Domain, names: tuple[str, ...], where: str, problems: list[Problem]) -> bool:
    cells = domain.cells(domain.clique(names))
    if cells > MOST_CELLS:
        rule = f"spans {cells:,} cells, above the limit of {MOST_CELLS:,}."
        problems.append(Problem(where, rule, "Use fewer columns in one rule, or wider bins."))
    return cells <= MOST_CELLS


def _of_rule(when: Conditions, codecs: Mapping[str, CodeReader], domain: Domain) -> StructuralZeros:
    clique = domain.clique(when)
    mask = np.ones((1,) * len(clique), dtype=bool)
    for axis, name in enumerate(clique):
        hit = np.zeros(domain.sizes[name], dtype=bool)
        hit[_codes_of(when[name], codecs[name])] = True
        mask = mask & hit.reshape(tuple(-1 if place == axis else 1 for place in range(len(clique))))
    return StructuralZeros(clique, np.ascontiguousarray(mask).ravel())


def _codes_of(said: tuple[str | None, ...] | Range, codec: CodeReader) -> npt.NDArray[np.int64]:
    if isinstance(said, Range):
        if not isinstance(codec, NumberCodec):
            return np.asarray([], dtype=np.int64)
        low = -np.inf if said.lower is None else number_of(said.lower)
        high = np.inf if said.upper is None else number_of(said.upper)
        return codec.codes_between(low, high)
    codes = [_code_of(text, codec) for text in said]
    return np.asarray([code for code in codes if code is not None], dtype=np.int64)


def _code_of(text: str | None, codec: CodeReader) -> int | None:
    if text is None:
        return codec.layout.missing_code
    if isinstance(codec, NumberCodec):
        return codec.special_code(text)
    found = codec.codes_matching(text)
    # No rule speaks of what cannot be read: that such a value is impossible with others nobody knows.
    return int(found[0]) if len(found) and found[0] != codec.layout.unreadable_code else None


def _of_hierarchy(column: Category, codecs: Mapping[str, CodeReader], domain: Domain) -> StructuralZeros:
    """A label with a group goes with that group, with missing or with unreadable; other codes go with anything."""
    coarse = codecs[str(column.within)]
    mask = np.zeros((domain.sizes[column.name], domain.sizes[str(column.within)]), dtype=bool)
    for code, label in enumerate(column.labels):
        if label in column.groups and isinstance(coarse, LabelCodec):
            # Missing and unreadable groups stay possible: that a value was not given contradicts no label.
            mask[code, : len(coarse.labels) + coarse.layout.other] = True
            mask[code, coarse.codes_matching(column.groups[label])] = False
    clique = domain.clique([column.name, str(column.within)])
    oriented = mask if clique[0] == column.name else mask.T
    return StructuralZeros(clique, np.ascontiguousarray(oriented).ravel())


# Sums beyond this are not exact as 64-bit integers and become missing.
_LARGEST_SUM = 2.0**62


def derived_type(column: Derived, schema: Schema) -> pa.DataType:
    """The Arrow type of a derived column: its storage, else text for labels and int64 or double for sums."""
    if column.storage:
        return pa.type_for_alias(column.storage)
    if not isinstance(column.formula, LinearSum):
        return pa.string()
    return pa.int64() if _is_whole(column.formula, schema) else pa.float64()


def _is_whole(formula: LinearSum, schema: Schema) -> bool:
    numbers = (*formula.weights.values(), formula.constant)
    sources = (schema.column(name) for name in formula.weights)
    return all(float(number).is_integer() for number in numbers) and all(
        isinstance(source, Integer) for source in sources
    )


def derived_column(column: Derived, schema: Schema, decoded: Mapping[str, pa.Array]) -> pa.Array:
    """The values of a derived column, given those of the columns it is made from."""
    match column.formula:
        case LinearSum():
            values = _sum(column.formula, schema, decoded)
        case Lookup():
            values = _lookup(column.formula, decoded[column.formula.column])
        case Cut():
            values = _cut(column.formula, _numbers(column.formula.column, schema, decoded))
    return written(values, derived_type(column, schema))


def _numbers(name: str, schema: Schema, decoded: Mapping[str, pa.Array]) -> pa.Array:
    """A number column without its special values, which are not amounts."""
    column, array = schema.column(name), decoded[name]
    special = column.special if isinstance(column, Integer | Float) else ()
    if special:
        is_special = pc.is_in(array, value_set=written(pa.array(special), array.type))
        array = pc.if_else(is_special, pa.scalar(None, array.type), array)
    return array


def _sum(formula: LinearSum, schema: Schema, decoded: Mapping[str, pa.Array]) -> pa.Array:
    whole = _is_whole(formula, schema)
    kind = np.int64 if whole else np.float64
    rows = len(next(iter(decoded.values()), []))
    total = np.full(rows, formula.constant, dtype=kind)
    size = np.full(rows, abs(float(formula.constant)))
    valid = np.ones(rows, dtype=bool)
    for name, weight in formula.weights.items():
        array = _numbers(name, schema, decoded)
        numbers = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
        valid &= array.is_valid().to_numpy(zero_copy_only=False)
        with np.errstate(all="ignore"):
            total += kind(weight) * numbers.astype(kind)
            size += np.abs(float(weight) * numbers.astype(np.float64))
    valid &= np.isfinite(size) & ((size < _LARGEST_SUM) if whole else True)
    return pa.array(total, mask=~valid)


def _lookup(formula: Lookup, source: pa.Array) -> pa.Array:
    distinct = source.dictionary_encode()
    texts = canonical_text(distinct.dictionary).to_pylist()
    found = pa.array([formula.entries.get(text, formula.otherwise) for text in texts], pa.string())
    values = found.take(distinct.indices)
    return values if formula.otherwise is None else pc.fill_null(values, formula.otherwise)


def _cut(formula: Cut, source: pa.Array) -> pa.Array:
    numbers = pc.fill_null(source, 0).to_numpy(zero_copy_only=False).astype(np.float64)
    edges = np.asarray(formula.edges, dtype=np.float64)
    bands = np.searchsorted(edges, numbers, side="right") - 1
    # The last band includes its upper end, as the last bin of a column does.
    bands[numbers == edges[-1]] = len(formula.labels) - 1
    valid = source.is_valid().to_numpy(zero_copy_only=False) & (bands >= 0) & (bands < len(formula.labels))
    return pa.array(formula.labels, pa.string()).take(pa.array(np.where(valid, bands, 0), mask=~valid))


def field_metadata(column: Column) -> dict[str, str] | None:
    """What an Arrow field says about its column for people: the keys of the schema that do so; None if it has none.

    `meanings` is a JSON object; `ordered` is a JSON list of the labels from lowest to highest.

    >>> field_metadata(Category(name="vote", labels=("1",), title="Vote", meanings={"1": "yes"}))
    {'title': 'Vote', 'meanings': '{"1": "yes"}'}
    """
    said = {key: str(getattr(column, key, "")) for key in ("title", "description", "measured_in")}
    if isinstance(column, Category):
        said["meanings"] = json.dumps(dict(column.meanings), ensure_ascii=False) if column.meanings else ""
        said["ordered"] = json.dumps(column.labels, ensure_ascii=False) if column.ordered else ""
    return {key: text for key, text in said.items() if text} or None


def _encode_generally(codec: CodeReader, chunk: pa.Array, codes: CodeArray) -> None:
    # A dictionary is coded once, however long the chunk is.
    step = len(chunk) if pa.types.is_dictionary(chunk.type) else _SLICE_ROWS
    for first in range(0, len(chunk), max(step, 1)):
        piece = chunk.slice(first, step)
        codes[first : first + len(piece)] = encode_safely(piece, codec.encode, codec.layout)


def _chunks(values: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    """The pieces of a column; joined where there are many short ones, since each takes longer than its values do."""
    if not isinstance(values, pa.ChunkedArray):
        return [values]
    if values.num_chunks > 1 and len(values) < LEAST_ROWS * values.num_chunks:
        with contextlib.suppress(pa.ArrowException):  # types that Arrow can neither weigh nor join
            if values.nbytes < _MOST_JOINED:
                joined = values.combine_chunks()
                return joined.chunks if isinstance(joined, pa.ChunkedArray) else [joined]
    chunks: list[pa.Array] = values.chunks
    return chunks


_MOST_JOINED = 1 << 28

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
        self._passes = ColumnPasses()

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
            columns: Restricts the codec to these columns, so that others need not be fixed yet.
            pools: Rare labels that share one code, with their shares, of categories that ask for that.
            unreadable: Whether columns may have a code for what cannot be read; by default as the schema says.
            judging: Gives every column a code for missing and, where it has no other, one for unreadable beside it.

        Raises:
            UsageError: if an open category or a privately binned column is not fixed.
        """
        found = {name: tuple(texts) for name, texts in (labels or {}).items()}
        given = {name: tuple(_number(edge) for edge in places) for name, places in (edges or {}).items()}
        chosen = None if columns is None else set(columns)
        pooled = {
            name: checked_pool(name, _labels_of(schema.column(name)), pool) for name, pool in (pools or {}).items()
        }
        for name in sorted((chosen or set()) | set(found) | set(given)):
            _check_fixed(schema.column(name), is_labelled=name in found, is_cut=name in given)
        # A codec read from a file says it itself: the first format had no such codes, whatever its schema says by now.
        keeps = schema.unreadable == "keep" if unreadable is None else unreadable
        odd = _Odd.JUDGED if judging else _Odd.CODED if keeps else _Odd.LEFT_OUT
        fixed = _FixedCodes(found, given, pooled, odd)
        codecs = {
            column.name: _codec_of(column, fixed)
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
    def structural_zeros(self) -> tuple[StructuralZeros, ...]:
        """Cells that the schema's rules and hierarchies exclude, and pairs of size and kind that no value has."""
        splits = {name: codec for name, codec in self._columns.items() if isinstance(codec, SplitCodec)}
        return structural_zero_cells(self.schema, self._codecs, splits, self.domain)

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """Names, types and meanings of `decode`'s table, in schema order: decided by the schema, never by rows."""
        types = {name: codec.arrow_type for name, codec in self._columns.items()}
        types |= {
            column.name: derived_type(column, self.schema) for column in self._shown() if isinstance(column, Derived)
        }
        return pa.schema([pa.field(one.name, types[one.name], metadata=field_metadata(one)) for one in self._shown()])

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

    def without_values(self) -> "TableCodec":
        """The same codec, which holds nothing of any value that this one has coded."""
        # What it keeps of values (texts and their codes) is private, and a codec goes into the release.
        found = copy.copy(self)
        found._passes = ColumnPasses()
        return found

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
        codes = touched(len(values), codec.layout.dtype)
        start = 0
        for chunk in _chunks(values):
            part = codes[start : start + len(chunk)]
            start += len(chunk)
            # Which way is taken depends on the length alone, and both give the same codes (`codec/kernels.py`).
            if len(chunk) < LEAST_ROWS or not self._passes.code(name, codec, chunk, part):
                _encode_generally(codec, chunk, part)
        return codes

    def decode(
        self, codes: Mapping[str, npt.NDArray[np.integer]], rng: np.random.Generator, *, entries: bool = False
    ) -> pa.Table:
        """The table these codes stand for, in schema order, derived columns recomputed.

        With `entries` texts come as entries of a dictionary where that is quicker, which changes no value.
        """
        arrays: dict[str, pa.Array] = {}
        entries = entries and not any(isinstance(column, Derived) for column in self._shown())
        for name, codec in self._columns.items():
            parts = [np.asarray(codes[part]) for part in code_names(self.schema.column(name))]
            if isinstance(codec, SplitCodec):
                arrays[name] = codec.decode(parts[0], parts[1], rng)
            elif entries and isinstance(codec, LabelCodec):
                arrays[name] = codec.entries(parts[0])
            else:
                arrays[name] = codec.decode(parts[0], rng)
        for column in self._shown():
            if isinstance(column, Derived):
                arrays[column.name] = derived_column(column, self.schema, arrays)
        fields = [field.with_type(arrays[field.name].type) if entries else field for field in self.arrow_schema]
        return pa.table([arrays[field.name] for field in fields], schema=pa.schema(fields, self.arrow_schema.metadata))

    def describe(self, name: str, code: int) -> str:
        """The code in words: a label, "[20, 30)", "missing", "unreadable"."""
        codec = self._codec(name)
        if not 0 <= code < codec.layout.size:
            raise UsageError(f"column {name!r}", f"has codes below {codec.layout.size}, got {code}.")
        return codec.describe(code)

    def spans(self, name: str) -> tuple[Floats, Floats]:
        """Smallest and largest value of each code of a column of numbers; NaN for codes that are no number."""
        codec = self._codec(name)
        if not isinstance(codec, NumberCodec):
            raise UsageError(f"column {name!r}", "holds no numbers.")
        return codec.spans()

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
            raise UsageError(f"{name}={text}", "matches no codes of this column exactly.", advice)
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
        """Fixed labels, edges and rare labels: with the schema, all that is needed to build this codec again.

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
    LEFT_OUT = "it has none, so its row is left out"
    JUDGED = "it has a code of its own, in every column without other, beside one for missing"


@dataclass(frozen=True, slots=True)
class _FixedCodes:
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


def _codec_of(column: Column, fixed: _FixedCodes) -> ColumnCodec | SplitCodec:
    match column:
        case Category():
            layout = fixed.layout(column, len(column.labels), other=column.other is not None)
            kind, absent, fold = _stored(column), missing_texts(column), column.ignore_case
            full = LabelCodec(column.labels, layout, kind, other=column.other, absent=absent, ignore_case=fold)
            pool = fixed.pools.get(column.name)
            return full if pool is None else PoolCodec(full, pool)
        case OpenCategory():
            labels = fixed.labels.get(column.name)
            if labels is None:
                rule = "is an open category whose labels are not discovered yet."
                raise UsageError(f"column {column.name!r}", rule, "Pass its labels.")
            # The empty text is missing, and the name of other is a code already.
            kept = [label for label in dict.fromkeys(labels) if label not in ("", column.other)]
            layout = fixed.layout(column, len(kept), other=True)
            return LabelCodec(kept, layout, _stored(column), other=column.other, absent=missing_texts(column))
        case Boolean():
            return boolean_codec(fixed.layout(column, 2), _stored(column), missing_texts(column))
        case Derived():
            raise UsageError(f"column {column.name!r}", "is derived, so it has no codes.")
        case _:
            places = fixed_edges(column, fixed.edges.get(column.name))
            odd = fixed.layout(column, len(places) - 1)
            special = special_of(column)
            codec = NumberCodec(axis_of(column), places, special, missing=odd.missing, unreadable=odd.unreadable)
            return SplitCodec(codec, column.split) if isinstance(column, Integer) and column.split else codec


def _labels_of(column: Column) -> tuple[str, ...]:
    """Labels that may be pooled: none where the schema does not ask for it."""
    return column.labels if isinstance(column, Category) and column.rare == "private" else ()


def _check_fixed(column: Column, *, is_labelled: bool, is_cut: bool) -> None:
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


class MergedCodec(TableCodec):
    """`full` with code c of a column replaced by `places[column][c]`, for the columns that `places` names.

    Raises:
        UsageError: if places are not one merged code for each code, 0, 1, 2, … without a gap, or if a rule names the
            column: which combinations it excludes cannot be said of merged codes.
    """

    def __init__(self, full: TableCodec, places: Mapping[str, npt.NDArray[np.integer]]) -> None:
        # All of the other's state, cached answers included; those that speak of codes are replaced below.
        self.__dict__.update(full.__dict__)
        self._full = full
        tied = {name for rule in full.structural_zeros for name in rule.clique}
        for name, merged in places.items():
            _check(full.domain, name, merged)
            # A merged code may hold possible and impossible ones, and then no rule can be said of it.
            if name in tied:
                raise UsageError(f"column {name!r}", "is named by a rule, so its codes cannot be merged.")
        sizes = {name: int(merged.max()) + 1 for name, merged in places.items()}
        self.domain = Domain.of({**full.domain.sizes, **sizes})
        self.readable = Domain.of({**full.readable.sizes, **sizes})
        self._places = {name: _with_none(full, name, merged, sizes[name]) for name, merged in places.items()}
        self.structural_zeros = full.structural_zeros
        self.taxonomies = {name: groups for name, groups in full.taxonomies.items() if name not in places}

    @property
    def merged(self) -> frozenset[str]:
        """The columns whose codes are merged."""
        return frozenset(self._places) | (self._full.merged if isinstance(self._full, MergedCodec) else frozenset())

    def dtype(self, name: str) -> np.dtype[np.unsignedinteger]:
        """The smallest unsigned type that holds the column's codes."""
        return self._places[name].dtype if name in self._places else self._full.dtype(name)

    def encode(self, name: str, values: pa.Array | pa.ChunkedArray) -> CodeArray:
        """The merged code of each value; each depends on its own value alone."""
        codes = self._full.encode(name, values)
        return np.take(self._places[name], codes) if name in self._places else codes

    def decode(
        self, codes: Mapping[str, npt.NDArray[np.integer]], rng: np.random.Generator, *, entries: bool = False
    ) -> pa.Table:
        """Refused: a merged code stands for several values, and only the model that was fitted knows which."""
        raise UsageError("merged codes", "cannot be decoded.", "Decode the model's codes with the codec of all codes.")


def _with_none(full: TableCodec, name: str, merged: npt.NDArray[np.integer], size: int) -> CodeArray:
    """The merged codes, and one past the last for the number that stands for no code, where there is one."""
    if name not in full.leaving_out:
        return merged.astype(code_type(size))
    # No code stays no code, so that its row is still left out.
    return np.append(merged, size).astype(code_type(size + 1))


def _check(domain: Domain, name: str, merged: npt.NDArray[np.integer]) -> None:
    if name not in domain.sizes:
        raise UsageError(f"column {name!r}", "is not a column of the codes that are to be merged.")
    if merged.shape != (domain.sizes[name],) or not np.array_equal(np.unique(merged), np.arange(merged.max() + 1)):
        rule = f"needs a merged code, 0, 1, 2, … without a gap, for each of its {domain.sizes[name]:,} codes."
        raise UsageError(f"column {name!r}", rule)
