"""Transcript: the answers of one run, in order. It is all that leaves the curator."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from understudy.marginals.answer import (
    Answer,
    Discovery,
    Grown,
    Measurement,
    NoisyScores,
    Selection,
    Selections,
    SparseMeasurement,
    Trained,
)

__all__ = ["Transcript"]

Kind = TypeVar("Kind", Measurement, SparseMeasurement, Selection, Discovery, Selections, NoisyScores, Grown, Trained)


@dataclass(slots=True)
class Transcript:
    """Answers in the order they were given. Only the curator appends; everyone else reads."""

    answers: list[Answer] = field(default_factory=list)

    def append(self, answer: Answer) -> None:
        """Adds an answer at the end."""
        self.answers.append(answer)

    def of(self, kind: type[Kind]) -> list[Kind]:
        """The answers of one kind, in order."""
        return [answer for answer in self.answers if isinstance(answer, kind)]

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)
