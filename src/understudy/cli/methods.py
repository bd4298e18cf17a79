"""`understudy methods`: every synthesizer with its guarantee, needs, limits and source."""

from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.console import Debug, Quiet, Shell, shell
from understudy.cli.options import OPTION_COLUMNS, Json, option_documents, option_rows

if TYPE_CHECKING:
    from understudy.mechanisms.registry import Description

__all__ = ["methods"]


def methods(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Show one method in full, with its options.")
    ] = None,
    *,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Lists the synthesizers, or shows one: guarantee, needs, limits, source, options."""
    with shell(quiet=quiet, debug=debug) as place:
        from understudy.mechanisms.registry import describe, names

        found = [describe(each) for each in (names() if name is None else [name])]
        if as_json:
            place.json({"methods": [_document(each) for each in found]})
        elif name is None:
            rows = [[each.name, each.guarantee, each.summary] for each in found]
            place.table(["method", "guarantee", "what it does"], rows)
            place.note('"understudy methods NAME" shows needs, limits, source and options.')
        else:
            _show(place, found[0])


def _show(place: Shell, method: "Description") -> None:
    facts = [
        ("method", method.name),
        ("does", method.summary),
        ("guarantee", method.guarantee),
        ("needs", method.needs),
        ("limits", method.limits),
        ("source", method.source),
    ]
    place.table(["", ""], facts)
    if method.options:
        place.table(OPTION_COLUMNS, option_rows(method.options))


def _document(method: "Description") -> dict[str, object]:
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
