"""`understudy methods` and `understudy metrics`: what can be asked for by name, and what each needs and gives."""

from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.console import Debug, Quiet, Shell, in_flags, shell
from understudy.cli.options import OPTION_COLUMNS, Json, option_documents, option_rows

if TYPE_CHECKING:
    from understudy.evaluate.metric import MetricDescription
    from understudy.methods.method import Description


def methods(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Show one method in full, with its options.")
    ] = None,
    *,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Lists the methods, or shows one: guarantee, needs, limits, source, options."""
    with shell("methods", quiet=quiet, debug=debug, as_json=as_json) as place:
        from understudy.methods.method import METHODS, describe_method

        found = list(METHODS.described(describe_method).values()) if name is None else [describe_method(name)]
        if as_json:
            place.json({"methods": [_method_document(each) for each in found]})
        elif name is None:
            rows = [[each.name, each.guarantee, each.summary] for each in found]
            place.table(["method", "guarantee", "what it does"], rows)
            place.note('"understudy methods NAME" shows needs, limits, source and options.')
        else:
            _show_method(place, found[0])


def _show_method(place: Shell, method: "Description") -> None:
    facts = [
        ("method", method.name),
        ("does", method.summary),
        ("guarantee", method.guarantee),
        ("needs", in_flags(method.needs)),
        ("limits", in_flags(method.limits)),
        ("source", method.source),
    ]
    place.table(["", ""], facts)
    if method.options:
        place.table(OPTION_COLUMNS, option_rows(method.options))


def _method_document(method: "Description") -> dict[str, object]:
    return {
        "name": method.name,
        "summary": method.summary,
        "guarantee": method.guarantee,
        "currencies": list(method.currencies),
        "needs": method.needs,
        "limits": method.limits,
        "source": method.source,
        "options": option_documents(method.options),
    }


BETTER = {"lower": "lower", "higher": "higher", "none": "neither"}


def metrics(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Show one metric in full, with its scores and options.")
    ] = None,
    *,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Lists the metrics of evaluate and compare, or shows one: question, scores, options."""
    with shell("metrics", quiet=quiet, debug=debug, as_json=as_json) as place:
        from understudy.evaluate.metric import METRICS, describe_metric

        found = list(METRICS.described(describe_metric).values()) if name is None else [describe_metric(name)]
        if as_json:
            place.json({"metrics": [_metric_document(each) for each in found]})
        elif name is None:
            place.table(["metric", "question"], [[each.name, each.question] for each in found])
            place.note('"understudy metrics NAME" shows scores and options.')
        else:
            _show_metric(place, found[0])


def _show_metric(place: Shell, metric: "MetricDescription") -> None:
    place.table(["", ""], [("metric", metric.name), ("question", metric.question)])
    scores = [[scale.name, scale.meaning, BETTER[scale.direction]] for scale in metric.scales]
    place.table(["score", "meaning", "better"], scores)
    if metric.options:
        place.table(OPTION_COLUMNS, option_rows(metric.options, f"{metric.name}."))


def _metric_document(metric: "MetricDescription") -> dict[str, object]:
    return {
        "name": metric.name,
        "question": metric.question,
        "scores": [
            {"name": scale.name, "meaning": scale.meaning, "better": BETTER[scale.direction], "best": scale.best}
            for scale in metric.scales
        ],
        "options": option_documents(metric.options),
    }
