"""The rule of `auto`, as cases: what the schema says, the budget, and what is picked."""

import re
from dataclasses import dataclass

from understudy.domain import Domain
from understudy.methods.auto import picked, told
from understudy.methods.method import PublicFacts
from understudy.privacy.cost import Budget, Cost

__all__ = ["CASES", "HEADER", "Listed", "read_cases"]

HEADER = ("columns", "rows of a unit", "ε", "δ", "auto picks")


@dataclass(frozen=True)
class Listed:
    """Public facts as the page lists them; columns as in "3 of 10, 1 of 20"."""

    columns: str
    unit_rows: int
    epsilon: float
    delta: float

    @property
    def facts(self) -> PublicFacts:
        sizes: dict[str, int] = {}
        for number, size in re.findall(r"([0-9]+) of ([0-9]+)", self.columns):
            sizes |= {f"c{len(sizes) + place}": int(size) for place in range(int(number))}
        return PublicFacts(Domain.of(sizes), (), self.unit_rows)

    @property
    def cost(self) -> Cost:
        return Budget(self.epsilon, self.delta).cost("zcdp" if self.delta else "pure")

    @property
    def picked(self) -> str:
        """What `auto` picks for these facts, by the number of rows where that decides."""
        return told(self.facts, self.cost)

    def picked_for(self, rows: int) -> str:
        """What it picks for so many rows."""
        return picked(self.facts, self.cost, rows)

    @property
    def row(self) -> tuple[str, ...]:
        return (self.columns, str(self.unit_rows), f"{self.epsilon:g}", f"{self.delta:g}", self.picked)


CASES = (
    Listed("15 of 4", 1, 1.0, 1e-9),
    Listed("60 of 20", 1, 0.1, 1e-9),
    Listed("5 of 4, 1 of 1000", 1, 1.0, 1e-9),
    Listed("250 of 8", 1, 1.0, 1e-9),
    Listed("2 of 2, 1 of 8", 1, 1.0, 0.0),
    Listed("3 of 2, 1 of 5, 1 of 14", 1, 1.0, 0.0),
    Listed("3 of 2, 1 of 5, 1 of 14", 4, 1.0, 0.0),
    Listed("15 of 10", 1, 1.0, 0.0),
    Listed("15 of 10", 1, 10.0, 0.0),
)


def read_cases(page: str) -> list[tuple[Listed, str]]:
    """The cases of a written page, each with what it says is picked."""
    start = "| " + " | ".join(HEADER) + " |"
    lines = page.split(start, 1)[1].splitlines()[2:]
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        columns, rows, epsilon, delta, pick = (cell.strip() for cell in line.strip("| ").split(" | "))
        found.append((Listed(columns, int(rows), float(epsilon), float(delta)), pick))
    return found
