"""Settings: which methods, at which ε, how often. A study is resumed only under the settings it was begun with."""

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Self

from understudy.errors import UsageError
from understudy.mechanisms.registry import mechanism, spends_delta, uses_public
from understudy.privacy.cost import Budget
from understudy.schema import OpenCategory, Schema
from understudy.synthesizer.design import Copies

__all__ = ["Candidate", "Cell", "Plain", "StudySettings", "leaves_labels_open", "plain_options"]

MOST_CELLS = 100_000


Plain = str | int | float | bool | None | tuple[str | int | float | bool, ...]
"""What an option of a metric may be, so that it can be written down and compared."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A method with its options, under the name the study shows."""

    name: str
    method: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> Self:
        """A candidate from text: a method and its options, with spaces between; quotes keep a value with spaces whole.

        >>> Candidate.read("steps layers=2 allocation=half_leaf").options
        {'layers': '2', 'allocation': 'half_leaf'}
        """
        try:
            words = shlex.split(text) if isinstance(text, str) else []
        except ValueError:
            raise UsageError(f"method {text!r}", "has a quotation mark without its other half.") from None
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
        return cls(shlex.join(words), words[0], options)

    def budget(self, epsilon: float, delta: float, *, open_labels: bool = False) -> Budget:
        """What the method is granted: one that gives pure ε only is not given a δ it could not use.

        Labels that the schema leaves open are discovered under δ, whatever the method.
        """
        method = mechanism(self.method, dict(self.options))
        takes = open_labels or spends_delta(method) or "concentrated" in method.currencies
        return Budget(epsilon, delta if takes else 0.0)

    @property
    def uses_public(self) -> bool:
        """Whether the method can use a public table."""
        return uses_public(mechanism(self.method, dict(self.options)))


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
    metric_options: Mapping[str, Mapping[str, Plain]] = field(default_factory=dict)
    formula: str | None = None
    open_labels: bool = False

    def __post_init__(self) -> None:
        _check_some("methods", [one.name for one in self.candidates])
        _check_some("epsilons", self.epsilons)
        _check_some("metrics", self.metrics)
        if type(self.repeats) is not int or self.repeats < 1:
            raise UsageError("repeats", f"must be a whole number from 1, got {self.repeats!r}.")
        Copies(self.copies, self.copies_mode, self.rows, self.seed)
        if self.rows == 0:
            raise UsageError("rows", "must be 1 or more: a table without rows has no scores.")
        if len(self.candidates) * len(self.epsilons) * self.repeats > MOST_CELLS:
            raise UsageError("study", f"has more than {MOST_CELLS:,} runs.", "Compare fewer methods, ε or repeats.")
        for candidate in self.candidates:
            for epsilon in self.epsilons:
                Budget(epsilon, self.delta)
                self.budget(candidate, epsilon)

    def budget(self, candidate: Candidate, epsilon: float) -> Budget:
        """What a method is granted in one run at that ε."""
        return candidate.budget(epsilon, self.delta, open_labels=self.open_labels)

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


def leaves_labels_open(schema: Schema) -> bool:
    """Whether labels must be discovered, which takes δ."""
    return any(isinstance(column, OpenCategory) for column in schema.modelled)


def plain_options(options: Mapping[str, Mapping[str, object]] | None) -> dict[str, dict[str, Plain]]:
    """Options of metrics as values that can be written down: lists become tuples.

    >>> plain_options({"slopes": {"outcomes": ["age", "sex"]}})
    {'slopes': {'outcomes': ('age', 'sex')}}
    """
    for metric, given in (options or {}).items():
        if not isinstance(given, Mapping):
            raise UsageError(f"options of {metric}", f"must be names with values, got {type(given).__name__}.")
    return {
        metric: {option: _plain(value, f"{metric}.{option}") for option, value in given.items()}
        for metric, given in (options or {}).items()
    }


def _plain(value: object, where: str) -> Plain:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, list | tuple) and all(isinstance(one, str | int | float | bool) for one in value):
        return tuple(value)
    rule = f"must be text, a number, or a list of those, got {type(value).__name__}."
    raise UsageError(f"option {where!r}", rule, "A study writes its options down and hands them to its runs.")


def _check_some(name: str, values: Sequence[object]) -> None:
    if not values:
        raise UsageError(name, "must name at least one.")
    if len(set(values)) != len(values):
        raise UsageError(name, "must not name one twice.")
