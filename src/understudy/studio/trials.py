"""Which method? Trials of several on a table that is public, or on invented rows, before anything is charged.

A trial of methods on the private table would be confidential, and to choose by it would leak. So here methods are tried
on rows that tell nothing of anybody: invented under the schema, or of a file that a person says is public. The file of
the private table itself is refused, under whatever name it comes.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

import understudy as us
from understudy.studio.guard import REPORT_POLICY, RefusedRequest
from understudy.studio.invented import MOST_ROWS, ROWS
from understudy.studio.pages import (
    Handler,
    Studio,
    check_is_public,
    draft_of,
    form_of,
    found_or_refused,
    go_to,
    planned,
)
from understudy.studio.runs import StudioRun
from understudy.studio.words import in_full
from understudy.studio.workspace import DraftTable, short_id

REPEATS = 3
_USUAL = ("independent", "mst", "privsyn", "laplace")
"""What is proposed beside the method that `auto` picks, as far as it can be run."""
_MOST_PROPOSED = 3


def routes_of(studio: Studio) -> list[tuple[str, Handler, tuple[str, ...]]]:
    """Addresses of these pages."""
    pages: list[tuple[str, Callable[[Studio, Request], Response], tuple[str, ...]]] = [
        ("/drafts/{key}/methods", _methods, ("GET", "POST")),
        ("/drafts/{key}/method", _use, ("POST",)),
        ("/trials/{key}/report", _report, ("GET",)),
    ]
    return [(place, functools.partial(page, studio), methods) for place, page, methods in pages]


def _methods(studio: Studio, request: Request) -> Response:
    draft = draft_of(studio, request)
    if request.method != "POST":
        return _page(studio, request, draft, [])
    try:
        return go_to(f"/runs/{_begun(studio, draft, form_of(request)).key}")
    except us.errors.UnderstudyError as error:
        return _page(studio, request, draft, studio.said(error))


def _page(studio: Studio, request: Request, draft: DraftTable, messages: list[str]) -> Response:
    methods, picked = _possible(draft)
    proposed = [picked, *(name for name in _USUAL if name in methods and name != picked)][:_MOST_PROPOSED]
    own = [one for one in studio.workspace.tables() if not studio.workspace.same_file(one, draft.table)]
    trials = [run for run in studio.runs.all() if run.kind == "trial" and run.settings.get("draft") == draft.key]
    facts = {"draft": draft, "choices": draft.choices, "methods": methods, "proposed": proposed, "files": own}
    facts |= {"trials": trials, "picked": picked, "rows": draft.choices.rows_hint or ROWS, "repeats": REPEATS}
    status = 422 if messages else 200
    return studio.page(request, "methods.html", status=status, step="Budget", messages=messages, **facts)


def _possible(draft: DraftTable) -> tuple[dict[str, dict[str, str]], str]:
    """What every method says of itself, which of them can be run so, and the one that `auto` picks, if any."""
    found: dict[str, dict[str, str]] = {}
    picked = ""
    for name, method in us.methods().items():
        try:
            plan = planned(draft, method=name)
        except us.errors.UnderstudyError as error:
            found[name] = {"why": str(error)}
        else:
            picked = plan.method if name == "auto" else picked
            found[name] = {"why": plan.refused}
        found[name] |= {"summary": method.summary, "guarantee": method.guarantee}
    found.pop("auto", None)
    return found, picked


def _begun(studio: Studio, draft: DraftTable, form: Mapping[str, str]) -> StudioRun:
    methods = [name for name, said in _possible(draft)[0].items() if form.get(f"try-{name}") and not said["why"]]
    if not methods:
        raise us.errors.UsageError("methods", "must include one that can be run.", "Choose two or three.")
    table = _public_table(studio, draft, form)
    choices = draft.choices
    settings: dict[str, Any] = {
        "kind": "trial", "table": table, "methods": methods, "epsilon": choices.epsilon, "delta": choices.delta,
        "rows": min(choices.rows_hint or ROWS, MOST_ROWS), "repeats": REPEATS, "draft": draft.key, "seconds": None,
    }  # fmt: skip
    on = form.get("table", "") if table else "invented rows"
    name = f"{', '.join(methods)} on {on} for {draft.name} at ε = {in_full(choices.epsilon)}"
    different = short_id(f"{draft.version} {settings}")[:4]
    return studio.runs.start({**settings, "name": f"{name} ({different})"}, draft.text)


def _public_table(studio: Studio, draft: DraftTable, form: Mapping[str, str]) -> str:
    """Where the public table lies; empty for invented rows."""
    if form.get("on") != "file":
        return ""
    if form.get("is_public") != "yes":
        raise us.errors.UsageError("file", "must be public.", "Say so, or try the methods on invented rows.")
    location = studio.workspace.location(form.get("table", ""))
    check_is_public(studio, "file", location, draft.table)
    return studio.workspace.absolute(location)


def _use(studio: Studio, request: Request) -> Response:
    draft, name = draft_of(studio, request), form_of(request).get("method", "")
    if name not in us.methods():
        raise RefusedRequest(422, "There is no such method.")
    draft.choose(draft.choices.with_method(name))
    return go_to(f"/drafts/{draft.key}/budget")


def _report(studio: Studio, request: Request) -> Response:
    run = studio.runs.find(request.path_params["key"])
    found = found_or_refused(run if run is not None and run.kind == "trial" else None, "trial")
    page = found.place / "study" / "index.html"
    if not page.is_file():
        raise RefusedRequest(404, "This trial has nothing to show yet.")
    headers = {"content-security-policy": REPORT_POLICY}
    return Response(page.read_bytes(), media_type="text/html; charset=utf-8", headers=headers)
