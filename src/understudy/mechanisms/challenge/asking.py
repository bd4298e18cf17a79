"""Many questions at prices fixed beforehand, as many at a time as fit in memory."""

from collections.abc import Iterator, Sequence

from understudy.marginals.answer import Measurement
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.marginals.partition import Partition
from understudy.privacy.cost import Cost
from understudy.privacy.curator import Curator

__all__ = ["BATCH_CELLS", "alone", "at_prices"]

BATCH_CELLS = 2**23
"""Most cells counted in one pass over the rows (64 MiB)."""


def alone(columns: Sequence[str]) -> list[Clique]:
    """Every column as a clique of its own."""
    return [Clique((name,)) for name in columns]


def at_prices(curator: Curator, questions: Sequence[Clique | Partition], prices: Sequence[Cost]) -> list[Measurement]:
    """Noisy answers to all questions, each at exactly its price, in ε or in ρ."""
    answers: list[Measurement] = []
    for low, high in _batches([_cells(question, curator.domain) for question in questions], prices):
        part = prices[low:high]
        # Whole numbers as weights: their shares of the sum are whole again, so each question costs its price exactly.
        weights = [price.rho or price.epsilon for price in part]
        answers += curator.measure(questions[low:high], sum(part, Cost()), weights)
    return answers


def _batches(cells: Sequence[int], prices: Sequence[Cost]) -> Iterator[tuple[int, int]]:
    """Questions that follow each other, fit together and are paid in the same currency."""
    start, room = 0, BATCH_CELLS
    for place, size in enumerate(cells):
        if place > start and (size > room or bool(prices[place].rho) != bool(prices[start].rho)):
            yield start, place
            start, room = place, BATCH_CELLS
        room -= size
    if start < len(cells):
        yield start, len(cells)


def _cells(question: Clique | Partition, domain: Domain) -> int:
    return domain.cells(question) if isinstance(question, Clique) else question.cells
