"""Numbers from noisy answers: shares, rates, means and quantiles, each with intervals that include what is unknown.

Noisy counts y = x + z of the cells of a table come from every measured table that holds the columns
(`release/statistics.py`), with the same known variance v in each cell. Nothing private is read.

Shares, rates and means are ratios θ = Σ a·x / Σ b·x, with b = 1 in the cells that count and a what a row of the cell
adds: 1 or 0, or its value. So Σ (a − θ·b)·x = 0 for the true θ, and the interval holds every θ for which
Σ (a − θ·b)·y lies within what noise explains: variance v·Σ (a − θ·b)². Nothing is divided by a noisy number, so small
groups get wide intervals and not wrong ones (this is Fieller's way). Sums of few Laplace values have heavier tails than
the normal distribution; their quantiles follow from the kurtosis (Cornish and Fisher), never below the normal ones.
Where the noise is hardly wider than the steps it moves in, half a step is added.

*Within bins.* Values are known in bins only. The true mean lies between that of all smallest and that of all largest
values of the bins; a θ is kept unless even these contradict it. So the interval for the private table holds whatever
the values do inside their bins, at the price of half a bin at each end. `within_bins` says how much that is: finer
bins, or a special value for a heap such as 0, make it small. Values beyond the column's bounds count as the bounds.

*Sampling.* The population interval adds the variance that drawing the rows has: θ(1 − θ) for a share, for a mean the
spread between and, at most, within the bins.

*Quantiles* are read off the counts up to each end of a bin (Woodruff's way): from the smallest value upwards bins are
passed as long as the share below is surely less than p, from the largest downwards as long as it surely is not. Each
walk stops at its first doubt, so that each errs with half the wanted probability however many bins there are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from statistics import NormalDist
from typing import Any

import numpy as np

from understudy.arrays import Bools, Floats
from understudy.codec.table import TableCodec
from understudy.errors import UsageError
from understudy.release.release import Release
from understudy.release.statistics import Sums, noisy_sums, require_same_codes
from understudy.schema import Float, Integer, code_names

Where = Mapping[str, str]
_Ends = tuple[float, float, float, float]
"""Both ends of the interval for the private table, and of that for the population."""
_GRID = 1_001
_HALVINGS = 30
_COARSE = 4.0
"""Noise narrower than so many steps of the sum moves in steps that matter."""
_NAMED = 3


@dataclass(frozen=True, slots=True, repr=False)
class MeasuredNumber:
    """A number about some rows, with an interval for the private table and a wider one for the population behind it."""

    what: str
    where: Where
    estimate: float
    privacy_variance: float
    sampling_variance: float
    within_bins: float
    """How far values may move the number at most by where they lie in their bins; 0 for shares."""
    level: float
    table_low: float
    table_high: float
    population_low: float
    population_high: float
    question: str
    runs: int
    notes: tuple[str, ...]

    @property
    def named(self) -> str:
        """What it is a number of, in words: "share of sex=F", or "mean of age among sex=F"."""
        return f"{self.what} among {words(self.where)}" if self.where else self.what

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        table, population = (
            f"{low:.4g} … {high:.4g}"
            for low, high in ((self.table_low, self.table_high), (self.population_low, self.population_high))
        )
        bins = f", ± {self.within_bins:.3g} of it due to bins" if self.within_bins else ""
        return (
            f"{self.named}: {self.estimate:.4g}; in the private table {table}, in the population {population} "
            f"({100 * self.level:g} % intervals{bins}; measured as {self.question})"
        )


class _DrownedError(UsageError):
    """The noisy count of the rows asked about is not above 0."""


def _normal_quantile(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)


@dataclass(frozen=True, slots=True, eq=False)
class NoisyCells:
    """Noisy counts of the cells that count (`b` = 1), with their common noise."""

    counts: Floats
    sums: Sums
    level: float

    @property
    def rows(self) -> float:
        """Their sum."""
        return float(self.counts.sum())

    @property
    def variance(self) -> float:
        """Of the noise in each."""
        return self.sums.error**2

    def reach(self, squares: Floats, largest: Floats, sampling: Floats | float = 0.0) -> Floats:
        """What Σ weight·noise, and drawing the rows, stay below with the wanted probability on each side."""
        # Weights can make tails only as heavy as those of the largest.
        heavy = self.sums.kurtosis * largest**2 / np.maximum(squares, 1e-300)
        return reach_of(self.variance * squares, heavy, largest, sampling, self.level)


def reach_of(noise: Floats, kurtosis: Floats, step: Floats, sampling: Floats | float, level: float) -> Floats:
    """What noise of these variances, excess kurtoses and steps, and drawing the rows, stay below on each side."""
    whole = noise + sampling
    normal = _normal_quantile(level)
    heavy = kurtosis * (noise / np.maximum(whole, 1e-300)) ** 2  # drawing rows adds no tails
    quantile = normal + np.maximum(0.0, (normal**3 - 3 * normal) * heavy / 24)
    steps = np.where(np.sqrt(whole) < _COARSE * step, step / 2, 0.0)
    certain = np.sqrt(whole / (1 - level))  # Chebyshev's bound holds for every noise
    return np.asarray(np.minimum(quantile * np.sqrt(whole) + steps, certain))


def measured_share(release: Release, where: Where, *, level: float = 0.95) -> MeasuredNumber:
    """The share of rows that satisfy a condition, for example {"sex": "F"}.

    Raises:
        UsageError: if no released table holds the columns of the condition, or the noise is larger than the counts.
    """
    if not where:
        raise UsageError("share", "needs a condition.", 'For example {"sex": "F"}.')
    question = _NoisyTable.of(release, where, (), level)
    return _rate(question, where, question.groups(None, {})[0])


def measured_rate(
    release: Release, rate: Where, *, where: Where | None = None, by: str | None = None, level: float = 0.95
) -> tuple[MeasuredNumber, ...]:
    """The share of rows that satisfy `rate` among those that satisfy `where`, for each label of the column `by`.

    Groups with a noisy count of 0 or less are left out. Raises as `measured_share` does.
    """
    if not rate:
        raise UsageError("rate", "needs a condition.", 'For example {"voted": "yes"}.')
    given = dict(where or {})
    question = _NoisyTable.of(release, {**given, **rate}, _groups_of(by), level)
    return question.of_groups(by, given, lambda rows: _rate(question, rate, rows))


def measured_mean(
    release: Release, column: str, *, where: Where | None = None, by: str | None = None, level: float = 0.95
) -> tuple[MeasuredNumber, ...]:
    """The mean of a column of numbers among the rows that satisfy `where`, for each label of the column `by`.

    Rows without a number in the column do not count; special values count as the numbers they are.
    Raises as `measured_share` does, and if the column holds no numbers.
    """
    given = dict(where or {})
    question = _NoisyTable.of(release, given, (column, *_groups_of(by)), level)
    return question.of_groups(by, given, lambda rows: _mean(question, column, rows))


def measured_quantile(
    release: Release,
    column: str,
    share: float = 0.5,
    *,
    where: Where | None = None,
    by: str | None = None,
    level: float = 0.95,
) -> tuple[MeasuredNumber, ...]:
    """The value that this share of the rows do not exceed; else as `measured_mean`."""
    if not 0 < share < 1:
        raise UsageError("quantile", f"must lie between 0 and 1, got {share!r}.", "0.5 is the median.")
    given = dict(where or {})
    question = _NoisyTable.of(release, given, (column, *_groups_of(by)), level)
    return question.of_groups(by, given, lambda rows: _quantile(question, column, share, rows))


def _groups_of(by: str | None) -> tuple[str, ...]:
    return () if by is None else (by,)


@dataclass(frozen=True, slots=True, eq=False)
class _RowsMeant:
    """Some rows: their condition in words, and the cells they are in."""

    where: Where
    mask: Bools


@dataclass(frozen=True, slots=True, eq=False)
class _NoisyTable:
    """The noisy table that answers a question, and the columns of its axes."""

    release: Release
    columns: tuple[str, ...]
    shape: tuple[int, ...]
    sums: Sums
    level: float

    @classmethod
    def of(cls, release: Release, where: Where, more: Sequence[str], level: float) -> "_NoisyTable":
        """The least noisy sums that hold the columns of the conditions and of what is asked."""
        if not 0 < level < 1:
            raise UsageError("pool: level", f"must lie between 0 and 1, got {level!r}.")
        codec = release.codec
        for name, text in where.items():
            codec.codes_matching(_code_name(codec, name), text)
        columns = codec.domain.clique(_code_name(codec, name) for name in (*where, *more))
        require_same_codes(release.fits, columns)
        sums = noisy_sums(release.fits, columns)
        if sums is None:
            rule = "was not measured: no released table holds these columns together."
            fix = "Use a method that measures it (ensemble measures pairs; nist_mst and dpsyn what marginals name; aim "
            fix += "what its rounds choose), or count it in the rows, without an error bar."
            raise UsageError(f"share of {words(where)}" if where else " × ".join(columns), rule, fix)
        return cls(release, tuple(columns), codec.domain.shape(columns), sums, level)

    def mask(self, where: Where) -> Bools:
        """The cells that satisfy a condition."""
        codec = self.release.codec
        parts = [self.along(name, _hit(codec, name, text)) for name, text in where.items()]
        return reduce(np.logical_and, parts, np.ones(self.shape, np.bool_)).ravel()

    def along(self, name: str, values: Any) -> Any:
        """A value for each code of a column, in the shape of the table."""
        axis = self.columns.index(_code_name(self.release.codec, name))
        return np.broadcast_to(
            values.reshape([-1 if place == axis else 1 for place in range(len(self.shape))]), self.shape
        )

    def groups(self, by: str | None, given: Where) -> list["_RowsMeant"]:
        """The rows that satisfy a condition; for each label of a column, if one is named."""
        among = self.mask(given)
        if by is None:
            return [_RowsMeant(given, among)]
        if by in given:
            raise UsageError(f"by {by!r}", "is a column of the condition.", "Drop one of the two.")
        codec = self.release.codec
        name = _code_name(codec, by)
        size = codec.domain.sizes[name]
        found = []
        for code in range(size):
            rows = among & self.along(by, np.arange(size) == code).ravel()
            found.append(_RowsMeant({**given, by: codec.describe(name, code)}, rows))
        return found

    def of_groups(
        self, by: str | None, given: Where, answer: Callable[["_RowsMeant"], MeasuredNumber]
    ) -> tuple[MeasuredNumber, ...]:
        """The answer for every group that is larger than nothing; the others are named in its notes."""
        groups = self.groups(by, given)
        if by is None:
            return (answer(groups[0]),)
        found, left_out = [], []
        for one in groups:
            try:
                found.append(answer(one))
            except _DrownedError:
                left_out.append(one.where[by])
        if not found:
            raise UsageError(f"by {by!r}", "has no group larger than its noise.", "Ask about larger groups.")
        note = f"Left out, because their noisy count is not above 0: {', '.join(left_out)}."
        return tuple(replace(one, notes=(*one.notes, note)) if left_out else one for one in found)

    def cells(self, among: Bools, subject: str) -> NoisyCells:
        """The noisy counts of the cells that count."""
        found = NoisyCells(self.sums.counts[among], self.sums, self.level)
        if found.rows <= 0:
            rule = "cannot be estimated: the noise is larger than the counts."
            raise _DrownedError(subject, rule, "Ask about more rows at once.")
        return found

    def number(
        self, what: str, where: Where, estimate: float, parts: tuple[float, float, float], ends: _Ends
    ) -> MeasuredNumber:
        """The answer with everything that is to be said about it."""
        more = len(self.sums.sources) - _NAMED
        names = "; ".join(self.sums.sources[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
        runs, notes = len(self.release.fits), notes_on_rows(self.release, self.columns)
        return MeasuredNumber(what, dict(where), estimate, *parts, self.level, *ends, names, runs, notes)


def _code_name(codec: TableCodec, name: str) -> str:
    """The column of codes that a name stands for; of a column in two parts, that of its sizes."""
    for column in codec.schema.modelled:
        if column.name == name and name not in codec.domain.sizes:
            return code_names(column)[0]
    return name


def _hit(codec: TableCodec, name: str, text: str) -> Bools:
    hit = np.zeros(codec.domain.sizes[_code_name(codec, name)], np.bool_)
    hit[codec.codes_matching(_code_name(codec, name), text)] = True
    return hit


def notes_on_rows(release: Release, columns: Sequence[str]) -> tuple[str, ...]:
    """What is to be said about units and about values that could not be read."""
    unit = release.schema.unit
    notes = []
    if unit.column is not None:
        notes.append(
            f"Up to {unit.rows} rows of one {unit.column} are counted; "
            "the population interval treats rows as independent."
        )
    odd = [one.text for one in release.statement.odd if one.column in columns]
    if odd:
        notes += [*odd, "Shares are of all rows, including those whose value is missing or could not be read."]
    return tuple(notes)


def words(where: Where) -> str:
    """A condition as it is typed."""
    return " and ".join(f"{name}={text}" for name, text in where.items())


def _named(what: str, rows: _RowsMeant) -> str:
    return f"{what} among {words(rows.where)}" if rows.where else what


def _rate(question: _NoisyTable, rate: Where, rows: _RowsMeant) -> MeasuredNumber:
    what = f"share of {words(rate)}"
    cells = question.cells(rows.mask, _named(what, rows))
    inside = question.mask(rate)[rows.mask].astype(np.float64)
    share = float(inside @ cells.counts) / cells.rows
    estimate = min(max(share, 0.0), 1.0)

    def drawn(theta: Floats) -> Floats:
        return np.asarray(theta * (1 - theta) * cells.rows)

    ends = _ends(cells, (inside, inside), drawn)
    privacy = cells.variance * float(((inside - estimate) ** 2).sum()) / cells.rows**2
    parts = (privacy, estimate * (1 - estimate) / cells.rows, 0.0)
    return question.number(what, rows.where, estimate, parts, ends)


def _mean(question: _NoisyTable, column: str, rows: _RowsMeant) -> MeasuredNumber:
    what = f"mean of {column}"
    lows, highs, among = _values(question, column, rows)
    cells = question.cells(among, _named(what, rows))
    middle = (lows + highs) / 2
    estimate = float(middle @ cells.counts) / cells.rows
    estimate = min(max(estimate, float(lows.min())), float(highs.max()))
    spread = (highs - lows) ** 2 / 4  # the most that values of one bin can vary
    about = middle - estimate
    square, first = float((about**2 + spread) @ cells.counts), float(about @ cells.counts)

    def drawn(theta: Floats) -> Floats:
        off = theta - estimate  # Σ (middle − θ)²·y, multiplied out
        return np.maximum(square - 2 * off * first + off**2 * cells.rows, 0.0)

    ends = _ends(cells, (lows, highs), drawn)
    privacy = cells.variance * float(((middle - estimate) ** 2).sum()) / cells.rows**2
    weights = np.maximum(cells.counts, 0.0)
    within = float((highs - lows) @ weights) / 2 / float(weights.sum())
    parts = (privacy, float(drawn(np.asarray(estimate))) / cells.rows**2, within)
    return question.number(what, rows.where, estimate, parts, ends)


def _values(question: _NoisyTable, column: str, rows: _RowsMeant) -> tuple[Floats, Floats, Bools]:
    """Smallest and largest value of every cell that counts, and which cells count."""
    codec = question.release.codec
    name = _code_name(codec, column)
    if not isinstance(question.release.schema.column(codec.origin(name)), Integer | Float):
        raise UsageError(f"column {column!r}", "holds no numbers.", "Ask for shares of it.")
    lows, highs = codec.spans(name)
    flat = [question.along(column, ends).ravel() for ends in (lows, highs)]
    among = rows.mask & ~np.isnan(flat[0])
    return flat[0][among], flat[1][among], among


def _ends(cells: NoisyCells, values: tuple[Floats, Floats], drawn: Callable[[Floats], Floats]) -> _Ends:
    table = _kept(cells, values, lambda theta: np.zeros(np.shape(theta)))
    population = _kept(cells, values, drawn)
    return (*table, min(table[0], population[0]), max(table[1], population[1]))


def _kept(cells: NoisyCells, values: tuple[Floats, Floats], drawn: Callable[[Floats], Floats]) -> tuple[float, float]:
    """The smallest and the largest θ that noise does not rule out."""
    least, most = float(values[0].min()), float(values[1].max())
    grid = np.linspace(least, most, _GRID)

    def excess(theta: Floats, ends: Floats, sign: float) -> Floats:
        """How far Σ (a − θ)·y lies on the wrong side, beyond what noise explains; at most 0 where θ is kept."""
        centre = float(ends.mean())
        squares = float(((ends - centre) ** 2).sum()) + ends.size * (theta - centre) ** 2
        largest = np.maximum(np.abs(ends.max() - theta), np.abs(ends.min() - theta))
        total = float(ends @ cells.counts) - theta * cells.rows
        return np.asarray(sign * total - cells.reach(squares, largest, drawn(theta)))

    low_kept = excess(grid, values[0], 1.0) <= 0
    high_kept = excess(grid, values[1], -1.0) <= 0
    low = _edge(grid, low_kept, lambda theta: bool(excess(np.asarray(theta), values[0], 1.0) <= 0))
    high = _edge(grid[::-1], high_kept[::-1], lambda theta: bool(excess(np.asarray(theta), values[1], -1.0) <= 0))
    return (min(low, high), max(low, high))


def _edge(grid: Floats, kept: Bools, keeps: Callable[[float], bool]) -> float:
    """Where θ begins to be kept, walking along the grid; between two of its points by halving."""
    if not kept.any():
        return float(grid[-1])
    place = int(kept.argmax())
    if place == 0:
        return float(grid[0])
    outside, inside = float(grid[place - 1]), float(grid[place])
    for _ in range(_HALVINGS):
        middle = (outside + inside) / 2
        if keeps(middle):
            inside = middle
        else:
            outside = middle
    return outside


def _quantile(question: _NoisyTable, column: str, share: float, rows: _RowsMeant) -> MeasuredNumber:
    what = f"quantile {share:g} of {column}"
    lows, highs, among = _values(question, column, rows)
    cells = question.cells(among, _named(what, rows))
    table = _walk(cells, lows, highs, share, 0.0)
    population = _walk(cells, lows, highs, share, share * (1 - share) * max(cells.rows, 1.0))
    order = np.lexsort((highs, lows))
    counts = np.maximum(cells.counts[order], 0.0)
    reached = np.cumsum(counts) / max(float(counts.sum()), 1e-300)
    place = min(int(np.searchsorted(reached, share)), len(order) - 1)
    before = float(reached[place - 1]) if place else 0.0
    part = (share - before) / max(float(reached[place]) - before, 1e-300)
    low, high = float(lows[order][place]), float(highs[order][place])
    estimate = min(max(low + part * (high - low), table[0]), table[1])
    ends = (*table, min(table[0], population[0]), max(table[1], population[1]))
    normal = _normal_quantile(cells.level)
    privacy, whole = (((ends[at + 1] - ends[at]) / 2 / normal) ** 2 for at in (0, 2))
    parts = (privacy, max(0.0, whole - privacy), (high - low) / 2)
    return question.number(what, rows.where, estimate, parts, ends)


def _walk(cells: NoisyCells, lows: Floats, highs: Floats, share: float, sampling: float) -> tuple[float, float]:
    """The interval of a quantile: up to where the share below is surely too small, down to where it surely is not."""

    def surely(chosen: Bools, sign: float) -> bool:
        """Whether the share of these cells is surely below `share` (sign 1), or surely not (sign −1)."""
        weights = chosen - share
        total = float(weights @ cells.counts)
        squares, largest = np.asarray(float((weights**2).sum())), np.asarray(float(np.abs(weights).max()))
        return sign * total < -float(cells.reach(squares, largest, sampling))

    low = float(lows.min())
    for value in np.unique(lows)[1:]:
        if not surely(lows < value, 1.0):
            break
        low = float(value)
    high = float(highs.max())
    for value in np.unique(highs)[-2::-1]:
        if not surely(highs <= value, -1.0):
            break
        high = float(value)
    return min(low, high), max(low, high)
