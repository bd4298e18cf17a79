"""The pages from a table to a budget, and of runs: what each address answers, and what each form does.

Every form ends in a redirection to a page, so that reloading never repeats it. Mistakes are shown on the page they were
made on, in the words of the library, and change nothing.
"""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

import understudy as us
from understudy.report import render_blocks
from understudy.studio import drafting, words
from understudy.studio.guard import Doors, RefusedRequest
from understudy.studio.runs import RESUMABLE, Runs, StudioRun, charged_since
from understudy.studio.workspace import DATABASES, Choices, DraftTable, Workspace, short_id

Handler = Callable[[Request], Response]
STEPS = ("Table", "Schema", "Budget", "Run", "Release")


@dataclass(frozen=True, slots=True)
class Studio:
    """What every page needs: the folder, its runs, the doors, and the templates."""

    workspace: Workspace
    runs: Runs
    doors: Doors
    templates: Environment

    @classmethod
    def of(cls, workspace: Workspace, doors: Doors) -> "Studio":
        """The studio of a folder."""
        templates = Environment(
            loader=PackageLoader("understudy", "studio/templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        templates.filters["in_full"] = words.in_full
        templates.globals |= {"seconds_text": words.seconds_text, "kinds": drafting.KINDS}
        return cls(workspace, Runs(workspace), doors, templates)

    def page(self, request: Request | None, template: str, /, *, status: int = 200, **facts: Any) -> HTMLResponse:
        """A page as HTML; characters that may not stand in it are shown escaped."""
        session = None if request is None else request.scope.get("studio.session")
        common = {"csrf": "" if session is None else session.csrf, "inside": session is not None}
        common |= {"read_only": self.doors.read_only, "steps": STEPS, "step": "", "messages": ()}
        text = self.templates.get_template(template).render(**{**common, **facts})
        return HTMLResponse(text.encode("utf-8", "backslashreplace").replace(b"\0", b"\\0"), status)

    def refusal(self, status: int, text: str) -> bytes:
        """The page of a request that was turned away."""
        login = status == 401 and bool(self.doors.password)
        return bytes(self.page(None, "refusal.html", status=status, text=text, login=login, known=status != 401).body)

    def said(self, error: us.errors.UnderstudyError) -> list[str]:
        """What the library says is wrong, with paths as one sees them in the folder."""
        problems = getattr(error, "problems", None) or [error]
        return [self.workspace.without_root(str(one)) for one in problems]


def form_of(request: Request) -> Mapping[str, str]:
    """The fields of the request's form, as the guard let them through."""
    found: Mapping[str, str] = request.scope["studio.form"]
    return found


def go_to(place: str) -> RedirectResponse:
    """Shows another page after a form."""
    return RedirectResponse(place, status_code=303)


def found_or_refused(found: Any, what: str) -> Any:
    """What was found; a page that says that it is gone otherwise."""
    if found is None:
        raise RefusedRequest(404, f"There is no such {what} here any more.")
    return found


def routes_of(studio: Studio) -> list[tuple[str, Handler, tuple[str, ...]]]:
    """Addresses of these pages, what answers them, and by which methods they are asked."""
    get, post = ("GET",), ("POST",)
    pages: list[tuple[str, Callable[[Studio, Request], Response], tuple[str, ...]]] = [
        ("/start/{token}", _start, get),
        ("/login", _login, ("GET", "POST")),
        ("/tables", _tables, ("GET", "POST")),
        ("/demo", _demo, post),
        ("/drafts/{key}/schema", _schema, get),
        ("/drafts/{key}/schema.yaml", _schema_text, get),
        ("/drafts/{key}/change/{action}", _change, post),
        ("/drafts/{key}/try", _try, post),
        ("/drafts/{key}/fields", _fields, post),
        ("/drafts/{key}/forget", _throw_away, post),
        ("/drafts/{key}/back", _take_back, post),
        ("/drafts/{key}/budget", _budget, ("GET", "POST")),
        ("/drafts/{key}/plan", _plan, post),
        ("/runs/{key}", _show_run, get),
        ("/runs/{key}/status", _run_status, get),
        ("/runs/{key}/{action}", _run_action, post),
    ]
    return [(place, functools.partial(page, studio), methods) for place, page, methods in pages]


def _start(studio: Studio, request: Request) -> Response:
    if request.method == "HEAD":  # somebody previews the address: that must not use it up
        raise RefusedRequest(405, "This cannot be done here.")
    cookie = studio.doors.enter_by_token(request.path_params["token"])
    if cookie is None:
        raise RefusedRequest(
            401, "This address was used already, or belongs to an earlier start. Start the studio again."
        )
    answer = studio.page(request, "entered.html")
    answer.headers["set-cookie"] = cookie
    return answer


def _login(studio: Studio, request: Request) -> Response:
    if not studio.doors.password:
        raise RefusedRequest(404, "There is no page of this name.")
    if request.method != "POST":
        return studio.page(request, "login.html")
    cookie = studio.doors.enter_by_password(form_of(request).get("password", ""))
    if cookie is None:
        wrong = ("That password is wrong. After five wrong passwords, signing in is blocked for a minute.",)
        return studio.page(request, "login.html", status=403, messages=wrong)
    answer = studio.page(request, "entered.html")
    answer.headers["set-cookie"] = cookie
    return answer


def _tables(studio: Studio, request: Request) -> Response:
    messages: list[str] = []
    form = form_of(request)
    if request.method == "POST":
        try:
            return go_to(f"/drafts/{_begun(studio, form).key}/schema")
        except us.errors.UnderstudyError as error:
            messages = studio.said(error)
    files, books = studio.workspace.tables(), studio.workspace.codebooks()
    facts = {"files": files, "books": books, "form": form, "drafts": studio.workspace.drafts()}
    return studio.page(
        request, "tables.html", status=422 if messages else 200, step="Table", messages=messages, **facts
    )


def _begun(studio: Studio, form: Mapping[str, str]) -> DraftTable:
    """The draft of the chosen table; of the table itself only the header is read."""
    workspace = studio.workspace
    database = form.get("database", "").strip()
    if database and not database.startswith(DATABASES):
        raise us.errors.UsageError("database", "must begin with postgresql://.", "Choose a file instead, if it is one.")
    location = workspace.location(database or form.get("table", ""), form.get("inner", ""))
    known = workspace.draft(short_id(location))
    if known is None:
        sure = form.get("names_are_right") == "yes"
        return workspace.begin(location, _drafted(studio, location, form, names_are_right=sure))
    if form.get("codebook") or form.get("like"):
        with workspace.lock:
            drafting.filled(known, _drafted(studio, location, form, names_are_right=True))
    return known


def check_is_public(studio: Studio, what: str, location: str, private: str) -> None:
    """Raises if a file whose rows are about to be read is the private table, or one that a release was charged for."""
    same, fix = studio.workspace.same_file, "Its rows must not be read. Choose another one."
    if same(location, private):
        raise us.errors.UsageError(what, "is the private table itself.", fix)
    if any(run.kind == "release" and same(location, str(run.settings.get("table", ""))) for run in studio.runs.all()):
        raise us.errors.UsageError(what, "is a table from which a release was made, and so a private one.", fix)


def _drafted(studio: Studio, location: str, form: Mapping[str, str], *, names_are_right: bool) -> str:
    """The text of a first schema, from the header of the table, a codebook and a public table.

    Raises:
        UsageError: also if a private table is named as one of those, whose rows are read.
    """
    workspace = studio.workspace
    book, like = form.get("codebook", ""), form.get("like", "")
    for name, what, known in ((book, "codebook", workspace.codebooks()), (like, "public table", workspace.tables())):
        if name:
            check_is_public(studio, what, workspace.inside(name, known), location)
    made = us.Schema.draft(
        workspace.absolute(location),
        codebook=(workspace.root / book,) if book else (),
        like=workspace.absolute(workspace.location(like)) if like else None,
        names_are_right=names_are_right,
    )
    return str(made.text)


def _demo(studio: Studio, _: Request) -> Response:
    try:
        return go_to(f"/drafts/{studio.workspace.begin_demo().key}/schema")
    except us.errors.UnderstudyError as error:
        raise RefusedRequest(409, " ".join(studio.said(error))) from error


def draft_of(studio: Studio, request: Request) -> DraftTable:
    """The draft that an address names."""
    found: DraftTable = found_or_refused(studio.workspace.draft(request.path_params["key"]), "table")
    return found


def _schema(studio: Studio, request: Request) -> Response:
    return schema_page(studio, request, draft_of(studio, request))


def schema_page(
    studio: Studio, request: Request, draft: DraftTable, messages: list[str] | None = None, **more: Any
) -> Response:
    """The page of a draft's schema, with what is wrong."""
    try:
        form, broken = drafting.form_of(draft.text), []
    except us.errors.SchemaError as error:
        form, broken = None, studio.said(error)
    facts: dict[str, Any] = {"draft": draft, "form": form, "broken": broken, "text": draft.text, "told": "", **more}
    facts |= {"files": studio.workspace.tables(), "books": studio.workspace.codebooks()}
    status = 422 if messages else 200
    return studio.page(request, "schema.html", status=status, step="Schema", messages=messages or (), **facts)


def _schema_text(studio: Studio, request: Request) -> Response:
    text = draft_of(studio, request).text.encode("utf-8", "backslashreplace")
    return _download(text, "schema.yaml", "application/yaml")


def _download(content: bytes, name: str, kind: str) -> Response:
    return Response(content, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})


def _change(studio: Studio, request: Request) -> Response:
    draft, form, action = draft_of(studio, request), form_of(request), request.path_params["action"]
    told = ""
    with studio.workspace.lock:
        try:
            if action == "fill":
                reasons, told = _filled(studio, draft, form)
            else:
                reasons = drafting.change(draft, action, form)
        except us.errors.UnderstudyError as error:
            reasons = studio.said(error)
    if not reasons and not told:
        return go_to(f"/drafts/{draft.key}/schema")
    kept = {"text": form["text"]} if action == "text" and "text" in form else {}
    return schema_page(studio, request, draft, reasons, told=told, **kept)


def _filled(studio: Studio, draft: DraftTable, form: Mapping[str, str]) -> tuple[list[str], str]:
    """Takes over what a codebook or a public table says: the reasons if it cannot be, and what came of it."""
    if not form.get("codebook") and not form.get("like"):
        return ["Choose a codebook or a public table."], ""
    late = drafting.made_late(draft, form)
    if late:
        return late, ""
    changes = drafting.filled(draft, _drafted(studio, draft.table, form, names_are_right=True))
    return [], f"Filled in: {changes} {'column' if changes == 1 else 'columns'}. Look at each before you confirm it."


def _try(studio: Studio, request: Request) -> Response:
    """The problems that a column would have with what is in its fields now; nothing is kept."""
    draft, form = draft_of(studio, request), form_of(request)
    tried = _tried(studio, draft, form)
    return studio.page(request, "tried.html", tried=tried, shown=drafting.shown_in(form, tried.column))


def _fields(studio: Studio, request: Request) -> Response:
    """The fields that a column has if it is of the kind that is chosen now; nothing is kept."""
    draft, form = draft_of(studio, request), form_of(request)
    tried = _tried(studio, draft, form)
    if tried.column is None or tried.reasons:
        return studio.page(request, "tried.html", tried=tried, shown=())
    return studio.page(request, "fields.html", column=tried.column, draft=draft)


def _tried(studio: Studio, draft: DraftTable, form: Mapping[str, str]) -> drafting.TriedColumn:
    try:
        return drafting.tried(draft.text, form)
    except us.errors.SchemaError as error:
        return drafting.TriedColumn(None, tuple(studio.said(error)))


def _throw_away(studio: Studio, request: Request) -> Response:
    studio.workspace.throw_away(draft_of(studio, request))
    return go_to("/")


def _take_back(studio: Studio, request: Request) -> Response:
    found = studio.workspace.draft(request.path_params["key"], thrown_away=True)
    if found is not None:
        studio.workspace.take_back(found)
    return go_to(f"/drafts/{draft_of(studio, request).key}/schema")


def _chosen(draft: DraftTable, form: Mapping[str, str]) -> Choices:
    """The choices of the budget page.

    Raises:
        UsageError: for what is no number, or no usable one.
    """
    epsilon = _number(form, "epsilon", words.EPSILONS)
    delta = _number(form, "delta", words.DELTAS)
    us.Budget(epsilon, delta)
    rows = "".join(form.get("rows_hint", "").replace(",", "").split())
    if rows and (not rows.isdecimal() or len(rows) > 15 or int(rows) == 0):
        raise us.errors.UsageError("rows", "must be a whole number above 0.", "Leave it empty if it is not public.")
    matter = tuple(name for number, name in enumerate(_names(draft)) if form.get(f"matter-{number}"))
    if len(matter) > words.MOST_MATTER:
        rule = f"at most {words.MOST_MATTER} columns can be looked at together."
        raise us.errors.UsageError("what matters", rule, "Clear some of the boxes.")
    return Choices(epsilon, delta, form.get("method", "auto")[:40], int(rows) if rows else None, matter)


def _number(form: Mapping[str, str], name: str, steps: tuple[float, ...]) -> float:
    """An exact number where one was typed, otherwise the step of the slider."""
    exact, step = form.get(f"{name}_exact", "").strip(), form.get(name, "")
    try:
        value = float(exact) if exact else steps[min(max(int(step), 0), len(steps) - 1)]
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise us.errors.UsageError(name, "must be a number.", "Move the slider, or type a number such as 0.5.")
    return value


def _budget(studio: Studio, request: Request) -> Response:
    draft, form = draft_of(studio, request), form_of(request)
    if request.method == "POST":
        try:
            draft.choose(_chosen(draft, form))
            if form.get("then") == "confirm":
                planned(draft)  # what cannot be planned is told before anybody is asked to pay
            if form.get("then") in ("confirm", "methods", "schema"):
                return go_to(f"/drafts/{draft.key}/{form['then']}")
        except us.errors.UnderstudyError as error:
            if form.get("then") == "schema":
                return go_to(f"/drafts/{draft.key}/schema")
            return _budget_page(studio, request, draft, studio.said(error))
    return _budget_page(studio, request, draft, [])


def _budget_page(studio: Studio, request: Request, draft: DraftTable, messages: list[str]) -> Response:
    choices = draft.choices
    steps = {
        "epsilon": (words.EPSILONS, words.nearest_step(words.EPSILONS, choices.epsilon)),
        "delta": (words.DELTAS, words.nearest_step(words.DELTAS, choices.delta)),
    }
    exact = {
        name: "" if value in steps[name][0] else words.in_full(value)
        for name, value in (("epsilon", choices.epsilon), ("delta", choices.delta))
    }
    methods = [(one.name, one.summary, one.guarantee) for one in us.methods().values()]
    facts = _plan_facts(studio, draft, choices) | {"steps_of": steps, "exact": exact, "methods": methods}
    facts["columns"] = _names(draft)
    status = 422 if messages else 200
    return studio.page(request, "budget.html", status=status, step="Budget", messages=messages, **facts)


def _names(draft: DraftTable) -> tuple[str, ...]:
    """The columns of the draft's text, in its order; none while it is no YAML."""
    try:
        return tuple(one.name for one in us.Schema.edit(draft.text, "schema.yaml").columns)
    except us.errors.SchemaError:
        return ()


def planned(draft: DraftTable, choices: Choices | None = None, *, method: str = "") -> Any:
    """The plan of a run with the draft's choices, or with others; made without the table."""
    chosen = choices or draft.choices
    return us.plan(
        us.Schema.from_yaml(draft.schema_path), method=method or chosen.method, epsilon=chosen.epsilon,
        delta=chosen.delta, rows_hint=chosen.rows_hint,
    )  # fmt: skip


def _plan_facts(studio: Studio, draft: DraftTable, choices: Choices) -> dict[str, Any]:
    """What the choices mean, or why there is no plan for them."""
    facts: dict[str, Any] = {"choices": choices, "draft": draft, "plan": None, "blocks": "", "no_plan": []}
    facts["warnings"] = words.budget_warnings(choices.epsilon, choices.delta)
    facts["beliefs"] = words.belief_sentences(choices.epsilon, choices.delta, "a certain row")
    try:
        schema = us.Schema.from_yaml(draft.schema_path)
        whom = "a certain row" if schema.unit.column is None else "a certain person (all their rows together)"
        facts["beliefs"] = words.belief_sentences(choices.epsilon, choices.delta, whom)
        plan = planned(draft, choices)
        wanted = words.wanted_block(plan, _sizes(draft, choices), choices.matter, choices.rows_hint)
        blocks = [*([] if wanted is None else [wanted]), *words.plan_blocks(plan, choices.rows_hint)]
        facts |= {"plan": plan, "blocks": render_blocks(blocks)}
        facts |= {"memory": us.errors.size_text(plan.limit_bytes), "error": words.typical_error(plan)}
    except us.errors.UnderstudyError as error:
        facts["no_plan"] = studio.said(error)
    return facts


def _sizes(draft: DraftTable, choices: Choices) -> dict[str, int]:
    """Cells of every column, as the method says them that measures each by itself; none where it cannot be run."""
    if not choices.matter:
        return {}
    try:
        plan = planned(draft, choices, method="independent")
    except us.errors.UnderstudyError:
        return {}
    return {step.name.removeprefix("measure "): step.cells for step in plan.steps if step.name.startswith("measure ")}


def _plan(studio: Studio, request: Request) -> Response:
    draft = draft_of(studio, request)
    try:
        choices = _chosen(draft, form_of(request))
    except us.errors.UnderstudyError as error:
        return studio.page(request, "plan_refused.html", messages=studio.said(error))
    draft.choose(choices)  # whoever leaves the page by a link finds what they chose
    return studio.page(request, "plan.html", **_plan_facts(studio, draft, choices))


def _found_run(studio: Studio, request: Request) -> StudioRun:
    found: StudioRun = found_or_refused(studio.runs.find(request.path_params["key"]), "run")
    return found


def _run_facts(studio: Studio, run: StudioRun) -> dict[str, Any]:
    charged = ""
    doubtful = run.outcome == "interrupted" or (run.settings.get("resume") and run.outcome != "released")
    if doubtful and not run.working and run.settings.get("kind") == "release":
        try:
            charged = charged_since(run, studio.workspace.ledger())
        except us.errors.LedgerError as error:
            charged = " ".join(studio.said(error))
    release = Path(str(run.settings.get("out", ""))).name if run.settings.get("kind") == "release" else ""
    message = studio.workspace.without_root(str(run.end.get("message", "")))
    return {"run": run, "charged": charged, "message": message, "release_key": short_id(release) if release else ""}


def _show_run(studio: Studio, request: Request) -> Response:
    return studio.page(request, "run.html", step="Run", **_run_facts(studio, _found_run(studio, request)))


def _run_status(studio: Studio, request: Request) -> Response:
    return studio.page(request, "status.html", **_run_facts(studio, _found_run(studio, request)))


def _run_action(studio: Studio, request: Request) -> Response:
    run, action = _found_run(studio, request), request.path_params["action"]
    if action == "cancel":
        studio.runs.cancel(run)
    elif action == "resume" and run.outcome in RESUMABLE:
        studio.runs.resume(run)
    elif action == "forget" and not run.working:
        studio.runs.forget(run)
        return go_to("/")
    return go_to(f"/runs/{run.key}")
