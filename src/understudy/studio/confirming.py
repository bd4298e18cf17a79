"""The last page before a charge, and the press of its button: what one person agreed to is charged once.

The page says what will be charged to whom, and its form carries what that rests on: the terms (schema and budget), how
the ledger stood, and how many runs had been begun. Whoever presses first begins a run, which changes the last of these;
so every other page that was shown before, in another tab, to another person or in another studio of the same folder, is
refused with the name of that run, and has to be looked at again. A second press of the same button finds the run that
the first one began. All of it happens under the folder's lock, and the numbers of runs are never used again.
"""

import functools
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

import understudy as us
from understudy.studio import words
from understudy.studio.pages import Handler, Studio, draft_of, form_of, go_to, planned, schema_page
from understudy.studio.runs import StudioRun
from understudy.studio.workspace import Choices, DraftTable, Workspace, short_id

_RESERVED = set('/\\:*?"<>|')
_MOST_NAME, _MOST_NAME_BYTES = 80, 200
_MOST_NUMBERED = 10_000
_ROOM = 3
"""Runs like the one at hand for which a cap is proposed."""


def routes_of(studio: Studio) -> list[tuple[str, Handler, tuple[str, ...]]]:
    """Addresses of these pages."""
    return [
        ("/drafts/{key}/confirm", functools.partial(_confirm, studio), ("GET",)),
        ("/drafts/{key}/run", functools.partial(_run, studio), ("POST",)),
    ]


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What a person agrees to, and how things stood when they were asked."""

    terms: str
    ledger: str
    begun: str

    @classmethod
    def of(cls, studio: Studio, draft: DraftTable, text: str, choices: Choices) -> "Confirmation":
        """How it stands now, for a draft with this text and this budget."""
        ledger = studio.workspace.ledger()
        terms = f"{draft.key} {short_id(text)} {choices.epsilon!r} {choices.delta!r} {choices.method}"
        # Lines about how runs go on do not count: a training writes them all the time, and they cost nothing.
        lines = [] if ledger is None else [one for one in ledger.entries() if one.kind in ("dataset", "charge")]
        return cls(short_id(terms), short_id(lines[-1].hash) if lines else "new", str(studio.runs.begun))

    @property
    def text(self) -> str:
        """As a form carries it."""
        return ".".join(astuple(self))

    def check(self, shown: str, studio: Studio) -> None:
        """Raises UsageError unless this is what a page has shown, and says what has changed since."""
        if shown == self.text:
            return
        terms, _, begun = (*shown.split("."), "", "")[:3]
        rule = "the ledger was charged after this page was shown."
        if terms != self.terms:
            rule = "the schema or the budget was changed after this page was shown, perhaps in another tab."
        elif begun != self.begun:
            latest = next((run for run in studio.runs.all() if str(run.settings.get("number")) == self.begun), None)
            what = "another run" if latest is None else f"the run {latest.name!r}"
            rule = f"{what} was begun after this page was shown, perhaps in another tab or by somebody else."
        fix = "Nothing was charged now. Look at it again; if you confirm once more, that is charged in addition."
        raise us.errors.UsageError("run", rule, fix)


def _confirm(studio: Studio, request: Request) -> Response:
    return _page(studio, request, draft_of(studio, request), [])


def _page(studio: Studio, request: Request, draft: DraftTable, messages: list[str], *, status: int = 200) -> Response:
    """The charge in words, and a form that keeps what was typed before."""
    workspace, form = studio.workspace, form_of(request)
    try:
        schema, plan = us.Schema.from_yaml(draft.schema_path), planned(draft)
        ledger = workspace.ledger()
        datasets = {} if ledger is None else {name: ledger.balance(name) for name in ledger.datasets()}
        confirmation = Confirmation.of(studio, draft, draft.text, draft.choices)
    except us.errors.UnderstudyError as error:
        return schema_page(studio, request, draft, studio.said(error))
    typed = form.get("name", "")
    facts = {
        "draft": draft, "choices": draft.choices, "schema": schema, "plan": plan, "confirmed": confirmation.text,
        "datasets": datasets, "chosen": _usual_dataset(studio, draft, form, datasets),
        "own": _free_dataset(draft, datasets),
        "name": _free_name(studio, draft.name) if not typed or _is_taken(studio, typed.strip()) else typed,
        "caps": {name: form.get(name, "") for name in ("cap_epsilon", "cap_delta")},
        "room": words.several_runs(draft.choices.epsilon, draft.choices.delta, _ROOM),
        "at_work": [run for run in studio.runs.all() if run.working and run.kind == "release"],
        "where": workspace.without_root(str(workspace.ledger_path)),
    }  # fmt: skip
    return studio.page(request, "confirm.html", status=status, step="Run", messages=messages, **facts)


def _usual_dataset(studio: Studio, draft: DraftTable, form: Mapping[str, str], datasets: Mapping[str, Any]) -> str:
    """The dataset that a person has chosen or this table was charged to before; empty for a new one."""
    same = studio.workspace.same_file
    earlier = [
        run
        for run in studio.runs.all()
        if run.kind == "release" and same(str(run.settings.get("shown", "")), draft.table)
    ]
    proposed = (form.get("dataset", ""), *(str(run.settings["dataset"]) for run in earlier), draft.name)
    return next((one for one in proposed if one in datasets), "")


def _free_dataset(draft: DraftTable, datasets: Mapping[str, Any]) -> str:
    """A name for a dataset that the ledger does not have."""
    names = (draft.name, *(f"{draft.name}-{number}" for number in range(2, _MOST_NUMBERED)))
    return next(one for one in names if one not in datasets)


def _is_taken(studio: Studio, name: str) -> bool:
    return studio.runs.of_release(name) is not None or _exists(studio.workspace, name)


def _exists(workspace: Workspace, name: str) -> bool:
    """Whether the folder holds something of that name; nothing is looked at outside of it."""
    try:
        return (workspace.root / _release_name(name)).exists()
    except (OSError, ValueError):  # no name that a release could have
        return False


def _free_name(studio: Studio, name: str) -> str:
    """A name for a release that no folder and no earlier run has."""
    plain = "".join(letter if letter.isalnum() or letter in "-_ " else "-" for letter in name)[:40].strip("-_ ")
    numbers = (f"{plain or 'table'}-release-{number}" for number in range(1, _MOST_NUMBERED))
    return next(one for one in numbers if not _is_taken(studio, one))


def _run(studio: Studio, request: Request) -> Response:
    """Begins the run: what a person has confirmed is charged by the process, once."""
    draft, form = draft_of(studio, request), form_of(request)
    try:
        with studio.workspace.lock:
            return go_to(f"/runs/{_started(studio, draft, form).key}")
    except us.errors.UnderstudyError as error:
        return _page(studio, request, draft, studio.said(error), status=422)


def _started(studio: Studio, draft: DraftTable, form: Mapping[str, str]) -> StudioRun:
    # Read once: what is checked is what is run, also where an editor or another tab writes a draft meanwhile.
    workspace, text, choices = studio.workspace, draft.text, draft.choices
    name, confirmed = _release_name(form.get("name", "")), form.get("confirmed", "")
    known = studio.runs.of_release(name)
    if known is not None and known.settings.get("confirmed") == confirmed:
        return known  # a second press of the button
    Confirmation.of(studio, draft, text, choices).check(confirmed, studio)
    if known is not None:
        fix = "Choose another one, or remove that run from the list if it made no release."
        raise us.errors.UsageError("name", f"{name!r} is the name of another run.", fix)
    if _exists(workspace, name):
        raise us.errors.UsageError("name", f"{name!r} exists and is never overwritten.", "Choose another name.")
    plan = planned(draft)
    dataset = _dataset(workspace, draft, choices, form)
    ledger = us.Ledger.open(workspace.ledger_path)
    settings = {
        "kind": "release", "name": name, "table": workspace.absolute(draft.table), "shown": draft.table,
        "draft": draft.key, "confirmed": confirmed,
        "method": choices.method, "epsilon": choices.epsilon, "delta": choices.delta,
        "ledger": str(workspace.ledger_path), "dataset": dataset, "ledger_sequence": ledger.entries()[-1].sequence,
        "out": str(workspace.root / name), "seconds": plan.seconds,
    }  # fmt: skip
    return studio.runs.start(settings, text)


def _release_name(text: str) -> str:
    name = text.strip()
    fits = name.isprintable() and 0 < len(name) <= _MOST_NAME and not set(name) & _RESERVED and name[0] not in ".-"
    if not fits or len(name.encode()) > _MOST_NAME_BYTES:
        rule = f"must be 1 to {_MOST_NAME} letters, digits, spaces, - or _."
        raise us.errors.UsageError("name of the release", rule, "For example people-release-1.")
    return name


def _dataset(workspace: Workspace, draft: DraftTable, choices: Choices, form: Mapping[str, str]) -> str:
    """The dataset to charge; a new one is opened with the cap that was stated."""
    chosen = form.get("dataset", "").strip()
    ledger = workspace.ledger()
    known = () if ledger is None else ledger.datasets()
    if chosen in known:
        return chosen
    if chosen:
        raise us.errors.UsageError("dataset", "is not in the ledger.", "Choose one from the list.")
    cap, name = _cap(choices, form), _free_dataset(draft, dict.fromkeys(known))
    if ledger is None:
        us.Ledger.create(workspace.ledger_path, name, cap)
    else:
        ledger.add_dataset(name, cap)
    return name


def _cap(choices: Choices, form: Mapping[str, str]) -> "us.Budget":
    """The cap of a new dataset, which covers the run at hand."""
    try:
        cap = us.Budget(float(form.get("cap_epsilon", "")), float(form.get("cap_delta", "") or 0))
    except ValueError as error:
        fix = "State the most that all releases of this table together may spend, for example 3 and 1e-8."
        raise us.errors.UsageError(
            "cap", str(error) if isinstance(error, us.errors.UsageError) else "needs two numbers, for ε and for δ.", fix
        ) from error
    if cap.epsilon < choices.epsilon or cap.delta < choices.delta:
        raise us.errors.UsageError(
            "cap", "does not cover this run.", "State a cap that is at least this run's ε and δ."
        )
    return cap
