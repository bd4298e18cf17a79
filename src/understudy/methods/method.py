"""Method: a frozen set of options, a plan made without data, a run through the curator.

The seam of a synthesizer: a frozen method, a plan made without data, a run through the curator.

Checks of an option's value: one of several words, a whole number, a share, a number, true or false.

Every check names the option, the rule and what was given, and raises UsageError before anything is charged.

Options as text: the value that a text stands for, by the type of the option, and that type in words.

Methods and metrics are frozen dataclasses whose fields are their options, so one reading serves both.

Options written as text: lists of column names, and numbers by column name.

Names are separated by commas; a name that holds a comma or a quote stands in double quotes, as in a CSV line. A number
follows the last colon: `occupation:60,"pay, monthly":1`.

What a question will cost in noise, memory and time, told before any private row is read.

Everything is computed from public numbers. Times are CPU seconds of a run whose kernels are compiled already, rough:
constants measured on one core of a small machine (`benchmarks/forecasts.py` holds them against runs). Bytes are the
most that a run takes beyond the program with its libraries.
"""

import csv
import dataclasses
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from understudy.answers import Distribution
from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import UsageError, nearest
from understudy.models.model import CHUNK_ROWS, Model
from understudy.privacy.cost import Cost, Currency, distribution_for
from understudy.privacy.curator import Curator

PublicCounts = Callable[[Sequence[Clique]], Mapping[Clique, npt.NDArray[np.int64]]]
"""Exact counts of a public table, which is about nobody who is protected."""

Structure = TypeVar("Structure")


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """All a plan may know: domain, structural zeros, rows per unit, a hint of the number of rows, a public table."""

    domain: Domain
    structural_zeros: tuple[StructuralZeros, ...]
    unit_rows: int
    rows_hint: int | None = None
    prepared: tuple[str, ...] = ()
    """Columns whose labels or bins are fixed from private rows, and paid for, before the method runs."""
    public: PublicCounts | None = None
    has_public: bool = False
    """Whether a public table is given along, even one that lacks columns and so cannot be counted in a plan."""


@dataclass(frozen=True, slots=True)
class Step:
    """One question of the plan: its share of the cost and the noise that follows from it."""

    name: str
    cost: Cost
    cells: int
    noise_scale: float | None
    expected_error: float | None
    """Expected absolute error of one cell, in rows."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run will ask and need, known before any private row is read."""

    method: str
    cost: Cost
    steps: tuple[Step, ...]
    cells: int
    bytes: int
    seconds: float
    notes: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    fixed: bool = False
    """Whether a run asks just these questions at just these costs, whatever the answers: then the exact distributions
    of the noise can be summed beforehand, which buys less noise for the same (ε, δ) than adding up ρ does. Only for
    plain measurements: scores, choices and trees are not summed in this way."""
    refused: str = ""
    """Why no privacy claim may be made about such a run (a method as it was published, with its mistakes)."""
    after_counting: int = 0
    """How many of the bytes are taken only when all rows were read, and so do not add to what reading takes."""
    labels: tuple[str, ...] = ()
    """Private columns of a method that labels public records: the statement also says what a change of them costs."""


class Method(Protocol):
    """A synthesizer: a frozen dataclass whose fields are its options, checked at construction."""

    name: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]
    needs: ClassVar[str]
    limits: ClassVar[str]
    currencies: ClassVar[tuple[Currency, ...]]

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """The questions, their cost (never above `cost`), memory and time; raises ResourceError in advance."""
        ...

    def run(self, curator: Curator, cost: Cost) -> Model:
        """Asks the curator, spends at most `cost`, fits and returns a model."""
        ...


@runtime_checkable
class Informed(Protocol):
    """A method that takes options from a public table, once, before anything is planned."""

    def informed(self, facts: PublicFacts) -> Method:
        """The same method with these options fixed; itself if there is no public table."""
        ...


@runtime_checkable
class SharesStructure(Protocol[Structure]):
    """A method that can fix a structure once and measure several copies for it.

    `run` is then the same as `choose_structure` followed by `run_with`, at `structure_share` and the rest of the cost.
    """

    @property
    def shares_structure(self) -> bool:
        """Whether copies that are measured anew are to have one structure in common."""
        ...

    def structure_share(self, facts: PublicFacts) -> Fraction:
        """The share of the cost that settling the structure takes; 0 if there is nothing to pay for."""
        ...

    def plan_structure(self, facts: PublicFacts, cost: Cost) -> Plan:
        """The questions of `choose_structure`."""
        ...

    def plan_with(self, facts: PublicFacts, cost: Cost) -> Plan:
        """The questions of `run_with`."""
        ...

    def choose_structure(self, curator: Curator, cost: Cost) -> Structure:
        """The structure, from answers that cost at most `cost`."""
        ...

    def run_with(self, curator: Curator, cost: Cost, structure: Structure) -> Model:
        """Asks the curator about that structure, spends at most `cost`, fits and returns a model."""
        ...


def check_choice(name: str, value: object, known: tuple[str, ...]) -> None:
    """Raises UsageError unless the value is one of the known words; the message names the nearest."""
    if value not in known:
        raise UsageError(f"{name} {value!r}", "is not a known choice.", nearest(str(value), known))


def check_whole(name: str, value: object, least: int, most: int) -> None:
    """Raises UsageError unless the value is a whole number in that range, both ends included."""
    if type(value) is not int or not least <= value <= most:
        raise UsageError(name, f"must be a whole number from {least:,} to {most:,}, got {value!r}.")


def check_share(name: str, value: object) -> None:
    """Raises UsageError unless the value is a number between 0 and 1, both excluded."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < 1.0:
        raise UsageError(name, f"must lie between 0 and 1, both excluded, got {value!r}.")


def check_number(name: str, value: object, least: float, most: float) -> None:
    """Raises UsageError unless the value is a number in that range, both ends included."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise UsageError(name, f"must be a number from {_spelled(least)} to {_spelled(most)}, got {value!r}.")


def check_flag(name: str, value: object) -> None:
    """Raises UsageError unless the value is true or false."""
    if type(value) is not bool:
        raise UsageError(name, f"must be true or false, got {value!r}.")


def _spelled(number: float) -> str:
    return f"{number:,.12f}".rstrip("0").rstrip(".")


_WORDS: Mapping[object, str] = {
    int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "none"
}  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """One option of a method or metric, as a user may set it."""

    name: str
    kind: str
    default: object
    help: str


def described(kind: type, fields: Iterable[dataclasses.Field[object]]) -> tuple[Option, ...]:
    """Those fields as options: name, type in words, default and help."""
    kept = tuple(fields)
    hints = hints_of(kind, kept)
    return tuple(
        Option(field.name, spelled(hints[field.name]), field.default, str(field.metadata.get("help", "")))
        for field in kept
    )


def hints_of(kind: type, fields: Iterable[dataclasses.Field[object]]) -> dict[str, object]:
    """The types of those fields, by name."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields}


def read_options(whose: str, hints: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    """The options that were given, text read by the type of the option, everything else as it is.

    Args:
        whose: what has these options, for messages, as "method laplace".
        hints: name → type of every option there is.
        given: name → value or text.

    Raises:
        UsageError: for an unknown option, with the closest known one, or text that the type does not take.
    """
    read: dict[str, object] = {}
    for name, value in given.items():
        if name not in hints:
            fix = nearest(name, hints) if hints else "It has no options."
            raise UsageError(f"option {name!r}", f"is not an option of {whose}.", fix)
        read[name] = _read(value, hints[name], name, whose) if isinstance(value, str) else value
    return read


def spelled(hint: object) -> str:
    """The type of an option in words, as "a whole number or none"; kinds that no text stands for are left out."""
    parts = []
    for kind in _alternatives(hint):
        if typing.get_origin(kind) is typing.Literal:
            parts += [str(choice) for choice in typing.get_args(kind)]
        elif typing.get_origin(kind) is tuple:
            parts.append("words with commas between them")
        elif kind in _WORDS:
            parts.append(_WORDS[kind])
    return " or ".join(parts)


def _alternatives(hint: object) -> tuple[object, ...]:
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return typing.get_args(hint) if union else (hint,)


def _read(text: str, hint: object, name: str, whose: str) -> object:
    """The value a text stands for: the first alternative of the type that accepts it."""
    for kind in _alternatives(hint):
        if kind is type(None) and text.lower() in ("", "none"):
            return None
        if typing.get_origin(kind) is typing.Literal and text in typing.get_args(kind):
            return text
        if typing.get_origin(kind) is tuple:
            return tuple(part.strip() for part in text.split(",") if part.strip())
        if kind is bool and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if kind is str:
            return text
        if kind in (int, float):
            try:
                return int(text) if kind is int else float(text)
            except ValueError:
                continue
    raise UsageError(f"option {name!r} of {whose}", f"must be {spelled(hint)}, got {text!r}.")


def listed_names(option: str, text: str) -> tuple[str, ...]:
    """The names in a text, in order.

    >>> listed_names("private", 'sex, "race, self-reported"')
    ('sex', 'race, self-reported')
    """
    if not isinstance(text, str) or "\n" in text or "\r" in text:
        raise UsageError(option, f"must be column names separated by commas, got {text!r}.")
    if not text.strip():
        return ()
    names = tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True)))
    if not all(names) or len(set(names)) != len(names):
        raise UsageError(option, f"must name every column once, got {text!r}.")
    return names


def named_numbers(option: str, text: str) -> dict[str, float]:
    """Numbers by name, each 0 or more.

    >>> named_numbers("weights", "occupation:60, age:1")
    {'occupation': 60.0, 'age': 1.0}
    """
    found: dict[str, float] = {}
    for entry in listed_names(option, text):
        name, colon, number = entry.rpartition(":")
        name = name.strip()
        try:
            value = float(number) if colon and name else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value < 0.0 or name in found:
            rule = f"must be COLUMN:NUMBER, separated by commas, numbers of 0 or more, got {entry!r}."
            raise UsageError(option, rule, 'For example "occupation:60,age:1".')
        found[name] = value
    return found


_CELLS_PER_SECOND = 5e6  # noise, clipping and normalising
_ROW_SECONDS = 1.5e-10  # one row in one of many tables; several of them are summed from one larger table
_START_SECONDS = 0.05
_TABLE_SECONDS = 1.2e-4  # one candidate in a round: whether it fits, what the model expects there, its score
_CANDIDATE_CELLS_PER_SECOND = 2e7
_COLUMN_STEP_SECONDS = 5e-6  # one step of a fit, for each column
_MODEL_CELLS_PER_SECOND = 1.2e8  # one step of a fit
_EXPECTING_STEPS = 10  # what the model expects of all candidates takes as long as that many steps
_LIKELY_NOISE = 3.0  # what the noise of a table of average size may come to: a third of the rows
_COLUMNS_TIED = 2.2
_MEASURED_TABLES = 4  # a model holds at most that many times the cells of its measured tables
_RUN_BYTES = 16 << 20  # readers, writers and the pages of any run
_PAGE_BYTES = 1 << 20  # of every column, while a Parquet file is read
_READ_BYTES = 20  # of one value in a batch of rows
_BATCH_ROWS, _BATCH_VALUES = 1 << 17, 1 << 22
_DRAWN_BYTES = 12  # of one synthetic value: its code and what it is decoded to
_TABLE_BYTES = 1_200  # of one table in a list of many, beside its cells
_CELL_BYTES = 24  # of one cell: an exact count, an expected one, and what a score needs
_COUNTED_LOG = 14.0  # tables that others are summed from have up to about 2¹⁴ cells
_OVERLAP = 1.2  # pairs that lie in several of them
_COUNTING_BYTES = 1 << 29  # tables of one pass over the rows
KEPT_ROWS_BYTES = 1 << 29
"""Most bytes of coded rows of a file that are kept for the next question."""
_READ_SECONDS = 2.3e-8  # reading and encoding one value
_WRITTEN_SECONDS = 7.5e-8  # drawing, decoding and writing one value
_COLUMN_SECONDS = 5.5e-3  # of one column: its codes, its part of the model and of the card
_RELEASE_SECONDS = 0.2
ROWS_UNKNOWN = 1_000_000
"""The number of rows that estimates are for when no hint is given."""


def facts_of(curator: Curator) -> PublicFacts:
    """The public facts of a curator whose codes are fixed."""
    public = curator.public_counts if curator.has_public else None
    return PublicFacts(curator.domain, curator.structural_zeros, curator.unit_rows, public=public)


def expected_absolute(distribution: Distribution) -> float:
    """Expected absolute value of one draw.

    Discrete Laplace: Σ|k|P(k) = 2q/(1 − q²) with q = e^(−1/scale). Gaussian: σ√(2/π), an upper bound for small σ.
    """
    if distribution.kind == "gaussian":
        return distribution.scale * math.sqrt(2.0 / math.pi)
    rate = 1.0 / distribution.scale
    return 2.0 * math.exp(-rate) / -math.expm1(-2.0 * rate)


def pass_probability(distribution: Distribution, threshold: int) -> float:
    """P(noise ≥ threshold) of discrete Laplace noise, threshold ≥ 1: q^threshold/(1 + q).

    >>> from fractions import Fraction
    >>> round(pass_probability(Distribution("laplace", Fraction(2)), 1), 6)
    0.377541
    """
    rate = 1.0 / distribution.scale
    return math.exp(-threshold * rate) / (1.0 + math.exp(-rate))


def noisy_step(name: str, cost: Cost, cells: int, unit_rows: int) -> Step:
    """The step of a plan that measures a table of `cells` cells at that cost."""
    distribution = distribution_for(cost, unit_rows, name)
    return Step(name, cost, cells, distribution.scale, expected_absolute(distribution))


def rows_of(facts: PublicFacts) -> int:
    """The number of rows that estimates are for."""
    return facts.rows_hint if facts.rows_hint is not None else ROWS_UNKNOWN


def seconds_for(facts: PublicFacts, cells: int, tables: int = 0) -> float:
    """Rough time of handling that many cells and counting so many tables; reading the rows is not in it."""
    return _START_SECONDS + cells / _CELLS_PER_SECOND + tables * rows_of(facts) * _ROW_SECONDS


def with_rows(plan: Plan, facts: PublicFacts) -> Plan:
    """The plan of a method with what every run takes on top of it: reading the rows, drawing and writing new ones.

    Rows pass in pieces: what they take grows with their number only up to a piece, and with the columns without end.
    """
    rows, columns = rows_of(facts), len(facts.domain.columns)
    kept = rows * sum(1 if size <= 1 << 8 else 2 if size <= 1 << 16 else 4 for size in facts.domain.sizes.values())
    batch = min(rows, _BATCH_ROWS, _BATCH_VALUES // columns)
    read = columns * (min(8 * rows, _PAGE_BYTES) + _READ_BYTES * batch) + min(kept, KEPT_ROWS_BYTES)
    drawn = columns * _DRAWN_BYTES * min(rows, CHUNK_ROWS)
    passes = 1 if kept <= KEPT_ROWS_BYTES else 2
    seconds = rows * columns * (passes * _READ_SECONDS + _WRITTEN_SECONDS) + columns * _COLUMN_SECONDS
    return replace(
        plan,
        bytes=_RUN_BYTES + max(max(read, drawn) + plan.bytes - plan.after_counting, plan.bytes),
        seconds=plan.seconds + seconds + _RELEASE_SECONDS,
    )


def tables_bytes(facts: PublicFacts, tables: int, cells: int) -> int:
    """Memory of counting and scoring that many tables at once."""
    return tables * _TABLE_BYTES + cells * _CELL_BYTES + counted_bytes(facts.domain, tables)


def counted_bytes(domain: Domain, tables: int) -> int:
    """Memory of the larger tables out of which tables of two columns are summed, as far as one pass holds them."""
    live = [math.log2(size) for size in domain.sizes.values() if size > 1]
    mean = sum(live) / max(1, len(live))
    columns = max(2, min(12, int(_COUNTED_LOG / max(mean, 1.0))))
    cells = tables / math.comb(columns, 2) * 2.0 ** min(60.0, columns * mean)
    return int(min(4 * _OVERLAP * cells, _COUNTING_BYTES))


def raked_cells(facts: PublicFacts, cells: int, margins: str) -> int:
    """Cells to handle when a full table's columns are raked, as many as stand for the time; else the table's own."""
    return cells * (1 + len(facts.domain.columns) // 2) if margins == "raked" else cells


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds of a run that depends on noisy answers: from `least` to `most`, and what is `likely`."""

    least: float
    likely: float
    most: float

    @property
    def note(self) -> str:
        """What a reader of a plan is told."""
        return (
            f"The time depends on noisy answers: about {self.least:,.1f} s if the model stays small, up to about "
            f"{self.most:,.1f} s if it grows to what its limit and the noise allow."
        )


@dataclass(frozen=True, slots=True)
class Rounds:
    """What the time of a method depends on that chooses, measures and fits, round after round."""

    fewest: int
    most: int
    candidates: int
    candidate_cells: int
    first_cells: int
    """Of the model before the first round."""
    most_cells: int
    """Of the model, by its limit of bytes."""
    noise: float
    """Expected absolute error of one cell of a table that a round measures."""
    steps: tuple[int, int, int]
    """Steps of the first fit, of one in a round and of the last."""


def seconds_of_rounds(facts: PublicFacts, rounds: Rounds) -> Span:
    """From few rounds with the first model to all of them with a model that grows evenly to its largest.

    Likely are as many of the planned rounds as the rows carry: a table of average size with noise of a third of the
    rows in all still moves a model of related columns (measured on tables of 10 to 50 columns); with more noise rounds
    become fewer and dearer.
    """
    noise = max(rounds.noise, 1e-9)
    average = rounds.candidate_cells / max(1, rounds.candidates)
    carried = rows_of(facts) / (_LIKELY_NOISE * noise * max(1.0, average))
    likely = min(rounds.most, max(rounds.fewest, round(rounds.most * carried)))
    small = replace(rounds, most_cells=rounds.first_cells)
    return Span(
        _seconds_of(facts, small, rounds.fewest),
        _seconds_of(facts, rounds, likely),
        _seconds_of(facts, rounds, rounds.most),
    )


def _largest_model(facts: PublicFacts, rounds: Rounds, number: int) -> float:
    """Cells of the model after that many rounds.

    A table is worth measuring only if its noise does not exceed twice the number of rows, so noise bounds its cells.
    And tables tie columns together: those of the model span about 5 columns after two tables per column and 7 after
    four (measured on tables of 10 to 50 columns).
    """
    sizes = [math.log(size) for size in facts.domain.sizes.values() if size > 1]
    useful = 2.0 * rows_of(facts) / max(rounds.noise, 1e-9)
    spanned = 1.0 + _COLUMNS_TIED * (number / max(1, len(sizes))) ** 0.75
    tied = math.exp(min(500.0, spanned * sum(sizes) / max(1, len(sizes)))) * len(sizes)
    grown = min(rounds.first_cells + _MEASURED_TABLES * number * useful, tied, float(rounds.most_cells))
    return max(float(rounds.first_cells), grown)


def _seconds_of(facts: PublicFacts, rounds: Rounds, number: int) -> float:
    """Seconds of that many rounds."""
    largest = _largest_model(facts, rounds, number)
    columns = len(facts.domain.columns) * _COLUMN_STEP_SECONDS
    first_step = columns + rounds.first_cells / _MODEL_CELLS_PER_SECOND
    last_step = columns + largest / _MODEL_CELLS_PER_SECOND
    score = rounds.candidates * _TABLE_SECONDS + rounds.candidate_cells / _CANDIDATE_CELLS_PER_SECOND
    first, each, last = rounds.steps
    start = seconds_for(facts, rounds.candidate_cells, rounds.candidates) + first * first_step
    growing = (first_step + last_step) / 2.0
    return start + number * (score + (each + _EXPECTING_STEPS) * growing) + last * last_step
