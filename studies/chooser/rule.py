"""The rule of `auto`, as cases: what the schema says, the budget, and the method that is picked."""

import re
from dataclasses import dataclass

from understudy.domain import Domain
from understudy.methods.auto import Auto
from understudy.methods.method import PublicFacts
from understudy.privacy.cost import Budget, Cost

__all__ = ["CASES", "HEADER", "Listed", "read_cases"]

HEADER = ("columns", "rows of a unit", "ε", "δ", "auto picks", "because")


@dataclass(frozen=True)
class Listed:
    """Public facts as the page lists them; columns as in "3 of 10, 1 of 20"."""

    columns: str
    unit_rows: int
    epsilon: float
    delta: float
    because: str = ""

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
        """What `auto` picks for these facts."""
        return Auto().plan(self.facts, self.cost).method

    @property
    def row(self) -> tuple[str, ...]:
        budget = f"{self.epsilon:g}", f"{self.delta:g}"
        return (self.columns, str(self.unit_rows), *budget, self.picked, self.because)


CASES = (
    Listed("5 of 4", 1, 1.0, 1e-9, "δ above 0, at most 60 columns, ρ below 0.3"),
    Listed("60 of 4", 1, 0.1, 1e-9, "the same"),
    Listed("60 of 4", 1, 5.0, 1e-9, "ρ is 0.31: all pairs are scored at once"),
    Listed("60 of 4", 2, 5.0, 1e-9, "with two rows of a unit ρ would have to be 1.2"),
    Listed("3 of 4, 2 of 512", 1, 10.0, 1e-9, "the largest pair has 262,144 cells"),
    Listed("3 of 4, 1 of 512, 1 of 513", 1, 10.0, 1e-9, "a pair has more than 262,144 cells"),
    Listed("61 of 4", 1, 1.0, 1e-9, "δ above 0 and more than 60 columns"),
    Listed("61 of 4", 1, 10.0, 1e-9, "the same, whatever ε"),
    Listed("2 of 10, 1 of 20", 1, 1.0, 0.0, "pure ε; cells × rows of a unit / ε is at most 2,000"),
    Listed("3 of 10, 1 of 20", 1, 10.0, 0.0, "the same at a larger ε"),
    Listed("2 of 10, 1 of 20", 2, 1.0, 0.0, "4,000 rows of noise are too many; ε is 0.5 for each row of a unit"),
    Listed("15 of 4", 1, 6.0, 0.0, "too many cells; ε at least 6 for each row of a unit; at most 60 columns"),
    Listed("15 of 4", 2, 6.0, 0.0, "ε is 3 for each row of a unit"),
    Listed("15 of 4", 1, 0.5, 0.0, "too many cells; ε at least 0.5 for each row of a unit; at most 60 columns"),
    Listed("15 of 4", 1, 0.4, 0.0, "too many cells, and ε below 0.5"),
    Listed("15 of 4", 3, 1.0, 0.0, "too many cells, and ε below 0.5 for each row of a unit"),
    Listed("61 of 4", 1, 1.0, 0.0, "too many cells and more than 60 columns"),
)


def read_cases(page: str) -> list[tuple[Listed, str]]:
    """The cases of a written page, each with the method it names."""
    start = "| " + " | ".join(HEADER) + " |"
    lines = page.split(start, 1)[1].splitlines()[2:]
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        columns, rows, epsilon, delta, picked, because = (cell.strip() for cell in line.strip("| ").split(" | "))
        found.append((Listed(columns, int(rows), float(epsilon), float(delta), because), picked))
    return found
