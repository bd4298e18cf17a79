"""Names → metrics, and their options as text."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Literal, cast

from understudy.errors import UsageError, nearest
from understudy.evaluate.challenge.nist import Nist
from understudy.evaluate.metric import Metric
from understudy.evaluate.propensity.pmse import Pmse
from understudy.evaluate.propensity.specks import Specks
from understudy.evaluate.regression.ci_overlap import IntervalOverlap
from understudy.evaluate.regression.prediction import Prediction
from understudy.evaluate.regression.regression import Regression
from understudy.evaluate.tables.chi_square import ChiSquare
from understudy.evaluate.tables.correlations import Correlations
from understudy.evaluate.tables.crosstab import CrosstabDistance
from understudy.evaluate.tables.disclosure import Disclosure
from understudy.evaluate.tables.marginals import Marginals
from understudy.evaluate.tables.rules import RulesBroken
from understudy.evaluate.tables.slopes import Slopes

__all__ = ["MetricOption", "metric", "names", "options_of"]

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
class MetricOption:
    """One option of a metric, as `--set metric.option=value` takes it."""

    name: str
    default: object
    help: str


def names() -> tuple[str, ...]:
    """All metric names, in the order a report shows them."""
    return tuple(_KINDS)


def options_of(name: str) -> tuple[MetricOption, ...]:
    """The options of a metric."""
    return tuple(
        MetricOption(field.name, field.default, str(field.metadata.get("help", ""))) for field in _fields(_kind(name))
    )


def metric(name: str, options: Mapping[str, object] | None = None) -> Metric:
    """The metric of that name with these options; text values are read by the type of the option.

    Raises:
        UsageError: for an unknown metric or option, with the closest known one, or a value that does not fit.
    """
    kind = _kind(name)
    hints = typing.get_type_hints(kind)
    known = [field.name for field in _fields(kind)]
    given: dict[str, object] = {}
    for key, value in (options or {}).items():
        if key not in known:
            fix = nearest(key, known) if known else "It has no options."
            raise UsageError(f"option {key!r}", f"is not an option of metric {name}.", fix)
        given[key] = _read(value, hints[key], f"{name}.{key}") if isinstance(value, str) else value
    return kind(**given)


def _kind(name: str) -> type[Metric]:
    if name not in _KINDS:
        raise UsageError(f"metric {name!r}", "is not known.", nearest(name, _KINDS))
    return _KINDS[name]


def _fields(kind: type[Metric]) -> tuple[dataclasses.Field[object], ...]:
    return dataclasses.fields(cast(type[Marginals], kind))


def _read(text: str, hint: object, where: str) -> object:
    """The value a text stands for: the first alternative of the type that accepts it."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    choices: list[str] = []
    for kind in typing.get_args(hint) if union else (hint,):
        origin = typing.get_origin(kind)
        if origin is Literal:
            choices += [str(choice) for choice in typing.get_args(kind)]
            if text in choices:
                return text
        elif origin is tuple:
            return tuple(part.strip() for part in text.split(",") if part.strip())
        elif kind is str:
            return text
        elif kind is bool and text.lower() in ("true", "false"):
            return text.lower() == "true"
        elif kind in (int, float):
            try:
                return int(text) if kind is int else float(text)
            except ValueError:
                continue
    fix = f"One of: {', '.join(choices)}." if choices else ""
    raise UsageError(f"option {where}", f"cannot be {text!r}.", fix)
