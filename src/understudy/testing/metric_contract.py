"""The contract of metrics: best for equal tables, worse for shuffled ones, blind to order, and never without a reason.

A table whose labels the schema cannot read is judged too, and no metric may call such a column constant.

A metric that passes can be shown in a report without further care: every number lies in its range, and every gap says
why it is there.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from understudy.evaluate import Evaluation, evaluate
from understudy.evaluate.metric import Metric
from understudy.evaluate.score import Result
from understudy.schema import Category, Schema

__all__ = ["check_metric"]

CLOSE = 1e-6


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
    same = _run(metric, table, [table], schema)
    _check_best(metric, same, close)
    apart = _run(metric, table, [_shuffled_columns(table)], schema)
    if can_be_worse:
        _check_worse(same[metric.name], apart[metric.name])
    _check_order(metric, table, schema, apart)
    for broken in (table.slice(0, 1), _constant(table), _missing(table, schema)):
        for real, synthetic in ((table, broken), (broken, table)):
            _check_reasons(metric, _run(metric, real, [synthetic], schema))
    _check_unread(metric, table, schema)
    nothing = _run(metric, table, [table.slice(0, 0)], schema)[metric.name]
    assert all(score.value is None and "no rows" in score.why_not for score in nothing.scores), metric.name


def _run(metric: Metric, real: pa.Table, copies: Sequence[pa.Table], schema: Schema) -> Evaluation:
    return evaluate(real, list(copies), schema, metrics=[metric], seed=5)


def _check_best(metric: Metric, found: Evaluation, close: float) -> None:
    result = found[metric.name]
    assert [score.name for score in result.scores] == [scale.name for scale in metric.scales], "every scale, in order"
    assert result.value is not None, f"{metric.name}: the headline has no value on equal tables: {result.why_not}"
    assert result.question.endswith("?"), f"{metric.name}: asks no question"
    for score in result.scores:
        assert (score.best is None) == (score.direction == "none" or (score.lowest is None and score.highest is None))
        if score.value is not None and score.best is not None:
            room = close * max(1.0, abs(score.best))
            assert abs(score.value - score.best) <= room, f"{metric.name}.{score.name}: {score.value} on equal tables"


def _check_worse(same: Result, apart: Result) -> None:
    """At least one score must see that no association is left; none of the others may have got lost."""
    gains = []
    for before, after in zip(same.scores, apart.scores, strict=True):
        if before.direction != "none" and before.value is not None:
            assert after.value is not None, f"{after.name}: no value on shuffled tables: {after.why_not}"
            gap = after.value - before.value
            gains.append(gap if before.direction == "lower" else -gap)
    assert max(gains) > CLOSE, f"{same.metric}: shuffled columns score as well as equal tables"
    assert gains[0] >= -CLOSE, f"{same.metric}: the headline is better on shuffled columns"


def _check_order(metric: Metric, table: pa.Table, schema: Schema, apart: Evaluation) -> None:
    rng = np.random.default_rng(2)
    moved = table.take(pa.array(rng.permutation(table.num_rows)))
    turned = moved.select(list(reversed(moved.column_names)))
    again = _run(metric, turned, [_shuffled_columns(table).take(pa.array(rng.permutation(table.num_rows)))], schema)
    assert again == apart, f"{metric.name}: depends on the order of rows or columns, or on chance"


def _check_reasons(metric: Metric, found: Evaluation) -> None:
    for score in found[metric.name].scores:
        assert score.value is not None or score.why_not, f"{metric.name}.{score.name}: a gap without a reason"
        assert score.yardstick is not None or score.why_no_yardstick, f"{metric.name}.{score.name}: no yardstick"
    found.to_json()


def _check_unread(metric: Metric, table: pa.Table, schema: Schema) -> None:
    """What the schema cannot read is told, and never called constant: there may be many values behind it."""
    closed = [one.name for one in schema.modelled if isinstance(one, Category) and one.other is None]
    for name in closed[:1]:
        respelled = pc.binary_join_element_wise(table[name].cast(pa.string()), "?", "")
        foreign = table.set_column(table.column_names.index(name), name, respelled)
        found = _run(metric, foreign, [table], schema)
        _check_reasons(metric, found)
        assert [one.column for one in found.unread if one.table == "real"] == [name], f"{name}: not told"
        for note in found[metric.name].notes:
            constant = "single value" in note and "can read no value" not in note
            assert not constant, f"{metric.name}: calls a column constant that the schema cannot read"


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
