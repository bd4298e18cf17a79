"""Design: the public half of a run, fixed before anything is charged or read.

Method, options, currency, the cost of every step and the memory it needs follow from the schema and the budget alone.

A public table must hold every column of the private one, or all but those that a method calls private (`not_public`: a
method that labels public records); what cannot do without a public table says so (`check_without_public`).

One structure for all copies
----------------------------
Copies that are measured anew share the budget in equal parts. A method that chooses a structure first (a tree, say) may
choose it once for all of them: its share of the whole budget is spent in the first run, together with fixing open
labels and bins, and the rest is shared by the runs. The parts add up to what was granted, and each run is granted no
more than its part. The structure is made of answers that were paid for, so using it again costs nothing.

A check of the finished rows takes its share of what is granted before anything else is shared (`release/check.py`).
"""

import math
import os
import resource
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from understudy.counts.opening import open_table
from understudy.counts.readers import StreamedTable
from understudy.errors import ResourceError, UsageError, nearest, size_text
from understudy.methods.method import (
    KEPT_ROWS_BYTES,
    Method,
    Plan,
    PublicFacts,
    Step,
    currency_for,
    expected_absolute,
    method_named,
    seconds_for,
    with_rows,
)
from understudy.methods.preparation import granted_cost, preparation_cost, preparation_steps, public_facts
from understudy.privacy.composition import tight_epsilon, tight_factor
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget, Cost, Currency, distribution_for
from understudy.release.check import CheckPlan
from understudy.release.criteria import Criterion, read_criteria
from understudy.release.release import COPIES_MODES, LARGEST_SEED, MOST_COPIES, present_mode
from understudy.release.statement import digest_of
from understudy.schema import Schema, Unit, code_names
from understudy.schema.schema import without_columns
from understudy.schema.yaml_text import schema_to_text


@dataclass(frozen=True, slots=True)
class OneStructure:
    """Costs of a run with one structure, and its plan, whose first `once` steps are asked in the first run only."""

    preparation: Mapping[str, Cost]
    structure: Cost
    share: Cost
    plan: Plan
    once: int


def one_structure(method: Method, schema: Schema, facts: PublicFacts, granted: Cost, runs: int) -> OneStructure | None:
    """How the cost is shared if the method fixes one structure for several runs; None if it does not."""
    halves = method.structured
    if runs < 2 or halves is None:
        return None
    preparation, rest = preparation_cost(schema, granted)
    structure = halves.structure_cost(facts, rest)
    if structure == Cost():
        return None
    left = rest - structure
    each = Cost(left.epsilon // runs, left.rho // runs)
    chosen, counted = halves.plan_structure(facts, structure), halves.plan_with(facts, each)
    first = preparation_steps(schema, preparation)
    plan = replace(
        counted,
        cost=sum((step.cost for step in first), chosen.cost + counted.cost),
        steps=(*first, *chosen.steps, *counted.steps),
        cells=counted.cells + sum(step.cells for step in first),
        bytes=max(chosen.bytes, counted.bytes),
        seconds=chosen.seconds + counted.seconds,
        notes=(*chosen.notes, *counted.notes),
    )
    return OneStructure(preparation, structure, each, plan, len(first) + len(chosen.steps))


MEMORY_SHARE = 0.8
LARGE_EPSILON = 10.0
"""Above this ε a budget is remarked upon."""
LARGE_DELTA = 1e-4
"""From here on a δ is remarked upon where nobody says how many rows there are."""
LEAST_DISK_BYTES = 2**24
CONTAINER_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")

Options = Mapping[str, object]
CriteriaGiven = str | Path | Sequence[Criterion] | None
"""A file of criteria for a check, or the criteria that were read from one."""
_CHECK_CELL_BYTES = 24  # exact, noisy and synthetic counts


@dataclass(frozen=True, slots=True)
class Copies:
    """How many synthetic tables, whether each is measured anew, their rows (None: the noisy total) and the seed."""

    count: int = 1
    mode: str = "resample"
    rows: int | None = None
    seed: int = 0
    most_rows: int = 100_000_000
    """Rows of a copy at most when they follow the noisy total; ask for more by number."""

    def __post_init__(self) -> None:
        if type(self.count) is not int or not 1 <= self.count <= MOST_COPIES:
            raise UsageError("copies", f"must be a whole number from 1 to {MOST_COPIES:,}, got {self.count!r}.")
        if isinstance(self.mode, str):
            object.__setattr__(self, "mode", present_mode(str.__str__(self.mode)))
        if self.mode not in COPIES_MODES:
            raise UsageError("copies_mode", f"{self.mode!r} is not known.", nearest(str(self.mode), COPIES_MODES))
        if self.rows is not None and (type(self.rows) is not int or self.rows < 0):
            raise UsageError("rows", f"must be a whole number, 0 or more, got {self.rows!r}.")
        if type(self.seed) is not int or not 0 <= self.seed <= LARGEST_SEED:
            raise UsageError("seed", f"must be a whole number from 0 to 2¹²⁷, got {self.seed!r}.")

    @property
    def runs(self) -> int:
        """How often the private table is measured."""
        return 1 if self.mode == "resample" else self.count


@dataclass(frozen=True, slots=True)
class Design:
    """Method, budget and costs: `granted` for the whole release, `share` for each time the table is measured."""

    schema: Schema
    facts: PublicFacts
    method: Method
    currency: Currency
    budget: Budget
    granted: Cost
    share: Cost
    preparation: Mapping[str, Cost]
    rest: Cost
    plan: Plan
    runs: int = 1
    structure: Cost | None = None
    """What a structure for all runs costs, on top of the first run's share; None if every run makes its own."""
    once: int = 0
    """How many steps of the plan, the first ones, are asked in the first run only."""
    check: CheckPlan | None = None
    """What is held back to compare the finished rows with, if anything is."""
    check_cost: Cost = field(default_factory=Cost)
    """What that may spend, out of what is granted."""

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
        public: object | None = None,
        check_share: float | None = None,
        criteria: CriteriaGiven = None,
    ) -> "Design":
        """The design of a run, or the reason why there is none; reads nothing but a public table, where one is given.

        Raises:
            UsageError: for an unknown method or option, or a budget too small for what is asked.
            SchemaError: if the schema is too large for the file that a release holds of it.
            ResourceError: if the method refuses the size of the domain.
        """
        schema_to_text(schema)  # what cannot be written down could not be released either
        chosen = method_named(method, options)
        currency = currency_for(chosen, budget, schema)
        facts = _facts(schema, chosen, rows_hint, public)
        chosen = chosen.informed(facts)
        check = check_plan(schema, facts, check_share, criteria)

        def granting(granted: Cost, currency: Currency) -> "Design":
            cost = Cost() if check is None else check.cost_of(granted)
            left = granted - cost
            shared = one_structure(chosen, schema, facts, left, runs)
            if shared is not None:
                whole = with_rows(shared.plan, facts)
                parts = (granted, shared.share, shared.preparation, shared.share, whole, runs)
                return cls(schema, facts, chosen, currency, budget, *parts, shared.structure, shared.once, check, cost)
            share = Cost(left.epsilon // runs, left.rho // runs, left.delta // runs)
            preparation, rest = preparation_cost(schema, share, spends_delta=chosen.spends_delta)
            whole = _whole_plan(with_rows(chosen.plan(facts, rest), facts), preparation_steps(schema, preparation))
            asked = (granted, share, preparation, rest, whole, runs)
            return cls(schema, facts, whole.by, currency, budget, *asked, check=check, check_cost=cost)

        kept = chosen.pure_share if currency == "zcdp" else Fraction(0)
        whole = granted_cost(schema, budget, currency, spends_delta=chosen.spends_delta, pure_share=kept)
        design = granting(whole, currency)
        return _tightened(design, granting) if design.variances else _gaussian(design, granting)

    @property
    def planned(self) -> list[Cost]:
        """The costs of all queries, run after run, if the runs keep to the plan; those of the check come last."""
        costs = [step.cost for step in self.plan.steps]
        return costs + costs[self.once :] * (self.runs - 1) + [step.cost for step in self.check_steps]

    @property
    def check_steps(self) -> tuple[Step, ...]:
        """The check's queries; raises where their share is too small."""
        if self.check is None:
            return ()
        unit, domain = self.schema.unit.sensitivity, self.facts.domain
        steps = []
        for clique, cost in zip(self.check.tables, self.check_cost.split(self.check.weights), strict=True):
            name = f"check {' × '.join(clique) or 'total'}"
            noise = distribution_for(cost, unit, name, currency=self.currency)
            steps.append(Step(name, cost, domain.cells(clique), noise.scale, expected_absolute(noise)))
        return tuple(steps)

    @property
    def whole(self) -> Plan:
        """The method's plan and the check's queries: what a steward looks at, and what limits must allow."""
        steps = self.check_steps
        if not steps:
            return self.plan
        cells = sum(step.cells for step in steps)
        taken = _CHECK_CELL_BYTES * cells
        note = f"Held back for the check of the rows: {self.check_cost}, {len(steps):,} tables that no method sees."
        return replace(
            self.plan,
            cost=self.plan.cost + sum((step.cost for step in steps), Cost()),
            steps=(*self.plan.steps, *steps),
            cells=self.plan.cells + cells,
            bytes=self.plan.bytes + taken,
            most_bytes=self.plan.most_bytes and self.plan.most_bytes + taken,
            seconds=self.plan.seconds + seconds_for(self.facts, cells, len(steps)),
            reads=self.plan.reads + 1,
            notes=(*self.plan.notes, note),
        )

    def granted_in(self, run: int) -> Cost:
        """What a run may spend: its share, and in the first one also what is fixed once for all runs."""
        if self.structure is None or run > 1:
            return self.share
        return sum(self.preparation.values(), self.share + self.structure)

    @property
    def fixed(self) -> bool:
        """Whether a run asks just the planned queries at just their costs, whatever the answers.

        Not where codes are fixed first: how many there are may move a method's costs.
        """
        able = self.plan.by.can_be_fixed  # `verify` asks no other method for its plan
        return self.plan.fixed and able and not self.preparation and self.structure is None

    @property
    def variances(self) -> tuple[Fraction, ...]:
        """Noise variances of all answers not paid in ε, if Gaussian, fixed beforehand and about units of one row."""
        one_row = self.schema.unit.sensitivity == 1
        if not (self.fixed and one_row and self.granted.rho) or self.granted.delta:
            return ()
        # Choices and trees have no such noise; what a change of labels costs is not known by the exact distributions.
        if self.plan.labels or any(step.noise_scale is None for step in self.plan.steps):
            return ()
        steps = [step for step in self.plan.steps * self.runs + self.check_steps if not step.cost.epsilon]
        return tuple(sorted(distribution_for(step.cost, 1, step.name).parameter for step in steps))


def check_plan(
    schema: Schema, facts: PublicFacts, share: float | None, criteria: CriteriaGiven = None
) -> CheckPlan | None:
    """What a check of that share of the budget asks; None where none is wanted.

    Raises:
        UsageError, SchemaError: if the share is outside (0, 0.5], or the criteria cannot be judged.
    """
    if share is None:
        if criteria is not None:
            fix = "Give check_share=, for example 0.05; plan shows what is left for the method."
            raise UsageError("criteria", "are judged from a check, which has no share of the budget.", fix)
        return None
    read = read_criteria(criteria) if isinstance(criteria, str | Path) else tuple(criteria or ())
    return CheckPlan.of(schema, facts.domain, digest_of(schema), share, read)


def _whole_plan(body: Plan, first: Sequence[Step]) -> Plan:
    return replace(
        body,
        cost=sum((step.cost for step in first), body.cost),
        steps=(*first, *body.steps),
        cells=body.cells + sum(step.cells for step in first),
        reads=1 + len(first),
    )


def _gaussian(design: Design, granting: Callable[[Cost, Currency], Design]) -> Design:
    """The same design accounted as Gaussian, which buys more ρ, where all of its answers have Gaussian noise.

    Not where codes are fixed first: labels are discovered, and edges of bins chosen, in other ways.
    """
    method = design.plan.by
    if design.currency != "zcdp" or "gaussian" not in method.currencies or design.preparation or design.structure:
        return design
    wider = granting(design.budget.cost("gaussian"), "gaussian")
    return wider if type(wider.plan.by) is type(method) else design


def _tightened(design: Design, granting: Callable[[Cost, Currency], Design]) -> Design:
    """The same design with the ρ that the budget buys when the exact distributions are summed: no less than ρ alone
    buys."""
    epsilon = Fraction(design.budget.epsilon_units - design.granted.epsilon, UNIT)
    delta = Fraction(design.budget.delta_units, DELTA_UNIT)
    factor = tight_factor(design.variances, epsilon, delta)
    for _ in range(3):  # whole units and the grid of the sum move ε by a few millionths; the claim must hold in full
        tight = granting(replace(design.granted, rho=math.floor(design.granted.rho * factor)), design.currency)
        found = tight_epsilon(tight.variances, delta)
        if found is not None and found <= epsilon:
            return tight
        factor = max(Fraction(1), factor * Fraction(99_999, 100_000))
    return design


def plan(
    schema: Schema | str | Path,
    *,
    method: str = "auto",
    epsilon: float,
    delta: float = 0.0,
    rows_hint: int | None = None,
    options: Options | None = None,
    public: object | None = None,
    data: object | None = None,
    check_share: float | None = None,
    criteria: CriteriaGiven = None,
) -> Plan:
    """What a run would ask, cost and need, from public facts alone: nothing is charged, and no row is read.

    Where the private table is named, it is opened up to its header, and a note says what holds it, in which state, how
    many bytes it has and how often they would be read. Size and state can be seen by whoever may open the table;
    neither of them reaches a release.

    Args:
        schema: what the table may contain, or the file of a schema.
        method: name of a method.
        epsilon: the budget's ε.
        delta: the budget's δ.
        rows_hint: a publicly known number of rows, for the estimates only.
        options: options of the method.
        public: a table with the same columns that protects nobody, for methods that use one.
        data: the private table or its location; no row is read.
        check_share: as for `synthesize`.
        criteria: as for `synthesize`.
    """
    schema, budget = Schema.of(schema), Budget(epsilon, delta)
    design = Design.of(
        schema, method, budget, options=options, rows_hint=rows_hint, public=public,
        check_share=check_share, criteria=criteria,
    )  # fmt: skip
    if public is not None:
        check_uses_public(design.method)
    whole = design.whole
    notes = list(whole.notes)
    if design.preparation:
        fixed = f"Codes of {', '.join(design.preparation)} are fixed by noisy answers first"
        notes.append(f"{fixed}; this plan assumes the largest possible number of codes.")
    remarks = [*hazards(budget, schema.unit, rows_hint), drowned_remark(design.plan, rows_hint)]
    told = [] if data is None else [_outside(data, schema, whole)]
    return replace(whole, notes=(*notes, *(remark for remark in remarks if remark), *told))


def _outside(data: object, schema: Schema, plan: Plan) -> str:
    """What is known of a private table without reading a row, and how often it would be read."""
    table = open_table(data, schema)
    try:
        reader = table.reader if isinstance(table, StreamedTable) else None
        engine = "a frame in memory" if reader is None else reader.engine
        state = f", {reader.snapshot}" if reader is not None and reader.snapshot else ""
        size = f", {size_text(reader.bytes)}" if reader is not None and reader.bytes is not None else ""
    finally:
        if table is not data:
            table.close()
    often = "once" if plan.reads == 1 else f"at most {plan.reads:,} times"
    again = "" if reader is None else "; where the disk has no room for codes, once more for every round of queries"
    return f"The table ({engine}{state}{size}) is read {often}{again}."


def hazards(budget: Budget, unit: Unit, rows_hint: int | None = None) -> tuple[str, ...]:
    """What speaks against a budget that protects hardly anybody, in words; nothing for one of usual size."""
    remarks = (epsilon_remark(budget), delta_remark(budget, unit, rows_hint))
    return tuple(remark for remark in remarks if remark)


def epsilon_remark(budget: Budget) -> str:
    """What a large ε permits; empty for an ε of usual size."""
    if budget.epsilon <= LARGE_EPSILON:
        return ""
    sure = min(99.9, math.floor(1000 / (1 + 99 * math.exp(-budget.epsilon))) / 10)
    return (
        f"ε = {budget.epsilon:.6g} protects almost nobody: someone 1 % sure that a unit is in the table could become "
        f"more than {sure:.3g} % sure. Values of {LARGE_EPSILON:g} or less are usual."
    )


def drowned_remark(plan: Plan, rows_hint: int | None) -> str:
    """That the noise of every table, or of the number of rows, is as large as the table, by the public guess of it.

    Without a guess: below how many rows that is so, if many tables have fewer.
    """
    scales = [step.noise_scale for step in plan.steps if step.noise_scale and step.cells > 1]
    totals = [step.noise_scale for step in plan.steps if step.noise_scale and step.name == TOTAL]
    error = ""
    if not rows_hint:
        hidden = math.ceil(4 * max([min(scales, default=0.0), min(totals, default=0.0)]))
        if hidden < MANY_ROWS:
            return ""
        return (
            f"In a table of fewer than about {hidden:,} rows, the noise hides the table. Give rows_hint=, raise the "
            "budget, or declare fewer columns or wider bins."
        )
    if scales and min(scales) >= rows_hint / 4:
        error = f"{min(scales):,.0f} rows in every cell"
    elif totals and min(totals) >= rows_hint / 4:
        error = f"{min(totals):,.0f} rows in the number of rows, so that hardly any or far too many may be drawn"
    if error:
        return (
            f"The noise hides the table: the typical error is {error}, in a table of about {rows_hint:,} rows. "
            "Raise the budget, or declare fewer columns or wider bins."
        )
    return ""


MANY_ROWS = 1000
"""Rows that noise may hide without a remark where nobody says how many there may be."""
TOTAL = "measure total"
"""The step of a plan that asks for the number of rows."""


def delta_remark(budget: Budget, unit: Unit, rows_hint: int | None = None) -> str:
    """What a large δ permits; empty for a δ of usual size. Public numbers alone: the table's rows are not counted.

    To publish each unit as it is with probability δ, and nothing of the others, satisfies (0, δ)-differential privacy:
    one unit more or less changes the output only if it is picked.
    """
    least = LARGE_DELTA if not rows_hint or rows_hint < 1 else min(LARGE_DELTA, 1 / rows_hint)
    if budget.delta <= least:
        return ""
    whom = "rows" if unit.column is None else "protected units with all their rows"
    return (
        f"δ = {budget.delta:.6g} is large: a promise with this δ still holds for a program that picks about"
        f" {100 * budget.delta:.3g} % of the {whom} at random and publishes them as they are. Choose a δ well below"
        " 1 / number of rows, such as 1e-6 for 100,000 rows."
    )


def check_uses_public(method: Method) -> None:
    """Raises UsageError unless the method can use a public table."""
    if not method.uses_public:
        rule = f"method {method.name} does not use a public table."
        raise UsageError("public", rule, "Drop it or choose a method that uses one; see `understudy methods`.")


def _facts(schema: Schema, method: Method, rows_hint: int | None, public: object | None) -> PublicFacts:
    """What a plan may know; a public table that lacks columns, because they are private, is not looked at."""
    facts = public_facts(schema, rows_hint)
    if public is None:
        return facts
    if not method.not_public(facts):
        facts = public_facts(schema, rows_hint, open_table(public, replace(schema, unit=Unit(), file=None)))
    return replace(facts, has_public=True)


def check_memory(plan: Plan, memory_bytes: int | None) -> None:
    """Refuses a plan that needs more memory than given, or than most of the machine's when nothing is given.

    Of the machine's memory, what coded rows of a long file may take beyond the plan's own rows is kept free.

    Raises:
        ResourceError: with both numbers; nothing was charged.
    """
    if memory_bytes is not None and (type(memory_bytes) is not int or memory_bytes < 1):
        raise UsageError("memory_bytes", f"must be a whole number of bytes above 0, got {memory_bytes!r}.")
    limit = memory_limit(memory_bytes)
    if plan.limit_bytes > limit:
        fix = "Declare fewer or coarser codes, choose another method, or allow more memory."
        raise ResourceError(f"method {plan.method}", plan.limit_bytes, limit, fix)


def memory_limit(memory_bytes: int | None) -> int:
    """What a run may take: as given, or most of what this machine, container or process may use."""
    return max(0, _machine_bytes() - KEPT_ROWS_BYTES) if memory_bytes is None else memory_bytes


def check_disk(plan: Plan, place: Path, rows_bytes: int = 0) -> None:
    """Refuses a plan whose answers, model and rows would not fit on the disk that holds `place`.

    Raises:
        ResourceError: with both numbers; nothing was charged.
    """
    free = shutil.disk_usage(place).free
    needed = plan.limit_bytes + rows_bytes + LEAST_DISK_BYTES
    if needed > free:
        fix = "Ask for fewer rows or copies, free some space or choose another disk."
        raise ResourceError(f"output of method {plan.method} on disk", needed, free, fix)


def check_file_size(plan: Plan) -> None:
    """Refuses a plan whose files may grow larger than this process is allowed to write.

    Raises:
        UsageError: with both sizes; nothing was charged.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    needed = plan.limit_bytes + LEAST_DISK_BYTES
    if limit != resource.RLIM_INFINITY and needed > limit:
        rule = f"ulimit -f allows {size_text(limit)} a file, and this run may need {size_text(needed)}."
        raise UsageError("file size limit", rule, "Raise that limit, and run again.")


def _machine_bytes() -> int:
    """Most of the least of: the machine's memory, the container's limit, the process's limit of addresses."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), *_container_limits(CONTAINER_FILES)]
    found += [soft for soft, _ in map(resource.getrlimit, (resource.RLIMIT_AS, resource.RLIMIT_DATA)) if soft > 0]
    return int(MEMORY_SHARE * min(found))


def _container_limits(files: Sequence[str]) -> Iterator[int]:
    """Limits of the control group this process is in, as far as one is visible and says a number."""
    for name in files:
        try:
            text = Path(name).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        if text.isdecimal():
            yield int(text)


def public_schema(design: Design) -> Schema:
    """The schema under which a public table is read; its rows are nobody's units."""
    schema = replace(design.schema, file=None)  # which is about the private table
    private = set(design.method.not_public(design.facts))
    if not private:
        return replace(schema, unit=Unit())
    if all(private & set(code_names(column)) for column in schema.modelled):
        raise UsageError("public", "every column is private, so a public table has nothing to add.", "Drop it.")
    return without_columns(schema, private)


def check_without_public(design: Design) -> None:
    """Raises if the method cannot do without a public table under these options and on this domain."""
    design.method.check_without_public(design.facts)
