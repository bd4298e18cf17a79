"""`understudy plan`: what a run would ask, cost and need, found out without any data."""

from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.console import Debug, Quiet, Shell, shell
from understudy.cli.options import (
    Delta,
    Epsilon,
    Json,
    Memory,
    Method,
    PublicTable,
    SchemaFile,
    Settings,
    memory_bytes,
    pairs,
)
from understudy.errors import ResourceError, size_text

if TYPE_CHECKING:
    from understudy.mechanisms.mechanism import Plan
    from understudy.privacy.cost import Cost

__all__ = ["plan"]

MOST_STEPS = 40


def plan(
    schema: SchemaFile,
    epsilon: Epsilon,
    delta: Delta = 0.0,
    method: Method = "auto",
    settings: Settings = None,
    *,
    rows_hint: Annotated[
        int | None, typer.Option("--rows-hint", help="A public guess of the rows, for time, memory and notes only.")
    ] = None,
    public: PublicTable = None,
    memory: Memory = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Shows cells, memory, time, split of the budget and expected error. Reads no private table, spends nothing."""
    with shell(quiet=quiet, debug=debug) as place:
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
        )
        limit = memory_bytes(memory)
        if as_json:
            place.json(_document(made))
        else:
            _show(place, made, (epsilon, delta), rows_hint)
        if limit is not None and made.bytes > limit:
            raise ResourceError("plan", made.bytes, limit, "Raise --memory, choose another method or coarser bins.")


def _show(place: Shell, plan: "Plan", promised: tuple[float, float], rows_hint: int | None) -> None:
    from understudy.mechanisms.forecast import ROWS_UNKNOWN
    from understudy.privacy.cost import Budget, Cost

    budget = Budget(*promised)

    rows = ROWS_UNKNOWN if rows_hint is None else rows_hint
    facts = [
        ["method", plan.method],
        ["promise", str(Cost(epsilon=budget.epsilon_units, delta=budget.delta_units))],
        ["spent as", str(plan.cost)],
        ["cells to measure", f"{plan.cells:,}"],
        ["memory", f"{size_text(plan.bytes)} beyond the program itself, for {rows:,} rows"],
        ["time", f"about {plan.seconds:,.1f} CPU s for {rows:,} rows"],
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
        place.line(f"Note: {note}")
    if plan.refused:
        place.line(f"No privacy claim: {plan.refused}")


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
        "seconds": plan.seconds,
        "steps": steps,
        "notes": list(plan.notes),
        "refused": plan.refused,
        "options": dict(plan.options),
    }


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}"
