"""The contracts of metrics, models and count sources, and how a broken promise is told.

A contract raises AssertionError at the first promise that is not kept. The message says for what (which source, metric
or model, in which case), what is wrong, and what to do about it. Another error that comes out of the code under test
is passed on with a note that says what was being checked.

Metrics: best for equal tables, worse for shuffled ones, blind to order, and never without a reason. A table whose
labels the schema cannot read is judged too, and no metric may call such a column constant. A metric that passes can be
shown in a report without further care: every number lies in its range, and every gap says why it is there.

Models: equal to enumeration, exact under conditions, the same after a trip through files.

Count sources: equal to counting by hand, whatever the names, labels, units and values.
"""

import contextlib
import itertools
import operator
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import stats

from understudy.arrays import Floats, Integers, Ints
from understudy.codec.table import TableCodec
from understudy.counts.opening import open_table as opened
from understudy.counts.source import CountSource, PrivateTable
from understudy.domain import Clique
from understudy.errors import InputError, SchemaError, UnderstudyError
from understudy.evaluate import Evaluation, evaluate
from understudy.evaluate.metric import Metric, Result
from understudy.models.model import Codes, Model
from understudy.schema import Category, Integer, OpenCategory, Schema, Unit
from understudy.schema.columns import MOST_LABEL_BYTES
from understudy.testing import cases as tables
from understudy.testing.replay import designed_pairs

CLOSE = 1e-6


def require(kept: object, broken: str, fix: str) -> None:
    """Raises AssertionError with what is broken and what to do, unless the promise is kept.

    Not an assert statement: those are gone under `python -O`, and a contract that passes without looking is worth less
    than none.
    """
    if not kept:
        raise AssertionError(f"{broken} {fix}")


@contextlib.contextmanager
def checking(what: str) -> Iterator[None]:
    """Names what is checked: at the head of a broken promise, and in a note on any other error."""
    try:
        yield
    except AssertionError as error:
        error.args = (f"{what}: {error}" if error.args else f"{what}: an assertion without a message failed.",)
        raise
    except Exception as error:
        error.add_note(f"While checking {what}.")
        raise


def check_metric(
    metric: Metric, table: pa.Table, schema: Schema, *, can_be_worse: bool = True, close: float = CLOSE
) -> None:
    """Raises AssertionError with the first promise that the metric breaks.

    Args:
        metric: what is checked.
        table: a table whose columns depend on each other, and whose rows obey the rules of the schema.
        schema: what it may contain.
        can_be_worse: False for metrics that describe and do not judge.
        close: how far from the best value equal tables may score; for metrics that fit to random parts of them.
    """
    with checking(f"metric {metric.name}"):
        same = _run(metric, table, [table], schema)
        _check_best(metric, same, close)
        apart = _run(metric, table, [_shuffled_columns(table)], schema)
        if can_be_worse:
            _check_worse(same[metric.name], apart[metric.name])
        _check_order(metric, table, schema, apart)
        for case, broken in (
            ("one row", table.slice(0, 1)),
            ("the same row throughout", _constant(table)),
            ("every value missing that may be", _missing(table, schema)),
        ):
            for side, real, synthetic in (("synthetic", table, broken), ("real", broken, table)):
                with checking(f"{side} table with {case}"):
                    _check_reasons(metric, _run(metric, real, [synthetic], schema))
        _check_unread(metric, table, schema)
        for score in _run(metric, table, [table.slice(0, 0)], schema)[metric.name].scores:
            require(
                score.value is None and "no rows" in score.why_not,
                f"{score.name} has a value for a synthetic table without rows.",
                "Leave empty tables to `evaluate`, which never hands them over.",
            )


def _run(metric: Metric, real: pa.Table, copies: Sequence[pa.Table], schema: Schema) -> Evaluation:
    return evaluate(real, list(copies), schema, metrics=[metric], seed=5, pictures=False)


def _check_best(metric: Metric, found: Evaluation, close: float) -> None:
    result = found[metric.name]
    reported, stated = [score.name for score in result.scores], [scale.name for scale in metric.scales]
    require(reported == stated, f"reports {reported}, its scales are {stated}.", "Report every scale, in that order.")
    fix = "Compare equal tables without a gap, or say in `lacks` what the table needs."
    require(result.value is not None, f"the headline has no value on equal tables: {result.why_not}.", fix)
    fix = "State it as a question that the headline answers, with a question mark."
    require(result.question.endswith("?"), f"`question` is {result.question!r}.", fix)
    for score in result.scores:
        judges = score.direction != "none" and not (score.lowest is None and score.highest is None)
        says = "has" if score.best is not None else "has no"
        fix = "Give a Scale that judges and has a range its `best`, and no other one."
        require((score.best is not None) == judges, f"{score.name} {says} best value.", fix)
        if score.value is not None and score.best is not None:
            off = abs(score.value - score.best)
            fix = "Let equal tables reach `best`, or pass `close=` if the metric fits to random parts of them."
            allowed = close * max(1.0, abs(score.best))
            require(off <= allowed, f"{score.name} is {score.value} on equal tables, the best is {score.best}.", fix)


def _check_worse(same: Result, apart: Result) -> None:
    """At least one score must see that no association is left; none of the others may have got lost."""
    gains = []
    for before, after in zip(same.scores, apart.scores, strict=True):
        if before.direction != "none" and before.value is not None:
            if after.value is None:
                raise AssertionError(
                    f"{after.name} has no value on shuffled columns: {after.why_not}. Compare any two readable tables."
                )
            gap = after.value - before.value
            gains.append(gap if before.direction == "lower" else -gap)
    fix = "Check its `direction`, or pass `can_be_worse=False` if it describes and does not judge."
    require(gains, "no score judges.", fix)
    require(max(gains, default=0.0) > CLOSE, "shuffled columns score as well as equal tables.", fix)
    require(gains[0] >= -CLOSE, "the headline is better on shuffled columns than on equal tables.", fix)


def _check_order(metric: Metric, table: pa.Table, schema: Schema, apart: Evaluation) -> None:
    rng = np.random.default_rng(2)
    moved = table.take(pa.array(rng.permutation(table.num_rows)))
    turned = moved.select(list(reversed(moved.column_names)))
    again = _run(metric, turned, [_shuffled_columns(table).take(pa.array(rng.permutation(table.num_rows)))], schema)
    fix = "Draw with `context.rng(step)` only, and use nothing that depends on where a row or column stands."
    require(again == apart, "the scores depend on the order of rows or columns, or on chance.", fix)


def _check_reasons(metric: Metric, found: Evaluation) -> None:
    for score in found[metric.name].scores:
        fix = "Return Unavailable(reason) in its place."
        require(score.value is not None or score.why_not, f"{score.name} has neither a value nor a reason.", fix)
        told = score.yardstick is not None or score.why_no_yardstick
        require(told, f"{score.name} has neither a yardstick nor a reason.", fix)
    found.to_json()


def _check_unread(metric: Metric, table: pa.Table, schema: Schema) -> None:
    """What the schema cannot read is told, and never called constant: there may be many values behind it."""
    closed = [one.name for one in schema.modelled if isinstance(one, Category) and one.other is None]
    for name in closed[:1]:
        respelled = pc.binary_join_element_wise(table[name].cast(pa.string()), "?", "")
        foreign = table.set_column(table.column_names.index(name), name, respelled)
        found = _run(metric, foreign, [table], schema)
        _check_reasons(metric, found)
        told = [one.column for one in found.unread if one.table == "real"]
        require(told == [name], f"columns told as unread are {told}, not {name}.", "Leave `Evaluation.unread` alone.")
        for note in found[metric.name].notes:
            constant = "single value" in note and "can read no value" not in note
            fix = "Look at `wholly_unread` before you call a column constant."
            require(not constant, f"calls column {name} constant, of which the schema can read no value.", fix)


def _shuffled_columns(table: pa.Table) -> pa.Table:
    """Each column drawn from itself with replacement: no association is left, and no column is exactly the same."""
    rng = np.random.default_rng(1)
    names = sorted(table.column_names)
    columns = [table[name].take(pa.array(rng.integers(0, table.num_rows, table.num_rows))) for name in names]
    return pa.table(columns, names=names)


def _constant(table: pa.Table) -> pa.Table:
    return table.take(pa.array(np.zeros(table.num_rows, np.int64)))


def _missing(table: pa.Table, schema: Schema) -> pa.Table:
    """Every value missing where the schema allows it."""
    columns = [
        pa.nulls(table.num_rows, table[name].type) if schema.column(name).missing else table[name]
        for name in table.column_names
    ]
    return pa.table(columns, names=table.column_names)


MOST_Z = 6.0
DRAWS = 20_000


def check_model(model: Model, joint: Floats) -> None:
    """Raises AssertionError where the model differs from `joint`, its full table of probabilities (flat row-major)."""
    domain = model.domain
    with checking(f"model {model.kind}"):
        cells = domain.cells(domain.everything())
        fix = "Pass one probability per cell of the model's domain, flat and row-major."
        require(joint.size == cells, f"`joint` has {joint.size:,} cells, the domain {cells:,}.", fix)
        table = joint.reshape(domain.shape(domain.everything()))
        require(model.total >= 0, f"total is {model.total}.", "Cut noisy totals at 0.")
        _check_marginals(model, table)
        check_draws(model, table, seed=1)
        _check_conditions(model, table)
        _check_files(model)


def _check_marginals(model: Model, table: Floats) -> None:
    names = model.domain.columns
    for width in range(min(3, len(names)) + 1):
        for columns in itertools.combinations(names, width):
            clique = model.domain.clique(columns)
            others = tuple(axis for axis, name in enumerate(names) if name not in clique)
            expected = table.sum(axis=others).reshape(-1)
            _check_equal(model, clique, expected)


def _check_equal(model: Model, clique: Clique, expected: Floats) -> None:
    found, shown = model.marginal(clique), " × ".join(clique) or "no column (the whole)"
    fix = "Return probabilities of the clique's cells, flat and row-major, columns in the order of the domain."
    require(found.shape == expected.shape, f"marginal of {shown} has shape {found.shape}, not {expected.shape}.", fix)
    furthest = float(np.abs(found - expected).max())
    close = np.allclose(found, expected, rtol=1e-9, atol=1e-12)
    require(close, f"marginal of {shown} is up to {furthest:.3g} away from enumeration.", fix)


def check_draws(model: Model, table: Floats, *, seed: int) -> None:
    """Rows follow the table (chi-square, fixed level), reproducibly, and never fall where it is zero."""
    codes = model.draw(DRAWS, np.random.default_rng(seed))
    observed = _count(codes, model, table)
    expected = table.reshape(-1) * DRAWS
    require(observed.sum() == DRAWS, f"{observed.sum():,} rows were drawn, not {DRAWS:,}.", "Draw `rows` records.")
    impossible = int(observed[expected == 0].sum())
    fix = "Give cells that rules exclude no mass, and draw from the same cells."
    require(not impossible, f"{impossible:,} of {DRAWS:,} records fall where none can be.", fix)
    large = expected >= 5
    cells_observed = np.append(observed[large], observed[~large].sum())
    cells_expected = np.append(expected[large], expected[~large].sum())
    used = cells_expected > 0
    statistic = float((((cells_observed - cells_expected) ** 2)[used] / cells_expected[used]).sum())
    freedom = max(1, int(used.sum()) - 1)
    apart = (statistic - freedom) / np.sqrt(2 * freedom)
    fix = "Draw whole records by the joint distribution that `marginal` gives, not column by column."
    require(apart < MOST_Z, f"rows do not follow the joint table (χ² = {statistic:,.0f} on {freedom:,} degrees).", fix)
    again = model.draw(DRAWS, np.random.default_rng(seed))
    same = all(np.array_equal(codes[name], again[name]) for name in model.domain.columns)
    require(same, "the same generator gives other rows the second time.", "Draw with the given `rng` only.")


def _count(codes: Codes, model: Model, table: Floats) -> Ints:
    columns = tuple(np.asarray(codes[name]).astype(np.int64) for name in model.domain.columns)
    return np.bincount(np.ravel_multi_index(columns, table.shape), minlength=table.size)


def _check_conditions(model: Model, table: Floats) -> None:
    names = model.domain.columns
    for axis, name in enumerate(names):
        for wanted in (np.array([0]), np.arange(table.shape[axis])[::2]):
            mask = np.zeros(table.shape[axis], dtype=bool)
            mask[wanted] = True
            shape = [1] * table.ndim
            shape[axis] = -1
            restricted = np.where(mask.reshape(shape), table, 0.0)
            with checking(f"given that {name} has code {' or '.join(map(str, wanted.tolist()))}"):
                if restricted.sum() <= 0:
                    _expect_refusal(model, name, wanted)
                    continue
                conditioned = model.condition({name: wanted})
                restricted = restricted / restricted.sum()
                _check_equal(conditioned, model.domain.everything(), restricted.reshape(-1))
                check_draws(conditioned, restricted, seed=2)


def _expect_refusal(model: Model, name: str, wanted: Integers) -> None:
    try:
        model.condition({name: wanted})
    except UnderstudyError:
        return
    raise AssertionError("a condition of probability 0 is accepted. Raise UsageError from `condition`.")


def _check_files(model: Model) -> None:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "model"
        target.mkdir()
        model.save(target)
        loaded = type(model).load(target)
        fix = "Let `load` restore what `save` wrote."
        require(loaded.total == model.total, f"total is {loaded.total} after loading, {model.total} before.", fix)
        require(dict(loaded.domain.sizes) == dict(model.domain.sizes), "the domain is another one after loading.", fix)
        first = model.draw(500, np.random.default_rng(3))
        second = loaded.draw(500, np.random.default_rng(3))
        same = all(np.array_equal(first[name], second[name]) for name in model.domain.columns)
        require(same, "the loaded model draws other rows than the saved one.", fix)


OpenTable = Callable[[pa.Table, Schema], PrivateTable]
"""Puts an Arrow table where the source under test can read it, and opens it there. Its columns are text, or bytes where
the check is about text that is not UTF-8."""

NOT_UTF8 = (b"\xc3\x28", b"\xed\xa0\x80", b"\xff\xfe", b"Z\xfcrich")
LONG_BYTES = 100_000
LEVEL = 1e-6
_EVERY_ROW = "Let `batches` hand over every row exactly once, with the values as they are stored."
_OWN_UNIT = "Hand over the unit's column as it is stored, and leave the bound of rows per unit to PrivateTable."
_OWN_BYTES = "Hand over text as the bytes that are stored (`pa.binary()` where they are not UTF-8), of any length."


def check_source(open_table: OpenTable) -> None:
    """Raises AssertionError where the source differs from counting by hand.

    Args:
        open_table: puts an Arrow table where the source can read it, and opens it there under the schema.
    """
    with checking(f"source {_name_of(open_table)}"):
        plain = {
            "three columns": tables.small(),
            "every kind of column": tables.every_kind(),
            "hostile names": tables.hostile_names(),
            "a column modelled as two": tables.split_amounts(),
            "columns without missing or other": tables.closed_kinds(),
        }
        for case, schema in plain.items():
            with checking(case):
                _check_schema(open_table, schema)
        # What cannot be read has a code of its own, or its row is left out: in every source by the codec's rule.
        for case in ("three columns", "a column modelled as two", "columns without missing or other"):
            with checking(f"{case}, unreadable: drop"):
                _check_schema(open_table, replace(plain[case], unreadable="drop"))
        _check_labels(open_table)
        _check_bytes(open_table)
        _check_long_values(open_table)
        _check_header_that_is_data(open_table)
        for bound in (1, 3):
            _check_unit(open_table, tables.split_amounts(unit=Unit(column="person", rows=bound)))
            for rule in ("keep", "drop"):
                _check_unit(open_table, replace(tables.several_rows(bound), unreadable=rule))
        _check_spread(open_table)


def _name_of(open_table: OpenTable) -> str:
    """The name of the source. The bound of rows per unit is PrivateTable's work, so nothing else is accepted."""
    schema = tables.several_rows(1)
    name = type(table := open_table(tables.some_rows(schema, 3, seed=1), schema)).__name__
    broken = f"unit bound: {name} is not a PrivateTable, so its rows would be counted without the bound."
    require(isinstance(table, PrivateTable), broken, "Make it a subclass of understudy.counts.source.PrivateTable.")
    return name


def _check_schema(open_table: OpenTable, schema: Schema) -> None:
    for rows in (0, 1, 57):
        _check_counts(open_table, schema, tables.some_rows(schema, rows, seed=rows))
    with checking("hostile values"):
        _check_hostile_values(open_table, schema)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """A partition that no clique expresses: the parity of the sum of all codes, beside the first column."""

    columns: Clique
    sizes: tuple[int, ...]
    name: str = "blocks"

    @property
    def cells(self) -> int:
        return 2 * self.sizes[0]

    def assign(self, codes: Mapping[str, Integers]) -> Ints:
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
        broken = f"counts of {shown} are {exact.dtype}, not 64-bit integers."
        require(exact.dtype == np.int64, broken, "Leave counting to PrivateTable.")
        broken = f"counts of {shown} differ from counting {table.num_rows} rows by hand."
        require(exact.tolist() == _by_hand(codec, codes, clique), broken, _EVERY_ROW)
    _check_everything(source, codec, codes)
    records = source.records()
    rows = Counter(zip(*(codes[name] for name in names), strict=True))
    require(Counter(map(tuple, records.codes.tolist())) == rows, "the records are not the rows.", _EVERY_ROW)
    alone = records.starts.tolist() == list(range(rows.total() + 1))
    require(alone, "rows are grouped where every row is a unit of its own.", _OWN_UNIT)


def _check_everything(source: CountSource, codec: TableCodec, codes: dict[str, list[int]]) -> None:
    everything = codec.domain.everything()
    shape = codec.domain.shape(everything)
    cells = Counter(
        int(np.ravel_multi_index(cell, shape)) for cell in zip(*(codes[name] for name in everything), strict=True)
    )
    occupied = source.occupied(everything)
    require(occupied.indices.tolist() == sorted(cells), "occupied cells are not those of the rows.", _EVERY_ROW)
    by_hand = [cells[index] for index in sorted(cells)]
    require(occupied.counts.tolist() == by_hand, "counts of occupied cells differ from counting by hand.", _EVERY_ROW)
    blocks = _Blocks(everything, shape)
    expected = np.bincount(
        blocks.assign({name: np.array(values, dtype=np.int64) for name, values in codes.items()}),
        minlength=blocks.cells,
    )
    found = source.partition_counts([blocks])[0]
    require(found.tolist() == expected.tolist(), "counts of a partition differ from counting by hand.", _EVERY_ROW)


def _check_hostile_values(open_table: OpenTable, schema: Schema) -> None:
    """All hostile values of the designed pairs in one table: counted by the codec's rule, without a sound."""
    pairs = [pair for pair in designed_pairs(schema) if pair.name.startswith("hostile")]
    last_rows = pa.concat_tables([pair.neighbour.slice(pair.neighbour.num_rows - 1) for pair in pairs]).combine_chunks()
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
    require(found == dict(expected), "labels of an open column differ from counting by hand.", _EVERY_ROW)
    spelled = pa.array(["nurse", " nurse", "nurse\t", " ", "7", "7.0", "07"], pa.string())
    odd = pa.table({"sex": pa.array(["F"] * len(spelled)), "job": spelled})
    read = {"nurse": 3, "7": 2, "07": 1}
    same = _labels_of(open_table(odd, schema), "job") == read
    require(same, "labels are not counted as the codec compares them.", "Hand over text untrimmed and unchanged.")
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
    broken = f"unit bound: one person is counted with {of_one} labels where {bound} may count."
    require(of_one == bound, broken, _OWN_UNIT)
    require("nobody's" not in found, "a label was counted for a row that belongs to no unit.", _OWN_UNIT)
    same = found == _labels_of(opened(table, schema), "job")
    require(same, "labels kept for a unit differ from those of a frame.", _OWN_UNIT)


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
        require(found == expected, f"{name}: values that are not UTF-8 are not coded as unreadable.", _OWN_BYTES)
    free = Schema((*columns[:1], OpenCategory(name="job")), Unit("person", 1))
    jobs = pa.array([b"nurse", *NOT_UTF8, b"nurse", "é".encode()], pa.binary())
    people = pa.array([*NOT_UTF8, b"a", b"b", b"c"], pa.binary())
    bounded = open_table(pa.table({"sex": table.column("sex"), "job": jobs, "person": people}), free)
    kept = _labels_of(bounded, "job") == {"nurse": 2, "é": 1}
    require(kept, "text that is not UTF-8 became a label, or spoiled one.", _OWN_BYTES)
    codec = TableCodec.of(free, {"job": ["nurse"]})
    total = int(bounded.bind(codec).counts([Clique()])[Clique()][0])
    broken = f"{len(people)} people are counted as {total}: ids that are not UTF-8 were confused."
    require(total == len(people), broken, _OWN_BYTES)


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
    kept = _labels_of(opened_table, "job") == {"nurse": 1, longest: 1}
    require(kept, f"labels are not those of at most {limit}.", _OWN_BYTES)
    codec = TableCodec.of(schema, {"job": ["nurse"]})
    clique = codec.domain.clique(["sex"])
    found = opened_table.bind(codec).counts([clique])[clique].tolist()
    require(found == [2, 1, 1, 0], "people with long ids or values are not counted one row each.", _OWN_BYTES)


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
        fix = "Pass the names to PrivateTable.__init__ before anything else is done with them."
        require(refused, f"{case}: was taken for a header.", fix)
        quoted = any(value in refused for value in person)
        require(
            not quoted,
            f"{case}: a value is quoted in the refusal.",
            "Let no message name columns that no schema names.",
        )


def _check_unit(open_table: OpenTable, schema: Schema) -> None:
    """At most k rows of each unit count, nobody without a unit does, and leaving one out changes at most k rows.

    Every fifth row holds a value that cannot be read: it counts, or it is left out before the bound is applied.
    """
    column, bound = schema.unit.column, schema.unit.rows
    require(column, "the schema names no column of the unit.", "Give it one.")
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
    broken = f"unit bound: {full.sum()} rows count where {may} may (at most {bound} of each unit)."
    require(full.sum() == may, broken, _OWN_UNIT)
    _check_unit_records(open_table(table, schema).bind(codec), full, [min(bound, rows) for rows in held.values()])
    reversed_rows = table.take(pa.array(range(table.num_rows - 1, -1, -1)))
    again = open_table(reversed_rows, schema).bind(codec).counts([everything])[everything]
    same = again.tolist() == full.tolist()
    require(same, "the order of rows decides which rows of a unit count.", _OWN_UNIT)
    frame = opened(table, schema).bind(codec).counts([everything])[everything]
    require(frame.tolist() == full.tolist(), "other rows of a unit count than in a frame.", _OWN_UNIT)
    for unit in sorted(held)[:6]:
        keep = [name != unit for name in table.column(column).to_pylist()]
        without = open_table(table.filter(pa.array(keep)), schema).bind(codec).counts([everything])[everything]
        moved, most = int(np.abs(full - without).sum()), min(bound, held[unit])
        require(moved == most, f"unit bound: leaving one unit out changes {moved} rows, not {most}.", _OWN_UNIT)


def _check_unit_records(source: CountSource, full: Ints, sizes: Sequence[int]) -> None:
    records = source.records()
    shape = source.domain.shape(source.domain.everything())
    counted = np.ravel_multi_index(tuple(records.codes.astype(np.int64).T), shape)
    same = np.bincount(counted, minlength=full.size).tolist() == full.tolist()
    require(same, "the records are not the rows that count.", _EVERY_ROW)
    held = sorted(np.diff(records.starts).tolist())
    require(held == sorted(sizes), "unit bound: the records of units are not as many as may count.", _OWN_UNIT)


def _check_spread(open_table: OpenTable) -> None:
    """People who all hold the same four rows, of which one counts: each of the four is kept about as often."""
    people, jobs = 400, ("nurse", "cook", "clerk", "smith")
    schema = Schema((Category(name="job", labels=jobs, missing=False),), Unit("person", 1))
    table = pa.table({"job": list(jobs) * people, "person": [f"p{row // 4}" for row in range(4 * people)]})
    codec = TableCodec.of(schema)
    clique = codec.domain.clique(["job"])
    kept = open_table(table, schema).bind(codec).counts([clique])[clique][: len(jobs)]
    evenly = float(stats.chisquare(kept).pvalue) if kept.sum() == people else 0.0
    broken = "the same rows are kept in every unit that holds them, so that counts lean to their codes."
    require(evenly > LEVEL, broken, _OWN_UNIT)
