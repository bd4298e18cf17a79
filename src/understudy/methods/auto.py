"""Auto: picks a method from public facts alone.

The rule, in full. Under δ: `privsyn` up to 60 columns where ρ is at least 0.3 times the square of the rows of a unit
(about ε = 5 at δ = 10⁻⁹) and no pair of columns has more than 262,144 cells, which it could not measure; else `aim` up
to 60 columns, `mst` beyond. Under pure ε: `laplace` for a table whose noise adds up to at most 2,000 rows (number of
cells × k/ε, k the rows of a unit), which then keeps every relation between the columns; else, up to 60 columns,
`privsyn` if ε is at least 6 for each row of a unit (and all pairs can be measured), or `mwem` if it is at least 0.5;
else `independent`. Where the method picked refuses the size of what rules tie together, `independent`. `laplace` and
`independent` make their rows by controlled rounding, as the others always do: independent draws would add an error of
their own that no ε takes away. Neither the rows nor a hint about them enter, so the plan and the run pick the same
method. docs/choosing.md lists cases of the rule and what was measured; a test ties that page to this code.

Why. `privsyn` scores all pairs at once and measures as many as are worth their noise, in one go: with little noise it
keeps more pairs than rounds of choosing do, in a fraction of their time. With much noise its scores drown, and drawing
one table after the other is nearer to the truth. Mean distance over pairs, on six tables (the limits were set by these
same tables): at δ = 10⁻⁹ and ε = 3 the two are about as good; at ε = 10 `privsyn` is nearer in five, by 4 to 42 %, and
5 % farther off in one. Under pure ε = 3 `mwem` is nearer in three, by 11 to 36 %, and at most 7 % farther off where
both would be picked; at ε = 10 `privsyn` is nearer in three of five, by 5 to 53 %, and 5 and 20 % farther off in two.

Privacy: that of the method picked; the choice itself reads nothing.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from understudy.errors import ResourceError
from understudy.methods.aim import Aim
from understudy.methods.independent import Independent
from understudy.methods.laplace import Laplace
from understudy.methods.method import Method, Plan, PublicFacts
from understudy.methods.mst import Mst
from understudy.methods.mwem import Mwem
from understudy.methods.privsyn import PrivSyn
from understudy.models.model import Model
from understudy.models.tables import Rounding
from understudy.privacy.cost import UNIT, Cost, Currency
from understudy.privacy.curator import Curator

MOST_NOISE = 2_000
"""Rows of noise, summed over all cells, up to which the full table is measured."""
MOST_COLUMNS = 60
"""Columns up to which tables are chosen round after round."""
LEAST_EPSILON = 0.5
"""Pure ε per row of a unit from which choosing tables pays."""
AMPLE_EPSILON = 6
"""Pure ε per row of a unit from which all pairs are scored at once."""
AMPLE_RHO = Fraction(3, 10)
"""ρ, for a unit of one row, from which all pairs are scored at once."""
_ROWS: Rounding = "controlled"
_ALL_PAIRS = "the budget is ample enough to score all pairs at once"
_ROUNDS = "few enough columns to choose, round after round, the table that is predicted worst"


@dataclass(frozen=True, slots=True)
class Auto(Method):
    """Method: the method that the stated rule gives."""

    name: ClassVar[str] = "auto"
    summary: ClassVar[str] = (
        "Picks a method from public facts: privsyn, aim or mst under δ; laplace, privsyn, mwem or independent without."
    )
    source: ClassVar[str] = "A rule of this package, stated in its reference page."
    needs: ClassVar[str] = "A schema. Nothing else."
    limits: ClassVar[str] = "Those of the method it picks; `plan` says which."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure", "zcdp")

    def _pick(self, facts: PublicFacts, cost: Cost) -> tuple[Method, str]:
        """The method that the rule gives, and why."""
        few, unit_rows = len(facts.domain.columns) <= MOST_COLUMNS, facts.unit_rows
        if not cost.epsilon:
            ample = cost.rho >= AMPLE_RHO * unit_rows**2 * UNIT
            if few and ample and _measures_all_pairs(facts):
                return PrivSyn(), _ALL_PAIRS
            return (
                (Aim(), _ROUNDS) if few else (Mst(), f"for more than {MOST_COLUMNS} columns a tree of pairs is chosen")
            )
        if facts.domain.cells(facts.domain.columns) * unit_rows * UNIT <= MOST_NOISE * cost.epsilon:
            return Laplace(rounding=_ROWS), "the full table is small enough for its noise"
        if few and cost.epsilon >= AMPLE_EPSILON * unit_rows * UNIT and _measures_all_pairs(facts):
            return PrivSyn(), _ALL_PAIRS
        if few and cost.epsilon >= LEAST_EPSILON * unit_rows * UNIT:
            return Mwem(), _ROUNDS
        return Independent(rounding=_ROWS), "ε is too small, or the columns too many, to measure relations under pure ε"

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """The plan of the method picked, with a note that says so and why."""
        try:
            method, why = self._pick(facts, cost)
            plan = method.plan(facts, cost)
        except ResourceError:
            plan = Independent(rounding=_ROWS).plan(facts, cost)
            why = f"{method.name} cannot hold what the rules tie together"
        return replace(plan, notes=(f"auto picked {plan.method}: {why}.", *plan.notes))

    def run(self, curator: Curator, plan: Plan) -> Model:
        """Runs the method picked."""
        return plan.by.run(curator, plan)


def _measures_all_pairs(facts: PublicFacts) -> bool:
    """Whether no pair of columns is too large for `privsyn`, and there is a pair at all."""
    widest = sorted(facts.domain.sizes.values())[-2:]
    return len(widest) == 2 and widest[0] > 1 and math.prod(widest) <= PrivSyn().table_cells
