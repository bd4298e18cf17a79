"""Names → metrics, and their options as text."""

import dataclasses
from collections.abc import Mapping
from typing import cast

from understudy.errors import UsageError, nearest
from understudy.evaluate.chi2 import ChiSquare
from understudy.evaluate.disclosure import Disclosure
from understudy.evaluate.marginals import CrosstabDistance, Marginals
from understudy.evaluate.metric import Metric, Scale
from understudy.evaluate.nist import Nist
from understudy.evaluate.prediction import Prediction
from understudy.evaluate.propensity import Pmse, Specks
from understudy.evaluate.regression import IntervalOverlap, Regression
from understudy.evaluate.rules import RulesBroken
from understudy.evaluate.slopes import Correlations, Slopes
from understudy.methods.method import Option, described, hints_of, read_options

_ALL: tuple[type[Metric], ...] = (
    Marginals,
    CrosstabDistance,
    Specks,
    Pmse,
    Nist,
    ChiSquare,
    Slopes,
    Correlations,
    Regression,
    IntervalOverlap,
    Prediction,
    RulesBroken,
    Disclosure,
)
_KINDS: dict[str, type[Metric]] = {kind.name: kind for kind in _ALL}


@dataclasses.dataclass(frozen=True, slots=True)
class MetricDescription:
    """What a person needs to know to pick a metric."""

    name: str
    question: str
    scales: tuple[Scale, ...]
    options: tuple[Option, ...]


def names() -> tuple[str, ...]:
    """All metric names, in the order a report shows them."""
    return tuple(_KINDS)


def metric(name: str, options: Mapping[str, object] | None = None) -> Metric:
    """The metric of that name with these options; text values are read by the type of the option.

    Raises:
        UsageError: for an unknown metric or option, with the closest known one, or a value that does not fit.
    """
    kind = _kind(name)
    return kind(**read_options(f"metric {name}", hints_of(kind, _fields(kind)), options or {}))


def describe(name: str) -> MetricDescription:
    """Question, scores and options of a metric."""
    kind = _kind(name)
    return MetricDescription(name, kind.question, kind.scales, described(kind, _fields(kind)))


def _fields(kind: type[Metric]) -> tuple[dataclasses.Field[object], ...]:
    return dataclasses.fields(cast(type[Marginals], kind))


def _kind(name: str) -> type[Metric]:
    if name not in _KINDS:
        raise UsageError(f"metric {name!r}", "is not known.", nearest(name, _KINDS))
    return _KINDS[name]
