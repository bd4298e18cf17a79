"""Metric: what every comparison offers. One metric, one file; its options are the fields of a frozen dataclass."""

from typing import ClassVar, Protocol

from understudy.evaluate.data.pair import Context, Pair
from understudy.evaluate.score import Result, Scale
from understudy.schema import Schema

__all__ = ["Metric", "lacking", "refused"]


class Metric(Protocol):
    """A comparison of the real table with its stand-in. Never called with an empty table.

    A metric may also have `check(schema)`, which raises where its options do not fit the schema, and `lacks(schema)`,
    which says what the table or the call lacks for it ("" for nothing): such a metric runs only when asked for by name.
    """

    name: ClassVar[str]
    question: ClassVar[str]
    scales: ClassVar[tuple[Scale, ...]]
    """Every score the metric can report, the headline first."""

    def compare(self, pair: Pair, context: Context) -> Result:
        """The scores, in the order of `scales`; a score that cannot be computed says why."""
        ...


def lacking(metric: Metric, schema: Schema) -> str:
    """What the metric needs and does not get, "" if nothing."""
    lacks = getattr(metric, "lacks", None)
    return str(lacks(schema)) if lacks is not None else ""


def refused(metric: Metric, reason: str) -> Result:
    """The result of a metric that cannot be computed at all."""
    return Result(metric.name, metric.question, tuple(scale.missing(reason) for scale in metric.scales))
