"""The contract of count sources: equal to counting by hand, whatever the names, labels, units and values."""

import itertools
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import stats

from understudy.audit.neighbours import designed_pairs
from understudy.codec.table_codec import TableCodec
from understudy.counts.open import open_table as opened
from understudy.counts.source import CountSource, PrivateTable
from understudy.errors import InputError, SchemaError
from understudy.marginals.clique import Clique
from understudy.schema import Category, Integer, OpenCategory, Schema, Unit
from understudy.schema.column import MOST_LABEL_BYTES
from understudy.testing import tables

__all__ = ["OpenTable", "check_source"]

OpenTable = Callable[[pa.Table, Schema], PrivateTable]
"""Puts an Arrow table where the source under test can read it, and opens it there. Its columns are text, or bytes where
the check is about text that is not UTF-8."""

NOT_UTF8 = (b"\xc3\x28", b"\xed\xa0\x80", b"\xff\xfe", b"Z\xfcrich")
LONG_BYTES = 100_000
LEVEL = 1e-6


def check_source(open_table: OpenTable) -> None:
    """Raises AssertionError, with what failed, where the source differs from counting by hand."""
    _check_door(open_table)
    plain = (tables.small(), tables.every_kind(), tables.hostile_names(), tables.split_amounts(), tables.closed_kinds())
    # What cannot be read has a code of its own, or its row is left out: in every source by the codec's rule.
    for schema in (*plain, *(replace(schema, unreadable="drop") for schema in (plain[0], plain[3], plain[4]))):
        for rows in (0, 1, 57):
            _check_counts(open_table, schema, tables.some_rows(schema, rows, seed=rows))
        _check_hostile_values(open_table, schema)
    _check_labels(open_table)
    _check_bytes(open_table)
    _check_long_values(open_table)
    _check_header_that_is_data(open_table)
    for bound in (1, 3):
        _check_unit(open_table, tables.split_amounts(unit=Unit(column="person", rows=bound)))
        for rule in ("keep", "drop"):
            _check_unit(open_table, replace(tables.several_rows(bound), unreadable=rule))
    _check_spread(open_table)


def _check_door(open_table: OpenTable) -> None:
    """The bound of k rows per unit is the door's work: a source that could do without it is refused by type."""
    table = open_table(tables.some_rows(tables.several_rows(1), 3, seed=1), tables.several_rows(1))
    told = f"unit bound: {type(table).__name__} is no PrivateTable, so its rows would be counted without the bound"
    assert isinstance(table, PrivateTable), told


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
    """The codes of all rows in which every value has one."""
    sizes = codec.domain.sizes
    codes = {name: codec.encode(name, table.column(codec.origin(name))).tolist() for name in sizes}
    rows = [row for row in zip(*codes.values(), strict=True) if all(map(operator.lt, row, sizes.values()))]
    return {name: [row[place] for row in rows] for place, name in enumerate(sizes)}


def _by_hand(codec: TableCodec, codes: dict[str, list[int]], clique: Clique) -> list[int]:
    rows = len(next(iter(codes.values())))
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
        exact, shown = answers[clique], " × ".join(clique) or "the total"
        assert exact.dtype == np.int64, f"counts of {shown} are {exact.dtype}, not 64-bit integers"
        by_hand = _by_hand(codec, codes, clique)
        assert exact.tolist() == by_hand, f"counts of {shown} differ from counting {table.num_rows} rows by hand"
    _check_everything(source, codec, codes)
    records = source.records()
    rows = Counter(zip(*(codes[name] for name in names), strict=True))
    assert Counter(map(tuple, records.codes.tolist())) == rows, "the records are not the rows"
    assert records.starts.tolist() == list(range(rows.total() + 1)), "not every row is a unit of its own"


def _check_everything(source: CountSource, codec: TableCodec, codes: dict[str, list[int]]) -> None:
    everything = codec.domain.everything()
    shape = codec.domain.shape(everything)
    cells = Counter(
        int(np.ravel_multi_index(cell, shape)) for cell in zip(*(codes[name] for name in everything), strict=True)
    )
    occupied = source.occupied(everything)
    assert occupied.indices.tolist() == sorted(cells), "occupied cells are not those of the rows"
    by_hand = [cells[index] for index in sorted(cells)]
    assert occupied.counts.tolist() == by_hand, "counts of occupied cells differ from counting by hand"
    blocks = _Blocks(everything, shape)
    expected = np.bincount(
        blocks.assign({name: np.array(values, dtype=np.int64) for name, values in codes.items()}),
        minlength=blocks.cells,
    )
    found = source.partition_counts([blocks])[0]
    assert found.tolist() == expected.tolist(), "counts of a partition differ from counting by hand"


def _check_hostile_values(open_table: OpenTable, schema: Schema) -> None:
    """All hostile values of the designed pairs in one table: counted by the codec's rule, without a sound."""
    pairs = [pair for pair in designed_pairs(schema) if pair.name.startswith("hostile")]
    last_rows = pa.concat_tables([pair.neighbour.slice(pair.neighbour.num_rows - 1) for pair in pairs])
    _check_counts(open_table, schema, last_rows)


def _labels_of(table: PrivateTable, column: str) -> dict[str, int]:
    found = table.label_counts(column)
    return dict(zip(found.labels, found.counts.tolist(), strict=True))


def _check_labels(open_table: OpenTable) -> None:
    schema = tables.open_labels()
    labels = ["nurse", "cook", "nurse", None, "ünï🙂", "nurse", "x'y\"z", "cook"]
    table = pa.table({"sex": pa.array(["F"] * len(labels)), "job": pa.array(labels, pa.string())})
    found = _labels_of(open_table(table, schema), "job")
    expected = Counter(label for label in labels if label is not None)
    assert found == dict(expected), "labels of an open column differ from counting by hand"
    spelled = pa.array(["nurse", " nurse", "nurse\t", " ", "7", "7.0", "07"], pa.string())
    odd = pa.table({"sex": pa.array(["F"] * len(spelled)), "job": spelled})
    read = {"nurse": 3, "7": 2, "07": 1}
    assert _labels_of(open_table(odd, schema), "job") == read, "labels are not counted as the codec compares them"
    for bound in (1, 2):
        _check_bounded_labels(open_table, Schema(schema.columns, Unit("person", bound)))


def _check_bounded_labels(open_table: OpenTable, schema: Schema) -> None:
    """One person with very many labels, one with few, one row without a person, one without a label."""
    people = [*["Ada"] * 40, "Bo", "Bo", None, "Cy", "Cy"]
    labels = [*(f"job {number}" for number in range(40)), "nurse", "cook", "nobody's", None, "nurse"]
    table = pa.table({"sex": ["F"] * len(people), "job": labels, "person": people})
    found = _labels_of(open_table(table, schema), "job")
    bound = schema.unit.rows
    of_one = sum(count for label, count in found.items() if label.startswith("job "))
    assert of_one == bound, f"unit bound: one person is counted with {of_one} labels where {bound} may count"
    assert "nobody's" not in found, "a label was counted for a row that belongs to no unit"
    assert found == _labels_of(opened(table, schema), "job"), "labels kept for a unit differ from those of a frame"


def _check_bytes(open_table: OpenTable) -> None:
    """Text that is not UTF-8 is unreadable, as any value outside the schema is; an id is told apart by its bytes."""
    columns = (Category(name="sex", labels=("F", "M"), other="?"), Integer(name="age", lower=18, upper=22))
    schema = Schema(columns, Unit())
    values = [b"F", *NOT_UTF8, b"M", "é".encode()]
    table = pa.table({"sex": pa.array(values, pa.binary()), "age": pa.array([b"20", *NOT_UTF8, b"19", b"x"])})
    readable = pa.table({"sex": ["F", *["outside"] * 4, "M", "é"], "age": ["20", *["outside"] * 4, "19", "x"]})
    for name in ("sex", "age"):
        clique = TableCodec.of(schema).domain.clique([name])
        found, expected = (
            _counts(make, schema, clique) for make in (open_table(table, schema), opened(readable, schema))
        )
        assert found == expected, f"{name}: values that are not UTF-8 are not coded as unreadable"
    free = Schema((*columns[:1], OpenCategory(name="job")), Unit("person", 1))
    jobs = pa.array([b"nurse", *NOT_UTF8, b"nurse", "é".encode()], pa.binary())
    people = pa.array([*NOT_UTF8, b"a", b"b", b"c"], pa.binary())
    bounded = open_table(pa.table({"sex": table.column("sex"), "job": jobs, "person": people}), free)
    assert _labels_of(bounded, "job") == {"nurse": 2, "é": 1}, "text that is not UTF-8 became a label, or spoiled one"
    codec = TableCodec.of(free, {"job": ["nurse"]})
    total = int(bounded.bind(codec).counts([Clique()])[Clique()][0])
    assert total == len(people), f"{len(people)} people are counted as {total}: ids that are not UTF-8 were confused"


def _counts(table: PrivateTable, schema: Schema, clique: Clique) -> list[int]:
    found: list[int] = table.bind(TableCodec.of(schema)).counts([clique])[clique].tolist()
    return found


def _check_long_values(open_table: OpenTable) -> None:
    """A value of any length is counted like others: too long for a label, and told apart as an id."""
    longest = "é" * (MOST_LABEL_BYTES // 2)
    people = ["x" * LONG_BYTES + end for end in "abb"] + ["c", "d"]
    jobs = ["nurse", longest, longest, longest + "x", "x" * LONG_BYTES]
    table = pa.table({"sex": ["F", "M", "M", "x" * LONG_BYTES, "F"], "job": jobs, "person": people})
    schema = Schema((Category(name="sex", labels=("F", "M"), other="?"), OpenCategory(name="job")), Unit("person", 1))
    opened_table = open_table(table, schema)
    limit = f"{MOST_LABEL_BYTES:,} bytes"
    assert _labels_of(opened_table, "job") == {"nurse": 1, longest: 1}, f"labels are not those of at most {limit}"
    codec = TableCodec.of(schema, {"job": ["nurse"]})
    clique = codec.domain.clique(["sex"])
    found = opened_table.bind(codec).counts([clique])[clique].tolist()
    assert found == [2, 1, 1, 0], "people with long ids or values are not counted one row each"


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
    """At most k rows of each unit count, nobody without a unit does, and leaving one out changes at most k rows.

    Every fifth row holds a value that cannot be read: it counts, or it is left out before the bound is applied.
    """
    column, bound = schema.unit.column, schema.unit.rows
    assert column is not None
    first = schema.modelled[0].name
    table = tables.some_rows(schema, 60, seed=bound)
    values = [value if row % 5 else "outside" for row, value in enumerate(table.column(first).to_pylist())]
    table = table.set_column(0, first, pa.array(values, pa.string()))
    codec = TableCodec.of(schema)
    everything = codec.domain.everything()
    coded = codec.encode(codec.domain.columns[0], table.column(first)) < codec.domain.shape(everything)[0]
    ids = table.column(column).to_pylist()
    held = Counter(name for name, counts in zip(ids, coded.tolist(), strict=True) if name is not None and counts)
    may = sum(min(bound, rows) for rows in held.values())
    full = open_table(table, schema).bind(codec).counts([everything])[everything]
    assert full.sum() == may, f"unit bound: {full.sum()} rows count where {may} may (at most {bound} of each unit)"
    _check_unit_records(open_table(table, schema).bind(codec), full, [min(bound, rows) for rows in held.values()])
    reversed_rows = table.take(pa.array(range(table.num_rows - 1, -1, -1)))
    again = open_table(reversed_rows, schema).bind(codec).counts([everything])[everything]
    assert again.tolist() == full.tolist(), "the order of rows decides which rows of a unit count"
    frame = opened(table, schema).bind(codec).counts([everything])[everything]
    assert frame.tolist() == full.tolist(), "other rows of a unit count than in a frame"
    for unit in sorted(held)[:6]:
        keep = [name != unit for name in table.column(column).to_pylist()]
        without = open_table(table.filter(pa.array(keep)), schema).bind(codec).counts([everything])[everything]
        moved, most = int(np.abs(full - without).sum()), min(bound, held[unit])
        assert moved == most, f"unit bound: leaving one unit out changes {moved} rows, not {most}"


def _check_unit_records(source: CountSource, full: npt.NDArray[np.int64], sizes: Sequence[int]) -> None:
    records = source.records()
    shape = source.domain.shape(source.domain.everything())
    counted = np.ravel_multi_index(tuple(records.codes.astype(np.int64).T), shape)
    assert np.bincount(counted, minlength=full.size).tolist() == full.tolist(), (
        "the records are not the rows that count"
    )
    held = sorted(np.diff(records.starts).tolist())
    assert held == sorted(sizes), "unit bound: the records of units are not as many as may count"


def _check_spread(open_table: OpenTable) -> None:
    """People who all hold the same four rows, of which one counts: each of the four is kept about as often."""
    people, jobs = 400, ("nurse", "cook", "clerk", "smith")
    schema = Schema((Category(name="job", labels=jobs, missing=False),), Unit("person", 1))
    table = pa.table({"job": list(jobs) * people, "person": [f"p{row // 4}" for row in range(4 * people)]})
    codec = TableCodec.of(schema)
    clique = codec.domain.clique(["job"])
    kept = open_table(table, schema).bind(codec).counts([clique])[clique][: len(jobs)]
    evenly = float(stats.chisquare(kept).pvalue) if kept.sum() == people else 0.0
    assert evenly > LEVEL, "the same rows are kept in every unit that holds them, so that counts lean to their codes"
