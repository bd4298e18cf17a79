"""Design: the public half of a run, settled before anything is charged or read.

Method, options, currency, the cost of every step and the memory it needs follow from the schema and the budget alone.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from understudy.errors import ResourceError, UsageError, nearest
from understudy.mechanisms.mechanism import Mechanism, Plan
from understudy.mechanisms.prepare import granted_cost, preparation_cost, preparation_steps, public_facts
from understudy.mechanisms.registry import currency_for, mechanism, resolve
from understudy.privacy.cost import Budget, Cost, Currency
from understudy.release.config import COPIES_MODES
from understudy.schema import Schema

__all__ = ["Copies", "Design", "Options", "check_disk", "check_memory", "plan"]

MOST_COPIES = 1_000
MEMORY_SHARE = 0.8
LEAST_DISK_BYTES = 2**24

Options = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Copies:
    """How many synthetic tables, whether each is measured anew, their rows (None: the noisy total) and the seed."""

    count: int = 1
    mode: str = "resample"
    rows: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if type(self.count) is not int or not 1 <= self.count <= MOST_COPIES:
            raise UsageError("copies", f"must be a whole number from 1 to {MOST_COPIES:,}, got {self.count!r}.")
        if self.mode not in COPIES_MODES:
            raise UsageError("copies mode", f"{self.mode!r} is not known.", nearest(str(self.mode), COPIES_MODES))
        if self.rows is not None and (type(self.rows) is not int or self.rows < 0):
            raise UsageError("rows", f"must be a whole number, 0 or more, got {self.rows!r}.")
        if type(self.seed) is not int or self.seed < 0:
            raise UsageError("seed", f"must be a whole number, 0 or more, got {self.seed!r}.")

    @property
    def runs(self) -> int:
        """How often the private table is measured."""
        return self.count if self.mode == "resanitize" else 1


@dataclass(frozen=True, slots=True)
class Design:
    """Method, budget and costs: `granted` for the whole release, `share` for each time the table is measured."""

    schema: Schema
    method: Mechanism
    currency: Currency
    budget: Budget
    granted: Cost
    share: Cost
    preparation: Mapping[str, Cost]
    rest: Cost
    plan: Plan

    @classmethod
    def of(
        cls,
        schema: Schema,
        method: str,
        budget: Budget,
        *,
        options: Options | None = None,
        runs: int = 1,
        rows_hint: int | None = None,
    ) -> "Design":
        """The design of a run, or the reason why there is none; reads nothing.

        Raises:
            UsageError: for an unknown method or option, or a budget too small for what is asked.
            ResourceError: if the method refuses the size of the domain.
        """
        recipe = mechanism(method, options)
        currency = currency_for(recipe, budget, schema)
        granted = granted_cost(schema, budget, currency)
        share = Cost(granted.epsilon // runs, granted.rho // runs, granted.delta // runs)
        preparation, rest = preparation_cost(schema, share)
        first = preparation_steps(schema, preparation)
        facts = public_facts(schema, rows_hint)
        body = recipe.plan(facts, rest)
        recipe = resolve(recipe, facts, rest)
        whole = replace(
            body,
            cost=sum((step.cost for step in first), body.cost),
            steps=(*first, *body.steps),
            cells=body.cells + sum(step.cells for step in first),
        )
        return cls(schema, recipe, currency, budget, granted, share, preparation, rest, whole)


def plan(
    schema: Schema,
    *,
    method: str = "auto",
    epsilon: float,
    delta: float = 0.0,
    rows_hint: int | None = None,
    options: Options | None = None,
) -> Plan:
    """What a run would ask, cost and need, from public facts alone: no table is opened and nothing is charged.

    Args:
        schema: what the table may contain.
        method: name of a synthesizer.
        epsilon: the budget's ε.
        delta: the budget's δ.
        rows_hint: a publicly known number of rows, for the estimates only.
        options: options of the method.
    """
    return Design.of(schema, method, Budget(epsilon, delta), options=options, rows_hint=rows_hint).plan


def check_memory(plan: Plan, memory_bytes: int | None) -> None:
    """Refuses a plan that needs more memory than given, or than most of the machine's when nothing is given.

    Raises:
        ResourceError: with both numbers; nothing was charged.
    """
    if memory_bytes is not None and (type(memory_bytes) is not int or memory_bytes < 1):
        raise UsageError("memory", f"must be a whole number of bytes above 0, got {memory_bytes!r}.")
    limit = _machine_bytes() if memory_bytes is None else memory_bytes
    if plan.bytes > limit:
        fix = "Declare fewer or coarser codes, choose another method, or allow more memory."
        raise ResourceError(f"method {plan.method}", plan.bytes, limit, fix)


def check_disk(plan: Plan, place: Path) -> None:
    """Refuses a plan whose answers and model would not fit on the disk that holds `place`.

    Raises:
        ResourceError: with both numbers; nothing was charged.
    """
    free = shutil.disk_usage(place).free
    needed = plan.bytes + LEAST_DISK_BYTES
    if needed > free:
        fix = "Free some space or choose another disk."
        raise ResourceError(f"disk of output folder for method {plan.method}", needed, free, fix)


def _machine_bytes() -> int:
    return int(MEMORY_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
