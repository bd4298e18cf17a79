"""Models by formula from noisy answers: no rows are fitted, so nothing that a method assumed takes part.

A model is the β at which an estimating function is 0: Σ x·ψ(β) over the cells of a table that holds the outcome and all
columns of the terms, with x the counts and ψ = X·(Y − μ(Xβ)) of a cell, μ the identity (linear) or the logistic
function. The function is linear in the counts. So it is formed from the noisy counts as they are, negative ones
included: its noise has mean 0, and nothing has to be cut off, which would pull sparse tables towards no relation.

*Intervals.* With J = −∂/∂β of the function, a cell moves a coefficient by h = J⁻¹ψ for each of its rows. The noise
moves it by Σ h·z, whose quantiles are those of every other sum of noisy counts (`evaluate/measured.py`); drawing the
rows adds the variance Σ x·h². For the latter an outcome that is a number may lie anywhere in its bin.

*Within bins.* A number is taken as the middle of its bin. Half a bin moves what a row adds to the function by at most
so much; the moves of all rows are added up as if all went in the worst way, together with their products. They move J
too: by no more than 1/(1 − g)² times, with g² = Σ x·w·eJ⁻¹e for rows that e moves. `within_bins` is the sum, and is
added to both ends of an interval.

*What is left out.* J is known with noise too, and a ratio of noisy numbers may be anything. So levels (and pairs of
levels that a product asks for) are left out with their rows, and named, unless their noisy count stands well clear of
its noise; a table whose J does not is refused. Both look at noisy answers alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
from scipy.special import expit

from understudy.arrays import Bools, Floats, Ints
from understudy.codec.table import TableCodec
from understudy.domain import Clique
from understudy.errors import UsageError
from understudy.evaluate.glm import ModelMatrix, independent_columns
from understudy.evaluate.measured import NoisyCells, notes_on_rows, reach_of
from understudy.evaluate.measured_parts import PartsOfTable, measured_parts
from understudy.evaluate.metric import Rows
from understudy.evaluate.regression import (
    FamilyName,
    Formula,
    TermPart,
    by_levels,
    check_outcome,
    code_column,
    model_data,
    references,
)
from understudy.notebook import counted, shown_as_html
from understudy.release.release import Release
from understudy.release.statistics import noisy_sums, require_same_codes
from understudy.schema.columns import NumberColumn

CLEAR = 5.0
"""Standard deviations of its noise by which the count of a level must stand clear of 0."""
LEAST_ROWS, LEAST_EVENTS = 30, 10
MOST_COEFFICIENTS = 300
MOST_NOISE, MOST_MOVED = 0.5, 0.3
"""How far noise, and what bins leave open, may move J, relative to J itself."""
_STEPS, _CLOSE = 100, 1e-10
_NAMED = 12


@dataclass(frozen=True, slots=True)
class MeasuredCoefficient:
    """A coefficient with an interval for the private table and a wider one for the population behind it."""

    estimate: float
    privacy_variance: float
    sampling_variance: float
    within_bins: float
    """How far values may move it at most by where they lie in their bins."""
    level: float
    table_low: float
    table_high: float
    population_low: float
    population_high: float

    @property
    def low(self) -> float:
        """Lower end for the population."""
        return self.population_low

    @property
    def high(self) -> float:
        """Upper end for the population."""
        return self.population_high


@dataclass(frozen=True, slots=True, repr=False)
class MeasuredModel:
    """Every coefficient of a model fitted to noisy answers; `without` names levels whose rows were left out."""

    formula: str
    family: Literal["linear", "logistic"]
    coefficients: Mapping[str, MeasuredCoefficient]
    left_out: tuple[str, ...]
    without: Mapping[str, tuple[str, ...]]
    question: str
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<Model {self.formula} ({self.family}): {counted(len(self.coefficients), 'coefficient')}>"

    def _repr_html_(self) -> str:
        """For notebooks: every coefficient with both intervals."""
        header = ("coefficient", "estimate", "in the private table", "in the population")
        rows = [
            (
                name,
                f"{one.estimate:.4g}",
                f"{one.table_low:.4g} … {one.table_high:.4g}",
                f"{one.population_low:.4g} … {one.population_high:.4g}",
            )
            for name, one in self.coefficients.items()
        ]
        return shown_as_html(f"{self.formula} ({self.family})", (), header, rows, " ".join(self.notes))


def measured_model(
    release: Release, formula: Formula, family: FamilyName, *, level: float = 0.95
) -> MeasuredModel | None:
    """The model from the tables that hold all its columns; None if there is none, or Firth's penalty is asked for.

    Raises:
        UsageError: if noise or bins hide too much of what the model needs.
    """
    codec = release.codec
    if family == "firth":
        return None
    columns = codec.domain.clique(code_column(name, codec) for name in formula.columns)
    number = check_outcome(formula, release.schema)
    counts = _counts_of(release, formula, columns, level)
    if counts is None:
        return None
    cells = _CellRows.of(codec, columns, counts)
    kept, without = _clear(formula, cells, number=number)
    problem = _Equations(formula, cells.take(kept), number=number)
    return problem.solved(without, notes_on_rows(release, columns))


class _Counts(Protocol):
    """Counts of cells as far as they are known: estimates, and what is known of the error of sums of them."""

    @property
    def level(self) -> float:
        """Of the intervals."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The measured tables, in words."""

    @property
    def counts(self) -> Floats:
        """An estimate for each cell, possibly negative."""

    def take(self, index: Ints) -> "_Counts":
        """These cells alone."""

    def deviations(self, weights: Floats) -> Floats:
        """The standard deviation of the noise of Σ weight·count, for every column of weights."""

    def of_groups(self, group: Ints, size: int) -> tuple[Floats, Floats]:
        """The counts of groups of cells (−1: in none) and the standard deviations of their noise."""

    def reach(self, weights: Floats, sampling: float) -> tuple[float, float]:
        """How far Σ weight·count may lie below and above its estimate, by noise and by drawing rows."""


@dataclass(frozen=True, slots=True, eq=False)
class _WholeTable:
    """All cells were measured together: noise of the same size in each."""

    cells: NoisyCells

    @property
    def level(self) -> float:
        return self.cells.level

    @property
    def sources(self) -> tuple[str, ...]:
        return self.cells.sums.sources

    @property
    def counts(self) -> Floats:
        return self.cells.counts

    def take(self, index: Ints) -> "_WholeTable":
        return _WholeTable(replace(self.cells, counts=self.cells.counts[index]))

    def deviations(self, weights: Floats) -> Floats:
        return np.asarray(np.sqrt(self.cells.variance * (weights**2).sum(axis=0)))

    def of_groups(self, group: Ints, size: int) -> tuple[Floats, Floats]:
        inside = group >= 0
        counts = np.bincount(group[inside], weights=self.counts[inside], minlength=size)
        sizes = np.bincount(group[inside], minlength=size).astype(np.float64)
        return np.asarray(counts, np.float64), np.sqrt(self.cells.variance * sizes)

    def reach(self, weights: Floats, sampling: float) -> tuple[float, float]:
        squares, largest = np.asarray(float((weights**2).sum())), np.asarray(float(np.abs(weights).max()))
        found = float(self.cells.reach(squares, largest, sampling))
        return found, found


@dataclass(frozen=True, slots=True, eq=False)
class _TableInParts:
    """Parts of the table were measured: sums of cells lie between bounds that the parts give."""

    parts: PartsOfTable
    index: Ints
    confidence: float

    @property
    def level(self) -> float:
        return self.confidence

    @property
    def sources(self) -> tuple[str, ...]:
        return self.parts.sources

    @property
    def counts(self) -> Floats:
        return np.asarray(self.parts.counts[self.index])

    def take(self, index: Ints) -> "_TableInParts":
        return replace(self, index=self.index[index])

    def _everywhere(self, weights: Floats) -> Floats:
        whole = np.zeros((self.parts.cells, *weights.shape[1:]))
        whole[self.index] = weights
        return whole

    def deviations(self, weights: Floats) -> Floats:
        nearest = self.parts.nearest(self._everywhere(weights))
        return np.sqrt([self.parts.noise(column).variance for column in nearest.T])

    def of_groups(self, group: Ints, size: int) -> tuple[Floats, Floats]:
        weights = (group[:, None] == np.arange(size)).astype(np.float64)
        return self.counts @ weights, self.deviations(weights)

    def reach(self, weights: Floats, sampling: float) -> tuple[float, float]:
        found, whole = [], self._everywhere(weights)
        estimate = float(weights @ self.counts)
        for sign in (-1.0, 1.0):
            bound = self.parts.upper(sign * whole, self.parts.nearest(sign * whole))
            noise, numbers = bound.noise, np.asarray([bound.noise.variance, bound.noise.kurtosis, bound.noise.step])
            ends = float(reach_of(numbers[0], numbers[1], numbers[2], sampling, self.level))
            found.append(max(bound.value - sign * estimate, 0.0) + (ends if noise.variance + sampling > 0 else 0.0))
        return found[0], found[1]


def _counts_of(release: Release, formula: Formula, columns: Clique, level: float) -> _Counts | None:
    """The counts of the table of the columns, measured as a whole or in parts; None if it was not measured at all."""
    if not 0 < level < 1:
        raise UsageError("pool: level", f"must lie between 0 and 1, got {level!r}.")
    sums = noisy_sums(release.fits, columns)
    if sums is not None:
        require_same_codes(release.fits, columns)
        return _WholeTable(NoisyCells(sums.counts, sums, level))
    found = measured_parts(release.fits, columns)
    if {name for part in found for name in part.columns} != set(columns):
        return None
    require_same_codes(release.fits, columns)
    parts = PartsOfTable(release.codec.domain, columns, found)
    lacking = parts.unmeasured()
    if lacking:
        names = "; ".join(f"{first} with {second}" for first, second in lacking[:_NAMED])
        rule = f"cannot be answered: these columns were never measured together: {names}."
        fix = "Use a method that measures all pairs (ensemble), or these columns together (nist_mst or dpsyn, with "
        raise UsageError(f"formula {formula.text!r}", rule, fix + "them in marginals).")
    return _TableInParts(parts, np.arange(parts.cells), level)


@dataclass(frozen=True, slots=True, eq=False)
class _CellRows:
    """The cells of a table as if each were one row, with half the width of its bin for every number."""

    rows: Rows
    halves: Mapping[str, Floats]
    noisy: _Counts

    @classmethod
    def of(cls, codec: TableCodec, columns: Clique, counts: _Counts) -> "_CellRows":
        shape = codec.domain.shape(columns)
        places = np.unravel_index(np.arange(counts.counts.size), shape)
        codes = {name: place.astype(np.uint32) for name, place in zip(columns, places, strict=True)}
        middles, halves = {}, {}
        for name in columns:
            origin = codec.origin(name)
            if isinstance(codec.schema.column(origin), NumberColumn):
                lows, highs = codec.spans(name)
                middles[origin] = ((lows + highs) / 2)[codes[name]]
                halves[origin] = ((highs - lows) / 2)[codes[name]]
        return cls(Rows(codec, counts.counts.size, codes, middles), halves, counts)

    def take(self, kept: Bools) -> "_CellRows":
        """These cells alone."""
        index = np.flatnonzero(kept)
        halves = {name: half[index] for name, half in self.halves.items()}
        return _CellRows(self.rows.take(index), halves, self.noisy.take(index))

    def moved(self, name: str, way: float) -> Rows:
        """The cells with the numbers of one column at one end of their bins."""
        numbers = {**self.rows.numbers, name: self.rows.numbers[name] + way * self.halves[name]}
        return replace(self.rows, numbers=numbers)


def _complete(formula: Formula, cells: _CellRows) -> Bools:
    """Cells that hold a value in every column of the model."""
    kept = np.ones(cells.rows.count, np.bool_)
    parts = [part for term in formula.terms for part in term]
    by_number = {part.column for part in parts if not by_levels(part, cells.rows)}
    if formula.event is None:
        by_number.add(formula.outcome)
    for name in formula.columns:
        layout = cells.rows.codec.layout(code_column(name, cells.rows.codec))
        codes = cells.rows.codes[code_column(name, cells.rows.codec)]
        absent = [layout.missing_code, layout.unreadable_code]
        kept &= ~np.isin(codes, [code for code in absent if code is not None])
        if name in by_number and name in cells.rows.numbers:
            kept &= ~np.isnan(cells.rows.numbers[name])
    return kept


def _clear(formula: Formula, cells: _CellRows, *, number: bool) -> tuple[Bools, dict[str, tuple[str, ...]]]:
    """Complete cells of levels that stand clear of their noise, and the others by their columns."""
    kept = _complete(formula, cells)
    happened = None if number else _happened(formula, cells)
    without: dict[str, tuple[str, ...]] = {}
    if not _sure_groups(np.zeros(cells.rows.count, np.int64), kept, happened, cells.noisy)[0]:
        kept = np.zeros_like(kept)
    for parts in dict.fromkeys(_by_level_parts(formula, cells)):
        names = [code_column(part.column, cells.rows.codec) for part in parts]
        group = np.ravel_multi_index(
            [cells.rows.codes[name] for name in names], [cells.rows.domain.sizes[name] for name in names]
        )
        sure = _sure_groups(group.astype(np.int64), kept, happened, cells.noisy)
        lost = np.unique(group[kept & ~sure[group]])
        if lost.size:
            without[" × ".join(names)] = tuple(_words(cells.rows, names, int(code)) for code in lost)
            kept = kept & sure[group]
    return kept, without


def _by_level_parts(formula: Formula, cells: _CellRows) -> Iterator[tuple[TermPart, ...]]:
    for term in sorted(formula.terms, key=len):
        parts = tuple(part for part in term if by_levels(part, cells.rows))
        if parts:
            yield parts


def _happened(formula: Formula, cells: _CellRows) -> Bools:
    name = code_column(formula.outcome, cells.rows.codec)
    codes = [1] if formula.event is None else cells.rows.codec.codes_matching(name, formula.event)
    return np.asarray(np.isin(cells.rows.codes[name], codes))


def _sure_groups(group: Ints, kept: Bools, happened: Bools | None, noisy: _Counts) -> Bools:
    """Of every group, whether its rows (and its events, and the rest of it) are many enough to be seen."""
    sides = [(kept, LEAST_ROWS)]
    if happened is not None:
        sides += [(kept & happened, LEAST_EVENTS), (kept & ~happened, LEAST_EVENTS)]
    sure = np.ones(int(group.max()) + 1, np.bool_)
    for side, least in sides:
        counts, errors = noisy.of_groups(np.where(side, group, -1), sure.size)
        sure &= counts >= least + CLEAR * errors
    return sure


def _words(rows: Rows, names: Sequence[str], code: int) -> str:
    places = np.unravel_index(code, [rows.domain.sizes[name] for name in names])
    return " and ".join(rows.codec.describe(name, int(place)) for name, place in zip(names, places, strict=True))


class _Equations:
    """The estimating equations of a model over some cells."""

    def __init__(self, formula: Formula, cells: _CellRows, *, number: bool) -> None:
        self.formula, self.cells, self.number = formula, cells, number
        self.counts, self.noisy = cells.noisy.counts, cells.noisy
        self.rows = float(self.counts.sum())
        if self.rows < LEAST_ROWS or not cells.rows.count:
            raise self._refused("the noise is larger than the counts")
        self.reference = references(formula, cells.rows)
        data = model_data(formula, cells.rows, self.reference)
        if data.design.width > MOST_COEFFICIENTS:
            raise self._refused(f"the model has more than {MOST_COEFFICIENTS} coefficients")
        present = np.maximum(self.counts, 0.0)
        self.kept = independent_columns(data.design.cross(present))
        self.names, self.outcomes = data.design.names, data.outcomes
        self.matrix = _dense(data.design)[:, self.kept]

    def _refused(self, why: str) -> UsageError:
        fix = "Use fewer terms or levels, coarser bins, a larger ε, or copies that are each measured anew."
        return UsageError(f"formula {self.formula.text!r}", f"cannot be answered: {why}.", fix)

    def solved(self, without: Mapping[str, tuple[str, ...]], notes: Sequence[str]) -> MeasuredModel:
        """The model with everything that is to be said about it."""
        values = self._root()
        means = self._means(values)
        slopes = self._slopes(means)
        inverse = self._inverse(slopes)
        within = self._within(values, means, slopes, inverse)
        names = [name for name, kept in zip(self.names, self.kept, strict=True) if kept]
        moves = (self.matrix * (self.outcomes - means)[:, None]) @ inverse  # of a coefficient, by a row of the cell
        drawn = self._drawn(moves, inverse)
        found = {
            name: self._coefficient(float(values[place]), moves[:, place], float(drawn[place]), float(within[place]))
            for place, name in enumerate(names)
        }
        said = (
            [f"Left out, because too few of their rows stand out of the noise: {_listed(without)}."] if without else []
        )
        return MeasuredModel(
            self.formula.text,
            "linear" if self.number else "logistic",
            found,
            tuple(name for name, kept in zip(self.names, self.kept, strict=True) if not kept),
            dict(without),
            "; ".join(self.noisy.sources[:3]) + (" …" if len(self.noisy.sources) > 3 else ""),
            (*notes, *said),
        )

    def _root(self) -> Floats:
        if self.number:
            return self._solve(self._bread(np.ones(len(self.counts))), self.matrix.T @ (self.counts * self.outcomes))
        values = np.zeros(self.matrix.shape[1])
        for _ in range(_STEPS):
            means = self._means(values)
            step = self._solve(
                self._bread(self._slopes(means)), self.matrix.T @ (self.counts * (self.outcomes - means))
            )
            longest = float(np.abs(self.matrix @ step).max())
            values = values + step * min(1.0, 2.0 / max(longest, 1e-300))
            if longest < _CLOSE:
                return values
        raise self._refused("the equations have no solution that can be found")

    def _means(self, values: Floats) -> Floats:
        linear = self.matrix @ values
        return np.asarray(linear if self.number else expit(linear))

    def _slopes(self, means: Floats) -> Floats:
        return np.ones(len(means)) if self.number else np.asarray(means * (1 - means))

    def _bread(self, slopes: Floats) -> Floats:
        return np.asarray(self.matrix.T @ ((self.counts * slopes)[:, None] * self.matrix))

    def _solve(self, bread: Floats, right: Floats) -> Floats:
        if not np.isfinite(bread).all() or np.linalg.eigvalsh(_scaled(bread))[0] <= 1e-9:
            raise self._refused("the noise hides how its columns are related")
        return np.asarray(np.linalg.solve(bread, right))

    def _inverse(self, slopes: Floats) -> Floats:
        """J⁻¹, if the noise moves J by little."""
        bread = self._bread(slopes)
        inverse = self._solve(bread, np.eye(len(bread)))
        leverage = slopes * np.einsum("ij,jk,ik->i", self.matrix, inverse, self.matrix)
        if float(self.noisy.deviations(leverage[:, None])[0]) > MOST_NOISE:
            raise self._refused("the noise hides how its columns are related")
        return np.asarray((inverse + inverse.T) / 2)

    def _drawn(self, moves: Floats, inverse: Floats) -> Floats:
        """The variance of each coefficient that comes from drawing the rows."""
        spread = np.zeros(len(self.counts))
        if self.number:
            spread = self.cells.halves[self.formula.outcome] ** 2
        squares = moves**2 + spread[:, None] * (self.matrix @ inverse) ** 2
        rows, width = self.rows, self.matrix.shape[1]
        return np.asarray(np.maximum(self.counts @ squares, 0.0) * rows / max(rows - width, 1.0))

    def _within(self, values: Floats, means: Floats, slopes: Floats, inverse: Floats) -> Floats:
        """How far coefficients move at most by where values lie in their bins."""
        present = np.maximum(self.counts, 0.0)
        present = present * (self.rows / present.sum())
        apart = np.abs(self.outcomes - means)
        outcome = np.zeros(len(present))
        if self.number:
            outcome = self.cells.halves[self.formula.outcome]
        total = present @ np.abs(self.matrix @ inverse * outcome[:, None])
        squared = 0.0
        for moved in self._moved():
            turned, shifted = moved @ inverse, moved @ values
            first = turned * (self.outcomes - means)[:, None] - (self.matrix @ inverse) * (slopes * shifted)[:, None]
            second = np.abs(turned) * (slopes * np.abs(shifted) + outcome)[:, None]
            total = total + present @ (np.abs(first) + second)
            squared += float(present @ (slopes * (turned * moved).sum(axis=1)))
        reach = squared**0.5
        if reach > MOST_MOVED or not np.isfinite(apart).all():
            raise self._refused("the bins of its numbers are too wide to determine the coefficients")
        return np.asarray(total / (1 - reach) ** 2)

    def _moved(self) -> Iterator[Floats]:
        """By how much half a bin of each number moves the rows of the matrix."""
        terms = [part for term in self.formula.terms for part in term]
        for name in dict.fromkeys(part.column for part in terms if not by_levels(part, self.cells.rows)):
            if not self.cells.halves[name].any():
                continue
            ends = [
                _dense(model_data(self.formula, self.cells.moved(name, way), self.reference).design)[:, self.kept]
                for way in (-1.0, 1.0)
            ]
            yield (ends[1] - ends[0]) / 2

    def _coefficient(self, value: float, moves: Floats, drawn: float, within: float) -> MeasuredCoefficient:
        table, population = (self.noisy.reach(moves, more) for more in (0.0, drawn))
        below, above = (max(ends) + within for ends in zip(table, population, strict=True))
        return MeasuredCoefficient(
            value,
            float(self.noisy.deviations(moves[:, None])[0]) ** 2,
            drawn,
            within,
            self.noisy.level,
            value - table[0] - within,
            value + table[1] + within,
            value - below,
            value + above,
        )


def _dense(design: ModelMatrix) -> Floats:
    """The matrix written out: cells are few."""
    whole = np.zeros((design.rows, design.width))
    lines = np.arange(design.rows)
    for place in range(design.places.shape[1]):
        held = design.places[:, place] >= 0
        value = design.values[held, place] if place < design.values.shape[1] else 1.0
        whole[lines[held], design.places[held, place]] += value
    return whole


def _scaled(matrix: Floats) -> Floats:
    """With ones on the diagonal, so that units do not matter; as it is where a diagonal is not above 0."""
    diagonal = np.diagonal(matrix)
    if (diagonal <= 0).any():
        return -np.eye(len(matrix))
    root = np.sqrt(diagonal)
    return np.asarray(matrix / root[:, None] / root[None, :])


def _listed(without: Mapping[str, tuple[str, ...]]) -> str:
    found = []
    for names, levels in without.items():
        more = f" and {len(levels) - _NAMED:,} more" if len(levels) > _NAMED else ""
        found.append(f"{names} = {', '.join(levels[:_NAMED])}{more}")
    return "; ".join(found)
