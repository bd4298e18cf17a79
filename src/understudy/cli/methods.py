"""`understudy methods` and `metrics`: what can be asked for by name; `audit`: whether a method keeps its claim."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.console import Debug, Quiet, Shell, in_flags, shell
from understudy.cli.options import (
    OPTION_COLUMNS,
    Copies,
    CopiesMode,
    Json,
    PublicTable,
    Settings,
    option_documents,
    option_rows,
    pairs,
    require_absent,
)

if TYPE_CHECKING:
    from understudy.audit import Audit
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


MethodNames = Annotated[
    list[str], typer.Argument(metavar="METHOD", help='Method, see "understudy methods"; several with --choose.')
]
OwnSchema = Annotated[
    Path | None, typer.Option("--schema", help="Your schema; if omitted, three columns of two labels each.")
]
Claimed = Annotated[float, typer.Option("--epsilon", help="Privacy budget ε of each run.")]
ClaimedDelta = Annotated[
    float | None, typer.Option("--delta", help="δ of each run; if omitted, 0 or 1e-6, as the method needs.")
]
Runs = Annotated[int, typer.Option("--runs", help="Number of runs on each table: half choose the event, half test it.")]
Confidence = Annotated[float, typer.Option("--confidence", help="Confidence with which the bound holds.")]
PagePlace = Annotated[
    Path | None, typer.Option("--out", "-o", help="Also write a page with the picture: a new .html file.")
]
ChosenAmong = Annotated[
    float | None,
    typer.Option(
        "--choose", metavar="EPSILON", help='Audit the private choice of "compare --choose" among several methods.'
    ),
]
BrokenOff = Annotated[
    bool, typer.Option("--interrupt", help="Interrupt every run once and resume it; for methods that train.")
]


def audit(
    methods: MethodNames,
    *,
    schema: OwnSchema = None,
    epsilon: Claimed = 3.0,
    delta: ClaimedDelta = None,
    runs: Runs = 2000,
    settings: Settings = None,
    copies: Copies = 1,
    copies_mode: CopiesMode = "resample",
    public: PublicTable = None,
    choose: ChosenAmong = None,
    interrupt: BrokenOff = False,
    confidence: Confidence = 0.9999,
    out: PagePlace = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Runs a method on neighbouring tables made from the schema, and shows a lower bound on its ε beside its claim.

    Reads no private data. A bound above the claim is a fault of the method, and the command ends with 1.
    """
    with shell("audit", quiet=quiet, debug=debug, as_json=as_json) as place:
        if out is not None:
            require_absent("--out", out)
        with place.running(("prepare", "measure")) as progress:
            from understudy.audit import audit as run_all

            found = run_all(
                methods, schema, epsilon=epsilon, delta=delta, runs=runs, options=pairs("--set", settings),
                copies=copies, copies_mode=copies_mode, public=public, choose=choose, interrupt=interrupt,
                confidence=confidence, progress=progress,
            )  # fmt: skip
        _show_audit(place, found, out)
    if found.violated:
        raise typer.Exit(1)


def _show_audit(place: Shell, found: "Audit", out: Path | None) -> None:
    if out is not None:
        found.save(out)
    place.json(found.document() | {"page": None if out is None else str(out)})
    for sentence in found.sentences():
        place.line(sentence)
    rows = [[f"{count:,}", f"{bound:.4g}"] for count, bound in found.telling.expected]
    place.table([">runs a side", ">bound, if the event stays as frequent"], rows)
    if out is not None:
        place.note(f"Open {out}.")
