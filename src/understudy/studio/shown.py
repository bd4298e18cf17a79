"""The pages that show what there is: home, releases, the confidential comparison, the ledger.

A release page holds what the release folder holds, and is made from it alone. What would have made it on a command line
and in Python stands there as somebody would type it, with the options that are not the usual ones. Comparisons with the
private table lie in a folder of their own, are shown on pages of their own that say so, and no release page links into
them.
"""

import functools
import importlib.util
import json
import shlex
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

import understudy as us
from understudy.report import TextTable, render_blocks, style_text
from understudy.studio.guard import CARD_HEADERS, REPORT_POLICY, RefusedRequest
from understudy.studio.pages import Handler, Studio, form_of, found_or_refused, go_to
from understudy.studio.runs import StudioRun
from understudy.studio.words import in_full
from understudy.studio.workspace import CARD_FILE, RELEASE_FILE, read_json, short_id

FORMS = {
    "zip": ("The whole release folder (zip)", ""),
    "parquet": ("Synthetic rows as Parquet", ""),
    "csv": ("Synthetic rows as CSV", ""),
    "xlsx": ("Synthetic rows as an Excel workbook", "openpyxl"),
    "dta": ("Synthetic rows for Stata", "pyreadstat"),
    "sav": ("Synthetic rows for SPSS", "pyreadstat"),
}
_STATIC = {
    "htmx.js": ("htmx.min.js", "text/javascript"),
    "studio.js": ("studio.js", "text/javascript"),
    "studio.css": ("studio.css", "text/css"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
}
_PREVIEW_ROWS, _MOST_LINES, _MOST_ASKED = 20, 200, 3
_CHUNK = 1 << 18


def routes_of(studio: Studio) -> list[tuple[str, Handler, tuple[str, ...]]]:
    """Addresses of these pages; a read-only studio has those of releases alone."""
    get, post = ("GET",), ("POST",)
    pages: list[tuple[str, Callable[[Studio, Request], Response], tuple[str, ...]]] = [
        ("/", _home, get),
        ("/static/{name}", _static, get),
        ("/releases/{key}", _release, get),
        ("/releases/{key}/card", _card, get),
        ("/releases/{key}/download/{form}", _download, get),
    ]
    if not studio.doors.read_only:
        pages += [
            ("/accounts", _accounts, get),
            ("/releases/{key}/compare", _compare, post),
            ("/confidential", _confidential, get),
            ("/confidential/{key}/report", _report, get),
            ("/confidential/{key}/tables/{name}", _numbers, get),
            ("/ledger", _ledger, get),
            ("/ledger/export", _export, get),
        ]
    return [(place, functools.partial(page, studio), methods) for place, page, methods in pages]


def _static(_: Studio, request: Request) -> Response:
    name, kind = found_or_refused(_STATIC.get(request.path_params["name"]), "file")
    text = (Path(__file__).parent / "static" / name).read_text(encoding="utf-8")
    if name == "studio.css":
        text = f"{style_text()}\n{text}"
    return Response(text, media_type=f"{kind}; charset=utf-8", headers={"cache-control": "private, max-age=300"})


def _home(studio: Studio, request: Request) -> Response:
    releases = [{"key": key, "name": path.name, **_stated(path)} for key, path in studio.workspace.releases().items()]
    facts: dict[str, Any] = {"releases": releases, "drafts": [], "thrown": [], "runs": []}
    if not studio.doors.read_only:
        facts["runs"] = [run for run in studio.runs.all() if run.outcome not in ("released", "compared", "tried")]
        facts["drafts"] = studio.workspace.drafts()
        facts["thrown"] = studio.workspace.drafts(thrown_away=True)
    return studio.page(request, "home.html", empty=not any(facts.values()), **facts)


def _stated(path: Path) -> dict[str, str]:
    """What a list says of a release, without checking it: title, method and claim."""
    said = read_json(path / RELEASE_FILE)
    epsilon, delta_value = (_stated_number(said.get(name)) for name in ("epsilon", "delta"))
    claim = "no privacy claim" if epsilon is None else f"ε = {in_full(epsilon)}"
    delta = f", δ = {in_full(delta_value)}" if delta_value else ""
    return {"title": str(said.get("title") or ""), "claim": claim + delta, "date": str(said.get("date") or "")}


def _stated_number(value: object) -> float | None:
    """A number as a float; None for what is none, or is too large to be one."""
    with suppress(OverflowError):
        return float(value) if isinstance(value, int | float) else None
    return None


def _accounts(studio: Studio, request: Request) -> Response:
    """What every dataset of the ledger has spent and has left: a part of the home page, which comes a moment later."""
    return studio.page(request, "accounts.html", **_ledger_facts(studio))


def _ledger_facts(studio: Studio) -> dict[str, Any]:
    facts: dict[str, Any] = {"gauges": [], "charges": [], "problems": [], "trouble": [], "head": ""}
    facts["where"] = studio.workspace.without_root(str(studio.workspace.ledger_path))
    try:
        ledger = studio.workspace.ledger()
        if ledger is None:
            return facts
        facts["gauges"] = [_gauge(name, ledger.balance(name)) for name in ledger.datasets()]
        facts["charges"] = _charges(ledger)
        facts["problems"] = [str(one) for one in ledger.verify()]
        facts["head"] = ledger.head()
    except us.errors.LedgerError as error:
        facts["trouble"] = studio.said(error)
    return facts


def _gauge(name: str, balance: Any) -> dict[str, Any]:
    """A dataset's cap, spending and rest, and the larger share of the limit that is spent."""
    pairs = [
        (balance.spent.epsilon, balance.limit.epsilon),
        (balance.spent.rho, balance.limit.rho),
        (balance.spent.delta, balance.limit.delta),
    ]
    share = max((spent / whole for spent, whole in pairs if whole), default=0.0)
    amounts = {"cap": str(balance.cap), "spent": str(balance.claim()), "left": str(balance.left)}
    return {"name": name, "share": share, "charges": balance.releases, "composition": balance.composition, **amounts}


def _charges(ledger: Any) -> list[dict[str, str]]:
    entries = ledger.entries()
    outcomes = {one.run: one.outcome for one in entries if one.kind == "finish"}
    return [
        {
            "made": one.made[:10],
            "dataset": one.dataset,
            "run": one.run[:8],
            "method": one.method,
            "claim": str(us.Cost(epsilon=one.budget_epsilon, delta=one.budget_delta)),
            "state": outcomes.get(one.run, "interrupted or still running"),
        }
        for one in entries
        if one.kind == "charge"
    ]


def _ledger(studio: Studio, request: Request) -> Response:
    return studio.page(request, "ledger.html", **_ledger_facts(studio))


def _export(studio: Studio, _: Request) -> Response:
    """Every line of the ledger as JSON lines; each dataset's lines verify on their own."""
    try:
        ledger = found_or_refused(studio.workspace.ledger(), "ledger")
        lines = [entry.to_json() for entry in ledger.entries()]
    except us.errors.LedgerError as error:
        raise RefusedRequest(409, " ".join(studio.said(error))) from error
    text = "".join(f"{json.dumps(line, sort_keys=True)}\n" for line in lines)
    return Response(text, media_type="application/jsonl", headers=_attached("ledger.jsonl"))


def _attached(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}


def _folder(studio: Studio, request: Request) -> Path:
    found: Path = found_or_refused(studio.workspace.releases().get(request.path_params["key"]), "release")
    return found


def _release(studio: Studio, request: Request) -> Response:
    folder = _folder(studio, request)
    problems = [str(one) for one in us.verify(folder)]
    facts: dict[str, Any] = {"key": request.path_params["key"], "name": folder.name, "release": None}
    facts |= {"problems": [studio.workspace.without_root(one) for one in problems], "forms": _forms(), "messages": []}
    if not problems:
        try:
            facts |= _shown_release(studio, us.Release.load(folder), request)
        except us.errors.UnderstudyError as error:
            facts["problems"] = studio.said(error)
    return studio.page(request, "release.html", step="Release", **facts)


def _shown_release(studio: Studio, release: Any, request: Request) -> dict[str, Any]:
    known = _known(studio, release.folder)
    place = f"{release.folder.name}/data.parquet"
    rows = release.sample(_PREVIEW_ROWS, seed=release.config.seed)
    columns = release.schema.names  # by their numbers: names of columns stand in no address
    asked = [int(one) for one in request.query_params.getlist("column") if one.isdecimal() and len(one) < 6]
    names, told, table = [columns[one] for one in asked if one < len(columns)], "", ""
    if len(names) > _MOST_ASKED:
        told = f"At most {_MOST_ASKED} columns can be counted together. Clear some of the boxes."
    elif names:
        try:
            table = _as_table(release.stats(names), f"Counts of {', '.join(names)}, with their errors")
        except us.errors.UnderstudyError as error:
            told = " ".join(studio.said(error))
    return {
        "release": release,
        "preview": _as_table(rows, "Rows drawn from the released model, not copied from people"),
        "asked": asked,
        "told": told,
        "statistics": table,
        "measured": _as_table(release.stats(), "What was measured with noise"),
        "command_line": _command_line(release, known),
        "python_call": _python_call(release, known),
        "folder_in_python": repr(place),
        "folder_in_r": json.dumps(place, ensure_ascii=False),
        "folder_in_sql": "'" + place.replace("'", "''") + "'",
    }


def _command_line(release: Any, known: Mapping[str, str]) -> str:
    """The command that would do the same once more, into a folder of another name."""
    said = {"schema": f"{release.folder.name}/schema.yaml", **_settings(release, known)}
    pairs = [(name.replace("_", "-"), str(value)) for name, value in said.items()]
    pairs += [("set", f"{name}={value}") for name, value in _options(release.config).items()]
    words = [word for name, value in [*pairs, ("out", "RELEASE")] for word in (f"--{name}", value)]
    return shlex.join(["understudy", "synthesize", known.get("table", "TABLE"), *words])


def _python_call(release: Any, known: Mapping[str, str]) -> str:
    """The call that would do the same once more."""
    given = {**_settings(release, known), "out": "RELEASE"}
    options = _options(release.config)
    said = "".join(f"    {name}={value!r},\n" for name, value in given.items())
    said += f"    options={options!r},\n" if options else ""
    table, schema = known.get("table", "TABLE"), f"{release.folder.name}/schema.yaml"
    return f"release = us.synthesize(\n    {table!r},\n    {schema!r},\n{said})"


def _settings(release: Any, known: Mapping[str, str]) -> dict[str, object]:
    """What is named however it is typed, in the order in which one thinks of it."""
    config = release.config
    found: dict[str, object] = {"method": config.method, "epsilon": config.epsilon, "delta": config.delta}
    if config.rows_from == "given":
        found["rows"] = config.rows[0]
    if config.copies > 1:
        found |= {"copies": config.copies, "copies_mode": config.copies_mode}
    return (
        found
        | {"ledger": known.get("ledger", "ledger.db")}
        | {name: value for name, value in known.items() if name == "dataset"}
    )


def _options(config: Any) -> dict[str, object]:
    method = us.methods().get(config.method)
    usual = {} if method is None else {one.name: one.default for one in method.options}
    return {
        name: value
        for name, value in config.options.items()
        if value is not None and (name not in usual or usual[name] != value)
    }


def _as_table(frame: Any, caption: str) -> str:
    """The first rows of a table of public values as HTML."""
    header = tuple(str(name) for name in frame.column_names)
    rows = frame.slice(0, _MOST_LINES).to_pylist()
    if frame.num_rows > _MOST_LINES:
        caption = f"{caption}: the first {_MOST_LINES} of {frame.num_rows:,} lines"
    cells = tuple(tuple(_cell(row[name]) for name in frame.column_names) for row in rows)
    return render_blocks([TextTable(header, cells, caption=caption)])


def _cell(value: object) -> str:
    if value is None:
        return "—"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def _known(studio: Studio, folder: Path) -> dict[str, str]:
    """Names of the table, the ledger and the dataset, where this studio made the release; not told to mere readers."""
    made = None if studio.doors.read_only else studio.runs.of_release(folder.name)
    if made is None:
        return {}
    ledger = studio.workspace.without_root(str(made.settings.get("ledger", "ledger.db")))
    return {"table": str(made.settings["shown"]), "ledger": ledger, "dataset": str(made.settings["dataset"])}


def _forms() -> dict[str, str]:
    """The downloads that this installation can make."""
    return {form: text for form, (text, needs) in FORMS.items() if not needs or importlib.util.find_spec(needs)}


def _card(studio: Studio, request: Request) -> Response:
    path = _folder(studio, request) / CARD_FILE
    if path.is_symlink() or not path.is_file():
        raise RefusedRequest(404, "This release has no card.")
    text = path.read_bytes()
    return Response(text, media_type="text/html; charset=utf-8", headers=CARD_HEADERS)


def _download(studio: Studio, request: Request) -> Response:
    folder, form = _folder(studio, request), request.path_params["form"]
    if form not in _forms():
        raise RefusedRequest(404, "There is no such download here.")
    place = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed, and so removed, when it was sent
    try:
        if form == "zip":
            _write_zip(folder, place)
        else:
            release = us.Release.load(folder)
            with tempfile.TemporaryDirectory() as drafts:
                target = Path(drafts) / f"rows.{form}"
                release.sample_to(target, seed=release.config.seed)
                with target.open("rb") as written:
                    while piece := written.read(_CHUNK):
                        place.write(piece)
    except us.errors.UnderstudyError as error:
        place.close()
        raise RefusedRequest(409, " ".join(studio.said(error))) from error
    place.seek(0)
    name = "release.zip" if form == "zip" else f"synthetic-rows.{form}"
    return StreamingResponse(_pieces(place), media_type="application/octet-stream", headers=_attached(name))


def _write_zip(folder: Path, target: Any) -> None:
    """The files of a release folder, those of its sub-folders too; links are left out."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                packed.write(path, f"release/{path.relative_to(folder).as_posix()}")


def _pieces(stream: Any) -> Iterator[bytes]:
    with stream:
        while piece := stream.read(_CHUNK):
            yield piece


def _compare(studio: Studio, request: Request) -> Response:
    """Begins a comparison with the private table, in a process and a folder of its own."""
    folder = _folder(studio, request)
    made = studio.runs.of_release(folder.name)
    table = None if made is None else made.settings.get("table")
    if table is None:
        text = "Which table this release was made from is not known here, so it cannot be compared in the studio."
        raise RefusedRequest(409, f"{text} `understudy evaluate TABLE RELEASE` does it.")
    place = studio.workspace.kept / "confidential"
    place.mkdir(mode=0o700, exist_ok=True)
    quick = form_of(request).get("how", "quick") == "quick"
    name = folder.name if quick else f"{folder.name}, all scores"
    out = place / short_id(f"comparison:{name}")
    settings = {
        "kind": "comparison", "name": name, "of": folder.name, "table": table, "release": str(folder), "out": str(out),
        "quick": quick, "seconds": None,
    }  # fmt: skip
    return go_to(f"/runs/{studio.runs.start(settings).key}")


def _comparisons(studio: Studio) -> list[StudioRun]:
    return [run for run in studio.runs.all() if run.settings.get("kind") == "comparison"]


def _confidential(studio: Studio, request: Request) -> Response:
    comparisons = _comparisons(studio)
    begun = {(_release_of(run), bool(run.settings.get("quick"))) for run in comparisons}
    made = {run.name for run in studio.runs.all() if run.kind == "release"}
    releases = {key: path.name for key, path in studio.workspace.releases().items() if path.name in made}
    # All scores hold the main ones too, so after them nothing is left to compare.
    waiting = {
        key: (name, (name, True) not in begun) for key, name in releases.items() if (name, False) not in begun
    }  # fmt: skip
    return studio.page(request, "confidential.html", comparisons=comparisons, waiting=waiting)


def _release_of(run: StudioRun) -> str:
    """The release that is compared; a comparison of an earlier version has its name alone."""
    return str(run.settings.get("of", run.name))


def _report(studio: Studio, request: Request) -> Response:
    page = _compared(studio, request) / "report.html"
    if not page.is_file():
        raise RefusedRequest(404, "This comparison has not ended yet.")
    headers = {"content-security-policy": REPORT_POLICY}
    return Response(page.read_bytes(), media_type="text/html; charset=utf-8", headers=headers)


def _numbers(studio: Studio, request: Request) -> Response:
    """A table of numbers behind a report, which links to it."""
    folder, name = _compared(studio, request) / "tables", request.path_params["name"]
    if not folder.is_dir() or name not in {path.name for path in folder.iterdir()}:
        raise RefusedRequest(404, "There is no such table here.")
    return Response((folder / name).read_bytes(), media_type="text/csv", headers=_attached("CONFIDENTIAL-numbers.csv"))


def _compared(studio: Studio, request: Request) -> Path:
    run = next((one for one in _comparisons(studio) if one.key == request.path_params["key"]), None)
    return Path(str(found_or_refused(run, "comparison").settings["out"]))
