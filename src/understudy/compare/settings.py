"""Settings: which methods, at which ε, how often. A study is resumed only under the settings it was begun with."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Self

from understudy.errors import UsageError
from understudy.mechanisms.registry import mechanism
from understudy.privacy.cost import Budget

__all__ = ["Candidate", "Cell", "StudySettings"]

SMALLEST_SECONDS = 1.0
SMALLEST_BYTES = 2**26
MOST_CELLS = 100_000


@dataclass(frozen=True, slots=True)
class Candidate:
    """A method with its options, under the name the study shows."""

    name: str
    method: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> Self:
        """A candidate from text: a method and its options, with spaces between.

        >>> Candidate.read("steps layers=2 allocation=half_leaf").options
        {'layers': '2', 'allocation': 'half_leaf'}
        """
        words = text.split()
        if not words:
            raise UsageError("method", "is empty.", 'Give a name, such as "aim", or a name with options.')
        options: dict[str, str] = {}
        for word in words[1:]:
            key, equals, value = word.partition("=")
            if not equals or not key or key in options:
                raise UsageError(
                    f"method {text!r}", "must be a name followed by options, each once.", 'As in "steps layers=2".'
                )
            options[key] = value
        return cls(" ".join(words), words[0], options)

    def budget(self, epsilon: float, delta: float) -> Budget:
        """What the method is granted: a method that gives pure ε only is not given a δ it could not use."""
        kinds = mechanism(self.method, dict(self.options)).currencies
        return Budget(epsilon, delta if "concentrated" in kinds else 0.0)


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of the study."""

    candidate: Candidate
    epsilon: float
    repeat: int

    @property
    def key(self) -> str:
        """A file name of its own: readable, and unique through a digest."""
        text = json.dumps([self.candidate.name, self.epsilon, self.repeat])
        plain = "".join(letter if letter.isalnum() else "-" for letter in self.candidate.name.lower())[:40]
        return f"{plain}-{self.epsilon:g}-{self.repeat}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True)
class StudySettings:
    """Everything that decides what a study computes; limits and places are not among it."""

    candidates: tuple[Candidate, ...]
    epsilons: tuple[float, ...]
    delta: float = 0.0
    repeats: int = 3
    copies: int = 1
    copies_mode: str = "resample"
    metrics: tuple[str, ...] = ("marginals", "specks")
    rows: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        _check_some("methods", [one.name for one in self.candidates])
        _check_some("epsilons", self.epsilons)
        _check_some("metrics", self.metrics)
        for name, value, least in (("repeats", self.repeats, 1), ("copies", self.copies, 1), ("seed", self.seed, 0)):
            if type(value) is not int or value < least:
                raise UsageError(name, f"must be a whole number from {least}, got {value!r}.")
        if len(self.candidates) * len(self.epsilons) * self.repeats > MOST_CELLS:
            raise UsageError("study", f"has more than {MOST_CELLS:,} runs.", "Compare fewer methods, ε or repeats.")
        for candidate in self.candidates:
            for epsilon in self.epsilons:
                candidate.budget(epsilon, self.delta)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every run: all methods once before any of them twice, so that an early look is fair."""
        return tuple(
            Cell(candidate, epsilon, repeat)
            for repeat in range(1, self.repeats + 1)
            for epsilon in self.epsilons
            for candidate in self.candidates
        )

    def to_json(self) -> dict[str, object]:
        """The settings as plain values."""
        document: dict[str, object] = json.loads(json.dumps(asdict(self)))
        return document


def _check_some(name: str, values: Sequence[object]) -> None:
    if not values:
        raise UsageError(name, "must name at least one.")
    if len(set(values)) != len(values):
        raise UsageError(name, "must not name one twice.")
