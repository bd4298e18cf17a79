"""Auto: picks a method from public facts alone.

The rule, in full. A pure ε budget and a table whose noise adds up to at most 2,000 rows (number of cells × k/ε, k the
rows of a unit): `laplace`, which then keeps every relation between the columns. Anything else: `independent`. Neither
the rows nor a hint about them enter. Where open categories make the largest possible domain of the plan wider than
the one the run finds, `registry.resolve` fixes the choice of the plan.

Privacy: that of the method picked; the choice itself reads nothing.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from understudy.mechanisms.forecast import facts_of
from understudy.mechanisms.independent import Independent
from understudy.mechanisms.laplace import Laplace
from understudy.mechanisms.mechanism import Mechanism, Plan, PublicFacts
from understudy.models.model import Model
from understudy.privacy.cost import UNIT, Cost, Currency
from understudy.privacy.curator import Curator

__all__ = ["MOST_NOISE", "Auto"]

MOST_NOISE = 2_000
"""Rows of noise, summed over all cells, up to which the full table is measured."""


@dataclass(frozen=True, slots=True)
class Auto:
    """Recipe: `laplace` for a small table under pure ε, else `independent`."""

    name: ClassVar[str] = "auto"
    summary: ClassVar[str] = (
        "Picks a method from public facts: laplace for small tables under pure ε, else independent."
    )
    source: ClassVar[str] = "A rule of this package, stated in its reference page."
    needs: ClassVar[str] = "A schema. Nothing else."
    limits: ClassVar[str] = "Those of the method it picks; `plan` says which."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure", "concentrated")

    def pick(self, facts: PublicFacts, cost: Cost) -> Mechanism:
        """The method for these facts and this cost."""
        noise = facts.domain.cells(facts.domain.columns) * facts.unit_rows * UNIT
        return Laplace() if cost.epsilon and noise <= MOST_NOISE * cost.epsilon else Independent()

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """The plan of the method picked, with a note that says so."""
        plan = self.pick(facts, cost).plan(facts, cost)
        return replace(plan, notes=(f"auto picked {plan.method}.", *plan.notes))

    def run(self, curator: Curator, cost: Cost) -> Model:
        """Runs the method picked."""
        return self.pick(facts_of(curator), cost).run(curator, cost)
