"""Auto: picks the method that is expected to be nearest to the table over pairs of columns.

The rule. Every candidate has a forecast of its error (`methods/expected_error.py`) from the schema, the rows of a unit,
the cost and the number of rows. The one with the least is picked; within `ALIKE` of it, the one that is named first
here. Under δ the candidates are `ensemble`, `aim`, `mst`, `privsyn` and `independent`; under pure ε `laplace`,
`ensemble`, `mwem` and `independent`. Left out is what refuses the
domain (more cells than it holds, rules that tie too much together), and what would take more than `MOST_SECONDS` for a
million rows.

The number of rows. Where one method is expected to be best whatever it is, from a hundred to a hundred million, that
method is picked outright and gets all of the cost. Otherwise `TOTAL_SHARE` of the cost buys a noisy number of rows, and
the run picks by that. A hint of the number of rows changes what a plan shows, never what is picked.

Rows. `laplace` and `independent` make their rows by controlled rounding, as the others always do: independent draws
would add an error of their own that no ε takes away. docs/choosing.md has what was measured.

Privacy. Neighbours differ by the rows of one unit, at most k, so the number of rows moves by at most k: noise of scale
k/ε₀ (σ² = k²/(2ρ₀) under δ) makes it cost ε₀ (ρ₀). Which method runs follows from that answer and from public facts,
whatever the table, and gets the rest, ε − ε₀ (ρ − ρ₀), as its budget; both kinds of cost add up when a later query
depends on earlier answers, so the run costs at most what was granted. Memory and time are planned for the most that
any of them takes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from understudy.domain import Clique
from understudy.errors import ResourceError, UsageError
from understudy.methods.aim import Aim
from understudy.methods.ensemble import MixtureEnsemble
from understudy.methods.expected_error import expected_errors, rows_tried
from understudy.methods.independent import Independent
from understudy.methods.laplace import Laplace
from understudy.methods.method import Method, Plan, PublicFacts, facts_of, noisy_step, rows_of
from understudy.methods.mst import Mst
from understudy.methods.mwem import Mwem
from understudy.methods.privsyn import PrivSyn
from understudy.models.model import Model
from understudy.privacy.cost import Cost, Currency
from understudy.privacy.curator import Curator

MOST_SECONDS = 900.0
"""CPU time, forecast for a million rows, beyond which a method is not picked."""
TOTAL_SHARE = 0.01
"""Of the cost, for the number of rows, where it decides."""
ALIKE = 0.002
"""Errors that differ by less count as equal; of such methods the candidate that comes first is picked."""
_PICKED: dict[str, Method] = {
    "laplace": Laplace(rounding="controlled"),
    "independent": Independent(rounding="controlled"),
    "ensemble": MixtureEnsemble(),
    "aim": Aim(),
    "mst": Mst(),
    "mwem": Mwem(),
    "privsyn": PrivSyn(),
}


@dataclass(frozen=True, slots=True)
class _Undecided:
    """What the number of rows costs, what is left for the method that it decides for, and the candidates."""

    total: Cost
    rest: Cost
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Auto(Method):
    """Method: the one that is expected to be nearest to the table."""

    name: ClassVar[str] = "auto"
    summary: ClassVar[str] = (
        "Picks the method with the least expected error, from public facts and a noisy number of rows."
    )
    source: ClassVar[str] = "A rule of this package, stated on its reference page."
    needs: ClassVar[str] = "A schema. Nothing else."
    limits: ClassVar[str] = "Those of the method it picks; `plan` says which, or among which the run decides."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure", "zcdp")

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """The plan of the method picked, with a note that says so and why; or of the number of rows first."""
        plans = _plans(facts, cost)
        if len(plans) > 1:
            return self._undecided(facts, cost, tuple(plans))
        ((name, plan),) = plans.items()
        why = "it has the least expected error over pairs of columns, whatever the number of rows"
        return replace(plan, notes=(f"auto picked {name}: {why}.", *plan.notes))

    def run(self, curator: Curator, plan: Plan) -> Model:
        """Asks for the number of rows and runs the method that it decides for."""
        if plan.by is not self:
            return plan.by.run(curator, plan)
        wanted: _Undecided = plan.schedule
        # Paid for: a choice by the exact number of rows would release a function of it.
        (total,) = curator.measure([Clique()], wanted.total)
        facts = facts_of(curator)
        method = _PICKED[_nearest(facts, wanted.rest, float(total.values[0]), wanted.names)]
        return method.run(curator, method.plan(facts, wanted.rest))

    def _undecided(self, facts: PublicFacts, cost: Cost, names: tuple[str, ...]) -> Plan:
        """Steps are those for the number of rows that is hinted; memory and time are for whatever is picked."""
        whole = Cost(cost.epsilon, cost.rho)
        total = whole.share(TOTAL_SHARE)
        rest = whole - total
        plans = {name: _PICKED[name].plan(facts, rest) for name in names}
        shown = plans[_nearest(facts, rest, rows_of(facts), names)]
        largest = max(plans.values(), key=lambda plan: plan.limit_bytes)
        spans = [plan.span or (plan.seconds, plan.seconds) for plan in plans.values()]
        first = noisy_step("measure total", total, 1, facts.unit_rows)
        note = (
            f"auto decides in the run, by a noisy number of rows: {_ranges(facts, rest, names)}. "
            f"The steps shown are those of {shown.method}."
        )
        return replace(
            shown,
            by=self,
            granted=cost,
            cost=first.cost + shown.cost,
            steps=(first, *shown.steps),
            cells=1 + max(plan.cells for plan in plans.values()),
            bytes=largest.bytes,
            after_counting=largest.after_counting,
            most_bytes=largest.limit_bytes,
            span=(min(least for least, _ in spans), max(most for _, most in spans)),
            notes=(note, *shown.notes),
            schedule=_Undecided(total, rest, names),
            fixed=False,
        )


def picked(facts: PublicFacts, cost: Cost, rows: float) -> str:
    """The method that a run picks if its noisy number of rows is this one."""
    plans = _plans(facts, cost)
    return _nearest(facts, cost, rows, tuple(plans))


def told(facts: PublicFacts, cost: Cost) -> str:
    """What is picked, in words: one method, or which for how many rows."""
    return _ranges(facts, cost, tuple(_plans(facts, cost)))


def _plans(facts: PublicFacts, cost: Cost) -> dict[str, Plan]:
    """Plans of the methods that are best for some number of rows, of those that can be used here."""
    names = tuple(expected_errors(facts, cost, 1.0))
    if not _measures_all_pairs(facts):
        names = tuple(name for name in names if name != "privsyn")
    while True:
        best = dict.fromkeys(_nearest(facts, cost, rows, names) for rows in rows_tried())
        found = {name: _usable(name, facts, cost) for name in best}
        names = tuple(name for name in names if name not in found or found[name] is not None)
        if not names:  # also independent refuses; let it say why
            return {"independent": _PICKED["independent"].plan(facts, cost)}
        # In the order of candidates, not of rows: of those that are alike the first is picked.
        usable = {name: plan for name in names if (plan := found.get(name)) is not None}
        if len(usable) == len(found):
            return usable


def _usable(name: str, facts: PublicFacts, cost: Cost) -> Plan | None:
    """The plan of a method, unless it refuses the domain or takes too long, whatever the hint of the rows."""
    try:
        plan = _PICKED[name].plan(facts, cost)
        # Without the hint: it may come from the rows, and must not decide what runs.
        usual = plan if facts.rows_hint is None else _PICKED[name].plan(replace(facts, rows_hint=None), cost)
    except (ResourceError, UsageError):  # too much to hold, or too many tables to choose from
        return None
    return plan if usual.seconds <= MOST_SECONDS or name == "independent" else None


def _nearest(facts: PublicFacts, cost: Cost, rows: float, names: Sequence[str]) -> str:
    """The first method of these whose expected error for so many rows is the least, or as good as that."""
    errors = expected_errors(facts, cost, rows)
    least = min(errors[name] for name in names)
    return next(name for name in names if errors[name] <= least + ALIKE)


def _ranges(facts: PublicFacts, cost: Cost, names: Sequence[str]) -> str:
    """Which method is picked for how many rows, in words."""
    found: list[tuple[str, float]] = []
    for rows in rows_tried():
        name = _nearest(facts, cost, rows, names)
        if not found or found[-1][0] != name:
            found.append((name, rows))
    first, *others = found
    return ", ".join([first[0], *(f"{name} from about {float(f'{rows:.1g}'):,.0f} rows" for name, rows in others)])


def _measures_all_pairs(facts: PublicFacts) -> bool:
    """Whether no pair of columns is too large for `privsyn`, and there is a pair at all."""
    widest = sorted(facts.domain.sizes.values())[-2:]
    return len(widest) == 2 and widest[0] > 1 and widest[0] * widest[1] <= PrivSyn().table_cells
