"""Coverage of intervals from noisy answers: random questions to random samples of a table, with noise of known size."""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from tests.release.people import release_of_simple
from understudy.codec.table import TableCodec
from understudy.domain import RESIDUAL_UNIT, Distribution, Measurement, ResidualTable, Transcript
from understudy.errors import UsageError
from understudy.evaluate.measured import (
    MeasuredNumber,
    measured_mean,
    measured_quantile,
    measured_rate,
    measured_share,
)
from understudy.models.product import BlockModel
from understudy.release import Release
from understudy.release.release import Fitted
from understudy.schema import Category, Float, Integer, Schema

__all__ = ["Coverage", "covered", "noise_of"]

MOST_CELLS = 20_000
Codes = dict[str, np.ndarray]


class Coverage:
    """How often intervals held the truth, by kind of question."""

    def __init__(self) -> None:
        self.hits: dict[str, Counter[bool]] = defaultdict(Counter)

    def add(self, kind: str, found: MeasuredNumber, table: float, population: float) -> None:
        """Counts both intervals of one number; a truth that does not exist counts for nothing."""
        if np.isfinite(table):
            self.hits[f"{kind} in the table"][_holds(found.table_low, table, found.table_high)] += 1
        if np.isfinite(population):
            self.hits[f"{kind} in the population"][_holds(found.population_low, population, found.population_high)] += 1

    def shares(self) -> dict[str, tuple[float, int]]:
        """Share of intervals that held the truth, and how many there were, by kind."""
        return {kind: (counts[True] / counts.total(), counts.total()) for kind, counts in self.hits.items()}


def _holds(low: float, truth: float, high: float) -> bool:
    tiny = 1e-9 * max(1.0, abs(truth))
    return low - tiny <= truth <= high + tiny


def noise_of(distribution: Distribution, cells: int, rng: np.random.Generator) -> np.ndarray:
    """Noise for tests, from a seeded generator."""
    if distribution.kind == "laplace":
        decay = np.exp(-1 / distribution.scale)
        return np.asarray(rng.geometric(1 - decay, cells) - rng.geometric(1 - decay, cells))
    return np.rint(rng.normal(0, distribution.scale, cells)).astype(np.int64)


def covered(table: pa.Table, schema: Schema, samples: int, seed: int, *, residuals: bool = False) -> Coverage:
    """Random questions to random samples of a table, which is the population.

    With `residuals`, pairs of columns were measured by these and by their columns, as `ensemble` does.
    """
    rng = np.random.default_rng(seed)
    codec = TableCodec.of(schema, unreadable=True)
    names = [column.name for column in schema.columns if column.name in codec.domain.sizes]
    codes = {name: codec.encode(name, table[name]).astype(np.int64) for name in names}
    numbers = {name: _numbers(schema, name, table[name]) for name in names if _is_number(schema, name)}
    labels = [name for name in names if isinstance(schema.column(name), Category)]
    found = Coverage()
    shell = release_of_simple()
    for _ in range(samples):
        rows = rng.integers(0, table.num_rows, int(rng.choice([300, 2_000, 15_000])))
        one = _Sample(codec, codes, numbers, rows, rng, residuals=residuals)
        release = one.release(shell, schema)
        for _ in range(3):
            one.ask(release, labels, found)
    return found


def _is_number(schema: Schema, name: str) -> bool:
    return isinstance(schema.column(name), Integer | Float)


def _numbers(schema: Schema, name: str, values: pa.ChunkedArray) -> np.ndarray:
    """The values as the release knows them: at the bounds where they lie beyond."""
    column: Any = schema.column(name)
    plain = np.asarray(values.cast(pa.float64()).fill_null(float("nan")))
    return np.clip(plain, column.lower, column.upper)


class _Sample:
    def __init__(
        self,
        codec: TableCodec,
        codes: Codes,
        numbers: Codes,
        rows: np.ndarray,
        rng: np.random.Generator,
        *,
        residuals: bool,
    ) -> None:
        self.codec, self.codes, self.numbers, self.rows, self.rng = codec, codes, numbers, rows, rng
        self.residuals = residuals
        self.columns = self._columns()

    def _columns(self) -> tuple[str, ...]:
        """Some columns, with a number among them where there is one, of which a table can be measured."""
        while True:
            chosen = set(self.rng.choice(list(self.codes), int(self.rng.integers(2, 4)), replace=False).tolist())
            chosen |= {str(self.rng.choice(list(self.numbers)))} if self.numbers else set()
            if self.residuals and len(chosen) != 2:
                continue
            clique = self.codec.domain.clique(chosen)
            if self.codec.domain.cells(clique) <= MOST_CELLS:
                return tuple(clique)

    def release(self, shell: Release, schema: Schema) -> Release:
        """A release whose table of these columns, and one inside it, were measured with noise."""
        kind = str(self.rng.choice(["laplace", "gaussian"]))
        scale = Fraction(int(self.rng.choice([1, 4, 20])))
        if self.residuals:
            return replace(shell, schema=schema, fits=(self._by_residuals(2 * scale**2),))
        noise = Distribution("laplace", scale) if kind == "laplace" else Distribution("gaussian", 2 * scale**2)
        wide = self._measured(self.columns, noise)
        inside = self.codec.domain.clique(self.rng.choice(self.columns, 2, replace=False).tolist())
        fitted = Fitted(
            self.codec,
            Transcript([wide, self._measured(tuple(inside), noise)]),
            BlockModel.uniform(self.codec.domain, (), 1.0),
        )
        return replace(shell, schema=schema, fits=(fitted,))

    def _measured(self, columns: tuple[str, ...], noise: Distribution) -> Measurement:
        shape = self.codec.domain.shape(columns)
        flat = np.ravel_multi_index([self.codes[name][self.rows] for name in columns], shape)
        counts = np.bincount(flat, minlength=int(np.prod(shape)))
        values = counts + noise_of(noise, counts.size, self.rng)
        return Measurement(" × ".join(columns), columns, shape, values, noise)

    def _by_residuals(self, variance: Fraction) -> Fitted:
        """Both columns, the second less exactly, and the residuals of the pair, on their lattice."""
        columns = [
            self._measured((name,), Distribution("gaussian", times * variance))
            for name, times in zip(self.columns, (1, 4), strict=True)
        ]
        exact = Distribution("gaussian", Fraction(1, 100))
        counts = self._measured(self.columns, exact)
        noise = Distribution("gaussian", variance * RESIDUAL_UNIT**2)
        table = counts.table * RESIDUAL_UNIT + noise_of(noise, counts.values.size, self.rng).reshape(counts.shape)
        contrasts = table[1:, 1:] - table[1:, :1] - table[:1, 1:] + table[0, 0]
        pair = ResidualTable(counts.name, self.columns, counts.shape, contrasts.ravel(), noise)
        return Fitted(self.codec, Transcript([*columns, pair]), BlockModel.uniform(self.codec.domain, (), 1.0))

    def ask(self, release: Release, labels: list[str], found: Coverage) -> None:
        """A share, rates, means and quantiles about the columns of the table."""
        numbers = [name for name in self.columns if name in self.numbers]
        groups = [name for name in self.columns if name in labels]
        where = {name: self._text(name) for name in self.columns if self.rng.random() < 0.5} or {
            self.columns[0]: self._text(self.columns[0])
        }
        self._compare("share", found, lambda: (measured_share(release, where),), lambda kept, _: self._hit(where, kept))
        by = str(self.rng.choice(groups)) if groups else None
        others = [name for name in self.columns if name != by]
        if others:
            name = str(self.rng.choice(others))
            rate = {name: self._text(name)}
            self._compare(
                "rate",
                found,
                lambda: measured_rate(release, rate, by=by),
                lambda kept, one: self._among(rate, kept, one),
            )
        if numbers:
            name = str(self.rng.choice(numbers))
            share = float(self.rng.choice([0.1, 0.25, 0.5, 0.75, 0.9]))
            self._compare("mean", found, lambda: measured_mean(release, name, by=by), self._truth(name, np.mean))
            self._compare(
                "quantile",
                found,
                lambda: measured_quantile(release, name, share, by=by),
                self._truth(name, lambda values: np.quantile(values, share, method="inverted_cdf")),
            )

    def _compare(
        self,
        kind: str,
        found: Coverage,
        answer: Callable[[], tuple[MeasuredNumber, ...]],
        truth: Callable[[np.ndarray, MeasuredNumber], float],
    ) -> None:
        everybody = np.arange(next(iter(self.codes.values())).size)
        try:
            numbers = answer()
        except UsageError:  # the noise is larger than the counts: nothing is claimed
            return
        for one in numbers:
            found.add(kind, one, truth(self.rows, one), truth(everybody, one))

    def _text(self, name: str) -> str:
        """A condition that the column can answer."""
        return self.codec.describe(name, int(self.rng.integers(self.codec.domain.sizes[name])))

    def _mask(self, where: Any, rows: np.ndarray) -> np.ndarray:
        kept = np.ones(rows.size, np.bool_)
        for name, text in where.items():
            size = self.codec.domain.sizes[name]
            wanted = [code for code in range(size) if self.codec.describe(name, code) == text]
            kept &= np.isin(self.codes[name][rows], wanted)
        return kept

    def _hit(self, where: Any, rows: np.ndarray) -> float:
        return float(self._mask(where, rows).mean())

    def _among(self, rate: Any, rows: np.ndarray, one: MeasuredNumber) -> float:
        inside = rows[self._mask(one.where, rows)]
        return float(self._mask(rate, inside).mean()) if inside.size else float("nan")

    def _truth(self, name: str, of: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray, MeasuredNumber], float]:
        def truth(rows: np.ndarray, one: MeasuredNumber) -> float:
            values = self.numbers[name][rows[self._mask(one.where, rows)]]
            values = values[~np.isnan(values)]
            return float(of(values)) if values.size else float("nan")

        return truth
