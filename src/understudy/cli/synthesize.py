"""`understudy synthesize` and `understudy plan`: from a private table to a release folder, and what that would cost."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli.console import Debug, Quiet, Shell, in_flags, shell
from understudy.cli.options import (
    CheckShare,
    Copies,
    CopiesMode,
    CriteriaFile,
    Dataset,
    Delta,
    Epsilon,
    Json,
    LedgerFile,
    Memory,
    Method,
    NewFolder,
    OptionalTable,
    PublicTable,
    Resume,
    RowCount,
    SchemaFile,
    SecondFile,
    Seed,
    Settings,
    Table,
    memory_bytes,
    note_lines,
    pairs,
    reads_table,
)
from understudy.errors import ResourceError, UsageError, size_text
from understudy.progress import standing

if TYPE_CHECKING:
    from understudy.methods.method import Plan
    from understudy.privacy.cost import Cost
    from understudy.release import Release, Statement
    from understudy.schema import Schema

RowsHint = Annotated[
    int | None,
    typer.Option("--rows-hint", help="Public guess at the number of rows, for time, memory and notes only."),
]
LARGE_TABLE = 1_000_000
"""Rows of a table for which noise is judged where nobody says how many there may be."""
Yes = Annotated[
    bool,
    typer.Option(
        "--yes",
        help="Go on although ε is so large that it protects almost nobody, or so small that the noise hides the table.",
    ),
]
READING = "docs/schema.md says how values are read. Text must be in the declared encoding."


@reads_table("table")
def synthesize(
    table: Table,
    schema: SchemaFile,
    epsilon: Epsilon,
    out: NewFolder,
    delta: Delta = 0.0,
    *,
    method: Method = "auto",
    rows: RowCount = None,
    copies: Copies = 1,
    copies_mode: CopiesMode = "resample",
    ledger: LedgerFile = None,
    dataset: Dataset = None,
    public: PublicTable = None,
    settings: Settings = None,
    check_share: CheckShare = None,
    criteria: CriteriaFile = None,
    seed: Seed = None,
    memory: Memory = None,
    resume: Resume = False,
    rows_file: SecondFile = None,
    rows_hint: RowsHint = None,
    as_json: Json = False,
    yes: Yes = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Makes a release: checks everything public, charges the budget, measures with noise, draws and writes rows.

    Up to the charge only column names are read, and a mistake costs nothing. After it no row can stop the run.
    """
    with shell("synthesize", quiet=quiet, debug=debug, as_json=as_json, charges=True) as place:
        with place.running() as progress:  # from the first second, so before the heavy imports
            from understudy.synthesizer import synthesize as make_release

            known = _read(schema, ledger, dataset)
            _check_rows_file(rows_file, known, rows, out)
            asked: dict[str, Any] = {"method": method, "epsilon": epsilon, "delta": delta, "public": public}
            asked |= {"check_share": check_share, "criteria": criteria, "options": pairs("--set", settings)}
            progress.expect(_planned(place, known, asked, rows_hint, yes=yes))
            release = make_release(
                table, known, **asked, rows=rows, copies=copies, copies_mode=copies_mode, ledger=ledger, seed=seed,
                dataset=dataset, out=out, memory_bytes=memory_bytes(memory), resume=resume, progress=progress,
            )  # fmt: skip
        if rows_file is not None:
            release.sample_to(rows_file, seed=release.config.seed)
        place.json(release_document(release, out) | {"rows_file": rows_file and str(rows_file)})
        show_release(place, release, out, ledger, resumed=resume or not standing().is_charged)
        note_lines(place, table, known)


def _check_rows_file(path: Path | None, schema: "Schema", rows: int | None, out: Path) -> None:
    """Refuses a second file, if one is wanted, that could not be written, before anything is charged."""
    if path is None:
        return
    from understudy.release.files import WORKBOOK
    from understudy.release.release import check_rows_file

    if rows is None and path.suffix.lower() == WORKBOOK:
        rule = "a sheet holds 1,048,575 rows, and the number of synthetic rows is known only after the run."
        raise UsageError("--rows-file", rule, "Give --rows too, or another suffix.")
    if out.absolute() in (path.absolute(), *path.absolute().parents):
        rule = "lies in the release folder, which holds what was released and nothing else."
        raise UsageError("--rows-file", rule, "Write it elsewhere.")
    check_rows_file(path, schema, rows or 0)


def _show_account(place: Shell, release: "Release", ledger: Path, *, resumed: bool) -> None:
    """Which dataset was charged, how much, and what is left of its cap by now."""
    from understudy.privacy.cost import Cost
    from understudy.privacy.ledger import Ledger

    statement = release.statement
    budget = Cost(epsilon=statement.budget.epsilon_units, delta=statement.budget.delta_units)
    said = "Continued under the charge" if resumed else "Charged"
    dataset = statement.ledger.dataset or ""
    left = Ledger.open(ledger).balance(dataset).left
    place.line(f"{said} to {dataset!r} in {ledger}: {budget}; left: {left}.")


def _planned(
    place: Shell, schema: "Schema", asked: Mapping[str, Any], rows_hint: int | None, *, yes: bool
) -> float | None:
    """Seconds by the plan; refuses a budget that protects hardly anybody or leaves nothing, unless that is meant.

    How many rows there are is private: what noise would drown is judged by a public guess, or for a large table.
    """
    from understudy.privacy.cost import Budget
    from understudy.synthesizer import plan
    from understudy.synthesizer.design import drowned_remark, hazards

    if yes and not place.watched:
        return None
    found = list(hazards(Budget(asked["epsilon"], asked["delta"]), schema.unit, rows_hint))
    made = None if found and not yes else plan(schema, rows_hint=rows_hint, **asked)
    drowned = "" if made is None else drowned_remark(made, rows_hint or LARGE_TABLE)
    found += [drowned] if drowned else []
    if found and not yes:
        raise UsageError("budget", " ".join(found), "Change the budget, or give --yes if that is what you want.")
    return None if made is None else made.seconds


def _read(schema: Path, ledger: Path | None, dataset: str | None) -> "Schema":
    """The schema, if the other options go together."""
    if dataset is not None and ledger is None:
        raise UsageError("--dataset", "names a dataset of a ledger.", "Give --ledger too.")
    from understudy.schema import Schema

    return Schema.from_yaml(schema)


def release_document(release: "Release", folder: Path) -> dict[str, object]:
    """What was made, for programs; the whole statement is in the folder."""
    from understudy.release.statement import statement_document

    statement = release.statement
    return {
        "release": str(folder),
        "run": statement.run,
        "method": statement.method,
        "rows": list(release.config.rows),
        "columns": [column.name for column in release.schema.columns],
        "epsilon": statement.epsilon,
        "delta": statement.delta,
        "promise": statement.promise,
        "dataset": statement.ledger.dataset,
        "remarks": [*(odd.text for odd in statement.odd), *filter(None, [release.config.remark])],
        "left_out": list(statement.left_out),
        "check": statement_document(statement).get("check"),
    }


def show_release(
    place: Shell, release: "Release", folder: Path, ledger: Path | None = None, *, resumed: bool = False
) -> None:
    """What was made, from public facts alone."""
    from understudy.release.wording import UNREAD

    statement = release.statement
    rows = ", ".join(f"{count:,}" for count in release.config.rows)
    place.line(f"Release: {folder} ({rows} synthetic rows, method {statement.method})")
    place.line(statement.promise)
    place.line(statement.odds)
    if ledger is not None:
        _show_account(place, release, ledger, resumed=resumed)
    show_check(place, statement)
    for odd in statement.odd:
        place.line(f"Please check: {odd.text}")
    if any(odd.meaning in UNREAD for odd in statement.odd):
        place.note(READING)
    if statement.left_out:
        place.note(f"Not in the schema, so left out: {', '.join(statement.left_out)}.")
    if statement.ledger.dataset is None:
        place.note("No ledger given: track this table's total privacy loss yourself.")
    place.note(f"Read {folder / 'statement.md'}, then check the folder: understudy verify {folder}")


def show_check(place: Shell, statement: "Statement") -> None:
    """The verdicts, or what is known of the largest distances, where a part of the budget was held back."""
    check = statement.check
    if check is None:
        return
    for one in check.verdicts:
        place.line(f"Criterion {one.text}")
    furthest = max(check.distances, key=lambda one: one.upper, default=None)
    if furthest is not None and not check.verdicts:
        name, bounds = " × ".join(furthest.columns), f"{furthest.lower:.3f} to {furthest.upper:.3f}"
        place.line(f"Largest distance from the private table that is consistent with the check: {bounds} ({name}).")


MOST_STEPS = 40


def plan(
    schema: SchemaFile,
    epsilon: Epsilon,
    table: OptionalTable = None,
    delta: Delta = 0.0,
    method: Method = "auto",
    settings: Settings = None,
    *,
    rows_hint: RowsHint = None,
    public: PublicTable = None,
    check_share: CheckShare = None,
    criteria: CriteriaFile = None,
    memory: Memory = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Shows cells, memory, time, split of the budget and expected error. Reads no private row and spends nothing."""
    with shell("plan", quiet=quiet, debug=debug, as_json=as_json) as place:
        from understudy.schema import Schema
        from understudy.synthesizer import plan as make_plan

        made = make_plan(
            Schema.from_yaml(schema),
            method=method,
            epsilon=epsilon,
            delta=delta,
            options=pairs("--set", settings),
            rows_hint=rows_hint,
            public=public,
            data=table,
            check_share=check_share,
            criteria=criteria,
        )
        limit = memory_bytes(memory)
        if as_json:
            place.json(_document(made))
        else:
            _show(place, made, (epsilon, delta), rows_hint)
        if limit is not None and made.limit_bytes > limit:
            raise ResourceError(
                "plan", made.limit_bytes, limit, "Raise --memory, choose another method or coarser bins."
            )


def _show(place: Shell, plan: "Plan", promised: tuple[float, float], rows_hint: int | None) -> None:
    from understudy.methods.method import ROWS_UNKNOWN
    from understudy.privacy.cost import Budget, Cost

    budget = Budget(*promised)

    rows = ROWS_UNKNOWN if rows_hint is None else rows_hint
    facts = [
        ["method", plan.method],
        ["promise", str(Cost(epsilon=budget.epsilon_units, delta=budget.delta_units))],
        ["spent as", str(plan.cost)],
        ["cells to measure", f"{plan.cells:,}"],
        *_needed(plan, f"{rows:,} rows" if rows_hint is not None else f"{rows:,} rows (assumed; set by --rows-hint)"),
    ]
    place.table(["", ""], facts, title="Plan (made without private data)")
    lines = [
        [step.name, str(step.cost), f"{step.cells:,}", _number(step.noise_scale), _number(step.expected_error)]
        for step in plan.steps[:MOST_STEPS]
    ]
    place.table(["step", "cost", ">cells", ">noise scale", ">expected error, rows"], lines)
    if len(plan.steps) > MOST_STEPS:
        place.line(f"… and {len(plan.steps) - MOST_STEPS:,} more steps; --json lists them all.")
    for note in plan.notes:
        place.line(f"Note: {in_flags(note)}")
    if plan.refused:
        place.line(f"No privacy claim: {plan.refused}")


def _needed(plan: "Plan", rows: str) -> list[list[str]]:
    """Memory and time, each with its other end where noisy answers decide."""
    lines = [["memory", f"about {size_text(plan.bytes)} beyond the program itself, for {rows}"]]
    if plan.limit_bytes > plan.bytes:
        lines.append(["", f"at most {size_text(plan.limit_bytes)}; --memory must be at least that"])
    if plan.temporary_bytes:
        lines.append(["disk", f"about {size_text(plan.temporary_bytes)} of codes in a temporary file without a name"])
    lines.append(["time", f"about {plan.seconds:,.1f} CPU s"])
    least, most = (f"{end:,.1f}" for end in plan.span or (plan.seconds, plan.seconds))
    if least != most:
        lines.append(["", f"from {least} to {most} CPU s, depending on how strongly columns are related"])
    return lines


def _document(plan: "Plan") -> dict[str, object]:
    from understudy.privacy.cost import DELTA_UNIT, UNIT

    def cost(one: "Cost") -> dict[str, float]:
        return {"epsilon": one.epsilon / UNIT, "rho": one.rho / UNIT, "delta": one.delta / DELTA_UNIT}

    steps = [
        {
            "name": step.name,
            "cost": cost(step.cost),
            "cells": step.cells,
            "noise_scale": step.noise_scale,
            "expected_error": step.expected_error,
        }
        for step in plan.steps
    ]
    return {
        "method": plan.method,
        "cost": cost(plan.cost),
        "cells": plan.cells,
        "bytes": plan.bytes,
        "most_bytes": plan.limit_bytes,
        "reads": plan.reads,
        "code_bytes": plan.code_bytes,
        "temporary_bytes": plan.temporary_bytes,
        "seconds": plan.seconds,
        "span": list(plan.span or (plan.seconds, plan.seconds)),
        "steps": steps,
        "notes": list(plan.notes),
        "refused": plan.refused,
        "options": dict(plan.options),
    }


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}"
