"""One structure for all copies: settled once with its whole share of the budget, then measured anew for every copy.

Copies that are measured anew share the budget in equal parts. A method that chooses a structure first (a tree, say) may
choose it once for all of them: its share of the whole budget is spent in the first run, together with settling open
labels and bins, and the rest is shared by the runs. The parts add up to what was granted, and each run is granted no
more than its part. The structure is made of answers that were paid for, so using it again costs nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from understudy.mechanisms.mechanism import Mechanism, Plan, PublicFacts, SharesStructure
from understudy.mechanisms.prepare import preparation_cost, preparation_steps
from understudy.privacy.cost import Cost
from understudy.schema import Schema

__all__ = ["OneStructure", "one_structure"]


@dataclass(frozen=True, slots=True)
class OneStructure:
    """Prices of a run with one structure, and its plan, whose first `once` steps are asked in the first run only."""

    preparation: Mapping[str, Cost]
    structure: Cost
    share: Cost
    plan: Plan
    once: int


def one_structure(
    method: Mechanism, schema: Schema, facts: PublicFacts, granted: Cost, runs: int
) -> OneStructure | None:
    """How the cost is shared if the method settles one structure for several runs; None if it does not."""
    if runs < 2 or not isinstance(method, SharesStructure) or not method.shares_structure:
        return None
    share = method.structure_share(facts)
    if not share:
        return None
    preparation, rest = preparation_cost(schema, granted)
    structure = rest.share(share)
    left = rest - structure
    each = Cost(left.epsilon // runs, left.rho // runs)
    chosen, counted = method.plan_structure(facts, structure), method.plan_with(facts, each)
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
