"""Names → metrics, and what a person needs to know to pick one.

Another package adds a metric by an entry point in the group `understudy.metrics` that points to a subclass of `Metric`.
Such a metric runs when it is asked for by name; without names an evaluation runs the built-in ones.
"""

import dataclasses
from collections.abc import Mapping

from understudy.evaluate.metric import Metric, Scale
from understudy.options import Option, described
from understudy.registry import Catalogue, Registry

METRICS: Registry[Metric] = Registry(
    "metric",
    {
        "marginals": "understudy.evaluate.marginals:Marginals",
        "crosstab_l1": "understudy.evaluate.marginals:CrosstabDistance",
        "specks": "understudy.evaluate.propensity:Specks",
        "pmse": "understudy.evaluate.propensity:Pmse",
        "nist": "understudy.evaluate.nist:Nist",
        "chi2": "understudy.evaluate.associations:ChiSquare",
        "slopes": "understudy.evaluate.associations:Slopes",
        "correlations": "understudy.evaluate.associations:Correlations",
        "regression": "understudy.evaluate.regression:Regression",
        "ci_overlap": "understudy.evaluate.regression:IntervalOverlap",
        "prediction": "understudy.evaluate.prediction:Prediction",
        "rules": "understudy.evaluate.records:RulesBroken",
        "disclosure": "understudy.evaluate.records:Disclosure",
    },
    (Metric,),
)
"""In the order in which a report shows them."""


@dataclasses.dataclass(frozen=True, slots=True)
class MetricDescription:
    """What a person needs to know to pick a metric."""

    name: str
    question: str
    scales: tuple[Scale, ...]
    options: tuple[Option, ...]


def names() -> tuple[str, ...]:
    """All metric names, in the order a report shows them, those of other packages last."""
    return METRICS.names()


def metrics() -> Catalogue[MetricDescription]:
    """All metrics with the question each answers; `metrics()["pmse"]` has scores and options too."""
    return Catalogue(("name", "question"), METRICS.described(describe))


def metric(name: str, options: Mapping[str, object] | None = None) -> Metric:
    """The metric of that name with these options; text values are read by the type of the option.

    Raises:
        UsageError: for an unknown metric or option, with the closest known one, or a value that does not fit.
    """
    return METRICS.make(name, options)


def describe(name: str) -> MetricDescription:
    """Question, scores and options of a metric."""
    kind = METRICS.find(name)
    return MetricDescription(name, kind.question, kind.scales, described(kind))
