"""Bill: what one private choice has been charged, and whether the ledger covers what is still to come.

Every run of a choice is named after it: CHOICE-PART-ATTEMPT. So the ledger itself is the record of what was charged,
whatever became of the process, and a second attempt at a part has a name of its own. Amounts are sums of whole units;
as numbers they are rounded up.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from understudy.errors import BudgetError, UsageError
from understudy.privacy.cost import Budget, Cost
from understudy.privacy.ledger import Entry, Ledger

__all__ = ["Bill", "claimed"]


@dataclass(frozen=True, slots=True)
class Bill:
    """The charges of the choice named `choice`, in one dataset of a ledger."""

    ledger: Ledger
    dataset: str
    choice: str

    def charges(self, part: str = "") -> list[Entry]:
        """Every charge of the choice in order, or those of one part of it."""
        start = f"{self.choice}-{part}-" if part else f"{self.choice}-"
        entries = self.ledger.entries(self.dataset)
        return [entry for entry in entries if entry.kind == "charge" and entry.run.startswith(start)]

    def next_run(self, part: str) -> str:
        """The name of the next attempt at a part."""
        return f"{self.choice}-{part}-{len(self.charges(part)) + 1}"

    def open_run(self, part: str) -> str | None:
        """The last attempt at a part, if it was charged and has not ended."""
        charges = self.charges(part)
        ended = {entry.run for entry in self.ledger.entries(self.dataset) if entry.kind == "finish"}
        return charges[-1].run if charges and charges[-1].run not in ended else None

    def released(self, part: str) -> set[str]:
        """Attempts at a part that are on record as released."""
        entries = self.ledger.entries(self.dataset)
        ended = {entry.run for entry in entries if entry.kind == "finish" and entry.outcome == "released"}
        return ended & {entry.run for entry in self.charges(part)}

    def total(self, missing: Sequence[Budget] = ()) -> Budget:
        """Everything charged so far, attempts without a release too, and what is missing.

        Raises:
            UsageError: if it is more than a budget may be.
        """
        charges = self.charges()
        epsilon = sum(entry.budget_epsilon for entry in charges) + sum(one.epsilon_units for one in missing)
        delta = sum(entry.budget_delta for entry in charges) + sum(one.delta_units for one in missing)
        try:
            return claimed(epsilon, delta)
        except UsageError as error:
            where = f"all releases and the choice together: {error.problem.where}"
            fix = "Lower ε or δ, or choose among fewer methods."
            raise UsageError(where, error.problem.rule, fix) from None

    def check_covered(self, missing: Sequence[tuple[Cost, Budget]]) -> None:
        """Raises unless the total is a budget and the ledger covers all that is missing; charges nothing."""
        self.total([budget for _, budget in missing])
        before = after = self.ledger.balance(self.dataset)
        for cost, budget in missing:
            units = {"budget_epsilon": budget.epsilon_units, "budget_delta": budget.delta_units}
            after = after.after(after.price(cost, **units))
        if not after.is_within_limit():
            releases = len(missing) - 1
            needed = f"{releases} release{'' if releases == 1 else 's'} and the choice" if releases else "the choice"
            fix = "Choose among fewer methods, lower ε, or use a public proxy."
            raise BudgetError("choose", needed, str(before.left), fix)

    def check_unit(self, unit: str) -> None:
        """Raises if the dataset was charged for another unit: guarantees for different units do not add up."""
        entries = self.ledger.entries(self.dataset)
        before = next((entry.unit for entry in reversed(entries) if entry.kind == "charge"), unit)
        if before != unit:
            rule = f"is charged for the unit {before!r}, got {unit!r}."
            raise UsageError(f"dataset {self.dataset!r}", rule, "Protect the same unit in all releases of a dataset.")


def claimed(epsilon_units: int, delta_units: int) -> Budget:
    """Whole units as numbers that are not below them.

    >>> claimed(800_000_000_000, 0).epsilon
    0.8
    """
    return Budget(*Budget(1.0).claim(Cost(epsilon=epsilon_units, delta=delta_units)))
